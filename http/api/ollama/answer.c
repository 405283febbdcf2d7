
/*
 * The answer in Ollama's form: one object, or a line of NDJSON for each piece
 * of the text; the last has the reason of the end and the durations.
 *
 * Durations are nanoseconds measured in milliseconds: less than one
 * millisecond counts as one, because clients divide by them.
 */


#include "ollama.h"


void
ngx_http_vlm_ollama_put_ms(vlm_json_out_t *w, const char *key, uint64_t ms)
{
    vlm_json_add_int(w, key, (int64_t) ngx_max(ms, 1) * 1000000);
}


/* a load without a prompt has no durations */

static void
ngx_http_vlm_ollama_put_end(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, const char *reason)
{
    ngx_http_vlm_ollama_t *o = ctx->data;

    vlm_usage_t  *u;

    u = &ctx->usage;

    vlm_json_add_string(w, "done_reason", reason);

    if (o->empty) {
        return;
    }

    ngx_http_vlm_ollama_put_ms(w, "total_duration",
                               ctx->times.ended - ctx->times.arrived);
    ngx_http_vlm_ollama_put_ms(w, "load_duration",
                               ctx->times.started - ctx->times.arrived);

    vlm_json_add_int(w, "prompt_eval_count", u->prompt_tokens);

    ngx_http_vlm_ollama_put_ms(w, "prompt_eval_duration",
                               (uint64_t) u->encode_ms + u->prefill_ms);

    vlm_json_add_int(w, "eval_count", u->completion_tokens);

    ngx_http_vlm_ollama_put_ms(w, "eval_duration", u->decode_ms);

    ngx_http_vlm_fields_put_timings(ctx, w);
}


static void
ngx_http_vlm_ollama_call(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const vlm_calls_piece_t *piece, ngx_uint_t i)
{
    vlm_json_open(w, '{');
    vlm_json_add_open(w, "function", '{');
    vlm_json_add_string(w, "name", piece->name);
    vlm_calls_add_arguments(w, piece, 0);
    vlm_json_shut(w, '}');
    vlm_json_shut(w, '}');
}


/* the calls of a whole answer, or that of a piece */

static void
ngx_http_vlm_ollama_calls(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const vlm_calls_piece_t *call)
{
    if (!ctx->streaming && ngx_http_vlm_tools_active(ctx)) {
        (void) ngx_http_vlm_tools_whole(ctx, w, ngx_http_vlm_ollama_call);

    } else if (call) {
        vlm_json_add_open(w, "tool_calls", '[');
        ngx_http_vlm_ollama_call(ctx, w, call, 0);
        vlm_json_shut(w, ']');
    }
}


/* without a reason it is not the last object */

static void
ngx_http_vlm_ollama_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_str_t *thinking, ngx_str_t *text, size_t n_tokens,
    const vlm_calls_piece_t *call, const char *reason)
{
    ngx_http_vlm_ollama_t *o = ctx->data;

    ngx_time_t  *tp;

    tp = ngx_timeofday();

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "model", o->in.model);
    vlm_ollama_add_time(w, "created_at", tp->sec, (unsigned) tp->msec);

    if (!o->generate) {
        vlm_json_add_open(w, "message", '{');
        vlm_json_add_string(w, "role", "assistant");
    }

    vlm_json_add_text(w, o->generate ? "response" : "content",
                      text->len ? (char *) text->data : "", text->len);

    if (thinking->len) {
        vlm_json_add_text(w, "thinking", (char *) thinking->data,
                          thinking->len);
    }

    if (!o->generate) {
        ngx_http_vlm_ollama_calls(ctx, w, call);

        if (reason) {
            ngx_http_vlm_fields_marks(ctx, w, o->in.f.task);
        }

        vlm_json_shut(w, '}');

    } else if (reason) {
        ngx_http_vlm_fields_marks(ctx, w, o->in.f.task);
    }

    if (n_tokens) {
        ngx_http_vlm_tokens_objects(ctx, w, "logprobs", n_tokens, 0);
    }

    vlm_json_add_bool(w, "done", reason != NULL);

    if (reason) {
        ngx_http_vlm_ollama_put_end(ctx, w, reason);
    }

    vlm_json_shut(w, '}');

    if (ctx->streaming) {
        vlm_json_put_raw(w, "\n", 1);
    }
}


/* writes the last object, also of a load or an unload, which has no text */

void
ngx_http_vlm_ollama_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_ollama_t *o = ctx->data;

    ngx_str_t        answer;
    const char      *reason;
    vlm_json_out_t   text;

    reason = ngx_http_vlm_finish_reason(ctx);

    if (o->empty) {
        reason = o->empty;
        ngx_str_null(&ctx->out.answer);
    }

    answer = ctx->out.answer;

    vlm_json_init(&text, VLM_STORE_TEXT);

    if (ngx_http_vlm_tools_active(ctx)) {
        ngx_http_vlm_tools_content(ctx, &text);

        answer.data = (u_char *) text.data;
        answer.len = text.len;
        w->failed |= text.failed;
    }

    ngx_http_vlm_ollama_put(ctx, w, &ctx->out.thinking, &answer,
                            ngx_http_vlm_unsent_tokens(ctx), NULL, reason);

    vlm_json_release(&text);
}


/* the pieces of an answer in which tools may be called */

static void
ngx_http_vlm_ollama_pieces(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last, ngx_http_vlm_unsent_t *u)
{
    ngx_str_t           text;
    vlm_calls_e         kind;
    vlm_calls_piece_t   piece;

    do {
        kind = ngx_http_vlm_tools_next(ctx, last, &piece);

        text.data = (u_char *) piece.text;
        text.len = piece.bytes;

        if (kind != VLM_CALLS_NONE || u->thinking.len || u->n_tokens) {
            ngx_http_vlm_ollama_put(ctx, w, &u->thinking, &text, u->n_tokens,
                                    kind == VLM_CALLS_CALL ? &piece : NULL,
                                    NULL);
        }

        u->thinking.len = 0;
        u->n_tokens = 0;

        vlm_json_free(piece.call);

    } while (kind != VLM_CALLS_NONE);
}


void
ngx_http_vlm_ollama_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last)
{
    ngx_str_t               none;
    ngx_http_vlm_unsent_t   u;

    ngx_http_vlm_unsent(ctx, w, last, &u);

    if (ngx_http_vlm_tools_active(ctx)) {
        ngx_http_vlm_ollama_pieces(ctx, w, last, &u);

    } else if (u.thinking.len || u.answer.len || u.n_tokens) {
        ngx_http_vlm_ollama_put(ctx, w, &u.thinking, &u.answer, u.n_tokens,
                                NULL, NULL);
    }

    if (last) {
        ngx_str_null(&none);
        ngx_http_vlm_ollama_put(ctx, w, &none, &none, 0, NULL,
                                ngx_http_vlm_finish_reason(ctx));
    }
}


void
ngx_http_vlm_ollama_error(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t status, const char *text)
{
    vlm_json_open(w, '{');
    vlm_json_add_string(w, "error", text);
    vlm_json_shut(w, '}');

    vlm_json_put_raw(w, "\n", 1);
}
