
/*
 * Answers in OpenAI's form: whole, or as events, each with the new text.
 */


#include "openai.h"


static void
ngx_http_vlm_openai_head(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    if (ctx->streaming) {
        ngx_http_vlm_stream_event(w, "");
    }

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "id", o->id);
    vlm_json_add_string(w, "object", !o->chat ? "text_completion"
                                     : ctx->streaming ? "chat.completion.chunk"
                                     : "chat.completion");
    vlm_json_add_int(w, "created", ctx->times.wall / 1000000);
    vlm_json_add_string(w, "model", o->in.model);
    vlm_json_add_open(w, "choices", '[');
}


static void
ngx_http_vlm_openai_usage(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    vlm_usage_t  *u;

    u = &ctx->usage;

    vlm_json_add_open(w, "usage", '{');
    vlm_json_add_int(w, "prompt_tokens", u->prompt_tokens);
    vlm_json_add_int(w, "completion_tokens", u->completion_tokens);
    vlm_json_add_int(w, "total_tokens",
                     (int64_t) u->prompt_tokens + u->completion_tokens);

    vlm_json_add_open(w, "prompt_tokens_details", '{');
    vlm_json_add_int(w, "cached_tokens", u->cached_tokens);
    vlm_json_shut(w, '}');

    vlm_json_shut(w, '}');

    ngx_http_vlm_timings_put(ctx, w);
}


static void
ngx_http_vlm_openai_tail(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    vlm_json_add_string(w, "system_fingerprint", o->fingerprint);
    vlm_json_shut(w, '}');

    if (ctx->streaming) {
        ngx_http_vlm_stream_end(w);
    }
}


/* an event of a stream, or a whole answer */

static void
ngx_http_vlm_openai_event(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *role, ngx_str_t *text, size_t n_tokens, const char *finish)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    ngx_http_vlm_openai_head(ctx, w);
    vlm_json_open(w, '{');
    vlm_json_add_int(w, "index", 0);

    if (o->chat) {
        vlm_json_add_open(w, ctx->streaming ? "delta" : "message", '{');

        if (role) {
            vlm_json_add_string(w, "role", role);
        }

        if (text) {
            vlm_json_add_text(w, "content", (char *) text->data, text->len);
        }

        if (!ctx->streaming) {
            vlm_json_add_string(w, "refusal", NULL);
        }

        vlm_json_shut(w, '}');

    } else {
        vlm_json_add_text(w, "text", (char *) text->data, text->len);
    }

    if (!ctx->sampling.logprobs || (ctx->streaming && (role || finish))) {
        vlm_json_add_string(w, "logprobs", NULL);

    } else {
        ngx_http_vlm_openai_logprobs(ctx, w, n_tokens);
    }

    vlm_json_add_string(w, "finish_reason", finish);

    vlm_json_shut(w, '}');
    vlm_json_shut(w, ']');

    if (!ctx->streaming) {
        ngx_http_vlm_openai_usage(ctx, w);

    } else if (o->include_usage) {
        vlm_json_add_string(w, "usage", NULL);
    }

    ngx_http_vlm_openai_tail(ctx, w);
}


void
ngx_http_vlm_openai_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_openai_event(ctx, w, "assistant", &ctx->out.answer,
                              ngx_http_vlm_unsent_tokens(ctx),
                              ngx_http_vlm_finish_reason(ctx));
}


void
ngx_http_vlm_openai_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last)
{
    ngx_http_vlm_openai_t  *o;
    ngx_http_vlm_unsent_t   u;

    static ngx_str_t  none = ngx_string("");

    o = ctx->data;

    ngx_http_vlm_unsent(ctx, w, last, &u);

    if (o->chat && !o->begun) {
        ngx_http_vlm_openai_event(ctx, w, "assistant", &none, 0, NULL);
    }

    o->begun = 1;

    if (u.answer.len || u.n_tokens) {
        ngx_http_vlm_openai_event(ctx, w, NULL, &u.answer, u.n_tokens, NULL);
    }

    if (!last) {
        return;
    }

    ngx_http_vlm_openai_event(ctx, w, NULL, o->chat ? NULL : &none, 0,
                              ngx_http_vlm_finish_reason(ctx));

    if (o->include_usage) {
        ngx_http_vlm_openai_head(ctx, w);
        vlm_json_shut(w, ']');
        ngx_http_vlm_openai_usage(ctx, w);
        ngx_http_vlm_openai_tail(ctx, w);
    }

    vlm_json_put_raw(w, "data: [DONE]\n\n", sizeof("data: [DONE]\n\n") - 1);
}
