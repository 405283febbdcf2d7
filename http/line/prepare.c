
/*
 * The way from a body to a job: parse, chain, prompt, submit; and the storing
 * of the turn.
 *
 * Requests of one session run in the order in which they arrived.  A session
 * is known only after its request was parsed, so parsed requests are released
 * in their order of arrival; then each is in the chain of its session, and
 * only the first of a chain has its prompt made.  A request leaves the chain
 * when its turn is stored.
 *
 * A request arrives with its headers.  A request whose body is still being
 * received is not overtaken by one that arrived a moment later; but no request
 * waits for a slow body, which is not checked again.
 *
 * Prompts have pictures in memory, so only as many are made as the engine will
 * take soon.
 *
 * conf.prepare bounds the requests that threads work for.  Those with pictures
 * and those with a session may block a thread, so there is one more place for
 * all others, which overtake those that wait for a place.  A request whose page
 * is being drawn, which may take seconds, does not count meanwhile.
 */


#include "line.h"
#include "base/clock.h"


#define NGX_HTTP_VLM_POLL  200             /* ms between body checks */
#define NGX_HTTP_VLM_SLOW  32768           /* bytes, least progress of a body
                                              between two checks */
#define NGX_HTTP_VLM_HOLD  2000            /* ms, longest wait for an earlier
                                              request's body */
#define NGX_HTTP_VLM_LIGHT 65536           /* bytes of a body that is parsed in
                                              a moment */
#define NGX_HTTP_VLM_SOON  1000            /* ms, that a slot is reserved */
#define NGX_HTTP_VLM_SEEN  64              /* arrivals checked for that */

#define ngx_http_vlm_prepare_soon(ctx)                                        \
    (ngx_current_msec - (ctx)->times.arrived < NGX_HTTP_VLM_SOON)


/* a request whose prompt was made quickly does not overtake; arrivals have no
   rank yet, and are ordered by their numbers */

static void
ngx_http_vlm_prepare_insert(ngx_queue_t *queue, ngx_http_vlm_ctx_t *ctx)
{
    ngx_queue_t         *q;
    ngx_http_vlm_ctx_t  *other;

    for (q = ngx_queue_last(queue);
         q != ngx_queue_sentinel(queue);
         q = ngx_queue_prev(q))
    {
        other = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.queue);

        if (ngx_http_vlm_order_before(other, ctx)) {
            break;
        }
    }

    ngx_queue_insert_after(q, &ctx->place.queue);

    ctx->place.queued = 1;
}


static void
ngx_http_vlm_prepare_take(ngx_http_vlm_ctx_t *ctx)
{
    ngx_queue_remove(&ctx->place.queue);
    ctx->place.queued = 0;
}


void
ngx_http_vlm_prepare_expect(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    ctx->place.seq = ++eng->line.last_seq;

    ctx->times.headers = ngx_current_msec;

    ctx->stall_checked = ctx->times.headers;
    ctx->received = ctx->request->request_length;

    ngx_http_vlm_prepare_insert(&eng->line.arrivals, ctx);
}


void
ngx_http_vlm_prepare_add(ngx_http_vlm_ctx_t *ctx)
{
    off_t                   len;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    ctx->step = NGX_HTTP_VLM_PARSING;

    len = ctx->request->headers_in.content_length_n;
    ctx->heavy = len < 0 || len > NGX_HTTP_VLM_LIGHT;

    /* its thread may wait for a Redis that hangs: lease.c */

    if (eng->conf.redis && ctx->dialect->store) {
        ctx->heavy = 1;
    }

    ngx_http_vlm_count(ctx, parses, 1);

    if (!ctx->place.queued) {

        /* the others did not wait for its body: back to its place of
           arrival */

        ngx_http_vlm_prepare_insert(&eng->line.arrivals, ctx);
    }

    ngx_http_vlm_engine_wake(eng);
}


/* the places of conf.prepare, and one more for requests that do not block a
   thread */

static ngx_uint_t
ngx_http_vlm_prepare_place(ngx_http_vlm_engine_t *eng, ngx_uint_t heavy)
{
    ngx_uint_t  n;

    n = eng->conf.prepare + eng->drawing.prompts;

    return eng->line.n_tasks <= n && (!heavy || eng->line.n_heavy < n);
}


static void
ngx_http_vlm_prepare_always(void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    ngx_http_vlm_count(ctx, tasks, 0);
    ngx_http_vlm_count(ctx, heavy, 0);

    if (ctx->place.in_prompts) {
        ngx_http_vlm_prepare_take(ctx);
    }

    ngx_http_vlm_finish_task(ctx);
}


static void
ngx_http_vlm_prepare_end(ngx_http_vlm_ctx_t *ctx, ngx_int_t rc)
{
    ngx_connection_t  *c;

    c = ctx->request->connection;

    ngx_http_vlm_queue_end(ctx, rc);

    ngx_http_run_posted_requests(c);
}


/* NGX_ERROR: the request has ended */

static ngx_int_t
ngx_http_vlm_prepare_start(ngx_http_vlm_ctx_t *ctx, void (*run)(void *data),
    void (*done)(ngx_http_request_t *r, void *data))
{
    ngx_uint_t  heavy;

    /* the thread may write the field as soon as it runs */

    heavy = ctx->heavy != 0;

    if (ngx_http_vlm_finish_start(ctx, run, ngx_http_vlm_prepare_always, done)
        != NGX_OK)
    {
        ngx_http_vlm_prepare_end(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_ERROR;
    }

    ngx_http_vlm_count(ctx, tasks, 1);
    ngx_http_vlm_count(ctx, heavy, heavy);

    return NGX_OK;
}


/* was the request refused meanwhile, or has it failed in its thread? */

static ngx_uint_t
ngx_http_vlm_prepare_failed(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->late.status) {
        ngx_http_vlm_queue_refuse(ctx, ctx->late.status, ctx->late.code,
                                  ctx->late.err.text);
        return 1;
    }

    if (ctx->error.status) {
        ngx_http_vlm_queue_end(ctx, ngx_http_vlm_fail_answer(ctx));
        return 1;
    }

    return 0;
}


static void
ngx_http_vlm_prepare_parsed(ngx_http_request_t *r, void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    vlm_store_text_t  id;

    if (ngx_http_vlm_prepare_failed(ctx)) {
        return;
    }

    ctx->parsed = 1;
    ctx->heavy |= ctx->place.session.len != 0;

    if (ctx->streaming) {
        ngx_http_vlm_stream_watch(ctx);
    }

    id = vlm_store_session_id(ctx->place.session);

    ctx->session.len = id.len;
    ctx->session.data = (u_char *) id.data;
}


static void
ngx_http_vlm_prepare_parse(ngx_http_vlm_engine_t *eng)
{
    ngx_queue_t         *q, *next;
    ngx_http_vlm_ctx_t  *ctx;

    for (q = ngx_queue_head(&eng->line.arrivals);
         q != ngx_queue_sentinel(&eng->line.arrivals)
         && eng->line.n_parses && ngx_http_vlm_prepare_place(eng, 0);
         q = next)
    {
        next = ngx_queue_next(q);

        ctx = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.queue);

        if (!ctx->place.in_parses || !ngx_http_vlm_prepare_place(eng,
                                                                 ctx->heavy))
        {
            continue;
        }

        ngx_http_vlm_count(ctx, parses, 0);

        ctx->opened = eng->life.opened;

        (void) ngx_http_vlm_prepare_start(ctx, ngx_http_vlm_input_parse,
                                          ngx_http_vlm_prepare_parsed);
    }
}


/* twice the number of prompts, for requests that go before those that are
   ready */

static ngx_uint_t
ngx_http_vlm_prepare_room(ngx_http_vlm_engine_t *eng, ngx_http_vlm_ctx_t *ctx)
{
    ngx_uint_t           room;
    ngx_queue_t         *q;
    ngx_http_vlm_ctx_t  *last;

    room = eng->conf.vlm.slots + eng->conf.prepare + eng->drawing.prompts
           + (ctx->heavy ? 0 : 1);

    if (eng->line.n_prompts < room) {
        return 1;
    }

    if (eng->line.n_prompts >= 2 * room || ngx_queue_empty(&eng->line.ready)) {
        return 0;
    }

    q = ngx_queue_last(&eng->line.ready);
    last = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.queue);

    return ngx_http_vlm_order_before(ctx, last);
}


/* the checkpoint's defaults, overridden by "sampling" */

static void
ngx_http_vlm_prepare_sampling(ngx_http_vlm_engine_t *eng, vlm_sampling_t *s)
{
    vlm_sampling_default(eng->life.vlm, s);

    if (eng->conf.sampling.temperature >= 0) {
        s->temperature = eng->conf.sampling.temperature;
    }

    if (eng->conf.sampling.top_k != (uint32_t) NGX_CONF_UNSET) {
        s->top_k = eng->conf.sampling.top_k;
    }

    if (eng->conf.sampling.top_p >= 0) {
        s->top_p = eng->conf.sampling.top_p;
    }

    if (eng->conf.sampling.repetition_penalty >= 0) {
        s->repetition_penalty = eng->conf.sampling.repetition_penalty;
    }
}


/* the prompts of an aside are the base's */

static void
ngx_http_vlm_prepare_adapt(ngx_http_vlm_ctx_t *ctx)
{
    vlm_err_t  err;

    if (ctx->prompt == NULL || ctx->adapter[0] == '\0' || ctx->asking) {
        return;
    }

    ngx_memzero(&err, sizeof(vlm_err_t));

    if (vlm_prompt_adapter(ctx->engine->life.vlm, ctx->prompt, ctx->adapter,
                           ctx->adapter_scale, &err)
        == 0)
    {
        ngx_http_vlm_adapter_count(ctx->engine, ctx->adapter);
        return;
    }

    vlm_prompt_free(ctx->prompt);
    ctx->prompt = NULL;

    (void) ngx_http_vlm_fail_code(ctx, NGX_HTTP_NOT_FOUND, "model_not_found",
                                  "%s", err.text);
}


static void
ngx_http_vlm_prepare_run_prompt(void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    uint64_t   from;
    ngx_int_t  rc;

    ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));

    ngx_http_vlm_prepare_sampling(ctx->engine, &ctx->sampling);

    rc = ngx_http_vlm_lease_first(ctx);

    if (rc != NGX_OK) {
        ctx->place.lease_waits = rc == NGX_AGAIN;
        return;
    }

    from = vlm_now_us();

    ctx->dialect->prompt(ctx);

    if (ctx->prompt && ctx->place.rank.given.salted) {
        vlm_prompt_salt(ctx->prompt, ctx->place.rank.given.salt,
                        VLM_RANK_SALT);
    }

    ngx_http_vlm_prepare_adapt(ctx);

    ctx->times.prepare_ms = (vlm_now_us() - from) / 1000;
    ctx->times.prepared_ms += ctx->times.prepare_ms;
}


/* tries again after a moment, unless an event arrives before */

static void
ngx_http_vlm_prepare_check(ngx_http_vlm_engine_t *eng)
{
    if (!eng->line.next.timer_set) {
        ngx_add_timer(&eng->line.next, NGX_HTTP_VLM_POLL);
    }
}


/* another server has a turn of this session: its place in a thread is free
   until it looks again */

static void
ngx_http_vlm_prepare_later(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    ctx->place.lease_waits = 0;
    ctx->place.lease_at = ngx_current_msec + NGX_HTTP_VLM_POLL;
    ngx_http_vlm_count(ctx, prompts, 0);

    ctx->place.queued = 1;
    ngx_queue_insert_tail(&eng->line.leasing, &ctx->place.queue);

    ngx_http_vlm_prepare_check(eng);
}


static void
ngx_http_vlm_prepare_prompted(ngx_http_request_t *r, void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    if (ngx_http_vlm_prepare_failed(ctx)) {
        return;
    }

    if (ctx->place.lease_waits) {
        ngx_http_vlm_prepare_later(ctx);
        return;
    }

    if (ctx->prompt == NULL) {
        ngx_http_vlm_count(ctx, prompts, 0);
        ngx_http_vlm_finish_job(ctx);
        return;
    }

    ngx_http_vlm_metrics_time(ctx->engine, NGX_HTTP_VLM_TIME_PREPARE,
                              ctx->times.prepare_ms);

    ctx->step = NGX_HTTP_VLM_WAITING;
    ngx_http_vlm_prepare_insert(&ctx->engine->line.ready, ctx);
}


static void
ngx_http_vlm_prepare_prompt(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_ctx_t  *ctx;

    while (eng->life.opened && ngx_http_vlm_prepare_place(eng, 0)) {

        ctx = ngx_http_vlm_order_first(eng, ngx_http_vlm_prepare_place(eng, 1));

        if (ctx == NULL || !ngx_http_vlm_prepare_room(eng, ctx)) {
            break;
        }

        ngx_http_vlm_order_remove(ctx);
        ngx_http_vlm_chain_lease(ctx);

        ngx_http_vlm_count(ctx, prompts, 1);
        ngx_http_vlm_poison_begin(ctx);

        if (ngx_http_vlm_prepare_start(ctx, ngx_http_vlm_prepare_run_prompt,
                                       ngx_http_vlm_prepare_prompted)
            == NGX_OK)
        {
            ctx->place.queued = 1;
            ngx_queue_insert_tail(&eng->line.preparing, &ctx->place.queue);
        }
    }
}


/* does the body arrive fast enough to end soon? */

static ngx_uint_t
ngx_http_vlm_prepare_arriving(ngx_http_vlm_ctx_t *ctx)
{
    off_t       n;
    ngx_msec_t  ms;

    ms = ngx_current_msec - ctx->stall_checked;

    if (ms >= NGX_HTTP_VLM_POLL) {
        n = ctx->request->request_length - ctx->received;

        if (n * NGX_HTTP_VLM_POLL / (off_t) ms < NGX_HTTP_VLM_SLOW) {
            return 0;
        }

        ctx->stall_checked = ngx_current_msec;
        ctx->received = ctx->request->request_length;
    }

    return 1;
}


/* does a thread work for it, or will one, for longer than a moment? */

static ngx_uint_t
ngx_http_vlm_prepare_heavy(ngx_http_vlm_ctx_t *ctx)
{
    return ctx->in_task ? ctx->place.in_heavy : ctx->heavy;
}


/*
 * In their order of arrival, each request into the chain of its session.  A
 * request that has neither a session nor pictures passes those whose bodies
 * take long to parse: they may wait for a place until pictures of others have
 * been decoded.
 */

static void
ngx_http_vlm_prepare_release(ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t           receiving, passes;
    ngx_queue_t         *q, *next;
    ngx_http_vlm_ctx_t  *ctx;

    receiving = 0;
    passes = 0;

    for (q = ngx_queue_head(&eng->line.arrivals);
         q != ngx_queue_sentinel(&eng->line.arrivals);
         q = next)
    {
        next = ngx_queue_next(q);

        ctx = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.queue);

        if (ctx->step == NGX_HTTP_VLM_RECEIVING) {

            if (ngx_http_vlm_prepare_arriving(ctx)) {
                receiving = 1;

            } else {
                ngx_http_vlm_prepare_take(ctx);
            }

            continue;
        }

        if (!ctx->parsed || ctx->in_task) {

            if (!ngx_http_vlm_prepare_heavy(ctx)) {
                return;
            }

            passes = 1;
            continue;
        }

        if (passes && ctx->heavy) {
            continue;
        }

        if (receiving
            && ngx_current_msec - ctx->times.arrived < NGX_HTTP_VLM_HOLD)
        {
            ngx_http_vlm_prepare_check(eng);
            return;
        }

        ngx_http_vlm_prepare_take(ctx);

        if (ngx_http_vlm_order_rank(ctx) != NGX_OK
            || ngx_http_vlm_chain_enter(ctx) != NGX_OK)
        {
            ngx_http_vlm_prepare_end(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR);
        }
    }
}


static void
ngx_http_vlm_prepare_refused(ngx_http_vlm_ctx_t *ctx)
{
    ngx_connection_t  *c;

    c = ctx->request->connection;

    vlm_prompt_free(ctx->prompt);
    ctx->prompt = NULL;

    if (ctx->asking) {
        ngx_http_vlm_finish_job(ctx);

    } else {
        ngx_http_vlm_queue_end(ctx, ngx_http_vlm_fail_answer(ctx));
    }

    ngx_http_run_posted_requests(c);
}


/*
 * Returns 1 if a request that goes before this one has just arrived and will
 * have its prompt soon: a slot that becomes free now is reserved for it, and
 * not given to a request of lower priority for a whole answer.  Requests that
 * may take long get no reservation.
 */

static ngx_uint_t
ngx_http_vlm_prepare_reserved(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_ctx_t *ctx)
{
    ngx_uint_t           n;
    ngx_queue_t         *q;
    ngx_http_vlm_ctx_t  *other;

    if (!ngx_http_vlm_order_set(eng)) {
        return 0;
    }

    for (q = ngx_queue_head(&eng->line.preparing);
         q != ngx_queue_sentinel(&eng->line.preparing);
         q = ngx_queue_next(q))
    {
        other = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.queue);

        if (!other->place.in_heavy && !other->client_left
            && ngx_http_vlm_prepare_soon(other)
            && ngx_http_vlm_order_before(other, ctx))
        {
            return 1;
        }
    }

    other = ngx_http_vlm_order_first(eng, 0);

    if (other && ngx_http_vlm_prepare_soon(other)
        && ngx_http_vlm_order_before(other, ctx))
    {
        return 1;
    }

    for (q = ngx_queue_head(&eng->line.arrivals), n = 0;
         q != ngx_queue_sentinel(&eng->line.arrivals) && n < NGX_HTTP_VLM_SEEN;
         q = ngx_queue_next(q), n++)
    {
        other = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.queue);

        if (other->step == NGX_HTTP_VLM_PARSING && !other->client_left
            && !ngx_http_vlm_prepare_heavy(other)
            && ngx_http_vlm_prepare_soon(other)
            && ngx_http_vlm_order_would(other, ctx))
        {
            return 1;
        }
    }

    return 0;
}


/*
 * One more than the slots, so that a free slot finds work at once.  But a
 * request that the engine has is out of the queue and cannot be passed any
 * more, so the extra one is not submitted while another request's prompt is
 * being made.
 */

static void
ngx_http_vlm_prepare_submit(ngx_http_vlm_engine_t *eng)
{
    int                  idle;
    ngx_uint_t           jobs;
    ngx_queue_t         *q;
    ngx_http_vlm_ctx_t  *ctx;

    jobs = eng->conf.vlm.slots;

    if (ngx_queue_empty(&eng->line.preparing) && !ngx_http_vlm_order_set(eng)) {
        jobs++;
    }

    while (eng->life.loaded
           && eng->line.n_jobs < jobs
           && !ngx_queue_empty(&eng->line.ready))
    {
        q = ngx_queue_head(&eng->line.ready);
        ctx = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.queue);

        if (ngx_http_vlm_prepare_reserved(eng, ctx)) {
            ngx_http_vlm_prepare_check(eng);
            break;
        }

        ngx_http_vlm_prepare_take(ctx);
        ngx_http_vlm_count(ctx, prompts, 0);

        ctx->job = vlm_submit(eng->life.vlm, ctx->prompt, &ctx->sampling, ctx,
                              &idle, &ctx->error.err);

        if (ctx->job == NULL) {
            ngx_http_vlm_prepare_refused(ctx);
            continue;
        }

        ctx->prompt = NULL;
        ctx->step = NGX_HTTP_VLM_SUBMITTED;

        eng->line.n_jobs++;

        ngx_http_vlm_order_begun(ctx);

        ngx_http_vlm_engine_kick(eng);
    }
}


/* a thread that begins to draw a page gives its place back, and no event says
   so to those that wait for one */

static void
ngx_http_vlm_prepare_waits(ngx_http_vlm_engine_t *eng)
{
    if (eng->conf.documents.on && !ngx_http_vlm_prepare_place(eng, 1)
        && (eng->line.n_parses
            || (eng->life.opened && ngx_http_vlm_order_first(eng, 1))))
    {
        ngx_http_vlm_prepare_check(eng);
    }
}


/* a request whose time has come looks again whether it is the first of its
   session; the first in the list has waited longest */

static void
ngx_http_vlm_prepare_leases(ngx_http_vlm_engine_t *eng)
{
    ngx_queue_t         *q;
    ngx_http_vlm_ctx_t  *ctx;

    while (!ngx_queue_empty(&eng->line.leasing)) {

        q = ngx_queue_head(&eng->line.leasing);
        ctx = ngx_queue_data(q, ngx_http_vlm_ctx_t, place.queue);

        if ((ngx_msec_int_t) (ngx_current_msec - ctx->place.lease_at) < 0) {
            ngx_http_vlm_prepare_check(eng);
            return;
        }

        ngx_http_vlm_prepare_take(ctx);
        ngx_http_vlm_order_insert(ctx);
    }
}


/* called by the handler of line.next only, when no caller holds a request */

void
ngx_http_vlm_prepare_next(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_prepare_release(eng);
    ngx_http_vlm_prepare_submit(eng);
    ngx_http_vlm_prepare_leases(eng);

    /* prompts are bounded by the room for them, bodies by nothing: parsed
       first, they would take all places for as long as they come */

    ngx_http_vlm_prepare_prompt(eng);
    ngx_http_vlm_prepare_parse(eng);
    ngx_http_vlm_prepare_waits(eng);
}
