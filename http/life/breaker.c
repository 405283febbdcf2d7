
/*
 * The circuit breaker.  Two things count as a failure: the death of the worker
 * that has the model, and a job that the engine could not complete for
 * a reason that is not in its request.  An answer resets the count.
 *
 * After "failures" in a row all requests are refused for a pause.  Then one
 * request is admitted as a probe.  An answer closes the breaker; another
 * failure begins the pause again.  If the probe ends without a result, because
 * its client left or its input was wrong, the next request is the probe.
 */


#include "life.h"


ngx_http_vlm_breaker_e
ngx_http_vlm_breaker_state(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_breaker_t  *b;

    b = &eng->zone->breaker;

    if (eng->conf.failures == 0 || b->failures < eng->conf.failures) {
        return NGX_HTTP_VLM_CLOSED;
    }

    return ngx_current_msec - b->when < eng->conf.pause ? NGX_HTTP_VLM_OPEN
                                                   : NGX_HTTP_VLM_PROBING;
}


ngx_uint_t
ngx_http_vlm_breaker_reason(ngx_http_vlm_engine_t *eng, u_char *buf,
    size_t size)
{
    ngx_msec_t               ms;
    ngx_uint_t               seconds;
    ngx_http_vlm_breaker_t  *b;

    b = &eng->zone->breaker;
    ms = ngx_current_msec - b->when;

    if (ms >= eng->conf.pause) {
        (void) ngx_snprintf(buf, size - 1, "The engine has failed %uA times "
                            "in a row, one request tries it now%Z",
                            b->failures);

        return ngx_http_vlm_metrics_retry(eng);
    }

    seconds = (eng->conf.pause - ms + 999) / 1000;

    (void) ngx_snprintf(buf, size - 1, "The engine has failed %uA times in a "
                        "row, it is tried again in %ui seconds%Z",
                        b->failures, seconds);

    return seconds;
}


void
ngx_http_vlm_breaker_enter(ngx_http_vlm_ctx_t *ctx)
{
    if (ngx_http_vlm_breaker_state(ctx->engine) != NGX_HTTP_VLM_CLOSED) {
        ctx->place.probe = 1;
        ctx->engine->zone->breaker.probe = 1;
    }
}


void
ngx_http_vlm_breaker_leave(ngx_http_vlm_ctx_t *ctx)
{
    ctx->place.probe = 0;
    ctx->engine->zone->breaker.probe = 0;
}


void
ngx_http_vlm_breaker_failed(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_breaker_t  *b;

    b = &eng->zone->breaker;

    b->when = ngx_current_msec;

    if (ngx_atomic_fetch_add(&b->failures, 1) + 1 == eng->conf.failures) {
        (void) ngx_atomic_fetch_add(&b->opened, 1);

        ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, 0,
                      "vlm_engine \"%V\" has failed %ui times in a row: "
                      "requests are refused for %M ms",
                      &eng->name, eng->conf.failures, eng->conf.pause);
    }
}


void
ngx_http_vlm_breaker_worked(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_breaker_t  *b;

    b = &eng->zone->breaker;

    if (ngx_http_vlm_breaker_state(eng) != NGX_HTTP_VLM_CLOSED) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "vlm_engine \"%V\" answers again", &eng->name);
    }

    b->failures = 0;
}
