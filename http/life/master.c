
/*
 * An engine in the master: chooses its worker, and prepares the files that the
 * worker's user must be able to use.
 */


#include "life.h"
#include "base/folder.h"


/*
 * The dynamic linker identifies a module by its path: on a reload it returns
 * the mapped module, even if the file has been replaced.  Static variables
 * here survive a reload with the code.
 */

static void
ngx_http_vlm_master_version(ngx_cycle_t *cycle)
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
 * Missing files are made for the worker's user, and closed to all others.
 * Without its store an engine still answers requests that need no session;
 * without its socket or its lock it has failed.
 */

static void
ngx_http_vlm_master_own(ngx_cycle_t *cycle, ngx_http_vlm_engine_t *eng)
{
    uid_t                      uid;
    gid_t                      gid;
    vlm_err_t                  why;
    vlm_store_err_t            err;

    ngx_memzero(&why, sizeof(vlm_err_t));
    ngx_http_vlm_master_user(cycle, &uid, &gid);

    eng->conf.generation = ++eng->zone->generation;
    eng->zone->overlap = eng->conf.overlap;

    if (ngx_http_vlm_socket_own(eng, cycle, uid, gid,
                                &eng->life.reason) != NGX_OK
        || ngx_test_config)
    {
        return;
    }

    if (eng->conf.cache_set && eng->conf.vlm.cache
        && vlm_folder_need(eng->conf.vlm.cache, uid, gid, &why) == -1)
    {
        ngx_http_vlm_log(NGX_LOG_WARN, cycle->log, 0, eng, "the cache cannot "
                         "be made for the workers' user: %s", why.text);
    }

    if ((eng->conf.redis ? vlm_store_prepare_files : vlm_store_prepare)
            ((char *) eng->conf.files_dir.data, uid, gid, &err)
        != VLM_STORE_OK)
    {
        ngx_http_vlm_log(NGX_LOG_WARN, cycle->log, 0, eng, "%s", err.text);
    }

    if (ngx_http_vlm_lock_make(eng, uid, gid, cycle,
                               &eng->life.reason) == NGX_OK)
    {
        eng->life.reason.code = VLM_OK;
    }
}


/* the sockets are open, no worker has been forked yet; never fails, because
   nginx would exit */

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
        ngx_http_vlm_master_version(cycle);
    }

    eng = mcf->engines.elts;

    for (i = 0; i < mcf->engines.nelts; i++) {
        ngx_http_vlm_master_own(cycle, eng[i]);
    }

    return NGX_OK;
}


/*
 * A worker for each engine, while there are enough.  An engine thread does not
 * return while there is work, so two engines of one worker cannot share a
 * thread pool.
 */

static ngx_int_t
ngx_http_vlm_master_assign(ngx_cycle_t *cycle, ngx_http_vlm_engine_t *eng)
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

    eng->conf.worker = i % workers;

    for (i = eng->conf.worker; other[i] != eng; i += workers) {

        if (other[i]->pool == eng->pool) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "vlm_engine \"%V\" needs a thread_pool of its "
                          "own: with worker_processes %ui it is in one "
                          "worker with \"%V\", in %s:%ui", &eng->name,
                          workers, &other[i]->name, eng->conf.file,
                          eng->conf.line);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/*
 * The directory comes first, because the socket may be in it.  An unusable
 * store is reported by the worker that opens it.  "nginx -t" makes nothing.
 */

ngx_int_t
ngx_http_vlm_master_ready(ngx_http_vlm_engine_t *eng)
{
    uid_t                      uid;
    gid_t                      gid;
    vlm_store_err_t            err;

    if (ngx_http_vlm_master_assign(eng->cycle, eng) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_vlm_master_user(eng->cycle, &uid, &gid);

    if (!ngx_test_config
        && (vlm_store_make((char *) eng->conf.store_dir.data, uid, gid, &err)
            != VLM_STORE_OK
            || (eng->conf.redis
                && vlm_store_make((char *) eng->conf.files_dir.data, uid, gid,
                                  &err)
                   != VLM_STORE_OK)))
    {
        ngx_http_vlm_log(NGX_LOG_EMERG, eng->cycle->log, 0, eng, "%s in %s:%ui",
                         err.text, eng->conf.file, eng->conf.line);
        return NGX_ERROR;
    }

    return ngx_http_vlm_socket_bind(eng, eng->cycle, uid, gid);
}


void
ngx_http_vlm_master_user(ngx_cycle_t *cycle, uid_t *uid, gid_t *gid)
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
