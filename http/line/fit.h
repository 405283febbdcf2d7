
/*
 * Refuses a request that can never fit the context, while its body is parsed:
 * see fit.c.
 */


#ifndef _NGX_HTTP_VLM_FIT_H_INCLUDED_
#define _NGX_HTTP_VLM_FIT_H_INCLUDED_


#include "line.h"


/* thread: texts, and pictures by their tokens, that a prompt will have in any
   case; NGX_OK, or more than fit: the request has ended */

typedef struct {
    const char                   *text;        /* or NULL and tokens */
    size_t                        len;
    uint32_t                      tokens;
} ngx_http_vlm_fit_t;

ngx_int_t ngx_http_vlm_fit(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_fit_t *parts, size_t n);


#endif /* _NGX_HTTP_VLM_FIT_H_INCLUDED_ */
