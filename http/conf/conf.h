
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

/* the engine of that name, which vlm_engine may define later; NULL: the error
   was logged */

ngx_http_vlm_engine_t *ngx_http_vlm_named(ngx_conf_t *cf, ngx_str_t *name);

/* at the end of http { }: engines that are not defined, or not used */

char *ngx_http_vlm_engines_check(ngx_conf_t *cf,
    ngx_http_vlm_main_conf_t *mcf);

char *ngx_http_vlm_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


/* ---- param.c: parameters of vlm_engine { } ------------------------------- */

typedef struct ngx_http_vlm_param_s  ngx_http_vlm_param_t;

/* a row of the table: a parameter, or another value of the one above it */

struct ngx_http_vlm_param_s {
    ngx_str_t                     name;        /* or "timeout=" of a value */
    ngx_uint_t                    max;         /* values of a parameter, 1 to
                                                  max; 0: a value */
    char                       *(*set)(ngx_conf_t *cf,
                                       ngx_http_vlm_engine_t *eng,
                                       const ngx_http_vlm_param_t *param,
                                       ngx_str_t *value);
    off_t                         low;         /* the least value, */
    off_t                         high;        /* and the largest */
    size_t                        offset;      /* of a member of eng->conf, */
    size_t                        size;        /* and its bytes */
    void                         *post;        /* the words to choose from */
    const char                   *error;       /* with "%V", the value */
};


/* reads the block, whose "{" was read */

char *ngx_http_vlm_param_block(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);


/* ---- param_value.c: a function for each kind of value -------------------- */

char *ngx_http_vlm_param_num(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value);
char *ngx_http_vlm_param_size(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value);
char *ngx_http_vlm_param_msec(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value);
char *ngx_http_vlm_param_sec(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value);
char *ngx_http_vlm_param_float(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value);
char *ngx_http_vlm_param_word(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value);
char *ngx_http_vlm_param_path(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value);
char *ngx_http_vlm_param_text(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value);
char *ngx_http_vlm_param_pool(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value);

/* logs param->error */

char *ngx_http_vlm_param_refuse(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value);


/* ---- check.c: checks before an engine starts ----------------------------- */

/* at the end of vlm_engine { }: makes the plan, reads the model's facts */

char *ngx_http_vlm_check(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);

/* after the configuration was read, before it is in force */

ngx_int_t ngx_http_vlm_check_start(ngx_http_vlm_engine_t *eng,
    ngx_log_t *log);


/* ---- paths.c: store, socket, locks: paths and their errors --------------- */

char *ngx_http_vlm_paths_store(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);
char *ngx_http_vlm_paths(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);


#endif /* _NGX_HTTP_VLM_CONF_H_INCLUDED_ */
