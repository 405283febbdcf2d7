
/*
 * GET /api/health: the engine's state, from the zone, in any worker.  It
 * answers at once while the engine loads, works, hangs, has failed or is being
 * restarted.  Beside it are a liveness and a readiness probe, which have only
 * a status.
 *
 * The zone's content was true when its owner wrote it.  The reader checks
 * whether the owner still exists and its heartbeat goes on.
 */


#include "status.h"


#define NGX_HTTP_VLM_SILENCE  3000         /* ms: six heartbeats */


static const char *const  ngx_http_vlm_health_names[] = {
    "loading", "ready", "failed", "stalled", "busy"
};


static const char *const  ngx_http_vlm_breaker_names[] = {
    "closed", "open", "probing"
};


ngx_http_vlm_state_e
ngx_http_vlm_health_state(ngx_http_vlm_engine_t *eng, ngx_http_vlm_shm_t *shm)
{
    ngx_http_vlm_zone_orphan(eng);

    /* a killed worker is replaced at once, and the new one loads */

    if (ngx_http_vlm_zone_gone(shm)) {
        shm->progress = 0;
        return NGX_HTTP_VLM_LOADING;
    }

    if (shm->state == NGX_HTTP_VLM_FAILED) {
        return NGX_HTTP_VLM_FAILED;
    }

    if (ngx_http_vlm_health_silent(shm)) {
        return NGX_HTTP_VLM_STALLED;
    }

    if (shm->state == NGX_HTTP_VLM_READY
        && shm->running >= eng->conf.vlm.slots)
    {
        return NGX_HTTP_VLM_BUSY;
    }

    return shm->state;
}


ngx_uint_t
ngx_http_vlm_health_silent(ngx_http_vlm_shm_t *shm)
{
    return shm->pid
           && (ngx_msec_int_t) (ngx_current_msec - shm->heartbeat)
              > NGX_HTTP_VLM_SILENCE
           && !ngx_http_vlm_zone_gone(shm);
}


/* ms since the last heartbeat of the loop and the engine thread; -1: no
   worker */

static void
ngx_http_vlm_health_heartbeat(vlm_json_out_t *w, ngx_http_vlm_shm_t *shm)
{
    ngx_msec_int_t  loop, engine;

    loop = -1;
    engine = -1;

    if (shm->pid && !ngx_http_vlm_zone_gone(shm)) {
        loop = ngx_max((ngx_msec_int_t) (ngx_current_msec - shm->heartbeat), 0);
        engine = ngx_max((ngx_msec_int_t) (ngx_current_msec - shm->ticked), 0);
    }

    vlm_json_add_open(w, "heartbeat", '{');
    vlm_json_add_int(w, "engine_ms", engine);
    vlm_json_add_int(w, "loop_ms", loop);
    vlm_json_add_int(w, "pid", shm->pid);
    vlm_json_add_int(w, "restarts", shm->metrics.restarts);
    vlm_json_shut(w, '}');
}


static void
ngx_http_vlm_health_breaker(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng)
{
    u_char               text[128];
    vlm_breaker_state_t  state;

    state = ngx_http_vlm_breaker_state(eng);

    vlm_json_add_open(w, "breaker", '{');
    vlm_json_add_int(w, "failures", eng->zone->breaker.failures);

    if (state != VLM_BREAKER_CLOSED) {
        (void) ngx_http_vlm_breaker_reason(eng, text, sizeof(text));
        vlm_json_add_string(w, "reason", (char *) text);
    }

    vlm_json_add_string(w, "state", ngx_http_vlm_breaker_names[state]);
    vlm_json_shut(w, '}');
}


void
ngx_http_vlm_health_left_out(vlm_json_out_t *w, const char *key,
    ngx_http_vlm_engine_t *eng, ngx_http_vlm_shm_t *shm)
{
    ngx_uint_t            i, n;
    vlm_adapter_entry_t  *a;

    for (n = 0, i = 0; eng->conf.vlm.lora && i < VLM_MAX_ADAPTERS; i++) {
        a = &shm->adapters[i];

        if (a->reason[0] == '\0') {
            continue;
        }

        if (n++ == 0) {
            vlm_json_add_open(w, key, '[');
        }

        vlm_json_open(w, '{');
        vlm_json_add_string(w, "name", a->name);
        vlm_json_add_string(w, "reason", a->reason);
        vlm_json_shut(w, '}');
    }

    if (n) {
        vlm_json_shut(w, ']');
    }
}


/* their names, if there is a directory for them; and which were left out */

static void
ngx_http_vlm_health_adapters(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_shm_t *shm)
{
    ngx_uint_t            i;
    vlm_adapter_entry_t  *a;

    if (eng->conf.vlm.lora == NULL) {
        return;
    }

    vlm_json_add_open(w, "adapters", '[');

    for (i = 0; i < VLM_MAX_ADAPTERS; i++) {
        a = &shm->adapters[i];

        if (a->listed) {
            vlm_json_put_text(w, a->name, ngx_strlen(a->name));
        }
    }

    vlm_json_shut(w, ']');

    ngx_http_vlm_health_left_out(w, "adapters_left_out", eng, shm);
}


/* of vectors, and the pieces that have none yet; false: there is none */

static void
ngx_http_vlm_health_encoder(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_shm_t *shm)
{
    if (!eng->conf.documents.hybrid) {
        vlm_json_add_bool(w, "encoder", 0);
        return;
    }

    vlm_json_add_open(w, "encoder", '{');

    if (shm->encoder_reason[0]) {
        vlm_json_add_string(w, "reason", shm->encoder_reason);
    }

    vlm_json_add_string(w, "state",
                        ngx_http_vlm_health_names[
                            ngx_http_vlm_encoding_state(shm)]);
    vlm_json_add_int(w, "waiting", shm->documents.lacking);
    vlm_json_shut(w, '}');
}


/* false: off; the numbers of those in each state */

static void
ngx_http_vlm_health_documents(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_shm_t *shm)
{
    ngx_uint_t  i;

    if (!eng->conf.documents.on) {
        vlm_json_add_bool(w, "documents", 0);
        return;
    }

    vlm_json_add_open(w, "documents", '{');
    ngx_http_vlm_health_encoder(w, eng, shm);

    if (shm->reader_reason[0]) {
        vlm_json_add_string(w, "reason", shm->reader_reason);
    }

    for (i = 0; i < NGX_HTTP_VLM_DOCUMENT_STATES; i++) {
        vlm_json_add_int(w, ngx_http_vlm_document_states[i],
                         shm->documents.states[i]);
    }

    vlm_json_add_string(w, "walls", ngx_http_vlm_reading_walls(eng));
    vlm_json_shut(w, '}');
}


/* bytes */

static void
ngx_http_vlm_health_plan(vlm_json_out_t *w, vlm_plan_t *plan)
{
    vlm_json_add_open(w, "plan", '{');
    vlm_json_add_int(w, "device", plan->device);
    vlm_json_add_int(w, "encoder", plan->encoder);
    vlm_json_add_int(w, "kv", plan->kv);
    vlm_json_add_int(w, "lora", plan->lora);
    vlm_json_add_int(w, "total", plan->total);
    vlm_json_add_int(w, "vision", plan->vision);
    vlm_json_add_int(w, "weights", plan->weights);
    vlm_json_add_int(w, "workspace", plan->workspace);
    vlm_json_shut(w, '}');
}


/* several: each engine of the location, too */

static void
ngx_http_vlm_health_put(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng,
    ngx_http_request_t *several)
{
    ngx_uint_t                 i, bad;
    ngx_http_vlm_shm_t         shm;
    ngx_http_vlm_state_e       state;
    ngx_http_vlm_engine_t     *one;

    ngx_http_vlm_zone_texts(eng, &shm);

    state = ngx_http_vlm_health_state(eng, &shm);
    bad = state == NGX_HTTP_VLM_FAILED || state == NGX_HTTP_VLM_STALLED;

    vlm_json_open(w, '{');

    vlm_json_add_int(w, "active_sessions", shm.sessions);

    ngx_http_vlm_health_adapters(w, eng, &shm);

    ngx_http_vlm_health_breaker(w, eng);
    vlm_json_add_bool(w, "chat", eng->conf.facts.turn != NULL);
    vlm_json_add_int(w, "coordinates", eng->conf.facts.coordinates);
    vlm_json_add_string(w, "device", shm.device);

    if (shm.taken) {
        vlm_json_add_int(w, "device_overhead", shm.taken);
    }

    if (shm.device_reason[0]) {
        vlm_json_add_string(w, "device_reason", shm.device_reason);
    }

    if (shm.filling) {
        vlm_json_add_bool(w, "filling", 1);
    }

    ngx_http_vlm_health_documents(w, eng, &shm);

    if (several) {
        vlm_json_add_open(w, "engines", '[');

        for (i = 0; (one = ngx_http_vlm_engine_at(several, i)) != NULL; i++) {
            ngx_http_vlm_health_put(w, one, NULL);
        }

        vlm_json_shut(w, ']');
    }

    ngx_http_vlm_health_heartbeat(w, &shm);

    vlm_json_add_text(w, "model", (char *) eng->name.data, eng->name.len);

    vlm_json_add_bool(w, "model_loaded", state == NGX_HTTP_VLM_READY
                                          || state == NGX_HTTP_VLM_BUSY);

    vlm_json_add_int(w, "parameters", eng->conf.facts.parameters);

    ngx_http_vlm_health_plan(w, &shm.plan);

    vlm_json_add_int(w, "progress", shm.progress);

    vlm_json_add_open(w, "queue", '{');
    vlm_json_add_int(w, "limit", eng->conf.queue_size);
    vlm_json_add_int(w, "running", shm.running);
    vlm_json_add_int(w, "waiting", shm.waiting);
    vlm_json_shut(w, '}');

    if (bad || shm.reason[0]) {
        vlm_json_add_string(w, "reason", shm.reason[0] ? shm.reason
                            : "the worker's event loop does not answer");
    }

    if (shm.reload_reason[0]) {
        vlm_json_add_string(w, "reload_reason", shm.reload_reason);
    }

    vlm_json_add_string(w, "state", ngx_http_vlm_health_names[state]);
    vlm_json_add_string(w, "status", bad ? "unhealthy" : "healthy");

    if (shm.store_reason[0]) {
        vlm_json_add_string(w, "store_reason", shm.store_reason);
    }

    vlm_json_add_bool(w, "thinking", eng->conf.thinking);

    vlm_json_add_string(w, "version", VLM_VERSION);

    vlm_json_add_bool(w, "vision", eng->conf.facts.vision_layers > 0);

    vlm_json_shut(w, '}');
}


ngx_int_t
ngx_http_vlm_health_handler(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece)
{
    vlm_json_out_t  w;

    vlm_json_init(&w, (NGX_HTTP_VLM_ENGINES + 1) * 64 * 1024);

    ngx_http_vlm_health_put(&w, eng, ngx_http_vlm_engine_at(r, 1) ? r : NULL);

    return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
}


ngx_int_t
ngx_http_vlm_health_live_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    static ngx_str_t  ok = ngx_string("{\"status\":\"ok\"}\n");

    return ngx_http_vlm_send(r, NGX_HTTP_OK, &ok);
}


static ngx_int_t
ngx_http_vlm_health_refuse(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_state_e state, ngx_uint_t open, ngx_uint_t progress)
{
    vlm_json_out_t  w;

    if (ngx_http_vlm_retry_after(r, ngx_http_vlm_metrics_retry(eng))
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    vlm_json_init(&w, 1024);
    vlm_json_open(&w, '{');
    vlm_json_add_open(&w, "error", '{');
    vlm_json_add_int(&w, "code", NGX_HTTP_SERVICE_UNAVAILABLE);
    vlm_json_add_string(&w, "message",
                        open ? "The engine has failed repeatedly"
                        : state == NGX_HTTP_VLM_LOADING ? "Loading model"
                        : ngx_http_vlm_health_names[state]);
    vlm_json_add_string(&w, "type", "unavailable_error");
    vlm_json_shut(&w, '}');
    vlm_json_add_int(&w, "progress", progress);
    vlm_json_add_string(&w, "state", ngx_http_vlm_health_names[state]);
    vlm_json_shut(&w, '}');

    return ngx_http_vlm_send_json(r, NGX_HTTP_SERVICE_UNAVAILABLE, &w);
}


/* the bodies are llama-server's, and say what the one reading has found */

ngx_int_t
ngx_http_vlm_health_unready(ngx_http_request_t *r)
{
    ngx_uint_t              i, open;
    ngx_http_vlm_shm_t      shm;
    ngx_http_vlm_state_e    state;
    ngx_http_vlm_engine_t  *eng;

    for (i = 0; (eng = ngx_http_vlm_engine_at(r, i)) != NULL; i++) {

        ngx_http_vlm_zone_texts(eng, &shm);

        state = ngx_http_vlm_health_state(eng, &shm);
        open = ngx_http_vlm_breaker_state(eng) == VLM_BREAKER_OPEN;

        if (open || (state != NGX_HTTP_VLM_READY
                     && state != NGX_HTTP_VLM_BUSY))
        {
            return ngx_http_vlm_health_refuse(r, eng, state, open,
                                              shm.progress);
        }
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_vlm_health_ready_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    ngx_int_t  rc;

    rc = ngx_http_vlm_health_unready(r);

    return rc != NGX_DECLINED
           ? rc : ngx_http_vlm_health_live_handler(r, eng, piece);
}
