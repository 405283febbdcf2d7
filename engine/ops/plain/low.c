/*
 * The definitions of the two products of an adapter (vlm_lows_t): sums over an input's values, in
 * VLM_LOW_LANES partial sums that are added by halves, and sums over an adapter's rank.  All are of
 * fused multiply-adds.
 *
 * low_wide.h has the same for vectors, with the same bits.
 */

#include <math.h>

#include "ops/kernels.h"
#include "ops/plain/fused.h"

#define LANES  VLM_LOW_LANES


static inline float
value(vlm_type_t type, const void *from, size_t at)
{
    return type == VLM_BF16 ? vlm_bf16_f32(((const uint16_t *) from)[at])
                            : ((const float *) from)[at];
}


static inline float
sum_lanes(float sum[LANES])
{
    uint32_t  i, j;

    for (i = LANES / 2; i > 0; i /= 2) {
        for (j = 0; j < i; j++) {
            sum[j] += sum[j + i];
        }
    }

    return sum[0];
}


/* Row i of a.  Behind the last value come zeros, up to a whole number of lanes. */
VLM_FUSED static float
product(const vlm_low_down_t *d, uint32_t i, const float *x)
{
    float     sum[LANES] = { 0 }, w[LANES] = { 0 }, v[LANES] = { 0 };
    size_t    at;
    uint32_t  k, j, values;

    for (k = 0; k < d->K; k += LANES) {
        values = d->K - k < LANES ? d->K - k : LANES;
        at = vlm_low_down_at(d, i, k);

        if (values < LANES) {
            memset(w, 0, sizeof(w));
            memset(v, 0, sizeof(v));
        }

        for (j = 0; j < values; j++) {
            w[j] = value(d->type, d->a, at + j);
            v[j] = x[k + j];
        }

        for (j = 0; j < LANES; j++) {
            sum[j] = fmaf(w[j], v[j], sum[j]);
        }
    }

    return sum_lanes(sum);
}


void
vlm_low_down_plain(const vlm_low_down_t *d, const float *const x[], uint32_t m,
                   float y[][VLM_LOW_GROUP])
{
    uint32_t  t, i;

    for (t = 0; t < m; t++) {
        for (i = 0; i < d->n; i++) {
            y[t][i] = product(d, i, x[t]);
        }
    }
}


VLM_FUSED static void
add_row(const vlm_low_up_t *u, const float *z, float *y)
{
    float     low[VLM_PANEL] = { 0 };
    uint32_t  i, j;

    for (i = 0; i < u->r; i++) {
        for (j = 0; j < u->n; j++) {
            low[j] = fmaf(value(u->type, u->b, (size_t) i * u->step + j),
                          u->in_turn ? z[2 * i + j % 2] : z[i], low[j]);
        }
    }

    for (j = 0; j < u->n; j++) {
        y[j] = (u->scale == NULL ? y[j] : y[j] * u->scale[j]) + low[j];
    }
}


void
vlm_low_up_plain(const vlm_low_up_t *u, const float *const z[], float *const y[], uint32_t m)
{
    uint32_t  t;

    for (t = 0; t < m; t++) {
        add_row(u, z[t], y[t]);
    }
}
