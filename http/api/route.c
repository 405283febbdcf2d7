
/*
 * Maps method and path to a handler, by a table; and passes requests that need
 * the model from any worker to the designated one.
 */


#include "api.h"


#define NGX_HTTP_VLM_TEXT  256             /* bytes, of an error's sentence */


static const ngx_http_vlm_route_t *ngx_http_vlm_find(ngx_http_request_t *r,
    ngx_str_t *piece, ngx_uint_t *allow);
static ngx_int_t ngx_http_vlm_match(const ngx_http_vlm_route_t *route,
    ngx_str_t *uri, ngx_str_t *piece);
static ngx_int_t ngx_http_vlm_call(const ngx_http_vlm_route_t *route,
    ngx_http_request_t *r, ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
static ngx_int_t ngx_http_vlm_not_found(ngx_http_request_t *r);
static ngx_int_t ngx_http_vlm_encoding(ngx_http_request_t *r);
static ngx_int_t ngx_http_vlm_hop(ngx_http_request_t *r,
    ngx_http_vlm_loc_conf_t *lcf);
static ngx_int_t ngx_http_vlm_options(ngx_http_request_t *r,
    ngx_uint_t allow);
static ngx_int_t ngx_http_vlm_allow(ngx_http_request_t *r, ngx_uint_t allow);


/* before, after, has a piece between, hops, method, handler or dialect */

static const ngx_http_vlm_route_t  ngx_http_vlm_routes[] = {

    { ngx_string("/api/health"), ngx_null_string, 0, 0,
      NGX_HTTP_GET, ngx_http_vlm_health_handler, NULL },

    { ngx_string("/api/health/live"), ngx_null_string, 0, 0,
      NGX_HTTP_GET, ngx_http_vlm_health_live_handler, NULL },

    { ngx_string("/api/health/ready"), ngx_null_string, 0, 0,
      NGX_HTTP_GET, ngx_http_vlm_health_ready_handler, NULL },

    /* paths of llama-server, where a location passes them on */

    { ngx_string("/health"), ngx_null_string, 0, 0,
      NGX_HTTP_GET, ngx_http_vlm_health_ready_handler, NULL },

    { ngx_string("/health/live"), ngx_null_string, 0, 0,
      NGX_HTTP_GET, ngx_http_vlm_health_live_handler, NULL },

    { ngx_string("/health/ready"), ngx_null_string, 0, 0,
      NGX_HTTP_GET, ngx_http_vlm_health_ready_handler, NULL },

    { ngx_string("/api/chat"), ngx_null_string, 0, 1,
      NGX_HTTP_POST, NULL, &ngx_http_vlm_chat_dialect },

    { ngx_string("/api/session"), ngx_null_string, 0, 0,
      NGX_HTTP_POST, ngx_http_vlm_session_create_handler, NULL },

    { ngx_string("/api/session/"), ngx_null_string, 1, 0,
      NGX_HTTP_DELETE, ngx_http_vlm_session_delete_handler, NULL },

    { ngx_string("/api/session/"), ngx_string("/reset"), 1, 0,
      NGX_HTTP_POST, ngx_http_vlm_session_reset_handler, NULL },

    { ngx_string("/api/history/"), ngx_null_string, 1, 0,
      NGX_HTTP_GET, ngx_http_vlm_history_handler, NULL },

    { ngx_string("/api/tasks"), ngx_null_string, 0, 0,
      NGX_HTTP_GET, ngx_http_vlm_tasks_handler, NULL },

    { ngx_string("/api/generate-title"), ngx_null_string, 0,
      NGX_HTTP_VLM_HOP_SELF, NGX_HTTP_POST, ngx_http_vlm_title_handler, NULL },

    { ngx_string("/api/pipeline"), ngx_null_string, 0, 1,
      NGX_HTTP_POST, NULL, &ngx_http_vlm_pipeline_dialect },

    { ngx_string("/api/decompose"), ngx_null_string, 0, 1,
      NGX_HTTP_POST, NULL, &ngx_http_vlm_decompose_dialect },

    { ngx_string("/api/upload"), ngx_null_string, 0, 0,
      NGX_HTTP_POST, ngx_http_vlm_upload_handler, NULL },

    { ngx_string("/uploads/"), ngx_null_string, 1, 0,
      NGX_HTTP_GET, ngx_http_vlm_file_handler, NULL },

    { ngx_string("/result/"), ngx_null_string, 1, 0,
      NGX_HTTP_GET, ngx_http_vlm_result_handler, NULL },

    /* Ollama's; /api/chat is decided by its body */

    { ngx_string("/api/generate"), ngx_null_string, 0, 1,
      NGX_HTTP_POST, NULL, &ngx_http_vlm_ollama_generate },

    { ngx_string("/api/tags"), ngx_null_string, 0, 0,
      NGX_HTTP_GET, ngx_http_vlm_ollama_tags_handler, NULL },

    { ngx_string("/api/ps"), ngx_null_string, 0, 0,
      NGX_HTTP_GET, ngx_http_vlm_ollama_ps_handler, NULL },

    { ngx_string("/api/version"), ngx_null_string, 0, 0,
      NGX_HTTP_GET, ngx_http_vlm_ollama_version_handler, NULL },

    { ngx_string("/api/show"), ngx_null_string, 0, 0,
      NGX_HTTP_POST, ngx_http_vlm_ollama_show_handler, NULL },

    { ngx_string("/api/pull"), ngx_null_string, 0, 0,
      NGX_HTTP_POST, ngx_http_vlm_ollama_show_handler, NULL },

    { ngx_string("/api/push"), ngx_null_string, 0, 0,
      NGX_HTTP_POST, ngx_http_vlm_ollama_fixed_handler, NULL },

    { ngx_string("/api/create"), ngx_null_string, 0, 0,
      NGX_HTTP_POST, ngx_http_vlm_ollama_fixed_handler, NULL },

    { ngx_string("/api/copy"), ngx_null_string, 0, 0,
      NGX_HTTP_POST, ngx_http_vlm_ollama_fixed_handler, NULL },

    { ngx_string("/api/delete"), ngx_null_string, 0, 0,
      NGX_HTTP_DELETE, ngx_http_vlm_ollama_fixed_handler, NULL },

    { ngx_string("/api/blobs/"), ngx_null_string, 1, 0,
      NGX_HTTP_HEAD|NGX_HTTP_POST, ngx_http_vlm_ollama_fixed_handler, NULL },

    { ngx_string("/api/embed"), ngx_null_string, 0, 0,
      NGX_HTTP_POST, ngx_http_vlm_ollama_embed_handler, NULL },

    { ngx_string("/api/embeddings"), ngx_null_string, 0, 0,
      NGX_HTTP_POST, ngx_http_vlm_ollama_embed_handler, NULL },

    { ngx_string("/v1/chat/completions"), ngx_null_string, 0, 1,
      NGX_HTTP_POST, NULL, &ngx_http_vlm_openai_chat },

    { ngx_string("/v1/completions"), ngx_null_string, 0, 1,
      NGX_HTTP_POST, NULL, &ngx_http_vlm_openai_completion },

    { ngx_string("/v1/models"), ngx_null_string, 0, 0,
      NGX_HTTP_GET, ngx_http_vlm_models_handler, NULL },

    { ngx_string("/v1/models/"), ngx_null_string, 2, 0,
      NGX_HTTP_GET, ngx_http_vlm_models_one_handler, NULL },

    { ngx_null_string, ngx_null_string, 0, 0, 0, NULL, NULL }
};


ngx_int_t
ngx_http_vlm_handler(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_str_t                    piece;
    ngx_uint_t                   allow;
    ngx_http_vlm_engine_t       *eng;
    const ngx_http_vlm_route_t  *route;
    ngx_http_vlm_loc_conf_t     *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    eng = lcf->engine;

    /* If-None-Match and similar headers apply to files, not to answers */

    r->disable_not_modified = 1;

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "vlm_pass takes no subrequests");
        return NGX_HTTP_FORBIDDEN;
    }

    if (ngx_http_vlm_cors_refused(r)) {
        return ngx_http_vlm_send_error(r, NGX_HTTP_FORBIDDEN,
                                       "Pages of this origin may not send "
                                       "requests here (vlm_cors)");
    }

    route = ngx_http_vlm_find(r, &piece, &allow);

    if (allow == 0) {
        return ngx_http_vlm_not_found(r);
    }

    if (r->method == NGX_HTTP_OPTIONS) {
        return ngx_http_vlm_options(r, allow);
    }

    if (route == NULL) {
        if (ngx_http_vlm_allow(r, allow) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_vlm_send_error(r, NGX_HTTP_NOT_ALLOWED,
                                       "Method not allowed");
    }

    rc = ngx_http_vlm_encoding(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (route->hop && route->hop != NGX_HTTP_VLM_HOP_SELF
        && !ngx_http_vlm_answers(eng))
    {
        return ngx_http_vlm_hop(r, lcf);
    }

    return ngx_http_vlm_call(route, r, eng, &piece);
}


/*
 * The inner server takes its requests before any phase of http{} could rewrite,
 * refuse or delay them a second time.
 */

ngx_int_t
ngx_http_vlm_inner_handler(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_str_t                    piece;
    ngx_uint_t                   allow;
    const ngx_http_vlm_route_t  *route;
    ngx_http_vlm_loc_conf_t     *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    if (!lcf->inner || r != r->main) {
        return NGX_DECLINED;
    }

    r->disable_not_modified = 1;

    route = ngx_http_vlm_find(r, &piece, &allow);

    if (route == NULL || !route->hop) {
        rc = ngx_http_vlm_send_error(r, NGX_HTTP_NOT_FOUND, "Not found");

    } else if (!lcf->engine->life.owner || lcf->engine->life.released) {
        rc = ngx_http_vlm_refuse_moved(r);

    } else {
        rc = ngx_http_vlm_call(route, r, lcf->engine, &piece);
    }

    ngx_http_finalize_request(r, rc);

    return NGX_DONE;
}


static ngx_int_t
ngx_http_vlm_call(const ngx_http_vlm_route_t *route, ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return route->dialect ? ngx_http_vlm_ask(r, eng, route->dialect)
                          : route->handler(r, eng, piece);
}


/* the route, or NULL and the methods that the path has otherwise */

static const ngx_http_vlm_route_t *
ngx_http_vlm_find(ngx_http_request_t *r, ngx_str_t *piece, ngx_uint_t *allow)
{
    ngx_uint_t                   methods;
    const ngx_http_vlm_route_t  *route;

    *allow = 0;
    ngx_str_null(piece);

    for (route = ngx_http_vlm_routes; route->methods; route++) {

        if (ngx_http_vlm_match(route, &r->uri, piece) != NGX_OK) {
            continue;
        }

        methods = route->methods;

        if (methods & NGX_HTTP_GET) {
            methods |= NGX_HTTP_HEAD;
        }

        *allow |= methods | NGX_HTTP_OPTIONS;

        if (r->method & methods) {
            return route;
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_vlm_match(const ngx_http_vlm_route_t *route, ngx_str_t *uri,
    ngx_str_t *piece)
{
    u_char  *p;
    size_t   len;

    len = route->before.len + route->after.len;

    if (uri->len < len
        || ngx_strncmp(uri->data, route->before.data, route->before.len) != 0
        || (route->after.len
            && ngx_strncmp(uri->data + uri->len - route->after.len,
                           route->after.data, route->after.len)
               != 0))
    {
        return NGX_DECLINED;
    }

    p = uri->data + route->before.len;
    len = uri->len - len;

    if (!route->piece) {
        return len == 0 ? NGX_OK : NGX_DECLINED;
    }

    if (len == 0
        || (route->piece == 1 && ngx_strlchr(p, p + len, '/') != NULL))
    {
        return NGX_DECLINED;
    }

    piece->data = p;
    piece->len = len;

    return NGX_OK;
}


/* OpenAI's API is large: the error lists the supported part of it */

static ngx_int_t
ngx_http_vlm_not_found(ngx_http_request_t *r)
{
    u_char                      *p, *last, text[NGX_HTTP_VLM_TEXT];
    const ngx_http_vlm_route_t  *route;

    if (!ngx_http_vlm_openai_speaks(r)) {
        return ngx_http_vlm_send_error(r, NGX_HTTP_NOT_FOUND, "Not found");
    }

    p = text;
    last = text + sizeof(text) - 1;

    for (route = ngx_http_vlm_routes; route->methods; route++) {

        if (ngx_strncmp(route->before.data, "/v1/", 4) == 0) {
            p = ngx_slprintf(p, last, "%s %V%s",
                             p == text ? "Not found: there are" : ",",
                             &route->before, route->piece ? "NAME" : "");
        }
    }

    *p = '\0';

    return ngx_http_vlm_send_error(r, NGX_HTTP_NOT_FOUND, (char *) text);
}


/* a compressed body has an error of its own, or it would be reported as
   invalid JSON */

static ngx_int_t
ngx_http_vlm_encoding(ngx_http_request_t *r)
{
    u_char           *p, text[NGX_HTTP_VLM_TEXT];
    ngx_str_t         identity;
    ngx_table_elt_t  *h;

    h = ngx_http_vlm_header(r, "content-encoding");

    if (h == NULL || h->value.len == 0
        || (h->value.len == sizeof("identity") - 1
            && ngx_strncasecmp(h->value.data, (u_char *) "identity",
                               sizeof("identity") - 1)
               == 0))
    {
        return NGX_DECLINED;
    }

    ngx_str_set(&identity, "identity");

    if (ngx_http_vlm_add_header(r, "Accept-Encoding", &identity) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_snprintf(text, sizeof(text) - 1,
                     "A body with Content-Encoding %*s is not read here: send "
                     "it as it is", ngx_min(h->value.len, 64), h->value.data);
    *p = '\0';

    return ngx_http_vlm_send_error(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                   (char *) text);
}


/*
 * In a worker that is not the designated one.  The zone's state spares a hop
 * whose outcome is known; the designated worker checks again.
 */

static ngx_int_t
ngx_http_vlm_hop(ngx_http_request_t *r, ngx_http_vlm_loc_conf_t *lcf)
{
    ngx_int_t            rc;
    ngx_http_vlm_shm_t  *shm;

    shm = lcf->engine->zone;

    if (shm->state == NGX_HTTP_VLM_FAILED) {
        return ngx_http_vlm_refuse(r, lcf->engine, "Model not initialized");
    }

    if (ngx_http_vlm_health_silent(shm)) {
        return ngx_http_vlm_refuse(r, lcf->engine,
                                   "The model's worker does not answer");
    }

    rc = ngx_http_vlm_refuse_failing(r, lcf->engine);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (shm->waiting >= lcf->engine->conf.queue_size) {
        return ngx_http_vlm_refuse_full(r, lcf->engine);
    }

    return lcf->hop(r);
}


static ngx_int_t
ngx_http_vlm_options(ngx_http_request_t *r, ngx_uint_t allow)
{
    ngx_str_t  none;

    if (ngx_http_vlm_allow(r, allow) != NGX_OK
        || ngx_http_vlm_cors_preflight(r) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&none, "");

    return ngx_http_vlm_send(r, NGX_HTTP_OK, &none);
}


static ngx_int_t
ngx_http_vlm_allow(ngx_http_request_t *r, ngx_uint_t allow)
{
    u_char      *p;
    ngx_str_t    value;
    ngx_uint_t   i;

    static struct {
        ngx_uint_t   method;
        const char  *name;
    } names[] = {
        { NGX_HTTP_DELETE,  "DELETE" },
        { NGX_HTTP_GET,     "GET" },
        { NGX_HTTP_HEAD,    "HEAD" },
        { NGX_HTTP_OPTIONS, "OPTIONS" },
        { NGX_HTTP_POST,    "POST" }
    };

    value.data = ngx_pnalloc(r->pool, sizeof("DELETE, GET, HEAD, OPTIONS, "
                                             "POST"));
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    p = value.data;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {

        if (allow & names[i].method) {
            p = ngx_sprintf(p, "%s%s", p == value.data ? "" : ", ",
                            names[i].name);
        }
    }

    value.len = p - value.data;

    return ngx_http_vlm_add_header(r, "Allow", &value);
}
