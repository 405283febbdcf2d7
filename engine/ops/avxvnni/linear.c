/*
 * linear for AVX-VNNI, of processors without AVX-512: int8 uses vpdpbusd, and so does int4, a piece
 * of whose panels becomes int8 first; AVX2's kernels do the rest, also int4 with one or two rows.
 *
 * The panels are AVX2's, signed.  vpdpbusd multiplies unsigned by signed: 128 is added to a vector
 * of weights once for all rows of a tile, and 128 * sum(x) is subtracted where a piece's sum
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
#define FEW    2                       /* that go one by one; of int4 with AVX2's kernel */
#define MANY   256                     /* that go over a piece of a panel together */
#define LONG   4096                    /* values of a row; a second cache holds few longer ones, */
#define SHORT  96                      /* of which so many go over all panels before the next */
#define BRING  4                       /* tiles that bring the next piece, if there are as many */
#define AHEAD  3072                    /* bytes to prefetch for one row, into the second cache */

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


/* n values of a piece of a panel, for one activation row with this scale and sum. */
static inline __attribute__((always_inline)) void
row_int8(const int8_t *panel, const int8_t *q, float s, int32_t sum, uint32_t n,
         float y[VLM_PANEL])
{
    int       j;
    int32_t   four;
    __m256    acc;
    __m256i   dot[8], w, x;
    uint32_t  k;

    for (j = 0; j < 8; j++) {
        dot[j] = _mm256_set1_epi32(-128 * sum);
    }

    for (k = 0; k < n; k += 4, panel += 4 * VLM_PANEL) {
        memcpy(&four, q + k, 4);
        x = _mm256_set1_epi32(four);

        for (j = 0; j < 8; j++) {
            if (j % 2 == 0) {
                _mm_prefetch((const char *) panel + AHEAD + 32 * j, _MM_HINT_T1);
            }

            w = _mm256_xor_si256(_mm256_load_si256((const __m256i *) panel + j),
                                 _mm256_set1_epi8((char) 0x80));
            dot[j] = dot_step(dot[j], w, x);
        }
    }

    for (j = 0; j < 8; j++) {
        acc = _mm256_load_ps(y + 8 * j);
        acc = _mm256_fmadd_ps(_mm256_set1_ps(s), _mm256_cvtepi32_ps(dot[j]), acc);
        _mm256_store_ps(y + 8 * j, acc);
    }
}


/*
 * n values of a piece: 16 weight rows against `rows` activation rows.  Sums stay in registers; then
 * one multiply-add in f32 for each, into y.  Each step of four values prefetches `far` bytes
 * further.
 */
static inline __attribute__((always_inline)) void
strip_int8(const uint8_t *at, rows_t r, uint32_t n, const uint8_t *bring, size_t far, int rows,
           float y[][VLM_PANEL])
{
    int            m, j;
    int32_t        four;
    __m256         acc, scale;
    __m256i        dot[ROWS][2], w[2], x;
    uint32_t       k;
    const int8_t  *fourth = r.q + 3 * r.values;        /* row: factors of addresses are 1 and 2 */

    for (m = 0; m < rows; m++) {
        dot[m][0] = dot[m][1] = _mm256_set1_epi32(-128 * r.sum[m * r.pieces]);
    }

    for (k = 0; k < n; k += 4, r.q += 4, fourth += 4, at += 4 * VLM_PANEL, bring += far) {
        _mm_prefetch((const char *) bring, _MM_HINT_T1);

        for (j = 0; j < 2; j++) {
            w[j] = _mm256_xor_si256(_mm256_load_si256((const __m256i *) at + j),
                                    _mm256_set1_epi8((char) 0x80));
        }

        for (m = 0; m < rows; m++) {
            memcpy(&four, (m < 3 ? r.q : fourth) + m % 3 * r.values, 4);
            x = _mm256_set1_epi32(four);

            for (j = 0; j < 2; j++) {
                dot[m][j] = dot_step(dot[m][j], w[j], x);
            }
        }
    }

    for (m = 0; m < rows; m++) {
        scale = _mm256_set1_ps(r.s[m * r.pieces]);

        for (j = 0; j < 2; j++) {
            acc = _mm256_load_ps(y[m] + 8 * j);
            acc = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(dot[m][j]), acc);
            _mm256_store_ps(y[m] + 8 * j, acc);
        }
    }

    __asm__ volatile("" ::: "memory");             /* y stays there, and the registers are dot's */
}


/* All weight rows of a piece. */
static inline __attribute__((always_inline)) void
tile_int8(const uint8_t *piece, rows_t r, uint32_t n, const uint8_t *bring, size_t far, int rows,
          float y[][VLM_PANEL])
{
    uint32_t  row;

    for (row = 0; row < VLM_PANEL; row += 16, bring += n / 4 * far) {
        strip_int8(piece + 4 * row, r, n, bring, far, rows, (float (*)[VLM_PANEL]) (y[0] + row));
    }
}


/* The number of rows is a constant in each call, so that sums stay in registers. */
static void
tile(const uint8_t *piece, rows_t r, uint32_t n, const uint8_t *bring, size_t far, int rows,
     float y[][VLM_PANEL])
{
    switch (rows) {
    case 1:
        tile_int8(piece, r, n, bring, far, 1, y);
        break;
    case 2:
        tile_int8(piece, r, n, bring, far, 2, y);
        break;
    case 3:
        tile_int8(piece, r, n, bring, far, 3, y);
        break;
    case 4:
        tile_int8(piece, r, n, bring, far, 4, y);
        break;
    case 5:
        tile_int8(piece, r, n, bring, far, 5, y);
        break;
    default:
        tile_int8(piece, r, n, bring, far, ROWS, y);
    }
}


/*
 * Rows t .. t + T against values k .. k + n of a panel, in tiles of about the same size.  The first
 * ones prefetch the next piece, of so many bytes, evenly: a burst would wait for memory.
 */
static void
multiply_piece(const vlm_linear_args_t *a, const uint8_t *piece, const uint8_t *next,
               uint32_t bytes, uint32_t k, uint32_t n, uint32_t t, uint32_t T,
               float y[][VLM_PANEL])
{
    size_t    at, far;
    rows_t    r;
    uint32_t  i, rows, tiles, part, bring;

    r.values = (size_t) vlm_blocks(a->w->K) * VLM_BLOCK;
    r.pieces = vlm_pieces(a->w->K);
    tiles = (T + ROWS - 1) / ROWS;
    bring = tiles < BRING ? tiles : BRING;
    far = (bytes + n * bring - 1) / (n * bring);       /* a tile has n steps: n / 4 of 4 strips */

    for (i = 0, part = 0; i < T; i += rows, part++) {
        rows = (T - i + tiles - part - 1) / (tiles - part);
        at = (t + i) * r.pieces + k / VLM_PIECE;
        r.q = a->q + (t + i) * r.values + k;
        r.s = a->s + at;
        r.sum = a->sum + at;

        if (part == bring) {
            next = piece;
            far = 0;
        }

        tile(piece, r, n, next, far, (int) rows, y + i);
        next += n * far;
    }
}


/* Rows t .. t + T, at most MANY, against a panel: a piece of it is read once for all rows. */
static void
multiply_panel(const vlm_linear_args_t *a, const uint8_t *panel, uint32_t t, uint32_t T,
               float y[][VLM_PANEL])
{
    int       int4 = a->w->type == VLM_INT4;
    uint8_t   made[VLM_PIECE * VLM_PANEL] __attribute__((aligned(64)));
    uint32_t  k, n, bytes, values;

    values = vlm_blocks(a->w->K) * VLM_BLOCK;
    memset(y, 0, T * sizeof(y[0]));

    for (k = 0; k < values; k += n, panel += bytes) {
        n = values - k < VLM_PIECE ? values - k : VLM_PIECE;
        bytes = int4 ? n / 2 * VLM_PANEL + 2 * VLM_INT4_NUMBERS : n * VLM_PANEL;

        if (int4) {
            vlm_int4_piece_avx2(panel, n / VLM_BLOCK, 0, made);
        }

        multiply_piece(a, int4 ? made : panel, panel + bytes, bytes, k, n, t, T, y);
    }
}


/*
 * Up to FEW activation rows of int8, which memory bounds, go one by one, because the prefetcher
 * follows loads in order, over a piece of a panel, and of a second one in turn: two streams get
 * more bandwidth than one.
 */
static void
multiply_few(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    float          y[2 * FEW][VLM_PANEL] __attribute__((aligned(32)));
    size_t         values, pieces, bytes, at;
    uint32_t       p, t, i, k, n, panels;
    const int8_t  *panel;

    values = (size_t) vlm_blocks(a->w->K) * VLM_BLOCK;
    pieces = vlm_pieces(a->w->K);
    bytes = vlm_panel_bytes(a->w->K);

    for (p = begin; p < end; p += panels) {
        panels = end - p >= 2 ? 2 : 1;
        panel = (const int8_t *) a->w->w + p * bytes;
        memset(y, 0, panels * a->T * sizeof(y[0]));

        for (k = 0; k < values; k += n, panel += n * VLM_PANEL) {
            n = values - k < VLM_PIECE ? (uint32_t) (values - k) : VLM_PIECE;

            for (i = 0; i < panels * a->T; i++) {
                t = i % a->T;
                at = t * pieces + k / VLM_PIECE;
                row_int8(panel + i / a->T * bytes, a->q + t * values + k, a->s[at], a->sum[at], n,
                         y[i]);
            }
        }

        vlm_linear_end(a, vlm_epilogue_avx2, p, 0, panels, a->T, y);
    }
}


void
vlm_linear_avxvnni(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    float     y[MANY][VLM_PANEL] __attribute__((aligned(32)));
    uint64_t  bytes;
    uint32_t  p, t, T, most;

    if (!vlm_takes_int8(a->w->type) || (a->w->type == VLM_INT4 && a->T <= FEW)) {
        vlm_linear_avx2(a, begin, end);
        return;
    }

    if (a->w->type == VLM_INT8 && a->T <= FEW) {
        multiply_few(a, begin, end);
        return;
    }

    bytes = a->w->type == VLM_INT4 ? vlm_int4_panel_bytes(a->w->K) : vlm_panel_bytes(a->w->K);
    most = a->w->K > LONG ? SHORT : MANY;

    for (t = 0; t < a->T; t += T) {
        T = a->T - t < most ? a->T - t : most;

        for (p = begin; p < end; p++) {
            multiply_panel(a, (const uint8_t *) a->w->w + p * bytes, t, T, y);
            vlm_linear_end(a, vlm_epilogue_avx2, p, t, 1, T, y);
        }
    }
}
