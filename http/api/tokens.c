
/*
 * Log-probabilities as objects, in OpenAI's and Ollama's answers: each token
 * with its bytes, since a token may be a part of a character, whose text has
 * U+FFFD.
 */


#include "api.h"


vlm_token_t *
ngx_http_vlm_tokens_take(ngx_http_vlm_ctx_t *ctx, size_t n)
{
    vlm_token_t  *t;

    t = n ? (vlm_token_t *) ctx->out.tokens->elts + ctx->out.sent_tokens : NULL;

    ctx->out.sent_tokens += n;

    return t;
}


static void
ngx_http_vlm_tokens_one(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    vlm_logprob_t *p)
{
    size_t       i, len;
    const char  *piece;

    piece = ngx_http_vlm_tokens_piece(ctx, p->id, &len);

    vlm_json_add_text(w, "token", piece, len);
    vlm_json_add_logprob(w, "logprob", p->logprob);
    vlm_json_add_open(w, "bytes", '[');

    for (i = 0; i < len; i++) {
        vlm_json_put_int(w, (u_char) piece[i]);
    }

    vlm_json_shut(w, ']');
}


void
ngx_http_vlm_tokens_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *key, size_t n, ngx_uint_t always)
{
    uint32_t      i;
    vlm_token_t  *t;

    vlm_json_add_open(w, key, '[');

    for (t = ngx_http_vlm_tokens_take(ctx, n); n; t++, n--) {
        vlm_json_open(w, '{');
        ngx_http_vlm_tokens_one(ctx, w, &t->picked);

        if (always || t->n_top) {
            vlm_json_add_open(w, "top_logprobs", '[');

            for (i = 0; i < t->n_top; i++) {
                vlm_json_open(w, '{');
                ngx_http_vlm_tokens_one(ctx, w, &t->top[i]);
                vlm_json_shut(w, '}');
            }

            vlm_json_shut(w, ']');
        }

        vlm_json_shut(w, '}');
    }

    vlm_json_shut(w, ']');
}


/* an invalid id has no bytes */

const char *
ngx_http_vlm_tokens_piece(ngx_http_vlm_ctx_t *ctx, uint32_t id, size_t *len)
{
    const char  *piece;

    *len = 0;

    piece = vlm_piece(ctx->engine->life.vlm, id, len);

    return piece ? piece : "";
}
