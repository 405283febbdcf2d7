
/*
 * OpenAI's dialect: /v1/chat/completions and /v1/completions, as the functions
 * of the dialect's table; the fields and the answers are in the files named by
 * openai.h.
 */


#include "openai.h"
#include <math.h>


#define NGX_HTTP_VLM_LEGACY  16                /* /v1/completions: max_tokens */


/* equal seeds give equal answers while the fingerprint is equal */

static ngx_int_t
ngx_http_vlm_openai_id(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const char *kind)
{
    size_t                  i;
    u_char                 *p, bytes[24];
    uint32_t                crc;
    ngx_http_vlm_engine_t  *eng;

    static const char  digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    if (getentropy(bytes, sizeof(bytes)) != 0) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 "The system has no random numbers");
    }

    p = ngx_sprintf((u_char *) o->id, "%s", kind);
    o->core = (char *) p;

    for (i = 0; i < sizeof(bytes); i++) {
        *p++ = digits[bytes[i] % (sizeof(digits) - 1)];
    }

    *p = '\0';

    eng = ctx->engine;

    ngx_crc32_init(crc);
    ngx_crc32_update(&crc, eng->conf.directory.data, eng->conf.directory.len);
    ngx_crc32_update(&crc, (u_char *) &eng->conf.created, sizeof(time_t));
    ngx_crc32_update(&crc, (u_char *) &eng->conf.vlm.weights,
                     sizeof(vlm_type_t));
    ngx_crc32_final(crc);

    (void) snprintf(o->fingerprint, sizeof(o->fingerprint), "vlm-%08x", crc);

    return NGX_OK;
}


/* the fields that control the answer */

static ngx_int_t
ngx_http_vlm_openai_fields(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const vlm_json_t *json)
{
    double  *n;

    n = o->in.f.number;

    if (ngx_http_vlm_fields_read(ctx, json, o->chat ? VLM_OF_CHAT
                                                    : VLM_OF_TEXT)
        != NGX_OK
        || ngx_http_vlm_fields_check(ctx,
               vlm_constraint_read(&o->in.f.constraint, json, o->chat,
                                   &ctx->error.err))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->streaming = n[VLM_FIELD_STREAM] == 1;
    o->include_usage = n[VLM_FIELD_INCLUDE] == 1;

    if (!o->chat) {
        n[VLM_FIELD_LOGPROBS] = !isnan(n[VLM_FIELD_TOP_LOGPROBS]);

        if (isnan(n[VLM_FIELD_MAX_TOKENS])) {
            n[VLM_FIELD_MAX_TOKENS] = NGX_HTTP_VLM_LEGACY;
        }

        return NGX_OK;
    }

    if (n[VLM_FIELD_LOGPROBS] != 1 && n[VLM_FIELD_TOP_LOGPROBS] > 0) {
        ngx_http_vlm_fail_param(ctx, "top_logprobs");

        return ngx_http_vlm_fail_input(ctx, "top_logprobs is for requests with "
                                       "\"logprobs\": true");
    }

    if (ngx_http_vlm_tools_read(ctx, json, "tools", "tool_choice")
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_vlm_tools_read(ctx, json, "functions", "function_call");
}


ngx_int_t
ngx_http_vlm_openai_take(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const vlm_json_t *json, const char *kind)
{
    ngx_int_t  rc;

    if (ngx_http_vlm_openai_id(ctx, o, kind) != NGX_OK
        || ngx_http_vlm_openai_fields(ctx, o, json) != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = o->chat ? ngx_http_vlm_openai_messages(ctx, json)
                 : ngx_http_vlm_openai_text(ctx, json);

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_vlm_fail_param(ctx, o->chat ? "messages" : "prompt");

    return ngx_http_vlm_messages_fit(o->in.messages, 1);
}


static void
ngx_http_vlm_openai_parse(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_uint_t              chat;
    ngx_http_vlm_openai_t  *o;

    chat = ctx->dialect == &ngx_http_vlm_openai_chat;

    ctx->dialect = &ngx_http_vlm_openai_chat;
    ctx->out.plain = 1;

    o = ngx_http_vlm_asked_create(ctx, json, sizeof(ngx_http_vlm_openai_t),
                                  "The request has no body");

    if (o == NULL) {
        return;
    }

    o->chat = chat;

    (void) ngx_http_vlm_openai_take(ctx, o, json, chat ? "chatcmpl-" : "cmpl-");
}


void
ngx_http_vlm_openai_prompt(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    if (ngx_http_vlm_fields_sampling(ctx) != NGX_OK) {
        return;
    }

    ngx_http_vlm_fail_param(ctx, o->chat ? "messages" : "prompt");

    (void) ngx_http_vlm_messages_prompt(&o->in.messages, !o->chat,
                                        o->in.tools.demanded
                                        ? o->in.tools.tail : NULL);
}


/* [DONE] does not follow, so a client that expects it knows that the answer is
   incomplete */

void
ngx_http_vlm_openai_error(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t status, const char *text)
{
    ngx_http_vlm_stream_event(w, "");
    ngx_http_vlm_openai_put_error(w, ctx, status, text,
                                  ctx->dialect->chunk
                                  == ngx_http_vlm_openai_chunk);
    ngx_http_vlm_stream_end(w);
}


const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_chat = {
    .fields = ngx_http_vlm_openai_parse,
    .prompt = ngx_http_vlm_openai_prompt,
    .ended = ngx_http_vlm_thinking_ended,
    .answer = ngx_http_vlm_openai_answer,
    .stream_type = "text/event-stream; charset=utf-8",
    .chunk = ngx_http_vlm_openai_chunk,
    .error = ngx_http_vlm_openai_error,
    .waits = ngx_http_vlm_stream_waits,
    .free = ngx_http_vlm_asked_free
};


/* becomes the other one when its fields are read */

const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_completion = {
    .fields = ngx_http_vlm_openai_parse
};
