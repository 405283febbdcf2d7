/*
 * The definitions for one activation row: norms, the sum of four rows, and quantisation to int8.
 *
 * Sums are taken in LANES partial sums, an order that vectors can keep: the same source is compiled
 * for wider registers (../avx2/row.c, ../avx512/row.c) and gives the same bits.
 */

#include <math.h>

#include "ops/kernels.h"

#ifndef VLM_ISA
#define VLM_ISA(name)  name##_plain
#endif

#define LANES    16
#define ROUNDER  12582912.0f           /* 1.5 * 2^23: x + ROUNDER - ROUNDER rounds half to even */
#define TINY     0x1p-120f             /* 127 over less is infinite: such a piece is zeros */
#define INFINITE 0x7f800000u           /* as bits: the first value that is not finite */


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


static inline float
mean_of(const float *x, uint32_t n)
{
    float     sum[LANES] = { 0 };
    uint32_t  i, j;

    for (i = 0; i + LANES <= n; i += LANES) {
        for (j = 0; j < LANES; j++) {
            sum[j] += x[i + j];
        }
    }

    for (j = 0; i + j < n; j++) {
        sum[j] += x[i + j];
    }

    return sum_lanes(sum) / (float) n;
}


/* The sum of squares of x - mean. */
static inline float
squares_of(const float *x, float mean, uint32_t n)
{
    float     sum[LANES] = { 0 }, v;
    uint32_t  i, j;

    for (i = 0; i + LANES <= n; i += LANES) {
        for (j = 0; j < LANES; j++) {
            v = x[i + j] - mean;
            sum[j] += v * v;
        }
    }

    for (j = 0; i + j < n; j++) {
        v = x[i + j] - mean;
        sum[j] += v * v;
    }

    return sum_lanes(sum);
}


void
VLM_ISA(vlm_norm)(const vlm_norm_t *norm, const float *x, uint32_t n, float *y)
{
    float         mean, r;
    uint32_t      i;
    const float  *gain = norm->gain, *shift = norm->shift;

    mean = norm->kind == VLM_NORM_LAYER ? mean_of(x, n) : 0;
    r = 1 / sqrtf(squares_of(x, mean, n) / (float) n + norm->eps);

    if (gain == NULL) {
        for (i = 0; i < n; i++) {
            y[i] = (x[i] - mean) * r;
        }
        return;
    }

    if (norm->kind == VLM_NORM_RMS) {
        for (i = 0; i < n; i++) {
            y[i] = x[i] * r * gain[i];
        }
        return;
    }

    for (i = 0; i < n; i++) {
        y[i] = (x[i] - mean) * r * gain[i] + shift[i];
    }
}


void
VLM_ISA(vlm_add_four)(const float *const row[4], const float weight[4], uint32_t n, float *x)
{
    uint32_t      i;
    const float  *a = row[0], *b = row[1], *c = row[2], *d = row[3];
    const float   wa = weight[0], wb = weight[1], wc = weight[2], wd = weight[3];

    for (i = 0; i < n; i++) {
        x[i] += a[i] * wa + b[i] * wb + c[i] * wc + d[i] * wd;
    }
}


/* The bits of the largest of n floats without their signs, which compare as the floats do. */
static inline uint32_t
largest_bits(const float *x, uint32_t n)
{
    uint32_t  i, bits, top;

    top = 0;

    for (i = 0; i < n; i++) {
        memcpy(&bits, &x[i], sizeof(bits));
        bits &= 0x7fffffff;
        top = bits > top ? bits : top;
    }

    return top;
}


/* q [64] = x [n] times inverse, rounded; zeros beyond n, at most 64.  Returns the sum of q. */
static inline int32_t
round_block(const float *x, uint32_t n, float inverse, int8_t *q)
{
    float     v[VLM_BLOCK] = { 0 };
    int32_t   total;
    uint32_t  i;

    memcpy(v, x, n * sizeof(float));
    total = 0;

    for (i = 0; i < VLM_BLOCK; i++) {
        v[i] = v[i] * inverse + ROUNDER - ROUNDER;
        q[i] = (int8_t) (int32_t) v[i];
        total += (int32_t) v[i];
    }

    return total;
}


/*
 * Quantises one piece of n values; the rest of its last block becomes zeros.  A value that is not
 * finite must not vanish in int8, so it makes the scale not a number, and with it all products of
 * the piece; among the bits such values come last.
 */
static inline float
quantize_piece(const float *x, uint32_t n, int8_t *q, int32_t *sum)
{
    float     max, inverse;
    uint32_t  k, top;

    top = largest_bits(x, n);
    *sum = 0;

    if (top >= INFINITE) {
        memset(q, 0, (size_t) vlm_blocks(n) * VLM_BLOCK);
        return NAN;
    }

    memcpy(&max, &top, sizeof(max));
    inverse = max >= TINY ? 127 / max : 0;

    for (k = 0; k + VLM_BLOCK <= n; k += VLM_BLOCK) {
        *sum += round_block(x + k, VLM_BLOCK, inverse, q + k);
    }

    if (k < n) {
        *sum += round_block(x + k, n - k, inverse, q + k);
    }

    return max / 127;
}


void
VLM_ISA(vlm_quantize)(const float *x, uint32_t n, int8_t *q, float *s, int32_t *sum)
{
    uint32_t  i, first;

    for (i = 0; i < vlm_pieces(n); i++) {
        first = i * VLM_PIECE;
        s[i] = quantize_piece(x + first, n - first < VLM_PIECE ? n - first : VLM_PIECE, q + first,
                              sum + i);
    }
}
