
/*
 * RoboBrain's answer from the model's text: splits thinking and answer, and
 * writes them whole or as events of a stream.
 */


#include "../api.h"
#include "chat.h"


#define NGX_HTTP_VLM_JSON  (8 * VLM_STORE_TEXT)   /* bytes */


static void ngx_http_vlm_answer_put(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w);
static void ngx_http_vlm_answer_put_failed(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w);
static void ngx_http_vlm_answer_put_usage(vlm_json_out_t *w,
    vlm_usage_t *usage);
static void ngx_http_vlm_answer_put_task(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w);
static void ngx_http_vlm_answer_new(vlm_json_out_t *w,
    const char *key, ngx_str_t *text, size_t *told);


ngx_int_t
ngx_http_vlm_answer_send(ngx_http_vlm_ctx_t *ctx)
{
    vlm_json_out_t  w;

    vlm_json_init(&w, NGX_HTTP_VLM_JSON);
    ngx_http_vlm_answer_put(ctx, &w);
    (void) vlm_json_done(&w);

    return ngx_http_vlm_send_json(ctx->request, NGX_HTTP_OK, &w);
}


/* keys in the order of the server that this one replaces */

static void
ngx_http_vlm_answer_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    vlm_json_open(w, '{');

    vlm_json_add_text(w, "answer", (char *) ctx->out.answer.data,
                      ctx->out.answer.len);

    vlm_json_add_bool(w, "context_used", ctx->chat.context_used);

    if (ctx->stored.code != VLM_STORE_OK
        && ctx->stored.code != VLM_STORE_GONE)
    {
        vlm_json_add_string(w, "error", "This turn was not stored");
    }

    if (ctx->chat.n_dropped) {
        vlm_json_add_int(w, "history_dropped", ctx->chat.n_dropped);
    }

    ngx_http_vlm_answer_put_resized(ctx, w);

    vlm_json_put_key(w, "output_image");
    ngx_http_vlm_answer_put_result(w, ctx->chat.result);

    ngx_http_vlm_answer_put_task(ctx, w);

    vlm_json_add_text(w, "thinking", (char *) ctx->out.thinking.data,
                      ctx->out.thinking.len);

    ngx_http_vlm_timings_put(ctx, w);

    vlm_json_add_int(w, "turn_number", ctx->chat.turn_number);

    vlm_json_put_key(w, "usage");
    ngx_http_vlm_answer_put_usage(w, &ctx->usage);

    vlm_json_shut(w, '}');
}


void
ngx_http_vlm_answer_put_resized(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w)
{
    if (!ctx->picture.scaled) {
        return;
    }

    vlm_json_add_open(w, "image_resized", '[');
    vlm_json_put_int(w, ctx->picture.resized_width);
    vlm_json_put_int(w, ctx->picture.resized_height);
    vlm_json_shut(w, ']');
}


void
ngx_http_vlm_answer_put_result(vlm_json_out_t *w,
    vlm_store_file_t *result)
{
    u_char  *p, url[sizeof("/result/") + VLM_STORE_NAME];

    if (result == NULL) {
        vlm_json_put_null(w);
        return;
    }

    p = ngx_snprintf(url, sizeof(url), "/result/%s", result->name);

    vlm_json_put_text(w, (char *) url, p - url);
}


static void
ngx_http_vlm_answer_put_usage(vlm_json_out_t *w, vlm_usage_t *usage)
{
    vlm_json_open(w, '{');

    vlm_json_add_int(w, "completion_tokens", usage->completion_tokens);
    vlm_json_add_int(w, "decode_ms", usage->decode_ms);
    vlm_json_add_int(w, "encode_ms", usage->encode_ms);
    vlm_json_add_int(w, "first_ms", usage->first_ms);
    vlm_json_add_int(w, "prefill_ms", usage->prefill_ms);
    vlm_json_add_int(w, "prompt_tokens", usage->prompt_tokens);

    vlm_json_shut(w, '}');
}


/* A refusal of the model's side has status 200 and a form of its own. */

ngx_int_t
ngx_http_vlm_answer_failed(ngx_http_vlm_ctx_t *ctx)
{
    vlm_json_out_t  w;

    if (ctx->error.status == 0) {
        ctx->error.status = NGX_HTTP_OK;
        ctx->chat.inference = 1;
    }

    if (ctx->error.status != NGX_HTTP_OK) {
        return ngx_http_vlm_send_error(ctx->request, ctx->error.status,
                                       ctx->error.err.text);
    }

    vlm_json_init(&w, 64 * 1024);
    ngx_http_vlm_answer_put_failed(ctx, &w);
    (void) vlm_json_done(&w);

    return ngx_http_vlm_send_json(ctx->request, NGX_HTTP_OK, &w);
}


static void
ngx_http_vlm_answer_put_failed(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w)
{
    u_char  *last, text[sizeof("Inference error: ")
                        + sizeof(ctx->error.err.text)];

    last = ngx_sprintf(text, "%s%s",
                       ctx->chat.inference ? "Inference error: " : "",
                       ctx->error.err.text);

    vlm_json_open(w, '{');

    vlm_json_add_text(w, "answer", (char *) text, last - text);

    if (ctx->chat.inference) {
        vlm_json_add_bool(w, "context_used", 0);
    }

    vlm_json_add_text(w, "error", (char *) text, last - text);

    ngx_http_vlm_answer_put_task(ctx, w);

    if (ctx->chat.inference) {
        vlm_json_add_int(w, "turn_number", ctx->chat.n_entries);
    }

    vlm_json_shut(w, '}');
}


static void
ngx_http_vlm_answer_put_task(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w)
{
    vlm_json_add_string(w, "task", ctx->chat.task_name);

    if (ctx->chat.task_auto) {
        vlm_json_add_string(w, "task_source", "auto");
    }
}


void
ngx_http_vlm_answer_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last)
{
    if (ngx_http_vlm_thinking_split(ctx, last) != NGX_OK) {
        w->failed = 1;
        return;
    }

    ngx_http_vlm_answer_new(w, "thinking", &ctx->out.thinking,
                            &ctx->out.sent_thinking);
    ngx_http_vlm_answer_new(w, "text", &ctx->out.answer, &ctx->out.sent);

    if (last) {
        ngx_http_vlm_stream_event(w, "answer");
        ngx_http_vlm_answer_put(ctx, w);
        ngx_http_vlm_stream_end(w);
    }
}


static void
ngx_http_vlm_answer_new(vlm_json_out_t *w, const char *key,
    ngx_str_t *text, size_t *told)
{
    if (text->len <= *told) {
        return;
    }

    ngx_http_vlm_stream_event(w, "token");

    vlm_json_open(w, '{');
    vlm_json_add_text(w, key, (char *) text->data + *told, text->len - *told);
    vlm_json_shut(w, '}');

    ngx_http_vlm_stream_end(w);

    *told = text->len;
}


void
ngx_http_vlm_answer_error(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t status, const char *text)
{
    if (status == NGX_HTTP_OK) {

        /* such a failure is an answer without events, too */

        ngx_http_vlm_stream_event(w, "answer");
        ngx_http_vlm_answer_put_failed(ctx, w);
        ngx_http_vlm_stream_end(w);
        return;
    }

    ngx_http_vlm_stream_event(w, "error");

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "error", text);
    vlm_json_add_int(w, "status", status);
    vlm_json_shut(w, '}');

    ngx_http_vlm_stream_end(w);
}
