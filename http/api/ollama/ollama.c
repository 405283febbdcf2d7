
/*
 * The dialect of Ollama's clients: POST /api/chat with messages, and POST
 * /api/generate.
 *
 * Error texts that clients look for are Ollama's own.  A request without a
 * prompt loads the model in Ollama; here it waits until the model is loaded.
 */


#include "../api.h"
#include "ollama.h"


static void ngx_http_vlm_ollama_chat_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
static void ngx_http_vlm_ollama_generate_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
static ngx_int_t ngx_http_vlm_ollama_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
static ngx_int_t ngx_http_vlm_ollama_think(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *think);
static ngx_int_t ngx_http_vlm_ollama_keep(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *keep, ngx_uint_t empty);
static ngx_int_t ngx_http_vlm_ollama_messages(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *messages);
static ngx_int_t ngx_http_vlm_ollama_message(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *message, ngx_uint_t n);
static ngx_int_t ngx_http_vlm_ollama_images(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *images);
static ngx_int_t ngx_http_vlm_ollama_unsupported(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
static void ngx_http_vlm_ollama_prompt(ngx_http_vlm_ctx_t *ctx);
static void ngx_http_vlm_ollama_prompt_load(ngx_http_vlm_ctx_t *ctx);
static ngx_int_t ngx_http_vlm_ollama_shorten(ngx_http_vlm_ctx_t *ctx);


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


const ngx_http_vlm_dialect_t  ngx_http_vlm_ollama_generate = {
    .fields = ngx_http_vlm_ollama_generate_fields,
    .prompt = ngx_http_vlm_ollama_prompt,
    .ended = ngx_http_vlm_thinking_ended,
    .answer = ngx_http_vlm_ollama_answer,
    .stream_type = "application/x-ndjson",
    .chunk = ngx_http_vlm_ollama_chunk,
    .error = ngx_http_vlm_ollama_error,
    .free = ngx_http_vlm_asked_free
};


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


static void
ngx_http_vlm_ollama_chat_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    ngx_http_vlm_ollama_t      *o;
    const vlm_json_t           *messages;

    if (ngx_http_vlm_ollama_fields(ctx, json) != NGX_OK
        || ngx_http_vlm_fields_tools(ctx, json, "tools", NULL) != NGX_OK)
    {
        return;
    }

    messages = vlm_json_get(json, "messages");

    o = ctx->data;

    if (ngx_http_vlm_ollama_messages(ctx, messages) != NGX_OK
        || ngx_http_vlm_messages_fit(o->in.messages, o->whole) != NGX_OK)
    {
        return;
    }

    (void) ngx_http_vlm_ollama_keep(ctx,
                                    vlm_json_get(json, "keep_alive"),
                                    vlm_json_count(messages) == 0);
}


static void
ngx_http_vlm_ollama_generate_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    const char             *prompt, *system;
    ngx_http_vlm_ollama_t  *o;

    if (ngx_http_vlm_ollama_fields(ctx, json) != NGX_OK) {
        return;
    }

    o = ctx->data;
    o->generate = 1;

    if (ngx_http_vlm_ollama_unsupported(ctx, json) != NGX_OK
        || ngx_http_vlm_fields_text(ctx, json, "prompt", &prompt) != NGX_OK
        || ngx_http_vlm_fields_text(ctx, json, "system", &system) != NGX_OK)
    {
        return;
    }

    if (system[0] != '\0'
        && (ngx_http_vlm_messages_begin(o->in.messages, VLM_SYSTEM) != NGX_OK
            || ngx_http_vlm_messages_text(o->in.messages, system,
                                          ngx_strlen(system))
               != NGX_OK))
    {
        return;
    }

    if (ngx_http_vlm_messages_begin(o->in.messages, VLM_USER) != NGX_OK
        || ngx_http_vlm_ollama_images(ctx, vlm_json_get(json,
                                                        "images"))
           != NGX_OK
        || ngx_http_vlm_messages_text(o->in.messages, prompt,
                                      ngx_strlen(prompt))
           != NGX_OK
        || ngx_http_vlm_messages_fit(o->in.messages, 1) != NGX_OK)
    {
        return;
    }

    (void) ngx_http_vlm_ollama_keep(ctx,
                                    vlm_json_get(json, "keep_alive"),
                                    prompt[0] == '\0');
}


/* fields of both endpoints */

static ngx_int_t
ngx_http_vlm_ollama_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    ngx_uint_t              truncate;
    ngx_http_vlm_ollama_t  *o;

    if (json == NULL) {
        return ngx_http_vlm_fail_input(ctx, "missing request body");
    }

    if (!vlm_json_is_object(json)) {
        return ngx_http_vlm_fail_input(ctx, "The request is not a JSON object");
    }

    o = ngx_http_vlm_asked_create(ctx, json, sizeof(ngx_http_vlm_ollama_t));

    if (o == NULL
        || ngx_http_vlm_fields_flag(ctx, json, "stream", 1, &ctx->streaming)
           != NGX_OK
        || ngx_http_vlm_fields_flag(ctx, json, "truncate", 1, &truncate)
           != NGX_OK
        || ngx_http_vlm_ollama_options(ctx, json) != NGX_OK)
    {
        return NGX_ERROR;
    }

    o->whole = !truncate;
    ctx->out.plain = o->in.f.json || !ctx->engine->conf.thinking;

    return ngx_http_vlm_ollama_think(ctx, vlm_json_get(json,
                                                       "think"));
}


/* a boolean or a level; a thinking model thinks by default */

static ngx_int_t
ngx_http_vlm_ollama_think(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *think)
{
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    if (vlm_json_is_null(think)) {
        ctx->out.thinks = !ctx->out.plain;
        return NGX_OK;
    }

    if (!vlm_json_is_bool(think)
        && !vlm_json_is_string(think))
    {
        return ngx_http_vlm_fail_input(ctx, "think is neither a boolean nor a "
                                       "string");
    }

    if (vlm_json_is_true(think) && !ctx->engine->conf.thinking) {
        return ngx_http_vlm_fail_input(ctx, "\"%s\" does not support thinking",
                                       o->in.model);
    }

    ctx->out.thinks = !ctx->out.plain && vlm_json_is_true(think);

    return NGX_OK;
}


/* the model stays loaded in any case; a request without a prompt is answered
   as a load or an unload */

static ngx_int_t
ngx_http_vlm_ollama_keep(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *keep, ngx_uint_t empty)
{
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    if (!vlm_json_is_null(keep)
        && !vlm_json_is_number(keep)
        && !vlm_json_is_string(keep))
    {
        return ngx_http_vlm_fail_input(ctx, "keep_alive is neither a number "
                                       "nor a string");
    }

    if (!empty) {
        return NGX_OK;
    }

    ctx->streaming = 0;

    ctx->out.plain = 1;
    o->what = ngx_http_vlm_ollama_unloads(keep) ? NGX_HTTP_VLM_OLLAMA_UNLOAD
                                                : NGX_HTTP_VLM_OLLAMA_LOAD;

    if (o->what == NGX_HTTP_VLM_OLLAMA_UNLOAD
        || ctx->engine->zone->state == NGX_HTTP_VLM_READY)
    {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_OK, "nothing to ask");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_ollama_messages(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *messages)
{
    ngx_uint_t                  n;
    const vlm_json_t           *message;

    if (!vlm_json_is_null(messages)
        && !vlm_json_is_array(messages))
    {
        return ngx_http_vlm_fail_input(ctx, "messages is not an array");
    }

    n = 0;

    for (message = vlm_json_first(messages);
         message;
         message = vlm_json_next(message))
    {
        if (ngx_http_vlm_ollama_message(ctx, message, n++) != NGX_OK) {
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
    vlm_role_t                  role;
    const char                 *text;
    ngx_http_vlm_ollama_t      *o;
    const vlm_json_t           *field;

    o = ctx->data;

    if (!vlm_json_is_object(message)) {
        return ngx_http_vlm_fail_input(ctx, "messages[%ui] is not an object",
                                       n);
    }

    text = vlm_json_text(vlm_json_get(message, "role"));

    if (ngx_http_vlm_messages_role(text, &role) != NGX_OK) {
        return ngx_http_vlm_fail_input(ctx, "messages[%ui].role is not "
                                       "\"system\", \"user\" or \"assistant\"",
                                       n);
    }

    field = vlm_json_get(message, "content");

    if (!vlm_json_is_null(field)
        && !vlm_json_is_string(field))
    {
        return ngx_http_vlm_fail_input(ctx, "messages[%ui].content is not a "
                                       "string", n);
    }

    if (ngx_http_vlm_messages_begin(o->in.messages, role) != NGX_OK
        || ngx_http_vlm_ollama_images(ctx, vlm_json_get(message,
                                                        "images"))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    text = vlm_json_text(field);

    if (text == NULL) {
        text = "";
    }

    return ngx_http_vlm_messages_text(o->in.messages, text, ngx_strlen(text));
}


static ngx_int_t
ngx_http_vlm_ollama_images(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *images)
{
    const char                 *text;
    ngx_http_vlm_ollama_t      *o;
    const vlm_json_t           *image;

    o = ctx->data;

    if (vlm_json_is_null(images)) {
        return NGX_OK;
    }

    if (!vlm_json_is_array(images)) {
        return ngx_http_vlm_fail_input(ctx, "images is not an array");
    }

    for (image = vlm_json_first(images);
         image;
         image = vlm_json_next(image))
    {
        text = vlm_json_text(image);

        if (text == NULL) {
            return ngx_http_vlm_fail_input(ctx, "an image is not a string of "
                                           "base64");
        }

        if (ngx_http_vlm_messages_picture(o->in.messages, text,
                                          ngx_strlen(text))
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* fields of /api/generate that this model does not support */

static ngx_int_t
ngx_http_vlm_ollama_unsupported(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    ngx_uint_t                  raw;
    const char                 *suffix, *template, *system;
    ngx_http_vlm_ollama_t      *o;
    const vlm_json_t           *context;

    o = ctx->data;

    if (ngx_http_vlm_fields_text(ctx, json, "suffix", &suffix) != NGX_OK
        || ngx_http_vlm_fields_text(ctx, json, "template", &template) != NGX_OK
        || ngx_http_vlm_fields_text(ctx, json, "system", &system) != NGX_OK
        || ngx_http_vlm_fields_flag(ctx, json, "raw", 0, &raw) != NGX_OK)
    {
        return NGX_ERROR;
    }

    context = vlm_json_get(json, "context");

    if (!vlm_json_is_null(context)
        && !vlm_json_is_array(context))
    {
        return ngx_http_vlm_fail_input(ctx, "context is not an array");
    }

    if (suffix[0] != '\0') {
        return ngx_http_vlm_fail_input(ctx, "%s does not support insert",
                                       o->in.model);
    }

    if (raw && (template[0] != '\0' || system[0] != '\0'
                || vlm_json_count(context)))
    {
        return ngx_http_vlm_fail_input(ctx, "raw mode does not support "
                                       "template, system, or context");
    }

    if (template[0] != '\0') {
        return ngx_http_vlm_fail_input(ctx, "%s does not support template, "
                                       "only the checkpoint's own",
                                       o->in.model);
    }

    if (raw) {
        o->raw = 1;
        ctx->out.plain = 1;
        ctx->out.thinks = 0;
    }

    return NGX_OK;
}


/* ---- the prompt ---------------------------------------------------------- */


static void
ngx_http_vlm_ollama_prompt(ngx_http_vlm_ctx_t *ctx)
{
    const char             *tail;
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    if (o->what == NGX_HTTP_VLM_OLLAMA_LOAD) {
        ngx_http_vlm_ollama_prompt_load(ctx);
        return;
    }

    ngx_http_vlm_fields_sampling(&o->in.f, &ctx->sampling);

    if (o->raw) {
        (void) ngx_http_vlm_messages_raw(o->in.messages);
        return;
    }

    tail = NULL;

    if (!ctx->out.plain) {
        tail = ctx->out.thinks ? "<think>" : "<think></think><answer>";
    }

    while (ngx_http_vlm_messages_prompt(o->in.messages, tail) != NGX_OK) {

        if (ngx_http_vlm_ollama_shorten(ctx) != NGX_OK) {
            return;
        }
    }
}


/* a prompt of any one token: it completes once the model is loaded */

static void
ngx_http_vlm_ollama_prompt_load(ngx_http_vlm_ctx_t *ctx)
{
    vlm_part_t  part;

    ngx_memzero(&part, sizeof(vlm_part_t));

    part.text = " ";
    part.bytes = 1;

    ctx->sampling.max_tokens = 1;

    ctx->prompt = vlm_prompt_raw(ctx->engine->life.vlm, &part, 1,
                                 &ctx->error.err);

    if (ctx->prompt == NULL) {
        (void) ngx_http_vlm_fail_engine(ctx, NULL, NULL);
    }
}


/*
 * A history that does not fit loses its oldest eighth, repeatedly, so that the
 * prompts made in vain are no more than eight.
 */

static ngx_int_t
ngx_http_vlm_ollama_shorten(ngx_http_vlm_ctx_t *ctx)
{
    size_t                  n;
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    if (o->whole || ctx->error.code == NULL
        || ngx_strcmp(ctx->error.code, "context_length_exceeded") != 0)
    {
        return NGX_ERROR;
    }

    n = ngx_http_vlm_messages_count(o->in.messages) / 8 + 1;

    if (ngx_http_vlm_messages_drop(o->in.messages) != NGX_OK) {
        return NGX_ERROR;
    }

    while (--n) {
        (void) ngx_http_vlm_messages_drop(o->in.messages);
    }

    return NGX_OK;
}
