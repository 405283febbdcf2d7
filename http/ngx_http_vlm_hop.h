
/*
 * What became of streams that had taken the hop, for the log of the worker
 * that accepted them: their header came too early to say it.  It is left in
 * the shared zone under the outer request's id.
 */


#ifndef _NGX_HTTP_VLM_HOP_H_INCLUDED_
#define _NGX_HTTP_VLM_HOP_H_INCLUDED_


#include "ngx_http_vlm.h"


#define NGX_HTTP_VLM_HOPS   128                /* the latest ones */
#define NGX_HTTP_VLM_HOP    32                 /* bytes of $request_id */
#define NGX_HTTP_VLM_USAGE  (6 * NGX_INT_T_LEN + sizeof(" cancelled ")        \
                             + NGX_HTTP_VLM_STORE_ID)


typedef struct ngx_http_vlm_hops_s {
    ngx_uint_t                    next;

    struct {
        u_char                    id[NGX_HTTP_VLM_HOP];
        size_t                    len;
        u_char                    usage[NGX_HTTP_VLM_USAGE];
    } last[NGX_HTTP_VLM_HOPS];
} ngx_http_vlm_hops_t;


/* inner server, before the last bytes of a stream */

void ngx_http_vlm_hop_keep(ngx_http_request_t *r);

/* outer server: in the request's pool; NGX_DECLINED: nothing was left */

ngx_int_t ngx_http_vlm_hop_find(ngx_http_request_t *r, ngx_str_t *usage);

/* of the request's own run, as a header has it; NGX_DECLINED: there was none */

ngx_int_t ngx_http_vlm_usage(ngx_http_request_t *r, ngx_str_t *usage);

/* the same of a request that took the hop: what was left at its end, or what
   the inner server's header said */

ngx_int_t ngx_http_vlm_hop_usage(ngx_http_request_t *r, ngx_str_t *usage);

/* from the inner server's header filter */

ngx_int_t ngx_http_vlm_add_usage(ngx_http_request_t *r);


#endif /* _NGX_HTTP_VLM_HOP_H_INCLUDED_ */
