
/*
 * The queue: its length, its deadlines, and how a request leaves it.
 *
 * A full queue refuses before a body is read.  A request takes its place when
 * its body is complete, so that a client that sends no body blocks no other,
 * and keeps the place until the engine begins.
 *
 * However a request ends, its cleanup removes it from every list and counter;
 * but while a thread works for it, the end is delayed, because the thread uses
 * its memory, and the next request of its session must not overtake it.
 */


#include "line.h"


static void
ngx_http_vlm_queue_cleanup(void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    if (ctx->step != NGX_HTTP_VLM_ENDED) {
        ngx_http_vlm_metrics_left(ctx);
    }

    ngx_http_vlm_queue_leave(ctx);
}


static void
ngx_http_vlm_queue_timer(ngx_event_t *ev)
{
    u_char               text[128];
    time_t               s;
    ngx_uint_t           late;
    ngx_connection_t    *c;
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ev->data;
    c = ctx->request->connection;

    if (ctx->step >= NGX_HTTP_VLM_STORING) {

        /* the answer is complete: the store's delay is not the client's
           fault */

        ngx_add_timer(ev, 1000);
        return;
    }

    late = ctx->times.started != 0;
    s = ((late ? ctx->engine->conf.timeout : ctx->engine->conf.queue_timeout)
         + 999) / 1000;

    (void) ngx_snprintf(text, sizeof(text) - 1,
                        late ? "The answer took longer than %T seconds%Z"
                             : "No slot became free within %T seconds%Z", s);

    ngx_http_vlm_queue_refuse(ctx, late ? NGX_HTTP_GATEWAY_TIME_OUT
                                        : NGX_HTTP_SERVICE_UNAVAILABLE,
                              late ? NULL : "queue_timeout", (char *) text);

    ngx_http_run_posted_requests(c);
}


ngx_int_t
ngx_http_vlm_queue_admit(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng)
{
    ngx_http_cleanup_t  *cln;
    ngx_http_vlm_ctx_t  *ctx;

    if (ngx_http_vlm_zone_length(eng) >= eng->conf.queue_size) {
        return NGX_BUSY;
    }

    ctx = ngx_http_vlm_ctx(r);
    cln = ctx ? ngx_http_cleanup_add(r, 0) : NULL;

    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_http_vlm_queue_cleanup;
    cln->data = ctx;

    ctx->engine = eng;

    if (ngx_http_vlm_order_read(ctx) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_vlm_event_init(&ctx->timer, ngx_http_vlm_queue_timer, ctx,
                            r->connection->log);

    ngx_queue_insert_tail(&eng->line.requests, &ctx->place.all);

    ctx->place.cleanup = cln;
    ngx_http_vlm_count(ctx, receiving, 1);

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_queue_wait(ngx_http_vlm_ctx_t *ctx)
{
    ngx_event_t            *rev;
    ngx_http_request_t     *r;
    ngx_http_vlm_engine_t  *eng;

    r = ctx->request;
    eng = ctx->engine;
    rev = r->connection->read;

    if (ngx_http_vlm_zone_length(eng) >= eng->conf.queue_size) {
        return NGX_BUSY;
    }

    ngx_http_vlm_count(ctx, receiving, 0);
    ngx_http_vlm_count(ctx, waiting, 1);
    eng->line.pending++;

    ctx->times.arrived = ngx_current_msec;

    /* not cancelable: the timer also keeps an exiting worker alive */

    ngx_add_timer(&ctx->timer, eng->conf.queue_timeout);

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    /* the connection may have been closed together with the end of the body */

    if (rev->pending_eof || rev->eof) {
        ngx_post_event(rev, &ngx_posted_events);
    }

    return NGX_OK;
}


void
ngx_http_vlm_queue_started(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_count(ctx, waiting, 0);

    ctx->step = NGX_HTTP_VLM_RUNNING;

    if (ctx->times.started == 0) {
        ctx->times.started = ngx_current_msec;
        ngx_http_vlm_timings_started(ctx);

        ngx_http_vlm_timer_off(&ctx->timer);

        ngx_add_timer(&ctx->timer, ctx->engine->conf.timeout);
    }
}


ngx_uint_t
ngx_http_vlm_queue_place(ngx_http_vlm_ctx_t *ctx)
{
    ngx_uint_t              n, place;
    ngx_queue_t            *q;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    if (!ctx->place.in_waiting) {
        return 0;
    }

    /* jobs that the engine has are the first, then those with a prompt */

    n = eng->line.n_jobs - eng->line.running;

    if (ctx->step == NGX_HTTP_VLM_SUBMITTED) {
        return 1;
    }

    if (ctx->step == NGX_HTTP_VLM_WAITING) {

        for (q = &ctx->place.queue;
             q != ngx_queue_sentinel(&eng->line.ready);
             q = ngx_queue_prev(q))
        {
            n++;
        }

        return n;
    }

    n += eng->line.n_prompts;

    if (ctx->step == NGX_HTTP_VLM_PREPARING && ctx->place.in_prompts) {
        return n;
    }

    place = ngx_http_vlm_order_place(ctx);

    /* 0: behind others of its session, or too far behind to be counted */

    return place ? n + place : eng->line.n_waiting;
}


void
ngx_http_vlm_queue_refuse(ngx_http_vlm_ctx_t *ctx, ngx_uint_t status,
    const char *code, const char *text)
{
    if (ctx->client_left) {
        return;
    }

    if (ctx->in_task) {

        /* the answer is sent when the thread returns */

        ctx->abandoned = 1;

        if (ctx->late.status == 0) {
            ctx->late.status = status;
            ctx->late.code = code;
            ngx_http_vlm_copy(ctx->late.err.text, text);
        }

        if (!ctx->timer.timer_set) {
            ngx_add_timer(&ctx->timer, 1000);
        }

        return;
    }

    (void) ngx_http_vlm_fail_code(ctx, status, code, "%s", text);

    ngx_http_vlm_queue_end(ctx, ngx_http_vlm_fail_send(ctx));
}


void
ngx_http_vlm_queue_end(ngx_http_vlm_ctx_t *ctx, ngx_int_t rc)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    ctx->times.ended = ngx_current_msec;

    if (ctx->place.cleanup) {
        ngx_http_vlm_metrics_ended(ctx, rc);
    }

    ctx->step = NGX_HTTP_VLM_ENDED;

    ngx_http_vlm_queue_leave(ctx);

    ngx_http_finalize_request(r, rc);
}


void
ngx_http_vlm_queue_leave(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    if (ctx->place.cleanup == NULL) {
        return;
    }

    ngx_http_vlm_engine_wake(eng);

    /* its place in the queue is free at once, because new requests are refused
       by it; a slot is free when the engine reports it */

    ngx_http_vlm_count(ctx, waiting, 0);

    ngx_http_vlm_timer_off(&ctx->timer);
    ngx_http_vlm_timer_off(&ctx->out.position);

    if (ctx->job) {
        vlm_cancel(eng->life.vlm, ctx->job);
        ctx->job = NULL;
    }

    if (ctx->in_task) {
        ctx->client_left = 1;
        ctx->abandoned = 1;
        return;
    }

    if (ctx->place.queued) {
        ctx->place.queued = 0;
        ngx_queue_remove(&ctx->place.queue);
    }

    ngx_http_vlm_count(ctx, parses, 0);
    ngx_http_vlm_count(ctx, prompts, 0);

    if (ctx->place.rank.in_order) {
        ngx_http_vlm_order_remove(ctx);
    }

    if (ctx->place.rank.client) {
        ngx_http_vlm_order_leave(ctx);
    }

    ngx_http_vlm_lease_leave(ctx);

    if (ctx->place.chain) {
        ngx_http_vlm_chain_leave(ctx);
    }

    if (ctx->place.in_flight) {
        ngx_http_vlm_poison_end(ctx);
    }

    if (ctx->place.probe) {
        ngx_http_vlm_breaker_leave(ctx);
    }

    ngx_http_vlm_queue_free(ctx);

    ngx_queue_remove(&ctx->place.all);

    ctx->place.cleanup->handler = NULL;
    ctx->place.cleanup = NULL;

    if (!ctx->place.in_receiving) {
        eng->line.pending--;
    }

    ngx_http_vlm_count(ctx, receiving, 0);
}


void
ngx_http_vlm_queue_fail(ngx_http_vlm_engine_t *eng, ngx_uint_t hangs)
{
    const char          *text;
    ngx_queue_t         *q, *next;
    ngx_connection_t    *c;
    ngx_http_vlm_ctx_t  *ctx;

    for (q = ngx_queue_head(&eng->line.requests);
         q != ngx_queue_sentinel(&eng->line.requests);
         q = next)
    {
        next = ngx_queue_next(q);

        ctx = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.all);

        switch (ctx->step) {

        case NGX_HTTP_VLM_SUBMITTED:
        case NGX_HTTP_VLM_RUNNING:

            if (!hangs) {
                continue;
            }

            ctx->job = NULL;
            text = "The engine has stalled, try again";
            break;

        case NGX_HTTP_VLM_RECEIVING:
        case NGX_HTTP_VLM_STORING:
        case NGX_HTTP_VLM_ENDED:
            continue;

        default:
            text = "Model not initialized";
        }

        c = ctx->request->connection;

        ngx_http_vlm_queue_refuse(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                  text);

        ngx_http_run_posted_requests(c);
    }
}


void
ngx_http_vlm_queue_free(void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    if (ctx->dialect && ctx->dialect->free) {
        ctx->dialect->free(ctx);
    }

    vlm_json_release(&ctx->out.json);

    vlm_prompt_free(ctx->prompt);
    ctx->prompt = NULL;
}
