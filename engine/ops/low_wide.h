/*
 * The products of adapters for vectors of any width: included by avx2/low.c and avx512/low.c, which
 * define MOST, the rows of x in a tile.  The definitions are in plain/low.c.
 *
 * A tile has rows of A, or a panel's values of B, and some rows of x; its sums stay in registers.
 * A few rows are bound by memory: both matrices are read as streams, and prefetched.
 */

#include <immintrin.h>
#include <math.h>

#include "ops/kernels.h"

#define GROUP  VLM_LOW_GROUP
#define LANES  VLM_LOW_LANES
#define VECS   (LANES / WIDTH)         /* that have all lanes of a row */
#define STRIP  4                       /* vectors of B's values in a tile */
#define FAR    3072                    /* bytes to prefetch, into the second cache */
#define NEAR   512                     /* and into the first */

static inline __attribute__((always_inline)) vec_t
load_values(const uint8_t *from, size_t at, int bf16)
{
    return bf16 ? vec_load_bf16((const uint16_t *) from + at)
                : vec_load((const float *) from + at);
}


/* Value i of z for all of a vector; or values 2 i and 2 i + 1, which take turns. */
static inline __attribute__((always_inline)) vec_t
load_factor(const float *z, uint32_t i, int in_turn)
{
    int64_t  pair;

    if (!in_turn) {
        return vec_set(z[i]);
    }

    memcpy(&pair, z + 2 * i, sizeof(pair));

    return vec_pair(pair);
}


static inline __attribute__((always_inline)) void
prefetch(const uint8_t *p, int bytes)
{
    int  i;

    for (i = 0; i < bytes; i += 64) {
        _mm_prefetch((const char *) p + FAR + i, _MM_HINT_T1);
        _mm_prefetch((const char *) p + NEAR + i, _MM_HINT_T0);
    }
}


/*
 * The lanes of n rows of A, from row `first` on, with m rows of x, as far as K has whole ones; of
 * the lanes `vecs` vectors from vector v0 on.
 */
static inline __attribute__((always_inline)) void
sum_tile(const vlm_low_down_t *d, uint32_t first, const float *const x[], int n, int m, int vecs,
         int v0, int bf16, float lanes[][GROUP][LANES])
{
    int             i, j, v;
    vec_t           sum[MOST][GROUP][VECS], w[GROUP][VECS], in;
    size_t          step, row;         /* values to the next ones of a row, and of the next row */
    uint32_t        k;
    const uint8_t  *a;

    step = d->packed ? d->n * LANES : LANES;
    row = d->packed ? LANES : d->K;
    a = (const uint8_t *) d->a + first * row * (bf16 ? 2 : 4);

    for (j = 0; j < m; j++) {
        for (i = 0; i < n; i++) {
            for (v = 0; v < vecs; v++) {
                sum[j][i][v] = vec_zero();
            }
        }
    }

    for (k = 0; k + LANES <= d->K; k += LANES, a += step * (bf16 ? 2 : 4)) {
        prefetch(a, n * LANES * (bf16 ? 2 : 4));

        for (i = 0; i < n; i++) {
            for (v = 0; v < vecs; v++) {
                w[i][v] = load_values(a, (size_t) i * row + (size_t) (v0 + v) * WIDTH, bf16);
            }
        }

        for (j = 0; j < m; j++) {
            for (v = 0; v < vecs; v++) {
                in = vec_load(x[j] + k + (v0 + v) * WIDTH);

                for (i = 0; i < n; i++) {
                    sum[j][i][v] = vec_fma(w[i][v], in, sum[j][i][v]);
                }
            }
        }
    }

    for (j = 0; j < m; j++) {
        for (i = 0; i < n; i++) {
            for (v = 0; v < vecs; v++) {
                vec_store(lanes[j][i] + (v0 + v) * WIDTH, sum[j][i][v]);
            }
        }
    }
}


/* The values behind the last whole lanes, and zeros. */
static void
add_rest(const vlm_low_down_t *d, uint32_t first, const float *const x[], int n, int m,
         float lanes[][GROUP][LANES])
{
    int       i, j;
    float     w, v;
    size_t    at;
    uint32_t  l, k, values;

    k = d->K / LANES * LANES;
    values = d->K - k;

    for (i = 0; i < n; i++) {
        at = vlm_low_down_at(d, first + (uint32_t) i, k);

        for (j = 0; j < m; j++) {
            for (l = 0; l < LANES && values > 0; l++) {
                w = l >= values ? 0
                    : d->type == VLM_BF16 ? vlm_bf16_f32(((const uint16_t *) d->a)[at + l])
                                          : ((const float *) d->a)[at + l];
                v = l >= values ? 0 : x[j][k + l];
                lanes[j][i][l] = fmaf(w, v, lanes[j][i][l]);
            }
        }
    }
}


/* The lanes of four rows are added by halves. */
static inline void
sum_four(float lanes[GROUP][LANES], float y[GROUP])
{
    int     i;
    __m128  s[GROUP];
    __m256  half;

    for (i = 0; i < GROUP; i++) {
        half = _mm256_add_ps(_mm256_loadu_ps(lanes[i]), _mm256_loadu_ps(lanes[i] + LANES / 2));
        s[i] = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    }

    _MM_TRANSPOSE4_PS(s[0], s[1], s[2], s[3]);
    _mm_storeu_ps(y, _mm_add_ps(_mm_add_ps(s[0], s[2]), _mm_add_ps(s[1], s[3])));
}


/* One row of x has sums of all lanes at once, so that enough of them are in flight. */
static inline __attribute__((always_inline)) void
multiply_tile(const vlm_low_down_t *d, uint32_t first, const float *const x[], int n, int m,
              int bf16, float y[][GROUP])
{
    int    i, j, v;
    float  lanes[MOST][GROUP][LANES], four[GROUP];

    for (v = 0; v < VECS; v += m == 1 ? VECS : 1) {
        sum_tile(d, first, x, n, m, m == 1 ? VECS : 1, v, bf16, lanes);
    }

    add_rest(d, first, x, n, m, lanes);

    for (j = 0; j < m; j++) {
        if (n < GROUP) {
            memset(lanes[j][n], 0, (size_t) (GROUP - n) * sizeof(lanes[j][n]));
        }

        sum_four(lanes[j], four);

        for (i = 0; i < n; i++) {
            y[j][first + (uint32_t) i] = four[i];
        }
    }
}


/* Rows of x in the next tile of `left`: constants of the calls below. */
static inline uint32_t
rows_of(uint32_t left)
{
    return MOST >= 6 && left >= 6 && left != 8 ? 6 : MOST >= 4 && left >= 4 ? 4
           : left >= 2 ? 2 : 1;
}


static inline __attribute__((always_inline)) void
multiply_rows(const vlm_low_down_t *d, uint32_t first, const float *const x[], uint32_t m, int n,
              int bf16, float y[][GROUP])
{
    uint32_t  t, rows;

    for (t = 0; t < m; t += rows) {
        switch (rows = rows_of(m - t)) {
#if MOST >= 6
        case 6:
            multiply_tile(d, first, x + t, n, 6, bf16, y + t);
            break;
        case 4:
            multiply_tile(d, first, x + t, n, 4, bf16, y + t);
            break;
#endif
        case 2:
            multiply_tile(d, first, x + t, n, 2, bf16, y + t);
            break;
        default:
            multiply_tile(d, first, x + t, n, 1, bf16, y + t);
        }
    }
}


void
VLM_ISA(vlm_low_down)(const vlm_low_down_t *d, const float *const x[], uint32_t m,
                      float y[][VLM_LOW_GROUP])
{
    int       bf16 = d->type == VLM_BF16;
    uint32_t  i;

    if (d->n == GROUP) {
        bf16 ? multiply_rows(d, 0, x, m, GROUP, 1, y) : multiply_rows(d, 0, x, m, GROUP, 0, y);
        return;
    }

    for (i = 0; i < d->n; i++) {
        bf16 ? multiply_rows(d, i, x, m, 1, 1, y) : multiply_rows(d, i, x, m, 1, 0, y);
    }
}


/* m rows' sums of STRIP vectors, from value n0 on. */
static inline __attribute__((always_inline)) void
add_tile(const vlm_low_up_t *u, const float *const z[], float *const y[], uint32_t n0, int m,
         int bf16, int in_turn)
{
    int             j, v;
    vec_t           sum[MOST][STRIP], w[STRIP], in;
    size_t          bytes;
    uint32_t        i;
    const uint8_t  *b;

    bytes = (size_t) u->step * (bf16 ? 2 : 4);
    b = (const uint8_t *) u->b + (size_t) n0 * (bf16 ? 2 : 4);

    for (j = 0; j < m; j++) {
        for (v = 0; v < STRIP; v++) {
            sum[j][v] = vec_zero();
        }
    }

    for (i = 0; i < u->r; i++, b += bytes) {
        for (v = 0; v < STRIP; v++) {
            w[v] = load_values(b, (size_t) v * WIDTH, bf16);
        }

        for (v = 0; v < STRIP * WIDTH * (bf16 ? 2 : 4); v += 64) {
            _mm_prefetch((const char *) b + u->ahead + v, _MM_HINT_T1);
        }

        for (j = 0; j < m; j++) {
            in = load_factor(z[j], i, in_turn);

            for (v = 0; v < STRIP; v++) {
                sum[j][v] = vec_fma(w[v], in, sum[j][v]);
            }
        }
    }

    for (j = 0; j < m; j++) {
        for (v = 0; v < STRIP; v++) {
            in = vec_load(y[j] + n0 + v * WIDTH);
            in = u->scale == NULL ? in : vec_mul(in, vec_load(u->scale + n0 + v * WIDTH));
            vec_store(y[j] + n0 + v * WIDTH, vec_add(in, sum[j][v]));
        }
    }
}


static inline __attribute__((always_inline)) void
add_rows(const vlm_low_up_t *u, const float *const z[], float *const y[], uint32_t m, int bf16,
         int in_turn)
{
    uint32_t  t, n, rows;

    for (n = 0; n < u->n; n += STRIP * WIDTH) {
        for (t = 0; t < m; t += rows) {
            switch (rows = rows_of(m - t)) {
#if MOST >= 6
            case 6:
                add_tile(u, z + t, y + t, n, 6, bf16, in_turn);
                break;
            case 4:
                add_tile(u, z + t, y + t, n, 4, bf16, in_turn);
                break;
#endif
            case 2:
                add_tile(u, z + t, y + t, n, 2, bf16, in_turn);
                break;
            default:
                add_tile(u, z + t, y + t, n, 1, bf16, in_turn);
            }
        }
    }
}


/* Ranges that have no whole number of tiles are rare: the end of a matrix, or of a part in it. */
void
VLM_ISA(vlm_low_up)(const vlm_low_up_t *u, const float *const z[], float *const y[], uint32_t m)
{
    if (u->n % (STRIP * WIDTH) != 0) {
        vlm_low_up_plain(u, z, y, m);

    } else if (u->type == VLM_BF16) {
        u->in_turn ? add_rows(u, z, y, m, 1, 1) : add_rows(u, z, y, m, 1, 0);

    } else {
        u->in_turn ? add_rows(u, z, y, m, 0, 1) : add_rows(u, z, y, m, 0, 0);
    }
}
