
/*
 * The paths of an engine: the store, the socket, the locks, vlm-pdf.  They are
 * checked while the configuration is read, so that an error names its line and
 * nginx keeps its current configuration.
 */


#include "conf.h"
#include "base/socket.h"


char *
ngx_http_vlm_paths_store(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *dir)
{
    vlm_store_err_t   err;

    if (ngx_conf_full_name(cf->cycle, dir, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    while (dir->len > 1 && dir->data[dir->len - 1] == '/') {
        dir->data[--dir->len] = '\0';
    }

    if (ngx_process != NGX_PROCESS_SIGNALLER
        && vlm_store_check((char *) dir->data, &err) != VLM_STORE_OK)
    {
        return ngx_http_vlm_conf_error(cf, "vlm_engine \"%V\": %s",
                                       &eng->name, err.text);
    }

    return NGX_CONF_OK;
}


/* A host's name is resolved here, as nginx resolves that of a proxy_pass. */

char *
ngx_http_vlm_paths_redis(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *url)
{
    vlm_store_err_t    err;
    vlm_redis_conf_t  *redis;

    redis = ngx_pcalloc(cf->pool, sizeof(vlm_redis_conf_t));
    if (redis == NULL) {
        return NGX_CONF_ERROR;
    }

    if (vlm_redis_parse((char *) url->data, redis, &err) != VLM_STORE_OK
        || (ngx_process != NGX_PROCESS_SIGNALLER
            && vlm_redis_resolve(redis, &err) != VLM_STORE_OK))
    {
        return ngx_http_vlm_conf_error(cf, "vlm_engine \"%V\": %s",
                                       &eng->name, err.text);
    }

    eng->conf.redis = redis;

    return NGX_CONF_OK;
}


/* what a Redis has not: files, and documents */

static char *
ngx_http_vlm_paths_shared(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    if (eng->conf.redis == NULL) {
        eng->conf.files_dir = eng->conf.store_dir;
        return NGX_CONF_OK;
    }

    if (eng->conf.files_dir.data == NULL) {
        return ngx_http_vlm_conf_error(cf, "vlm_engine \"%V\": store "
                                       "redis:// has the sessions alone: "
                                       "uploads=path names the directory of "
                                       "pictures, which all servers share",
                                       &eng->name);
    }

    if (eng->conf.documents.on) {
        return ngx_http_vlm_conf_error(cf, "vlm_engine \"%V\": documents are "
                                       "kept by one server, in SQLite: set "
                                       "\"documents off\" or a directory in "
                                       "place of store redis://", &eng->name);
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_paths_socket(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    vlm_err_t  err;

    ngx_memzero(&err, sizeof(vlm_err_t));

    /* a missing store is created, other directories are not */

    return vlm_socket_check((char *) eng->conf.socket.data,
                            (char *) eng->conf.store_dir.data, &err)
           == 0 ? NGX_CONF_OK
                : ngx_http_vlm_conf_error(cf, "vlm_engine \"%V\": %s",
                                          &eng->name, err.text);
}


/* beside the module, where "make documents" builds it; NULL: the module is
   within an nginx that was started by its name alone */

static char *
ngx_http_vlm_paths_beside(ngx_conf_t *cf)
{
    Dl_info    info;
    ngx_str_t  path;
    char      *slash;

    if (dladdr(&ngx_http_vlm_module, &info) == 0) {
        return NULL;
    }

    slash = strrchr(info.dli_fname, '/');

    if (slash == NULL
        || ngx_http_vlm_format(cf->pool, &path, "%*s/vlm-pdf",
                               (size_t) (slash - info.dli_fname),
                               info.dli_fname)
           != NGX_OK)
    {
        return NULL;
    }

    return (char *) path.data;
}


/* without "helper" vlm-pdf is beside the module, or where "make install" and
   the packages put it */

static void
ngx_http_vlm_paths_find_helper(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    char       *beside, *installed;
    ngx_err_t   err;

    installed = NGX_HTTP_VLM_LIBEXEC "/vlm-pdf";
    beside = ngx_http_vlm_paths_beside(cf);

    if (beside && access(beside, X_OK) == 0) {
        eng->conf.documents.helper = beside;
        return;
    }

    err = beside ? ngx_errno : NGX_ENOENT;

    eng->conf.documents.helper = installed;

    if (access(installed, X_OK) == 0) {
        return;
    }

    /* one that is there says more than one that is not */

    ngx_conf_log_error(NGX_LOG_WARN, cf, err == NGX_ENOENT ? ngx_errno : err,
                       "vlm_engine \"%V\": documents needs vlm-pdf, but "
                       "neither \"%s\" nor \"%s\" can be run: \"make "
                       "documents\" builds it, helper=path says where it is",
                       &eng->name, beside ? beside : "vlm-pdf", installed);
}


/* the model serves without a reader, which is looked for with each document */

static char *
ngx_http_vlm_paths_helper(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_documents_conf_t  *documents;

    documents = &eng->conf.documents;

    if (documents->helper == NULL) {
        ngx_http_vlm_paths_find_helper(cf, eng);

    } else if (access(documents->helper, X_OK) == -1) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, ngx_errno,
                           "vlm_engine \"%V\": \"%s\" cannot be run, which "
                           "reads the documents: \"make documents\" builds "
                           "it, helper=path says where it is", &eng->name,
                           documents->helper);
    }

    if (!documents->seccomp && !vlm_reader_landlock()) {
        return ngx_http_vlm_conf_error(cf, "vlm_engine \"%V\": this kernel has "
                                       "no Landlock, which keeps the reader of "
                                       "documents from files: \"documents on "
                                       "sandbox=seccomp\" does without",
                                       &eng->name);
    }

    return NGX_CONF_OK;
}


/* at the end of the block: sets defaults and what follows from other
   parameters */

char *
ngx_http_vlm_paths(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    char             *rv;
    ngx_str_t        *lock;
    ngx_uint_t        i, line;
    ngx_file_info_t   fi;

    if (eng->conf.store_dir.data == NULL) {
        ngx_str_set(&eng->conf.store_dir, "vlm");

        if (ngx_http_vlm_paths_store(cf, eng, &eng->conf.store_dir)
            != NGX_CONF_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    if (ngx_http_vlm_paths_shared(cf, eng) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    for (i = 0; i < NGX_HTTP_VLM_LOCKS; i++) {
        lock = &eng->conf.locks[i];

        if (ngx_http_vlm_format(cf->pool, lock, i ? "%V/%V.lock.2"
                                                  : "%V/%V.lock",
                                &eng->conf.store_dir, &eng->name)
            != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }

        if (lstat((char *) lock->data, &fi) == 0 && !S_ISREG(fi.st_mode)) {
            return ngx_http_vlm_conf_error(cf, "vlm_engine \"%V\": \"%V\" is "
                                           "no plain file: move it away",
                                           &eng->name, lock);
        }
    }

    if (eng->conf.socket.data == NULL
        && ngx_http_vlm_format(cf->pool, &eng->conf.socket, "%V/%V.sock",
                               &eng->conf.store_dir, &eng->name)
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (eng->conf.documents.on && ngx_process != NGX_PROCESS_SIGNALLER
        && ngx_http_vlm_paths_helper(cf, eng) != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    line = cf->conf_file->line;

    if (eng->conf.socket_line) {
        cf->conf_file->line = eng->conf.socket_line;
    }

    rv = ngx_http_vlm_paths_socket(cf, eng);

    cf->conf_file->line = line;

    return rv;
}
