
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

    ngx_http_vlm_fields_put_timings(ctx, w);
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


static void
ngx_http_vlm_openai_call(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const vlm_calls_piece_t *piece, ngx_uint_t i)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    vlm_json_open(w, '{');

    if (ctx->streaming) {
        vlm_json_add_int(w, "index", i);
    }

    /* the id of the answer, without its kind, and the number of the call */

    vlm_json_add_format(w, "id", "call_%.22s%02u", o->core, (unsigned) i);
    vlm_json_add_string(w, "type", "function");
    vlm_json_add_open(w, "function", '{');
    vlm_json_add_string(w, "name", piece->name);
    vlm_calls_add_arguments(w, piece, 1);
    vlm_json_shut(w, '}');
    vlm_json_shut(w, '}');
}


/* of a whole answer, in which tools may be called */

static void
ngx_http_vlm_openai_called(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    vlm_json_out_t          text;
    ngx_http_vlm_openai_t  *o;

    o = ctx->data;

    vlm_json_init(&text, VLM_STORE_TEXT);
    ngx_http_vlm_tools_content(ctx, &text);

    if (text.failed) {
        w->failed = 1;
    }

    vlm_json_add_text(w, "content", text.len ? text.data : NULL, text.len);
    vlm_json_release(&text);

    o->n_calls = ngx_http_vlm_tools_whole(ctx, w, ngx_http_vlm_openai_call);
}


/* of the next n tokens: null in an event that has no text */

static void
ngx_http_vlm_openai_logprobs(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    size_t n, ngx_uint_t none)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    if (!ctx->sampling.logprobs || none) {
        vlm_json_add_string(w, "logprobs", NULL);
        return;
    }

    vlm_json_add_open(w, "logprobs", '{');

    if (o->chat) {
        ngx_http_vlm_tokens_objects(ctx, w, "content", n, 1);
        vlm_json_add_string(w, "refusal", NULL);

    } else {
        ngx_http_vlm_tokens_arrays(ctx, w, n, &o->offset);
    }

    vlm_json_shut(w, '}');
}


/* an event of a stream, or a whole answer */

static void
ngx_http_vlm_openai_event(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *role, ngx_str_t *text, size_t n_tokens,
    const vlm_calls_piece_t *call, ngx_uint_t finish)
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

        if (!ctx->streaming && ngx_http_vlm_tools_active(ctx)) {
            ngx_http_vlm_openai_called(ctx, w);

        } else if (text) {
            vlm_json_add_text(w, "content", (char *) text->data, text->len);
        }

        if (call) {
            vlm_json_add_open(w, "tool_calls", '[');
            ngx_http_vlm_openai_call(ctx, w, call, o->n_calls++);
            vlm_json_shut(w, ']');
        }

        if (!ctx->streaming) {
            vlm_json_add_string(w, "refusal", NULL);
        }

        if (finish) {
            ngx_http_vlm_fields_marks(ctx, w, o->in.f.task);
        }

        vlm_json_shut(w, '}');

    } else {
        vlm_json_add_text(w, "text", (char *) text->data, text->len);
    }

    ngx_http_vlm_openai_logprobs(ctx, w, n_tokens,
                                 ctx->streaming && (role || finish));

    vlm_json_add_string(w, "finish_reason", !finish ? NULL
                           : o->n_calls && ctx->finish != VLM_FINISH_LENGTH
                             ? "tool_calls" : ngx_http_vlm_finish_reason(ctx));

    vlm_json_shut(w, '}');
    vlm_json_shut(w, ']');

    if (!ctx->streaming) {
        ngx_http_vlm_openai_usage(ctx, w);

    } else if (o->include_usage) {
        vlm_json_add_string(w, "usage", NULL);

    } else if (finish) {
        ngx_http_vlm_fields_put_timings(ctx, w);
    }

    ngx_http_vlm_openai_tail(ctx, w);
}


void
ngx_http_vlm_openai_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_openai_event(ctx, w, "assistant", &ctx->out.answer,
                              ngx_http_vlm_unsent_tokens(ctx), NULL, 1);
}


/* the pieces of an answer in which tools may be called */

static void
ngx_http_vlm_openai_pieces(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last, size_t n_tokens)
{
    ngx_str_t           text;
    vlm_calls_e         kind;
    vlm_calls_piece_t   piece;

    while ((kind = ngx_http_vlm_tools_next(ctx, last, &piece))
           != VLM_CALLS_NONE)
    {
        text.data = (u_char *) piece.text;
        text.len = piece.bytes;

        ngx_http_vlm_openai_event(ctx, w, NULL,
                                  kind == VLM_CALLS_TEXT ? &text : NULL,
                                  n_tokens,
                                  kind == VLM_CALLS_CALL ? &piece : NULL, 0);
        n_tokens = 0;

        vlm_json_free(piece.call);
    }

    if (n_tokens) {
        ngx_str_set(&text, "");
        ngx_http_vlm_openai_event(ctx, w, NULL, &text, n_tokens, NULL, 0);
    }
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
        ngx_http_vlm_openai_event(ctx, w, "assistant", &none, 0, NULL, 0);
    }

    o->begun = 1;

    if (ngx_http_vlm_tools_active(ctx)) {
        ngx_http_vlm_openai_pieces(ctx, w, last, u.n_tokens);

    } else if (u.answer.len || u.n_tokens) {
        ngx_http_vlm_openai_event(ctx, w, NULL, &u.answer, u.n_tokens, NULL, 0);
    }

    if (!last) {
        return;
    }

    ngx_http_vlm_openai_event(ctx, w, NULL, o->chat ? NULL : &none, 0, NULL, 1);

    if (o->include_usage) {
        ngx_http_vlm_openai_head(ctx, w);
        vlm_json_shut(w, ']');
        ngx_http_vlm_openai_usage(ctx, w);
        ngx_http_vlm_openai_tail(ctx, w);
    }

    vlm_json_put_raw(w, "data: [DONE]\n\n", sizeof("data: [DONE]\n\n") - 1);
}
