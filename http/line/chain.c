
/*
 * Requests of one session run one after the other, in the order in which they
 * arrived.  Only the first of a chain has its prompt made; a request leaves
 * its chain when its turn is stored.
 */


#include "line.h"


struct ngx_http_vlm_chain_s {
    ngx_str_node_t                sn;
    ngx_queue_t                   turns;       /* ctx->turn */
    u_char                        id[VLM_STORE_SESSION];
};


void
ngx_http_vlm_chain_init(ngx_http_vlm_engine_t *eng)
{
    ngx_rbtree_init(&eng->line.chains, &eng->line.chains_sentinel,
                    ngx_str_rbtree_insert_value);
}


ngx_int_t
ngx_http_vlm_chain_enter(ngx_http_vlm_ctx_t *ctx)
{
    uint32_t                hash;
    ngx_str_t               id;
    ngx_http_vlm_chain_t   *chain;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    id.data = (u_char *) ctx->place.session.data;
    id.len = ctx->place.session.len;

    ctx->step = NGX_HTTP_VLM_PREPARING;

    if (id.len == 0) {

        /* a request without a session has no predecessor */

        ngx_http_vlm_order_insert(ctx);

        return NGX_OK;
    }

    hash = ngx_crc32_short(id.data, id.len);

    chain = (ngx_http_vlm_chain_t *) ngx_str_rbtree_lookup(&eng->line.chains,
                                                           &id, hash);
    if (chain == NULL) {
        chain = ngx_alloc(sizeof(ngx_http_vlm_chain_t), eng->log);
        if (chain == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(chain->id, id.data, id.len);

        chain->sn.node.key = hash;
        chain->sn.str.data = chain->id;
        chain->sn.str.len = id.len;

        ngx_queue_init(&chain->turns);
        ngx_rbtree_insert(&eng->line.chains, &chain->sn.node);
    }

    ctx->place.chain = chain;

    if (ngx_queue_empty(&chain->turns)) {
        ngx_http_vlm_order_insert(ctx);

    } else {
        ctx->step = NGX_HTTP_VLM_CHAINED;
    }

    ngx_queue_insert_tail(&chain->turns, &ctx->place.turn);

    return NGX_OK;
}


void
ngx_http_vlm_chain_lease(ngx_http_vlm_ctx_t *ctx)
{
    ngx_queue_t           *q, *turns;
    vlm_store_lease_t      lease;
    ngx_http_vlm_ctx_t    *other;

    if (ctx->place.lease.token[0] == '\0' || ctx->place.chain == NULL) {
        return;
    }

    turns = &ctx->place.chain->turns;

    for (q = ngx_queue_head(turns);
         q != ngx_queue_sentinel(turns);
         q = ngx_queue_next(q))
    {
        other = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.turn);

        if (other->step == NGX_HTTP_VLM_CHAINED
            && other->place.lease.number < ctx->place.lease.number)
        {
            lease = ctx->place.lease;
            ctx->place.lease = other->place.lease;
            other->place.lease = lease;
        }
    }
}


void
ngx_http_vlm_chain_leave(ngx_http_vlm_ctx_t *ctx)
{
    ngx_queue_t            *q;
    ngx_http_vlm_ctx_t     *next;
    ngx_http_vlm_chain_t   *chain;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;
    chain = ctx->place.chain;

    ctx->place.chain = NULL;
    ngx_queue_remove(&ctx->place.turn);

    if (ngx_queue_empty(&chain->turns)) {
        ngx_rbtree_delete(&eng->line.chains, &chain->sn.node);
        ngx_free(chain);
        return;
    }

    q = ngx_queue_head(&chain->turns);
    next = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.turn);

    if (next->step == NGX_HTTP_VLM_CHAINED) {
        next->step = NGX_HTTP_VLM_PREPARING;
        ngx_http_vlm_order_insert(next);
    }
}
