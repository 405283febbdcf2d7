
/*
 * OpenAI's dialect: /v1/chat/completions and /v1/completions, as the functions
 * of the dialect's table; the fields and the answers are in the files named by
 * openai.h.
 */


#include "../api.h"
#include "openai.h"


static ngx_int_t ngx_http_vlm_openai_create(ngx_http_vlm_ctx_t *ctx,
    ngx_uint_t chat);
static ngx_int_t ngx_http_vlm_openai_id(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o);
static ngx_int_t ngx_http_vlm_openai_parse(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, ngx_uint_t chat);
static void ngx_http_vlm_openai_parse_chat(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
static void ngx_http_vlm_openai_parse_text(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_model(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const vlm_json_t *json);
static void ngx_http_vlm_openai_prompt(ngx_http_vlm_ctx_t *ctx);
static ngx_int_t ngx_http_vlm_openai_ended(ngx_http_vlm_ctx_t *ctx);
static ngx_int_t ngx_http_vlm_openai_failed(ngx_http_vlm_ctx_t *ctx);
static void ngx_http_vlm_openai_failing(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t status, const char *text);
static void ngx_http_vlm_openai_free(ngx_http_vlm_ctx_t *ctx);


static const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_chat = {
    ngx_http_vlm_openai_parse_chat,
    ngx_http_vlm_openai_prompt,
    NULL,
    ngx_http_vlm_openai_build,
    ngx_http_vlm_openai_answer,
    ngx_http_vlm_openai_failed,
    NULL,
    NULL,
    NULL,
    NULL,
    ngx_http_vlm_openai_free
};


static const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_completion = {
    ngx_http_vlm_openai_parse_text,
    ngx_http_vlm_openai_prompt,
    NULL,
    ngx_http_vlm_openai_build,
    ngx_http_vlm_openai_answer,
    ngx_http_vlm_openai_failed,
    NULL,
    NULL,
    NULL,
    NULL,
    ngx_http_vlm_openai_free
};


/* the table of both for "stream" */

static const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_stream = {
    NULL,
    ngx_http_vlm_openai_prompt,
    ngx_http_vlm_openai_ended,
    NULL,
    NULL,
    ngx_http_vlm_openai_failed,
    "text/event-stream; charset=utf-8",
    ngx_http_vlm_openai_chunk,
    ngx_http_vlm_openai_failing,
    ngx_http_vlm_stream_waits,
    ngx_http_vlm_openai_free
};


/* the table at the end of a stream whose client is far behind */

static const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_rest = {
    NULL,
    NULL,
    NULL,
    ngx_http_vlm_openai_build_rest,
    NULL,
    ngx_http_vlm_openai_failed,
    "text/event-stream; charset=utf-8",
    ngx_http_vlm_openai_chunk_rest,
    ngx_http_vlm_openai_failing,
    NULL,
    ngx_http_vlm_openai_free
};


ngx_int_t
ngx_http_vlm_openai_chat_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_ask(r, eng, &ngx_http_vlm_openai_chat);
}


ngx_int_t
ngx_http_vlm_openai_completion_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_ask(r, eng, &ngx_http_vlm_openai_completion);
}


static void
ngx_http_vlm_openai_parse_chat(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    (void) ngx_http_vlm_openai_parse(ctx, json, 1);
}


static void
ngx_http_vlm_openai_parse_text(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    (void) ngx_http_vlm_openai_parse(ctx, json, 0);
}


static ngx_int_t
ngx_http_vlm_openai_parse(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, ngx_uint_t chat)
{
    ngx_int_t               rc;
    ngx_http_vlm_openai_t  *o;

    if (!vlm_json_is_object(json)) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_BAD_REQUEST, json
                                 ? "The request is not a JSON object"
                                 : "The request has no body");
    }

    if (ngx_http_vlm_openai_create(ctx, chat) != NGX_OK) {
        return NGX_ERROR;
    }

    o = ctx->data;

    if (ngx_http_vlm_openai_model(ctx, o, json) != NGX_OK
        || ngx_http_vlm_openai_fields(ctx, o, json) != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = chat ? ngx_http_vlm_openai_messages(ctx, o->messages, json)
              : ngx_http_vlm_openai_text(ctx, o->messages, json);

    if (rc == NGX_OK) {
        ngx_http_vlm_fail_param(ctx, chat ? "messages" : "prompt");
        rc = ngx_http_vlm_messages_fit(o->messages, 1);
    }

    if (rc == NGX_OK && ctx->streaming) {
        ctx->dialect = &ngx_http_vlm_openai_stream;
    }

    return rc;
}


static ngx_int_t
ngx_http_vlm_openai_create(ngx_http_vlm_ctx_t *ctx, ngx_uint_t chat)
{
    ngx_http_vlm_openai_t  *o;

    o = calloc(1, sizeof(ngx_http_vlm_openai_t));

    if (o == NULL) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 "No memory for the request");
    }

    ctx->data = o;

    ngx_http_vlm_fields_init(&o->f);

    o->chat = chat;
    o->messages = ngx_http_vlm_messages_create(ctx);

    return o->messages ? ngx_http_vlm_openai_id(ctx, o) : NGX_ERROR;
}


static ngx_int_t
ngx_http_vlm_openai_id(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o)
{
    size_t   i;
    u_char  *p, bytes[24];

    static const char  digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    if (getentropy(bytes, sizeof(bytes)) != 0) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 "The system has no random numbers");
    }

    p = ngx_sprintf((u_char *) o->id, o->chat ? "chatcmpl-" : "cmpl-");

    for (i = 0; i < sizeof(bytes); i++) {
        *p++ = digits[bytes[i] % (sizeof(digits) - 1)];
    }

    *p = '\0';

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_openai_model(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const vlm_json_t *json)
{
    const char                 *text;
    const vlm_json_t           *field;

    field = vlm_json_get(json, "model");

    ngx_http_vlm_fail_param(ctx, "model");

    if (ngx_http_vlm_model_check(ctx, field) != NGX_OK) {
        return NGX_ERROR;
    }

    text = vlm_json_text(field);

    if (text == NULL || text[0] == '\0') {
        return NGX_OK;
    }

    if (ngx_strlen(text) > NGX_HTTP_VLM_OPENAI_NAME) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                 "model has %uz bytes, it may have %d",
                                 ngx_strlen(text),
                                 NGX_HTTP_VLM_OPENAI_NAME);
    }

    o->model = strdup(text);

    if (o->model == NULL) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 "No memory for the model's name");
    }

    return NGX_OK;
}


static void
ngx_http_vlm_openai_prompt(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_openai_t  *o;

    o = ctx->data;

    ngx_http_vlm_fields_sampling(&o->f, &ctx->sampling);

    ngx_http_vlm_fail_param(ctx, o->chat ? "messages" : "prompt");

    if (o->chat) {
        (void) ngx_http_vlm_messages_prompt(o->messages, NULL);

    } else {
        (void) ngx_http_vlm_messages_raw(o->messages);
    }
}


static ngx_int_t
ngx_http_vlm_openai_ended(ngx_http_vlm_ctx_t *ctx)
{
    if (ngx_http_vlm_openai_untold(ctx) > VLM_JSON_TOKENS) {
        ctx->dialect = &ngx_http_vlm_openai_rest;
    }

    return NGX_OK;
}


/* without a status the engine has refused a job, or failed in it */

static ngx_int_t
ngx_http_vlm_openai_failed(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->error.status == 0) {
        ctx->error.param[0] = '\0';
        ctx->error.status = ctx->error.err.code == VLM_EINPUT
                      || ctx->error.err.code == VLM_ELIMIT
                      ? NGX_HTTP_BAD_REQUEST : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_vlm_send_error(ctx->request, ctx->error.status,
                                   ctx->error.err.text);
}


/* [DONE] does not follow, so a client that expects it knows that the answer is
   incomplete */

static void
ngx_http_vlm_openai_failing(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t status, const char *text)
{
    ngx_http_vlm_stream_event(w, NULL);
    ngx_http_vlm_openai_put_error(w, ctx, status, text);
    ngx_http_vlm_stream_end(w);
}


static void
ngx_http_vlm_openai_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_openai_t  *o;

    o = ctx->data;
    ctx->data = NULL;

    if (o == NULL) {
        return;
    }

    ngx_http_vlm_fields_free(&o->f);
    ngx_http_vlm_messages_free(o->messages);
    vlm_json_release(&o->body);
    free(o->model);
    free(o);
}
