
/*
 * The designated worker of an engine.  The master prepares the files of a
 * configuration before nginx adopts it; a failure after that marks the engine
 * as failed and never stops the server.
 */


#include "life.h"
#include "base/cgroup.h"
#include <dlfcn.h>
#include <malloc.h>


#define NGX_HTTP_VLM_MAPPED  (128 * 1024)      /* bytes, of an allocation */
#define NGX_HTTP_VLM_ARENAS  4


/* the cache manager and the cache loader call the hooks, too, as worker 0 */

static ngx_http_vlm_main_conf_t *
ngx_http_vlm_worker_conf(ngx_cycle_t *cycle)
{
    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NULL;
    }

    return ngx_http_cycle_get_module_main_conf(cycle, ngx_http_vlm_module);
}


/* the engine's threads inherit the mask of their worker */

static void
ngx_http_vlm_worker_bound(ngx_http_vlm_engine_t *eng, ngx_log_t *log)
{
    if (vlm_processors() < eng->conf.processors && eng->conf.plan.device == 0) {
        ngx_http_vlm_log(NGX_LOG_WARN, log, 0, eng, "worker_cpu_affinity "
                         "leaves the engine %uD of %ui processors",
                         vlm_processors(), eng->conf.processors);
    }
}


/*
 * Never fails: a worker that cannot start is not respawned, and its clients
 * would hang.  An engine that cannot start answers 503.
 */

ngx_int_t
ngx_http_vlm_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_vlm_engine_t     **eng;
    ngx_http_vlm_main_conf_t   *mcf;

    mcf = ngx_http_vlm_worker_conf(cycle);

    if (mcf == NULL) {
        return NGX_OK;
    }

    eng = mcf->engines.elts;

    /*
     * Large blocks are returned to the system when they are freed.  By default
     * glibc raises this threshold with each picture, and in the end each arena
     * keeps the memory of the largest one.
     */

    if (mcf->engines.nelts) {
        (void) mallopt(M_MMAP_THRESHOLD, NGX_HTTP_VLM_MAPPED);
        (void) mallopt(M_ARENA_MAX, NGX_HTTP_VLM_ARENAS);
    }

    for (i = 0; i < mcf->engines.nelts; i++) {

        if (vlm_budget_init(&eng[i]->budget, eng[i]->conf.http_memory
                                             - eng[i]->conf.vlm.grammars)
            != 0)
        {
            ngx_http_vlm_log(NGX_LOG_CRIT, cycle->log, 0, eng[i], "no lock for "
                             "http_memory");

            /* every request is refused */

            eng[i]->budget.total = 0;
        }

        ngx_queue_init(&eng[i]->drawing.waiting);
        (void) pthread_mutex_init(&eng[i]->drawing.lock, NULL);

        eng[i]->store = eng[i]->conf.redis
                        ? vlm_store_open_redis(eng[i]->conf.redis,
                              (char *) eng[i]->conf.files_dir.data,
                              eng[i]->conf.store_expires)
                        : vlm_store_open((char *) eng[i]->conf.store_dir.data);

        if (eng[i]->store == NULL) {
            ngx_http_vlm_log(NGX_LOG_CRIT, cycle->log, 0, eng[i], "no memory "
                             "for the store");
        }

        if (ngx_worker == eng[i]->conf.worker) {
            ngx_http_vlm_worker_bound(eng[i], cycle->log);
            ngx_http_vlm_device_choose(eng[i]);
            ngx_http_vlm_engine_start(eng[i], cycle);
            ngx_http_vlm_sweep_start(eng[i], cycle);
            ngx_http_vlm_reading_start(eng[i], cycle);
            ngx_http_vlm_encoding_start(eng[i], cycle);
            ngx_http_vlm_again_start(eng[i], cycle);
        }
    }

    return NGX_OK;
}


/* The thread pools have ended by now, so no other thread uses what is freed
   here. */

void
ngx_http_vlm_exit_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_vlm_engine_t     **eng;
    ngx_http_vlm_main_conf_t   *mcf;

    mcf = ngx_http_vlm_worker_conf(cycle);

    if (mcf == NULL) {
        return;
    }

    eng = mcf->engines.elts;

    for (i = 0; i < mcf->engines.nelts; i++) {

        if (eng[i]->life.owner) {
            ngx_http_vlm_engine_stop(eng[i]);
            ngx_http_vlm_encoding_stop(eng[i]);
        }

        vlm_store_close(eng[i]->store);
        eng[i]->store = NULL;
    }
}
