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


static inline __attribute__((always_inline)) void
down(const uint8_t *a, uint32_t n, uint32_t K, const float *x, float *y, int bf16)
{
    float          sum[ROWS][LANES] = { 0 };
    size_t         bytes;
    uint32_t       i, j, k;
    const uint8_t *row;

    bytes = (size_t) K * (bf16 ? 2 : 4);

    for (k = 0; k + LANES <= K; k += LANES) {
        for (i = 0, row = a; i < n; i++, row += bytes) {
            for (j = 0; j < LANES; j++) {
                sum[i][j] += value(row, k + j, bf16) * x[k + j];
            }
        }
    }

    for (i = 0, row = a; i < n; i++, row += bytes) {
        for (j = 0; k + j < K; j++) {
            sum[i][j] += value(row, k + j, bf16) * x[k + j];
        }

        y[i] = sum_lanes(sum[i]);
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
    float     low[VLM_PANEL] = { 0 };
    uint32_t  i, j;

    for (i = 0; i < r; i++, b += (size_t) stride * (bf16 ? 2 : 4)) {
        if (parts == 1) {
            for (j = 0; j < n; j++) {
                low[j] = fmaf(value(b, j, bf16), z[i], low[j]);
            }
        } else {
            for (j = 0; j < n; j++) {
                low[j] = fmaf(value(b, j, bf16), z[j % 2 * rank + i], low[j]);
            }
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
    } else {
        up(b, r, stride, n, z, parts, rank, y, 0);
    }
}
