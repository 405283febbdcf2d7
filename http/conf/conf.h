
/*
 * The directives.
 */


#ifndef _NGX_HTTP_VLM_CONF_H_INCLUDED_
#define _NGX_HTTP_VLM_CONF_H_INCLUDED_


#include "../api/api.h"


/* logs an error with the file and the line that is read; NGX_CONF_ERROR */

#define ngx_http_vlm_conf_error(cf, ...)                                      \
    (ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, __VA_ARGS__), NGX_CONF_ERROR)


/* a vlm_pass with several engines, which are checked when all are defined */

typedef struct {
    ngx_array_t                  *engines;     /* ngx_http_vlm_engine_t * */
    u_char                       *file;
    ngx_uint_t                    line;
} ngx_http_vlm_passed_t;


/* ---- conf.c: directives, generated text, nginx -t ------------------------ */

char *ngx_http_vlm_engine_block(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_vlm_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_vlm_inner(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* at the end of http { }: engines that are not defined, or not used */

char *ngx_http_vlm_engines_check(ngx_conf_t *cf, void *conf);

char *ngx_http_vlm_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


/* ---- param.c: parameters of vlm_engine { } ------------------------------- */

/* reads the block, whose "{" was read */

char *ngx_http_vlm_param_block(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);


/* ---- check.c: checks before an engine starts ----------------------------- */

/* at the end of vlm_engine { }: makes the plan, reads the model's facts */

char *ngx_http_vlm_check(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);

/* after the configuration was read, before it is in force */

ngx_int_t ngx_http_vlm_check_start(ngx_http_vlm_engine_t *eng, ngx_log_t *log);


/* ---- paths.c: store, socket, locks, vlm-pdf: paths and their errors ------ */

char *ngx_http_vlm_paths_store(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *dir);
char *ngx_http_vlm_paths_redis(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *url);
char *ngx_http_vlm_paths(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);


#endif /* _NGX_HTTP_VLM_CONF_H_INCLUDED_ */
