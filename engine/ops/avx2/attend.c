/* Attention in vectors of 8; ../wide.h has the algorithm. */

#include <immintrin.h>

#include "base/size.h"
#include "ops/kernels.h"
#include "ops/plain/softmax.h"

#define VLM_ISA(name)  name##_avx2
#define WIDTH          8
#define STRIP          2               /* 8 sums, 2 keys, 1 value of a row: 16 registers */

typedef __m256  vec_t;

#define vec_zero()       _mm256_setzero_ps()
#define vec_set(x)       _mm256_set1_ps(x)
#define vec_load(p)      _mm256_loadu_ps(p)
#define vec_store(p, x)  _mm256_storeu_ps(p, x)
#define vec_mul(a, b)    _mm256_mul_ps(a, b)
#define vec_fma(a, b, c) _mm256_fmadd_ps(a, b, c)

#define vec_load_half(p)      vec_load(p)          /* a whole one: there is no other */
#define vec_load_half_bf16(p) vec_load_bf16(p)
#define vec_store_half(p, x)  vec_store(p, x)


static inline vec_t
vec_load_bf16(const uint16_t *p)
{
    __m128i  half;

    half = _mm_loadu_si128((const __m128i *) p);

    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}


/* Element j of vector i becomes element i of vector j: pairs, fours, then halves. */
static inline __attribute__((always_inline)) void
vec_turn(vec_t r[8])
{
    int      i, j;
    __m256   t[8];
    __m256d  a, b;

    for (i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }

    for (i = 0; i < 8; i += 4) {
        for (j = 0; j < 2; j++) {
            a = _mm256_castps_pd(t[i + j]);
            b = _mm256_castps_pd(t[i + 2 + j]);
            r[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
            r[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
        }
    }

    for (j = 0; j < 4; j++) {
        t[j] = _mm256_permute2f128_ps(r[j], r[4 + j], 0x20);
        t[4 + j] = _mm256_permute2f128_ps(r[j], r[4 + j], 0x31);
    }

    for (j = 0; j < 8; j++) {
        r[j] = t[j];
    }
}


#include "ops/wide.h"
