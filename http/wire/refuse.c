
/*
 * Refusals common to all APIs: each is counted, logged, and has a Retry-After
 * where a retry can succeed.
 */


#include "wire.h"


static ngx_int_t
ngx_http_vlm_refuse_until(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, ngx_uint_t seconds, const char *text)
{
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ngx_http_vlm_ctx(r);

    if (ctx == NULL || ngx_http_vlm_retry_after(r, seconds) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    (void) ngx_http_vlm_fail_code(ctx, status, code, "%s", text);

    return ngx_http_vlm_send_error(r, status, ctx->error.err.text);
}


ngx_int_t
ngx_http_vlm_refuse(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    const char *text)
{
    ngx_http_vlm_metrics_refused(r, eng, NGX_HTTP_VLM_UNAVAILABLE, text);

    return ngx_http_vlm_refuse_until(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                     ngx_http_vlm_metrics_retry(eng), text);
}


ngx_int_t
ngx_http_vlm_refuse_moved(ngx_http_request_t *r)
{
    return ngx_http_vlm_refuse_until(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, 1,
                                     "The model is moving to another worker, "
                                     "try again");
}


ngx_int_t
ngx_http_vlm_refuse_full(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng)
{
    u_char  text[128];

    (void) ngx_snprintf(text, sizeof(text) - 1, "The queue is full: %ui "
                        "requests are waiting%Z", eng->conf.queue_size);

    ngx_http_vlm_metrics_refused(r, eng, NGX_HTTP_VLM_QUEUE_FULL,
                                 (char *) text);

    return ngx_http_vlm_refuse_until(r, NGX_HTTP_TOO_MANY_REQUESTS,
                                     "queue_full",
                                     ngx_http_vlm_metrics_retry(eng),
                                     (char *) text);
}


ngx_int_t
ngx_http_vlm_refuse_failing(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng)
{
    u_char               text[128];
    ngx_uint_t           seconds;
    vlm_breaker_state_t  state;

    state = ngx_http_vlm_breaker_state(eng);

    if (state == VLM_BREAKER_CLOSED
        || (state == VLM_BREAKER_PROBING && !eng->zone->breaker.probe))
    {
        return NGX_DECLINED;
    }

    seconds = ngx_http_vlm_breaker_reason(eng, text, sizeof(text));

    ngx_http_vlm_metrics_refused(r, eng, NGX_HTTP_VLM_BREAKER, (char *) text);

    return ngx_http_vlm_refuse_until(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                     "engine_failing", seconds, (char *) text);
}


ngx_int_t
ngx_http_vlm_refuse_store(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    vlm_store_err_t *err)
{
    ngx_uint_t  status;

    ngx_http_vlm_zone_store(eng, err);

    switch (err->code) {

    case VLM_STORE_NOTFOUND:
        return ngx_http_vlm_send_error(r, NGX_HTTP_NOT_FOUND, err->text);

    case VLM_STORE_EINPUT:
        return ngx_http_vlm_send_error(r, NGX_HTTP_BAD_REQUEST, err->text);

    case VLM_STORE_ELIMIT:
        return ngx_http_vlm_send_error(r, NGX_HTTP_CONFLICT, err->text);

    case VLM_STORE_EFULL:
        status = NGX_HTTP_INSUFFICIENT_STORAGE;
        break;

    case VLM_STORE_EBUSY:
    case VLM_STORE_EDOWN:
    case VLM_STORE_EREFUSES:
        status = NGX_HTTP_SERVICE_UNAVAILABLE;
        break;

    default:
        status = NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_vlm_log(NGX_LOG_ERR, r->connection->log, 0, eng, "%s", err->text);

    if (status == NGX_HTTP_SERVICE_UNAVAILABLE
        && ngx_http_vlm_retry_after(r, 1) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_vlm_send_error(r, status, vlm_store_text(err->code));
}
