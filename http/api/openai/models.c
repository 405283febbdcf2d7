
/*
 * /v1/models: each model of the location under each of its names.  Any worker
 * answers, also while a model loads: a request that arrives meanwhile waits for
 * it.
 */


#include "../model.h"


/* dir: an adapter's, or empty */

static void
ngx_http_vlm_models_put(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng, ngx_str_t *name, const char *dir)
{
    vlm_json_open(w, '{');

    vlm_json_add_text(w, "id", (char *) name->data, name->len);
    vlm_json_add_string(w, "object", "model");
    vlm_json_add_int(w, "created", eng->conf.created);
    vlm_json_add_string(w, "owned_by", "vlm");
    vlm_json_add_int(w, "max_model_len", eng->conf.vlm.context);

    if (dir[0]) {
        vlm_json_add_text(w, "parent", (char *) eng->name.data,
                          eng->name.len);
        ngx_http_vlm_adapter_put_path(w, "root", eng, dir);
    }

    vlm_json_shut(w, '}');
}


static ngx_int_t
ngx_http_vlm_models_one(ngx_http_request_t *r, ngx_str_t *name)
{
    char                    dir[VLM_ADAPTER_NAME];
    ngx_int_t               rc;
    ngx_uint_t              adapted;
    vlm_json_out_t          w;
    ngx_http_vlm_ctx_t     *ctx;
    ngx_http_vlm_engine_t  *eng;

    ctx = ngx_http_vlm_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    eng = ngx_http_vlm_model_engine(r, name);

    if (eng) {
        ctx->engine = eng;

        rc = ngx_http_vlm_model_adapter(ctx, name);

        if (rc == NGX_ERROR) {
            return ngx_http_vlm_send_error(r, ctx->error.status,
                                           ctx->error.err.text);
        }

        adapted = rc == NGX_OK
                  && ngx_http_vlm_adapter_listed(eng, ctx->adapter, dir);

        vlm_json_init(&w, 64 * 1024);
        ngx_http_vlm_models_put(&w, eng, name, adapted ? dir : "");

        return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
    }

    ngx_http_vlm_fail_param(ctx, "model");
    (void) ngx_http_vlm_model_missing(ctx, name);

    return ngx_http_vlm_send_error(r, ctx->error.status, ctx->error.err.text);
}


ngx_int_t
ngx_http_vlm_models_handler(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece)
{
    ngx_uint_t      i, n;
    vlm_json_out_t  w;

    vlm_json_init(&w, NGX_HTTP_VLM_ENGINES * 64 * 1024);
    vlm_json_open(&w, '{');

    vlm_json_add_string(&w, "object", "list");

    vlm_json_add_open(&w, "data", '[');

    for (n = 0, i = 0; (eng = ngx_http_vlm_engine_at(r, i)) != NULL; i++) {

        if (eng->zone->state != NGX_HTTP_VLM_FAILED) {
            ngx_http_vlm_model_names(&w, eng, ngx_http_vlm_models_put);
            n++;
        }
    }

    if (n == 0 || piece->len) {
        vlm_json_release(&w);

        return n ? ngx_http_vlm_models_one(r, piece)
                 : ngx_http_vlm_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                           "Model not initialized");
    }

    vlm_json_shut(&w, ']');
    vlm_json_shut(&w, '}');

    return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
}
