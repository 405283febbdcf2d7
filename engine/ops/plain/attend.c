/*
 * The definitions of attention: in the cache of a sequence, and in the segments of a picture.
 *
 * A score is summed in the order of the head's values, an output in the order of the keys, both by
 * fused multiply-adds; softmax is f32 with the true maximum.  ../wide.h does the same for many
 * rows and keys at once.
 */

#include "ops/kernels.h"
#include "ops/plain/fused.h"
#include "ops/plain/softmax.h"


static float
value_of(const void *base, vlm_type_t type, size_t at)
{
    return type == VLM_F32 ? ((const float *) base)[at]
                           : vlm_bf16_f32(((const uint16_t *) base)[at]);
}


/* One query over n keys; keys and values lie `step` elements apart, from element `at` on. */
VLM_FUSED static void
attend_one(const vlm_attend_t *a, const float *q, const void *k, const void *v, vlm_type_t type,
           size_t at, size_t step, uint32_t n, float slope, float *o, float *scores)
{
    float     sum, dot;
    uint32_t  i, j, hd = a->head_dim;

    for (j = 0; j < n; j++) {
        dot = 0;

        for (i = 0; i < hd; i++) {
            dot = fmaf(q[i], value_of(k, type, at + j * step + i), dot);
        }

        scores[j] = a->scale * dot;
    }

    if (slope != 0) {
        vlm_alibi(scores, n, slope);
    }

    sum = vlm_softmax(scores, n);

    for (i = 0; i < hd; i++) {
        o[i] = 0;

        for (j = 0; j < n; j++) {
            o[i] = fmaf(scores[j], value_of(v, type, at + j * step + i), o[i]);
        }

        o[i] /= sum;
    }
}


void
vlm_attend_plain(const vlm_attend_args_t *a, uint32_t begin, uint32_t end, uint32_t kv_head,
                 float *scores)
{
    size_t              head, at;
    uint32_t            t, h, s, n, group;
    const vlm_kv_t     *kv = a->kv;
    const vlm_batch_t  *b = a->batch;

    group = a->a->heads / kv->heads;

    for (t = begin; t < end; t++) {
        s = b->seq[t];
        n = b->n_ctx[s] + (t - b->start[s]) + 1;
        head = ((size_t) a->layer * kv->slots + b->slot[s]) * kv->heads + kv_head;

        for (h = kv_head * group; h < (kv_head + 1) * group; h++) {
            at = ((size_t) t * a->a->heads + h) * kv->head_dim;
            attend_one(a->a, a->q + at, kv->k, kv->v, kv->type, head * kv->context * kv->head_dim,
                       kv->head_dim, n, a->a->slope == NULL ? 0 : a->a->slope[h], a->o + at,
                       scores);
        }
    }
}


uint32_t
vlm_segment_of(const uint32_t *border, uint32_t n, uint32_t patch)
{
    uint32_t  low, high, mid;

    low = 0;
    high = n;

    while (high - low > 1) {
        mid = low + (high - low) / 2;

        if (border[mid] <= patch) {
            low = mid;
        } else {
            high = mid;
        }
    }

    return low;
}


void
vlm_attend_segments_plain(const vlm_segments_args_t *a, uint32_t begin, uint32_t end, uint32_t head,
                          float *scores)
{
    size_t           E, at;
    uint32_t         p, s;
    const uint32_t  *border = a->segments->border;

    E = (size_t) a->a->heads * a->a->head_dim;
    at = (size_t) head * a->a->head_dim;

    for (p = begin; p < end; p++) {
        s = vlm_segment_of(border, a->segments->n, p);

        attend_one(a->a, a->q + p * E + at, a->k, a->v, VLM_F32, border[s] * E + at, E,
                   border[s + 1] - border[s], 0, a->o + p * E + at, scores);
    }
}
