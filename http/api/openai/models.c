
/*
 * /v1/models: one model under each of its names.  Any worker answers, also
 * while the model loads: a request that arrives meanwhile waits for it.
 */


#include "../api.h"
#include "../model.h"


static ngx_int_t ngx_http_vlm_models_failed(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng);
static void ngx_http_vlm_models_put(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng, ngx_str_t *name);


ngx_int_t
ngx_http_vlm_models_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    ngx_str_t                *name;
    ngx_uint_t                i;
    vlm_json_out_t            w;

    if (eng->zone->state == NGX_HTTP_VLM_FAILED) {
        return ngx_http_vlm_models_failed(r, eng);
    }

    vlm_json_init(&w, 64 * 1024);
    vlm_json_open(&w, '{');

    vlm_json_add_string(&w, "object", "list");

    vlm_json_add_open(&w, "data", '[');

    for (i = 0; /* void */ ; i++) {
        name = ngx_http_vlm_model_name(eng, i);

        if (name == NULL) {
            break;
        }

        ngx_http_vlm_models_put(&w, eng, name);
    }

    vlm_json_shut(&w, ']');
    vlm_json_shut(&w, '}');
    (void) vlm_json_done(&w);

    return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
}


ngx_int_t
ngx_http_vlm_models_one_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    ngx_http_vlm_ctx_t       *ctx;
    vlm_json_out_t            w;

    if (eng->zone->state == NGX_HTTP_VLM_FAILED) {
        return ngx_http_vlm_models_failed(r, eng);
    }

    if (ngx_http_vlm_model_is(eng, piece) == NGX_OK) {
        vlm_json_init(&w, 64 * 1024);
        ngx_http_vlm_models_put(&w, eng, piece);
        (void) vlm_json_done(&w);

        return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
    }

    ctx = ngx_http_vlm_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_vlm_fail_param(ctx, "model");

    return ngx_http_vlm_send_error(r, ngx_http_vlm_model_missing(ctx, eng,
                                                                 piece),
                                   ctx->error.err.text);
}


static ngx_int_t
ngx_http_vlm_models_failed(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng)
{
    return ngx_http_vlm_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   "Model not initialized");
}


static void
ngx_http_vlm_models_put(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng, ngx_str_t *name)
{
    vlm_json_open(w, '{');

    vlm_json_add_text(w, "id", (char *) name->data, name->len);
    vlm_json_add_string(w, "object", "model");
    vlm_json_add_int(w, "created", eng->conf.created);
    vlm_json_add_string(w, "owned_by", "vlm");
    vlm_json_add_int(w, "max_model_len", eng->conf.vlm.context);

    vlm_json_shut(w, '}');
}
