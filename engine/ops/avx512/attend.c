/* Attention in vectors of 16; ../wide.h has the algorithm. */

#include <immintrin.h>

#include "base/size.h"
#include "ops/kernels.h"
#include "ops/plain/softmax.h"

#define VLM_ISA(name)  name##_avx512
#define WIDTH          16
#define STRIP          4

typedef __m512  vec_t;

#define vec_zero()       _mm512_setzero_ps()
#define vec_set(x)       _mm512_set1_ps(x)
#define vec_load(p)      _mm512_loadu_ps(p)
#define vec_store(p, x)  _mm512_storeu_ps(p, x)
#define vec_mul(a, b)    _mm512_mul_ps(a, b)
#define vec_fma(a, b, c) _mm512_fmadd_ps(a, b, c)

#define vec_load_half(p)      _mm512_maskz_loadu_ps(0xff, p)
#define vec_store_half(p, x)  _mm512_mask_storeu_ps(p, 0xff, x)


static inline vec_t
vec_load_bf16(const uint16_t *p)
{
    __m256i  half;

    half = _mm256_loadu_si256((const __m256i *) p);

    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}


static inline vec_t
vec_load_half_bf16(const uint16_t *p)
{
    __m256i  half;

    half = _mm256_zextsi128_si256(_mm_loadu_si128((const __m128i *) p));

    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}


/* Element j of vector i becomes element i of vector j: pairs, fours, then lanes of four. */
static inline __attribute__((always_inline)) void
vec_turn(vec_t r[16])
{
    int      i, j;
    __m512   t[16];
    __m512d  a, b;

    for (i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }

    for (i = 0; i < 16; i += 4) {
        for (j = 0; j < 2; j++) {
            a = _mm512_castps_pd(t[i + j]);
            b = _mm512_castps_pd(t[i + 2 + j]);
            r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    }

    for (i = 0; i < 16; i += 8) {
        for (j = 0; j < 4; j++) {
            t[i + j] = _mm512_shuffle_f32x4(r[i + j], r[i + 4 + j], 0x88);
            t[i + 4 + j] = _mm512_shuffle_f32x4(r[i + j], r[i + 4 + j], 0xdd);
        }
    }

    for (j = 0; j < 8; j++) {
        r[j] = _mm512_shuffle_f32x4(t[j], t[8 + j], 0x88);
        r[8 + j] = _mm512_shuffle_f32x4(t[j], t[8 + j], 0xdd);
    }
}


#include "ops/wide.h"
