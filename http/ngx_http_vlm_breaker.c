
/*
 * The circuit breaker.  A failure is a death of the worker with the model, or a
 * job that the engine could not do, whatever its client asked for; an answer
 * ends the row of them.
 *
 * After so many in a row everybody is refused for a pause.  Then one request
 * is let through: if it is answered, all are; if the engine fails once more,
 * the pause begins again; and if it ends without a verdict, for its client
 * left or asked for nonsense, the next one is let through in its place.
 */


#include "ngx_http_vlm.h"


#define NGX_HTTP_VLM_MAX_FAILURES  1000


const char *const  ngx_http_vlm_breaker_names[] = {
    "closed", "open", "probing"
};


char *
ngx_http_vlm_breaker_param(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    ngx_int_t    failures;
    ngx_str_t    text;
    ngx_uint_t   i;

    if (n == 1 && ngx_strcmp(value[0].data, "off") == 0) {
        eng->failures = 0;
        return NGX_CONF_OK;
    }

    for (i = 0; i < n; i++) {

        if (ngx_strncmp(value[i].data, "failures=", 9) == 0) {

            failures = ngx_atoi(value[i].data + 9, value[i].len - 9);

            if (failures < 1 || failures > NGX_HTTP_VLM_MAX_FAILURES) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "breaker %V is not a number from 1 to %d",
                                   &value[i], NGX_HTTP_VLM_MAX_FAILURES);
                return NGX_CONF_ERROR;
            }

            eng->failures = failures;
            continue;
        }

        if (ngx_strncmp(value[i].data, "pause=", 6) == 0) {

            text.data = value[i].data + 6;
            text.len = value[i].len - 6;

            if (ngx_http_vlm_param_time(cf, "breaker pause", &text,
                                        &eng->pause)
                != NGX_CONF_OK)
            {
                return NGX_CONF_ERROR;
            }

            continue;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown value \"%V\" in breaker, which is off or "
                           "takes failures=number and pause=time", &value[i]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


ngx_http_vlm_breaker_e
ngx_http_vlm_breaker_state(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_breaker_t  *b;

    b = &eng->shm->breaker;

    if (eng->failures == 0 || b->failures < eng->failures) {
        return NGX_HTTP_VLM_CLOSED;
    }

    return ngx_current_msec - b->when < eng->pause ? NGX_HTTP_VLM_OPEN
                                                   : NGX_HTTP_VLM_PROBING;
}


ngx_int_t
ngx_http_vlm_breaker_refuse(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng)
{
    u_char                   text[128];
    ngx_uint_t               seconds;
    ngx_http_vlm_ctx_t      *ctx;
    ngx_http_vlm_breaker_e   state;

    state = ngx_http_vlm_breaker_state(eng);

    if (state == NGX_HTTP_VLM_CLOSED
        || (state == NGX_HTTP_VLM_PROBING && !eng->shm->breaker.probe))
    {
        return NGX_DECLINED;
    }

    seconds = ngx_http_vlm_breaker_reason(eng, text, sizeof(text));

    ngx_http_vlm_metrics_refused(r, eng, NGX_HTTP_VLM_BREAKER, (char *) text);

    ctx = ngx_http_vlm_ctx(r);

    if (ctx == NULL || ngx_http_vlm_retry_after(r, seconds) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->late_code = "engine_failing";

    return ngx_http_vlm_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   (char *) text);
}


ngx_uint_t
ngx_http_vlm_breaker_reason(ngx_http_vlm_engine_t *eng, u_char *buf,
    size_t size)
{
    ngx_msec_t               ms;
    ngx_uint_t               seconds;
    ngx_http_vlm_breaker_t  *b;

    b = &eng->shm->breaker;

    ms = ngx_current_msec - b->when;

    if (ms >= eng->pause) {
        (void) ngx_snprintf(buf, size - 1, "The engine has failed %uA times "
                            "in a row, one request tries it now%Z",
                            b->failures);

        return ngx_http_vlm_metrics_retry(eng);
    }

    seconds = (eng->pause - ms + 999) / 1000;

    (void) ngx_snprintf(buf, size - 1, "The engine has failed %uA times in a "
                        "row, it is tried again in %ui seconds%Z",
                        b->failures, seconds);

    return seconds;
}


void
ngx_http_vlm_breaker_enter(ngx_http_vlm_ctx_t *ctx)
{
    if (ngx_http_vlm_breaker_state(ctx->engine) != NGX_HTTP_VLM_CLOSED) {
        ctx->probe = 1;
        ctx->engine->shm->breaker.probe = 1;
    }
}


void
ngx_http_vlm_breaker_leave(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->probe) {
        ctx->probe = 0;
        ctx->engine->shm->breaker.probe = 0;
    }
}


void
ngx_http_vlm_breaker_failed(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_breaker_t  *b;

    b = &eng->shm->breaker;

    b->when = ngx_current_msec;

    if (ngx_atomic_fetch_add(&b->failures, 1) + 1 == eng->failures) {
        (void) ngx_atomic_fetch_add(&b->opened, 1);

        ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, 0,
                      "vlm_engine \"%V\" has failed %ui times in a row: "
                      "requests are refused for %M ms",
                      &eng->name, eng->failures, eng->pause);
    }
}


void
ngx_http_vlm_breaker_worked(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_breaker_t  *b;

    b = &eng->shm->breaker;

    if (b->failures && ngx_http_vlm_breaker_state(eng) != NGX_HTTP_VLM_CLOSED)
    {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "vlm_engine \"%V\" answers again", &eng->name);
    }

    b->failures = 0;
}


void
ngx_http_vlm_breaker_start(ngx_http_vlm_engine_t *eng)
{
    eng->shm->breaker.probe = 0;
}
