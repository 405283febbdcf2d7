
/*
 * The dialect of Ollama's clients: POST /api/chat with messages, and POST
 * /api/generate.
 *
 * Error texts that clients look for are Ollama's own.  A request without a
 * prompt loads the model in Ollama; here it waits until the model is loaded.
 */


#include "ollama.h"


/* a load may come without messages; a RoboBrain message has no "model" */

ngx_uint_t
ngx_http_vlm_ollama_speaks(const vlm_json_t *json)
{
    if (vlm_json_get(json, "messages")) {
        return 1;
    }

    return vlm_json_get(json, "model")
           && vlm_json_get(json, "message") == NULL
           && vlm_json_get(json, "session_id") == NULL
           && vlm_json_get(json, "sessionId") == NULL;
}


/* ---- the request --------------------------------------------------------- */


/* of a message, or of /api/generate, which may bound their pixels, too */

static ngx_int_t
ngx_http_vlm_ollama_images(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    const char             *text;
    const vlm_json_t       *images, *image;

    images = vlm_json_get(json, "images");

    if (!vlm_json_is_null(images) && !vlm_json_is_array(images)) {
        return ngx_http_vlm_fail_input(ctx, "images is not an array");
    }

    for (image = vlm_json_first(images); image; image = vlm_json_next(image)) {
        text = vlm_json_text(image);

        if (text == NULL) {
            return ngx_http_vlm_fail_input(ctx, "an image is not a string of "
                                           "base64");
        }

        if (ngx_http_vlm_messages_picture(ngx_http_vlm_asked(ctx), text, json)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* pictures precede the text, as in the model family's own prompts */

static ngx_int_t
ngx_http_vlm_ollama_message(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *message, ngx_uint_t n)
{
    char                    place[48];
    vlm_role_t              role;
    const char             *text;
    const vlm_json_t       *content;

    if (!vlm_json_is_object(message)) {
        return ngx_http_vlm_fail_input(ctx, "messages[%ui] is not an object",
                                       n);
    }

    text = vlm_json_text(vlm_json_get(message, "role"));

    if (ngx_http_vlm_messages_role(text, &role) != NGX_OK
        || (role == VLM_TOOL && ctx->engine->conf.facts.call == NULL))
    {
        return ngx_http_vlm_fail_input(ctx, "messages[%ui].role is not "
                                       "\"system\", \"user\", \"assistant\" "
                                       "or, of a model with tools, \"tool\"",
                                       n);
    }

    content = vlm_json_get(message, "content");

    if (!vlm_json_is_null(content) && !vlm_json_is_string(content)) {
        return ngx_http_vlm_fail_input(ctx, "messages[%ui].content is not a "
                                       "string", n);
    }

    if (ngx_http_vlm_messages_begin(ngx_http_vlm_asked(ctx), role) != NGX_OK
        || ngx_http_vlm_ollama_images(ctx, message) != NGX_OK)
    {
        return NGX_ERROR;
    }

    text = ngx_http_vlm_fields_text(message, "content");

    if ((*text || role != VLM_ASSISTANT)
        && ngx_http_vlm_messages_text(ngx_http_vlm_asked(ctx), text) != NGX_OK)
    {
        return NGX_ERROR;
    }

    (void) snprintf(place, sizeof(place), "messages[%u]", (unsigned) n);

    return role != VLM_ASSISTANT ? NGX_OK
           : ngx_http_vlm_tools_calls(ctx, vlm_json_get(message, "tool_calls"),
                                      place);
}


static ngx_int_t
ngx_http_vlm_ollama_messages(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *messages)
{
    ngx_uint_t         n;
    const vlm_json_t  *one;

    n = 0;

    for (one = vlm_json_first(messages); one; one = vlm_json_next(one)) {
        if (ngx_http_vlm_ollama_message(ctx, one, n++) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* a thinking model thinks by default */

static ngx_int_t
ngx_http_vlm_ollama_fields(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    ngx_uint_t of)
{
    double                 *n;
    ngx_http_vlm_ollama_t  *o;

    o = ngx_http_vlm_asked_create(ctx, json, sizeof(ngx_http_vlm_ollama_t),
                                  "missing request body");

    if (o == NULL || ngx_http_vlm_fields_read(ctx, json, of) != NGX_OK) {
        return NGX_ERROR;
    }

    n = o->in.f.number;

    o->whole = n[VLM_FIELD_TRUNCATE] == 0;

    ctx->streaming = n[VLM_FIELD_STREAM] != 0;
    ctx->out.plain = o->in.f.constraint.form || !ctx->engine->conf.thinking;
    ctx->out.thinks = !ctx->out.plain && n[VLM_FIELD_THINK] != 0;

    return NGX_OK;
}


/* the model stays loaded in any case; a request without a prompt is answered
   as a load or an unload */

static void
ngx_http_vlm_ollama_empty(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_ollama_t *o = ctx->data;

    ngx_uint_t  unloads;

    unloads = o->in.f.number[VLM_FIELD_UNLOADS] == 1;

    ctx->streaming = 0;
    ctx->out.plain = 1;
    o->empty = unloads ? "unload" : "load";

    if (unloads || ctx->engine->zone->state == NGX_HTTP_VLM_READY) {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_OK, "nothing to ask");
    }
}


static void
ngx_http_vlm_ollama_chat_fields(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_http_vlm_ollama_t  *o;

    if (ngx_http_vlm_ollama_fields(ctx, json, VLM_OF_OLLAMA) != NGX_OK
        || ngx_http_vlm_ollama_messages(ctx, vlm_json_get(json, "messages"))
           != NGX_OK
        || ngx_http_vlm_tools_read(ctx, json, "tools", NULL) != NGX_OK)
    {
        return;
    }

    o = ctx->data;

    if (ngx_http_vlm_messages_fit(o->in.messages, o->whole) == NGX_OK
        && vlm_json_count(vlm_json_get(json, "messages")) == 0)
    {
        ngx_http_vlm_ollama_empty(ctx);
    }
}


/* fields of /api/generate that this model does not support */

static ngx_int_t
ngx_http_vlm_ollama_unsupported(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_http_vlm_ollama_t *o = ctx->data;

    ngx_uint_t  template, system;

    o->raw = o->in.f.number[VLM_FIELD_RAW] == 1;

    template = vlm_json_is_true(vlm_json_get(json, "template"));
    system = vlm_json_is_true(vlm_json_get(json, "system"));

    if (vlm_json_is_true(vlm_json_get(json, "suffix"))) {
        return ngx_http_vlm_fail_input(ctx, "%s does not support insert",
                                       o->in.model);
    }

    if (o->raw && (template || system
                   || vlm_json_is_true(vlm_json_get(json, "context"))))
    {
        return ngx_http_vlm_fail_input(ctx, "raw mode does not support "
                                       "template, system, or context");
    }

    if (template) {
        return ngx_http_vlm_fail_input(ctx, "%s does not support template, "
                                       "only the checkpoint's own",
                                       o->in.model);
    }

    /* a model without a template continues each prompt as it stands */

    if (ctx->engine->conf.facts.turn == NULL && !system) {
        o->raw = 1;
    }

    if (o->raw) {
        ctx->out.plain = 1;
        ctx->out.thinks = 0;
    }

    return NGX_OK;
}


static void
ngx_http_vlm_ollama_generate_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    const char               *prompt, *system;
    ngx_http_vlm_ollama_t    *o;
    ngx_http_vlm_messages_t  *m;

    ctx->dialect = &ngx_http_vlm_ollama_chat;

    if (ngx_http_vlm_ollama_fields(ctx, json, VLM_OF_GENERATE)
        != NGX_OK
        || ngx_http_vlm_ollama_unsupported(ctx, json) != NGX_OK)
    {
        return;
    }

    o = ctx->data;
    o->generate = 1;
    m = o->in.messages;

    prompt = ngx_http_vlm_fields_text(json, "prompt");
    system = ngx_http_vlm_fields_text(json, "system");

    if (system[0] != '\0'
        && (ngx_http_vlm_messages_begin(m, VLM_SYSTEM) != NGX_OK
            || ngx_http_vlm_messages_text(m, system) != NGX_OK))
    {
        return;
    }

    if (ngx_http_vlm_messages_begin(m, VLM_USER) == NGX_OK
        && ngx_http_vlm_ollama_images(ctx, json) == NGX_OK
        && ngx_http_vlm_messages_text(m, prompt) == NGX_OK
        && ngx_http_vlm_messages_fit(m, 1) == NGX_OK
        && prompt[0] == '\0')
    {
        ngx_http_vlm_ollama_empty(ctx);
    }
}


/* ---- the prompt ---------------------------------------------------------- */


/* a prompt of any one token: it completes once the model is loaded */

static void
ngx_http_vlm_ollama_prompt_load(ngx_http_vlm_ctx_t *ctx)
{
    vlm_part_t  part = { .text = " ", .bytes = 1 };

    ctx->sampling.max_tokens = 1;

    ctx->prompt = vlm_prompt_raw(ctx->engine->life.vlm, &part, 1,
                                 &ctx->error.err);

    if (ctx->prompt == NULL) {
        (void) ngx_http_vlm_fail_engine(ctx, NULL, NULL);
    }
}


/* a history that does not fit is shortened, if the client allows that */

static void
ngx_http_vlm_ollama_prompt(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_ollama_t *o = ctx->data;

    if (o->empty) {
        ngx_http_vlm_ollama_prompt_load(ctx);
        return;
    }

    if (ngx_http_vlm_fields_sampling(ctx) != NGX_OK) {
        return;
    }

    while (ngx_http_vlm_messages_prompt(&o->in.messages, o->raw,
                                        ngx_http_vlm_thinking_tail(ctx))
           != NGX_OK)
    {
        if (o->raw || o->whole || ctx->error.code == NULL
            || ngx_strcmp(ctx->error.code, "context_length_exceeded") != 0
            || ngx_http_vlm_messages_drop(o->in.messages) != NGX_OK)
        {
            return;
        }
    }
}


const ngx_http_vlm_dialect_t  ngx_http_vlm_ollama_chat = {
    .fields = ngx_http_vlm_ollama_chat_fields,
    .prompt = ngx_http_vlm_ollama_prompt,
    .ended = ngx_http_vlm_thinking_ended,
    .answer = ngx_http_vlm_ollama_answer,
    .stream_type = "application/x-ndjson",
    .chunk = ngx_http_vlm_ollama_chunk,
    .error = ngx_http_vlm_ollama_error,
    .free = ngx_http_vlm_asked_free
};


/* becomes the other one when its fields are read */

const ngx_http_vlm_dialect_t  ngx_http_vlm_ollama_generate = {
    .fields = ngx_http_vlm_ollama_generate_fields
};
