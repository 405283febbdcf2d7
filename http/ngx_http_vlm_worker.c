
/*
 * The designated worker of an engine, and what is done for it in the master:
 * what a configuration needs is made before nginx takes it, and what fails once
 * nginx has taken it is the engine's trouble, not the server's.
 */


#include "ngx_http_vlm.h"
#include <dlfcn.h>
#include <malloc.h>


#define NGX_HTTP_VLM_MAPPED  (128 * 1024)      /* bytes, of an allocation */
#define NGX_HTTP_VLM_ARENAS  4


static void ngx_http_vlm_version(ngx_cycle_t *cycle);
static void ngx_http_vlm_own(ngx_cycle_t *cycle, ngx_http_vlm_engine_t *eng);
static ngx_int_t ngx_http_vlm_assign(ngx_cycle_t *cycle,
    ngx_http_vlm_engine_t *eng);
static void ngx_http_vlm_user(ngx_cycle_t *cycle, uid_t *uid, gid_t *gid);


/*
 * In the master: the sockets are open, no worker is forked yet.  Never fails:
 * nginx would exit.
 */

ngx_int_t
ngx_http_vlm_init_module(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_vlm_engine_t     **eng;
    ngx_http_vlm_main_conf_t   *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_vlm_module);

    if (mcf == NULL) {
        return NGX_OK;
    }

    if (mcf->engines.nelts && !ngx_test_config
        && ngx_process != NGX_PROCESS_SIGNALLER)
    {
        ngx_http_vlm_version(cycle);
    }

    eng = mcf->engines.elts;

    for (i = 0; i < mcf->engines.nelts; i++) {
        ngx_http_vlm_own(cycle, eng[i]);
    }

    return NGX_OK;
}


/*
 * The directory first: the socket may be in it.  A store that is there and
 * cannot be used is told by the worker that needs it.
 */

ngx_int_t
ngx_http_vlm_worker_ready(ngx_http_vlm_engine_t *eng)
{
    uid_t                      uid;
    gid_t                      gid;
    ngx_http_vlm_store_err_t   err;

    if (ngx_http_vlm_assign(eng->cycle, eng) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_vlm_user(eng->cycle, &uid, &gid);

    if (ngx_http_vlm_store_make((char *) eng->store_dir.data, uid, gid, &err)
        != NGX_HTTP_VLM_STORE_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, eng->cycle->log, 0,
                      "vlm_engine \"%V\": %s in %s:%ui", &eng->name, err.text,
                      eng->file, eng->line);
        return NGX_ERROR;
    }

    return ngx_http_vlm_socket_bind(eng, eng->cycle);
}


/*
 * The dynamic linker knows a module by its path: on a reload it hands out what
 * it has mapped, whatever lies there meanwhile.  What is static here survives
 * a reload with the code.
 */

static void
ngx_http_vlm_version(ngx_cycle_t *cycle)
{
    Dl_info             info;
    ngx_file_info_t     fi;

    static ngx_file_info_t  loaded;

    ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0, "nginx-vlm " VLM_VERSION);

    if (dladdr(&ngx_http_vlm_module, &info) == 0
        || ngx_file_info(info.dli_fname, &fi) == NGX_FILE_ERROR)
    {
        return;
    }

    if (loaded.st_ino == 0) {
        loaded = fi;
        return;
    }

    if (loaded.st_ino != fi.st_ino || loaded.st_dev != fi.st_dev
        || loaded.st_mtime != fi.st_mtime)
    {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "\"%s\" was replaced after nginx had loaded it: a "
                      "reload goes on with nginx-vlm " VLM_VERSION
                      " as it was, a restart takes the new file",
                      info.dli_fname);
    }
}


/*
 * A worker for each engine, while there are enough.  An engine thread does not
 * return while there is work, so two of one worker cannot share a pool.
 */

static ngx_int_t
ngx_http_vlm_assign(ngx_cycle_t *cycle, ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t                  i, workers;
    ngx_core_conf_t            *ccf;
    ngx_http_vlm_engine_t     **other;
    ngx_http_vlm_main_conf_t   *mcf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_vlm_module);

    workers = ccf->master && ccf->worker_processes > 0
              ? (ngx_uint_t) ccf->worker_processes : 1;

    other = mcf->engines.elts;

    for (i = 0; other[i] != eng; i++) { /* void */ }

    eng->worker = i % workers;

    for (i = eng->worker; other[i] != eng; i += workers) {

        if (other[i]->pool == eng->pool) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "vlm_engine \"%V\" needs a thread_pool of its "
                          "own: with worker_processes %ui it is in one "
                          "worker with \"%V\", in %s:%ui", &eng->name,
                          workers, &other[i]->name, eng->file, eng->line);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* of the workers, as whom they own their files; -1: as ourselves */

static void
ngx_http_vlm_user(ngx_cycle_t *cycle, uid_t *uid, gid_t *gid)
{
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    *uid = (uid_t) -1;
    *gid = (gid_t) -1;

    if (geteuid() == 0 && ccf->user != (ngx_uid_t) NGX_CONF_UNSET_UINT
        && ccf->master)
    {
        *uid = ccf->user;
        *gid = ccf->group;
    }
}


/*
 * The worker's user must be able to use what a run of another user may have
 * left, and no other user.  Without its store an engine answers what needs no
 * session; without its socket or its lock it has failed.
 */

static void
ngx_http_vlm_own(ngx_cycle_t *cycle, ngx_http_vlm_engine_t *eng)
{
    uid_t                      uid;
    gid_t                      gid;
    ngx_http_vlm_store_err_t   err;

    ngx_http_vlm_user(cycle, &uid, &gid);

    eng->generation = ++eng->shm->generation;
    eng->shm->overlap = eng->overlap;

    if (ngx_http_vlm_socket_own(eng, cycle, uid, gid, &eng->broken) != NGX_OK
        || ngx_test_config)
    {
        return;
    }

    if (ngx_http_vlm_store_prepare((char *) eng->store_dir.data, uid, gid,
                                   &err)
        != NGX_HTTP_VLM_STORE_OK)
    {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0, "vlm_engine \"%V\": %s",
                      &eng->name, err.text);
    }

    if (ngx_http_vlm_lock_make(eng, uid, gid, cycle, &eng->broken) == NGX_OK) {
        eng->broken.code = VLM_OK;
    }
}


/*
 * Never fails: a worker that cannot start is not respawned, and its clients
 * would hang.  An engine that does not come up answers 503.
 */

ngx_int_t
ngx_http_vlm_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_vlm_engine_t     **eng;
    ngx_http_vlm_main_conf_t   *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_vlm_module);

    /* the cache manager and the cache loader come here, too, as number 0 */

    if (mcf == NULL
        || (ngx_process != NGX_PROCESS_WORKER
            && ngx_process != NGX_PROCESS_SINGLE))
    {
        return NGX_OK;
    }

    eng = mcf->engines.elts;

    /*
     * What is large goes back to the system when it is freed.  Left alone,
     * glibc raises this bound with each picture, and in the end each of many
     * arenas keeps the room of the largest one.
     */

    if (mcf->engines.nelts) {
        (void) mallopt(M_MMAP_THRESHOLD, NGX_HTTP_VLM_MAPPED);
        (void) mallopt(M_ARENA_MAX, NGX_HTTP_VLM_ARENAS);
    }

    for (i = 0; i < mcf->engines.nelts; i++) {

        if (ngx_http_vlm_budget_init(&eng[i]->budget, eng[i]->http_memory)
            != 0)
        {
            ngx_log_error(NGX_LOG_CRIT, cycle->log, 0,
                          "vlm_engine \"%V\": no lock for http_memory",
                          &eng[i]->name);

            /* nothing fits, and everybody is told so */

            eng[i]->budget.total = 0;
        }

        eng[i]->store = ngx_http_vlm_store_open((char *)
                                                eng[i]->store_dir.data);

        if (eng[i]->store == NULL) {
            ngx_log_error(NGX_LOG_CRIT, cycle->log, 0,
                          "vlm_engine \"%V\": no memory for the store",
                          &eng[i]->name);
        }

        if (ngx_worker == eng[i]->worker) {
            ngx_http_vlm_device_choose(eng[i]);
            ngx_http_vlm_engine_start(eng[i], cycle);
            ngx_http_vlm_sweep_start(eng[i], cycle);
        }
    }

    return NGX_OK;
}


/* The pools of threads have ended by now: nobody else uses what goes here. */

void
ngx_http_vlm_exit_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_vlm_engine_t     **eng;
    ngx_http_vlm_main_conf_t   *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_vlm_module);

    if (mcf == NULL
        || (ngx_process != NGX_PROCESS_WORKER
            && ngx_process != NGX_PROCESS_SINGLE))
    {
        return;
    }

    eng = mcf->engines.elts;

    for (i = 0; i < mcf->engines.nelts; i++) {

        if (eng[i]->here) {
            ngx_http_vlm_engine_stop(eng[i]);
        }

        ngx_http_vlm_store_close(eng[i]->store);
        eng[i]->store = NULL;
    }
}
