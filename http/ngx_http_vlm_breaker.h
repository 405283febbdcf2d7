
/*
 * The circuit breaker: an engine that fails again and again is left alone for
 * a while, and its clients are told so at once.  Included by ngx_http_vlm.h.
 */


#ifndef _NGX_HTTP_VLM_BREAKER_H_INCLUDED_
#define _NGX_HTTP_VLM_BREAKER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* of an engine; in its zone, so that it outlives the workers that fail */

typedef struct {
    ngx_atomic_t                  failures;    /* in a row */
    ngx_atomic_t                  when;        /* the last, ngx_current_msec */
    ngx_atomic_t                  probe;       /* somebody tries it */
    ngx_atomic_t                  opened;      /* how often */
} ngx_http_vlm_breaker_t;


typedef enum {
    NGX_HTTP_VLM_CLOSED = 0,
    NGX_HTTP_VLM_OPEN,                         /* nobody is let through */
    NGX_HTTP_VLM_PROBING                       /* one is */
} ngx_http_vlm_breaker_e;


char *ngx_http_vlm_param_breaker(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n);

/* any worker; names are in this order */

extern const char *const  ngx_http_vlm_breaker_names[];

ngx_http_vlm_breaker_e ngx_http_vlm_breaker_state(ngx_http_vlm_engine_t *eng);

/* any worker, before a body is read: NGX_DECLINED, it is let through; or the
   refusal was sent, and its return value as of a content handler */

ngx_int_t ngx_http_vlm_refuse_failing(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng);

/* the sentence of that refusal, in buf, with a zero; s, for Retry-After */

ngx_uint_t ngx_http_vlm_breaker_reason(ngx_http_vlm_engine_t *eng,
    u_char *buf, size_t size);

/* the designated worker: it is let through, perhaps as the probe; it ends */

void ngx_http_vlm_breaker_enter(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_breaker_leave(ngx_http_vlm_ctx_t *ctx);  /* safe twice */

/* the engine has failed, or answered; a worker starts, whose predecessor had
   perhaps a probe */

void ngx_http_vlm_breaker_failed(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_breaker_worked(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_breaker_start(ngx_http_vlm_engine_t *eng);


#endif /* _NGX_HTTP_VLM_BREAKER_H_INCLUDED_ */
