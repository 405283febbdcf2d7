/*
 * The times of an answer as "timings", an object of the answer, with llama-server's names where it
 * has them, and with null where nothing was measured.
 *
 * The times before the first token do not overlap: receive, wait, prepare, encode, prefill.
 * image_decode and image_resize are parts of prepare, and first_step is a part of prefill.
 */

#ifndef VLM_TIMINGS_H
#define VLM_TIMINGS_H

#include "base/json_out.h"

/* Of all prompts of a request. */
typedef struct {
    uint32_t  prompt_tokens, cached_tokens;        /* the second: of the first */
    uint32_t  completion_tokens;
    uint32_t  images, cached_images;
    uint32_t  encode_ms, prefill_ms, decode_ms;
    uint32_t  first_step_ms;           /* to pick the first token */
    uint64_t  image_decode_us, image_resize_us;    /* 0: no picture was decoded */
    uint64_t  receive_ms, wait_ms, prepare_ms;
    int64_t   first_ms;                /* to the first token; -1: there was none */
} vlm_timings_t;

/* Adds the object, some 600 bytes, or null if no prompt was read. */
void vlm_timings_put(vlm_json_out_t *w, const vlm_timings_t *t);

#endif
