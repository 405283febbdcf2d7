
/*
 * A request for an answer, of any dialect: it is admitted when its headers
 * were read, enters the queue when its body is there, and is then parsed in a
 * thread.
 */


#include "line.h"


static ngx_int_t
ngx_http_vlm_ask_admit(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_dialect_t *dialect)
{
    ngx_int_t            rc;
    ngx_time_t          *tp;
    ngx_http_vlm_ctx_t  *ctx;

    rc = ngx_http_vlm_queue_admit(r, eng);

    if (rc != NGX_OK) {
        return rc;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    ngx_http_vlm_breaker_enter(ctx);
    ngx_http_vlm_prepare_expect(ctx);

    ctx->dialect = dialect;

    tp = ngx_timeofday();

    ctx->times.wall = (int64_t) tp->sec * 1000000 + tp->msec * 1000;

    return NGX_OK;
}


static void
ngx_http_vlm_ask_body(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_vlm_ctx_t       *ctx;
    ngx_http_vlm_loc_conf_t  *lcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    if (ctx->engine->life.failed) {
        ngx_http_vlm_queue_refuse(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                  "Model not initialized");
        return;
    }

    if (ctx->engine->life.released) {

        /* the body took longer to arrive than this worker had the model */

        lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

        ngx_http_vlm_queue_leave(ctx);
        ngx_http_finalize_request(r, lcf->inner ? ngx_http_vlm_refuse_moved(r)
                                                : lcf->hop(r));
        return;
    }

    ctx->body.from = r->request_body;

    if (ngx_http_vlm_queue_wait(ctx) != NGX_OK) {
        rc = ngx_http_vlm_refuse_full(r, ctx->engine);

        ngx_http_vlm_queue_leave(ctx);
        ngx_http_finalize_request(r, rc);
        return;
    }

    ngx_http_vlm_prepare_add(ctx);
}


ngx_int_t
ngx_http_vlm_ask(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_dialect_t *dialect)
{
    ngx_int_t  rc;

    if (eng->life.failed || eng->store == NULL) {
        return ngx_http_vlm_refuse(r, eng, "Model not initialized");
    }

    rc = ngx_http_vlm_refuse_failing(r, eng);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_vlm_ask_admit(r, eng, dialect);

    if (rc != NGX_OK) {
        return rc == NGX_BUSY ? ngx_http_vlm_refuse_full(r, eng) : rc;
    }

    return ngx_http_vlm_body_read(r, ngx_http_vlm_ask_body);
}


ngx_int_t
ngx_http_vlm_ask_read(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_dialect_t *dialect)
{
    ngx_int_t  rc;

    rc = ngx_http_vlm_ask_admit(r, eng, dialect);

    if (rc == NGX_OK) {
        ngx_http_vlm_ask_body(r);
    }

    return rc;
}
