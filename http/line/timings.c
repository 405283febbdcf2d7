
/*
 * The times of an answer, from the first byte of its request on.
 */


#include "line.h"
#include "api/timings.h"


void
ngx_http_vlm_timings_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    vlm_usage_t                   *u;
    vlm_timings_t                  t;
    ngx_http_vlm_request_times_t  *times;

    u = &ctx->usage;
    times = &ctx->times;

    t.prompt_tokens = u->prompt_tokens;
    t.cached_tokens = u->cached_tokens;
    t.completion_tokens = u->completion_tokens;
    t.images = u->pictures;
    t.cached_images = u->cached_pictures;
    t.encode_ms = u->encode_ms;
    t.prefill_ms = u->prefill_ms;
    t.decode_ms = u->decode_ms;
    t.first_step_ms = u->pick_ms;
    t.image_decode_us = times->decode_us;
    t.image_resize_us = times->resize_us;
    t.receive_ms = times->arrived - times->headers;
    t.wait_ms = times->wait_ms;
    t.prepare_ms = times->prepared_ms;
    t.first_ms = times->first ? (int64_t) (times->first - times->headers) : -1;

    vlm_timings_put(w, &t);
}


/* the request's first slot; the times before it, for the metrics */

void
ngx_http_vlm_timings_started(ngx_http_vlm_ctx_t *ctx)
{
    ngx_msec_int_t          ms;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    ms = ctx->times.started - ctx->times.arrived - ctx->times.prepared_ms;

    ctx->times.wait_ms = ngx_max(ms, 0);

    ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_RECEIVE,
                              ctx->times.arrived - ctx->times.headers);

    if (ctx->times.decode_us) {
        ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_IMAGE_DECODE,
                                  ctx->times.decode_us / 1000);
        ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_IMAGE_RESIZE,
                                  ctx->times.resize_us / 1000);
    }
}
