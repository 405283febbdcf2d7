
/*
 * The watchdog of the designated worker's event loop, in a thread of its own.
 * A loop that hangs answers no request and handles no signal.  After "stall"
 * without a heartbeat the watchdog kills the process with SIGKILL, and the
 * master's next worker loads again.  Meanwhile the other workers answer the
 * engine's clients with an error (route.c).
 */


#include "life.h"


#define NGX_HTTP_VLM_STALL_CPU     60000   /* ms without a tick */
#define NGX_HTTP_VLM_STALL_DEVICE  10000


/* takes no lock that the loop may hold: the message is made of numbers
   alone */

static void
ngx_http_vlm_watch_stalled(void *data, uint64_t ms)
{
    ngx_http_vlm_engine_t *eng = data;

    ngx_http_vlm_log(NGX_LOG_CRIT, eng->log, 0, eng, "the event loop has stood "
                     "still for %M ms: its worker is replaced",
                     (ngx_msec_t) ms);

    if (ngx_http_vlm_zone_owned(eng)) {
        eng->zone->lost = 1;
        eng->zone->state = NGX_HTTP_VLM_STALLED;
    }

    (void) kill(ngx_pid, SIGKILL);
}


static ngx_msec_t
ngx_http_vlm_watch_time(ngx_http_vlm_engine_t *eng)
{
    if (eng->conf.stall) {
        return eng->conf.stall;
    }

    return eng->conf.plan.device && !eng->life.on_cpu
           ? NGX_HTTP_VLM_STALL_DEVICE : NGX_HTTP_VLM_STALL_CPU;
}


void
ngx_http_vlm_watch_start(ngx_http_vlm_engine_t *eng)
{
    int              err;
    const char      *what;
    vlm_watchdog_t  *watch;

    /* without a master there is no process to restart it */

    if (ngx_process != NGX_PROCESS_WORKER) {
        return;
    }

    watch = &eng->life.watch;

    watch->beats = &eng->life.polls;
    watch->stall = ngx_http_vlm_watch_time(eng);
    watch->stalled = ngx_http_vlm_watch_stalled;
    watch->data = eng;

    err = vlm_watchdog_start(watch, &what);

    if (err) {
        ngx_http_vlm_log(NGX_LOG_WARN, eng->log, err, eng, "the event loop is "
                         "not watched: %s() failed", what);
    }
}


ngx_msec_t
ngx_http_vlm_watch_silent(ngx_http_vlm_engine_t *eng)
{
    ngx_msec_t  ms, most;

    if (eng->life.vlm == NULL || eng->life.failed
        || ngx_process != NGX_PROCESS_WORKER)
    {
        return 0;
    }

    ms = ngx_current_msec - eng->life.ticked;

    most = ngx_http_vlm_watch_time(eng);

    /* a driver that compiles kernels for a new card makes no progress
       meanwhile */

    if (!eng->life.loaded && eng->conf.stall == 0) {
        most = NGX_HTTP_VLM_STALL_CPU;
    }

    return ms >= most ? ms : 0;
}
