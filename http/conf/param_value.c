
/*
 * Values of parameters.
 */


#include "conf.h"


#define NGX_HTTP_VLM_MAX_TIME  (24 * 3600 * 1000)      /* ms: a day */


char *
ngx_http_vlm_param_time(ngx_conf_t *cf, const char *name, ngx_str_t *value,
    ngx_msec_t *out)
{
    ngx_int_t  ms;

    ms = ngx_parse_time(value, 0);

    if (ms == NGX_ERROR || ms < 1 || ms > NGX_HTTP_VLM_MAX_TIME) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "%s \"%V\" is not a time from 1ms to 1d",
                           name, value);
        return NGX_CONF_ERROR;
    }

    *out = ms;

    return NGX_CONF_OK;
}


/*
 * nginx reports "unknown thread pool "vlm" in FILE:LINE" when it has read all:
 * the text in place of the file's name adds the remedy.
 */

ngx_thread_pool_t *
ngx_http_vlm_param_pool(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *name)
{
    ngx_str_t           text;
    ngx_conf_file_t    *saved, file;
    ngx_thread_pool_t  *pool;

    text.len = sizeof("vlm_engine \"\", add \"thread_pool  threads=1;\" in "
                      "front of http { }:") + eng->name.len + name->len
               + cf->conf_file->file.name.len;

    text.data = ngx_pnalloc(cf->pool, text.len + 1);
    if (text.data == NULL) {
        return NULL;
    }

    text.len = ngx_snprintf(text.data, text.len,
                            "vlm_engine \"%V\", add \"thread_pool %V "
                            "threads=1;\" in front of http { }: %V%Z",
                            &eng->name, name, &cf->conf_file->file.name)
               - text.data - 1;

    saved = cf->conf_file;

    file = *saved;
    file.file.name = text;

    cf->conf_file = &file;
    pool = ngx_thread_pool_add(cf, name);
    cf->conf_file = saved;

    return pool;
}
