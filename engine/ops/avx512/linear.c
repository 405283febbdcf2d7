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
 * With more rows a piece of a panel becomes int8 first.  Multiplications share vpdpbusd's units, at
 * least on Zen 4, so there are few of them: six for the 64 vpdpbusd of 16 weight rows and a piece.
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
#define STREAM4 2                      /* of int4 that read a stream: three are slower so */
#define FEW4   6                       /* of int4 that go as one tile: twice 12 sums */
#define SOME4  16                      /* of int4 whose values stay in registers, and */
#define SUMS4  128                     /* pieces of such a row at most */
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
 * The sums of the groups of a piece, as bases are multiplied with them: pairs of 16 bits, of groups
 * 0 and 2 and of groups 1 and 3.
 */
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


/* Those of all rows: [T][pieces]. */
static void
sum_rows(const vlm_linear_args_t *a, int32_t (*sum)[2])
{
    __m512i        v[VLM_INT4_GROUPS];
    uint32_t       t, k, g, values;
    const int8_t  *q = a->q;

    values = vlm_blocks(a->w->K) * VLM_BLOCK;

    for (t = 0; t < a->T; t++) {
        for (k = 0; k < values; k += g * VLM_BLOCK, sum++) {
            for (g = 0; g < VLM_INT4_GROUPS; g++) {
                v[g] = _mm512_setzero_si512();
            }

            for (g = 0; g < VLM_INT4_GROUPS && k + g * VLM_BLOCK < values; g++, q += VLM_BLOCK) {
                v[g] = _mm512_loadu_si512(q);
            }

            sum_groups(v, *sum);
        }
    }
}


/*
 * A piece of an int4 panel against `rows` activation rows with these sums, 16 n weight rows at a
 * time: tile_int8() of values of four bits.
 */
static inline __attribute__((always_inline)) void
tile_int4(const uint8_t *piece, uint32_t groups, rows_t r, const int32_t (*sum)[2], from_t from,
          const uint8_t *bring, int n, int rows, float y[][VLM_PANEL])
{
    int             m, j, h, lines = from == WHOLE ? n : from == HALF ? n / 2 : 0;
    int32_t         four;
    __m512          acc;
    __m512i         dot[FEW4][4], t[FEW4][4], low[4], high[4], step[4], even, odd, v;
    uint32_t        g, w;
    const int8_t   *q, *half;
    const uint8_t  *at, *numbers = piece + groups * VLM_INT4_NIBBLES;

    for (h = 0; h < 4; h += n, numbers += 64 * n) {
        for (j = 0; j < n; j++) {
            odd = _mm512_load_si512(numbers + VLM_INT4_NUMBERS + 64 * j);
            even = _mm512_srai_epi16(_mm512_slli_epi16(odd, 8), 8);
            odd = _mm512_srai_epi16(odd, 8);

            for (m = 0; m < rows; m++) {
                v = _mm512_madd_epi16(even, _mm512_set1_epi32(sum[m * r.pieces][0]));
                dot[m][j] = _mm512_madd_epi16(odd, _mm512_set1_epi32(sum[m * r.pieces][1]));
                dot[m][j] = _mm512_add_epi32(dot[m][j], v);
            }
        }

        at = piece + 64 * h;
        q = r.q;
        half = r.q + 3 * r.values;

        for (g = 0; g < groups; g++, q += VLM_BLOCK / 2, half += VLM_BLOCK / 2) {
            for (j = 0; j < n; j++) {
                v = _mm512_load_si512(numbers + 64 * j);
                v = _mm512_srl_epi32(v, _mm_cvtsi32_si128((int) (8 * g)));
                step[j] = _mm512_and_si512(v, _mm512_set1_epi32(255));

                for (m = 0; m < rows; m++) {
                    t[m][j] = _mm512_setzero_si512();
                }
            }

            for (w = 0; w < VLM_BLOCK / 2; w += 4, q += 4, half += 4, at += 4 * VLM_PANEL) {
                for (j = 0; j < lines; j++, bring += 64) {
                    _mm_prefetch((const char *) bring, _MM_HINT_T1);
                }

                for (j = 0; j < n; j++) {
                    v = from == STREAM ? load_ahead(at + 64 * j, FAR4, NEAR4)
                                       : _mm512_load_si512(at + 64 * j);
                    low[j] = _mm512_and_si512(v, _mm512_set1_epi8(15));
                    high[j] = _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
                }

                for (m = 0; m < rows; m++) {
                    memcpy(&four, (m < 3 ? q : half) + m % 3 * r.values, 4);
                    v = _mm512_set1_epi32(four);

                    for (j = 0; j < n; j++) {
                        t[m][j] = dot_step(t[m][j], low[j], v);
                    }
                }

                for (m = 0; m < rows; m++) {
                    memcpy(&four, (m < 3 ? q : half) + m % 3 * r.values + VLM_BLOCK / 2, 4);
                    v = _mm512_set1_epi32(four);

                    for (j = 0; j < n; j++) {
                        t[m][j] = dot_step(t[m][j], high[j], v);
                    }
                }
            }

            for (m = 0; m < rows; m++) {
                for (j = 0; j < n; j++) {
                    dot[m][j] = _mm512_add_epi32(dot[m][j], _mm512_mullo_epi32(t[m][j], step[j]));
                }
            }
        }

        for (m = 0; m < rows; m++) {
            for (j = 0; j < n; j++) {
                acc = _mm512_cvtepi32_ps(dot[m][j]);
                acc = _mm512_fmadd_ps(_mm512_set1_ps(r.s[m * r.pieces]), acc,
                                      _mm512_load_ps(y[m] + 16 * (h + j)));
                _mm512_store_ps(y[m] + 16 * (h + j), acc);
            }
        }

        __asm__ volatile("" ::: "memory");         /* y stays there, and the registers are sums' */
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


/* From three rows on.  Sums of groups and of pieces, of two or four vectors of weights, stay in
   registers, too. */
static inline __attribute__((always_inline)) void
tile4_of(const uint8_t *piece, uint32_t groups, rows_t r, const int32_t (*sum)[2], from_t from,
         const uint8_t *bring, int rows, float y[][VLM_PANEL])
{
    switch (rows) {
    case 3:
        tile_int4(piece, groups, r, sum, from, bring, 4, 3, y);
        break;
    case 4:
        tile_int4(piece, groups, r, sum, from, bring, 2, 4, y);
        break;
    case 5:
        tile_int4(piece, groups, r, sum, from, bring, 2, 5, y);
        break;
    default:
        tile_int4(piece, groups, r, sum, from, bring, 2, FEW4, y);
    }
}


/* The same of int4 weights: up to STREAM4 rows of STREAM, others up to FEW4; bring: as they say. */
static void
tile4(const uint8_t *piece, uint32_t groups, rows_t r, const int32_t (*sum)[2], from_t from,
      const uint8_t *bring, int rows, float y[][VLM_PANEL])
{
    switch (from) {
    case STREAM:
        rows == 1 ? tile_int4(piece, groups, r, sum, STREAM, bring, 4, 1, y)
                  : tile_int4(piece, groups, r, sum, STREAM, bring, 4, STREAM4, y);
        break;
    case HALF:
        tile4_of(piece, groups, r, sum, HALF, bring, rows, y);
        break;
    case WHOLE:
        tile4_of(piece, groups, r, sum, WHOLE, bring, rows, y);
        break;
    default:
        tile4_of(piece, groups, r, sum, CACHED, bring, rows, y);
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


/* The steps and bases of the piece after this one: tiles bring its values alone. */
static inline void
bring_numbers(const uint8_t *next)
{
    uint32_t  i;

    for (i = 0; i < 2 * VLM_INT4_NUMBERS; i += 64) {
        _mm_prefetch((const char *) next + VLM_INT4_GROUPS * VLM_INT4_NIBBLES + i, _MM_HINT_T1);
    }
}


/*
 * Up to SOME4 activation rows against int4, a piece in tiles of about the same size, of which the
 * first ones bring the next piece.  Two panels in turn, a piece of each, would halve the bandwidth.
 */
static void
multiply_few4(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    float           y[SOME4][VLM_PANEL] __attribute__((aligned(64)));
    from_t          from;
    rows_t          r;
    int32_t         sum[SOME4 * SUMS4][2];
    uint32_t        p, t, k, groups, rows, tiles, part, values, pieces;
    const uint8_t  *piece, *next;

    values = vlm_blocks(a->w->K) * VLM_BLOCK;
    pieces = vlm_pieces(a->w->K);
    piece = (const uint8_t *) a->w->w + begin * vlm_int4_panel_bytes(a->w->K);
    sum_rows(a, sum);

    for (p = begin; p < end; p++) {
        memset(y, 0, a->T * sizeof(y[0]));

        for (k = 0; k < values; k += VLM_PIECE) {
            groups = (values - k < VLM_PIECE ? values - k : VLM_PIECE) / VLM_BLOCK;
            next = piece + groups * VLM_INT4_NIBBLES + 2 * VLM_INT4_NUMBERS;
            tiles = (a->T + FEW4 - 1) / FEW4;

            if (a->T > STREAM4) {
                bring_numbers(next);
            }

            for (t = 0, part = 0; t < a->T; t += rows, part++) {
                rows = (a->T - t + tiles - part - 1) / (tiles - part);
                from = a->T <= STREAM4 ? STREAM : tiles == 1 ? WHOLE : part < 2 ? HALF : CACHED;
                r = rows_from(a, t, k);
                tile4(piece, groups, r, (const int32_t (*)[2]) sum + t * pieces + k / VLM_PIECE,
                      from, next + part * groups * VLM_INT4_NIBBLES / 2, (int) rows, y + t);
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
        bring_numbers(panel);

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

    if (!int4 && a->T <= ALONE) {
        multiply_few(a, begin, end);
        return;
    }

    if (int4 && a->T <= SOME4 && vlm_pieces(a->w->K) <= SUMS4) {
        multiply_few4(a, begin, end);
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
