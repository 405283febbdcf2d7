/* The definition of attention in int16: see ops.h.  ../int16.h does it for many rows. */

#include "ops/plain/fused.h"
#include "ops/plain/int16.h"

typedef struct {                       /* the rows that one query sees */
    const int16_t  *k, *v;             /* [n] rows that lie `step` elements apart; or NULL: */
    const int8_t   *k8, *v8;           /* the same in int8 */
    const float    *ks, *vs;           /* [n] their scales */
    size_t          step;
    uint32_t        n, hd;
    float           scale, slope;      /* of scores in powers of two */
} seen_t;


static inline float
exp2_of(float x)
{
    float     t, f, p;
    uint32_t  bits, power;

    x = x < -100 ? -100 : x;
    t = x + VLM_ROUNDER;
    f = x - (t - VLM_ROUNDER);

    p = fmaf(VLM_EXP2_E, f, VLM_EXP2_D);
    p = fmaf(p, f, VLM_EXP2_C);
    p = fmaf(p, f, VLM_EXP2_B);
    p = fmaf(p, f, VLM_EXP2_A);
    p = fmaf(p, f, 1);

    memcpy(&power, &t, sizeof(power));
    memcpy(&bits, &p, sizeof(bits));
    bits += power << 23;
    memcpy(&p, &bits, sizeof(p));

    return p;
}


static inline int32_t
value_of(const int16_t *x, const int8_t *x8, size_t at)
{
    return x == NULL ? x8[at] : x[at];
}


/* Scores of n keys from `first` on; returns the largest. */
VLM_FUSED static float
score_block(const seen_t *w, const int16_t *q, float scale, uint32_t first, uint32_t n,
            float *scores)
{
    float     max;
    size_t    k;
    int32_t   dot;
    uint32_t  i, j;

    max = -INFINITY;

    for (j = 0; j < n; j++) {
        k = (first + j) * w->step;

        for (dot = 0, i = 0; i < w->hd; i++) {
            dot += q[i] * value_of(w->k, w->k8, k + i);
        }

        scores[j] = (float) dot * scale * w->ks[first + j];

        if (w->slope != 0) {
            scores[j] = fmaf(w->slope, (float) (int32_t) (first + j - (w->n - 1)), scores[j]);
        }

        max = scores[j] > max ? scores[j] : max;
    }

    return max;
}


/* Scores become weights, and those with the values' scales int16 of the returned scale. */
VLM_FUSED static float
weigh_block(const seen_t *w, uint32_t first, uint32_t n, float max, const float *scores,
            int32_t *part, float *sum)
{
    float     lane[VLM_INT16_LANES] = { 0 }, weight[VLM_INT16_KEYS], e, inverse, most;
    uint32_t  i, j, bits, top;

    top = 0;

    for (j = 0; j < n; j++) {
        e = exp2_of(scores[j] - max);
        lane[j % VLM_INT16_LANES] += e;
        weight[j] = e * w->vs[first + j];
        memcpy(&bits, &weight[j], sizeof(bits));
        top = bits > top ? bits : top;
    }

    for (i = VLM_INT16_LANES / 2; i > 0; i /= 2) {
        for (j = 0; j < i; j++) {
            lane[j] += lane[j + i];
        }
    }

    *sum = lane[0];
    memcpy(&most, &top, sizeof(most));
    inverse = most < VLM_INT16_LEAST ? 0 : VLM_INT16_PART / most;

    for (j = 0; j < n; j++) {
        part[j] = isnan(most) ? 0
                  : (int32_t) (weight[j] * inverse + VLM_ROUNDER - VLM_ROUNDER);
    }

    return most < VLM_INT16_LEAST ? 0 : most * (1.0f / VLM_INT16_PART);
}


VLM_FUSED static void
attend_row(const seen_t *w, const int16_t *q, float scale, float *o)
{
    float     scores[VLM_INT16_KEYS], max, new, old, sum, more, part_scale;
    int32_t   part[VLM_INT16_KEYS], total;
    uint32_t  i, j, n, first;

    scale *= w->scale;
    memset(o, 0, w->hd * sizeof(float));
    max = -INFINITY;
    sum = 0;

    for (first = 0; first < w->n; first += n) {
        n = w->n - first < VLM_INT16_KEYS ? w->n - first : VLM_INT16_KEYS;
        new = score_block(w, q, scale, first, n, scores);
        new = new > max ? new : max;
        old = exp2_of(max - new);
        max = new;

        part_scale = weigh_block(w, first, n, max, scores, part, &more);
        sum = fmaf(sum, old, more);

        for (i = 0; i < w->hd; i++) {
            for (total = 0, j = 0; j < n; j++) {
                total += part[j] * value_of(w->v, w->v8, (first + j) * w->step + i);
            }

            o[i] = fmaf((float) total, part_scale, o[i] * old);
        }
    }

    for (i = 0; i < w->hd; i++) {
        o[i] *= 1 / sum;
    }
}


float
vlm_int16_row_plain(const float *x, uint32_t n, float most, int16_t *q)
{
    return vlm_int16_of(x, n, most, q);
}


void
vlm_segments_int16_plain(const vlm_segments16_args_t *a, uint32_t begin, uint32_t end,
                         uint32_t head, float *scratch)
{
    size_t           at;
    seen_t          w;
    uint32_t         p, s, hd;
    const uint32_t  *border = a->segments->border;

    (void) scratch;

    memset(&w, 0, sizeof(w));
    hd = a->a->head_dim;
    w.step = w.hd = hd;
    w.scale = a->a->scale * VLM_LOG2E;

    for (p = begin; p < end; p++) {
        s = vlm_segment_of(border, a->segments->n, p);
        at = (size_t) head * a->segments->P + border[s];
        w.k = a->k.x + at * hd;
        w.v = a->v.x + at * hd;
        w.ks = a->k.scale + at;
        w.vs = a->v.scale + at;
        w.n = border[s + 1] - border[s];

        at = (size_t) head * a->segments->P + p;
        attend_row(&w, a->q.x + at * hd, a->q.scale[at],
                   a->o + ((size_t) p * a->a->heads + head) * hd);
    }
}


void
vlm_attend_int16_plain(const vlm_attend_args_t *a, uint32_t begin, uint32_t end, uint32_t kv_head,
                      float *scratch)
{
    size_t           at;
    seen_t           w;
    float            scale;
    int16_t         *q = (int16_t *) scratch;
    uint32_t         t, h, group, hd;
    const vlm_kv_t  *kv = a->kv;

    memset(&w, 0, sizeof(w));
    group = a->a->heads / kv->heads;
    hd = kv->head_dim;
    w.step = w.hd = hd;
    w.scale = a->a->scale * VLM_LOG2E;

    for (t = begin; t < end; t++) {
        at = vlm_kv_row(a, t, kv_head);

        if (kv->type == VLM_INT8) {
            w.k8 = (const int8_t *) kv->k + at * hd;
            w.v8 = (const int8_t *) kv->v + at * hd;
        } else {
            w.k = (const int16_t *) kv->k + at * hd;
            w.v = (const int16_t *) kv->v + at * hd;
        }

        w.ks = kv->k_scale + at;
        w.vs = kv->v_scale + at;
        w.n = vlm_kv_seen(a->batch, t);

        for (h = kv_head * group; h < (kv_head + 1) * group; h++) {
            at = ((size_t) t * a->a->heads + h) * hd;
            w.slope = a->a->slope == NULL ? 0 : a->a->slope[h] * VLM_LOG2E;
            scale = vlm_int16_of(a->q + at, hd, vlm_int16_query(hd), q);
            attend_row(&w, q, scale, a->o + at);
        }
    }
}
