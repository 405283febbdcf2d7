/*
 * linear for AVX2 with FMA.
 *
 * The same panels of 64 weight rows as AVX-512's, walked in quarters of 16 rows; int8 stays signed.
 * vpmaddubsw needs unsigned times signed and saturates at 16 bits: |w| times x with w's sign stays
 * within 2 * 128 * 127: activations are at most 127, and so are weights, but for the -128 that a
 * quantised checkpoint may have.
 *
 * Each output is summed in the order of k whatever T is, and the bits equal the plain version's.
 */

#include <immintrin.h>

#include "base/size.h"
#include "ops/kernels.h"

#define ROWS   4                       /* activation rows of a tile: 8 sums of 16 registers */
#define AHEAD  3072                    /* bytes to prefetch, into the second cache */


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
    __m256    acc[ROWS][2], w[2], v;
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


/* Activation rows as a product reads them, from one value on. */
typedef struct {
    const int8_t  *q;
    const float   *s;                  /* of the value's piece */
    size_t         values, pieces;     /* from row to row */
} rows_t;


/*
 * n values of a piece: `vecs` times 8 weight rows against `rows` activation rows; |w| is computed
 * once for all of them.  Integer sums stay in registers, 8 in all; then one multiply-add in f32 for
 * each, into y.
 */
static inline __attribute__((always_inline)) void
piece_int8(const int8_t *panel, rows_t r, uint32_t n, int rows, int vecs, float y[][VLM_PANEL])
{
    int       m, j;
    int32_t   four;
    __m256    acc, scale;
    __m256i   dot[8], x[ROWS], w, size, pairs;
    uint32_t  k;

    for (j = 0; j < rows * vecs; j++) {
        dot[j] = _mm256_setzero_si256();
    }

    for (k = 0; k < n; k += 4, panel += 4 * VLM_PANEL) {
        for (m = 0; m < rows; m++) {
            memcpy(&four, r.q + m * r.values + k, 4);
            x[m] = _mm256_set1_epi32(four);
        }

        for (j = 0; j < vecs; j++) {
            if (j % 2 == 0) {
                _mm_prefetch((const char *) panel + AHEAD + 32 * j, _MM_HINT_T1);
            }

            w = _mm256_load_si256((const __m256i *) panel + j);
            size = _mm256_abs_epi8(w);

            for (m = 0; m < rows; m++) {
                pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(x[m], w));
                pairs = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
                dot[m * vecs + j] = _mm256_add_epi32(dot[m * vecs + j], pairs);
            }
        }
    }

    for (m = 0; m < rows; m++) {
        scale = _mm256_set1_ps(r.s[m * r.pieces]);

        for (j = 0; j < vecs; j++) {
            acc = _mm256_load_ps(y[m] + 8 * j);
            acc = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(dot[m * vecs + j]), acc);
            _mm256_store_ps(y[m] + 8 * j, acc);
        }
    }
}


/* A quarter of a panel. */
static void
tile_int8(const int8_t *panel, rows_t r, float y[][VLM_PANEL])
{
    size_t    k;
    uint32_t  i, n;

    for (i = 0; i < ROWS; i++) {
        memset(y[i], 0, 16 * sizeof(float));
    }

    for (k = 0; k < r.values; k += n, r.q += n, r.s++) {
        n = r.values - k < VLM_PIECE ? (uint32_t) (r.values - k) : VLM_PIECE;
        piece_int8(panel + k * VLM_PANEL, r, n, ROWS, 2, y);
    }
}


/*
 * One activation row is bound by memory: it reads two panels side by side, because the prefetcher
 * follows several streams, and two together come closer to the memory's bandwidth.
 */
static void
row_int8(const int8_t *panel, size_t next, rows_t r, int panels, float y[][VLM_PANEL])
{
    int       p;
    size_t    k;
    uint32_t  n;

    memset(y, 0, (size_t) panels * sizeof(y[0]));

    for (k = 0; k < r.values; k += n, r.q += n, r.s++) {
        n = r.values - k < VLM_PIECE ? (uint32_t) (r.values - k) : VLM_PIECE;

        for (p = 0; p < panels; p++) {
            piece_int8(panel + p * next + k * VLM_PANEL, r, n, 1, 8, y + p);
        }
    }
}


/* Panels for one activation row; or one panel for ROWS, a quarter at a time. */
static void
tile(const vlm_linear_args_t *a, const uint8_t *panel, size_t next, uint32_t t, int panels,
     int rows, float y[][VLM_PANEL])
{
    int                  quarter, bf16;
    float              (*to)[VLM_PANEL];
    size_t               bytes;
    rows_t               r;
    const float         *x;
    const vlm_linear_t  *w = a->w;

    r.values = (size_t) vlm_blocks(w->K) * VLM_BLOCK;
    r.pieces = vlm_pieces(w->K);
    r.q = a->q + t * r.values;
    r.s = a->s + t * r.pieces;
    x = a->x + (size_t) t * w->K;
    bf16 = w->type == VLM_BF16;
    bytes = w->type == VLM_INT8 ? 4 : vlm_type_bytes(w->type);

    /* The number of rows is a constant in each call, so that sums stay in registers. */

    if (w->type == VLM_INT8 && rows == 1) {
        row_int8((const int8_t *) panel, next, r, panels, y);
        return;
    }

    for (quarter = 0; quarter < 4; quarter++, panel += 16 * bytes) {
        to = (float (*)[VLM_PANEL]) (y[0] + 16 * quarter);

        if (w->type == VLM_INT8) {
            tile_int8((const int8_t *) panel, r, to);

        } else if (rows == ROWS) {
            tile_float(panel, bf16, x, w->K, ROWS, to);

        } else {
            tile_float(panel, bf16, x, w->K, 1, to);
        }
    }
}


void
vlm_linear_avx2(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    int                  i, rows, panels;
    float                y[ROWS][VLM_PANEL] __attribute__((aligned(32)));
    size_t               out;
    uint64_t             panel_bytes;
    uint32_t             p, t, n0, n;
    const uint8_t       *panel;
    const vlm_linear_t  *w = a->w;

    out = vlm_linear_out(w);
    panel_bytes = vlm_packed_bytes_avx2(w->type, VLM_PANEL, w->K);

    for (p = begin; p < end; p += (uint32_t) panels) {
        panel = (const uint8_t *) w->w + p * panel_bytes;
        panels = w->type == VLM_INT8 && a->T == 1 && end - p >= 2 ? 2 : 1;

        for (t = 0; t < a->T; t += (uint32_t) rows) {
            rows = a->T - t >= ROWS ? ROWS : 1;
            tile(a, panel, panel_bytes, t, panels, rows, y);

            for (i = 0; i < panels * rows; i++) {
                n0 = (p + (uint32_t) (i / rows)) * VLM_PANEL;
                n = w->N - n0 < VLM_PANEL ? w->N - n0 : VLM_PANEL;
                vlm_epilogue_avx2(w, n0, n, y[i], a->y + (t + (uint32_t) (i % rows)) * out);
            }
        }
    }
}
