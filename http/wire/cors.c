
/*
 * vlm_cors: the origins whose pages may read our answers, and those that may
 * send requests at all.
 *
 * A browser hides an answer from a page of another origin unless the answer
 * has headers that allow it.  It still sends a request that needs no
 * preflight, so any page could use a visitor's browser to ask a server on the
 * visitor's own machine or network.  A request that the browser marks as from
 * another origin (Sec-Fetch-Site) is refused.  Browsers mark only requests to
 * https and localhost; without the mark, Origin is compared with Host.
 */


#include "wire.h"
#include "base/origin.h"


static ngx_str_t  ngx_http_vlm_unknown = ngx_string("unknown");


static ngx_conf_enum_t  ngx_http_vlm_cors_words[] = {
    { ngx_string("off"), NGX_HTTP_VLM_CORS_OFF },
    { ngx_string("same"), NGX_HTTP_VLM_CORS_SAME },
    { ngx_string("*"), NGX_HTTP_VLM_CORS_ANY },
    { ngx_null_string, 0 }
};


char *
ngx_http_vlm_cors_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_vlm_loc_conf_t *lcf = conf;

    ngx_str_t        *value, *origin;
    ngx_uint_t        i, n;
    ngx_conf_enum_t  *e;

    if (lcf->cors != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;
    n = cf->args->nelts;

    lcf->cors = NGX_HTTP_VLM_CORS_LIST;

    for (e = ngx_http_vlm_cors_words; n == 2 && e->name.len; e++) {

        if (ngx_strcmp(value[1].data, e->name.data) == 0) {
            lcf->cors = e->value;
            return NGX_CONF_OK;
        }
    }

    lcf->origins = ngx_array_create(cf->pool, n - 1, sizeof(ngx_str_t));
    if (lcf->origins == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < n; i++) {

        if (!vlm_origin_valid((char *) value[i].data)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "vlm_cors \"%V\" is not off, same, * or "
                               "an origin such as https://robots.example:8443",
                               &value[i]);
            return NGX_CONF_ERROR;
        }

        origin = ngx_array_push(lcf->origins);
        if (origin == NULL) {
            return NGX_CONF_ERROR;
        }

        *origin = value[i];
    }

    return NGX_CONF_OK;
}


/* is this origin, or the origin of this page's URL, in the list? */

static ngx_uint_t
ngx_http_vlm_cors_allowed(ngx_http_vlm_loc_conf_t *lcf, ngx_str_t *origin)
{
    ngx_str_t   *o;
    ngx_uint_t   i;

    if (lcf->cors != NGX_HTTP_VLM_CORS_LIST) {
        return 0;
    }

    o = lcf->origins->elts;

    for (i = 0; i < lcf->origins->nelts; i++) {

        if (vlm_origin_is((char *) origin->data, origin->len,
                          (char *) o[i].data, o[i].len))
        {
            return 1;
        }
    }

    return 0;
}


/* is this the origin of the server itself, as the client has addressed it? */

static ngx_uint_t
ngx_http_vlm_cors_own(ngx_http_request_t *r, ngx_str_t *origin)
{
    ngx_str_t  *own;

    /* HTTP/3 may leave the header out, and then gives the name alone */

    own = r->headers_in.host ? &r->headers_in.host->value
                             : &r->headers_in.server;

    return vlm_origin_own((char *) origin->data, origin->len,
                          (char *) own->data, own->len);
}


/* keeps the names of server_name, which nginx frees with the configuration's
   temporary memory */

ngx_int_t
ngx_http_vlm_cors_init(ngx_conf_t *cf)
{
    void                        *names;
    size_t                       bytes;
    ngx_uint_t                   i;
    ngx_array_t                 *a;
    ngx_http_core_srv_conf_t   **server;
    ngx_http_core_main_conf_t   *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    server = cmcf->servers.elts;

    for (i = 0; i < cmcf->servers.nelts; i++) {

        a = &server[i]->server_names;
        bytes = a->nelts * a->size;

        names = ngx_palloc(cf->pool, bytes);
        if (names == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(names, a->elts, bytes);
        a->elts = names;
    }

    return NGX_OK;
}


/*
 * Is the name that the client has asked for the server's?  A page may have
 * its own name lead here, and its origin is then the server's own.
 */

static ngx_uint_t
ngx_http_vlm_cors_named(ngx_http_request_t *r, ngx_http_vlm_loc_conf_t *lcf)
{
    ngx_str_t                 *o, *host;
    ngx_uint_t                 i;
    ngx_http_server_name_t    *sn;
    ngx_http_core_srv_conf_t  *cscf;

    host = &r->headers_in.server;             /* no port, no capitals */

    if (vlm_origin_fixed((char *) host->data, host->len)) {
        return 1;
    }

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    sn = cscf->server_names.elts;

    for (i = 0; i < cscf->server_names.nelts; i++) {
#if (NGX_PCRE)
        if (sn[i].regex) {

            if (ngx_http_regex_exec(r, sn[i].regex, host) == NGX_OK) {
                return 1;
            }

            continue;
        }
#endif
        if (vlm_origin_named((char *) sn[i].name.data, sn[i].name.len,
                             (char *) host->data, host->len))
        {
            return 1;
        }
    }

    o = lcf->origins ? lcf->origins->elts : NULL;

    for (i = 0; o && i < lcf->origins->nelts; i++) {

        if (vlm_origin_listed((char *) o[i].data, o[i].len,
                              (char *) host->data, host->len))
        {
            return 1;
        }
    }

    return 0;
}


/*
 * Programs other than browsers do not send these headers.  Browsers mark a
 * request over plain HTTP only if it is to localhost; over TLS a certificate
 * has shown that the name is the server's.
 */

static ngx_uint_t
ngx_http_vlm_cors_foreign(ngx_http_request_t *r, ngx_table_elt_t *origin,
    const char **why)
{
    ngx_uint_t        own;
    ngx_table_elt_t  *site, *mode;

    site = ngx_http_vlm_header(r, "sec-fetch-site");
    own = origin && ngx_http_vlm_cors_own(r, &origin->value);

    if (own && (site == NULL
                || ngx_strncasecmp(origin->value.data, (u_char *) "https:", 6))
        && !ngx_http_vlm_cors_named(r, ngx_http_get_module_loc_conf(r,
                                                       ngx_http_vlm_module)))
    {
        *why = "Pages at this name may not send requests here: server_name "
               "does not have it, nor has vlm_cors";
        return 1;
    }

    if (site == NULL) {
        return origin && !own;
    }

    mode = ngx_http_vlm_header(r, "sec-fetch-mode");

    return vlm_origin_foreign((char *) site->value.data,
                              mode ? (char *) mode->value.data : NULL,
                              (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)) != 0);
}


const char *
ngx_http_vlm_cors_refused(ngx_http_request_t *r)
{
    const char               *why;
    ngx_table_elt_t          *origin;
    ngx_http_vlm_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    if (lcf->cors == NGX_HTTP_VLM_CORS_OFF
        || lcf->cors == NGX_HTTP_VLM_CORS_ANY)
    {
        return NULL;
    }

    why = "Pages of this origin may not send requests here (vlm_cors)";
    origin = ngx_http_vlm_header(r, "origin");

    if (!ngx_http_vlm_cors_foreign(r, origin, &why)) {
        return NULL;
    }

    /* a browser loads a picture of a page without an Origin header */

    if (origin == NULL) {
        origin = r->headers_in.referer;
    }

    if (origin && ngx_http_vlm_cors_allowed(lcf, &origin->value)) {
        return NULL;
    }

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "vlm_cors refuses a request of a page of another origin, "
                  "\"%V\"", origin ? &origin->value : &ngx_http_vlm_unknown);

    return why;
}


ngx_int_t
ngx_http_vlm_cors_headers(ngx_http_request_t *r)
{
    const char               *value;
    ngx_table_elt_t          *origin;
    ngx_http_vlm_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    if (lcf->cors < NGX_HTTP_VLM_CORS_LIST) {
        return NGX_OK;
    }

    value = "*";

    if (lcf->cors == NGX_HTTP_VLM_CORS_LIST) {

        if (ngx_http_vlm_add_header(r, "Vary", "Origin") != NGX_OK) {
            return NGX_ERROR;
        }

        origin = ngx_http_vlm_header(r, "origin");

        if (origin == NULL || !ngx_http_vlm_cors_allowed(lcf, &origin->value)) {
            return NGX_OK;
        }

        value = (char *) origin->value.data;
    }

    if (ngx_http_vlm_add_header(r, "Access-Control-Allow-Origin", value)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_vlm_add_header(r, "Access-Control-Expose-Headers",
                                   "Retry-After");
}


ngx_int_t
ngx_http_vlm_cors_preflight(ngx_http_request_t *r)
{
    ngx_table_elt_t          *h;
    ngx_http_vlm_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    if (lcf->cors < NGX_HTTP_VLM_CORS_LIST
        || ngx_http_vlm_header(r, "access-control-request-method") == NULL)
    {
        return NGX_OK;
    }

    if (ngx_http_vlm_add_header(r, "Access-Control-Allow-Methods",
                                "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    h = ngx_http_vlm_header(r, "access-control-request-headers");

    if (h == NULL || h->value.len == 0) {
        return NGX_OK;
    }

    return ngx_http_vlm_add_header(r, "Access-Control-Allow-Headers",
                                   (char *) h->value.data);
}
