
/*
 * The state of an engine as any worker reports it: health, metrics, variables.
 */


#ifndef _NGX_HTTP_VLM_STATUS_H_INCLUDED_
#define _NGX_HTTP_VLM_STATUS_H_INCLUDED_


#include "../line/line.h"


/* ---- health.c ------------------------------------------------------------ */

/* the engine's state now; shm is corrected if its owner is gone */

ngx_http_vlm_state_e ngx_http_vlm_health_state(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_shm_t *shm);

/* the zone has an owner whose event loop has missed its heartbeats */

ngx_uint_t ngx_http_vlm_health_silent(ngx_http_vlm_shm_t *shm);

ngx_int_t ngx_http_vlm_health_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);

/* the adapters that were left out, with their reasons, if there are any */

void ngx_http_vlm_health_left_out(vlm_json_out_t *w, const char *key,
    ngx_http_vlm_engine_t *eng, ngx_http_vlm_shm_t *shm);

/* the 503 of the first engine that answers no requests; declined: all answer */

ngx_int_t ngx_http_vlm_health_unready(ngx_http_request_t *r);

/* the liveness probe: 200 while a worker answers; the readiness probe: 200
   while the location's engines answer requests, else 503 */

ngx_int_t ngx_http_vlm_health_live_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_health_ready_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);


/* ---- status.c: vlm_status ------------------------------------------------ */

/* the content handler of vlm_status */

ngx_int_t ngx_http_vlm_status_handler(ngx_http_request_t *r);


/* ---- vars.c: variables for log_format ------------------------------------ */

ngx_int_t ngx_http_vlm_add_variables(ngx_conf_t *cf);


#endif /* _NGX_HTTP_VLM_STATUS_H_INCLUDED_ */
