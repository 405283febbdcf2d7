
/*
 * The paths of an engine: the store, the socket, the locks.  They are checked
 * while the configuration is read, so that an error names its line and nginx
 * keeps its current configuration.
 */


#include "conf.h"


#define NGX_HTTP_VLM_SUN_PATH 107          /* sizeof(sun_path) less a zero */


char *
ngx_http_vlm_paths_store(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    ngx_str_t        *dir;
    vlm_store_err_t   err;

    dir = &eng->conf.store_dir;

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


static char *
ngx_http_vlm_paths_socket(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    u_char           *slash;
    ngx_str_t         dir;
    ngx_file_info_t   fi;

    if (eng->conf.socket.len > NGX_HTTP_VLM_SUN_PATH) {
        return ngx_http_vlm_conf_error(cf, "vlm_engine \"%V\": socket \"%V\" "
                                       "has %uz bytes, a unix socket's path "
                                       "may have %d: set \"socket\"",
                                       &eng->name, &eng->conf.socket,
                                       eng->conf.socket.len,
                                       NGX_HTTP_VLM_SUN_PATH);
    }

    if (lstat((char *) eng->conf.socket.data, &fi) == 0) {
        return S_ISSOCK(fi.st_mode) ? NGX_CONF_OK
               : ngx_http_vlm_conf_error(cf, "vlm_engine \"%V\": \"%V\" is no "
                                         "socket: move it away", &eng->name,
                                         &eng->conf.socket);
    }

    slash = (u_char *) strrchr((char *) eng->conf.socket.data, '/');

    dir.len = ngx_max(slash - eng->conf.socket.data, 1);

    if (ngx_http_vlm_format(cf->pool, &dir, "%*s", dir.len,
                            eng->conf.socket.data)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    /* a missing store is created, other directories are not */

    if (ngx_strcmp(dir.data, eng->conf.store_dir.data) != 0
        && access((char *) dir.data, W_OK|X_OK) == -1)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "vlm_engine \"%V\": socket \"%V\" cannot be made "
                           "in \"%V\"", &eng->name, &eng->conf.socket, &dir);
        return NGX_CONF_ERROR;
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

        if (ngx_http_vlm_paths_store(cf, eng) != NGX_CONF_OK) {
            return NGX_CONF_ERROR;
        }
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

    line = cf->conf_file->line;

    if (eng->conf.socket_line) {
        cf->conf_file->line = eng->conf.socket_line;
    }

    rv = ngx_http_vlm_paths_socket(cf, eng);

    cf->conf_file->line = line;

    return rv;
}
