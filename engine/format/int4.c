/*
 * Weight rows in int4.
 *
 * The step and the base of a group are searched: for each step that may do, from two bases on, its
 * values are rounded and the base that fits them best is taken, again and again.  The best of all
 * is kept.  Sums have LANES parts, so that vectors of any width give the same bits.
 */

#include "format/int4.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "format/int8.h"
#include "format/panel.h"

#define LANES    16
#define HALF     (VLM_BLOCK / 2)
#define MOST     15                    /* of q */
#define STEPS    16                    /* the largest step */
#define REFITS   2                     /* of a base */
#define LEAST    0.6f                  /* of the step that reaches all values, the least tried */
#define ROUNDER  12582912.0f           /* 1.5 * 2^23: see int8.c */
#define TINY     0x1p-120f

typedef struct {                       /* of a group, in units of the row's scale */
    float  step, base, off;            /* off: the sum of squared differences */
} fit_t;


static uint64_t
groups_of(uint64_t K)
{
    return vlm_add(K, VLM_BLOCK - 1) / VLM_BLOCK;
}


uint64_t
vlm_int4_row_bytes(uint64_t K)
{
    return vlm_mul(groups_of(K), VLM_INT4_GROUP);
}


static inline float
nearest(float x, float step, float base)
{
    float  q;

    q = (x - base) / step;
    q = q < 0 ? 0 : q;
    q = q > MOST ? MOST : q;

    return q + ROUNDER - ROUNDER;
}


/* The sum of squared differences with that step and base; *mean is that of the differences. */
static float
try_fit(const float *x, float step, float base, float *mean)
{
    float     d, off[LANES] = { 0 }, sum[LANES] = { 0 };
    uint32_t  i, k;

    for (i = 0; i < VLM_BLOCK; i += LANES) {
        for (k = 0; k < LANES; k++) {
            d = x[i + k] - base - step * nearest(x[i + k], step, base);
            off[k] += d * d;
            sum[k] += d;
        }
    }

    for (i = LANES / 2; i > 0; i /= 2) {
        for (k = 0; k < i; k++) {
            off[k] += off[k + i];
            sum[k] += sum[k + i];
        }
    }

    *mean = sum[0] / VLM_BLOCK;

    return off[0];
}


/* The better of *best and that step, from a base on which is refit. */
static void
fit_base(const float *x, float step, float base, fit_t *best)
{
    float     off, mean;
    uint32_t  i;

    for (i = 0; i <= REFITS; i++) {
        base = base + ROUNDER - ROUNDER;
        base = base < -127 ? -127 : base > 127 - MOST * step ? 127 - MOST * step : base;
        off = try_fit(x, step, base, &mean);

        if (off < best->off) {
            *best = (fit_t) { step, base, off };
        }

        base += mean;
    }
}


static fit_t
search(const float *x)
{
    float     low, high, wide, step, base;
    fit_t     best = { 1, 0, INFINITY };
    uint32_t  i;

    for (low = high = x[0], i = 1; i < VLM_BLOCK; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }

    wide = (high - low) / MOST;
    step = ceilf(wide);
    step = step < 1 ? 1 : step > STEPS ? STEPS : step;

    for ( /* void */ ; step >= 1 && step >= LEAST * wide - 1; step--) {
        base = (low + high) / 2 - MOST * step / 2;
        fit_base(x, step, base, &best);
        fit_base(x, step, base + step / 2, &best);
    }

    return best;
}


/* A group of at most VLM_BLOCK values, in units of the row's scale. */
static void
round_group(const float *x, uint32_t n, float inverse, uint8_t *group)
{
    float     unit[VLM_BLOCK];
    fit_t     f;
    uint32_t  i;
    uint8_t   q[VLM_BLOCK];

    for (i = 0; i < VLM_BLOCK; i++) {
        unit[i] = i < n ? x[i] * inverse : unit[i % n];
    }

    f = search(unit);

    for (i = 0; i < VLM_BLOCK; i++) {
        q[i] = i < n ? (uint8_t) nearest(unit[i], f.step, f.base) : 0;
    }

    for (i = 0; i < HALF; i++) {
        group[i] = (uint8_t) (q[i] | q[HALF + i] << 4);
    }

    group[HALF] = (uint8_t) f.step;
    group[HALF + 1] = (uint8_t) (int8_t) f.base;
}


void
vlm_int4_round(const float *x, uint32_t n, float largest, void *groups)
{
    float     inverse;
    uint8_t  *to = groups;
    uint32_t  i;

    if (isinf(largest)) {
        memset(to, 0, vlm_int4_row_bytes(n));
        return;
    }

    inverse = largest >= TINY ? 127 / largest : 0;

    for (i = 0; i < n; i += VLM_BLOCK, to += VLM_INT4_GROUP) {
        round_group(x + i, n - i < VLM_BLOCK ? n - i : VLM_BLOCK, inverse, to);
    }
}


void
vlm_int4_quantise(const float *x, uint32_t K, void *row, float *scale)
{
    float  largest;

    largest = vlm_int8_largest(x, K, 0);
    vlm_int4_round(x, K, largest, row);
    *scale = vlm_int8_scale(largest);
}


void
vlm_int4_values(const void *groups, uint32_t n, int8_t *values)
{
    uint8_t         step, base;
    uint32_t        i;
    const uint8_t  *from = groups;

    for ( /* void */ ; n > 0; n--, from += VLM_INT4_GROUP, values += VLM_BLOCK) {
        step = from[HALF];
        base = from[HALF + 1];

        for (i = 0; i < HALF; i++) {
            values[i] = (int8_t) (uint8_t) (base + step * (from[i] & 15));
            values[HALF + i] = (int8_t) (uint8_t) (base + step * (from[i] >> 4));
        }
    }
}


uint64_t
vlm_int4_panel_bytes(uint32_t K)
{
    uint64_t  pieces;

    pieces = vlm_add(K, VLM_PIECE - 1) / VLM_PIECE;

    return vlm_add(vlm_mul(groups_of(K), VLM_INT4_NIBBLES), pieces * 2 * VLM_INT4_NUMBERS);
}


/* Group g of row i in a panel: its words, VLM_PANEL words apart, its step and its base. */
typedef struct {
    size_t  word, step, base;
} place_t;


static place_t
place_of(uint32_t K, uint32_t g, uint32_t i)
{
    size_t    piece, groups;
    place_t   p;
    uint32_t  first;

    first = g / VLM_INT4_GROUPS * VLM_INT4_GROUPS;
    groups = groups_of(K) - first < VLM_INT4_GROUPS ? groups_of(K) - first : VLM_INT4_GROUPS;
    piece = (size_t) first * VLM_INT4_NIBBLES
            + (size_t) g / VLM_INT4_GROUPS * 2 * VLM_INT4_NUMBERS;

    p.word = piece + (g - first) * (size_t) VLM_INT4_NIBBLES + 4 * (size_t) i;
    p.step = piece + groups * VLM_INT4_NIBBLES + i * (size_t) VLM_INT4_GROUPS + (g - first);
    p.base = p.step + VLM_INT4_NUMBERS;

    return p;
}


void
vlm_int4_pack(void *panel, const void *rows, uint32_t n, uint32_t K, uint32_t flip)
{
    place_t         p;
    uint8_t        *to = panel;
    uint32_t        i, g, w;
    const uint8_t  *from = rows;

    (void) flip;
    memset(to, 0, vlm_int4_panel_bytes(K));

    for (i = 0; i < n; i++) {
        for (g = 0; g < groups_of(K); g++, from += VLM_INT4_GROUP) {
            p = place_of(K, g, i);

            for (w = 0; w < HALF / 4; w++) {
                memcpy(to + p.word + w * 4 * VLM_PANEL, from + 4 * w, 4);
            }

            to[p.step] = from[HALF];
            to[p.base] = from[HALF + 1];
        }
    }
}


void
vlm_int4_unpack(void *rows, const void *panel, uint32_t n, uint32_t K, uint32_t flip)
{
    place_t         p;
    uint8_t        *to = rows;
    uint32_t        i, g, w;
    const uint8_t  *from = panel;

    (void) flip;

    for (i = 0; i < n; i++) {
        for (g = 0; g < groups_of(K); g++, to += VLM_INT4_GROUP) {
            p = place_of(K, g, i);

            for (w = 0; w < HALF / 4; w++) {
                memcpy(to + 4 * w, from + p.word + w * 4 * VLM_PANEL, 4);
            }

            to[HALF] = from[p.step];
            to[HALF + 1] = from[p.base];
        }
    }
}


void
vlm_int4_unpack_row(const void *panel, uint32_t i, uint32_t K, float *out)
{
    place_t         p;
    uint8_t         q;
    uint32_t        k, at;
    const uint8_t  *from = panel;

    for (k = 0; k < K; k++) {
        p = place_of(K, k / VLM_BLOCK, i);
        at = k % HALF;
        q = from[p.word + at / 4 * 4 * VLM_PANEL + at % 4];
        q = k % VLM_BLOCK < HALF ? q & 15 : q >> 4;
        out[k] = (int8_t) (uint8_t) (from[p.base] + from[p.step] * q);
    }
}
