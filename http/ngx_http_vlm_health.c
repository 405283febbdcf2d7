
/*
 * GET /api/health: what any worker knows of the engine, from the zone.  It
 * answers at once while the engine loads, works, has failed or is being
 * restarted.
 */


#include "ngx_http_vlm.h"


static void ngx_http_vlm_health_plan(ngx_http_vlm_json_out_t *w,
    vlm_plan_t *plan);
static void ngx_http_vlm_health_text(ngx_http_vlm_json_out_t *w,
    const char *key, const char *text);


ngx_int_t
ngx_http_vlm_health_handler(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece)
{
    ngx_uint_t                 failed, ready;
    ngx_http_vlm_shm_t         shm;
    ngx_http_vlm_json_out_t    w;

    ngx_http_vlm_zone_texts(eng, &shm);

    failed = shm.state == NGX_HTTP_VLM_FAILED;
    ready = shm.state == NGX_HTTP_VLM_READY;

    /* a worker that was killed is replaced at once, and loads again */

    if (shm.pid && kill((pid_t) shm.pid, 0) == -1 && ngx_errno == ESRCH) {
        ready = 0;
        shm.progress = 0;
    }

    ngx_http_vlm_json_init(&w, 16 * 1024);
    ngx_http_vlm_json_open(&w, '{');

    ngx_http_vlm_json_put_key(&w, "active_sessions");
    ngx_http_vlm_json_put_int(&w, shm.sessions);

    ngx_http_vlm_health_text(&w, "device", shm.device);

    if (shm.device_reason[0]) {
        ngx_http_vlm_health_text(&w, "device_reason", shm.device_reason);
    }

    ngx_http_vlm_json_put_key(&w, "model_loaded");
    ngx_http_vlm_json_put_bool(&w, ready);

    ngx_http_vlm_json_put_key(&w, "plan");
    ngx_http_vlm_health_plan(&w, &shm.plan);

    ngx_http_vlm_json_put_key(&w, "progress");
    ngx_http_vlm_json_put_int(&w, shm.progress);

    ngx_http_vlm_json_put_key(&w, "queue");
    ngx_http_vlm_json_open(&w, '{');
    ngx_http_vlm_json_put_key(&w, "limit");
    ngx_http_vlm_json_put_int(&w, eng->queue);
    ngx_http_vlm_json_put_key(&w, "running");
    ngx_http_vlm_json_put_int(&w, shm.running);
    ngx_http_vlm_json_put_key(&w, "waiting");
    ngx_http_vlm_json_put_int(&w, shm.waiting);
    ngx_http_vlm_json_shut(&w, '}');

    if (failed) {
        ngx_http_vlm_health_text(&w, "reason", shm.reason);
    }

    ngx_http_vlm_health_text(&w, "state", failed ? "failed" : ready ? "ready"
                                                                 : "loading");
    ngx_http_vlm_health_text(&w, "status", failed ? "unhealthy" : "healthy");

    ngx_http_vlm_json_shut(&w, '}');
    (void) ngx_http_vlm_json_done(&w);

    return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
}


/* bytes */

static void
ngx_http_vlm_health_plan(ngx_http_vlm_json_out_t *w, vlm_plan_t *plan)
{
    ngx_http_vlm_json_open(w, '{');

    ngx_http_vlm_json_put_key(w, "device");
    ngx_http_vlm_json_put_int(w, plan->device);
    ngx_http_vlm_json_put_key(w, "kv");
    ngx_http_vlm_json_put_int(w, plan->kv);
    ngx_http_vlm_json_put_key(w, "total");
    ngx_http_vlm_json_put_int(w, plan->total);
    ngx_http_vlm_json_put_key(w, "vision");
    ngx_http_vlm_json_put_int(w, plan->vision);
    ngx_http_vlm_json_put_key(w, "weights");
    ngx_http_vlm_json_put_int(w, plan->weights);
    ngx_http_vlm_json_put_key(w, "workspace");
    ngx_http_vlm_json_put_int(w, plan->workspace);

    ngx_http_vlm_json_shut(w, '}');
}


static void
ngx_http_vlm_health_text(ngx_http_vlm_json_out_t *w, const char *key,
    const char *text)
{
    ngx_http_vlm_json_put_key(w, key);
    ngx_http_vlm_json_put_text(w, text, ngx_strlen(text));
}
