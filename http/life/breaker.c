
/*
 * The circuit breaker of an engine.  Two things count as a failure: the death
 * of the worker that has the model, and a job that the engine could not
 * complete for a reason that is not in its request.  An answer resets the
 * count.
 *
 * If the probe ends without a result, because its client left or its input was
 * wrong, the next request is the probe.
 */


#include "life.h"


vlm_breaker_state_t
ngx_http_vlm_breaker_state(ngx_http_vlm_engine_t *eng)
{
    return vlm_breaker_state(&eng->zone->breaker, eng->conf.failures,
                             eng->conf.pause, ngx_current_msec);
}


ngx_uint_t
ngx_http_vlm_breaker_reason(ngx_http_vlm_engine_t *eng, u_char *buf,
    size_t size)
{
    uint64_t  seconds;

    seconds = vlm_breaker_reason(&eng->zone->breaker, eng->conf.pause,
                                 ngx_current_msec, (char *) buf, size);

    return seconds ? (ngx_uint_t) seconds : ngx_http_vlm_metrics_retry(eng);
}


void
ngx_http_vlm_breaker_enter(ngx_http_vlm_ctx_t *ctx)
{
    if (ngx_http_vlm_breaker_state(ctx->engine) != VLM_BREAKER_CLOSED) {
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
    if (vlm_breaker_failed(&eng->zone->breaker, eng->conf.failures,
                           ngx_current_msec))
    {
        ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, 0,
                      "vlm_engine \"%V\" has failed %uL times in a row: "
                      "requests are refused for %M ms", &eng->name,
                      eng->zone->breaker.failures, eng->conf.pause);
    }
}


void
ngx_http_vlm_breaker_worked(ngx_http_vlm_engine_t *eng)
{
    if (vlm_breaker_worked(&eng->zone->breaker, eng->conf.failures)) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "vlm_engine \"%V\" answers again", &eng->name);
    }
}
