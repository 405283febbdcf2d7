
/*
 * The watchdog of the designated worker's event loop, in a thread of its own.
 * A loop that hangs answers no request and handles no signal.  After "stall"
 * without a heartbeat the watchdog kills the process with SIGKILL, and the
 * master's next worker loads again.
 *
 * The watchdog counts its own polls, so a process that was stopped and resumed
 * is not killed.  Meanwhile the other workers answer the engine's clients with
 * an error (route.c).
 */


#include "life.h"
#include <poll.h>
#include <sys/eventfd.h>


#define NGX_HTTP_VLM_POLL  250             /* ms, half a heartbeat */

#define NGX_HTTP_VLM_STALL_CPU     60000   /* ms without a tick */
#define NGX_HTTP_VLM_STALL_DEVICE  10000


/* takes no lock that the loop may hold: the message is made of numbers
   alone */

static void
ngx_http_vlm_watch_end(ngx_http_vlm_engine_t *eng, ngx_msec_t ms)
{
    ngx_http_vlm_log(NGX_LOG_CRIT, eng->log, 0, eng, "the event loop has stood "
                     "still for %M ms: its worker is replaced", ms);

    if (ngx_http_vlm_zone_owned(eng)) {
        eng->zone->lost = 1;
        eng->zone->state = NGX_HTTP_VLM_STALLED;
    }

    (void) kill(ngx_pid, SIGKILL);
}


static void *
ngx_http_vlm_watch_thread(void *data)
{
    ngx_http_vlm_engine_t *eng = data;

    ngx_msec_t         still;
    struct pollfd      pfd;
    ngx_atomic_uint_t  beats;

    pfd.fd = eng->life.watch_fd;
    pfd.events = POLLIN;

    beats = 0;
    still = 0;

    while (poll(&pfd, 1, NGX_HTTP_VLM_POLL) <= 0) {

        if (beats != eng->life.polls) {
            beats = eng->life.polls;
            still = 0;
            continue;
        }

        still += NGX_HTTP_VLM_POLL;

        if (still >= eng->life.watch_stall) {
            ngx_http_vlm_watch_end(eng, still);
        }
    }

    return NULL;
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
    int       err;
    sigset_t  all, old;

    /* without a master there is no process to restart it */

    if (ngx_process != NGX_PROCESS_WORKER) {
        return;
    }

    eng->life.watch_stall = ngx_http_vlm_watch_time(eng);
    eng->life.watch_fd = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    err = ngx_errno;

    if (eng->life.watch_fd != -1) {

        /* only the event loop handles signals */

        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &old);

        err = pthread_create(&eng->life.watch, NULL, ngx_http_vlm_watch_thread,
                             eng);

        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

        if (err == 0) {
            return;
        }

        (void) close(eng->life.watch_fd);
    }

    ngx_http_vlm_log(NGX_LOG_WARN, eng->log, err, eng, "the event loop is not "
                     "watched: %s() failed",
                     eng->life.watch_fd == -1 ? "eventfd" : "pthread_create");

    eng->life.watch_fd = -1;
}


void
ngx_http_vlm_watch_stop(ngx_http_vlm_engine_t *eng)
{
    uint64_t  one;

    if (eng->life.watch_fd == -1) {
        return;
    }

    one = 1;

    (void) !write(eng->life.watch_fd, &one, sizeof(uint64_t));
    (void) pthread_join(eng->life.watch, NULL);

    (void) close(eng->life.watch_fd);
    eng->life.watch_fd = -1;
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
