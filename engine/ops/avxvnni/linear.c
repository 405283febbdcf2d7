/*
 * linear for AVX-VNNI, of processors without AVX-512: int8 uses vpdpbusd, and so does int4, a piece
 * of whose panels becomes int8 first; AVX2's kernels do the rest, also int4 with one row.
 *
 * The panels are AVX2's, signed.  vpdpbusd multiplies unsigned by signed: 128 is added to a vector
 * of weights once for all activation rows, and 128 * sum(x) is subtracted where a piece's sum
 * starts.
 *
 * Each output is summed in the order of k whatever T is, and the bits equal the plain version's.
 */

#include <immintrin.h>

#include "format/int4.h"
#include "ops/avxvnni/vex.h"
#include "ops/kernels.h"
#include "ops/low.h"

#define ROWS   6                       /* activation rows of a tile: 12 sums of 16 registers */
#define MANY   256                     /* that go over a piece of an int4 panel together */
#define AHEAD  3072                    /* bytes to prefetch, into the second cache */

void vlm_linear_avx2(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);


/* As an instruction, because compilers copy the sum before the intrinsic. */
static inline __m256i
dot_step(__m256i sum, __m256i w, __m256i x)
{
    __asm__(VLM_VEX "vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(w), "x"(x));

    return sum;
}


/* Activation rows as a product reads them, from one value on. */
typedef struct {
    const int8_t   *q;
    const float    *s;                 /* of the value's piece */
    const int32_t  *sum;
    size_t          values, pieces;    /* from row to row */
} rows_t;


/* n values of a piece: `vecs` times 8 weight rows against `rows` activation rows. */
static inline __attribute__((always_inline)) void
multiply_piece(const int8_t *panel, rows_t r, uint32_t n, int rows, int vecs, float y[][VLM_PANEL])
{
    int       m, j;
    int32_t   four;
    __m256    acc, scale;
    __m256i   dot[2 * ROWS], w[8], x;
    uint32_t  k;

    for (m = 0; m < rows; m++) {
        for (j = 0; j < vecs; j++) {
            dot[m * vecs + j] = _mm256_set1_epi32(-128 * r.sum[m * r.pieces]);
        }
    }

    for (k = 0; k < n; k += 4, panel += 4 * VLM_PANEL) {
        for (j = 0; j < vecs; j++) {
            if (rows == 1 && j % 2 == 0) {
                _mm_prefetch((const char *) panel + AHEAD + 32 * j, _MM_HINT_T1);
            }

            w[j] = _mm256_xor_si256(_mm256_load_si256((const __m256i *) panel + j),
                                    _mm256_set1_epi8((char) 0x80));
        }

        for (m = 0; m < rows; m++) {
            memcpy(&four, r.q + m * r.values + k, 4);
            x = _mm256_set1_epi32(four);

            for (j = 0; j < vecs; j++) {
                dot[m * vecs + j] = dot_step(dot[m * vecs + j], w[j], x);
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

    __asm__ volatile("" ::: "memory");             /* y stays there, and the registers are dot's */
}


/*
 * Activation rows t .. t + rows against panels p and, for one row, p + 1: one row is bound by
 * memory, and two streams get more bandwidth than one.  Rows are a constant in each call, so that
 * sums stay in registers.
 */
static inline __attribute__((always_inline)) void
multiply(const vlm_linear_args_t *a, uint32_t p, uint32_t t, int panels, int rows,
         float y[][VLM_PANEL])
{
    int             i, vecs;
    float         (*to)[VLM_PANEL];
    size_t          k, bytes;
    rows_t          r;
    uint32_t        n, row;
    const int8_t   *panel;

    r.values = (size_t) vlm_blocks(a->w->K) * VLM_BLOCK;
    r.pieces = vlm_pieces(a->w->K);
    bytes = vlm_panel_bytes(a->w->K);
    vecs = rows == 1 ? 8 : 2;
    memset(y, 0, (size_t) (panels * rows) * sizeof(y[0]));

    for (row = 0; row < VLM_PANEL; row += 8 * (uint32_t) vecs) {
        r.q = a->q + t * r.values;
        r.s = a->s + t * r.pieces;
        r.sum = a->sum + t * r.pieces;

        for (k = 0; k < r.values; k += n, r.q += n, r.s++, r.sum++) {
            n = r.values - k < VLM_PIECE ? (uint32_t) (r.values - k) : VLM_PIECE;

            for (i = 0; i < panels; i++) {
                panel = (const int8_t *) a->w->w + (p + (uint32_t) i) * bytes;
                to = (float (*)[VLM_PANEL]) (y[i] + row);
                multiply_piece(panel + k * VLM_PANEL + 4 * row, r, n, rows, vecs, to);
            }
        }
    }
}


static void
multiply_rows(const vlm_linear_args_t *a, uint32_t p, uint32_t t, int panels, int rows,
              float y[][VLM_PANEL])
{
    switch (rows) {
    case 1:
        multiply(a, p, t, panels, 1, y);
        break;
    case 2:
        multiply(a, p, t, 1, 2, y);
        break;
    case 3:
        multiply(a, p, t, 1, 3, y);
        break;
    case 4:
        multiply(a, p, t, 1, 4, y);
        break;
    case 5:
        multiply(a, p, t, 1, 5, y);
        break;
    default:
        multiply(a, p, t, 1, ROWS, y);
    }
}


/* A piece of a panel in int8 against `rows` activation rows. */
static void
piece_rows(const int8_t *piece, rows_t r, uint32_t n, int rows, float y[][VLM_PANEL])
{
    float   (*to)[VLM_PANEL];
    uint32_t  row;

    for (row = 0; row < VLM_PANEL; row += 16) {
        to = (float (*)[VLM_PANEL]) (y[0] + row);

        switch (rows) {
        case 1:
            multiply_piece(piece + 4 * row, r, n, 1, 2, to);
            break;
        case 2:
            multiply_piece(piece + 4 * row, r, n, 2, 2, to);
            break;
        case 3:
            multiply_piece(piece + 4 * row, r, n, 3, 2, to);
            break;
        case 4:
            multiply_piece(piece + 4 * row, r, n, 4, 2, to);
            break;
        case 5:
            multiply_piece(piece + 4 * row, r, n, 5, 2, to);
            break;
        default:
            multiply_piece(piece + 4 * row, r, n, ROWS, 2, to);
        }
    }
}


/* Rows t .. t + T, at most MANY, against a panel of int4. */
static void
panel_int4(const vlm_linear_args_t *a, const uint8_t *panel, uint32_t t, uint32_t T,
           float y[][VLM_PANEL])
{
    size_t    k;
    rows_t    r;
    int8_t    made[VLM_PIECE * VLM_PANEL] __attribute__((aligned(32)));
    uint32_t  i, n, rows;

    r.values = (size_t) vlm_blocks(a->w->K) * VLM_BLOCK;
    r.pieces = vlm_pieces(a->w->K);
    memset(y, 0, T * sizeof(y[0]));

    for (k = 0; k < r.values; k += n) {
        n = r.values - k < VLM_PIECE ? (uint32_t) (r.values - k) : VLM_PIECE;
        vlm_int4_piece_avx2(panel, n / VLM_BLOCK, 0, (uint8_t *) made);
        panel += n / 2 * VLM_PANEL + 2 * VLM_INT4_NUMBERS;

        for (i = 0; i < T; i += rows) {
            rows = T - i < ROWS ? T - i : ROWS;
            r.q = a->q + (t + i) * r.values + k;
            r.s = a->s + (t + i) * r.pieces + k / VLM_PIECE;
            r.sum = a->sum + (t + i) * r.pieces + k / VLM_PIECE;
            piece_rows(made, r, n, (int) rows, y + i);
        }
    }
}


static void
multiply_int4(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    float           y[MANY][VLM_PANEL] __attribute__((aligned(32)));
    uint32_t        p, t, T;
    const uint8_t  *panel;

    for (p = begin; p < end; p++) {
        panel = (const uint8_t *) a->w->w + p * vlm_int4_panel_bytes(a->w->K);

        for (t = 0; t < a->T; t += T) {
            T = a->T - t < MANY ? a->T - t : MANY;
            panel_int4(a, panel, t, T, y);
            vlm_linear_end(a, vlm_epilogue_avx2, p, t, 1, T, y);
        }
    }
}


void
vlm_linear_avxvnni(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    int       rows, panels;
    float     y[ROWS][VLM_PANEL] __attribute__((aligned(32)));
    uint32_t  p, t;

    if (a->w->type == VLM_INT4 && a->T > 1) {
        multiply_int4(a, begin, end);
        return;
    }

    if (a->w->type != VLM_INT8) {
        vlm_linear_avx2(a, begin, end);
        return;
    }

    for (p = begin; p < end; p += (uint32_t) panels) {
        panels = a->T == 1 && end - p >= 2 ? 2 : 1;

        for (t = 0; t < a->T; t += (uint32_t) rows) {
            rows = a->T - t < ROWS ? (int) (a->T - t) : ROWS;
            multiply_rows(a, p, t, panels, rows, y);
            vlm_linear_end(a, vlm_epilogue_avx2, p, t, panels, (uint32_t) rows, y);
        }
    }
}
