
/*
 * The queue of a session among servers that share a Redis: vlm_store_lease() in
 * store.h.  A request takes its place when its body was parsed, looks before
 * each prompt whether it is the first, and leaves when its turn is stored or
 * the request ends.  chain.c has the same for the requests of this server.
 *
 * A timer keeps the places of all requests.  It also counts the sessions, which
 * other servers make and delete, too, and looks whether a store that has failed
 * works again, so that health says so without a request.
 */


#include "line.h"


#define NGX_HTTP_VLM_KEEP  (VLM_STORE_LEASE_MS / 3)    /* ms */


typedef struct {
    ngx_http_vlm_engine_t        *engine;
    ngx_pool_t                   *pool;
    ngx_thread_task_t             task;
    ngx_array_t                   places;      /* vlm_store_place_t */
    ngx_uint_t                    failed;      /* health names an error */
    ngx_uint_t                    usable;      /* again */
} ngx_http_vlm_lease_t;


/* work of no request, with a pool that it is in; NULL: no memory */

static ngx_http_vlm_lease_t *
ngx_http_vlm_lease_work(ngx_http_vlm_engine_t *eng,
    void (*run)(void *data, ngx_log_t *log), ngx_event_handler_pt done)
{
    ngx_pool_t            *pool;
    ngx_http_vlm_lease_t  *lease;

    pool = ngx_create_pool(2048, eng->log);
    if (pool == NULL) {
        return NULL;
    }

    lease = ngx_pcalloc(pool, sizeof(ngx_http_vlm_lease_t));

    if (lease == NULL
        || ngx_array_init(&lease->places, pool, 1, sizeof(vlm_store_place_t))
           != NGX_OK)
    {
        ngx_destroy_pool(pool);
        return NULL;
    }

    lease->engine = eng;
    lease->pool = pool;

    ngx_http_vlm_task_init(&lease->task, run, done, lease, eng->log);

    return lease;
}


/* copies of what a request may free meanwhile */

static ngx_int_t
ngx_http_vlm_lease_copy(ngx_http_vlm_lease_t *lease, ngx_http_vlm_ctx_t *ctx)
{
    char               *p;
    vlm_store_place_t  *place;

    place = ngx_array_push(&lease->places);
    p = place ? ngx_pnalloc(lease->pool, ctx->place.session.len
                                         + sizeof(ctx->place.lease.token))
              : NULL;
    if (p == NULL) {
        return NGX_ERROR;
    }

    place->session.data = p;
    place->session.len = ctx->place.session.len;

    p = (char *) ngx_cpymem(p, ctx->place.session.data,
                            ctx->place.session.len);

    ngx_memcpy(p, ctx->place.lease.token, sizeof(ctx->place.lease.token));
    place->token = p;

    return NGX_OK;
}


static void
ngx_http_vlm_lease_free(ngx_event_t *ev)
{
    ngx_http_vlm_lease_t *lease = ev->data;

    ngx_destroy_pool(lease->pool);
}


static void
ngx_http_vlm_lease_keep_run(void *data, ngx_log_t *log)
{
    ngx_http_vlm_lease_t *lease = data;

    vlm_store_t  *st;

    st = lease->engine->store;

    if (lease->places.nelts) {
        (void) vlm_store_lease_keep(st, lease->places.elts,
                                    lease->places.nelts, NULL);
    }

    lease->usable = lease->failed
                    && vlm_store_usable(st, NULL) == VLM_STORE_OK;

    (void) ngx_http_vlm_zone_sessions(lease->engine, NULL);
}


static void
ngx_http_vlm_lease_keep_done(ngx_event_t *ev)
{
    ngx_http_vlm_lease_t *lease = ev->data;

    ngx_http_vlm_engine_t  *eng;

    eng = lease->engine;

    if (lease->usable) {
        ngx_http_vlm_zone_store(eng, NULL);
    }

    ngx_destroy_pool(lease->pool);

    ngx_add_timer(&eng->line.keep, NGX_HTTP_VLM_KEEP);
}


static ngx_int_t
ngx_http_vlm_lease_collect(ngx_http_vlm_lease_t *lease)
{
    ngx_queue_t            *q;
    ngx_http_vlm_ctx_t     *ctx;
    ngx_http_vlm_engine_t  *eng;

    eng = lease->engine;

    for (q = ngx_queue_head(&eng->line.requests);
         q != ngx_queue_sentinel(&eng->line.requests);
         q = ngx_queue_next(q))
    {
        ctx = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.all);

        /* until it is parsed, its place is being taken by a thread */

        if (ctx->parsed && ctx->place.lease.token[0]
            && ngx_http_vlm_lease_copy(lease, ctx) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static void
ngx_http_vlm_lease_timer(ngx_event_t *ev)
{
    ngx_http_vlm_lease_t   *lease;
    ngx_http_vlm_engine_t  *eng;

    eng = ev->data;

    lease = ngx_http_vlm_lease_work(eng, ngx_http_vlm_lease_keep_run,
                                    ngx_http_vlm_lease_keep_done);

    if (lease) {
        lease->failed = eng->zone->store_reason[0] != '\0';

        if (ngx_http_vlm_lease_collect(lease) == NGX_OK
            && ngx_thread_task_post(eng->threads, &lease->task) == NGX_OK)
        {
            return;
        }

        ngx_destroy_pool(lease->pool);
    }

    ngx_add_timer(ev, NGX_HTTP_VLM_KEEP);
}


void
ngx_http_vlm_lease_init(ngx_http_vlm_engine_t *eng)
{
    if (eng->conf.redis == NULL || eng->store == NULL) {
        return;
    }

    ngx_http_vlm_event_init(&eng->line.keep, ngx_http_vlm_lease_timer, eng,
                            eng->log);
    eng->line.keep.cancelable = 1;

    ngx_add_timer(&eng->line.keep, NGX_HTTP_VLM_KEEP);
}


void
ngx_http_vlm_lease_enter(ngx_http_vlm_ctx_t *ctx)
{
    int               rc;
    vlm_store_err_t   err;

    rc = vlm_store_lease_new(ctx->engine->store, &ctx->place.lease, &err);

    if (rc == VLM_STORE_OK) {
        rc = vlm_store_lease(ctx->engine->store, ctx->place.session,
                             &ctx->place.lease, &err);
    }

    if (rc != VLM_STORE_OK && rc != VLM_STORE_WAITS) {
        (void) ngx_http_vlm_fail_store(ctx, &err);
    }
}


/* a place that was lost is taken again, at the end of the queue */

ngx_int_t
ngx_http_vlm_lease_first(ngx_http_vlm_ctx_t *ctx)
{
    vlm_store_err_t  err;

    if (ctx->place.lease.token[0] == '\0') {
        return NGX_OK;
    }

    switch (vlm_store_lease(ctx->engine->store, ctx->place.session,
                            &ctx->place.lease, &err))
    {
    case VLM_STORE_OK:
        return NGX_OK;

    case VLM_STORE_WAITS:
        return NGX_AGAIN;

    default:
        return ngx_http_vlm_fail_store(ctx, &err);
    }
}


void
ngx_http_vlm_lease_end(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->place.lease.token[0] == '\0') {
        return;
    }

    ctx->place.lease_left = vlm_store_lease_leave(ctx->engine->store,
                                                  ctx->place.session,
                                                  ctx->place.lease.token, NULL)
                            == VLM_STORE_OK;
}


static void
ngx_http_vlm_lease_leave_run(void *data, ngx_log_t *log)
{
    ngx_http_vlm_lease_t *lease = data;

    vlm_store_place_t  *place;

    place = lease->places.elts;

    (void) vlm_store_lease_leave(lease->engine->store, place->session,
                                 place->token, NULL);
}


/* if it fails, the place goes by its time */

void
ngx_http_vlm_lease_leave(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_lease_t  *lease;

    if (ctx->place.lease.token[0] == '\0' || ctx->place.lease_left) {
        return;
    }

    lease = ngx_http_vlm_lease_work(ctx->engine, ngx_http_vlm_lease_leave_run,
                                    ngx_http_vlm_lease_free);

    if (lease
        && (ngx_http_vlm_lease_copy(lease, ctx) != NGX_OK
            || ngx_thread_task_post(ctx->engine->threads, &lease->task)
               != NGX_OK))
    {
        ngx_destroy_pool(lease->pool);
    }
}
