
/*
 * Adapters that were left out, in the designated worker: every few seconds a
 * thread of the engine's pool tries them again.  The engine stays open while it
 * does: see ngx_http_vlm_engine_needed().
 */


#include "life.h"


#define NGX_HTTP_VLM_AGAIN  3000               /* ms */


typedef struct {
    ngx_http_vlm_engine_t        *engine;
    ngx_event_t                   timer;
    ngx_thread_task_t             task;
    int                           changed;     /* the thread's result */
} ngx_http_vlm_again_t;


static void
ngx_http_vlm_again_task(void *data, ngx_log_t *log)
{
    ngx_http_vlm_again_t *a = data;

    int  idle;

    a->changed = vlm_adapters_again(a->engine->life.vlm, &idle);
}


static void
ngx_http_vlm_again_done(ngx_event_t *ev)
{
    ngx_http_vlm_again_t *a = ev->data;

    ngx_http_vlm_engine_t  *eng;

    eng = a->engine;
    eng->life.adapting = 0;

    if (a->changed) {
        ngx_http_vlm_adapter_share(eng);
    }

    if (a->changed && eng->life.loaded) {
        ngx_http_vlm_engine_kick(eng);
    }

    ngx_http_vlm_engine_wake(eng);
}


static void
ngx_http_vlm_again_timer(ngx_event_t *ev)
{
    ngx_http_vlm_again_t *a = ev->data;

    ngx_http_vlm_engine_t  *eng;

    eng = a->engine;

    if (eng->life.left_out && eng->life.loaded && eng->life.opened
        && !eng->life.adapting && !ngx_exiting
        && ngx_thread_task_post(eng->prepares, &a->task) == NGX_OK)
    {
        eng->life.adapting = 1;
    }

    ngx_add_timer(ev, NGX_HTTP_VLM_AGAIN);
}


void
ngx_http_vlm_again_start(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle)
{
    ngx_http_vlm_again_t  *a;

    if (eng->conf.vlm.lora == NULL) {
        return;
    }

    a = ngx_pcalloc(cycle->pool, sizeof(ngx_http_vlm_again_t));
    if (a == NULL) {
        return;
    }

    a->engine = eng;

    ngx_http_vlm_task_init(&a->task, ngx_http_vlm_again_task,
                           ngx_http_vlm_again_done, a, cycle->log);
    ngx_http_vlm_event_init(&a->timer, ngx_http_vlm_again_timer, a,
                            cycle->log);

    /* the timer does not delay a worker's exit */

    a->timer.cancelable = 1;

    ngx_add_timer(&a->timer, NGX_HTTP_VLM_AGAIN);
}
