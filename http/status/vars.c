
/*
 * Variables for log_format: the times and the outcome of a request.
 *
 * A request that took the hop was run in another worker.  The inner server
 * sends these values in one header, which the outer one reads and hides; at
 * the end of a stream it writes them to the shared zone (hop.c).
 */


#include "status.h"


#define NGX_HTTP_VLM_USAGE_SESSION  6      /* the last field */


/* the fields of the header; the session may have spaces, and is last; then the
   engine, and a variable that is only in the text that vlm_pass generates */

static ngx_str_t  ngx_http_vlm_vars[] = {
    ngx_string("vlm_queue_time"),
    ngx_string("vlm_ttft"),
    ngx_string("vlm_prompt_tokens"),
    ngx_string("vlm_completion_tokens"),
    ngx_string("vlm_finish_reason"),
    ngx_string("vlm_cached_tokens"),
    ngx_string("vlm_session"),
    ngx_string("vlm_engine"),
    ngx_string("vlm_line")
};


static ngx_int_t
ngx_http_vlm_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char     *p, *end, *last;
    uintptr_t   i;
    ngx_int_t   rc;
    ngx_str_t   usage;

    v->not_found = 1;

    rc = r->upstream ? ngx_http_vlm_hop_usage(r, &usage)
                     : ngx_http_vlm_usage(r, &usage);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : NGX_ERROR;
    }

    p = usage.data;
    last = p + usage.len;

    for (i = 0; i < data; i++) {
        p = ngx_strlchr(p, last, ' ');

        if (p == NULL) {
            return NGX_OK;
        }

        p++;
    }

    end = data == NGX_HTTP_VLM_USAGE_SESSION ? NULL
                                             : ngx_strlchr(p, last, ' ');

    if (end == NULL) {
        end = last;
    }

    if (end == p || (end - p == 1 && *p == '-')) {
        return NGX_OK;
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->data = p;
    v->len = end - p;

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_engine_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_vlm_engine_t  *eng;

    eng = ngx_http_vlm_engine_of(r);

    v->valid = eng != NULL;
    v->not_found = eng == NULL;
    v->no_cacheable = 0;

    if (eng) {
        v->data = eng->name.data;
        v->len = eng->name.len;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_add_variables(ngx_conf_t *cf)
{
    ngx_uint_t                 i, own;
    ngx_http_variable_t       *var;
    ngx_http_vlm_main_conf_t  *mcf;

    static ngx_str_t                    request_id = ngx_string("request_id");
    static ngx_http_get_variable_pt     others[] = {
        ngx_http_vlm_engine_variable, ngx_http_vlm_order_variable
    };

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_vlm_module);

    mcf->request_id = ngx_http_get_variable_index(cf, &request_id);
    if (mcf->request_id == NGX_ERROR) {
        return NGX_ERROR;
    }

    own = NGX_HTTP_VLM_USAGE_SESSION + 1;

    for (i = 0; i < own + 2; i++) {
        var = ngx_http_add_variable(cf, &ngx_http_vlm_vars[i],
                                    NGX_HTTP_VAR_NOCACHEABLE);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = i < own ? ngx_http_vlm_variable : others[i - own];
        var->data = i;
    }

    return NGX_OK;
}
