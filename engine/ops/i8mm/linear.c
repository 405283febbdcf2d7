/*
 * linear for processors with smmla, which multiplies two rows of eight int8 by two others: int8 and
 * int4 with several rows, of which pieces become int8 first; NEON's kernels do the rest.
 *
 * The panels are NEON's, where a vector has four values of each of four weight rows: two that
 * follow each other are zipped into eight values of two rows each, once for a tile.  Activation
 * rows are put into pairs once for a piece; an odd one has zeros beside it.
 *
 * Each output is summed in the order of k whatever T is, and the bits equal the plain version's.
 */

#include <arm_neon.h>

#include "base/size.h"
#include "format/int4.h"
#include "ops/kernels.h"
#include "ops/low.h"

#define PAIRS  4                       /* of activation rows of a tile */
#define VECS   4                       /* its pairs of weight rows: 16 sums of 32 registers */
#define MANY   256                     /* rows that go over a piece of a panel together */
#define STEP   8                       /* values of a row in one product */

typedef int8_t  pair_t[2 * VLM_PIECE];             /* two rows, eight values of each in turn */


static inline int8x16_t
zip_words(int32x4_t a, int32x4_t b, int high)
{
    return vreinterpretq_s8_s32(high ? vzip2q_s32(a, b) : vzip1q_s32(a, b));
}


/*
 * n values of a piece: 2 VECS weight rows against `pairs` pairs of activation rows, whose scales
 * are `pieces` apart.  rows: of y, one less than the pairs have if the last is odd.
 */
static inline __attribute__((always_inline)) void
tile(const int8_t *words, pair_t x[], const float *s, size_t pieces, uint32_t n, int pairs,
     uint32_t rows, float y[][VLM_PANEL])
{
    int          m, i;
    float       *to;
    uint32_t     k, h;
    int8x16_t    w[VECS], in;
    int32x4_t    a, b, dot[PAIRS][VECS];
    int64x2_t    low, high;
    float32x4_t  scale;

    for (m = 0; m < pairs; m++) {
        for (i = 0; i < VECS; i++) {
            dot[m][i] = vdupq_n_s32(0);
        }
    }

    for (k = 0; k < n; k += STEP, words += STEP * VLM_PANEL) {
        for (i = 0; i < VECS; i += 2) {
            a = vreinterpretq_s32_s8(vld1q_s8(words + 8 * i));
            b = vreinterpretq_s32_s8(vld1q_s8(words + 4 * VLM_PANEL + 8 * i));
            w[i] = zip_words(a, b, 0);
            w[i + 1] = zip_words(a, b, 1);
        }

        for (m = 0; m < pairs; m++) {
            in = vld1q_s8(x[m] + 2 * k);

            for (i = 0; i < VECS; i++) {
                dot[m][i] = vmmlaq_s32(dot[m][i], in, w[i]);
            }
        }
    }

    /* a sum has two weight rows with the first activation row, then with the second */

    for (m = 0; m < pairs; m++) {
        for (h = 0; h < 2 && 2 * (uint32_t) m + h < rows; h++) {
            scale = vdupq_n_f32(s[(2 * (size_t) m + h) * pieces]);

            for (i = 0; i < VECS; i += 2) {
                low = vreinterpretq_s64_s32(dot[m][i]);
                high = vreinterpretq_s64_s32(dot[m][i + 1]);
                a = vreinterpretq_s32_s64(h == 0 ? vzip1q_s64(low, high) : vzip2q_s64(low, high));
                to = y[2 * m + (int) h] + 2 * i;
                vst1q_f32(to, vfmaq_f32(vld1q_f32(to), scale, vcvtq_f32_s32(a)));
            }
        }
    }
}


/* A piece of a panel against up to 2 PAIRS rows; the number of pairs is a constant in each call. */
static void
piece_rows(const int8_t *words, pair_t x[], const float *s, size_t pieces, uint32_t n,
           uint32_t rows, float y[][VLM_PANEL])
{
    float   (*to)[VLM_PANEL];
    uint32_t  row;

    for (row = 0; row < VLM_PANEL; row += 2 * VECS, words += 8 * VECS) {
        to = (float (*)[VLM_PANEL]) (y[0] + row);

        switch ((rows + 1) / 2) {
        case 1:
            tile(words, x, s, pieces, n, 1, rows, to);
            break;
        case 2:
            tile(words, x, s, pieces, n, 2, rows, to);
            break;
        case 3:
            tile(words, x, s, pieces, n, 3, rows, to);
            break;
        default:
            tile(words, x, s, pieces, n, PAIRS, rows, to);
        }
    }
}


/* n values of rows that are `values` apart. */
static void
pair_rows(const int8_t *q, size_t values, uint32_t n, uint32_t rows, pair_t x[])
{
    uint32_t   m, k;
    int8x8_t   second;

    for (m = 0; m < rows; m += 2, q += 2 * values) {
        for (k = 0; k < n; k += STEP) {
            second = m + 1 < rows ? vld1_s8(q + values + k) : vdup_n_s8(0);
            vst1q_s8(x[m / 2] + 2 * k, vcombine_s8(vld1_s8(q + k), second));
        }
    }
}


/* Rows t .. t + T, at most MANY, against a panel: a piece of it is read once for all rows. */
static void
multiply(const vlm_linear_args_t *a, const uint8_t *panel, uint32_t t, uint32_t T,
         float y[][VLM_PANEL])
{
    int8_t         made[VLM_PIECE * VLM_PANEL] __attribute__((aligned(16)));
    pair_t         x[PAIRS] __attribute__((aligned(16)));
    size_t         pieces = vlm_pieces(a->w->K);
    uint32_t       i, k, n, rows, values = vlm_blocks(a->w->K) * VLM_BLOCK;
    const int8_t  *words;

    memset(y, 0, T * sizeof(y[0]));

    for (k = 0; k < values; k += n) {
        n = values - k < VLM_PIECE ? values - k : VLM_PIECE;

        if (a->w->type == VLM_INT4) {
            vlm_int4_piece_neon(panel, n / VLM_BLOCK, made);
            words = made;
            panel += n / 2 * VLM_PANEL + 2 * VLM_INT4_NUMBERS;

        } else {
            words = (const int8_t *) panel;
            panel += n * VLM_PANEL;
        }

        for (i = 0; i < T; i += rows) {
            rows = T - i < 2 * PAIRS ? T - i : 2 * PAIRS;
            pair_rows(a->q + (t + i) * (size_t) values + k, values, n, rows, x);
            piece_rows(words, x, a->s + (t + i) * pieces + k / VLM_PIECE, pieces, n, rows, y + i);
        }
    }
}


void
vlm_linear_i8mm(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    float           y[MANY][VLM_PANEL] __attribute__((aligned(16)));
    uint64_t        bytes;
    uint32_t        p, t, T;
    const uint8_t  *panel;

    if (a->T == 1 || !vlm_takes_int8(a->w->type)) {
        vlm_linear_neon(a, begin, end);
        return;
    }

    bytes = a->w->type == VLM_INT4 ? vlm_int4_panel_bytes(a->w->K) : vlm_panel_bytes(a->w->K);

    for (p = begin; p < end; p++) {
        panel = (const uint8_t *) a->w->w + p * bytes;

        for (t = 0; t < a->T; t += T) {
            T = a->T - t < MANY ? a->T - t : MANY;
            multiply(a, panel, t, T, y);
            vlm_linear_end(a, vlm_epilogue_plain, p, t, 1, T, y);
        }
    }
}
