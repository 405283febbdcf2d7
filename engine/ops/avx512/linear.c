/*
 * linear for AVX-512 with VNNI.
 *
 * Panels of 64 weight rows, k slowest: f32 and bf16 [N/64][K][64], int8 [N/64][K/4][64][4] stored
 * as u8 = q + 128, because vpdpbusd multiplies unsigned by signed; 128 * sum(x) is subtracted where
 * a piece's sum starts.  A step is four aligned loads and one broadcast, no shuffle and no
 * horizontal sum, and the same bytes serve one row and many.
 *
 * A few rows are bound by memory.  They read two panels side by side: the prefetcher follows
 * several streams, each up to the end of its page, and two together come closer to the memory's
 * bandwidth than one.
 *
 * int4 with few rows is multiplied as it lies: the sum of a group's four bits times x is taken in a
 * register, and then multiplied by the step; bases are multiplied with the sum of the group's x.
 * With more rows a piece of a panel becomes int8 first.
 *
 * Each output is summed in the order of k whatever T is, so a row's result does not depend on its
 * neighbours, and the bits equal the plain version's: f32 and bf16 by fused multiply-adds in its
 * order, int8 by exact sums whose pieces are added in its order by the same.
 */

#include <immintrin.h>

#include "base/size.h"
#include "format/int4.h"
#include "ops/kernels.h"
#include "ops/low.h"

#define ROWS   6                       /* activation rows of a tile: 24 sums, 4 weights, 1 value */
#define FEW    3                       /* that read two panels at once: as many sums */
#define ALONE  4                       /* that go as one tile */
#define FEW4   4                       /* of int4 that go as one tile: as few */
#define SOME4  16                      /* of int4 whose values stay in registers */
#define MANY   256                     /* that go over a piece of a panel together */
#define LONG   4096                    /* values of rows of which a second cache holds fewer: */
#define SHORT  96                      /* these go over all panels before the next ones */
#define FAR    3072                    /* bytes to prefetch, into the second cache */
#define NEAR   512                     /* and into the first */
#define FAR4   1536                    /* the same of int4, which has two values in a byte */
#define NEAR4  256


uint64_t
vlm_packed_bytes_avx512(vlm_type_t type, uint32_t N, uint32_t K)
{
    uint64_t  rows, k;

    rows = vlm_round(N, VLM_PANEL);

    if (type == VLM_INT4) {
        return vlm_mul(rows / VLM_PANEL, vlm_int4_panel_bytes(K));
    }

    k = type == VLM_INT8 ? vlm_round(K, VLM_BLOCK) : K;

    return vlm_mul(vlm_mul(rows, k), vlm_type_bytes(type));
}


void
vlm_pack_avx512(vlm_linear_t *w, uint32_t row, uint32_t n, const void *from)
{
    uint8_t      *panel;
    uint32_t      i, k, p, rows, K;
    const float  *f;

    K = w->K;

    for (p = 0; p < n; p += VLM_PANEL) {
        rows = n - p < VLM_PANEL ? n - p : VLM_PANEL;
        panel = (uint8_t *) w->w
                + (row + p) / VLM_PANEL * vlm_packed_bytes_avx512(w->type, VLM_PANEL, K);

        if (w->type == VLM_INT8) {
            vlm_pack_words((uint32_t *) panel, (const int8_t *) from + (size_t) p * K, rows, K,
                           VLM_FLIP);
            continue;
        }

        if (w->type == VLM_INT4) {
            vlm_int4_pack(panel, (const uint8_t *) from + p * vlm_int4_row_bytes(K), rows, K, 0);
            continue;
        }

        memset(panel, 0, vlm_packed_bytes_avx512(w->type, VLM_PANEL, K));
        f = (const float *) from + (size_t) p * K;

        for (k = 0; k < K; k++) {
            for (i = 0; i < rows; i++) {
                if (w->type == VLM_BF16) {
                    ((uint16_t *) panel)[(size_t) k * VLM_PANEL + i]
                        = vlm_f32_bf16(f[(size_t) i * K + k]);
                } else {
                    ((float *) panel)[(size_t) k * VLM_PANEL + i] = f[(size_t) i * K + k];
                }
            }
        }
    }
}


void
vlm_unpack_row_avx512(const vlm_linear_t *w, uint32_t row, float *out)
{
    uint32_t        k, i;
    const uint8_t  *panel;

    i = row % VLM_PANEL;
    panel = (const uint8_t *) w->w
            + row / VLM_PANEL * vlm_packed_bytes_avx512(w->type, VLM_PANEL, w->K);

    if (w->type == VLM_INT4) {
        vlm_int4_unpack_row(panel, i, w->K, out);
        return;
    }

    for (k = 0; k < w->K; k++) {
        switch (w->type) {

        case VLM_INT8:
            out[k] = (float) panel[(size_t) (k / 4) * 256 + i * 4 + k % 4] - 128;
            break;

        case VLM_BF16:
            out[k] = vlm_bf16_f32(((const uint16_t *) panel)[(size_t) k * VLM_PANEL + i]);
            break;

        default:
            out[k] = ((const float *) panel)[(size_t) k * VLM_PANEL + i];
        }
    }
}


static inline __m512
load_weights(const uint8_t *p, int bf16, int j)
{
    __m256i  half;

    if (bf16) {
        half = _mm256_load_si256((const __m256i *) p + j);
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    }

    return _mm512_load_ps((const float *) p + 16 * j);
}


static inline __attribute__((always_inline)) void
tile_float(const uint8_t *panel, int bf16, const float *x, uint32_t K, int rows,
           float y[][VLM_PANEL])
{
    int       m, j;
    size_t    step;
    __m512    acc[ROWS][4], w[4], v;
    uint32_t  k;

    step = VLM_PANEL * (bf16 ? 2 : 4);

    for (m = 0; m < rows; m++) {
        for (j = 0; j < 4; j++) {
            acc[m][j] = _mm512_setzero_ps();
        }
    }

    for (k = 0; k < K; k++, panel += step) {
        for (j = 0; j < 4; j++) {
            w[j] = load_weights(panel, bf16, j);
            _mm_prefetch((const char *) panel + FAR + j * step / 4, _MM_HINT_T1);
        }

        for (m = 0; m < rows; m++) {
            v = _mm512_set1_ps(x[(size_t) m * K + k]);

            for (j = 0; j < 4; j++) {
                acc[m][j] = _mm512_fmadd_ps(w[j], v, acc[m][j]);
            }
        }
    }

    for (m = 0; m < rows; m++) {
        for (j = 0; j < 4; j++) {
            _mm512_store_ps(y[m] + 16 * j, acc[m][j]);
        }
    }
}


/* As an instruction, because compilers copy the sum before the intrinsic. */
static inline __m512i
dot_step(__m512i sum, __m512i w, __m512i x)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));

    return sum;
}


/*
 * Loads 64 bytes of weights and prefetches later ones: far ahead into the second-level cache, near
 * into the first.  The code is inline assembly, because each prefetch must stand beside a load:
 * compilers group the prefetches, the loads run ahead of them, and the bandwidth drops by a tenth.
 */
static inline __attribute__((always_inline)) __m512i
load_ahead(const uint8_t *p, int far, int near)
{
    __m512i  w;

    __asm__("prefetcht1 %2\n\tprefetcht0 %3\n\tvmovdqa64 %1, %0"
            : "=v"(w) : "m"(*(const __m512i *) p), "m"(p[far]), "m"(p[near]));

    return w;
}


/* Where the weights of a tile are, and what the tile prefetches. */
typedef enum {
    CACHED,                            /* in a near cache: nothing */
    STREAM,                            /* in memory: a later step of the same weights */
    HALF,                              /* in the second cache: half of the next piece */
    WHOLE                              /* there, too: all of the next piece */
} from_t;

/* Activation rows as a product reads them, from one value on. */
typedef struct {
    const int8_t   *q;
    const float    *s;                 /* of the value's piece */
    const int32_t  *sum;
    size_t          values, pieces;    /* from row to row */
} rows_t;


/*
 * n values of k.  Integer sums of a piece stay in registers, 24 for 6 rows and a panel, or 3 and
 * two; then one multiply-add in f32 for each, into y [panels][rows].
 */
static inline __attribute__((always_inline)) void
tile_int8(const uint8_t *panel, size_t next, rows_t r, uint32_t n, from_t from, int panels,
          int rows, float y[][VLM_PANEL])
{
    int             i, m, p, j;
    int32_t         four;
    __m512          acc, scale;
    __m512i         dot[ROWS][4], w[4], v;
    uint32_t        k, end;
    const int8_t   *half = r.q + 3 * r.values;
    const uint8_t  *at, *bring = panel + next;

    for (k = 0; k < n; r.s++, r.sum++) {
        for (i = 0; i < panels * rows; i++) {
            v = _mm512_set1_epi32(-128 * r.sum[(size_t) (i % rows) * r.pieces]);

            for (j = 0; j < 4; j++) {
                dot[i][j] = v;
            }
        }

        end = n - k < VLM_PIECE ? n : k + VLM_PIECE;

        for ( /* void */ ; k < end; k += 4, r.q += 4, half += 4, panel += 256) {
            if (from == HALF) {
                _mm_prefetch((const char *) bring, _MM_HINT_T1);
                _mm_prefetch((const char *) bring + 64, _MM_HINT_T1);
                bring += 128;
            }

            for (p = 0; p < panels; p++) {
                at = panel + p * next;

                for (j = 0; j < 4; j++) {
                    w[j] = from == STREAM ? load_ahead(at + 64 * j, FAR, NEAR)
                                          : _mm512_load_si512(at + 64 * j);
                }

                for (m = 0; m < rows; m++) {
                    memcpy(&four, (m < 3 ? r.q : half) + m % 3 * r.values, 4);
                    v = _mm512_set1_epi32(four);

                    for (j = 0; j < 4; j++) {
                        dot[p * rows + m][j] = dot_step(dot[p * rows + m][j], w[j], v);
                    }
                }
            }
        }

        for (i = 0; i < panels * rows; i++) {
            scale = _mm512_set1_ps(r.s[(size_t) (i % rows) * r.pieces]);

            for (j = 0; j < 4; j++) {
                acc = _mm512_load_ps(y[i] + 16 * j);
                acc = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(dot[i][j]), acc);
                _mm512_store_ps(y[i] + 16 * j, acc);
            }
        }

        __asm__ volatile("" ::: "memory");         /* y stays there, and the registers are dot's */
    }
}


/* ---- int4 ---------------------------------------------------------------- */

/* Steps and bases of a group, of 16 rows of a panel, as often as a word of four values has them. */
typedef struct {
    __m512i  step, base;
} group_t;


/* Group g of a piece; rows from 16 j on.  flip is added to values that are unsigned. */
static inline __attribute__((always_inline)) group_t
load_group(const uint8_t *numbers, uint32_t g, int j, uint32_t flip)
{
    __m512i  step, base;
    group_t  of;

    step = _mm512_load_si512(numbers + 64 * j);
    base = _mm512_load_si512(numbers + VLM_INT4_NUMBERS + 64 * j);

    /* byte g of each four: as two of 16 bits, and as four */

    of.step = _mm512_shuffle_epi8(step, _mm512_add_epi8(
        _mm512_broadcast_i32x4(_mm_set_epi8(-128, 12, -128, 12, -128, 8, -128, 8,
                                            -128, 4, -128, 4, -128, 0, -128, 0)),
        _mm512_set1_epi16((short) g)));
    of.base = _mm512_shuffle_epi8(base, _mm512_add_epi8(
        _mm512_broadcast_i32x4(_mm_set_epi8(12, 12, 12, 12, 8, 8, 8, 8, 4, 4, 4, 4, 0, 0, 0, 0)),
        _mm512_set1_epi8((char) g)));
    of.base = _mm512_xor_si512(of.base, _mm512_set1_epi32((int) flip));

    return of;
}


/* Values of the low or the high bits.  Both products of 16 bits are below 256, none carries. */
static inline __m512i
values_of(__m512i q, group_t of)
{
    q = _mm512_and_si512(q, _mm512_set1_epi8(15));

    return _mm512_add_epi8(_mm512_mullo_epi16(q, of.step), of.base);
}


void
vlm_int4_piece_avx512(const uint8_t *from, uint32_t groups, uint32_t flip, uint8_t *to)
{
    int             j;
    group_t         of;
    __m512i         x;
    uint32_t        g, w;
    const uint8_t  *numbers = from + groups * VLM_INT4_NIBBLES;

    for (g = 0; g < groups; g++, from += VLM_INT4_NIBBLES, to += 2 * VLM_INT4_NIBBLES) {
        for (j = 0; j < 4; j++) {
            of = load_group(numbers, g, j, flip);

            for (w = 64 * (uint32_t) j; w < VLM_INT4_NIBBLES; w += 256) {
                x = _mm512_load_si512(from + w);
                _mm512_store_si512(to + w, values_of(x, of));
                _mm512_store_si512(to + w + VLM_INT4_NIBBLES,
                                   values_of(_mm512_srli_epi16(x, 4), of));
            }
        }
    }
}


/*
 * A piece of up to FEW4 activation rows.  The sums of its groups' values are pairs of 16 bits, of
 * groups 0 and 2 and of groups 1 and 3, as bases are multiplied with them.
 */
typedef struct {
    int8_t   q[FEW4][VLM_PIECE];
    int32_t  sum[FEW4][2];
    float    s[FEW4];
} few_t;


static inline void
sum_groups(const __m512i v[VLM_INT4_GROUPS], int32_t sum[2])
{
    __m128i  all;
    __m256i  half;
    __m512i  s[VLM_INT4_GROUPS], ones = _mm512_set1_epi16(1);
    uint32_t g;

    for (g = 0; g < VLM_INT4_GROUPS; g++) {
        s[g] = dot_step(_mm512_setzero_si512(), _mm512_set1_epi8(1), v[g]);
    }

    s[0] = _mm512_madd_epi16(_mm512_packs_epi32(s[0], s[1]), ones);
    s[2] = _mm512_madd_epi16(_mm512_packs_epi32(s[2], s[3]), ones);
    s[0] = _mm512_madd_epi16(_mm512_packs_epi32(s[0], s[2]), ones);
    half = _mm256_add_epi32(_mm512_castsi512_si256(s[0]), _mm512_extracti64x4_epi64(s[0], 1));
    all = _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    all = _mm_shufflelo_epi16(_mm_packs_epi32(all, all), _MM_SHUFFLE(3, 1, 2, 0));
    _mm_storel_epi64((__m128i *) sum, all);
}


static void
take_piece(few_t *f, rows_t r, uint32_t groups, uint32_t rows)
{
    __m512i   v[VLM_INT4_GROUPS];
    uint32_t  m, g;

    for (m = 0; m < rows; m++, r.q += r.values, r.s += r.pieces) {
        for (g = 0; g < VLM_INT4_GROUPS; g++) {
            v[g] = g < groups ? _mm512_loadu_si512(r.q + g * VLM_BLOCK) : _mm512_setzero_si512();
            _mm512_store_si512(f->q[m] + g * VLM_BLOCK, v[g]);
        }

        sum_groups(v, f->sum[m]);
        f->s[m] = *r.s;
    }
}


/* dot_step() with four values of x, the same ones for all rows of weights. */
static inline __m512i
dot_four(__m512i sum, __m512i w, const int8_t *x)
{
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*(const int32_t *) x));

    return sum;
}


/* Adds group g to sums: the step times the products of x with four bits, summed in registers. */
static inline __attribute__((always_inline)) void
add_group(const uint8_t *from, const uint8_t *steps, uint32_t g, const few_t *f, from_t where,
          const uint8_t *bring, int rows, int32_t sum[][VLM_PANEL])
{
    int            m, j, lines = where == WHOLE ? 4 : where == HALF ? 2 : 0;
    __m512i        t[FEW4][4], x, low, high, step, *to;
    uint32_t       w;
    const int8_t  *q = f->q[0] + g * VLM_BLOCK;

    for (m = 0; m < rows; m++) {
        for (j = 0; j < 4; j++) {
            t[m][j] = _mm512_setzero_si512();
        }
    }

    bring += g * (VLM_BLOCK / 8) * 64 * (uint32_t) lines;

    for (w = 0; w < VLM_BLOCK / 2; w += 4, q += 4, from += 4 * VLM_PANEL) {
        for (j = 0; j < lines; j++, bring += 64) {
            _mm_prefetch((const char *) bring, _MM_HINT_T1);
        }

        for (j = 0; j < 4; j++) {
            x = where == STREAM ? load_ahead(from + 64 * j, FAR4, NEAR4)
                                : _mm512_load_si512(from + 64 * j);
            low = _mm512_and_si512(x, _mm512_set1_epi8(15));
            high = _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15));

            for (m = 0; m < rows; m++) {
                t[m][j] = dot_four(t[m][j], low, q + m * VLM_PIECE);
                t[m][j] = dot_four(t[m][j], high, q + m * VLM_PIECE + VLM_BLOCK / 2);
            }
        }
    }

    for (j = 0; j < 4; j++) {
        step = _mm512_srl_epi32(_mm512_load_si512(steps + 64 * j),
                                _mm_cvtsi32_si128((int) (8 * g)));
        step = _mm512_and_si512(step, _mm512_set1_epi32(255));

        for (m = 0; m < rows; m++) {
            to = (__m512i *) (sum[m] + 16 * j);
            *to = _mm512_add_epi32(*to, _mm512_mullo_epi32(t[m][j], step));
        }
    }

    __asm__ volatile("" ::: "memory");             /* sums stay there, and the registers are t's */
}


/* A piece of an int4 panel against `rows` activation rows: tile_int8() of values of four bits. */
static inline __attribute__((always_inline)) void
tile_int4(const uint8_t *piece, uint32_t groups, const few_t *f, from_t where,
          const uint8_t *bring, int rows, float y[][VLM_PANEL])
{
    int             m, j;
    int32_t         sum[FEW4][VLM_PANEL] __attribute__((aligned(64)));
    __m512          acc;
    __m512i         even, odd, dot;
    uint32_t        g;
    const uint8_t  *numbers = piece + groups * VLM_INT4_NIBBLES;

    for (j = 0; j < 4; j++) {
        odd = _mm512_load_si512(numbers + VLM_INT4_NUMBERS + 64 * j);
        even = _mm512_srai_epi16(_mm512_slli_epi16(odd, 8), 8);
        odd = _mm512_srai_epi16(odd, 8);

        for (m = 0; m < rows; m++) {
            dot = _mm512_madd_epi16(even, _mm512_set1_epi32(f->sum[m][0]));
            dot = _mm512_add_epi32(dot, _mm512_madd_epi16(odd, _mm512_set1_epi32(f->sum[m][1])));
            _mm512_store_si512(sum[m] + 16 * j, dot);
        }
    }

    for (g = 0; g < groups; g++, piece += VLM_INT4_NIBBLES) {
        add_group(piece, numbers, g, f, where, bring, rows, sum);
    }

    for (m = 0; m < rows; m++) {
        for (j = 0; j < 4; j++) {
            acc = _mm512_cvtepi32_ps(_mm512_load_si512(sum[m] + 16 * j));
            acc = _mm512_fmadd_ps(_mm512_set1_ps(f->s[m]), acc, _mm512_load_ps(y[m] + 16 * j));
            _mm512_store_ps(y[m] + 16 * j, acc);
        }
    }
}


/* ---- rows and panels ----------------------------------------------------- */

static void
tile_rows(const vlm_linear_args_t *a, const uint8_t *panel, uint32_t t, int rows,
          float y[][VLM_PANEL])
{
    int           bf16;
    uint32_t      K;
    const float  *x;

    K = a->w->K;
    x = a->x + (size_t) t * K;
    bf16 = a->w->type == VLM_BF16;

    if (rows == ROWS) {
        bf16 ? tile_float(panel, 1, x, K, ROWS, y) : tile_float(panel, 0, x, K, ROWS, y);
    } else {
        bf16 ? tile_float(panel, 1, x, K, 1, y) : tile_float(panel, 0, x, K, 1, y);
    }
}


/* The number of rows is a constant in each call, so that sums stay in registers. */
static inline __attribute__((always_inline)) void
tile_of(const uint8_t *panel, size_t next, rows_t r, uint32_t n, from_t from, int rows,
        float y[][VLM_PANEL])
{
    switch (rows) {
    case 1:
        tile_int8(panel, next, r, n, from, 1, 1, y);
        break;
    case 2:
        tile_int8(panel, next, r, n, from, 1, 2, y);
        break;
    case 3:
        tile_int8(panel, next, r, n, from, 1, 3, y);
        break;
    case 4:
        tile_int8(panel, next, r, n, from, 1, 4, y);
        break;
    case 5:
        tile_int8(panel, next, r, n, from, 1, 5, y);
        break;
    default:
        tile_int8(panel, next, r, n, from, 1, ROWS, y);
    }
}


/* The same for two panels, which only a few rows read. */
static inline __attribute__((always_inline)) void
tile_of_two(const uint8_t *panel, size_t next, rows_t r, uint32_t n, int rows,
            float y[][VLM_PANEL])
{
    switch (rows) {
    case 1:
        tile_int8(panel, next, r, n, STREAM, 2, 1, y);
        break;
    case 2:
        tile_int8(panel, next, r, n, STREAM, 2, 2, y);
        break;
    default:
        tile_int8(panel, next, r, n, STREAM, 2, FEW, y);
    }
}


/* Activation rows from row t and value k on, where a piece begins. */
static rows_t
rows_from(const vlm_linear_args_t *a, uint32_t t, uint32_t k)
{
    size_t  at;
    rows_t  r;

    r.values = vlm_round(a->w->K, VLM_BLOCK);
    r.pieces = vlm_pieces(a->w->K);
    at = t * r.pieces + k / VLM_PIECE;
    r.q = a->q + t * r.values + k;
    r.s = a->s + at;
    r.sum = a->sum + at;

    return r;
}


/*
 * n values of int8 weights.  next: bytes from a panel to the second one; or to what a tile brings
 * (HALF).
 */
static void
tile(const uint8_t *panel, size_t next, rows_t r, uint32_t n, from_t from, int panels, int rows,
     float y[][VLM_PANEL])
{
    if (panels == 2) {
        tile_of_two(panel, next, r, n, rows, y);

    } else if (from == STREAM) {
        tile_of(panel, next, r, n, STREAM, rows, y);

    } else if (from == HALF) {
        tile_of(panel, next, r, n, HALF, rows, y);

    } else {
        tile_of(panel, next, r, n, CACHED, rows, y);
    }
}


static inline __attribute__((always_inline)) void
tile4_of(const uint8_t *piece, uint32_t groups, const few_t *f, from_t where,
         const uint8_t *bring, int rows, float y[][VLM_PANEL])
{
    switch (rows) {
    case 1:
        tile_int4(piece, groups, f, where, bring, 1, y);
        break;
    case 2:
        tile_int4(piece, groups, f, where, bring, 2, y);
        break;
    case 3:
        tile_int4(piece, groups, f, where, bring, 3, y);
        break;
    default:
        tile_int4(piece, groups, f, where, bring, FEW4, y);
    }
}


/* The same of int4 weights, for up to FEW4 rows, one of STREAM; bring: what the tile brings. */
static void
tile4(const uint8_t *piece, uint32_t groups, const few_t *f, from_t where, const uint8_t *bring,
      int rows, float y[][VLM_PANEL])
{
    switch (where) {
    case STREAM:
        tile_int4(piece, groups, f, STREAM, bring, 1, y);
        break;
    case HALF:
        tile4_of(piece, groups, f, HALF, bring, rows, y);
        break;
    case WHOLE:
        tile4_of(piece, groups, f, WHOLE, bring, rows, y);
        break;
    default:
        tile4_of(piece, groups, f, CACHED, bring, rows, y);
    }
}


/* Up to ALONE activation rows, which are bound by memory. */
static void
multiply_few(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    int             panels;
    float           y[ROWS][VLM_PANEL] __attribute__((aligned(64)));
    rows_t          r;
    uint64_t        bytes;
    uint32_t        p;
    const uint8_t  *panel;

    r = rows_from(a, 0, 0);
    bytes = vlm_packed_bytes_avx512(a->w->type, VLM_PANEL, a->w->K);

    for (p = begin; p < end; p += (uint32_t) panels) {
        panels = a->T <= FEW && end - p >= 2 ? 2 : 1;
        panel = (const uint8_t *) a->w->w + p * bytes;
        memset(y, 0, (size_t) panels * a->T * sizeof(y[0]));

        tile(panel, bytes, r, (uint32_t) r.values, STREAM, panels, (int) a->T, y);
        vlm_linear_end(a, vlm_epilogue_avx512, p, 0, (uint32_t) panels, a->T, y);
    }
}


/*
 * Up to SOME4 activation rows against int4, a piece in tiles of about the same size, of which the
 * first ones bring the next piece.  Two panels in turn, a piece of each, would halve the bandwidth.
 */
static void
multiply_few4(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    few_t           f __attribute__((aligned(64)));
    float           y[SOME4][VLM_PANEL] __attribute__((aligned(64)));
    from_t          where;
    uint32_t        p, t, k, groups, rows, tiles, part, values;
    const uint8_t  *piece, *next;

    values = vlm_blocks(a->w->K) * VLM_BLOCK;
    piece = (const uint8_t *) a->w->w + begin * vlm_int4_panel_bytes(a->w->K);

    for (p = begin; p < end; p++) {
        memset(y, 0, a->T * sizeof(y[0]));

        for (k = 0; k < values; k += VLM_PIECE) {
            groups = (values - k < VLM_PIECE ? values - k : VLM_PIECE) / VLM_BLOCK;
            next = piece + groups * VLM_INT4_NIBBLES + 2 * VLM_INT4_NUMBERS;
            tiles = (a->T + FEW4 - 1) / FEW4;

            for (t = 0, part = 0; t < a->T; t += rows, part++) {
                rows = (a->T - t + tiles - part - 1) / (tiles - part);
                where = a->T == 1 ? STREAM : tiles == 1 ? WHOLE : part < 2 ? HALF : CACHED;
                take_piece(&f, rows_from(a, t, k), groups, rows);
                tile4(piece, groups, &f, where, next + part * groups * VLM_INT4_NIBBLES / 2,
                      (int) rows, y + t);
            }

            piece = next;
        }

        vlm_linear_end(a, vlm_epilogue_avx512, p, 0, 1, a->T, y);
    }
}


/*
 * Rows t .. t + T, at most MANY, against a panel: a piece of it is read once for all rows, in tiles
 * of about the same size.  The first two bring the next piece, some lines with each step.
 */
static void
multiply_panel(const vlm_linear_args_t *a, uint32_t p, uint32_t t, uint32_t T)
{
    float           y[MANY][VLM_PANEL] __attribute__((aligned(64)));
    size_t          bytes;
    uint32_t        i, k, n, rows, part, tiles, values;
    const uint8_t  *panel;

    values = vlm_blocks(a->w->K) * VLM_BLOCK;
    panel = (const uint8_t *) a->w->w + p * vlm_panel_bytes(a->w->K);
    tiles = T <= ROWS ? 2 : (T + ROWS - 1) / ROWS;     /* two bring the next piece */
    memset(y, 0, T * sizeof(y[0]));

    for (k = 0; k < values; k += n) {
        n = values - k < VLM_PIECE ? values - k : VLM_PIECE;
        bytes = (size_t) n * VLM_PANEL;

        for (i = 0, part = 0; i < T; i += rows, part++) {
            rows = (T - i + tiles - part - 1) / (tiles - part);
            tile(panel + (size_t) k * VLM_PANEL, bytes + part * bytes / 2, rows_from(a, t + i, k),
                 n, part < 2 ? HALF : CACHED, 1, (int) rows, y + i);
        }
    }

    vlm_linear_end(a, vlm_epilogue_avx512, p, t, 1, T, y);
}


/* The same of int4, a piece of which becomes int8 first. */
static void
multiply_panel4(const vlm_linear_args_t *a, uint32_t p, uint32_t t, uint32_t T)
{
    float           y[MANY][VLM_PANEL] __attribute__((aligned(64)));
    uint8_t         piece[VLM_PIECE * VLM_PANEL] __attribute__((aligned(64)));
    uint32_t        i, k, n, rows, part, tiles, values;
    const uint8_t  *panel;

    values = vlm_blocks(a->w->K) * VLM_BLOCK;
    panel = (const uint8_t *) a->w->w + p * vlm_int4_panel_bytes(a->w->K);
    tiles = (T + ROWS - 1) / ROWS;
    memset(y, 0, T * sizeof(y[0]));

    for (k = 0; k < values; k += n) {
        n = values - k < VLM_PIECE ? values - k : VLM_PIECE;
        vlm_int4_piece_avx512(panel, n / VLM_BLOCK, VLM_FLIP, piece);
        panel += n / 2 * VLM_PANEL + 2 * VLM_INT4_NUMBERS;

        for (i = 0, part = 0; i < T; i += rows, part++) {
            rows = (T - i + tiles - part - 1) / (tiles - part);
            vlm_bring(panel, VLM_INT4_GROUPS / 2, i, rows, T);
            tile(piece, 0, rows_from(a, t + i, k), n, CACHED, 1, (int) rows, y + i);
        }
    }

    vlm_linear_end(a, vlm_epilogue_avx512, p, t, 1, T, y);
}


static void
multiply_float(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    float           y[ROWS][VLM_PANEL] __attribute__((aligned(64)));
    uint64_t        bytes;
    uint32_t        p, t, rows;
    const uint8_t  *panel;

    bytes = vlm_packed_bytes_avx512(a->w->type, VLM_PANEL, a->w->K);

    for (p = begin; p < end; p++) {
        panel = (const uint8_t *) a->w->w + p * bytes;

        for (t = 0; t < a->T; t += rows) {
            rows = a->T - t >= ROWS ? ROWS : 1;
            tile_rows(a, panel, t, (int) rows, y);
            vlm_linear_end(a, vlm_epilogue_avx512, p, t, 1, rows, y);
        }
    }
}


void
vlm_linear_avx512(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    int       int4 = a->w->type == VLM_INT4;
    uint32_t  p, t, T, most;

    if (!vlm_takes_int8(a->w->type)) {
        multiply_float(a, begin, end);
        return;
    }

    if (a->T <= (int4 ? SOME4 : ALONE)) {
        int4 ? multiply_few4(a, begin, end) : multiply_few(a, begin, end);
        return;
    }

    most = a->w->K > LONG ? SHORT : MANY;

    for (t = 0; t < a->T; t += T) {
        T = a->T - t < most ? a->T - t : most;

        for (p = begin; p < end; p++) {
            int4 ? multiply_panel4(a, p, t, T) : multiply_panel(a, p, t, T);
        }
    }
}
