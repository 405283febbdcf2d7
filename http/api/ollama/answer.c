
/*
 * The answer in Ollama's form: one object, or a line of NDJSON for each piece
 * of the text; the last has the reason of the end and the durations.
 *
 * Durations are nanoseconds measured in milliseconds: less than one
 * millisecond counts as one, because clients divide by them.
 */


#include "../api.h"
#include "ollama.h"
#include "../robobrain/chat.h"


/* the 20 likeliest of each of 8192 tokens take 12 MB */

#define NGX_HTTP_VLM_OLLAMA_JSON  (32u << 20)      /* bytes */


static ngx_int_t ngx_http_vlm_ollama_split(ngx_http_vlm_ctx_t *ctx,
    ngx_uint_t last);
static void ngx_http_vlm_ollama_send(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t last);
static void ngx_http_vlm_ollama_put(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_str_t *thinking, ngx_str_t *text,
    size_t n_tokens, const char *reason);
static size_t ngx_http_vlm_ollama_unsent(ngx_http_vlm_ctx_t *ctx);
static void ngx_http_vlm_ollama_put_words(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_str_t *thinking, ngx_str_t *text);
static void ngx_http_vlm_ollama_put_text(vlm_json_out_t *w,
    const char *key, ngx_str_t *text);
static void ngx_http_vlm_ollama_put_tokens(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, size_t n);
static void ngx_http_vlm_ollama_put_token(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, vlm_logprob_t *token);
static void ngx_http_vlm_ollama_put_end(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, const char *reason);
static void ngx_http_vlm_ollama_put_ms(vlm_json_out_t *w,
    const char *key, uint64_t ms);
static const char *ngx_http_vlm_ollama_reason(ngx_http_vlm_ctx_t *ctx);


ngx_int_t
ngx_http_vlm_ollama_ended(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->out.tokens && !ctx->streaming) {
        ctx->dialect = &ngx_http_vlm_ollama_long;

    } else if (ngx_http_vlm_ollama_unsent(ctx) > VLM_JSON_TOKENS) {
        ctx->dialect = &ngx_http_vlm_ollama_rest;
    }

    return ngx_http_vlm_ollama_split(ctx, 1);
}


/* a thinking model's text is split, unless it must be JSON or is raw */

static ngx_int_t
ngx_http_vlm_ollama_split(ngx_http_vlm_ctx_t *ctx, ngx_uint_t last)
{
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    if (!o->plain) {
        return ngx_http_vlm_thinking_split(ctx, last);
    }

    ngx_str_null(&ctx->out.thinking);
    ngx_str_null(&ctx->out.answer);

    if (ctx->out.text && o->what == NGX_HTTP_VLM_OLLAMA_ASK) {
        ctx->out.answer.data = ctx->out.text->pos;
        ctx->out.answer.len = ctx->out.text->last - ctx->out.text->pos;
    }

    return NGX_OK;
}


/* thread: an answer with log-probabilities, whose JSON takes time */

void
ngx_http_vlm_ollama_store(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    vlm_json_init(&o->json, NGX_HTTP_VLM_OLLAMA_JSON);
    ngx_http_vlm_ollama_put(ctx, &o->json, &ctx->out.thinking, &ctx->out.answer,
                            ngx_http_vlm_ollama_unsent(ctx),
                            ngx_http_vlm_ollama_reason(ctx));
}


/* thread: the rest of an ended stream whose client is behind */

void
ngx_http_vlm_ollama_store_rest(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    vlm_json_init(&o->json, NGX_HTTP_VLM_OLLAMA_JSON);
    ngx_http_vlm_ollama_send(ctx, &o->json, 1);
}


ngx_int_t
ngx_http_vlm_ollama_answer(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_ollama_t    *o;
    vlm_json_out_t            w;

    o = ctx->data;

    if (ctx->dialect->store == NULL) {
        ngx_http_vlm_ollama_store(ctx);
    }

    /* the request's pool now owns the memory */

    w = o->json;
    ngx_memzero(&o->json, sizeof(vlm_json_out_t));

    return ngx_http_vlm_send_json(ctx->request, NGX_HTTP_OK, &w);
}


/* also an answer without a prompt: a load, an unload */

ngx_int_t
ngx_http_vlm_ollama_failed(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->error.status == NGX_HTTP_OK) {
        return ngx_http_vlm_ollama_answer(ctx);
    }

    if (ctx->error.status == 0) {
        ctx->error.status = ctx->error.err.code == VLM_EINPUT
                      || ctx->error.err.code == VLM_ELIMIT
                      ? NGX_HTTP_BAD_REQUEST
                      : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_vlm_send_error(ctx->request, ctx->error.status,
                                   ctx->error.err.text);
}


void
ngx_http_vlm_ollama_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last)
{
    if (ngx_http_vlm_ollama_split(ctx, last) != NGX_OK) {
        w->failed = 1;
        return;
    }

    ngx_http_vlm_ollama_send(ctx, w, last);
}


/* the last line, which a thread has written */

void
ngx_http_vlm_ollama_chunk_rest(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t last)
{
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    vlm_json_release(w);

    *w = o->json;
    ngx_memzero(&o->json, sizeof(vlm_json_out_t));
}


static void
ngx_http_vlm_ollama_send(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last)
{
    size_t     n_tokens;
    ngx_str_t  text, thinking;

    thinking = ctx->out.thinking;
    thinking.len -= ngx_min(thinking.len, ctx->out.sent_thinking);
    thinking.data += ctx->out.thinking.len - thinking.len;

    text = ctx->out.answer;
    text.len -= ngx_min(text.len, ctx->out.sent);
    text.data += ctx->out.answer.len - text.len;

    n_tokens = ngx_http_vlm_ollama_unsent(ctx);

    if (!last) {
        n_tokens = ngx_min(n_tokens, VLM_JSON_TOKENS);
    }

    if (thinking.len || text.len || n_tokens) {
        ngx_http_vlm_ollama_put(ctx, w, &thinking, &text, n_tokens, NULL);

        ctx->out.sent_thinking += thinking.len;
        ctx->out.sent += text.len;
    }

    if (last) {
        ngx_str_null(&text);
        ngx_http_vlm_ollama_put(ctx, w, &text, &text, 0,
                                ngx_http_vlm_ollama_reason(ctx));
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


/* an object and its line feed; without a reason it is not the last one */

static void
ngx_http_vlm_ollama_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_str_t *thinking, ngx_str_t *text, size_t n_tokens, const char *reason)
{
    ngx_time_t             *tp;
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;
    tp = ngx_timeofday();

    vlm_json_open(w, '{');

    vlm_json_add_string(w, "model", o->model);

    vlm_json_put_key(w, "created_at");
    ngx_http_vlm_ollama_put_time(w, tp->sec, tp->msec);

    ngx_http_vlm_ollama_put_words(ctx, w, thinking, text);

    if (n_tokens) {
        ngx_http_vlm_ollama_put_tokens(ctx, w, n_tokens);
    }

    vlm_json_add_bool(w, "done", reason != NULL);

    if (reason) {
        ngx_http_vlm_ollama_put_end(ctx, w, reason);
    }

    vlm_json_shut(w, '}');
    vlm_json_put_raw(w, "\n", 1);
}


static void
ngx_http_vlm_ollama_put_words(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_str_t *thinking, ngx_str_t *text)
{
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    if (!o->generate) {
        vlm_json_add_open(w, "message", '{');

        vlm_json_add_string(w, "role", "assistant");
    }

    ngx_http_vlm_ollama_put_text(w, o->generate ? "response" : "content",
                                 text);

    if (thinking->len) {
        ngx_http_vlm_ollama_put_text(w, "thinking", thinking);
    }

    if (!o->generate) {
        vlm_json_shut(w, '}');
    }
}


static void
ngx_http_vlm_ollama_put_text(vlm_json_out_t *w, const char *key,
    ngx_str_t *text)
{
    vlm_json_add_text(w, key, text->len ? (char *) text->data : "", text->len);
}


/* tokens with log-probabilities that have not been sent */

static size_t
ngx_http_vlm_ollama_unsent(ngx_http_vlm_ctx_t *ctx)
{
    return ctx->out.tokens ? ctx->out.tokens->nelts - ctx->out.sent_tokens : 0;
}


static void
ngx_http_vlm_ollama_put_tokens(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, size_t n)
{
    uint32_t      i;
    vlm_token_t  *token, *last;

    token = (vlm_token_t *) ctx->out.tokens->elts + ctx->out.sent_tokens;
    last = token + n;

    vlm_json_add_open(w, "logprobs", '[');

    for ( /* void */ ; token < last; token++) {
        vlm_json_open(w, '{');
        ngx_http_vlm_ollama_put_token(ctx, w, &token->picked);

        if (token->n_top) {
            vlm_json_add_open(w, "top_logprobs", '[');

            for (i = 0; i < token->n_top; i++) {
                vlm_json_open(w, '{');
                ngx_http_vlm_ollama_put_token(ctx, w, &token->top[i]);
                vlm_json_shut(w, '}');
            }

            vlm_json_shut(w, ']');
        }

        vlm_json_shut(w, '}');
    }

    vlm_json_shut(w, ']');

    ctx->out.sent_tokens += n;
}


/* "token" has U+FFFD for a part of a character, "bytes" has its bytes */

static void
ngx_http_vlm_ollama_put_token(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, vlm_logprob_t *token)
{
    size_t       i, bytes;
    const char  *piece;

    piece = vlm_piece(ctx->engine->life.vlm, token->id, &bytes);

    if (piece == NULL) {
        piece = "";
        bytes = 0;
    }

    vlm_json_add_text(w, "token", piece, bytes);

    vlm_json_add_logprob(w, "logprob", token->logprob);

    vlm_json_add_open(w, "bytes", '[');

    for (i = 0; i < bytes; i++) {
        vlm_json_put_int(w, (u_char) piece[i]);
    }

    vlm_json_shut(w, ']');
}


/* a load without a prompt has no durations */

static void
ngx_http_vlm_ollama_put_end(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, const char *reason)
{
    vlm_usage_t            *u;
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;
    u = &ctx->usage;

    vlm_json_add_string(w, "done_reason", reason);

    if (o->what != NGX_HTTP_VLM_OLLAMA_ASK) {
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
}


static void
ngx_http_vlm_ollama_put_ms(vlm_json_out_t *w, const char *key,
    uint64_t ms)
{
    vlm_json_add_int(w, key, (int64_t) ngx_max(ms, 1) * 1000000);
}


static const char *
ngx_http_vlm_ollama_reason(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    if (o->what == NGX_HTTP_VLM_OLLAMA_LOAD) {
        return "load";
    }

    if (o->what == NGX_HTTP_VLM_OLLAMA_UNLOAD) {
        return "unload";
    }

    return ctx->finish == VLM_FINISH_LENGTH ? "length" : "stop";
}


void
ngx_http_vlm_ollama_put_time(vlm_json_out_t *w, time_t sec,
    ngx_uint_t msec)
{
    u_char    *p, text[sizeof("2025-11-27T22:45:20.161Z") + NGX_INT_T_LEN];
    ngx_tm_t   tm;

    ngx_gmtime(sec, &tm);

    p = ngx_snprintf(text, sizeof(text), "%4d-%02d-%02dT%02d:%02d:%02d.%03uiZ",
                     tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                     tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec, msec);

    vlm_json_put_text(w, (char *) text, p - text);
}
