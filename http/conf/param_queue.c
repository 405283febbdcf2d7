
/*
 * Parameters of vlm_engine about the queue: priority, fair, cache_salt,
 * breaker.
 */


#include "conf.h"


#define NGX_HTTP_VLM_PRIORITY_AGE  10000   /* ms, the default worth of one
                                              level */
#define NGX_HTTP_VLM_MAX_FAILURES  1000


static char *ngx_http_vlm_param_value(ngx_conf_t *cf, ngx_str_t *value,
    ngx_uint_t n, ngx_http_complex_value_t **cv, ngx_msec_t *age);


char *
ngx_http_vlm_param_priority(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    ngx_http_complex_value_t  *cv;

    eng->conf.rank.priority_age = NGX_HTTP_VLM_PRIORITY_AGE;

    if (ngx_http_vlm_param_value(cf, value, n, &eng->conf.rank.priority,
                                 &eng->conf.rank.priority_age)
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    cv = eng->conf.rank.priority;

    if (cv->lengths == NULL && ngx_strcmp(value[0].data, "0") != 0
        && ngx_http_vlm_order_priority(&cv->value) == 0)
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "priority \"%V\" is no variable, and none of high, "
                           "low, -%d to %d: every request has 0", &cv->value,
                           NGX_HTTP_VLM_PRIORITY, NGX_HTTP_VLM_PRIORITY);
    }

    return NGX_CONF_OK;
}


char *
ngx_http_vlm_param_fair(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    return ngx_http_vlm_param_value(cf, value, n, &eng->conf.rank.fair,
                                    &eng->conf.rank.fair_age);
}


char *
ngx_http_vlm_param_cache_salt(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    return ngx_http_vlm_param_value(cf, value, n, &eng->conf.rank.salt, NULL);
}


static char *
ngx_http_vlm_param_value(ngx_conf_t *cf, ngx_str_t *value, ngx_uint_t n,
    ngx_http_complex_value_t **cv, ngx_msec_t *age)
{
    ngx_str_t                          text;
    ngx_http_compile_complex_value_t   ccv;

    *cv = ngx_pcalloc(cf->pool, sizeof(ngx_http_complex_value_t));
    if (*cv == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &value[0];
    ccv.complex_value = *cv;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (n == 1) {
        return NGX_CONF_OK;
    }

    if (value[1].len < 4 || ngx_strncmp(value[1].data, "age=", 4) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" is not age=time",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    text.data = value[1].data + 4;
    text.len = value[1].len - 4;

    return ngx_http_vlm_param_time(cf, "age", &text, age);
}


char *
ngx_http_vlm_param_breaker(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    ngx_int_t    failures;
    ngx_str_t    text;
    ngx_uint_t   i;

    if (n == 1 && ngx_strcmp(value[0].data, "off") == 0) {
        eng->conf.failures = 0;
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

            eng->conf.failures = failures;
            continue;
        }

        if (ngx_strncmp(value[i].data, "pause=", 6) == 0) {

            text.data = value[i].data + 6;
            text.len = value[i].len - 6;

            if (ngx_http_vlm_param_time(cf, "breaker pause", &text,
                                        &eng->conf.pause)
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
