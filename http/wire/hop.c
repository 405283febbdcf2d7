
/*
 * The ring of ended streams that took the hop, in the shared zone.
 *
 * The outer server sends its $request_id along, and finds the stream by it
 * when it logs.  A client cannot choose the id: the outer server replaces that
 * header, and the inner one listens on a socket of ours.
 */


#include "wire.h"


#define NGX_HTTP_VLM_USAGE  (6 * NGX_INT_T_LEN + sizeof(" cancelled ")        \
                             + VLM_STORE_ID)

_Static_assert(NGX_HTTP_VLM_USAGE <= VLM_RING_TEXT, "VLM_RING_TEXT");


void
ngx_http_vlm_hop_keep(ngx_http_request_t *r)
{
    ngx_str_t                 usage;
    ngx_table_elt_t          *id;
    ngx_http_vlm_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    id = ngx_http_vlm_header(r, "x-vlm-id");

    if (id == NULL || id->value.len != VLM_RING_ID
        || ngx_http_vlm_usage(r, &usage) != NGX_OK)
    {
        return;
    }

    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(lcf->engine));

    vlm_ring_put(lcf->engine->zone->hops, (char *) id->value.data,
                 (char *) usage.data, usage.len);

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(lcf->engine));
}


static ngx_int_t
ngx_http_vlm_hop_find(ngx_http_request_t *r, ngx_str_t *usage)
{
    ngx_http_vlm_engine_t      *eng;
    ngx_http_vlm_main_conf_t   *mcf;
    ngx_http_variable_value_t  *id;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_vlm_module);
    eng = ngx_http_vlm_engine_of(r);

    id = ngx_http_get_indexed_variable(r, mcf->request_id);

    if (id == NULL || id->not_found || id->len != VLM_RING_ID) {
        return NGX_DECLINED;
    }

    usage->data = ngx_pnalloc(r->pool, VLM_RING_TEXT);
    if (usage->data == NULL) {
        return NGX_ERROR;
    }

    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));

    usage->len = vlm_ring_get(eng->zone->hops, (char *) id->data,
                              (char *) usage->data);

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));

    return usage->len ? NGX_OK : NGX_DECLINED;
}


/* seconds with milliseconds, as nginx logs its times */

static u_char *
ngx_http_vlm_hop_time(u_char *p, ngx_msec_t from, ngx_msec_t to)
{
    ngx_msec_int_t  ms;

    if (to == 0) {
        return ngx_sprintf(p, "- ");
    }

    ms = ngx_max((ngx_msec_int_t) (to - from), 0);

    return ngx_sprintf(p, "%T.%03M ", (time_t) ms / 1000,
                       (ngx_msec_t) ms % 1000);
}


ngx_int_t
ngx_http_vlm_usage(ngx_http_request_t *r, ngx_str_t *usage)
{
    u_char              *p;
    const char          *finish;
    ngx_http_vlm_ctx_t  *ctx;

    static const char *const  names[] = {
        [VLM_FINISH_STOP] = "stop",
        [VLM_FINISH_LENGTH] = "length",
        [VLM_FINISH_CANCELLED] = "cancelled"
    };

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    if (ctx == NULL || ctx->engine == NULL) {
        return NGX_DECLINED;
    }

    p = ngx_pnalloc(r->pool, NGX_HTTP_VLM_USAGE);
    if (p == NULL) {
        return NGX_ERROR;
    }

    usage->data = p;

    p = ngx_http_vlm_hop_time(p, ctx->times.arrived, ctx->times.started);
    p = ngx_http_vlm_hop_time(p, ctx->times.arrived, ctx->times.first);

    finish = names[ctx->finish];

    if (finish == NULL) {
        finish = ctx->times.started == 0 ? "-"
                 : ctx->error.err.code == VLM_OK ? "cancelled" : "error";
    }

    if (ctx->usage.prompt_tokens) {
        p = ngx_sprintf(p, "%uD %uD %s %uD %V%Z", ctx->usage.prompt_tokens,
                        ctx->usage.completion_tokens, finish,
                        ctx->usage.cached_tokens, &ctx->session);

    } else {
        p = ngx_sprintf(p, "- - %s - %V%Z", finish, &ctx->session);
    }

    usage->len = p - usage->data - 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_add_usage(ngx_http_request_t *r)
{
    ngx_int_t  rc;
    ngx_str_t  usage;

    rc = ngx_http_vlm_usage(r, &usage);

    if (rc == NGX_DECLINED) {
        return NGX_OK;
    }

    return rc == NGX_OK ? ngx_http_vlm_add_header(r, "X-Vlm-Usage",
                                                  (char *) usage.data)
                        : rc;
}


ngx_int_t
ngx_http_vlm_hop_usage(ngx_http_request_t *r, ngx_str_t *usage)
{
    ngx_int_t         rc;
    ngx_table_elt_t  *h;

    if (ngx_http_vlm_engine_of(r) == NULL) {
        return NGX_DECLINED;
    }

    rc = ngx_http_vlm_hop_find(r, usage);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    h = ngx_http_vlm_header_in(&r->upstream->headers_in.headers,
                               "x-vlm-usage");

    if (h == NULL) {
        return ngx_http_vlm_usage(r, usage);
    }

    *usage = h->value;

    return NGX_OK;
}
