
/*
 * RoboBrain's answer from the model's text: splits thinking and answer, and
 * writes them whole or as events of a stream.
 */


#include "chat.h"
#include "robobrain/steps.h"


void
ngx_http_vlm_answer_put_usage(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t cached)
{
    vlm_usage_t  *u;

    u = &ctx->usage;

    vlm_json_add_open(w, "usage", '{');

    if (cached) {
        vlm_json_add_int(w, "cached_tokens", u->cached_tokens);
    }

    vlm_json_add_int(w, "completion_tokens", u->completion_tokens);
    vlm_json_add_int(w, "prompt_tokens", u->prompt_tokens);
    vlm_json_add_int(w, "total_tokens",
                     (int64_t) u->prompt_tokens + u->completion_tokens);
    vlm_json_shut(w, '}');
}


static void
ngx_http_vlm_answer_put_task(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    vlm_json_add_string(w, "task", chat->task_name);

    if (chat->task_auto) {
        vlm_json_add_string(w, "task_source", "auto");
    }
}


static void
ngx_http_vlm_answer_put_failed(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    const char  *kind, *text;

    kind = chat->inference ? "Inference error: " : "";
    text = ctx->error.err.text;

    vlm_json_open(w, '{');

    vlm_json_add_format(w, "answer", "%s%s", kind, text);

    if (chat->inference) {
        vlm_json_add_bool(w, "context_used", 0);
    }

    vlm_json_add_format(w, "error", "%s%s", kind, text);

    ngx_http_vlm_answer_put_task(ctx, w);

    if (chat->inference) {
        vlm_json_add_int(w, "turn_number", chat->n_entries);
    }

    vlm_json_shut(w, '}');
}


/* keys in the order of the server that this one replaces */

void
ngx_http_vlm_answer_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    if (ctx->error.status == NGX_HTTP_OK) {
        ngx_http_vlm_answer_put_failed(ctx, w);
        return;
    }

    vlm_json_open(w, '{');

    vlm_json_add_text(w, "answer", (char *) ctx->out.answer.data,
                      ctx->out.answer.len);

    vlm_json_add_bool(w, "context_used", chat->context_used);

    if (ctx->stored.code != VLM_STORE_OK
        && ctx->stored.code != VLM_STORE_GONE)
    {
        vlm_json_add_string(w, "error", "This turn was not stored");
    }

    if (chat->n_dropped) {
        vlm_json_add_int(w, "history_dropped", chat->n_dropped);
    }

    ngx_http_vlm_answer_put_resized(ctx, w);

    ngx_http_vlm_fields_marks(ctx, w, vlm_task_find(chat->task_name,
                                             ngx_strlen(chat->task_name)));

    vlm_steps_put_result(w, "output_image", chat->result);

    ngx_http_vlm_answer_put_task(ctx, w);

    vlm_json_add_text(w, "thinking", (char *) ctx->out.thinking.data,
                      ctx->out.thinking.len);

    ngx_http_vlm_fields_put_timings(ctx, w);

    vlm_json_add_int(w, "turn_number", chat->turn_number);

    /* the server that this one replaces has neither counts nor times: they are
       sent to clients that ask for times */

    if (ngx_http_vlm_fields(ctx)->number[VLM_FIELD_TIMINGS] == 1) {
        ngx_http_vlm_answer_put_usage(ctx, w, 0);
    }

    vlm_json_shut(w, '}');
}


void
ngx_http_vlm_answer_put_resized(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    if (!ctx->out.seen.scaled || ctx->engine->conf.facts.coordinates) {
        return;
    }

    vlm_json_add_open(w, "image_resized", '[');
    vlm_json_put_int(w, ctx->out.seen.resized_width);
    vlm_json_put_int(w, ctx->out.seen.resized_height);
    vlm_json_shut(w, ']');
}


/* an error of the engine has status 200 here, and the form of an answer */

ngx_int_t
ngx_http_vlm_answer_failed(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t  *chat;

    if (ctx->error.status == 0) {
        ctx->error.status = NGX_HTTP_OK;
        chat = ctx->data;
        chat->inference = 1;
    }

    return NGX_DECLINED;
}


static void
ngx_http_vlm_answer_put_token(vlm_json_out_t *w, const char *key,
    ngx_str_t *text)
{
    if (text->len == 0) {
        return;
    }

    ngx_http_vlm_stream_event(w, "event: token\n");
    vlm_json_open(w, '{');
    vlm_json_add_text(w, key, (char *) text->data, text->len);
    vlm_json_shut(w, '}');
    ngx_http_vlm_stream_end(w);
}


void
ngx_http_vlm_answer_put_unsent(vlm_json_out_t *w, ngx_http_vlm_unsent_t *u)
{
    ngx_http_vlm_answer_put_token(w, "thinking", &u->thinking);
    ngx_http_vlm_answer_put_token(w, "text", &u->answer);
}


void
ngx_http_vlm_answer_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last)
{
    ngx_http_vlm_unsent_t  u;

    ngx_http_vlm_unsent(ctx, w, last, &u);

    ngx_http_vlm_answer_put_unsent(w, &u);

    if (last) {
        ngx_http_vlm_stream_event(w, "event: answer\n");
        ngx_http_vlm_answer_put(ctx, w);
        ngx_http_vlm_stream_end(w);
    }
}


void
ngx_http_vlm_answer_put_error(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t status, const char *text)
{
    ngx_http_vlm_stream_event(w, "event: error\n");
    vlm_json_open(w, '{');
    vlm_json_add_string(w, "error", text);
    vlm_json_add_int(w, "status", status);
    vlm_json_shut(w, '}');
    ngx_http_vlm_stream_end(w);
}


/* a failure with the status 200 is an answer without events, too */

void
ngx_http_vlm_answer_error(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t status, const char *text)
{
    if (status == NGX_HTTP_OK) {
        ngx_http_vlm_stream_event(w, "event: answer\n");
        ngx_http_vlm_answer_put_failed(ctx, w);
        ngx_http_vlm_stream_end(w);

    } else {
        ngx_http_vlm_answer_put_error(ctx, w, status, text);
    }
}
