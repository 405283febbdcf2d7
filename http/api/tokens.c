
/*
 * Log-probabilities of an answer's tokens (lib/api/logprobs.c), each of which a
 * client gets once.
 */


#include "api.h"


static const char *
ngx_http_vlm_tokens_piece(const void *data, uint32_t id, size_t *bytes)
{
    return vlm_piece(data, id, bytes);
}


static vlm_token_t *
ngx_http_vlm_tokens_take(ngx_http_vlm_ctx_t *ctx, size_t n,
    vlm_pieces_t *pieces)
{
    vlm_token_t  *t;

    t = n ? (vlm_token_t *) ctx->out.tokens->elts + ctx->out.sent_tokens : NULL;

    ctx->out.sent_tokens += n;

    pieces->piece = ngx_http_vlm_tokens_piece;
    pieces->data = ctx->engine->life.vlm;

    return t;
}


void
ngx_http_vlm_tokens_objects(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *key, size_t n, ngx_uint_t always)
{
    vlm_token_t   *t;
    vlm_pieces_t   pieces;

    t = ngx_http_vlm_tokens_take(ctx, n, &pieces);

    vlm_logprobs_objects(w, key, t, n, always, &pieces);
}


void
ngx_http_vlm_tokens_arrays(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    size_t n, size_t *offset)
{
    vlm_token_t   *t;
    vlm_pieces_t   pieces;

    t = ngx_http_vlm_tokens_take(ctx, n, &pieces);

    vlm_logprobs_arrays(w, t, n, ctx->sampling.top_logprobs > 0, offset,
                        &pieces);
}
