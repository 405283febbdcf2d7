/*
 * linear for AVX2 with FMA.
 *
 * Panels are those of AVX-512, of 64 weight rows; int8 stays signed.  Several activation rows are
 * multiplied in 16 bits: weights are widened once for a tile of rows, and the tile's rows once for
 * a piece of a panel; many rows, by the kernels of many.c.  One row is bound by memory, and needs
 * fewer instructions with vpmaddubsw, which multiplies unsigned by signed and saturates at 16 bits:
 * |w| times x with w's sign stays within 2 * 128 * 127, because activations are at most 127, and so
 * are weights, but for the -128 that a quantised checkpoint may have.
 *
 * int4 is multiplied as it lies: sums of q x are taken in 16 bits, 8 times 2 * 15 * 127 at most,
 * and then multiplied by the step.
 *
 * Each output is summed in the order of k whatever T is, and the bits equal the plain version's.
 */

#include <immintrin.h>

#include "base/size.h"
#include "format/int4.h"
#include "ops/kernels.h"
#include "ops/low.h"

#define ROWS   4                       /* activation rows of a tile of f32: 8 sums */
#define TILE   6                       /* of int8: 12 sums of 16 registers */
#define TILE4  4                       /* of int4: 8 */
#define BRING4 17                      /* lines of a piece for each 8 of its weight rows */
#define MANY   256                     /* that go over a piece of a panel together */
#define AHEAD  3072                    /* bytes to prefetch, into the second cache */


uint64_t
vlm_packed_bytes_avx2(vlm_type_t type, uint32_t N, uint32_t K)
{
    uint64_t  rows, k;

    rows = vlm_round(N, VLM_PANEL);

    if (type == VLM_INT4) {
        return vlm_mul(rows / VLM_PANEL, vlm_int4_panel_bytes(K));
    }

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

        if (w->type == VLM_INT4) {
            vlm_int4_pack(panel, (const uint8_t *) from + p * vlm_int4_row_bytes(K), rows, K, 0);
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

    if (w->type == VLM_INT4) {
        vlm_int4_unpack_row(panel, row % VLM_PANEL, w->K, out);
        return;
    }

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


/*
 * n values of a piece of a panel, for one activation row.  Sums stay in registers; then one
 * multiply-add in f32 for each, into y.
 */
static inline __attribute__((always_inline)) void
row_int8(const int8_t *panel, const int8_t *q, float scale, uint32_t n, float y[VLM_PANEL])
{
    int       j;
    int32_t   four;
    __m256    acc;
    __m256i   dot[8], x, w, pairs;
    uint32_t  k;

    for (j = 0; j < 8; j++) {
        dot[j] = _mm256_setzero_si256();
    }

    for (k = 0; k < n; k += 4, panel += 4 * VLM_PANEL) {
        memcpy(&four, q + k, 4);
        x = _mm256_set1_epi32(four);

        for (j = 0; j < 8; j++) {
            if (j % 2 == 0) {
                _mm_prefetch((const char *) panel + AHEAD + 32 * j, _MM_HINT_T1);
            }

            w = _mm256_load_si256((const __m256i *) panel + j);
            pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
            pairs = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
            dot[j] = _mm256_add_epi32(dot[j], pairs);
        }
    }

    for (j = 0; j < 8; j++) {
        acc = _mm256_load_ps(y + 8 * j);
        acc = _mm256_fmadd_ps(_mm256_set1_ps(scale), _mm256_cvtepi32_ps(dot[j]), acc);
        _mm256_store_ps(y + 8 * j, acc);
    }
}


/*
 * One activation row against one panel, or two side by side: the prefetcher follows several
 * streams, and two together come closer to the memory's bandwidth.
 */
static void
multiply_one(const vlm_linear_args_t *a, const int8_t *panel, int panels, float y[][VLM_PANEL])
{
    int       p;
    size_t    bytes;
    uint32_t  k, n, values;

    values = vlm_blocks(a->w->K) * VLM_BLOCK;
    bytes = vlm_panel_bytes(a->w->K);
    memset(y, 0, (size_t) panels * sizeof(y[0]));

    for (k = 0; k < values; k += n) {
        n = values - k < VLM_PIECE ? values - k : VLM_PIECE;

        for (p = 0; p < panels; p++) {
            row_int8(panel + p * bytes + (size_t) k * VLM_PANEL, a->q + k, a->s[k / VLM_PIECE], n,
                     y[p]);
        }
    }
}


/* The products are instructions, because compilers move sums to memory for want of a register. */
static inline __m256i
dot_step(__m256i sum, __m256i w, __m256i x)
{
    __m256i  pairs;

    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
            : "+x"(sum), "=&x"(pairs) : "x"(w), "x"(x));

    return sum;
}


/*
 * n values of a piece: 8 weight rows against `rows` activation rows x in 16 bits, whose scales are
 * `pieces` apart.  A weight row has two sums, of even and odd pairs of values, which are added at
 * the end.  bring: lines to prefetch, one with each step, or NULL.
 */
static inline __attribute__((always_inline)) void
tile_int8(const int8_t *panel, int16_t x[][VLM_PIECE], const float *s, size_t pieces, uint32_t n,
          const uint8_t *bring, int rows, float y[][VLM_PANEL])
{
    int       m, j;
    int64_t   four;
    __m256    acc;
    __m256i   dot[TILE][2], w[2], v;
    uint32_t  k;

    for (m = 0; m < rows; m++) {
        dot[m][0] = dot[m][1] = _mm256_setzero_si256();
    }

    for (k = 0; k < n; k += 4, panel += 4 * VLM_PANEL) {
        if (bring != NULL) {
            _mm_prefetch((const char *) bring + 16 * k, _MM_HINT_T1);
        }

        for (j = 0; j < 2; j++) {
            w[j] = _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *) panel + j));
        }

        for (m = 0; m < rows; m++) {
            memcpy(&four, x[m] + k, 8);
            v = _mm256_set1_epi64x(four);

            for (j = 0; j < 2; j++) {
                dot[m][j] = dot_step(dot[m][j], w[j], v);
            }
        }
    }

    for (m = 0; m < rows; m++) {
        v = _mm256_permute4x64_epi64(_mm256_hadd_epi32(dot[m][0], dot[m][1]), 0xd8);
        acc = _mm256_fmadd_ps(_mm256_set1_ps(s[m * pieces]), _mm256_cvtepi32_ps(v),
                              _mm256_load_ps(y[m]));
        _mm256_store_ps(y[m], acc);
    }
}


/* The number of rows is a constant in each call, so that sums stay in registers. */
static void
tile(const int8_t *panel, int16_t x[][VLM_PIECE], const float *s, size_t pieces, uint32_t n,
     const uint8_t *bring, int rows, float y[][VLM_PANEL])
{
    switch (rows) {
    case 1:
        tile_int8(panel, x, s, pieces, n, bring, 1, y);
        break;
    case 2:
        tile_int8(panel, x, s, pieces, n, bring, 2, y);
        break;
    case 3:
        tile_int8(panel, x, s, pieces, n, bring, 3, y);
        break;
    case 4:
        tile_int8(panel, x, s, pieces, n, bring, 4, y);
        break;
    case 5:
        tile_int8(panel, x, s, pieces, n, bring, 5, y);
        break;
    default:
        tile_int8(panel, x, s, pieces, n, bring, TILE, y);
    }
}


/* n values of a piece, n a multiple of 16, of rows that are `values` apart. */
static void
widen(const int8_t *q, size_t values, uint32_t n, uint32_t rows, int16_t x[][VLM_PIECE])
{
    __m128i   v;
    uint32_t  m, k;

    for (m = 0; m < rows; m++, q += values) {
        for (k = 0; k < n; k += 16) {
            v = _mm_loadu_si128((const __m128i *) (q + k));
            _mm256_store_si256((__m256i *) (x[m] + k), _mm256_cvtepi8_epi16(v));
        }
    }
}


/* ---- int4 ---------------------------------------------------------------- */

/* take_step() widens byte g of each four to two numbers of 16 bits; take_base() repeats it. */
static inline __m256i
take_step(__m256i steps, uint32_t g)
{
    return _mm256_shuffle_epi8(steps, _mm256_add_epi16(_mm256_set1_epi16((short) g),
        _mm256_broadcastsi128_si256(_mm_set_epi8(-128, 12, -128, 12, -128, 8, -128, 8,
                                                 -128, 4, -128, 4, -128, 0, -128, 0))));
}


static inline __m256i
take_base(__m256i bases, uint32_t g)
{
    return _mm256_shuffle_epi8(bases, _mm256_add_epi8(_mm256_set1_epi8((char) g),
        _mm256_broadcastsi128_si256(_mm_set_epi8(12, 12, 12, 12, 8, 8, 8, 8,
                                                 4, 4, 4, 4, 0, 0, 0, 0))));
}


void
vlm_int4_piece_avx2(const uint8_t *from, uint32_t groups, uint32_t flip, uint8_t *to)
{
    __m256i         step, base, x, low, high, mask = _mm256_set1_epi8(15);
    uint32_t        g, j, w;
    const uint8_t  *numbers = from + groups * VLM_INT4_NIBBLES;

    for (g = 0; g < groups; g++, from += VLM_INT4_NIBBLES, to += 2 * VLM_INT4_NIBBLES) {
        for (j = 0; j < 8; j++) {
            step = take_step(_mm256_load_si256((const __m256i *) numbers + j), g);
            base = _mm256_load_si256((const __m256i *) (numbers + VLM_INT4_NUMBERS) + j);
            base = _mm256_xor_si256(take_base(base, g), _mm256_set1_epi32((int) flip));

            for (w = 32 * j; w < VLM_INT4_NIBBLES; w += 256) {
                x = _mm256_load_si256((const __m256i *) (from + w));
                low = _mm256_and_si256(x, mask);
                high = _mm256_and_si256(_mm256_srli_epi16(x, 4), mask);

                /* products of 16 bits carry nothing from byte to byte: each is below 256 */

                low = _mm256_add_epi8(_mm256_mullo_epi16(low, step), base);
                high = _mm256_add_epi8(_mm256_mullo_epi16(high, step), base);
                _mm256_store_si256((__m256i *) (to + w), low);
                _mm256_store_si256((__m256i *) (to + w + VLM_INT4_NIBBLES), high);
            }
        }
    }
}


/* A piece of up to TILE4 activation rows, and the sums of its groups. */
typedef struct {
    int8_t   q[TILE4][VLM_PIECE];
    int16_t  sum[TILE4][VLM_INT4_GROUPS];
    float    s[TILE4];
} few_t;


static int16_t
sum_group(const int8_t *q)
{
    __m128i  half;
    __m256i  x, ones = _mm256_set1_epi8(1);

    x = _mm256_add_epi16(_mm256_maddubs_epi16(ones, _mm256_loadu_si256((const __m256i *) q)),
                         _mm256_maddubs_epi16(ones, _mm256_loadu_si256((const __m256i *) q + 1)));
    x = _mm256_madd_epi16(x, _mm256_set1_epi16(1));
    half = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    half = _mm_hadd_epi32(half, half);

    return (int16_t) (_mm_cvtsi128_si32(half) + _mm_extract_epi32(half, 1));
}


/* `groups` of a piece of rows that are `values` apart, with scales that are `pieces` apart. */
static void
take_piece(few_t *f, const int8_t *q, size_t values, const float *s, size_t pieces,
           uint32_t groups, uint32_t rows)
{
    uint32_t  m, g;

    for (m = 0; m < rows; m++, q += values, s += pieces) {
        memcpy(f->q[m], q, groups * VLM_BLOCK);
        f->s[m] = *s;

        for (g = 0; g < VLM_INT4_GROUPS; g++) {
            f->sum[m][g] = g < groups ? sum_group(q + g * VLM_BLOCK) : 0;
        }
    }
}


/*
 * Adds the products of 8 rows of unsigned weights with four values of x, in pairs of 16 bits.  They
 * are instructions, because compilers keep products of several steps in memory and add them later.
 */
static inline __m256i
add_pairs(__m256i sum, __m256i w, const int8_t *x)
{
    __m256i  pairs;

    __asm__("vpbroadcastd %3, %1\n\tvpmaddubsw %1, %2, %1\n\tvpaddw %1, %0, %0"
            : "+x"(sum), "=&x"(pairs) : "x"(w), "m"(*(const int32_t *) x));

    return sum;
}


/* The bases of 8 rows of weights times the sums of a piece: of groups 0 and 2, and of 1 and 3. */
static inline __m256i
sum_bases(__m256i bases, const int16_t sum[VLM_INT4_GROUPS])
{
    __m256i  even, odd;

    even = _mm256_srai_epi16(_mm256_slli_epi16(bases, 8), 8);
    odd = _mm256_srai_epi16(bases, 8);
    even = _mm256_madd_epi16(even, _mm256_set1_epi32((uint16_t) sum[0] | (int32_t) sum[2] * 65536));
    odd = _mm256_madd_epi16(odd, _mm256_set1_epi32((uint16_t) sum[1] | (int32_t) sum[3] * 65536));

    return _mm256_add_epi32(even, odd);
}


/* Rows of weights 8 j and on, of a piece, against `rows` activation rows. */
static inline __attribute__((always_inline)) void
tile_int4(const uint8_t *piece, uint32_t groups, uint32_t j, const few_t *f, int rows,
          float y[][VLM_PANEL])
{
    int             m;
    __m256          acc;
    __m256i         dot[TILE4], even[TILE4], odd[TILE4], x, low, high, step;
    uint32_t        g, w;
    const int8_t   *q;
    const uint8_t  *numbers = piece + groups * VLM_INT4_NIBBLES + 32 * j, *at = piece + 32 * j;
    const __m256i   mask = _mm256_set1_epi8(15);

    x = _mm256_load_si256((const __m256i *) (numbers + VLM_INT4_NUMBERS));

    for (m = 0; m < rows; m++) {
        dot[m] = sum_bases(x, f->sum[m]);
    }

    for (g = 0, q = f->q[0]; g < groups; g++, q += VLM_BLOCK / 2) {
        for (m = 0; m < rows; m++) {
            even[m] = odd[m] = _mm256_setzero_si256();
        }

        for (w = 0; w < VLM_BLOCK / 2; w += 4, at += 4 * VLM_PANEL, q += 4) {
            x = _mm256_load_si256((const __m256i *) at);
            low = _mm256_and_si256(x, mask);
            high = _mm256_and_si256(_mm256_srli_epi16(x, 4), mask);

            for (m = 0; m < rows; m++) {
                even[m] = add_pairs(even[m], low, q + m * VLM_PIECE);
                odd[m] = add_pairs(odd[m], high, q + m * VLM_PIECE + VLM_BLOCK / 2);
            }
        }

        step = take_step(_mm256_load_si256((const __m256i *) numbers), g);

        for (m = 0; m < rows; m++) {
            x = _mm256_add_epi32(_mm256_madd_epi16(even[m], step),
                                 _mm256_madd_epi16(odd[m], step));
            dot[m] = _mm256_add_epi32(dot[m], x);
        }
    }

    for (m = 0; m < rows; m++) {
        acc = _mm256_fmadd_ps(_mm256_set1_ps(f->s[m]), _mm256_cvtepi32_ps(dot[m]),
                              _mm256_load_ps(y[m] + 8 * j));
        _mm256_store_ps(y[m] + 8 * j, acc);
    }
}


/* The number of rows is a constant in each call; bring: the next piece, or NULL. */
static void
tile4(const uint8_t *piece, uint32_t groups, const few_t *f, uint32_t rows, const uint8_t *bring,
      float y[][VLM_PANEL])
{
    uint32_t  j, i;

    for (j = 0; j < VLM_PANEL / 8; j++) {
        for (i = 0; bring != NULL && i < BRING4; i++) {
            _mm_prefetch((const char *) bring + (j * BRING4 + i) * 64, _MM_HINT_T1);
        }

        switch (rows) {
        case 1:
            tile_int4(piece, groups, j, f, 1, y);
            break;
        case 2:
            tile_int4(piece, groups, j, f, 2, y);
            break;
        case 3:
            tile_int4(piece, groups, j, f, 3, y);
            break;
        default:
            tile_int4(piece, groups, j, f, TILE4, y);
        }
    }
}


/* Rows t .. t + T, at most MANY, against one panel, or two of which each piece goes in turn. */
static void
multiply_int4(const vlm_linear_args_t *a, const uint8_t *panel, uint32_t panels, uint32_t t,
              uint32_t T, float y[][VLM_PANEL])
{
    few_t           f __attribute__((aligned(32)));
    size_t          next, pieces;
    uint32_t        i, k, p, groups, rows, tiles, values, bytes;
    const uint8_t  *piece;

    values = vlm_blocks(a->w->K) * VLM_BLOCK;
    pieces = vlm_pieces(a->w->K);
    next = vlm_int4_panel_bytes(a->w->K);
    memset(y, 0, (size_t) panels * T * sizeof(y[0]));

    for (k = 0; k < values; k += VLM_PIECE, panel += bytes) {
        groups = (values - k < VLM_PIECE ? values - k : VLM_PIECE) / VLM_BLOCK;
        bytes = groups * VLM_INT4_NIBBLES + 2 * VLM_INT4_NUMBERS;
        tiles = (T + TILE4 - 1) / TILE4;

        for (i = 0; i < T; i += rows, tiles--) {
            rows = (T - i + tiles - 1) / tiles;
            take_piece(&f, a->q + (t + i) * (size_t) values + k, values,
                       a->s + (t + i) * pieces + k / VLM_PIECE, pieces, groups, rows);

            for (p = 0; p < panels; p++) {
                piece = panel + p * next;
                tile4(piece, groups, &f, rows, i == 0 ? piece + bytes : NULL, y + p * T + i);
            }
        }
    }
}


/*
 * Rows t .. t + T, at most MANY, against a panel: a piece of it is read once for all rows, in tiles
 * of about the same size.  The first tile, 8 weight rows at a time, brings the next piece.
 */
static void
multiply_panel(const vlm_linear_args_t *a, const uint8_t *panel, uint32_t t, uint32_t T,
               float y[][VLM_PANEL])
{
    size_t          pieces;
    int16_t         x[TILE][VLM_PIECE] __attribute__((aligned(32)));
    uint32_t        i, k, n, row, rows, tiles, values;
    const uint8_t  *piece, *bring;

    values = vlm_blocks(a->w->K) * VLM_BLOCK;
    pieces = vlm_pieces(a->w->K);
    memset(y, 0, T * sizeof(y[0]));

    for (k = 0; k < values; k += n) {
        n = values - k < VLM_PIECE ? values - k : VLM_PIECE;
        piece = panel;
        panel += n * VLM_PANEL;
        tiles = (T + TILE - 1) / TILE;

        for (i = 0; i < T; i += rows, tiles--) {
            rows = (T - i + tiles - 1) / tiles;
            widen(a->q + (t + i) * (size_t) values + k, values, n, rows, x);

            for (row = 0; row < VLM_PANEL; row += 8) {
                bring = i > 0 || row % 16 != 0 ? NULL : panel + (size_t) row * n;
                tile((const int8_t *) piece + 4 * row, x, a->s + (t + i) * pieces + k / VLM_PIECE,
                     pieces, n, bring, (int) rows, (float (*)[VLM_PANEL]) (y[i] + row));
            }
        }
    }
}


/* A panel of f32 or bf16, a quarter at a time. */
static void
multiply_float(const vlm_linear_args_t *a, const uint8_t *panel, uint32_t t, uint32_t rows,
               float y[][VLM_PANEL])
{
    int           bf16;
    float       (*to)[VLM_PANEL];
    uint32_t      row;
    const float  *x;

    x = a->x + (size_t) t * a->w->K;
    bf16 = a->w->type == VLM_BF16;

    for (row = 0; row < VLM_PANEL; row += 16, panel += 16 * vlm_type_bytes(a->w->type)) {
        to = (float (*)[VLM_PANEL]) (y[0] + row);

        if (rows == ROWS) {
            tile_float(panel, bf16, x, a->w->K, ROWS, to);
        } else {
            tile_float(panel, bf16, x, a->w->K, 1, to);
        }
    }
}


void
vlm_linear_avx2(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    float           y[MANY][VLM_PANEL] __attribute__((aligned(32)));
    uint64_t        bytes;
    uint32_t        p, t, rows, panels, pair;
    const uint8_t  *panel;

    bytes = vlm_packed_bytes_avx2(a->w->type, VLM_PANEL, a->w->K);
    pair = a->w->type == VLM_INT4 ? MANY / 2 : a->w->type == VLM_INT8 ? 1 : 0;

    for (p = begin; p < end; p += panels) {
        panel = (const uint8_t *) a->w->w + p * bytes;
        panels = end - p >= 2 && a->T <= pair ? 2 : 1;

        for (t = 0; t < a->T; t += rows) {
            if (!vlm_takes_int8(a->w->type)) {
                rows = a->T - t >= ROWS ? ROWS : 1;
                multiply_float(a, panel, t, rows, y);

            } else if (a->w->type == VLM_INT4) {
                rows = a->T - t < MANY ? a->T - t : MANY;
                multiply_int4(a, panel, panels, t, rows, y);

            } else if (a->T == 1) {
                rows = 1;
                multiply_one(a, (const int8_t *) panel, (int) panels, y);

            } else {
                rows = a->T - t < MANY ? a->T - t : MANY;
                multiply_panel(a, panel, t, rows, y);
            }

            vlm_linear_end(a, vlm_epilogue_avx2, p, t, panels, rows, y);
        }
    }
}
