
/*
 * The times of an answer, from the first byte of its request on: as "timings",
 * an object of the answer, with llama-server's names where it has them, and
 * with null where nothing was measured.
 *
 * The times before the first token do not overlap: receive, wait, prepare,
 * encode, prefill. image_decode and image_resize are parts of prepare, and
 * first_step is a part of prefill.  A request with several prompts has the
 * sums.
 */


#include "line.h"
#include <math.h>


/* in thousandths; a double that is not a number is written as null */

static void
ngx_http_vlm_timings_ratio(vlm_json_out_t *w, const char *key, double x,
    double y)
{
    vlm_json_add_double(w, key, y > 0 ? floor(x / y * 1000 + 0.5) / 1000 : NAN);
}


void
ngx_http_vlm_timings_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    double        decoded, encoded;            /* 1, or 0: no picture was */
    uint32_t      n, read, prompt, predicted;
    vlm_usage_t  *u;

    u = &ctx->usage;

    n = u->completion_tokens;
    predicted = u->decode_ms;
    read = u->prompt_tokens - u->cached_tokens;
    prompt = u->encode_ms + u->prefill_ms;
    decoded = ctx->times.decode_us > 0;
    encoded = u->pictures > u->cached_pictures;

    if (u->prompt_tokens == 0) {
        vlm_json_add_string(w, "timings", NULL);
        return;
    }

    vlm_json_add_open(w, "timings", '{');

    vlm_json_add_int(w, "cache_n", u->cached_tokens);
    ngx_http_vlm_timings_ratio(w, "encode_ms", u->encode_ms, encoded);
    ngx_http_vlm_timings_ratio(w, "first_ms",
                               ctx->times.first - ctx->times.headers,
                               ctx->times.first != 0);
    vlm_json_add_int(w, "first_step_ms", u->pick_ms);
    vlm_json_add_int(w, "image_cache_n", u->cached_pictures);
    ngx_http_vlm_timings_ratio(w, "image_decode_ms", ctx->times.decode_us,
                               decoded * 1000);
    vlm_json_add_int(w, "image_n", u->pictures);
    ngx_http_vlm_timings_ratio(w, "image_resize_ms", ctx->times.resize_us,
                               decoded * 1000);
    vlm_json_add_int(w, "predicted_ms", predicted);
    vlm_json_add_int(w, "predicted_n", n);
    ngx_http_vlm_timings_ratio(w, "predicted_per_second", n * 1000.0,
                               predicted);
    ngx_http_vlm_timings_ratio(w, "predicted_per_token_ms", predicted, n);
    vlm_json_add_int(w, "prefill_ms", u->prefill_ms);
    vlm_json_add_int(w, "prepare_ms", ctx->times.prepared_ms);
    vlm_json_add_int(w, "prompt_ms", prompt);
    vlm_json_add_int(w, "prompt_n", read);
    ngx_http_vlm_timings_ratio(w, "prompt_per_second", read * 1000.0, prompt);
    ngx_http_vlm_timings_ratio(w, "prompt_per_token_ms", prompt, read);
    vlm_json_add_int(w, "receive_ms", ctx->times.arrived - ctx->times.headers);
    vlm_json_add_int(w, "wait_ms", ctx->times.wait_ms);

    vlm_json_shut(w, '}');
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
