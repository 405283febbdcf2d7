
/*
 * The directives.
 */


#ifndef _NGX_HTTP_VLM_CONF_H_INCLUDED_
#define _NGX_HTTP_VLM_CONF_H_INCLUDED_


#include "../api/api.h"


/* ---- conf.c: directives, generated text, nginx -t ------------------------ */

char *ngx_http_vlm_engine_block(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_vlm_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_vlm_inner(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* of that name, which vlm_engine may define later; NULL: said why not */

ngx_http_vlm_engine_t *ngx_http_vlm_named(ngx_conf_t *cf, ngx_str_t *name);

/* at the end of http { }: engines that nobody defined, or that nothing uses */

char *ngx_http_vlm_engines_check(ngx_conf_t *cf,
    ngx_http_vlm_main_conf_t *mcf);

char *ngx_http_vlm_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


/* ---- param.c: what stands inside vlm_engine { } -------------------------- */

void ngx_http_vlm_param_init(ngx_http_vlm_param_t *param,
    ngx_http_vlm_engine_t *eng);
char *ngx_http_vlm_param(ngx_conf_t *cf, ngx_command_t *dummy, void *conf);
char *ngx_http_vlm_param_finish(ngx_conf_t *cf, ngx_http_vlm_param_t *param);


/* ---- param_queue.c: parameters about the queue --------------------------- */

char *ngx_http_vlm_param_priority(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
char *ngx_http_vlm_param_fair(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
char *ngx_http_vlm_param_cache_salt(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);

char *ngx_http_vlm_param_breaker(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n);


/* ---- param_value.c: values of parameters --------------------------------- */

/* a thread pool by its name; should it not be there, nginx's error says which
   line is missing */

ngx_thread_pool_t *ngx_http_vlm_param_pool(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *name);

char *ngx_http_vlm_param_time(ngx_conf_t *cf, const char *name,
    ngx_str_t *value, ngx_msec_t *out);


/* ---- check.c: what is known before an engine starts ---------------------- */

/* at the end of vlm_engine { }: the plan, and the model's facts */

char *ngx_http_vlm_check(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);

/* when the configuration has been read, and is not yet in force */

ngx_int_t ngx_http_vlm_check_start(ngx_http_vlm_engine_t *eng,
    ngx_log_t *log);


/* ---- paths.c: store, socket, locks: names and mistakes ------------------- */

char *ngx_http_vlm_paths_store(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);
char *ngx_http_vlm_paths(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);


#endif /* _NGX_HTTP_VLM_CONF_H_INCLUDED_ */
