
/*
 * Answers in OpenAI's form: whole, or as events, each with the new text.
 */


#include "../api.h"
#include "openai.h"


#define NGX_HTTP_VLM_OPENAI_TEXT   (8 * VLM_STORE_TEXT)   /* bytes */
#define NGX_HTTP_VLM_OPENAI_TOKEN  2048        /* bytes of JSON for each token
                                                  listed beside another */


static void ngx_http_vlm_openai_head(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, const char *object);
static void ngx_http_vlm_openai_usage(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w);
static void ngx_http_vlm_openai_tail(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w);
static const char *ngx_http_vlm_openai_finish(ngx_http_vlm_ctx_t *ctx);
static void ngx_http_vlm_openai_limit(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w);
static void ngx_http_vlm_openai_event(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, const char *role, ngx_str_t *text,
    size_t n_tokens, const char *finish);
static void ngx_http_vlm_openai_delta(vlm_json_out_t *w,
    const char *role, ngx_str_t *text);
static void ngx_http_vlm_openai_used(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w);
static void ngx_http_vlm_openai_said(ngx_http_vlm_ctx_t *ctx,
    ngx_str_t *text);


/*
 * In a thread, since log-probabilities of a long answer are megabytes.  The
 * sender reports a failure.
 */

void
ngx_http_vlm_openai_build(ngx_http_vlm_ctx_t *ctx)
{
    ngx_str_t                 text;
    ngx_http_vlm_openai_t    *o;
    vlm_json_out_t           *w;

    o = ctx->data;
    w = &o->body;

    ngx_http_vlm_openai_limit(ctx, w);

    ngx_http_vlm_openai_said(ctx, &text);

    ngx_http_vlm_openai_head(ctx, w, o->chat ? "chat.completion"
                                             : "text_completion");

    vlm_json_add_open(w, "choices", '[');
    vlm_json_open(w, '{');

    vlm_json_add_int(w, "index", 0);

    if (o->chat) {
        vlm_json_add_open(w, "message", '{');
        vlm_json_add_string(w, "role", "assistant");
        vlm_json_add_text(w, "content", (char *) text.data, text.len);
        vlm_json_add_string(w, "refusal", NULL);
        vlm_json_shut(w, '}');

    } else {
        vlm_json_add_text(w, "text", (char *) text.data, text.len);
    }

    vlm_json_put_key(w, "logprobs");
    ngx_http_vlm_openai_logprobs(ctx, w, ngx_http_vlm_openai_untold(ctx));

    vlm_json_add_string(w, "finish_reason", ngx_http_vlm_openai_finish(ctx));

    vlm_json_shut(w, '}');
    vlm_json_shut(w, ']');

    ngx_http_vlm_openai_usage(ctx, w);
    ngx_http_vlm_openai_tail(ctx, w);

    (void) vlm_json_done(w);
}


static void
ngx_http_vlm_openai_limit(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    vlm_json_init(w, NGX_HTTP_VLM_OPENAI_TEXT
                  + ngx_http_vlm_openai_untold(ctx)
                    * (ctx->sampling.top_logprobs + 1)
                    * NGX_HTTP_VLM_OPENAI_TOKEN);
}


ngx_int_t
ngx_http_vlm_openai_answer(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_openai_t    *o;
    vlm_json_out_t            w;

    o = ctx->data;

    /* the sender now owns its memory */

    w = o->body;
    ngx_memzero(&o->body, sizeof(vlm_json_out_t));

    return ngx_http_vlm_send_json(ctx->request, NGX_HTTP_OK, &w);
}


static void
ngx_http_vlm_openai_head(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *object)
{
    ngx_str_t              *name;
    ngx_http_vlm_openai_t  *o;

    o = ctx->data;

    vlm_json_open(w, '{');

    vlm_json_add_string(w, "id", o->id);
    vlm_json_add_string(w, "object", object);

    vlm_json_add_int(w, "created", ctx->times.wall / 1000000);

    if (o->model) {
        vlm_json_add_string(w, "model", o->model);
        return;
    }

    name = ngx_http_vlm_model_name(ctx->engine, 0);

    vlm_json_add_text(w, "model", (char *) name->data, name->len);
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


/* equal seeds give equal answers while this value is equal */

static void
ngx_http_vlm_openai_tail(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    u_char                  text[sizeof("vlm-01234567")];
    uint32_t                crc;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    ngx_crc32_init(crc);
    ngx_crc32_update(&crc, eng->conf.directory.data, eng->conf.directory.len);
    ngx_crc32_update(&crc, (u_char *) &eng->conf.created, sizeof(time_t));
    ngx_crc32_update(&crc, (u_char *) &eng->conf.vlm.weights,
                     sizeof(vlm_type_t));
    ngx_crc32_final(crc);

    (void) ngx_sprintf(text, "vlm-%08xD%Z", crc);

    vlm_json_add_string(w, "system_fingerprint", (char *) text);

    vlm_json_shut(w, '}');
}


static const char *
ngx_http_vlm_openai_finish(ngx_http_vlm_ctx_t *ctx)
{
    return ctx->finish == VLM_FINISH_LENGTH ? "length" : "stop";
}


void
ngx_http_vlm_openai_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last)
{
    size_t                  n_tokens;
    ngx_str_t               text;
    ngx_http_vlm_openai_t  *o;

    static ngx_str_t  none = ngx_string("");

    o = ctx->data;

    if (o->chat && !o->begun) {
        ngx_http_vlm_openai_event(ctx, w, "assistant", &none, 0, NULL);
    }

    o->begun = 1;

    ngx_http_vlm_openai_said(ctx, &text);

    text.data += ctx->out.sent;
    text.len -= ctx->out.sent;

    n_tokens = ngx_http_vlm_openai_untold(ctx);

    if (!last) {
        n_tokens = ngx_min(n_tokens, VLM_JSON_TOKENS);
    }

    if (text.len || n_tokens) {
        ngx_http_vlm_openai_event(ctx, w, NULL, &text, n_tokens, NULL);

        ctx->out.sent += text.len;
    }

    if (last) {
        ngx_http_vlm_openai_event(ctx, w, NULL, o->chat ? NULL : &none, 0,
                                  ngx_http_vlm_openai_finish(ctx));

        if (o->include_usage) {
            ngx_http_vlm_openai_used(ctx, w);
        }

        vlm_json_put_raw(w, "data: [DONE]\n\n",
                         sizeof("data: [DONE]\n\n") - 1);
    }
}


size_t
ngx_http_vlm_openai_untold(ngx_http_vlm_ctx_t *ctx)
{
    return ctx->out.tokens ? ctx->out.tokens->nelts - ctx->out.sent_tokens : 0;
}


/* thread: log-probabilities of a long answer are megabytes here, too */

void
ngx_http_vlm_openai_build_rest(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_openai_t  *o;

    o = ctx->data;

    ngx_http_vlm_openai_limit(ctx, &o->body);
    ngx_http_vlm_openai_chunk(ctx, &o->body, 1);
}


void
ngx_http_vlm_openai_chunk_rest(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t last)
{
    ngx_http_vlm_openai_t  *o;

    o = ctx->data;

    vlm_json_release(w);

    *w = o->body;
    ngx_memzero(&o->body, sizeof(vlm_json_out_t));
}


static void
ngx_http_vlm_openai_event(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *role, ngx_str_t *text, size_t n_tokens, const char *finish)
{
    ngx_http_vlm_openai_t  *o;

    o = ctx->data;

    ngx_http_vlm_stream_event(w, NULL);
    ngx_http_vlm_openai_head(ctx, w, o->chat ? "chat.completion.chunk"
                                             : "text_completion");

    vlm_json_add_open(w, "choices", '[');
    vlm_json_open(w, '{');

    vlm_json_add_int(w, "index", 0);

    if (o->chat) {
        ngx_http_vlm_openai_delta(w, role, text);

    } else {
        vlm_json_add_text(w, "text", (char *) text->data, text->len);
    }

    vlm_json_put_key(w, "logprobs");

    if (role || finish) {
        vlm_json_put_null(w);

    } else {
        ngx_http_vlm_openai_logprobs(ctx, w, n_tokens);
    }

    vlm_json_add_string(w, "finish_reason", finish);

    vlm_json_shut(w, '}');
    vlm_json_shut(w, ']');

    if (o->include_usage) {
        vlm_json_add_string(w, "usage", NULL);
    }

    ngx_http_vlm_openai_tail(ctx, w);
    ngx_http_vlm_stream_end(w);
}


static void
ngx_http_vlm_openai_delta(vlm_json_out_t *w, const char *role,
    ngx_str_t *text)
{
    vlm_json_add_open(w, "delta", '{');

    if (role) {
        vlm_json_add_string(w, "role", role);
    }

    if (text) {
        vlm_json_add_text(w, "content", (char *) text->data, text->len);
    }

    vlm_json_shut(w, '}');
}


static void
ngx_http_vlm_openai_used(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_openai_t  *o;

    o = ctx->data;

    ngx_http_vlm_stream_event(w, NULL);
    ngx_http_vlm_openai_head(ctx, w, o->chat ? "chat.completion.chunk"
                                             : "text_completion");

    vlm_json_add_open(w, "choices", '[');
    vlm_json_shut(w, ']');

    ngx_http_vlm_openai_usage(ctx, w);
    ngx_http_vlm_openai_tail(ctx, w);
    ngx_http_vlm_stream_end(w);
}


/* the text so far */

static void
ngx_http_vlm_openai_said(ngx_http_vlm_ctx_t *ctx, ngx_str_t *text)
{
    ngx_str_set(text, "");

    if (ctx->out.text) {
        text->data = ctx->out.text->pos;
        text->len = ctx->out.text->last - ctx->out.text->pos;
    }
}
