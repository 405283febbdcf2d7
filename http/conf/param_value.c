
/*
 * Values of parameters: a function for each kind.  A number, size or time has
 * the bounds of its row in the table, and is kept in the engine where the row
 * says.
 */


#include "conf.h"


static char *ngx_http_vlm_param_keep(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, const ngx_http_vlm_param_t *param,
    ngx_str_t *value, off_t n);
static void ngx_http_vlm_param_put(ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, off_t n);


char *
ngx_http_vlm_param_num(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(cf, eng, param, value,
                                   ngx_atoi(value->data, value->len));
}


char *
ngx_http_vlm_param_size(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(cf, eng, param, value,
                                   ngx_parse_offset(value));
}


char *
ngx_http_vlm_param_msec(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(cf, eng, param, value,
                                   ngx_parse_time(value, 0));
}


char *
ngx_http_vlm_param_sec(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(cf, eng, param, value,
                                   ngx_parse_time(value, 1));
}


/* a fraction: its bounds are in millionths */

char *
ngx_http_vlm_param_float(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    char       *rv;
    ngx_int_t   n;

    n = ngx_atofp(value->data, value->len, 6);

    rv = ngx_http_vlm_param_keep(cf, eng, param, value, n);

    *(float *) ((u_char *) &eng->conf + param->offset) = (float) (n / 1e6);

    return rv;
}


/* one of the words in param->post */

char *
ngx_http_vlm_param_word(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_conf_enum_t  *e;

    for (e = param->post; e->name.len; e++) {

        if (ngx_strcmp(e->name.data, value->data) != 0) {
            continue;
        }

        if (param->size) {
            ngx_http_vlm_param_put(eng, param, e->value);
        }

        return NGX_CONF_OK;
    }

    return ngx_http_vlm_param_refuse(cf, eng, param, value);
}


char *
ngx_http_vlm_param_path(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_str_t  path;

    path = *value;

    if (ngx_conf_full_name(cf->cycle, &path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    *(char **) ((u_char *) &eng->conf + param->offset) = (char *) path.data;

    return NGX_CONF_OK;
}


/* text with variables; only for the first value of a parameter */

char *
ngx_http_vlm_param_text(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_command_t  cmd;

    ngx_memzero(&cmd, sizeof(ngx_command_t));
    cmd.offset = param->offset;

    return ngx_http_set_complex_value_slot(cf, &cmd, &eng->conf);
}


char *
ngx_http_vlm_param_refuse(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, param->error, value);

    return NGX_CONF_ERROR;
}


static char *
ngx_http_vlm_param_keep(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value, off_t n)
{
    if (n == NGX_ERROR || n < param->low || n > param->high) {
        return ngx_http_vlm_param_refuse(cf, eng, param, value);
    }

    ngx_http_vlm_param_put(eng, param, n);

    return NGX_CONF_OK;
}


/* the members of an engine have 32 or 64 bits */

static void
ngx_http_vlm_param_put(ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, off_t n)
{
    u_char  *p;

    p = (u_char *) &eng->conf + param->offset;

    if (param->size == sizeof(uint32_t)) {
        *(uint32_t *) p = (uint32_t) n;

    } else {
        *(uint64_t *) p = (uint64_t) n;
    }
}


/*
 * A thread pool by its name.  nginx reports "unknown thread pool "vlm" in
 * FILE:LINE" when it has read all: the text in place of the file's name adds
 * the remedy.
 */

char *
ngx_http_vlm_param_pool(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_str_t         text;
    ngx_conf_file_t  *saved, file;

    if (ngx_strcmp(value->data, "default") == 0) {
        return ngx_http_vlm_param_refuse(cf, eng, param, value);
    }

    saved = cf->conf_file;

    text.len = sizeof("vlm_engine \"\", add \"thread_pool  threads=1;\" in "
                      "front of http { }:") + eng->name.len + value->len
               + saved->file.name.len;

    text.data = ngx_pnalloc(cf->pool, text.len + 1);
    if (text.data == NULL) {
        return NGX_CONF_ERROR;
    }

    text.len = ngx_snprintf(text.data, text.len,
                            "vlm_engine \"%V\", add \"thread_pool %V "
                            "threads=1;\" in front of http { }: %V%Z",
                            &eng->name, value, &saved->file.name)
               - text.data - 1;

    file = *saved;
    file.file.name = text;

    cf->conf_file = &file;
    eng->pool = ngx_thread_pool_add(cf, value);
    cf->conf_file = saved;

    return eng->pool ? NGX_CONF_OK : NGX_CONF_ERROR;
}
