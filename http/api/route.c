
/*
 * Maps method and path to a handler, by a table; and passes requests that need
 * the model from any worker to the designated one.
 */


#include "api.h"
#include "api/route.h"


#define NGX_HTTP_VLM_TEXT  256             /* bytes, of an error's sentence */


/* a route has a handler, a function for a thread, or a dialect; or a handler
   that may use the dialect */

typedef struct {
    ngx_str_t                     path;        /* "*": one component;
                                                  "**": with slashes */
    ngx_uint_t                    methods;     /* NGX_HTTP_GET includes HEAD */
    ngx_http_vlm_handler_t       *handler;
    ngx_http_vlm_run_t           *run;         /* in a thread: work.c */
    const ngx_http_vlm_dialect_t *dialect;     /* needs the model's worker */
    ngx_uint_t                    stores;      /* needs eng->store; 2: and
                                                  documents */
} ngx_http_vlm_route_t;


/* one macro for each kind of route; store: the thread needs eng->store */

#define HANDLER(text, verb, name)                                             \
    { ngx_string(text), NGX_HTTP_##verb, .handler = name }
#define DIALECT(text, verb, name)                                             \
    { ngx_string(text), NGX_HTTP_##verb, .dialect = name }
#define THREAD(text, verb, name, store)                                       \
    { ngx_string(text), NGX_HTTP_##verb, .run = name, .stores = store }
#define DOCUMENT(text, verb, name)                                            \
    { ngx_string(text), NGX_HTTP_##verb, .handler = name, .stores = 2 }


static const ngx_http_vlm_route_t  ngx_http_vlm_routes[] = {
    HANDLER("/api/health", GET, ngx_http_vlm_health_handler),
    HANDLER("/api/health/live", GET, ngx_http_vlm_health_live_handler),
    HANDLER("/api/health/ready", GET, ngx_http_vlm_health_ready_handler),

    /* llama-server's paths, if the location includes them; the first is also
       that of the LoRA service */

    HANDLER("/health", GET, ngx_http_vlm_lite_health_handler),
    HANDLER("/health/live", GET, ngx_http_vlm_health_live_handler),
    HANDLER("/health/ready", GET, ngx_http_vlm_health_ready_handler),

    /* RoboBrain's; a body decides whether /api/chat is Ollama's */

    DIALECT("/api/chat", POST, &ngx_http_vlm_chat_dialect),
    THREAD("/api/session", POST, ngx_http_vlm_session_create, 1),
    THREAD("/api/session/*", DELETE, ngx_http_vlm_session_delete, 1),
    THREAD("/api/session/*/reset", POST, ngx_http_vlm_session_reset, 1),
    THREAD("/api/history/*", GET, ngx_http_vlm_session_history, 1),
    HANDLER("/api/tasks", GET, ngx_http_vlm_tasks_handler),
    { ngx_string("/api/generate-title"), NGX_HTTP_POST,
      .handler = ngx_http_vlm_title_handler,
      .dialect = &ngx_http_vlm_title_dialect },
    DIALECT("/api/pipeline", POST, &ngx_http_vlm_pipeline_dialect),
    DIALECT("/api/decompose", POST, &ngx_http_vlm_decompose_dialect),
    { ngx_string("/api/upload"), NGX_HTTP_POST,
      .handler = ngx_http_vlm_upload_handler, .stores = 1 },
    HANDLER("/uploads/*", GET, ngx_http_vlm_file_handler),
    HANDLER("/result/*", GET, ngx_http_vlm_file_handler),

    /* Ollama's */

    DIALECT("/api/generate", POST, &ngx_http_vlm_ollama_generate),
    HANDLER("/api/tags", GET, ngx_http_vlm_ollama_tags_handler),
    HANDLER("/api/ps", GET, ngx_http_vlm_ollama_ps_handler),
    HANDLER("/api/version", GET, ngx_http_vlm_ollama_version_handler),
    THREAD("/api/show", POST, ngx_http_vlm_ollama_show, 0),
    THREAD("/api/pull", POST, ngx_http_vlm_ollama_pull, 0),
    HANDLER("/api/push", POST, ngx_http_vlm_ollama_fixed_handler),
    HANDLER("/api/create", POST, ngx_http_vlm_ollama_fixed_handler),
    HANDLER("/api/copy", POST, ngx_http_vlm_ollama_fixed_handler),
    HANDLER("/api/delete", DELETE, ngx_http_vlm_ollama_fixed_handler),
    { ngx_string("/api/blobs/*"), NGX_HTTP_HEAD|NGX_HTTP_POST,
      .handler = ngx_http_vlm_ollama_fixed_handler },
    DIALECT("/api/embed", POST, &ngx_http_vlm_ollama_embed),
    DIALECT("/api/embeddings", POST, &ngx_http_vlm_ollama_embeddings),

    /* OpenAI's */

    DIALECT("/v1/chat/completions", POST, &ngx_http_vlm_openai_chat),
    DIALECT("/v1/completions", POST, &ngx_http_vlm_openai_completion),
    DIALECT("/v1/responses", POST, &ngx_http_vlm_openai_responses),
    DIALECT("/v1/embeddings", POST, &ngx_http_vlm_openai_embeddings),
    HANDLER("/v1/models", GET, ngx_http_vlm_models_handler),
    HANDLER("/v1/models/**", GET, ngx_http_vlm_models_handler),
    DIALECT("/v1/load_lora_adapter", POST, &ngx_http_vlm_adapter_load),
    DIALECT("/v1/unload_lora_adapter", POST, &ngx_http_vlm_adapter_unload),

    /* lists of adapters: llama-server's, and that of the LoRA service */

    HANDLER("/lora-adapters", GET, ngx_http_vlm_adapter_lora_handler),
    HANDLER("/adapter/list", GET, ngx_http_vlm_adapter_list_handler),

    /* the LoRA service's */

    DIALECT("/generate-lite", POST, &ngx_http_vlm_lite_dialect),
    HANDLER("/cleanup-memory", POST, ngx_http_vlm_lite_cleanup_handler),
    HANDLER("/adapter/train-lite", POST, ngx_http_vlm_lite_trains_handler),
    HANDLER("/adapter/status/*", GET, ngx_http_vlm_lite_trains_handler),
    HANDLER("/adapter/logs/*", GET, ngx_http_vlm_lite_trains_handler),
    HANDLER("/adapter/logs/*/tail", GET, ngx_http_vlm_lite_trains_handler),
    HANDLER("/rl/collect", POST, ngx_http_vlm_lite_trains_handler),

    /* documents, and the endpoints of a PDF service */

    DOCUMENT("/api/documents", POST, ngx_http_vlm_documents_handler),
    THREAD("/api/documents/*", GET, ngx_http_vlm_documents_get, 2),
    THREAD("/api/documents/*", DELETE, ngx_http_vlm_documents_delete, 2),
    DOCUMENT("/api/documents/*/pages/*", GET,
             ngx_http_vlm_documents_page_handler),
    THREAD("/api/session/*/documents", GET, ngx_http_vlm_documents_list, 2),
    THREAD("/api/session/*/documents/*", PUT, ngx_http_vlm_documents_link, 2),
    THREAD("/api/session/*/documents/*", DELETE, ngx_http_vlm_documents_unlink,
           2),
    DIALECT("/api/ask", POST, &ngx_http_vlm_question_dialect),
    DIALECT("/ask", POST, &ngx_http_vlm_service_ask),
    DIALECT("/summarize", POST, &ngx_http_vlm_service_summarize),
    DIALECT("/compare", POST, &ngx_http_vlm_service_compare),
    DOCUMENT("/upload", POST, ngx_http_vlm_documents_upload_handler),
    DOCUMENT("/process-pdf", POST, ngx_http_vlm_documents_process_handler),
    { .methods = 0 }
};


static ngx_int_t
ngx_http_vlm_call(const ngx_http_vlm_route_t *route, ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    if (route->stores && eng->store == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (route->stores == 2 && !eng->conf.documents.on) {
        return ngx_http_vlm_send_error(r, NGX_HTTP_NOT_FOUND,
                                       "This server reads no documents: it "
                                       "needs \"documents on\"");
    }

    if (route->handler) {
        return route->handler(r, eng, piece);
    }

    return route->run ? ngx_http_vlm_work(r, eng, piece, route->run)
                      : ngx_http_vlm_ask(r, eng, route->dialect);
}


/* OpenAI's API is large: the error lists the supported part of it */

static ngx_int_t
ngx_http_vlm_not_found(ngx_http_request_t *r)
{
    size_t                       n;
    u_char                      *p, text[NGX_HTTP_VLM_TEXT];
    const ngx_http_vlm_route_t  *route;

    p = ngx_sprintf(text, "Not found");

    for (route = ngx_http_vlm_routes;
         route->methods && ngx_http_vlm_openai_speaks(&r->uri);
         route++)
    {
        if (ngx_http_vlm_openai_speaks(&route->path)) {
            n = strcspn((char *) route->path.data, "*");

            p = ngx_slprintf(p, text + sizeof(text) - 1, "%s%*s%s",
                             p == text + 9 ? ": there are " : ", ", n,
                             route->path.data, n < route->path.len ? "NAME"
                                                                   : "");
        }
    }

    *p = '\0';

    return ngx_http_vlm_send_error(r, NGX_HTTP_NOT_FOUND, (char *) text);
}


/*
 * Passes a request on, in a worker that is not the designated one.  If the
 * zone's state already decides the outcome, the request is refused here; the
 * designated worker checks again.
 */

static ngx_int_t
ngx_http_vlm_hop(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng)
{
    ngx_int_t                 rc;
    ngx_http_vlm_shm_t       *shm;
    ngx_http_vlm_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    shm = eng->zone;

    ngx_http_vlm_zone_orphan(eng);

    if (shm->state == NGX_HTTP_VLM_FAILED) {
        return ngx_http_vlm_refuse(r, eng, "Model not initialized");
    }

    if (ngx_http_vlm_health_silent(shm)) {
        return ngx_http_vlm_refuse(r, eng,
                                   "The model's worker does not answer");
    }

    rc = ngx_http_vlm_refuse_failing(r, eng);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (shm->waiting >= eng->conf.queue_size) {
        return ngx_http_vlm_refuse_full(r, eng);
    }

    return lcf->hop(r);
}


/* a compressed body has an error of its own, or it would be reported as
   invalid JSON */

static ngx_int_t
ngx_http_vlm_encoding(ngx_http_request_t *r)
{
    u_char           *p, text[NGX_HTTP_VLM_TEXT];
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

    if (ngx_http_vlm_add_header(r, "Accept-Encoding", "identity") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_snprintf(text, sizeof(text) - 1,
                     "A body with Content-Encoding %*s is not supported: send "
                     "it uncompressed",
                     ngx_min(h->value.len, 64), h->value.data);
    *p = '\0';

    return ngx_http_vlm_send_error(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                   (char *) text);
}


static ngx_int_t
ngx_http_vlm_allow(ngx_http_request_t *r, ngx_uint_t allow)
{
    u_char      *p, *value;
    ngx_uint_t   i;

    static struct {
        ngx_uint_t   method;
        const char  *name;
    } names[] = {
        { NGX_HTTP_DELETE,  "DELETE" },
        { NGX_HTTP_GET,     "GET" },
        { NGX_HTTP_HEAD,    "HEAD" },
        { NGX_HTTP_OPTIONS, "OPTIONS" },
        { NGX_HTTP_POST,    "POST" },
        { NGX_HTTP_PUT,     "PUT" }
    };

    value = ngx_pnalloc(r->pool,
                        sizeof("DELETE, GET, HEAD, OPTIONS, POST, PUT"));
    if (value == NULL) {
        return NGX_ERROR;
    }

    p = value;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {

        if (allow & names[i].method) {
            p = ngx_sprintf(p, "%s%s", p == value ? "" : ", ", names[i].name);
        }
    }

    *p = '\0';

    return ngx_http_vlm_add_header(r, "Allow", (char *) value);
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


/* returns the route; or NULL, and in *allow the path's other methods */

static const ngx_http_vlm_route_t *
ngx_http_vlm_find(ngx_http_request_t *r, ngx_str_t *piece, ngx_uint_t *allow)
{
    const char                  *from;
    ngx_uint_t                   methods;
    const ngx_http_vlm_route_t  *route;

    *allow = 0;

    for (route = ngx_http_vlm_routes; route->methods; route++) {

        if (!vlm_route_match((char *) route->path.data, (char *) r->uri.data,
                             r->uri.len, &from, &piece->len))
        {
            continue;
        }

        piece->data = (u_char *) from;

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
ngx_http_vlm_go(const ngx_http_vlm_route_t *route, ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    if (route->dialect && !route->handler && !ngx_http_vlm_answers(eng)) {
        return ngx_http_vlm_hop(r, eng);
    }

    return ngx_http_vlm_call(route, r, eng, piece);
}


/* its body names one of several engines */

static void
ngx_http_vlm_chosen(ngx_http_request_t *r)
{
    ngx_str_t                    piece;
    ngx_uint_t                   allow;
    const ngx_http_vlm_route_t  *route;

    route = ngx_http_vlm_find(r, &piece, &allow);

    ngx_http_finalize_request(r, ngx_http_vlm_go(route, r,
                                                 ngx_http_vlm_engine_of(r),
                                                 &piece));
}


ngx_int_t
ngx_http_vlm_handler(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_str_t                    piece;
    ngx_uint_t                   allow;
    const char                  *refused;
    ngx_http_vlm_ctx_t          *ctx;
    const ngx_http_vlm_route_t  *route;

    /* If-None-Match and similar headers apply to files, not to answers */

    r->disable_not_modified = 1;

    /* error_page of another location: its status stays, the answer is ours */

    if (r->err_status) {
        ctx = ngx_http_vlm_ctx(r);
        if (ctx == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ctx->page.given = r->err_status;
    }

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "vlm_pass takes no subrequests");
        return NGX_HTTP_FORBIDDEN;
    }

    refused = ngx_http_vlm_cors_refused(r);

    if (refused) {
        return ngx_http_vlm_send_error(r, NGX_HTTP_FORBIDDEN, refused);
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

    /* a thread without a store is one of Ollama's that read "model" */

    if (ngx_http_vlm_engine_at(r, 1)
        && (route->dialect || (route->run && !route->stores)))
    {
        return ngx_http_vlm_choose(r, route->dialect, ngx_http_vlm_chosen);
    }

    return ngx_http_vlm_go(route, r, ngx_http_vlm_engine_at(r, 0), &piece);
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

    if (route == NULL || route->dialect == NULL) {
        rc = ngx_http_vlm_send_error(r, NGX_HTTP_NOT_FOUND, "Not found");

    } else if (!lcf->engine->life.owner || lcf->engine->life.released) {
        rc = ngx_http_vlm_refuse_moved(r);

    } else {
        rc = ngx_http_vlm_call(route, r, lcf->engine, &piece);
    }

    ngx_http_finalize_request(r, rc);

    return NGX_DONE;
}
