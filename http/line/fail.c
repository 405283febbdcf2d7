
/*
 * A request that fails in a thread: the status and the sentence are kept, and
 * the event loop answers with them in the form of the request's API.
 */


#include "line.h"


/* ends the request with this status and text, cut to whole characters */

ngx_int_t
ngx_http_vlm_fail(ngx_http_vlm_ctx_t *ctx, ngx_uint_t status,
    const char *fmt, ...)
{
    char     *text;
    u_char   *last;
    va_list   args;

    text = ctx->error.err.text;

    va_start(args, fmt);
    last = ngx_vslprintf((u_char *) text,
                         (u_char *) text + sizeof(ctx->error.err.text) - 1,
                         fmt, args);
    va_end(args);

    text[vlm_utf8_whole(text, (char *) last - text)] = '\0';

    ctx->error.status = status;

    return NGX_ERROR;
}


ngx_int_t
ngx_http_vlm_fail_store(ngx_http_vlm_ctx_t *ctx,
    vlm_store_err_t *err)
{
    if (err->code == VLM_STORE_EINPUT) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_BAD_REQUEST, "%s",
                                  err->text);
    }

    /* the texts for the client and for the log: ngx_http_vlm_refuse_store() */

    ctx->stored = *err;

    return ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, "%s",
                              err->text);
}


/* without a status the engine has refused a job */

ngx_int_t
ngx_http_vlm_fail_answer(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->error.status >= NGX_HTTP_INTERNAL_SERVER_ERROR) {

        if (ctx->stored.code != VLM_STORE_OK) {
            return ngx_http_vlm_refuse_store(ctx->request, ctx->engine,
                                             &ctx->stored);
        }

        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "vlm_engine \"%V\": %s", &ctx->engine->name,
                      ctx->error.err.text);

        ctx->logged = 1;

        if (ctx->error.status == NGX_HTTP_SERVICE_UNAVAILABLE && !ctx->out.begun
            && ngx_http_vlm_retry_after(ctx->request,
                                      ngx_http_vlm_metrics_retry(ctx->engine))
               != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (ctx->out.begun) {
        return ngx_http_vlm_stream_error(ctx,
                                         ctx->error.status ? ctx->error.status
                                              : NGX_HTTP_INTERNAL_SERVER_ERROR,
                                         ctx->error.err.text);
    }

    return ctx->dialect->failed(ctx);
}


void
ngx_http_vlm_fail_param(ngx_http_vlm_ctx_t *ctx, const char *fmt, ...)
{
    char     *last;
    va_list   args;

    va_start(args, fmt);
    last = (char *) ngx_vslprintf((u_char *) ctx->error.param,
                                  (u_char *) ctx->error.param
                                  + sizeof(ctx->error.param) - 1,
                                  fmt, args);
    va_end(args);

    ctx->error.param[vlm_utf8_whole(ctx->error.param,
                                    last - ctx->error.param)] = '\0';
}
