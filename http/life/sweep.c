
/*
 * Evicts sessions and files from the store: a timer of the designated worker,
 * and a task in a thread, for "store DIR expires=T max=SIZE".
 */


#include "life.h"


#define NGX_HTTP_VLM_SWEEP_FIRST  10000        /* ms, after the start */
#define NGX_HTTP_VLM_SWEEP_NEXT   600000       /* ms */
#define NGX_HTTP_VLM_SWEEP_MORE   1000         /* ms, while more is left to
                                                  evict */


typedef struct {
    ngx_http_vlm_engine_t        *engine;
    ngx_event_t                   timer;
    ngx_thread_task_t             task;
    int                           rc;
    vlm_store_err_t               err;
    vlm_store_swept_t             swept;
} ngx_http_vlm_sweep_t;


static void
ngx_http_vlm_sweep_timer(ngx_event_t *ev)
{
    ngx_http_vlm_sweep_t *sw = ev->data;

    if (ngx_exiting || ngx_terminate || ngx_quit) {
        return;
    }

    if (ngx_thread_task_post(sw->engine->threads, &sw->task) != NGX_OK) {
        ngx_add_timer(ev, NGX_HTTP_VLM_SWEEP_NEXT);
    }
}


static void
ngx_http_vlm_sweep_run(void *data, ngx_log_t *log)
{
    ngx_http_vlm_sweep_t *sw = data;

    ngx_http_vlm_engine_t  *eng;

    eng = sw->engine;

    sw->rc = vlm_store_sweep(eng->store, eng->conf.store_expires,
                             eng->conf.store_max, &sw->swept, &sw->err);

    if (sw->swept.sessions) {
        (void) ngx_http_vlm_zone_sessions(eng, NULL);
    }

    if (sw->swept.documents) {
        ngx_http_vlm_reading_count(eng);
    }
}


static void
ngx_http_vlm_sweep_done(ngx_event_t *ev)
{
    ngx_http_vlm_sweep_t *sw = ev->data;

    vlm_store_swept_t      *swept;
    ngx_http_vlm_engine_t  *eng;

    eng = sw->engine;
    swept = &sw->swept;

    if (sw->rc != VLM_STORE_OK) {
        ngx_http_vlm_log(NGX_LOG_ERR, ev->log, 0, eng, "%s", sw->err.text);
    }

    if (swept->sessions || swept->files || swept->documents) {
        ngx_http_vlm_log(NGX_LOG_NOTICE, ev->log, 0, eng, "removed from the "
                         "store: %uL sessions, %uL files and %uL documents "
                         "of %uL bytes; %uL bytes stay", swept->sessions,
                         swept->files, swept->documents, swept->bytes,
                         swept->left);
    }

    if (!ngx_exiting) {
        ngx_add_timer(&sw->timer, sw->rc == VLM_STORE_OK && swept->more
                                  ? NGX_HTTP_VLM_SWEEP_MORE
                                  : NGX_HTTP_VLM_SWEEP_NEXT);
    }
}


void
ngx_http_vlm_sweep_start(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle)
{
    ngx_http_vlm_sweep_t  *sw;

    if (eng->store == NULL
        || (eng->conf.store_expires == 0 && eng->conf.store_max == 0))
    {
        return;
    }

    sw = ngx_pcalloc(cycle->pool, sizeof(ngx_http_vlm_sweep_t));
    if (sw == NULL) {
        return;
    }

    sw->engine = eng;

    ngx_http_vlm_task_init(&sw->task, ngx_http_vlm_sweep_run,
                           ngx_http_vlm_sweep_done, sw, cycle->log);
    ngx_http_vlm_event_init(&sw->timer, ngx_http_vlm_sweep_timer, sw,
                            cycle->log);

    /* the timer does not delay a worker's exit */

    sw->timer.cancelable = 1;

    ngx_add_timer(&sw->timer, NGX_HTTP_VLM_SWEEP_FIRST);
}
