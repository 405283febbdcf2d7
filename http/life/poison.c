
/*
 * A request that kills the worker would kill the next one, too, if its client
 * retries it.  So the zone records the requests in flight, by the hash of
 * their bodies; a worker that finds its predecessor dead counts a death
 * against each of them.  A request with two deaths, and no answer in between,
 * is not run a third time within the hour.
 */


#include "life.h"


/* never 0, which marks a free place */

uint64_t
ngx_http_vlm_poison_hash(const u_char *data, size_t len)
{
    uint64_t  hash;

    hash = ngx_murmur_hash2((u_char *) data, len);

    return (hash << 32) | ((len & 0xffffffff) | 1);
}


/* the prompt is made next: from here on the request may crash the worker */

void
ngx_http_vlm_poison_begin(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->hash && !ctx->place.in_flight) {
        ctx->place.in_flight = vlm_suspects_begin(ctx->engine->zone->in_flight,
                                                  ctx->hash);
    }
}


/* the request has ended and the worker lives; an answer clears its deaths */

void
ngx_http_vlm_poison_end(ngx_http_vlm_ctx_t *ctx)
{
    vlm_suspects_end(ctx->engine->zone->in_flight, ctx->place.in_flight);
    ctx->place.in_flight = 0;

    if (ctx->out.answered) {
        vlm_suspects_clear(ctx->engine->zone->suspects, ctx->hash);
    }
}


void
ngx_http_vlm_poison_death(ngx_http_vlm_engine_t *eng)
{
    vlm_suspects_death(eng->zone->suspects, eng->zone->in_flight,
                       ngx_current_msec);
}
