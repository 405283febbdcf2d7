
/*
 * A request that has failed: logs a server's error, and answers in the form of
 * the request's API.
 */


#include "line.h"


/* the texts for the client and for the log: ngx_http_vlm_refuse_store() */

ngx_int_t
ngx_http_vlm_fail_store(ngx_http_vlm_ctx_t *ctx,
    vlm_store_err_t *err)
{
    if (err->code == VLM_STORE_EINPUT) {
        return ngx_http_vlm_fail_input(ctx, "%s", err->text);
    }

    ctx->stored = *err;

    return ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, "%s",
                             err->text);
}


ngx_int_t
ngx_http_vlm_fail_answer(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->error.status >= NGX_HTTP_INTERNAL_SERVER_ERROR) {

        if (ctx->stored.code != VLM_STORE_OK) {
            return ngx_http_vlm_refuse_store(ctx->request, ctx->engine,
                                             &ctx->stored);
        }

        ngx_http_vlm_log(NGX_LOG_ERR, ctx->request->connection->log, 0,
                         ctx->engine, "%s", ctx->error.err.text);

        ctx->logged = 1;
    }

    return ngx_http_vlm_fail_send(ctx);
}


/* without a status the engine has refused a job, or failed in it */

ngx_int_t
ngx_http_vlm_fail_send(ngx_http_vlm_ctx_t *ctx)
{
    ngx_int_t              rc;
    ngx_http_vlm_error_t  *e;

    e = &ctx->error;

    if (ctx->out.begun) {
        return ngx_http_vlm_stream_error(ctx, e->status ? e->status
                                              : NGX_HTTP_INTERNAL_SERVER_ERROR,
                                         e->err.text);
    }

    if (e->status == NGX_HTTP_SERVICE_UNAVAILABLE
        && ngx_http_vlm_retry_after(ctx->request,
                                    ngx_http_vlm_metrics_retry(ctx->engine))
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ctx->dialect->failed ? ctx->dialect->failed(ctx) : NGX_DECLINED;

    if (rc == NGX_OK || e->status == NGX_HTTP_OK) {
        ctx->streaming = 0;

        return ngx_http_vlm_send_answer(ctx);
    }

    if (e->status == 0) {
        e->param[0] = '\0';
        (void) ngx_http_vlm_fail_engine(ctx, NULL, NULL);
    }

    return ngx_http_vlm_send_error(ctx->request, e->status, e->err.text);
}
