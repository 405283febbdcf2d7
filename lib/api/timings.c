/* Writes the times of an answer: see timings.h. */

#include "api/timings.h"

#include <math.h>


/*
 * Writes x / y, rounded to thousandths, or null if y is 0.  For a plain number y is 1 if it was
 * measured, and else 0.
 */
static void
ratio(vlm_json_out_t *w, const char *key, double x, double y)
{
    vlm_json_add_double(w, key, y > 0 ? floor(x / y * 1000 + 0.5) / 1000 : NAN);
}


void
vlm_timings_put(vlm_json_out_t *w, const vlm_timings_t *t)
{
    const int       decoded = t->image_decode_us > 0;
    const uint32_t  read = t->prompt_tokens - t->cached_tokens, n = t->completion_tokens;
    const uint32_t  prompt_ms = t->encode_ms + t->prefill_ms;

    if (t->prompt_tokens == 0) {
        vlm_json_add_string(w, "timings", NULL);
        return;
    }

    vlm_json_add_open(w, "timings", '{');

    vlm_json_add_int(w, "cache_n", t->cached_tokens);
    ratio(w, "encode_ms", t->encode_ms, t->images > t->cached_images);
    ratio(w, "first_ms", (double) t->first_ms, t->first_ms >= 0);
    vlm_json_add_int(w, "first_step_ms", t->first_step_ms);
    vlm_json_add_int(w, "image_cache_n", t->cached_images);
    ratio(w, "image_decode_ms", (double) t->image_decode_us / 1000, decoded);
    vlm_json_add_int(w, "image_n", t->images);
    ratio(w, "image_resize_ms", (double) t->image_resize_us / 1000, decoded);
    vlm_json_add_int(w, "predicted_ms", t->decode_ms);
    vlm_json_add_int(w, "predicted_n", n);
    ratio(w, "predicted_per_second", n * 1000.0, t->decode_ms);
    ratio(w, "predicted_per_token_ms", t->decode_ms, n);
    vlm_json_add_int(w, "prefill_ms", t->prefill_ms);
    vlm_json_add_int(w, "prepare_ms", (int64_t) t->prepare_ms);
    vlm_json_add_int(w, "prompt_ms", prompt_ms);
    vlm_json_add_int(w, "prompt_n", read);
    ratio(w, "prompt_per_second", read * 1000.0, prompt_ms);
    ratio(w, "prompt_per_token_ms", prompt_ms, read);
    vlm_json_add_int(w, "receive_ms", (int64_t) t->receive_ms);
    vlm_json_add_int(w, "wait_ms", (int64_t) t->wait_ms);

    vlm_json_shut(w, '}');
}
