
/*
 * The LoRA service's endpoints beside its answers: its health, which
 * llama-server has at the same path, its memory, and those that train.
 */


#include "../api.h"


#define NGX_HTTP_VLM_LITE_STATE  1024          /* bytes of JSON */


static double
ngx_http_vlm_lite_mb(uint64_t bytes)
{
    return (double) (bytes * 100 / (1024 * 1024)) / 100;
}


/* of a GPU; taken is what was measured of the device's own use */

static void
ngx_http_vlm_lite_put_memory(vlm_json_out_t *w, ngx_http_vlm_shm_t *shm,
    const char *allocated, const char *reserved)
{
    uint64_t  bytes;

    bytes = shm->plan.total - shm->plan.device;

    vlm_json_add_double(w, allocated, ngx_http_vlm_lite_mb(bytes));

    bytes += shm->taken ? shm->taken : shm->plan.device;

    vlm_json_add_double(w, reserved, ngx_http_vlm_lite_mb(bytes));
}


/* as Python's datetime.now().isoformat() */

static void
ngx_http_vlm_lite_put_time(vlm_json_out_t *w)
{
    ngx_tm_t     tm;
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    ngx_gmtime(tp->sec + tp->gmtoff * 60, &tm);

    vlm_json_add_format(w, "timestamp", "%04d-%02d-%02dT%02d:%02d:%02d.%03u000",
                        tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                        tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec,
                        (unsigned) tp->msec);
}


ngx_int_t
ngx_http_vlm_lite_health_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    ngx_int_t           rc;
    vlm_json_out_t      w;
    ngx_http_vlm_shm_t  shm;

    rc = ngx_http_vlm_health_unready(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_http_vlm_zone_texts(eng, &shm);

    vlm_json_init(&w, NGX_HTTP_VLM_LITE_STATE);
    vlm_json_open(&w, '{');
    vlm_json_add_string(&w, "status", "ok");
    ngx_http_vlm_lite_put_time(&w);
    vlm_json_add_int(&w, "active_jobs", 0);
    vlm_json_add_bool(&w, "generation_in_progress", shm.running > 0);
    vlm_json_add_bool(&w, "model_cached", 1);
    vlm_json_add_bool(&w, "gpu_available", shm.plan.device > 0);

    if (shm.plan.device > 0) {
        vlm_json_add_open(&w, "gpu_memory", '{');
        ngx_http_vlm_lite_put_memory(&w, &shm, "allocated_mb", "reserved_mb");
        vlm_json_shut(&w, '}');

    } else {
        vlm_json_add_string(&w, "gpu_memory", NULL);
    }

    vlm_json_shut(&w, '}');

    return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
}


/* the memory is planned, and has nothing to free */

ngx_int_t
ngx_http_vlm_lite_cleanup_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    vlm_json_out_t        w;
    ngx_http_vlm_shm_t    shm;
    ngx_http_vlm_state_e  state;

    ngx_http_vlm_zone_texts(eng, &shm);

    state = ngx_http_vlm_health_state(eng, &shm);

    vlm_json_init(&w, NGX_HTTP_VLM_LITE_STATE);
    vlm_json_open(&w, '{');
    vlm_json_add_string(&w, "status", "success");

    if (shm.plan.device > 0) {
        vlm_json_add_string(&w, "message",
                            "Memory cleaned up (cache preserved)");
        ngx_http_vlm_lite_put_memory(&w, &shm, "gpu_memory_allocated_mb",
                                     "gpu_memory_reserved_mb");

    } else {
        vlm_json_add_string(&w, "message",
                            "Memory cleaned up (CPU only) (cache preserved)");
    }

    vlm_json_add_bool(&w, "model_cached", state == NGX_HTTP_VLM_READY
                                          || state == NGX_HTTP_VLM_BUSY);
    vlm_json_shut(&w, '}');

    return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
}


ngx_int_t
ngx_http_vlm_lite_trains_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_send_error(r, NGX_HTTP_NOT_IMPLEMENTED,
                                   "This server does not train: it has no "
                                   "jobs, no logs of them, and collects no "
                                   "episodes");
}
