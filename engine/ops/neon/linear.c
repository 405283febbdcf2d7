/*
 * linear for NEON with sdot, whose lanes each add four products of int8: a vector has four values
 * of each of four weight rows, and four values of an activation row are a lane of the other factor,
 * of which one load has four.
 *
 * int4 with one row is multiplied as it lies: a group's sum of q x, times its step, and the base
 * times the group's sum of x.  For more rows a piece of a panel becomes int8 first.
 *
 * Each output is summed in the order of k whatever T is, and the bits equal the plain version's.
 */

#include <arm_neon.h>

#include "base/size.h"
#include "format/int4.h"
#include "ops/kernels.h"
#include "ops/low.h"

#define ROWS   4                       /* activation rows of a tile */
#define VECS   4                       /* its vectors of 4 weight rows: 16 sums of 32 registers */
#define WHOLE  (VLM_PANEL / 4)         /* vectors of a panel, which one activation row has */
#define MANY   256                     /* rows that go over a piece of a panel together */
#define STEP   16                      /* values of a load of x */

uint64_t vlm_packed_bytes_neon(vlm_type_t type, uint32_t N, uint32_t K);


/* Activation rows as a product reads them, from one value on. */
typedef struct {
    const int8_t  *q;
    const float   *s;                  /* of the value's piece */
    size_t         values, pieces;     /* from row to row */
} rows_t;


/* ---- f32 and bf16 -------------------------------------------------------- */

static inline __attribute__((always_inline)) float32x4_t
load_weights(const uint8_t *p, int bf16, int j)
{
    return bf16 ? vreinterpretq_f32_u32(vshll_n_u16(vld1_u16((const uint16_t *) p + 4 * j), 16))
                : vld1q_f32((const float *) p + 4 * j);
}


/* `vecs` vectors of weight rows against `rows` activation rows. */
static inline __attribute__((always_inline)) void
tile_float(const uint8_t *panel, int bf16, const float *x, uint32_t K, int rows, int vecs,
           float y[][VLM_PANEL])
{
    int          m, j;
    uint32_t     k;
    float32x4_t  sum[ROWS][WHOLE], w, v[ROWS];

    for (m = 0; m < rows; m++) {
        for (j = 0; j < vecs; j++) {
            sum[m][j] = vdupq_n_f32(0);
        }
    }

    for (k = 0; k < K; k++, panel += VLM_PANEL * (bf16 ? 2 : 4)) {
        for (m = 0; m < rows; m++) {
            v[m] = vld1q_dup_f32(x + (size_t) m * K + k);
        }

        for (j = 0; j < vecs; j++) {
            w = load_weights(panel, bf16, j);

            for (m = 0; m < rows; m++) {
                sum[m][j] = vfmaq_f32(sum[m][j], w, v[m]);
            }
        }
    }

    for (m = 0; m < rows; m++) {
        for (j = 0; j < vecs; j++) {
            vst1q_f32(y[m] + 4 * j, sum[m][j]);
        }
    }
}


/* The numbers of rows and vectors are constants in each call, so that sums stay in registers. */
static inline __attribute__((always_inline)) void
panel_float(const uint8_t *panel, int bf16, const float *x, uint32_t K, uint32_t T,
            float y[][VLM_PANEL])
{
    float   (*to)[VLM_PANEL];
    uint32_t  t, row;

    for (t = 0; t + ROWS <= T; t += ROWS, x += ROWS * (size_t) K) {
        for (row = 0; row < VLM_PANEL; row += 4 * VECS) {
            to = (float (*)[VLM_PANEL]) (y[t] + row);
            tile_float(panel + row * (bf16 ? 2 : 4), bf16, x, K, ROWS, VECS, to);
        }
    }

    for ( /* void */ ; t < T; t++, x += K) {
        tile_float(panel, bf16, x, K, 1, WHOLE, y + t);
    }
}


/* ---- int8 ---------------------------------------------------------------- */

/*
 * n values of a piece: `vecs` vectors of weight rows against `rows` activation rows.  Sums stay in
 * registers; then one multiply-add in f32 for each, into y.
 */
static inline __attribute__((always_inline)) void
tile_int8(const int8_t *words, rows_t r, uint32_t n, int rows, int vecs, float y[][VLM_PANEL])
{
    int          m, j;
    uint32_t     k;
    int8x16_t    x[ROWS], w;
    int32x4_t    dot[ROWS][WHOLE];
    float32x4_t  scale;

    for (m = 0; m < rows; m++) {
        for (j = 0; j < vecs; j++) {
            dot[m][j] = vdupq_n_s32(0);
        }
    }

/* A lane is a constant of the instruction; loads stay behind those before: registers are few. */
#define LANE(lane)                                                             \
    __asm__ volatile("" ::: "memory");                                         \
                                                                               \
    for (j = 0; j < vecs; j++) {                                               \
        w = vld1q_s8(words + (lane) * 4 * VLM_PANEL + 16 * j);                 \
                                                                               \
        for (m = 0; m < rows; m++) {                                           \
            dot[m][j] = vdotq_laneq_s32(dot[m][j], w, x[m], lane);             \
        }                                                                      \
    }

    for (k = 0; k < n; k += STEP, words += STEP * VLM_PANEL) {
        for (m = 0; m < rows; m++) {
            x[m] = vld1q_s8(r.q + m * r.values + k);
        }

        LANE(0)
        LANE(1)
        LANE(2)
        LANE(3)
    }

#undef LANE

    for (m = 0; m < rows; m++) {
        scale = vdupq_n_f32(r.s[m * r.pieces]);

        for (j = 0; j < vecs; j++) {
            vst1q_f32(y[m] + 4 * j, vfmaq_f32(vld1q_f32(y[m] + 4 * j), scale,
                                              vcvtq_f32_s32(dot[m][j])));
        }
    }
}


/* A piece of a panel against `rows` activation rows, a constant in each call. */
static void
piece_int8(const int8_t *words, rows_t r, uint32_t n, uint32_t rows, float y[][VLM_PANEL])
{
    float   (*to)[VLM_PANEL];
    uint32_t  row;

    if (rows == 1) {
        tile_int8(words, r, n, 1, WHOLE, y);
        return;
    }

    for (row = 0; row < VLM_PANEL; row += 4 * VECS, words += 16 * VECS) {
        to = (float (*)[VLM_PANEL]) (y[0] + row);

        switch (rows) {
        case 2:
            tile_int8(words, r, n, 2, VECS, to);
            break;
        case 3:
            tile_int8(words, r, n, 3, VECS, to);
            break;
        default:
            tile_int8(words, r, n, ROWS, VECS, to);
        }
    }
}


/* ---- int4 ---------------------------------------------------------------- */

void
vlm_int4_piece_neon(const uint8_t *from, uint32_t groups, int8_t *to)
{
    uint32_t           g, j, w;
    uint8x16_t         at, step, base, x, low, high;
    const uint8_t     *numbers = from + groups * VLM_INT4_NIBBLES;
    const uint8x16_t   first = { 0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12 };

    for (g = 0; g < groups; g++, from += VLM_INT4_NIBBLES, to += 2 * VLM_INT4_NIBBLES) {
        at = vaddq_u8(first, vdupq_n_u8((uint8_t) g));

        for (j = 0; j < WHOLE; j++) {
            step = vqtbl1q_u8(vld1q_u8(numbers + 16 * j), at);
            base = vqtbl1q_u8(vld1q_u8(numbers + VLM_INT4_NUMBERS + 16 * j), at);

            for (w = 16 * j; w < VLM_INT4_NIBBLES; w += 4 * VLM_PANEL) {
                x = vld1q_u8(from + w);
                low = vmlaq_u8(base, vandq_u8(x, vdupq_n_u8(15)), step);
                high = vmlaq_u8(base, vshrq_n_u8(x, 4), step);
                vst1q_s8(to + w, vreinterpretq_s8_u8(low));
                vst1q_s8(to + w + VLM_INT4_NIBBLES, vreinterpretq_s8_u8(high));
            }
        }
    }
}


static inline int32_t
sum_group(const int8_t *q)
{
    int32_t   sum = 0;
    uint32_t  k;

    for (k = 0; k < VLM_BLOCK; k++) {
        sum += q[k];
    }

    return sum;
}


/* Weight rows 4 VECS j and on, of a piece as it lies, against one activation row. */
static inline __attribute__((always_inline)) void
tile_int4(const uint8_t *piece, uint32_t groups, uint32_t j, const int8_t *q, const int32_t *sums,
         float s, float *y)
{
    uint32_t        i, g, w;
    int8x16_t       x[4];
    int32x4_t       dot[VECS], group[VECS], one;
    uint8x16_t      both;
    const uint8_t  *at = piece + 16 * VECS * j;
    const uint8_t  *steps = piece + groups * VLM_INT4_NIBBLES + 16 * VECS * j;
    const uint8_t  *bases = steps + VLM_INT4_NUMBERS;

    for (i = 0; i < VECS; i++) {
        dot[i] = vdupq_n_s32(0);
    }

/* Values 4 lane and on of x[half], and of x[half + 2]. */
#define LANE(half, lane)                                                       \
    __asm__ volatile("" ::: "memory");                                         \
                                                                               \
    for (i = 0; i < VECS; i++) {                                               \
        both = vld1q_u8(at + (4 * (half) + (lane)) * 4 * VLM_PANEL + 16 * i);  \
        group[i] = vdotq_laneq_s32(group[i], vreinterpretq_s8_u8(              \
                                   vandq_u8(both, vdupq_n_u8(15))),            \
                                   x[half], lane);                             \
        group[i] = vdotq_laneq_s32(group[i], vreinterpretq_s8_u8(              \
                                   vshrq_n_u8(both, 4)), x[(half) + 2], lane); \
    }

    for (g = 0; g < groups; g++, q += VLM_BLOCK, at += VLM_INT4_NIBBLES) {
        for (w = 0; w < 4; w++) {
            x[w] = vld1q_s8(q + 16 * w);
        }

        for (i = 0; i < VECS; i++) {
            group[i] = vdupq_n_s32(0);
        }

        LANE(0, 0)
        LANE(0, 1)
        LANE(0, 2)
        LANE(0, 3)
        LANE(1, 0)
        LANE(1, 1)
        LANE(1, 2)
        LANE(1, 3)

        for (i = 0; i < VECS; i++) {   /* byte g of each word, without and with its sign */
            one = vld1q_s32((const int32_t *) (const void *) (steps + 16 * i));
            one = vshlq_s32(one, vdupq_n_s32(-8 * (int32_t) g));
            one = vandq_s32(one, vdupq_n_s32(255));
            dot[i] = vmlaq_s32(dot[i], group[i], one);
            one = vld1q_s32((const int32_t *) (const void *) (bases + 16 * i));
            one = vshlq_s32(one, vdupq_n_s32(24 - 8 * (int32_t) g));
            dot[i] = vmlaq_s32(dot[i], vshrq_n_s32(one, 24), vdupq_n_s32(sums[g]));
        }
    }

#undef LANE

    for (i = 0; i < VECS; i++, y += 4) {
        vst1q_f32(y, vfmaq_f32(vld1q_f32(y), vdupq_n_f32(s), vcvtq_f32_s32(dot[i])));
    }
}


/* Row t against a panel of int4. */
static void
row_of_int4(const vlm_linear_args_t *a, const uint8_t *panel, uint32_t t, float y[VLM_PANEL])
{
    int32_t        sums[VLM_INT4_GROUPS];
    uint32_t       g, j, k, groups, values = vlm_blocks(a->w->K) * VLM_BLOCK;
    const float   *s = a->s + (size_t) t * vlm_pieces(a->w->K);
    const int8_t  *q = a->q + (size_t) t * values;

    memset(y, 0, VLM_PANEL * sizeof(float));

    for (k = 0; k < values; k += VLM_PIECE, q += VLM_PIECE, s++) {
        groups = (values - k < VLM_PIECE ? values - k : VLM_PIECE) / VLM_BLOCK;

        for (g = 0; g < groups; g++) {
            sums[g] = sum_group(q + g * VLM_BLOCK);
        }

        for (j = 0; j < WHOLE / VECS; j++) {
            tile_int4(panel, groups, j, q, sums, *s, y + 4 * VECS * j);
        }

        panel += groups * VLM_INT4_NIBBLES + 2 * VLM_INT4_NUMBERS;
    }
}


/* ---- all ----------------------------------------------------------------- */

/* Rows t .. t + T, at most MANY, against a panel: a piece of it is read once for all rows. */
static void
multiply_int8(const vlm_linear_args_t *a, const uint8_t *panel, uint32_t t, uint32_t T,
              float y[][VLM_PANEL])
{
    int8_t         made[VLM_PIECE * VLM_PANEL] __attribute__((aligned(16)));
    rows_t         r;
    uint32_t       i, k, n, rows, values = vlm_blocks(a->w->K) * VLM_BLOCK;
    const int8_t  *words;

    r.values = values;
    r.pieces = vlm_pieces(a->w->K);
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
            rows = T - i < ROWS ? T - i : ROWS;
            r.q = a->q + (t + i) * r.values + k;
            r.s = a->s + (t + i) * r.pieces + k / VLM_PIECE;
            piece_int8(words, r, n, rows, y + i);
        }
    }
}


static void
multiply_float(const vlm_linear_args_t *a, const uint8_t *panel, uint32_t t, uint32_t T,
               float y[][VLM_PANEL])
{
    const float  *x = a->x + (size_t) t * a->w->K;

    if (a->w->type == VLM_BF16) {
        panel_float(panel, 1, x, a->w->K, T, y);
    } else {
        panel_float(panel, 0, x, a->w->K, T, y);
    }
}


void
vlm_linear_neon(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    float           y[MANY][VLM_PANEL] __attribute__((aligned(16)));
    uint64_t        bytes = vlm_packed_bytes_neon(a->w->type, VLM_PANEL, a->w->K);
    uint32_t        p, t, T;
    const uint8_t  *panel;

    for (p = begin; p < end; p++) {
        panel = (const uint8_t *) a->w->w + p * bytes;

        for (t = 0; t < a->T; t += T) {
            T = a->T - t < MANY ? a->T - t : MANY;

            if (!vlm_takes_int8(a->w->type)) {
                multiply_float(a, panel, t, T, y);

            } else if (a->w->type == VLM_INT4 && T == 1) {
                row_of_int4(a, panel, t, y[0]);

            } else {
                multiply_int8(a, panel, t, T, y);
            }

            vlm_linear_end(a, vlm_epilogue_plain, p, t, 1, T, y);
        }
    }
}
