/*
 * Products of many activation rows with int8 weights, for AVX2; linear.c has those of few rows.
 *
 * They use Winograd's inner product: (x0 + w1)(x1 + w0) is x0 w0 + x1 w1 and the products x0 x1 and
 * w0 w1, whose sums over a piece are subtracted.  Two additions take the place of one of two
 * multiplications, and processors have more units that add.  Weights and rows are widened to 16
 * bits first, once for all rows and once for all weight rows of a piece.
 *
 * Nothing is rounded and nothing overflows: a value is -128 .. 127, a sum of two -256 .. 254, and
 * the sum of the 128 products of a piece 128 * 256 * 256 = 2^23 at most, from which sums of
 * 128 * 128 * 128 = 2^21 at most are subtracted.  So the bits equal the plain version's.
 */

#include <immintrin.h>

#include "ops/kernels.h"
#include "ops/low.h"

#define FEWEST 24                      /* rows; fewer have linear.c's products */
#define TILE   4                       /* activation rows of a tile: 8 sums of 16 registers */
#define STRIPS (VLM_PANEL / 16)        /* weight rows of a tile go 16 at a time */
#define LINE   64                      /* bytes of a cache's line */
#define MANY   256                     /* that go over a piece of a panel together */
#define LONG   4096                    /* values of rows of which a second cache holds fewer: */
#define SHORT  96                      /* these go over all panels before the next ones */

void vlm_linear_avx2(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);
void vlm_linear_many_avx2(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);

/* Activation rows from one value on, which are `values` apart, and their scales `pieces` apart. */
typedef struct {
    const int8_t  *q;
    const float   *s;
    size_t         values, pieces;
} rows_t;

/* A piece of a tile's rows in 16 bits, two numbers together: of even k, and of odd k. */
typedef struct {
    int32_t  even[TILE][VLM_PIECE / 4];
    int32_t  odd[TILE][VLM_PIECE / 4];
    int32_t  sum[TILE];                /* of even times odd */
} wide_t;

/* Sums with 8 weight rows, and with 8 more. */
typedef struct {
    __m256i  of[2];
} sums_t;

/* A piece of 16 weight rows in 16 bits, four values a step: even and odd of 8, and of 8 more. */
typedef struct {
    __m256i  w[VLM_PIECE / 4][4];
    sums_t   sum;
} strip_t;


static inline __m256i
even_of(__m256i x)
{
    return _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
}


static inline __m256i
odd_of(__m256i x)
{
    return _mm256_srai_epi16(x, 8);
}


/* n values of a piece of `rows` rows; n is a multiple of 32. */
static void
widen_rows(wide_t *x, rows_t r, uint32_t n, uint32_t rows)
{
    __m128i   half;
    __m256i   v, even, odd, sum;
    uint32_t  m, k;

    for (m = 0; m < rows; m++, r.q += r.values) {
        sum = _mm256_setzero_si256();

        for (k = 0; k < n; k += 32) {
            v = _mm256_loadu_si256((const __m256i *) (r.q + k));
            even = even_of(v);
            odd = odd_of(v);
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(even, odd));
            _mm256_store_si256((__m256i *) (x->even[m] + k / 4), even);
            _mm256_store_si256((__m256i *) (x->odd[m] + k / 4), odd);
        }

        half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        half = _mm_hadd_epi32(half, half);
        x->sum[m] = _mm_cvtsi128_si32(half) + _mm_extract_epi32(half, 1);
    }
}


static void
widen_weights(strip_t strips[STRIPS], const int8_t *piece, uint32_t n)
{
    int       i, j;
    __m256i   w, even, odd, sum[2];
    uint32_t  k;

    for (i = 0; i < STRIPS; i++) {
        sum[0] = sum[1] = _mm256_setzero_si256();

        for (k = 0; k < n / 4; k++) {
            for (j = 0; j < 2; j++) {
                w = _mm256_load_si256((const __m256i *) (piece + 4 * VLM_PANEL * k) + 2 * i + j);
                even = even_of(w);
                odd = odd_of(w);
                strips[i].w[k][2 * j] = even;
                strips[i].w[k][2 * j + 1] = odd;
                sum[j] = _mm256_add_epi32(sum[j], _mm256_madd_epi16(even, odd));
            }
        }

        strips[i].sum.of[0] = sum[0];
        strips[i].sum.of[1] = sum[1];
    }
}


/*
 * Adds (x0 + w1)(x1 + w0) of two pairs of each of 16 weight rows to their sums.  They are
 * instructions, because compilers move sums to memory for want of a register: all 16 are in use.
 */
static inline sums_t
dot_step(sums_t sum, const __m256i w[4], __m256i x0, __m256i x1)
{
    __m256i  a, b;

    __asm__("vpaddw %[w1], %[x0], %[a]\n\tvpaddw %[w0], %[x1], %[b]\n\t"
            "vpmaddwd %[b], %[a], %[a]\n\tvpaddd %[a], %[sum0], %[sum0]\n\t"
            "vpaddw %[w3], %[x0], %[x0]\n\tvpaddw %[w2], %[x1], %[x1]\n\t"
            "vpmaddwd %[x1], %[x0], %[x0]\n\tvpaddd %[x0], %[sum1], %[sum1]"
            : [sum0] "+x"(sum.of[0]), [sum1] "+x"(sum.of[1]), [x0] "+x"(x0), [x1] "+x"(x1),
              [a] "=&x"(a), [b] "=&x"(b)
            : [w0] "x"(w[0]), [w1] "x"(w[1]), [w2] "x"(w[2]), [w3] "x"(w[3]));

    return sum;
}


/* Adds the scaled sums of 8 weight rows to y. */
static inline void
add_sums(float *y, __m256 scale, __m256i sum)
{
    _mm256_store_ps(y, _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sum), _mm256_load_ps(y)));
}


/* n values of 16 weight rows against `rows` activation rows, whose scales are `pieces` apart. */
static inline __attribute__((always_inline)) void
strip_int8(const strip_t *strip, const wide_t *x, const float *s, size_t pieces, uint32_t n,
           int rows, float y[][VLM_PANEL])
{
    int       m;
    __m256    scale;
    sums_t    dot[TILE];
    __m256i   own;
    uint32_t  k;

    for (m = 0; m < rows; m++) {
        own = _mm256_set1_epi32(-x->sum[m]);
        dot[m].of[0] = _mm256_sub_epi32(own, strip->sum.of[0]);
        dot[m].of[1] = _mm256_sub_epi32(own, strip->sum.of[1]);
    }

    for (k = 0; k < n / 4; k++) {
        for (m = 0; m < rows; m++) {
            dot[m] = dot_step(dot[m], strip->w[k], _mm256_set1_epi32(x->even[m][k]),
                              _mm256_set1_epi32(x->odd[m][k]));
        }
    }

    for (m = 0; m < rows; m++) {
        scale = _mm256_set1_ps(s[m * pieces]);
        add_sums(y[m], scale, dot[m].of[0]);
        add_sums(y[m] + 8, scale, dot[m].of[1]);
    }
}


/*
 * The number of rows is a constant in each call, so that sums stay in registers; within its caller
 * the loop would have pointers in memory.
 */
static __attribute__((noinline)) void
multiply_strip(const strip_t *strip, const wide_t *x, const float *s, size_t pieces, uint32_t n,
               uint32_t rows, float y[][VLM_PANEL])
{
    if (rows == TILE) {
        strip_int8(strip, x, s, pieces, n, TILE, y);
    } else {
        strip_int8(strip, x, s, pieces, n, TILE - 1, y);
    }
}


/*
 * All weight rows of a piece.  `lines` of what comes next are prefetched before each strip, because
 * a burst would wait for memory.
 */
static void
multiply_tile(const strip_t strips[STRIPS], rows_t r, uint32_t n, uint32_t rows, const int8_t *next,
              uint32_t lines, float y[][VLM_PANEL])
{
    wide_t     x __attribute__((aligned(64)));
    uint32_t   i, line;

    widen_rows(&x, r, n, rows);

    for (i = 0; i < STRIPS; i++) {
        for (line = 0; line < lines; line++, next += LINE) {
            _mm_prefetch((const char *) next, _MM_HINT_T1);
        }

        multiply_strip(&strips[i], &x, r.s, r.pieces, n, rows,
                       (float (*)[VLM_PANEL]) (y[0] + 16 * i));
    }
}


/* n values of a piece against T rows, FEWEST at least, in tiles of 4 rows and of 3. */
static void
multiply_piece(const int8_t *piece, rows_t r, uint32_t n, uint32_t T, float y[][VLM_PANEL])
{
    strip_t        strips[STRIPS] __attribute__((aligned(64)));
    uint32_t       t, rows, tiles, lines;
    const int8_t  *next = piece + n * VLM_PANEL;

    widen_weights(strips, piece, n);
    tiles = (T + TILE - 1) / TILE;
    lines = (n * VLM_PANEL / LINE + tiles * STRIPS - 1) / (tiles * STRIPS);

    for (t = 0; t < T; t += rows, tiles--) {
        rows = (T - t + tiles - 1) / tiles;
        multiply_tile(strips, r, n, rows, next, lines, y + t);
        next += lines * STRIPS * LINE;
        r.q += rows * r.values;
        r.s += rows * r.pieces;
    }
}


/* Rows t .. t + T, at most MANY, against a panel: a piece of it is read once for all rows. */
static void
multiply_panel(const vlm_linear_args_t *a, const int8_t *panel, uint32_t t, uint32_t T,
               float y[][VLM_PANEL])
{
    rows_t    r;
    uint32_t  k, n, values;

    values = vlm_blocks(a->w->K) * VLM_BLOCK;
    r.values = values;
    r.pieces = vlm_pieces(a->w->K);
    memset(y, 0, T * sizeof(y[0]));

    for (k = 0; k < values; k += n, panel += n * VLM_PANEL) {
        n = values - k < VLM_PIECE ? values - k : VLM_PIECE;
        r.q = a->q + t * r.values + k;
        r.s = a->s + t * r.pieces + k / VLM_PIECE;
        multiply_piece(panel, r, n, T, y);
    }
}


/* Groups of rows of about the same size, so that none has too few for tiles. */
static void
multiply_rows(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    float     y[MANY][VLM_PANEL] __attribute__((aligned(64)));
    size_t    bytes;
    uint32_t  p, t, T, most, groups;

    bytes = vlm_panel_bytes(a->w->K);
    most = a->w->K > LONG ? SHORT : MANY;
    groups = (a->T + most - 1) / most;

    for (t = 0; t < a->T; t += T, groups--) {
        T = (a->T - t + groups - 1) / groups;

        for (p = begin; p < end; p++) {
            multiply_panel(a, (const int8_t *) a->w->w + p * bytes, t, T, y);
            vlm_linear_end(a, vlm_epilogue_avx2, p, t, 1, T, y);
        }
    }
}


void
vlm_linear_many_avx2(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    if (a->w->type == VLM_INT8 && a->T >= FEWEST) {
        multiply_rows(a, begin, end);
    } else {
        vlm_linear_avx2(a, begin, end);
    }
}
