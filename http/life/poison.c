
/*
 * A request that kills the worker would kill the next one, too, if its client
 * retries it.  So the zone records the requests in flight, by the hash of
 * their bodies; a worker that finds its predecessor dead counts a death
 * against each of them.  A request with two deaths, and no answer in between,
 * is not run a third time within the hour.
 */


#include "life.h"


#define NGX_HTTP_VLM_POISON_DEATHS  2
#define NGX_HTTP_VLM_POISON_TIME    (3600 * 1000)      /* ms */


/* never 0, which marks a free place */

uint64_t
ngx_http_vlm_poison_hash(const u_char *data, size_t len)
{
    uint64_t  hash;

    hash = ngx_murmur_hash2((u_char *) data, len);

    return (hash << 32) | ((len & 0xffffffff) | 1);
}


static ngx_http_vlm_suspect_t *
ngx_http_vlm_poison_find(ngx_http_vlm_engine_t *eng, uint64_t hash)
{
    ngx_uint_t               i;
    ngx_http_vlm_suspect_t  *s;

    s = eng->zone->suspects;

    for (i = 0; i < NGX_HTTP_VLM_SUSPECTS; i++) {
        if (s[i].hash == hash) {
            return &s[i];
        }
    }

    return NULL;
}


ngx_uint_t
ngx_http_vlm_poison_known(ngx_http_vlm_engine_t *eng, uint64_t hash)
{
    ngx_http_vlm_suspect_t  *s;

    s = ngx_http_vlm_poison_find(eng, hash);

    return s && s->deaths >= NGX_HTTP_VLM_POISON_DEATHS
           && ngx_current_msec - s->when < NGX_HTTP_VLM_POISON_TIME;
}


/* the prompt is made next: from here on the request may crash the worker */

void
ngx_http_vlm_poison_begin(ngx_http_vlm_ctx_t *ctx)
{
    ngx_uint_t     i;
    ngx_atomic_t  *works;

    if (ctx->hash == 0 || ctx->place.in_flight) {
        return;
    }

    works = ctx->engine->zone->in_flight;

    for (i = 0; i < NGX_HTTP_VLM_WORKS; i++) {

        if (works[i] == 0 && ngx_atomic_cmp_set(&works[i], 0, ctx->hash)) {
            ctx->place.in_flight = i + 1;
            return;
        }
    }
}


/* the request has ended and the worker lives; an answer clears its deaths */

void
ngx_http_vlm_poison_end(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_suspect_t  *s;

    if (ctx->place.in_flight == 0) {
        return;
    }

    ctx->engine->zone->in_flight[ctx->place.in_flight - 1] = 0;
    ctx->place.in_flight = 0;

    if (ctx->out.answered) {
        s = ngx_http_vlm_poison_find(ctx->engine, ctx->hash);

        if (s) {
            s->hash = 0;
        }
    }
}


void
ngx_http_vlm_poison_death(ngx_http_vlm_engine_t *eng)
{
    uint64_t                 hash;
    ngx_msec_t               now;
    ngx_uint_t               i, k;
    ngx_http_vlm_shm_t      *shm;
    ngx_http_vlm_suspect_t  *s;

    shm = eng->zone;
    now = ngx_current_msec;

    for (i = 0; i < NGX_HTTP_VLM_WORKS; i++) {

        hash = shm->in_flight[i];

        if (hash == 0) {
            continue;
        }

        shm->in_flight[i] = 0;

        s = ngx_http_vlm_poison_find(eng, hash);

        /* several requests in flight with the same body are one death */

        if (s && s->when == now) {
            continue;
        }

        if (s == NULL) {

            /* the place to use: a free one, or that of the entry seen longest
               ago */

            s = &shm->suspects[0];

            for (k = 1; k < NGX_HTTP_VLM_SUSPECTS && s->hash; k++) {
                if (shm->suspects[k].hash == 0
                    || (ngx_msec_int_t) (shm->suspects[k].when - s->when) < 0)
                {
                    s = &shm->suspects[k];
                }
            }

            s->deaths = 0;
            s->hash = hash;
        }

        s->deaths++;
        s->when = now;
    }
}
