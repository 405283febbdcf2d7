
/*
 * The ring of streams that took the hop and have ended, in the shared zone.
 *
 * The outer server sends its $request_id along, and looks under it when it
 * logs.  A client cannot name one: the outer server replaces that header, and
 * the inner one listens on a socket of ours.
 */


#include "ngx_http_vlm_hop.h"


static ngx_slab_pool_t *ngx_http_vlm_hop_pool(ngx_http_vlm_engine_t *eng);


static ngx_slab_pool_t *
ngx_http_vlm_hop_pool(ngx_http_vlm_engine_t *eng)
{
    return (ngx_slab_pool_t *) eng->zone->shm.addr;
}


void
ngx_http_vlm_hop_keep(ngx_http_request_t *r)
{
    ngx_uint_t                i;
    ngx_str_t                 usage;
    ngx_table_elt_t          *id;
    ngx_slab_pool_t          *slab;
    ngx_http_vlm_hops_t      *hops;
    ngx_http_vlm_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    if (!lcf->inner) {
        return;
    }

    id = ngx_http_vlm_header(r, "x-vlm-id");

    if (id == NULL || id->value.len != NGX_HTTP_VLM_HOP
        || ngx_http_vlm_usage(r, &usage) != NGX_OK)
    {
        return;
    }

    slab = ngx_http_vlm_hop_pool(lcf->engine);

    ngx_shmtx_lock(&slab->mutex);

    hops = lcf->engine->shm->hops;
    i = hops->next++ % NGX_HTTP_VLM_HOPS;

    hops->last[i].len = ngx_min(usage.len, NGX_HTTP_VLM_USAGE);

    ngx_memcpy(hops->last[i].id, id->value.data, NGX_HTTP_VLM_HOP);
    ngx_memcpy(hops->last[i].usage, usage.data, hops->last[i].len);

    ngx_shmtx_unlock(&slab->mutex);
}


ngx_int_t
ngx_http_vlm_hop_find(ngx_http_request_t *r, ngx_str_t *usage)
{
    ngx_uint_t                  i;
    ngx_slab_pool_t            *slab;
    ngx_http_vlm_hops_t        *hops;
    ngx_http_vlm_loc_conf_t    *lcf;
    ngx_http_vlm_main_conf_t   *mcf;
    ngx_http_variable_value_t  *id;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_vlm_module);
    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    id = ngx_http_get_indexed_variable(r, mcf->request_id);

    if (id == NULL || id->not_found || id->len != NGX_HTTP_VLM_HOP) {
        return NGX_DECLINED;
    }

    usage->len = 0;
    usage->data = ngx_pnalloc(r->pool, NGX_HTTP_VLM_USAGE);
    if (usage->data == NULL) {
        return NGX_ERROR;
    }

    slab = ngx_http_vlm_hop_pool(lcf->engine);

    ngx_shmtx_lock(&slab->mutex);

    hops = lcf->engine->shm->hops;

    for (i = 0; i < NGX_HTTP_VLM_HOPS && usage->len == 0; i++) {

        if (ngx_memcmp(hops->last[i].id, id->data, NGX_HTTP_VLM_HOP) == 0) {
            usage->len = hops->last[i].len;
            ngx_memcpy(usage->data, hops->last[i].usage, usage->len);
        }
    }

    ngx_shmtx_unlock(&slab->mutex);

    return usage->len ? NGX_OK : NGX_DECLINED;
}
