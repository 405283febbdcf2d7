
/*
 * Sessions by name: POST /api/session, DELETE, reset, history; and the list of
 * tasks.  SQLite is called in a thread (work.c).
 */


#include "../api.h"
#include "robobrain/history.h"


#define NGX_HTTP_VLM_HISTORY  (32u << 20)      /* bytes of an answer */


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


/* The result does not depend on this count: if it fails, health shows the old
   number until the next change. */

static void
ngx_http_vlm_session_count(ngx_http_vlm_ctx_t *ctx)
{
    vlm_store_err_t  err;

    if (ngx_http_vlm_zone_sessions(ctx->engine, &err) != VLM_STORE_OK) {
        ngx_http_vlm_copy(ctx->error.err.text, err.text);
        return;
    }

    ngx_http_vlm_zone_store(ctx->engine, NULL);
}


/* an object of this text, under one key or under two */

static void
ngx_http_vlm_session_put(ngx_http_vlm_ctx_t *ctx, const char *key,
    const char *text, const char *other)
{
    vlm_json_out_t  *w;

    w = &ctx->out.json;

    vlm_json_init(w, NGX_HTTP_VLM_HISTORY);
    vlm_json_open(w, '{');
    vlm_json_add_string(w, key, text);

    if (other) {
        vlm_json_add_string(w, other, text);
    }

    vlm_json_shut(w, '}');
}


/* While the model loads a session is made all the same: its first question
   waits in the queue, and a page that creates one at its start works. */

void
ngx_http_vlm_session_create(ngx_http_vlm_ctx_t *ctx)
{
    char  id[37];

    if (ctx->engine->zone->state == NGX_HTTP_VLM_FAILED) {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 "Model not initialized");
        return;
    }

    ctx->stored.code = vlm_store_session_create(ctx->engine->store,
                                    ngx_http_vlm_order_salt(&ctx->place.rank),
                                    id, &ctx->stored);

    if (ctx->stored.code == VLM_STORE_OK) {
        ngx_http_vlm_session_count(ctx);
        ngx_http_vlm_session_put(ctx, "sessionId", id, "session_id");
    }
}


void
ngx_http_vlm_session_delete(ngx_http_vlm_ctx_t *ctx)
{
    ctx->stored.code = vlm_store_session_delete(ctx->engine->store,
                           ngx_http_vlm_order_session(ctx, ctx->place.session),
                           &ctx->stored);

    if (ctx->stored.code == VLM_STORE_OK) {
        ngx_http_vlm_session_count(ctx);
        ngx_http_vlm_session_put(ctx, "status", "deleted", NULL);
    }
}


void
ngx_http_vlm_session_reset(ngx_http_vlm_ctx_t *ctx)
{
    ctx->stored.code = vlm_store_session_reset(ctx->engine->store,
                           ngx_http_vlm_order_session(ctx, ctx->place.session),
                           &ctx->stored);

    if (ctx->stored.code == VLM_STORE_OK) {
        ngx_http_vlm_session_put(ctx, "status", "reset", NULL);
    }
}


void
ngx_http_vlm_session_history(ngx_http_vlm_ctx_t *ctx)
{
    size_t               i;
    vlm_json_out_t      *w;
    vlm_store_loaded_t   loaded;

    ctx->stored.code = vlm_store_session_load(ctx->engine->store,
                           ngx_http_vlm_order_session(ctx, ctx->place.session),
                           VLM_STORE_ENTRIES, &loaded, &ctx->stored);

    if (ctx->stored.code != VLM_STORE_OK) {
        return;
    }

    w = &ctx->out.json;

    vlm_json_init(w, NGX_HTTP_VLM_HISTORY);
    vlm_json_open(w, '[');

    for (i = 0; i < loaded.n; i++) {
        vlm_history_put(w, &loaded.entries[i]);
    }

    vlm_json_shut(w, ']');

    vlm_store_loaded_free(&loaded);
}
