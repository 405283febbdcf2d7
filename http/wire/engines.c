
/*
 * The engines of a location, and the one of them that a request is for.
 */


#include "wire.h"


ngx_http_vlm_engine_t *
ngx_http_vlm_engine_at(ngx_http_request_t *r, ngx_uint_t i)
{
    ngx_http_vlm_engine_t    **engines;
    ngx_http_vlm_loc_conf_t   *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    if (lcf->engines == NULL) {
        return i == 0 ? lcf->engine : NULL;
    }

    engines = lcf->engines->elts;

    return i < lcf->engines->nelts ? engines[i] : NULL;
}


ngx_http_vlm_engine_t *
ngx_http_vlm_engine_of(ngx_http_request_t *r)
{
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    return ctx && ctx->engine ? ctx->engine : ngx_http_vlm_engine_at(r, 0);
}
