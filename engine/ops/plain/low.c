/*
 * The definitions of the two products of an adapter (vlm_lows_t): sums over an input's values, in
 * LANES partial sums as in row.c, and sums over an adapter's rank by fused multiply-adds.
 *
 * The same source is compiled for wider registers (../avx2/low.c, ../avx512/low.c) and gives the
 * same bits.
 */

#include <math.h>

#include "ops/kernels.h"

#ifndef VLM_ISA
#include "ops/plain/fused.h"
#define VLM_ISA(name)  name##_plain
#define FUSED  VLM_FUSED
#else
#define FUSED
#endif

#define LANES  16
#define ROWS   4                       /* of a that go over the same values together */

/* Vectors of any processor: the compiler makes them of what it has. */
typedef float     lanes_t __attribute__((vector_size(LANES * 4)));
typedef uint32_t  words_t __attribute__((vector_size(LANES * 4)));
typedef uint16_t  half_t __attribute__((vector_size(LANES * 2)));


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


/* Value k of a row. */
static inline __attribute__((always_inline)) float
value(const void *row, size_t k, int bf16)
{
    return bf16 ? vlm_bf16_f32(((const uint16_t *) row)[k]) : ((const float *) row)[k];
}


/* The next LANES values of a row. */
static inline __attribute__((always_inline)) void
load(const void *row, size_t k, int bf16, lanes_t *to)
{
    half_t    half;
    words_t   words;

    if (bf16) {
        memcpy(&half, (const uint16_t *) row + k, sizeof(half));
        words = __builtin_convertvector(half, words_t) << 16;
        memcpy(to, &words, sizeof(words));
    } else {
        memcpy(to, (const float *) row + k, sizeof(*to));
    }
}


/* No lane is -0, so that adding 0 behind the last value changes no bit. */
static inline __attribute__((always_inline)) void
down(const uint8_t *a, uint32_t n, uint32_t K, const float *x, float *y, int bf16)
{
    float          rest[LANES] = { 0 }, last[LANES];
    size_t         bytes;
    lanes_t        sum[ROWS], w, v;
    uint32_t       i, j, k;
    const uint8_t *row;

    memset(sum, 0, sizeof(sum));
    bytes = (size_t) K * (bf16 ? 2 : 4);

    for (k = 0; k + LANES <= K; k += LANES) {
        memcpy(&v, x + k, sizeof(v));

        for (i = 0, row = a; i < n; i++, row += bytes) {
            load(row, k, bf16, &w);
            sum[i] += w * v;
        }
    }

    for (i = 0, row = a; i < n; i++, row += bytes) {
        for (j = 0; k + j < K; j++) {
            rest[j] = value(row, k + j, bf16) * x[k + j];
        }

        memcpy(&v, rest, sizeof(v));
        sum[i] += v;
        memcpy(last, &sum[i], sizeof(last));
        y[i] = sum_lanes(last);
    }
}


static inline __attribute__((always_inline)) void
down_all(const uint8_t *a, uint32_t n, uint32_t K, const float *x, float *y, int bf16)
{
    size_t  bytes;

    bytes = (size_t) K * (bf16 ? 2 : 4);

    for ( /* void */ ; n >= ROWS; n -= ROWS, a += ROWS * bytes, y += ROWS) {
        down(a, ROWS, K, x, y, bf16);
    }

    for ( /* void */ ; n > 0; n--, a += bytes, y++) {
        down(a, 1, K, x, y, bf16);
    }
}


void
VLM_ISA(vlm_low_down)(vlm_type_t type, const void *a, uint32_t n, uint32_t K, const float *x,
                      float *y)
{
    if (type == VLM_BF16) {
        down_all(a, n, K, x, y, 1);
    } else {
        down_all(a, n, K, x, y, 0);
    }
}


static inline __attribute__((always_inline)) void
up(const uint8_t *b, uint32_t r, uint32_t stride, uint32_t n, const float *z, uint32_t parts,
   uint32_t rank, float *y, int bf16)
{
    float     low[VLM_PANEL] = { 0 }, each[VLM_PANEL];
    uint32_t  i, j;

    for (i = 0; i < r; i++, b += (size_t) stride * (bf16 ? 2 : 4)) {
        if (parts == 1) {
            for (j = 0; j < n; j++) {
                low[j] = fmaf(value(b, j, bf16), z[i], low[j]);
            }

            continue;
        }

        for (j = 0; j < VLM_PANEL; j += 2) {
            each[j] = z[i];
            each[j + 1] = z[rank + i];
        }

        for (j = 0; j < n; j++) {
            low[j] = fmaf(value(b, j, bf16), each[j], low[j]);
        }
    }

    for (j = 0; j < n; j++) {
        y[j] += low[j];
    }
}


FUSED void
VLM_ISA(vlm_low_up)(vlm_type_t type, const void *b, uint32_t r, uint32_t stride, uint32_t n,
                    const float *z, uint32_t parts, uint32_t rank, float *y)
{
    if (type == VLM_BF16 && n == VLM_PANEL) {
        up(b, r, stride, VLM_PANEL, z, parts, rank, y, 1);
    } else if (type == VLM_BF16) {
        up(b, r, stride, n, z, parts, rank, y, 1);
    } else if (n == VLM_PANEL) {
        up(b, r, stride, VLM_PANEL, z, parts, rank, y, 0);
    } else {
        up(b, r, stride, n, z, parts, rank, y, 0);
    }
}
