/*
 * linear for AVX2 with FMA.
 *
 * The same panels of 64 weight rows as AVX-512's, walked in quarters of 16 rows; int8 stays
 * signed.  vpmaddubsw wants unsigned times signed and saturates at 16 bits: |w| times x with w's
 * sign stays within 2 * 127 * 127 because weights and activations are at most 127.
 *
 * Each output is summed in the order of k whatever T is, and the bits are the twin's.
 */

#include <immintrin.h>

#include "base/size.h"
#include "ops/kernels.h"

#define F32_ROWS  4                    /* activation rows of a tile: 8 accumulators of 16 */


uint64_t
vlm_packed_bytes_avx2(vlm_type_t type, uint32_t N, uint32_t K)
{
    uint64_t  rows, k;

    rows = vlm_round(N, VLM_PANEL);
    k = type == VLM_INT8 ? vlm_round(K, VLM_BLOCK) : K;

    return vlm_mul(vlm_mul(rows, k), vlm_type_bytes(type));
}


/* Where weight (row, k) of a panel lies, in elements. */
static inline size_t
place_of(vlm_type_t type, uint32_t row, uint32_t k)
{
    return type == VLM_INT8 ? (size_t) (k / 4) * 4 * VLM_PANEL + row * 4 + k % 4
                            : (size_t) k * VLM_PANEL + row;
}


void
vlm_pack_avx2(vlm_linear_t *w, uint32_t row, uint32_t n, const void *from)
{
    uint8_t      *panel;
    uint32_t      i, k, p, rows, K;
    const float  *f;

    K = w->K;

    for (p = 0; p < n; p += VLM_PANEL) {
        rows = n - p < VLM_PANEL ? n - p : VLM_PANEL;
        panel = (uint8_t *) w->w
                + (row + p) / VLM_PANEL * vlm_packed_bytes_avx2(w->type, VLM_PANEL, K);

        if (w->type == VLM_INT8) {
            vlm_pack_words((uint32_t *) panel, (const int8_t *) from + (size_t) p * K, rows, K, 0);
            continue;
        }

        memset(panel, 0, vlm_packed_bytes_avx2(w->type, VLM_PANEL, K));
        f = (const float *) from + (size_t) p * K;

        for (i = 0; i < rows; i++) {
            for (k = 0; k < K; k++) {
                if (w->type == VLM_BF16) {
                    ((uint16_t *) panel)[place_of(w->type, i, k)]
                        = vlm_f32_bf16(f[(size_t) i * K + k]);
                } else {
                    ((float *) panel)[place_of(w->type, i, k)] = f[(size_t) i * K + k];
                }
            }
        }
    }
}


void
vlm_unpack_row_avx2(const vlm_linear_t *w, uint32_t row, float *out)
{
    size_t          at;
    uint32_t        k;
    const uint8_t  *panel;

    panel = (const uint8_t *) w->w
            + row / VLM_PANEL * vlm_packed_bytes_avx2(w->type, VLM_PANEL, w->K);

    for (k = 0; k < w->K; k++) {
        at = place_of(w->type, row % VLM_PANEL, k);
        out[k] = w->type == VLM_INT8   ? (float) ((const int8_t *) panel)[at]
                 : w->type == VLM_BF16 ? vlm_bf16_f32(((const uint16_t *) panel)[at])
                                       : ((const float *) panel)[at];
    }
}


static inline __m256
load_weights(const uint8_t *p, int bf16, int j)
{
    __m128i  half;

    if (bf16) {
        half = _mm_load_si128((const __m128i *) p + j);
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    }

    return _mm256_load_ps((const float *) p + 8 * j);
}


/* 16 weight rows against `rows` activation rows. */
static inline __attribute__((always_inline)) void
tile_float(const uint8_t *panel, int bf16, const float *x, uint32_t K, int rows,
           float y[][VLM_PANEL])
{
    int       m, j;
    size_t    step;
    __m256    acc[F32_ROWS][2], w[2], v;
    uint32_t  k;

    step = VLM_PANEL * (bf16 ? 2 : 4);

    for (m = 0; m < rows; m++) {
        acc[m][0] = acc[m][1] = _mm256_setzero_ps();
    }

    for (k = 0; k < K; k++, panel += step) {
        w[0] = load_weights(panel, bf16, 0);
        w[1] = load_weights(panel, bf16, 1);

        for (m = 0; m < rows; m++) {
            v = _mm256_broadcast_ss(x + (size_t) m * K + k);

            for (j = 0; j < 2; j++) {
                acc[m][j] = _mm256_fmadd_ps(w[j], v, acc[m][j]);
            }
        }
    }

    for (m = 0; m < rows; m++) {
        _mm256_store_ps(y[m], acc[m][0]);
        _mm256_store_ps(y[m] + 8, acc[m][1]);
    }
}


static inline __m256i
dot_step(__m256i dot, __m256i w, __m256i x)
{
    __m256i  pairs;

    pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));

    return _mm256_add_epi32(dot, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}


/* 16 weight rows against one activation row. */
static inline void
tile_int8(const int8_t *panel, const int8_t *q, const float *s, uint32_t n_blocks, float *y)
{
    int32_t   four;
    __m256    acc[2], scale;
    __m256i   dot[2], x;
    uint32_t  b, k;

    acc[0] = acc[1] = _mm256_setzero_ps();

    for (b = 0; b < n_blocks; b++) {
        dot[0] = dot[1] = _mm256_setzero_si256();

        for (k = 0; k < VLM_BLOCK; k += 4, panel += 4 * VLM_PANEL, q += 4) {
            memcpy(&four, q, 4);
            x = _mm256_set1_epi32(four);
            dot[0] = dot_step(dot[0], _mm256_load_si256((const __m256i *) panel), x);
            dot[1] = dot_step(dot[1], _mm256_load_si256((const __m256i *) panel + 1), x);
        }

        scale = _mm256_set1_ps(s[b]);
        acc[0] = _mm256_add_ps(acc[0], _mm256_mul_ps(scale, _mm256_cvtepi32_ps(dot[0])));
        acc[1] = _mm256_add_ps(acc[1], _mm256_mul_ps(scale, _mm256_cvtepi32_ps(dot[1])));
    }

    _mm256_store_ps(y, acc[0]);
    _mm256_store_ps(y + 8, acc[1]);
}


/* All 64 rows of a panel, a quarter at a time: 16 rows are what the registers hold. */
static void
tile(const vlm_linear_args_t *a, const uint8_t *panel, uint32_t t, int rows, float y[][VLM_PANEL])
{
    int                  quarter, bf16;
    size_t               at, bytes;
    uint32_t             n_blocks;
    const float         *x;
    const vlm_linear_t  *w = a->w;

    n_blocks = vlm_blocks(w->K);
    at = (size_t) t * n_blocks;
    x = a->x + (size_t) t * w->K;
    bf16 = w->type == VLM_BF16;
    bytes = w->type == VLM_INT8 ? 4 : vlm_type_bytes(w->type);

    for (quarter = 0; quarter < 4; quarter++, panel += 16 * bytes) {
        if (w->type == VLM_INT8) {
            tile_int8((const int8_t *) panel, a->q + at * VLM_BLOCK, a->s + at, n_blocks,
                      y[0] + 16 * quarter);

        } else if (rows == F32_ROWS) {
            tile_float(panel, bf16, x, w->K, F32_ROWS,
                       (float (*)[VLM_PANEL]) (y[0] + 16 * quarter));

        } else {
            tile_float(panel, bf16, x, w->K, 1, (float (*)[VLM_PANEL]) (y[0] + 16 * quarter));
        }
    }
}


void
vlm_linear_avx2(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    int                  m, rows, most;
    float                y[F32_ROWS][VLM_PANEL] __attribute__((aligned(32)));
    size_t               out;
    uint64_t             panel_bytes;
    uint32_t             p, t, n0, n;
    const uint8_t       *panel;
    const vlm_linear_t  *w = a->w;

    most = w->type == VLM_INT8 ? 1 : F32_ROWS;
    out = vlm_linear_out(w);
    panel_bytes = vlm_packed_bytes_avx2(w->type, VLM_PANEL, w->K);

    for (p = begin; p < end; p++) {
        panel = (const uint8_t *) w->w + p * panel_bytes;
        n0 = p * VLM_PANEL;
        n = w->N - n0 < VLM_PANEL ? w->N - n0 : VLM_PANEL;

        for (t = 0; t < a->T; t += rows) {
            rows = a->T - t >= (uint32_t) most ? most : 1;
            tile(a, panel, t, rows, y);

            for (m = 0; m < rows; m++) {
                vlm_epilogue(w, n0, n, y[m], a->y + (t + m) * out);
            }
        }
    }
}
