
/*
 * Chooses the engine's device and the time of a load.  A worker whose
 * predecessor lost the model waits before it loads, and each loss makes that
 * wait longer.  Under "device auto" a GPU that is lost repeatedly is not
 * used for some time and the CPU answers; "device cuda" keeps the GPU, and logs
 * it.
 *
 * The losses are recorded in the zone, so that they outlive workers; losses.c
 * decides by them.
 */


#include "life.h"


#define NGX_HTTP_VLM_EXIT_LOST  70         /* 2: nginx would not replace it */


/* logs a sentence that may have a number, and ends with a time; and keeps it
   for health */

static void
ngx_http_vlm_device_note(ngx_http_vlm_engine_t *eng, ngx_msec_t ms,
    const char *fmt, ngx_uint_t n)
{
    u_char  *p, *last;
    time_t   s;

    p = (u_char *) eng->life.device_note;
    last = p + sizeof(eng->life.device_note) - 1;
    s = (ms + 999) / 1000;

    p = ngx_slprintf(p, last, fmt, n);
    p = s % 60 ? ngx_slprintf(p, last, "%T s", s)
               : ngx_slprintf(p, last, "%T min", s / 60);
    *p = '\0';

    ngx_http_vlm_log(NGX_LOG_WARN, ngx_cycle->log, 0, eng, "%s",
                     eng->life.device_note);
}


static void
ngx_http_vlm_device_fall_back(ngx_http_vlm_engine_t *eng, ngx_uint_t n,
    ngx_msec_t away)
{
    ngx_http_vlm_device_note(eng, away,
                             n >= VLM_LOSSES_MANY
                             ? "device auto took the cpu: the GPU was lost "
                               "%ui times in 5 minutes, it is tried again in "
                             : "device auto took the cpu: the GPU was lost "
                               "too often, it is tried again in ", n);

    /* the device itself seems to be at fault: no request is a suspect any
       more, and the load need not wait */

    ngx_memzero(eng->zone->suspects, sizeof(eng->zone->suspects));

    eng->conf.vlm.device = "cpu";
    eng->life.on_cpu = 1;
    eng->life.fallback = 1;
    eng->life.fallback_until = ngx_current_msec + away;
    eng->life.backoff = 0;
}


void
ngx_http_vlm_device_choose(ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t           n, gone;
    ngx_msec_t           away;
    ngx_http_vlm_shm_t  *shm;

    shm = eng->zone;
    gone = ngx_http_vlm_zone_gone(shm);

    if (gone || shm->lost) {
        (void) ngx_atomic_fetch_add(&shm->metrics.restarts, 1);
        ngx_http_vlm_poison_death(eng);
        ngx_http_vlm_breaker_failed(eng);
    }

    /* the predecessor may have died with a probe */

    shm->breaker.probe = 0;

    /*
     * A crash during the load counts as a loss, or the worker would load and
     * crash at full speed.  So does one while memory is allocated: the kernel
     * may have killed the process for its size.
     */

    if (shm->lost
        || (gone && (shm->state == NGX_HTTP_VLM_LOADING || shm->filling)))
    {
        vlm_losses_add(&shm->deaths, ngx_current_msec);

        if (shm->plan.device) {
            vlm_losses_add(&shm->losses, ngx_current_msec);
        }
    }

    shm->lost = 0;

    eng->life.backoff = vlm_losses_pause(&shm->deaths, ngx_current_msec);

    if (eng->conf.plan.device == 0) {

        if (eng->life.backoff) {
            ngx_http_vlm_log(NGX_LOG_WARN, ngx_cycle->log, 0, eng, "%ui loads "
                             "in 5 minutes have ended with their worker: the "
                             "next one begins in %M ms",
                             (ngx_uint_t)
                             vlm_losses_recent(&shm->deaths, ngx_current_msec),
                             eng->life.backoff);
        }

        return;
    }

    n = vlm_losses_recent(&shm->losses, ngx_current_msec);

    if (ngx_strcmp(eng->conf.vlm.device, "auto") != 0) {

        if (n >= VLM_LOSSES_MANY) {
            ngx_http_vlm_device_note(eng, eng->life.backoff, "the device was "
                                     "lost %ui times in 5 minutes: it is "
                                     "loaded again after ", n);
        }

        return;
    }

    away = vlm_losses_fallback(&shm->losses, ngx_current_msec, eng->conf.retry);

    if (away) {
        ngx_http_vlm_device_fall_back(eng, n, away);
    }
}


ngx_uint_t
ngx_http_vlm_device_due(ngx_http_vlm_engine_t *eng)
{
    return eng->life.fallback
           && (ngx_msec_int_t) (ngx_current_msec
                                - eng->life.fallback_until) >= 0;
}


/* the model was released: the next load chooses the device again */

void
ngx_http_vlm_device_return(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_log(NGX_LOG_NOTICE, eng->log, 0, eng, "the GPU is tried "
                     "again");

    eng->conf.vlm.device = "auto";
    eng->life.device_note[0] = '\0';
    eng->life.on_cpu = 0;
    eng->life.fallback = 0;
}


static void
ngx_http_vlm_device_exit(void)
{
    _exit(NGX_HTTP_VLM_EXIT_LOST);
}


/*
 * In exit_process: the device is lost, and the driver's exit handlers would
 * wait for it.  The handler registered last runs first.
 */

void
ngx_http_vlm_device_last(void)
{
    (void) atexit(ngx_http_vlm_device_exit);
}
