
/*
 * Sessions by name: POST /api/session, DELETE, reset, history; and the list of
 * tasks.
 *
 * Any worker answers these.  SQLite is called in a thread, which also writes
 * the answer's JSON; the loop sends it.
 */


#include "../api.h"


#define NGX_HTTP_VLM_HISTORY  (32u << 20)      /* bytes of an answer */


typedef struct {
    ngx_http_vlm_engine_t        *engine;
    vlm_store_text_t              id;
    void                        (*run)(void *data);
    vlm_json_out_t                json;        /* freed with the request */
    vlm_store_err_t               err;
    int                           rc;          /* of the store */
    int                           count_rc;
    vlm_store_err_t               count_err;
} ngx_http_vlm_session_t;


static ngx_int_t ngx_http_vlm_session_start(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece, void (*run)(void *data));
static void ngx_http_vlm_session_body(ngx_http_request_t *r);
static void ngx_http_vlm_session_done(ngx_http_request_t *r, void *data);
static void ngx_http_vlm_session_cleanup(void *data);

static void ngx_http_vlm_session_create(void *data);
static void ngx_http_vlm_session_delete(void *data);
static void ngx_http_vlm_session_reset(void *data);
static void ngx_http_vlm_session_history(void *data);

static void ngx_http_vlm_session_count(ngx_http_vlm_session_t *s);
static void ngx_http_vlm_session_status(ngx_http_vlm_session_t *s,
    const char *status);
static void ngx_http_vlm_session_entry(ngx_http_vlm_session_t *s,
    vlm_store_entry_t *e);
static void ngx_http_vlm_session_text(ngx_http_vlm_session_t *s,
    const char *key, vlm_store_text_t *text, const char *before);


static ngx_str_t  ngx_http_vlm_tasks = ngx_string(
    "{\"tasks\":["
    "{\"description\":\"Automatically detect task type using AI\","
    "\"id\":\"auto\",\"name\":\"Auto Mode\"},"
    "{\"description\":\"General conversation and Q&A about the image\","
    "\"id\":\"general\",\"name\":\"General Chat\"},"
    "{\"description\":\"Locate objects in the image with bounding boxes\","
    "\"id\":\"grounding\",\"name\":\"Grounding\"},"
    "{\"description\":\"Predict actionable areas for robot manipulation\","
    "\"id\":\"affordance\",\"name\":\"Affordance\"},"
    "{\"description\":\"Plan robot arm movement paths\","
    "\"id\":\"trajectory\",\"name\":\"Trajectory\"},"
    "{\"description\":\"Identify specific points on objects\","
    "\"id\":\"pointing\",\"name\":\"Pointing\"}"
    "]}\n"
);


ngx_int_t
ngx_http_vlm_tasks_handler(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece)
{
    return ngx_http_vlm_send(r, NGX_HTTP_OK, &ngx_http_vlm_tasks);
}


/* While the model loads a session is made all the same: its first question
   waits in the queue, and a page that creates one at its start works. */

ngx_int_t
ngx_http_vlm_session_create_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    if (eng->zone->state == NGX_HTTP_VLM_FAILED) {
        return ngx_http_vlm_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                       "Model not initialized");
    }

    return ngx_http_vlm_session_start(r, eng, piece,
                                      ngx_http_vlm_session_create);
}


ngx_int_t
ngx_http_vlm_session_delete_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_session_start(r, eng, piece,
                                      ngx_http_vlm_session_delete);
}


ngx_int_t
ngx_http_vlm_session_reset_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_session_start(r, eng, piece,
                                      ngx_http_vlm_session_reset);
}


ngx_int_t
ngx_http_vlm_history_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_session_start(r, eng, piece,
                                      ngx_http_vlm_session_history);
}


/* ---- the loop ------------------------------------------------------------ */


static ngx_int_t
ngx_http_vlm_session_start(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece, void (*run)(void *data))
{
    ngx_pool_cleanup_t      *cln;
    ngx_http_vlm_session_t  *s;

    if (eng->store == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_vlm_session_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    s = cln->data;
    ngx_memzero(s, sizeof(ngx_http_vlm_session_t));

    cln->handler = ngx_http_vlm_session_cleanup;

    s->engine = eng;
    s->id.data = (char *) piece->data;
    s->id.len = piece->len;
    s->run = run;

    vlm_json_init(&s->json, NGX_HTTP_VLM_HISTORY);

    /* a body has no meaning here, but is read: HTTP/2 clients need that */

    return ngx_http_vlm_body_read(r, ngx_http_vlm_session_body);
}


static void
ngx_http_vlm_session_body(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t      *cln;
    ngx_http_vlm_session_t  *s;

    s = NULL;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_vlm_session_cleanup) {
            s = cln->data;
            break;
        }
    }

    if (s == NULL
        || ngx_http_vlm_thread(r, s->engine, s->run,
                               ngx_http_vlm_session_done, s)
           != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


static void
ngx_http_vlm_session_done(ngx_http_request_t *r, void *data)
{
    ngx_http_vlm_session_t *s = data;

    ngx_int_t  rc;

    if (s->count_rc != VLM_STORE_OK) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0, "vlm_engine"
                      " \"%V\": %s", &s->engine->name, s->count_err.text);
    }

    if (s->rc == VLM_STORE_OK) {
        rc = ngx_http_vlm_send_json(r, NGX_HTTP_OK, &s->json);

        /* the request's pool now owns it, and frees it */

        ngx_memzero(&s->json, sizeof(vlm_json_out_t));

        ngx_http_finalize_request(r, rc);
        return;
    }

    ngx_http_finalize_request(r,
                        ngx_http_vlm_refuse_store(r, s->engine, &s->err));
}


static void
ngx_http_vlm_session_cleanup(void *data)
{
    ngx_http_vlm_session_t *s = data;

    vlm_json_release(&s->json);
}


/* ---- threads ------------------------------------------------------------- */


static void
ngx_http_vlm_session_create(void *data)
{
    ngx_http_vlm_session_t *s = data;

    char  id[37];

    s->rc = vlm_store_session_create(s->engine->store, id, &s->err);

    if (s->rc != VLM_STORE_OK) {
        return;
    }

    ngx_http_vlm_session_count(s);

    vlm_json_open(&s->json, '{');
    vlm_json_add_text(&s->json, "sessionId", id, 36);
    vlm_json_add_text(&s->json, "session_id", id, 36);
    vlm_json_shut(&s->json, '}');

    (void) vlm_json_done(&s->json);
}


static void
ngx_http_vlm_session_delete(void *data)
{
    ngx_http_vlm_session_t *s = data;

    s->rc = vlm_store_session_delete(s->engine->store, s->id,
                                     &s->err);

    if (s->rc == VLM_STORE_OK) {
        ngx_http_vlm_session_count(s);
        ngx_http_vlm_session_status(s, "deleted");
    }
}


static void
ngx_http_vlm_session_reset(void *data)
{
    ngx_http_vlm_session_t *s = data;

    s->rc = vlm_store_session_reset(s->engine->store, s->id,
                                    &s->err);

    if (s->rc == VLM_STORE_OK) {
        ngx_http_vlm_session_status(s, "reset");
    }
}


/* The result does not depend on this count: if it fails, health shows the old
   number until the next change. */

static void
ngx_http_vlm_session_count(ngx_http_vlm_session_t *s)
{
    uint64_t  n;

    s->count_rc = vlm_store_session_count(s->engine->store, &n,
                                          &s->count_err);

    if (s->count_rc == VLM_STORE_OK) {
        ngx_http_vlm_zone_sessions(s->engine, n);
        ngx_http_vlm_zone_store(s->engine, NULL);
    }
}


static void
ngx_http_vlm_session_status(ngx_http_vlm_session_t *s, const char *status)
{
    vlm_json_open(&s->json, '{');
    vlm_json_add_string(&s->json, "status", status);
    vlm_json_shut(&s->json, '}');

    (void) vlm_json_done(&s->json);
}


static void
ngx_http_vlm_session_history(void *data)
{
    ngx_http_vlm_session_t *s = data;

    size_t                       i;
    vlm_store_loaded_t  loaded;

    s->rc = vlm_store_session_load(s->engine->store, s->id,
                                   VLM_STORE_ENTRIES,
                                   &loaded, &s->err);

    if (s->rc != VLM_STORE_OK) {
        return;
    }

    vlm_json_open(&s->json, '[');

    for (i = 0; i < loaded.n; i++) {
        ngx_http_vlm_session_entry(s, &loaded.entries[i]);
    }

    vlm_json_shut(&s->json, ']');

    (void) vlm_json_done(&s->json);

    vlm_store_loaded_free(&loaded);
}


/* an assistant's entry has its task among the metadata */

static void
ngx_http_vlm_session_entry(ngx_http_vlm_session_t *s,
    vlm_store_entry_t *e)
{
    ngx_uint_t                 user;
    vlm_store_text_t           none;

    none.data = NULL;
    none.len = 0;

    user = (e->role == VLM_STORE_USER);

    vlm_json_open(&s->json, '{');

    ngx_http_vlm_session_text(s, "content", &e->content, NULL);
    ngx_http_vlm_session_text(s, "image_path", &e->image, NULL);

    vlm_json_add_open(&s->json, "metadata", '{');

    if (!user) {
        ngx_http_vlm_session_text(s, "output_image", &e->output, "result/");
        ngx_http_vlm_session_text(s, "task", &e->task, NULL);
        ngx_http_vlm_session_text(s, "thinking", &e->thinking, NULL);
    }

    vlm_json_shut(&s->json, '}');

    vlm_json_add_string(&s->json, "role", user ? "user" : "assistant");

    ngx_http_vlm_session_text(s, "task", user ? &e->task : &none, NULL);

    vlm_json_add_string(&s->json, "timestamp", e->time);

    vlm_json_shut(&s->json, '}');
}


static void
ngx_http_vlm_session_text(ngx_http_vlm_session_t *s, const char *key,
    vlm_store_text_t *text, const char *before)
{
    u_char  *last, path[VLM_STORE_NAME + 32];

    vlm_json_put_key(&s->json, key);

    if (before == NULL || text->data == NULL) {
        vlm_json_put_text(&s->json, text->data, text->len);
        return;
    }

    last = ngx_snprintf(path, sizeof(path), "%s%*s", before, text->len,
                        text->data);

    vlm_json_put_text(&s->json, (char *) path, last - path);
}
