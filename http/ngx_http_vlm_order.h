
/*
 * The order of the line: "priority", "fair" and "cache_salt", what they say of
 * a request, and who is next.  Included by ngx_http_vlm.h.
 */


#ifndef _NGX_HTTP_VLM_ORDER_H_INCLUDED_
#define _NGX_HTTP_VLM_ORDER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


typedef struct ngx_http_vlm_client_s  ngx_http_vlm_client_t;


/* of an engine */

typedef struct {
    ngx_http_complex_value_t     *priority;    /* or NULL */
    ngx_http_complex_value_t     *fair;        /* or NULL */
    ngx_http_complex_value_t     *salt;        /* or NULL */
    ngx_msec_t                    priority_age;    /* that one level is worth */
    ngx_msec_t                    fair_age;    /* 0: queue timeout */

    ngx_rbtree_t                  line[2];     /* by rank: a prompt next; the
                                                  second has the heavy ones */
    ngx_rbtree_node_t             line_sentinel;
    ngx_rbtree_t                  clients;     /* who have requests here */
    ngx_rbtree_node_t             clients_sentinel;
    int64_t                       ahead;       /* ms, of the line's clock */
    ngx_msec_t                    counted;     /* when places were */
    ngx_uint_t                    walk;        /* and how often */
} ngx_http_vlm_order_t;


/* of a request */

#define NGX_HTTP_VLM_PRIORITY      10      /* and -10 */
#define NGX_HTTP_VLM_SALT  20                  /* bytes, of a hash */

typedef struct {
    ngx_int_t                     priority;
    uint64_t                      key;         /* of its client, 0: alone */
    u_char                        salt[NGX_HTTP_VLM_SALT];
    ngx_uint_t                    salted;

    int64_t                       start;       /* on the line's clock, and */
    int64_t                       value;       /* less what its priority is
                                                  worth */
    ngx_http_vlm_client_t        *client;
    ngx_rbtree_node_t             node;
    ngx_uint_t                    in_line;     /* in the tree */
    ngx_uint_t                    place;       /* told by this walk */
    ngx_uint_t                    walk;
} ngx_http_vlm_rank_t;


char *ngx_http_vlm_param_priority(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
char *ngx_http_vlm_param_fair(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
char *ngx_http_vlm_param_cache_salt(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);

void ngx_http_vlm_order_init(ngx_http_vlm_engine_t *eng);

/* may an order that was said once change? */

ngx_uint_t ngx_http_vlm_order_set(ngx_http_vlm_engine_t *eng);

/* $vlm_line: what the hop takes along */

ngx_int_t ngx_http_vlm_order_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* at its headers; and its rank, by its turn among the arrivals; NGX_ERROR */

ngx_int_t ngx_http_vlm_order_read(ngx_http_vlm_ctx_t *ctx);
ngx_int_t ngx_http_vlm_order_rank(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_order_leave(ngx_http_vlm_ctx_t *ctx);    /* safe twice */

ngx_uint_t ngx_http_vlm_order_before(ngx_http_vlm_ctx_t *one,
    ngx_http_vlm_ctx_t *two);

/* loop: what the directives say of r; and of its salt as much as a store
   wants, 0: none */

ngx_int_t ngx_http_vlm_order_value(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_http_vlm_rank_t *rank);
uint64_t ngx_http_vlm_order_salt(ngx_http_vlm_rank_t *rank);

/* would a request that has no rank yet go before one that has? */

ngx_uint_t ngx_http_vlm_order_would(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_ctx_t *other);

/* the trees of those that want a prompt, and their first, a heavy one only if
   heavy is set; NULL: there is none */

void ngx_http_vlm_order_insert(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_order_remove(ngx_http_vlm_ctx_t *ctx);   /* safe twice */
ngx_http_vlm_ctx_t *ngx_http_vlm_order_first(ngx_http_vlm_engine_t *eng,
    ngx_uint_t heavy);

/* the engine has it */

void ngx_http_vlm_order_begun(ngx_http_vlm_ctx_t *ctx);

/* which one of the tree it is, from 1; 0: not in it, or far behind */

ngx_uint_t ngx_http_vlm_order_place(ngx_http_vlm_ctx_t *ctx);


#endif /* _NGX_HTTP_VLM_ORDER_H_INCLUDED_ */
