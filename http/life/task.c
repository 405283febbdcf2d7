
/*
 * One engine in its designated worker: the thread task and the wake fd.
 *
 * There is one task, and it is posted for one step at a time: open, load, run,
 * close.  The handler of its completion, in the loop, decides on the next.  A
 * job that is submitted while a run ends is not lost: "active" is cleared only
 * just before that handler, which posts the task again if jobs are left.
 *
 * Only the loop writes eng->life.vlm; the thread hands the engine over in
 * eng->life.new_vlm.
 */


#include "life.h"
#include <sys/eventfd.h>


#define NGX_HTTP_VLM_EVENTS  64            /* of the engine, in a turn */
#define NGX_HTTP_VLM_BEAT    500           /* ms */
#define NGX_HTTP_VLM_GRACE   10000         /* ms, for bodies to arrive at an
                                              exit */
#define NGX_HTTP_VLM_LAST    500           /* ms, to send the last answers */
#define NGX_HTTP_VLM_LEAVE   10000         /* ms, before a graceful exit */


static void ngx_http_vlm_engine_events(ngx_event_t *rev);
static void ngx_http_vlm_engine_beat(ngx_event_t *ev);


/* from now on every chat is answered 503, and the log has the reason */

static void
ngx_http_vlm_engine_fail(ngx_http_vlm_engine_t *eng, const char *reason)
{
    vlm_err_t  err;

    ngx_http_vlm_log(NGX_LOG_CRIT, eng->log, 0, eng, "%s", reason);

    eng->life.failed = 1;
    eng->life.loaded = 0;

    if (reason != eng->life.reason.text) {
        ngx_http_vlm_copy(eng->life.reason.text, reason);
    }

    if (eng->life.standby) {
        ngx_http_vlm_log(NGX_LOG_CRIT, eng->log, 0, eng, "the worker before "
                         "this one goes on with its model");
    }

    ngx_http_vlm_zone_state(eng, NGX_HTTP_VLM_FAILED, reason);

    if (eng->life.vlm && eng->line.n_jobs) {
        err = eng->life.step_err;

        if (err.code == VLM_OK) {
            err.code = VLM_EDEVICE;
            ngx_http_vlm_copy(err.text, reason);
        }

        vlm_fail_jobs(eng->life.vlm, &err);
    }

    ngx_http_vlm_engine_wake(eng);
}


static void
ngx_http_vlm_engine_post(ngx_http_vlm_engine_t *eng, ngx_http_vlm_step_e step)
{
    eng->life.step = step;
    ngx_memzero(&eng->life.step_err, sizeof(vlm_err_t));

    if (ngx_thread_task_post(eng->pool, &eng->life.task) != NGX_OK) {
        ngx_http_vlm_engine_fail(eng, "the engine's task was not taken by "
                                      "its thread pool");
    }
}


/*
 * The tokenizer, and then the lock.  Once the lock is held, no other worker
 * has a turn of a session in progress, so prompts may use the stored turns.
 * (With "reload overlap" another worker may: docs/directives.md describes
 * that.)
 */

static int
ngx_http_vlm_engine_open(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    vlm_store_err_t  stored;

    eng->life.new_vlm = vlm_open(&eng->conf.vlm, err);

    if (eng->life.new_vlm == NULL || ngx_http_vlm_lock_take(eng, err) != 0) {
        return -1;
    }

    if (eng->store == NULL) {
        return 0;
    }

    if (vlm_store_usable(eng->store, &stored) == VLM_STORE_OK
        && ngx_http_vlm_zone_sessions(eng, &stored) == VLM_STORE_OK)
    {
        ngx_http_vlm_zone_store(eng, NULL);
        return 0;
    }

    ngx_http_vlm_log(NGX_LOG_WARN, eng->log, 0, eng, "%s: sessions and uploads "
                     "are refused, other chats are answered", stored.text);

    ngx_http_vlm_zone_store(eng, &stored);

    return 0;
}


/* the engine thread */

static void
ngx_http_vlm_engine_task(void *data, ngx_log_t *log)
{
    ngx_http_vlm_engine_t *eng = data;

    vlm_err_t  *err;

    err = &eng->life.step_err;

    switch (eng->life.step) {

    case NGX_HTTP_VLM_STEP_OPEN:
        eng->life.step_rc = ngx_http_vlm_engine_open(eng, err);
        break;

    case NGX_HTTP_VLM_STEP_LOAD:
        eng->life.step_rc = vlm_load(eng->life.new_vlm, err);
        break;

    case NGX_HTTP_VLM_STEP_RUN:
        eng->life.step_rc = vlm_run(eng->life.new_vlm, err);
        break;

    case NGX_HTTP_VLM_STEP_CLOSE:

        /* the memory first, then the lock, because the lock promises that
           memory to the next worker */

        vlm_close(eng->life.new_vlm);
        eng->life.new_vlm = NULL;
        ngx_http_vlm_lock_give(eng);
        eng->life.step_rc = 0;
    }
}


/* otherwise the exit would log an open socket, and the closed engine's
   descriptor number could receive events of another file */

static void
ngx_http_vlm_engine_unwatch(ngx_http_vlm_engine_t *eng)
{
    if (eng->life.events) {
        ngx_http_vlm_idle_free(eng->life.events);
        eng->life.events = NULL;
    }
}


static void
ngx_http_vlm_engine_opened(ngx_http_vlm_engine_t *eng)
{
    eng->life.vlm = eng->life.new_vlm;

    eng->life.events = ngx_http_vlm_idle(vlm_fd(eng->life.vlm), eng->log,
                                         ngx_http_vlm_engine_events, eng);

    if (eng->life.events == NULL
        || ngx_add_event(eng->life.events->read, NGX_READ_EVENT, 0) != NGX_OK)
    {
        ngx_http_vlm_engine_unwatch(eng);
        ngx_http_vlm_engine_fail(eng, "no connection for the engine's events: "
                                      "raise worker_connections");
        return;
    }

    eng->life.opened = 1;
    eng->life.opened_at = ngx_current_msec;
    eng->life.ticked = ngx_current_msec;

    ngx_http_vlm_engine_post(eng, NGX_HTTP_VLM_STEP_LOAD);
}


/* from now on this worker answers */

static void
ngx_http_vlm_engine_lead(ngx_http_vlm_engine_t *eng)
{
    eng->life.standby = 0;

    ngx_http_vlm_zone_take(eng);
    ngx_http_vlm_socket_open(eng, 1);

    if (eng->life.failed) {
        ngx_http_vlm_zone_state(eng, NGX_HTTP_VLM_FAILED,
                                eng->life.reason.text);
    }
}


static void
ngx_http_vlm_engine_loaded(ngx_http_vlm_engine_t *eng)
{
    vlm_stat_t  st;

    vlm_stat(eng->life.vlm, &st);

    eng->life.loaded = 1;

    if (eng->life.standby) {
        ngx_http_vlm_engine_lead(eng);
    }

    eng->life.on_cpu = st.plan.device == 0;
    eng->zone->metrics.load = ngx_current_msec - eng->life.opened_at;

    ngx_http_vlm_zone_state(eng, NGX_HTTP_VLM_READY, "");

    ngx_http_vlm_log(NGX_LOG_NOTICE, eng->log, 0, eng, "model loaded, %uLm, %s",
                     vlm_mib(st.plan.total), st.device);

    if (st.taken) {
        ngx_http_vlm_log(NGX_LOG_NOTICE, eng->log, 0, eng, "the device took "
                         "%uLm for itself, %uLm of the plan were declared for "
                         "that", vlm_mib(st.taken), vlm_mib(st.plan.device));
    }
}


static void
ngx_http_vlm_engine_kill(ngx_event_t *ev)
{
    (void) kill(ngx_pid, SIGKILL);
}


static void
ngx_http_vlm_engine_end(ngx_http_vlm_engine_t *eng, ngx_msec_t ms)
{
    ngx_http_vlm_event_init(&eng->life.exit_event, ngx_http_vlm_engine_kill,
                            eng, eng->log);
    ngx_add_timer(&eng->life.exit_event, ms);
}


/*
 * A process cannot use a lost device again.  This worker exits, at the latest
 * when its time is up; the master's next one loads again.
 */

static void
ngx_http_vlm_engine_lost(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_engine_fail(eng, eng->life.step_err.text);

    eng->life.lost = 1;

    if (ngx_http_vlm_zone_owned(eng)) {
        eng->zone->lost = 1;
    }

    if (ngx_process == NGX_PROCESS_WORKER) {
        ngx_quit = 1;
        eng->life.exit_event.cancelable = 1;
        ngx_http_vlm_engine_end(eng, NGX_HTTP_VLM_LEAVE);
    }
}


/* a step has failed; a run fails only with its device */

static void
ngx_http_vlm_engine_refused(ngx_http_vlm_engine_t *eng)
{
    vlm_stat_t  st;

    ngx_memzero(&st, sizeof(vlm_stat_t));

    if (eng->life.vlm) {
        vlm_stat(eng->life.vlm, &st);
    }

    if (eng->life.step == NGX_HTTP_VLM_STEP_RUN
        || (st.state == VLM_LOST && eng->life.step_err.code != VLM_ECANCELLED))
    {
        ngx_http_vlm_engine_lost(eng);

    } else if (eng->life.step_err.code == VLM_ECANCELLED) {
        eng->life.stopped = 1;

    } else {
        ngx_http_vlm_engine_fail(eng, eng->life.step_err.text);
    }
}


static void
ngx_http_vlm_engine_closed(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_log(NGX_LOG_NOTICE, eng->log, 0, eng, "model released");

    if (!eng->life.reopen) {
        return;
    }

    eng->life.reopen = 0;

    if (ngx_exiting) {

        /* the lock has passed to the next worker, and this worker's queue is
           refused */

        eng->life.released = 1;
        eng->life.failed = 1;
        return;
    }

    eng->life.closed = 0;

    ngx_http_vlm_device_return(eng);
    ngx_http_vlm_zone_take(eng);
    ngx_http_vlm_engine_post(eng, NGX_HTTP_VLM_STEP_OPEN);
}


/* The engine thread calls this often. nginx's pools wait for their tasks at an
   exit, so the task polls for it. */

static int
ngx_http_vlm_engine_stopping(void *data)
{
    ngx_http_vlm_engine_t *eng = data;

    return ngx_terminate
           || (ngx_process == NGX_PROCESS_SINGLE && ngx_quit)
           || (ngx_exiting && eng->life.draining == 0
               && eng->line.pending == 0);
}


/* the loop, after each step */

static void
ngx_http_vlm_engine_done(ngx_event_t *ev)
{
    ngx_http_vlm_engine_t *eng = ev->data;

    if (eng->life.step_rc != 0) {
        ngx_http_vlm_engine_refused(eng);
        ngx_http_vlm_engine_wake(eng);
        return;
    }

    switch (eng->life.step) {

    case NGX_HTTP_VLM_STEP_OPEN:
        ngx_http_vlm_engine_opened(eng);
        break;

    case NGX_HTTP_VLM_STEP_LOAD:
        ngx_http_vlm_engine_loaded(eng);
        break;

    case NGX_HTTP_VLM_STEP_RUN:

        if (eng->line.n_jobs && !ngx_http_vlm_engine_stopping(eng)) {
            ngx_http_vlm_engine_kick(eng);
        }

        break;

    case NGX_HTTP_VLM_STEP_CLOSE:
        ngx_http_vlm_engine_closed(eng);
        break;
    }

    ngx_http_vlm_engine_wake(eng);
}


static void
ngx_http_vlm_engine_close(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_engine_unwatch(eng);

    eng->life.opened = 0;
    eng->life.loaded = 0;
    eng->life.vlm = NULL;
    eng->life.closed = 1;

    ngx_http_vlm_engine_post(eng, NGX_HTTP_VLM_STEP_CLOSE);
}


/*
 * In a worker that exits, until its last request has ended: the next worker
 * waits for the lock.  A body may never be complete; a request whose body
 * takes longer than the grace period is sent on to the next worker.
 */

static ngx_uint_t
ngx_http_vlm_engine_needed(ngx_http_vlm_engine_t *eng)
{
    if (eng->line.pending || eng->line.n_jobs || eng->life.draining
        || eng->life.adapting)
    {
        return 1;
    }

    if (eng->life.failed) {
        return 0;
    }

    if (!ngx_exiting) {
        return 1;
    }

    if (eng->life.exit_time == 0) {
        eng->life.exit_time = ngx_current_msec;
    }

    return eng->line.n_receiving && !eng->life.stopped
           && ngx_current_msec - eng->life.exit_time < NGX_HTTP_VLM_GRACE;
}


static void
ngx_http_vlm_engine_next(ngx_event_t *ev)
{
    ngx_http_vlm_engine_t *eng = ev->data;

    if (eng->life.failed) {
        eng->calls->failed(eng, 0);

    } else {
        eng->calls->next(eng);
    }

    ngx_http_vlm_zone_queue(eng);

    if (eng->life.closed || eng->life.task.event.active) {
        return;
    }

    if (!ngx_http_vlm_engine_needed(eng)) {
        eng->life.reopen = 0;
        eng->life.released = ngx_exiting ? 1 : 0;
        ngx_http_vlm_engine_close(eng);

    } else if (eng->life.reopen && eng->line.n_jobs == 0
               && eng->line.n_threads == 0 && eng->line.n_prompts == 0
               && !eng->life.adapting)
    {
        /* no prompt, job or answer uses the model any more */

        ngx_http_vlm_engine_close(eng);
    }
}


/* also the engine thread: nginx's error log takes lines of threads */

static void
ngx_http_vlm_engine_log(void *data, vlm_log_level_t level, const char *text)
{
    ngx_http_vlm_engine_t *eng = data;

    ngx_http_vlm_log((level == VLM_LOG_ERROR ? NGX_LOG_ERR
                      : level == VLM_LOG_WARN ? NGX_LOG_WARN : NGX_LOG_NOTICE),
                     eng->log, 0, eng, "%s", text);
}


void
ngx_http_vlm_engine_start(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle)
{
    eng->log = cycle->log;

    eng->calls->init(eng);

    eng->life.owner = 1;

    eng->conf.vlm.log = ngx_http_vlm_engine_log;
    eng->conf.vlm.stop = ngx_http_vlm_engine_stopping;
    eng->conf.vlm.data = eng;

    ngx_http_vlm_event_init(&eng->line.next, ngx_http_vlm_engine_next, eng,
                            cycle->log);
    ngx_http_vlm_event_init(&eng->life.heartbeat, ngx_http_vlm_engine_beat, eng,
                            cycle->log);
    ngx_http_vlm_task_init(&eng->life.task, ngx_http_vlm_engine_task,
                           ngx_http_vlm_engine_done, eng, cycle->log);

    /* must not keep a graceful exit from ending */

    eng->line.next.cancelable = 1;
    eng->life.heartbeat.cancelable = 1;

    eng->life.standby = ngx_http_vlm_zone_standby(eng);

    if (eng->conf.overlap && ngx_process == NGX_PROCESS_WORKER
        && ngx_http_vlm_socket_keep(eng, cycle) != NGX_OK)
    {
        ngx_http_vlm_log(NGX_LOG_CRIT, cycle->log, ngx_errno, eng, "no "
                         "connection for its socket: raise worker_connections");
        eng->life.standby = 0;
    }

    if (!eng->life.standby) {
        ngx_http_vlm_engine_lead(eng);
    }

    ngx_add_timer(&eng->life.heartbeat, NGX_HTTP_VLM_BEAT);
    ngx_http_vlm_watch_start(eng);

    if (eng->life.reason.code != VLM_OK) {
        eng->life.closed = 1;
        ngx_http_vlm_engine_fail(eng, eng->life.reason.text);
        return;
    }

    ngx_http_vlm_engine_post(eng, NGX_HTTP_VLM_STEP_OPEN);
}


/*
 * The master counts configurations before it signals old workers, so an old
 * worker can tell a reload from a shutdown.  The master signals no worker
 * twice; at a later shutdown the newest worker leaves a mark in the zone,
 * which the older ones read.
 */

ngx_uint_t
ngx_http_vlm_engine_exit(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_shm_t  *shm;

    shm = eng->zone;

    if (eng->conf.generation == shm->generation) {
        shm->draining = eng->conf.generation;
        return 0;
    }

    if (!eng->life.loaded || eng->life.reopen || !shm->overlap
        || !ngx_http_vlm_zone_owned(eng))
    {
        return 0;
    }

    ngx_http_vlm_log(NGX_LOG_NOTICE, eng->log, 0, eng, "answers until the next "
                     "worker has loaded its model");

    eng->life.draining = 1;
    eng->life.heartbeat.cancelable = 0;

    return 1;
}


/* until another worker answers, or none will: then this exit proceeds */

static void
ngx_http_vlm_engine_serve(ngx_http_vlm_engine_t *eng)
{
    if (ngx_http_vlm_zone_owned(eng) && !eng->life.failed
        && eng->zone->draining != eng->zone->generation
        && eng->life.events && !eng->life.events->error)
    {
        return;
    }

    eng->life.draining = 0;
    eng->life.heartbeat.cancelable = 1;

    ngx_http_vlm_socket_open(eng, 0);
    ngx_http_vlm_engine_wake(eng);
}


void
ngx_http_vlm_engine_stop(ngx_http_vlm_engine_t *eng)
{
    vlm_watchdog_stop(&eng->life.watch);
    ngx_http_vlm_engine_unwatch(eng);
    ngx_http_vlm_socket_close(eng);

    ngx_http_vlm_timer_off(&eng->life.heartbeat);

    ngx_http_vlm_timer_off(&eng->line.next);

    vlm_close(eng->life.new_vlm);
    ngx_http_vlm_lock_give(eng);
    ngx_http_vlm_zone_leave(eng);

    eng->life.new_vlm = NULL;
    eng->life.vlm = NULL;
    eng->life.owner = 0;

    if (eng->life.lost) {
        ngx_http_vlm_device_last();
    }
}


void
ngx_http_vlm_engine_kick(ngx_http_vlm_engine_t *eng)
{
    if (!eng->life.task.event.active) {
        ngx_http_vlm_engine_post(eng, NGX_HTTP_VLM_STEP_RUN);
    }
}


static void
ngx_http_vlm_engine_events(ngx_event_t *rev)
{
    eventfd_t               n;
    ngx_uint_t              i;
    vlm_event_t             e;
    ngx_connection_t       *c;
    ngx_http_vlm_engine_t  *eng;

    c = rev->data;
    eng = c->data;

    if (c->close) {

        /* a graceful exit has begun */

        c->close = 0;
        c->idle = 0;
    }

    /* first the counter, then the events: no wake-up is lost */

    (void) eventfd_read(c->fd, &n);

    for (i = 0; i < NGX_HTTP_VLM_EVENTS; i++) {

        if (!vlm_next_event(eng->life.vlm, &e)) {
            break;
        }

        eng->calls->event(eng, &e);
    }

    if (i == NGX_HTTP_VLM_EVENTS) {
        ngx_post_event(rev, &ngx_posted_next_events);
    }

    ngx_http_vlm_engine_wake(eng);
}


/*
 * A thread that hangs in a driver cannot be cancelled, and nginx's own exit
 * would wait for it.  So all clients get an error, and then the worker kills
 * itself with SIGKILL; the master's next one loads again, after a longer pause
 * each time.
 */

static void
ngx_http_vlm_engine_stalled(ngx_http_vlm_engine_t *eng, ngx_msec_t ms)
{
    u_char  text[128];

    (void) ngx_snprintf(text, sizeof(text) - 1,
                        "the engine has made no progress for %M ms: its "
                        "worker is replaced%Z", ms);

    ngx_http_vlm_log(NGX_LOG_CRIT, eng->log, 0, eng, "%s", text);

    eng->life.failed = 1;
    eng->life.loaded = 0;

    ngx_http_vlm_zone_state(eng, NGX_HTTP_VLM_STALLED, (char *) text);

    if (ngx_http_vlm_zone_owned(eng)) {
        eng->zone->lost = 1;
        ngx_http_vlm_poison_death(eng);
    }

    /* a later event would belong to a request that has been freed */

    ngx_http_vlm_engine_unwatch(eng);
    eng->calls->failed(eng, 1);

    ngx_http_vlm_engine_end(eng, NGX_HTTP_VLM_LAST);
}


static void
ngx_http_vlm_engine_beat(ngx_event_t *ev)
{
    ngx_http_vlm_engine_t *eng = ev->data;

    ngx_msec_t  ms;

    eng->life.polls++;
    ngx_http_vlm_zone_beat(eng);

    if (eng->life.opened && !eng->life.closed) {
        ngx_http_vlm_lock_keep(eng);
    }

    if (eng->life.draining) {
        ngx_http_vlm_engine_serve(eng);

    } else if (eng->life.standby && !ngx_exiting
               && !ngx_http_vlm_zone_standby(eng))
    {
        ngx_http_vlm_engine_lead(eng);
    }

    ms = ngx_http_vlm_watch_silent(eng);

    if (ms) {
        ngx_http_vlm_engine_stalled(eng, ms);

    } else if (eng->life.loaded && !ngx_exiting
               && ngx_http_vlm_device_due(eng))
    {

        /* no prompt is made from here on, until the engine is open again */

        eng->life.opened = 0;
        eng->life.reopen = 1;
        ngx_http_vlm_engine_wake(eng);
    }

    if (ngx_exiting) {
        ngx_http_vlm_engine_wake(eng);
    }

    ngx_add_timer(ev, NGX_HTTP_VLM_BEAT);
}
