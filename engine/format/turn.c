/* Turns of rows and of columns: see the header. */

#include "format/turn.h"

#include <stddef.h>
#include <string.h>

/* Wider registers change no bit: sums keep their order.  The program chooses when it starts, which
   is before TSan has begun. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) \
    && !defined(__SANITIZE_THREAD__)
#define WIDE  __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define WIDE
#endif

#define LANES   16
#define INLINE  static inline __attribute__((always_inline))


int
vlm_turn_of(vlm_turn_t *t, uint32_t n)
{
    memset(t, 0, sizeof(*t));
    t->n = n;

    if (n == 0) {
        return 0;
    }

    for (t->two = 1, t->odd = n; t->odd % 2 == 0; t->odd /= 2) {
        t->two *= 2;
    }

    return t->odd <= VLM_TURN_ODD;
}


/* Bits of a value's place that look random, the same in every program. */
static uint32_t
mix(uint32_t i)
{
    i = (i + 0x9e3779b9u) * 0x85ebca6bu;
    i = (i ^ i >> 13) * 0xc2b2ae35u;

    return i ^ i >> 16;
}


/*
 * The row that reflects: what R makes of equal values without it, less these, of length root 2.  A
 * reflection by it takes the one to the other.
 */
static void
fill_mirror(vlm_turn_t *t)
{
    float     work[VLM_TURN_ODD], *m = t->mirror, v;
    double    square, each, sum;
    uint32_t  i, j, k, h;

    each = 1 / sqrt((double) t->n);

    for (i = 0; i < t->n; i++) {
        m[i] = (float) (each * t->sign[i]);
    }

    for (h = 1; h < t->two; h *= 2) {
        for (i = 0; i < t->n; i++) {
            if ((i % t->two & h) == 0) {
                v = m[i];
                m[i] = v + m[i + h];
                m[i + h] = v - m[i + h];
            }
        }
    }

    for (j = 0; j < t->two && t->odd > 1; j++) {
        for (i = 0; i < t->odd; i++) {
            for (sum = 0, k = 0; k < t->odd; k++) {
                sum += (double) t->small[i * t->odd + k] * m[k * t->two + j];
            }

            work[i] = (float) sum;
        }

        for (i = 0; i < t->odd; i++) {
            m[i * t->two + j] = work[i];
        }
    }

    for (square = 0, i = 0; i < t->n; i++) {
        m[i] -= (float) each;
        square += (double) m[i] * m[i];
    }

    for (i = 0; i < t->n; i++) {
        m[i] = square < 1e-12 ? 0 : (float) (m[i] * sqrt(2 / square));
    }
}


void
vlm_turn_fill(vlm_turn_t *t)
{
    double    angle;
    uint32_t  i, j;

    for (i = 0; i < t->n; i++) {
        t->sign[i] = (mix(i) & 1 ? -1 : 1) * vlm_turn_factor(t->two);
    }

    for (i = 0; i < t->odd; i++) {
        for (j = 0; j < t->odd; j++) {
            angle = 2 * 3.14159265358979323846 * (i * j % t->odd) / t->odd;
            t->small[i * t->odd + j] = (float) ((cos(angle) + sin(angle))
                                                / sqrt((double) t->odd));
        }
    }

    if (t->mirror != NULL) {
        fill_mirror(t);
    }
}


/* Sums of neighbours, and behind all of them their differences. */
INLINE void
pair_neighbours(const float *restrict x, uint32_t n, float *restrict y)
{
    uint32_t  i;

    for (i = 0; i < n / 2; i++) {
        y[i] = x[2 * i] + x[2 * i + 1];
        y[n / 2 + i] = x[2 * i] - x[2 * i + 1];
    }
}


/* Butterflies of n values: after as many passes as n has powers of two, all are in their places
   again.  The result is in the returned one. */
INLINE float *
butterflies(float *x, uint32_t n, float *work)
{
    float     *to, *from;
    uint32_t   h;

    for (from = x, to = work, h = 1; h < n; h *= 2) {
        pair_neighbours(from, n, to);
        to = from;
        from = from == x ? work : x;
    }

    return from;
}


/* x = (C x H) x, without H's factor */
INLINE void
spread(const vlm_turn_t *t, float *x, float *work)
{
    float     *row, *done, c;
    uint32_t   i, j, k;

    for (i = 0; i < t->odd; i++) {
        row = x + (size_t) i * t->two;
        done = butterflies(row, t->two, work);

        if (done != row) {
            memcpy(row, done, t->two * sizeof(float));
        }
    }

    if (t->odd == 1) {
        return;
    }

    memcpy(work, x, t->n * sizeof(float));

    for (i = 0; i < t->odd; i++) {
        row = x + (size_t) i * t->two;
        memset(row, 0, t->two * sizeof(float));

        for (k = 0; k < t->odd; k++) {
            c = t->small[i * t->odd + k];
            done = work + (size_t) k * t->two;

            for (j = 0; j < t->two; j++) {
                row[j] += c * done[j];
            }
        }
    }
}


INLINE void
times(float *x, const float *by, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        x[i] *= by[i];
    }
}


INLINE void
reflect(const vlm_turn_t *t, float *x)
{
    float     sum[LANES] = { 0 };
    uint32_t  i, j;

    if (t->mirror == NULL) {
        return;
    }

    for (i = 0; i + LANES <= t->n; i += LANES) {
        for (j = 0; j < LANES; j++) {
            sum[j] += t->mirror[i + j] * x[i + j];
        }
    }

    for (j = 0; i + j < t->n; j++) {
        sum[j] += t->mirror[i + j] * x[i + j];
    }

    for (i = LANES / 2; i > 0; i /= 2) {
        for (j = 0; j < i; j++) {
            sum[j] += sum[j + i];
        }
    }

    for (i = 0; i < t->n; i++) {
        x[i] -= sum[0] * t->mirror[i];
    }
}


WIDE void
vlm_turn_row(const vlm_turn_t *t, float *x, float *work)
{
    times(x, t->sign, t->n);
    spread(t, x, work);
    reflect(t, x);
}


WIDE void
vlm_turn_back(const vlm_turn_t *t, float *x, float *work)
{
    reflect(t, x);
    spread(t, x, work);
    times(x, t->sign, t->n);
}


/* n values, a power of two. */
INLINE void
turn_part(const float *x, uint32_t n, float *y)
{
    float      a[VLM_BLOCK], b[VLM_BLOCK], *done, factor;
    uint32_t   i;

    memcpy(a, x, n * sizeof(float));
    done = butterflies(a, n, b);
    factor = vlm_turn_factor(n);

    for (i = 0; i < n; i++) {
        y[i] = done[i] * factor;
    }
}


#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define VECTORS
#endif
#endif

#ifdef VECTORS

typedef float  lanes_t __attribute__((vector_size(LANES * sizeof(float))));

/* The value h places away in each lane, plus or minus the lane's own: butterflies within lanes. */
#define OTHER(v, h)                                                                              \
    __builtin_shufflevector(v, v, 0 ^ h, 1 ^ h, 2 ^ h, 3 ^ h, 4 ^ h, 5 ^ h, 6 ^ h, 7 ^ h, 8 ^ h, \
                            9 ^ h, 10 ^ h, 11 ^ h, 12 ^ h, 13 ^ h, 14 ^ h, 15 ^ h)
#define OWN(i, h)    ((i) & (h) ? -1.0f : 1.0f)
#define SIGNS(h)                                                                                 \
    ((lanes_t) { OWN(0, h), OWN(1, h), OWN(2, h), OWN(3, h), OWN(4, h), OWN(5, h), OWN(6, h),    \
                 OWN(7, h), OWN(8, h), OWN(9, h), OWN(10, h), OWN(11, h), OWN(12, h),            \
                 OWN(13, h), OWN(14, h), OWN(15, h) })
#define WITHIN(h)                                                                                \
    v0 = OTHER(v0, h) + v0 * SIGNS(h);                                                           \
    v1 = OTHER(v1, h) + v1 * SIGNS(h);                                                           \
    v2 = OTHER(v2, h) + v2 * SIGNS(h);                                                           \
    v3 = OTHER(v3, h) + v3 * SIGNS(h)

/* A whole block, in four vectors: the same sums as butterflies(). */
INLINE void
turn_block(const float *x, float *y)
{
    lanes_t  v0, v1, v2, v3, a, b, c, d;

    memcpy(&v0, x, sizeof(v0));
    memcpy(&v1, x + LANES, sizeof(v1));
    memcpy(&v2, x + 2 * LANES, sizeof(v2));
    memcpy(&v3, x + 3 * LANES, sizeof(v3));

    WITHIN(1);
    WITHIN(2);
    WITHIN(4);
    WITHIN(8);

    a = v0 + v1;
    b = v0 - v1;
    c = v2 + v3;
    d = v2 - v3;
    v0 = (a + c) * 0.125f;
    v1 = (b + d) * 0.125f;
    v2 = (a - c) * 0.125f;
    v3 = (b - d) * 0.125f;

    memcpy(y, &v0, sizeof(v0));
    memcpy(y + LANES, &v1, sizeof(v1));
    memcpy(y + 2 * LANES, &v2, sizeof(v2));
    memcpy(y + 3 * LANES, &v3, sizeof(v3));
}

#else

INLINE void
turn_block(const float *x, float *y)
{
    turn_part(x, VLM_BLOCK, y);
}

#endif


WIDE void
vlm_turn_blocks(const float *x, uint32_t K, float *y)
{
    uint32_t  k, size;

    for (k = 0; k + VLM_BLOCK <= K; k += VLM_BLOCK) {
        turn_block(x + k, y + k);
    }

    for (size = VLM_BLOCK / 2; size > 0; size /= 2) {
        if ((K & size) != 0) {
            turn_part(x + k, size, y + k);
            k += size;
        }
    }
}


/* Butterflies of rows i and i + h of c values. */
INLINE void
pair_rows(float *x, float *y, uint32_t c)
{
    float     v;
    uint32_t  j;

    for (j = 0; j < c; j++) {
        v = x[j];
        x[j] = v + y[j];
        y[j] = v - y[j];
    }
}


/* The same of four rows: pairs of neighbours, then of rows 2 h apart. */
INLINE void
pair_four(float *x, size_t step, uint32_t c)
{
    float     v0, v1, v2, v3, *y = x + step, *z = y + step, *w = z + step;
    uint32_t  j;

    for (j = 0; j < c; j++) {
        v0 = x[j] + y[j];
        v1 = x[j] - y[j];
        v2 = z[j] + w[j];
        v3 = z[j] - w[j];
        x[j] = v0 + v2;
        y[j] = v1 + v3;
        z[j] = v0 - v2;
        w[j] = v1 - v3;
    }
}


INLINE void
pair_columns(const vlm_turn_t *t, float *x, uint32_t c)
{
    uint32_t  i, h;

    for (h = 1; 2 * h < t->two; h *= 4) {
        for (i = 0; i < t->n; i++) {
            if ((i % t->two & (3 * h)) == 0) {
                pair_four(x + (size_t) i * c, (size_t) h * c, c);
            }
        }
    }

    for (i = 0; h < t->two && i < t->n; i++) {
        if ((i % t->two & h) == 0) {
            pair_rows(x + (size_t) i * c, x + (size_t) (i + h) * c, c);
        }
    }
}


INLINE void
mix_columns(const vlm_turn_t *t, float *x, uint32_t c, float *work)
{
    float     f, *from, *to;
    uint32_t  i, j, k, at;

    for (at = 0; at < t->two; at++) {
        memset(work, 0, (size_t) t->odd * c * sizeof(float));

        for (i = 0; i < t->odd; i++) {
            to = work + (size_t) i * c;

            for (k = 0; k < t->odd; k++) {
                f = t->small[i * t->odd + k];
                from = x + ((size_t) k * t->two + at) * c;

                for (j = 0; j < c; j++) {
                    to[j] += f * from[j];
                }
            }
        }

        for (i = 0; i < t->odd; i++) {
            memcpy(x + ((size_t) i * t->two + at) * c, work + (size_t) i * c, c * sizeof(float));
        }
    }
}


WIDE void
vlm_turn_columns(const vlm_turn_t *t, float *x, uint32_t c, float *work)
{
    float     *row;
    uint32_t   i, j;

    for (i = 0; i < t->n; i++) {
        for (row = x + (size_t) i * c, j = 0; j < c; j++) {
            row[j] *= t->sign[i];
        }
    }

    pair_columns(t, x, c);

    if (t->odd > 1) {
        mix_columns(t, x, c, work);
    }

    if (t->mirror == NULL) {
        return;
    }

    memset(work, 0, c * sizeof(float));

    for (i = 0; i < t->n; i++) {
        for (row = x + (size_t) i * c, j = 0; j < c; j++) {
            work[j] += t->mirror[i] * row[j];
        }
    }

    for (i = 0; i < t->n; i++) {
        for (row = x + (size_t) i * c, j = 0; j < c; j++) {
            row[j] -= work[j] * t->mirror[i];
        }
    }
}
