
/*
 * The rows of the table of parameters, and the functions that read their
 * values: for param.c and param_value.c.
 */


#ifndef _NGX_HTTP_VLM_PARAM_H_INCLUDED_
#define _NGX_HTTP_VLM_PARAM_H_INCLUDED_


#include "conf.h"


/* the block that is read */

typedef struct ngx_http_vlm_param_s  ngx_http_vlm_param_t;

typedef struct {
    ngx_conf_t                   *cf;
    ngx_http_vlm_engine_t        *engine;
    const ngx_http_vlm_param_t   *row;         /* of the value at hand */
    u_char                       *seen;        /* [rows] */
} ngx_http_vlm_param_ctx_t;

typedef char *ngx_http_vlm_param_set_t(ngx_http_vlm_param_ctx_t *ctx,
    ngx_str_t *value);


/* a row of the table: a parameter, or another value of the one above it */

struct ngx_http_vlm_param_s {
    ngx_str_t                     name;        /* or "timeout=" of a value */
    ngx_uint_t                    max;         /* values of a parameter, 1 to
                                                  max; 0: a value */
    ngx_http_vlm_param_set_t     *set;
    off_t                         low;         /* the least value, */
    off_t                         high;        /* and the largest */
    size_t                        offset;      /* of a member of eng->conf, */
    size_t                        size;        /* and its bytes */
    void                         *post;        /* the words to choose from */
    const char                   *error;       /* with "%V", the value */
};


/* param_value.c: a function for each kind of value, and for each parameter that
   needs one of its own */

ngx_http_vlm_param_set_t  ngx_http_vlm_param_refuse;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_num;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_size;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_msec;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_sec;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_float;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_word;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_path;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_name;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_text;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_pool;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_alias;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_weights;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_device;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_device_value;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_ocr;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_priority;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_breaker_off;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_cache;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_lora;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_store;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_store_files;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_store_other;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_store_max;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_socket;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_retrieval;
ngx_http_vlm_param_set_t  ngx_http_vlm_param_encoder;


#endif /* _NGX_HTTP_VLM_PARAM_H_INCLUDED_ */
