
/*
 * Variables for log_format: what became of a request in the engine.
 *
 * A request that took the hop was run elsewhere.  The inner server sends these
 * values in one header, which the outer one reads and hides; at the end of a
 * stream it leaves them in the shared zone (_hop.c).
 */


#include "ngx_http_vlm.h"
#include "ngx_http_vlm_hop.h"


#define NGX_HTTP_VLM_USAGE_SESSION  6      /* the last field */


static ngx_int_t ngx_http_vlm_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static u_char *ngx_http_vlm_usage_time(u_char *p, ngx_msec_t from,
    ngx_msec_t to);
static ngx_int_t ngx_http_vlm_usage_hop(ngx_http_request_t *r,
    ngx_str_t *usage);
static ngx_str_t *ngx_http_vlm_usage_header(ngx_http_request_t *r);


/* data: the field of the header; the session may have spaces, and is last */

static ngx_http_variable_t  ngx_http_vlm_vars[] = {

    { ngx_string("vlm_queue_time"), NULL, ngx_http_vlm_variable, 0,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("vlm_ttft"), NULL, ngx_http_vlm_variable, 1,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("vlm_prompt_tokens"), NULL, ngx_http_vlm_variable, 2,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("vlm_completion_tokens"), NULL, ngx_http_vlm_variable, 3,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("vlm_finish_reason"), NULL, ngx_http_vlm_variable, 4,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("vlm_cached_tokens"), NULL, ngx_http_vlm_variable, 5,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("vlm_session"), NULL, ngx_http_vlm_variable,
      NGX_HTTP_VLM_USAGE_SESSION, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    /* only in the text that vlm_pass generates */

    { ngx_string("vlm_line"), NULL, ngx_http_vlm_order_variable, 0,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_vlm_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t       *var, *v;
    ngx_http_vlm_main_conf_t  *mcf;

    static ngx_str_t  request_id = ngx_string("request_id");

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_vlm_module);

    mcf->request_id = ngx_http_get_variable_index(cf, &request_id);
    if (mcf->request_id == NGX_ERROR) {
        return NGX_ERROR;
    }

    for (v = ngx_http_vlm_vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


/* from the inner server's header filter */

ngx_int_t
ngx_http_vlm_add_usage(ngx_http_request_t *r)
{
    ngx_int_t  rc;
    ngx_str_t  usage;

    rc = ngx_http_vlm_usage(r, &usage);

    if (rc == NGX_DECLINED) {
        return NGX_OK;
    }

    return rc == NGX_OK ? ngx_http_vlm_add_header(r, "X-Vlm-Usage", &usage)
                        : rc;
}


static ngx_int_t
ngx_http_vlm_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char     *p, *end, *last;
    uintptr_t   i;
    ngx_int_t   rc;
    ngx_str_t   usage;

    v->not_found = 1;

    rc = r->upstream ? ngx_http_vlm_usage_hop(r, &usage)
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


ngx_int_t
ngx_http_vlm_usage(ngx_http_request_t *r, ngx_str_t *usage)
{
    u_char              *p;
    const char          *finish;
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    if (ctx == NULL || ctx->engine == NULL) {
        return NGX_DECLINED;
    }

    p = ngx_pnalloc(r->pool, NGX_HTTP_VLM_USAGE);
    if (p == NULL) {
        return NGX_ERROR;
    }

    usage->data = p;

    p = ngx_http_vlm_usage_time(p, ctx->t_arrived, ctx->t_started);
    p = ngx_http_vlm_usage_time(p, ctx->t_arrived, ctx->t_first);

    switch (ctx->finish) {
    case VLM_FINISH_STOP:
        finish = "stop";
        break;
    case VLM_FINISH_LENGTH:
        finish = "length";
        break;
    case VLM_FINISH_CANCELLED:
        finish = "cancelled";
        break;
    default:
        finish = ctx->t_started == 0 ? "-"
                 : ctx->err.code == VLM_OK ? "cancelled" : "error";
    }

    if (ctx->usage.prompt_tokens) {
        p = ngx_sprintf(p, "%uD %uD ", ctx->usage.prompt_tokens,
                        ctx->usage.completion_tokens);

    } else {
        p = ngx_sprintf(p, "- - ");
    }

    p = ngx_sprintf(p, "%s ", finish);

    if (ctx->usage.prompt_tokens) {
        p = ngx_sprintf(p, "%uD ", ctx->usage.cached_tokens);

    } else {
        p = ngx_sprintf(p, "- ");
    }

    p = ngx_sprintf(p, "%V", &ctx->session);

    usage->len = p - usage->data;

    return NGX_OK;
}


/* seconds with milliseconds, as nginx logs its times */

static u_char *
ngx_http_vlm_usage_time(u_char *p, ngx_msec_t from, ngx_msec_t to)
{
    ngx_msec_int_t  ms;

    if (to == 0) {
        return ngx_sprintf(p, "- ");
    }

    ms = ngx_max((ngx_msec_int_t) (to - from), 0);

    return ngx_sprintf(p, "%T.%03M ", (time_t) ms / 1000,
                       (ngx_msec_t) ms % 1000);
}


/* what was left at the end, or what the header said */

static ngx_int_t
ngx_http_vlm_usage_hop(ngx_http_request_t *r, ngx_str_t *usage)
{
    ngx_int_t                 rc;
    ngx_str_t                *header;
    ngx_http_vlm_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    if (lcf->engine == NULL) {
        return NGX_DECLINED;
    }

    rc = ngx_http_vlm_hop_find(r, usage);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    header = ngx_http_vlm_usage_header(r);

    if (header == NULL) {
        return ngx_http_vlm_usage(r, usage);
    }

    *usage = *header;

    return NGX_OK;
}


static ngx_str_t *
ngx_http_vlm_usage_header(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    static const char  name[] = "x-vlm-usage";

    part = &r->upstream->headers_in.headers.part;

    for ( /* void */ ; part; part = part->next) {
        h = part->elts;

        for (i = 0; h && i < part->nelts; i++) {

            if (h[i].key.len == sizeof(name) - 1
                && ngx_strncasecmp(h[i].key.data, (u_char *) name,
                                   sizeof(name) - 1)
                   == 0)
            {
                return &h[i].value;
            }
        }
    }

    return NULL;
}
