/*
 * The definitions of attention: in the cache of a sequence, and in the segments of a picture.
 *
 * A dot product is summed in LANES partial sums, which are then added in pairs: an order that
 * vectors can keep, so the same source is compiled for wider registers (../avx2/attend.c,
 * ../avx512/attend.c) and gives the same bits.  Softmax is f32 with the true maximum.
 */

#include <math.h>

#include "ops/kernels.h"

#ifndef VLM_ISA
#define VLM_ISA(name)  name##_plain
#endif

#define LANES  16


static inline float
add_lanes(float *sum)
{
    uint32_t  i, n;

    for (n = LANES / 2; n > 0; n /= 2) {
        for (i = 0; i < n; i++) {
            sum[i] += sum[i + n];
        }
    }

    return sum[0];
}


static inline float
dot_f32(const float *a, const float *b, uint32_t n)
{
    float     sum[LANES] = { 0 };
    uint32_t  i, j;

    for (i = 0; i + LANES <= n; i += LANES) {
        for (j = 0; j < LANES; j++) {
            sum[j] += a[i + j] * b[i + j];
        }
    }

    for (j = 0; i + j < n; j++) {
        sum[j] += a[i + j] * b[i + j];
    }

    return add_lanes(sum);
}


static inline float
dot_bf16(const float *a, const uint16_t *b, uint32_t n)
{
    float     sum[LANES] = { 0 };
    uint32_t  i, j;

    for (i = 0; i + LANES <= n; i += LANES) {
        for (j = 0; j < LANES; j++) {
            sum[j] += a[i + j] * vlm_bf16_f32(b[i + j]);
        }
    }

    for (j = 0; i + j < n; j++) {
        sum[j] += a[i + j] * vlm_bf16_f32(b[i + j]);
    }

    return add_lanes(sum);
}


/* scores [n] become weights that add up to *sum. */
static inline float
softmax(float *scores, uint32_t n)
{
    float     max, sum;
    uint32_t  i;

    max = -INFINITY;

    for (i = 0; i < n; i++) {
        max = scores[i] > max ? scores[i] : max;
    }

    sum = 0;

    for (i = 0; i < n; i++) {
        scores[i] = expf(scores[i] - max);
        sum += scores[i];
    }

    return sum;
}


static inline void
add_f32(float *o, const float *v, float weight, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        o[i] += weight * v[i];
    }
}


static inline void
add_bf16(float *o, const uint16_t *v, float weight, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        o[i] += weight * vlm_bf16_f32(v[i]);
    }
}


static inline void
divide(float *o, float by, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        o[i] /= by;
    }
}


/* One query head of one row over the n first cached rows of its slot. */
static void
attend_one(const vlm_kv_t *kv, size_t head, uint32_t n, const float *q, float *o, float *scores)
{
    float            scale, sum;
    size_t           at;
    uint32_t         j, hd;
    const float     *k, *v;
    const uint16_t  *kb, *vb;

    hd = kv->head_dim;
    at = head * kv->context * hd;
    k = (const float *) kv->k + at;
    v = (const float *) kv->v + at;
    kb = (const uint16_t *) kv->k + at;
    vb = (const uint16_t *) kv->v + at;
    scale = 1 / sqrtf((float) hd);

    for (j = 0; j < n; j++) {
        scores[j] = scale * (kv->type == VLM_F32 ? dot_f32(q, k + (size_t) j * hd, hd)
                                                 : dot_bf16(q, kb + (size_t) j * hd, hd));
    }

    sum = softmax(scores, n);
    memset(o, 0, hd * sizeof(float));

    for (j = 0; j < n; j++) {
        if (kv->type == VLM_F32) {
            add_f32(o, v + (size_t) j * hd, scores[j], hd);
        } else {
            add_bf16(o, vb + (size_t) j * hd, scores[j], hd);
        }
    }

    divide(o, sum, hd);
}


void
VLM_ISA(vlm_attend)(const vlm_attend_args_t *a, uint32_t begin, uint32_t end, float *scores)
{
    size_t              head, at;
    uint32_t            i, t, h, s, n;
    const vlm_kv_t     *kv = a->kv;
    const vlm_batch_t  *b = a->batch;

    for (i = begin; i < end; i++) {
        t = i / a->heads;
        h = i % a->heads;
        s = b->seq[t];
        n = b->n_ctx[s] + (t - b->start[s]) + 1;
        head = ((size_t) a->layer * kv->slots + b->slot[s]) * kv->heads
               + h / (a->heads / kv->heads);
        at = ((size_t) t * a->heads + h) * kv->head_dim;

        attend_one(kv, head, n, a->q + at, a->o + at, scores);
    }
}


/* The segment that a patch lies in: borders are few, and begin is rarely far off. */
static uint32_t
segment_of(const uint32_t *border, uint32_t n, uint32_t patch)
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
VLM_ISA(vlm_attend_segments)(const vlm_segments_args_t *a, uint32_t begin, uint32_t end,
                             float *scores)
{
    float         scale, sum, *o;
    size_t        E, at;
    uint32_t      i, p, h, s, j, first, last, dv;
    const float  *q;

    dv = a->head_dim;
    E = (size_t) a->heads * dv;
    scale = 1 / sqrtf((float) dv);

    for (i = begin; i < end; i++) {
        p = i / a->heads;
        h = i % a->heads;
        s = segment_of(a->border, a->n_segments, p);
        first = a->border[s];
        last = a->border[s + 1];
        at = (size_t) p * E + (size_t) h * dv;
        q = a->q + at;
        o = a->o + at;

        for (j = first; j < last; j++) {
            scores[j - first] = scale * dot_f32(q, a->k + j * E + (size_t) h * dv, dv);
        }

        sum = softmax(scores, last - first);
        memset(o, 0, dv * sizeof(float));

        for (j = first; j < last; j++) {
            add_f32(o, a->v + j * E + (size_t) h * dv, scores[j - first], dv);
        }

        divide(o, sum, dv);
    }
}
