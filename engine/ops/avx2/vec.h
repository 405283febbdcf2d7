/* Vectors of 8 floats and of 8 integers, for attention. */

#ifndef VLM_AVX2_VEC_H
#define VLM_AVX2_VEC_H

#include <immintrin.h>
#include <stdint.h>

#define WIDTH          8

typedef __m256  vec_t;

#define vec_zero()       _mm256_setzero_ps()
#define vec_set(x)       _mm256_set1_ps(x)
#define vec_load(p)      _mm256_loadu_ps(p)
#define vec_store(p, x)  _mm256_storeu_ps(p, x)
#define vec_mul(a, b)    _mm256_mul_ps(a, b)
#define vec_add(a, b)    _mm256_add_ps(a, b)
#define vec_sub(a, b)    _mm256_sub_ps(a, b)
#define vec_div(a, b)    _mm256_div_ps(a, b)
#define vec_max(a, b)    _mm256_max_ps(a, b)
#define vec_fma(a, b, c) _mm256_fmadd_ps(a, b, c)
#define vec_pair(x)      _mm256_castsi256_ps(_mm256_set1_epi64x(x))

#define vec_load_half(p)      vec_load(p)          /* a whole one: there is no other */
#define vec_load_half_bf16(p) vec_load_bf16(p)
#define vec_store_half(p, x)  vec_store(p, x)


typedef __m256i  int_t;

#define int_zero()       _mm256_setzero_si256()
#define int_set(x)       _mm256_set1_epi32(x)
#define int_load(p)      _mm256_loadu_si256((const __m256i *) (p))
#define int_store(p, x)  _mm256_storeu_si256((__m256i *) (p), x)
#define int_add(a, b)    _mm256_add_epi32(a, b)
#define int_or(a, b)     _mm256_or_si256(a, b)
#define int_max(a, b)    _mm256_max_epu32(a, b)
#define int_shift(a, n)  _mm256_slli_epi32(a, n)
#define int_to_vec(a)    _mm256_cvtepi32_ps(a)
#define vec_to_int(a)    _mm256_cvtps_epi32(a)
#define int_as_vec(a)    _mm256_castsi256_ps(a)
#define vec_as_int(a)    _mm256_castps_si256(a)


/* Elements of yes where x is above y or below y, of no elsewhere. */
static inline vec_t
vec_above(vec_t x, float y, vec_t yes, vec_t no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(x, vec_set(y), _CMP_GT_OQ));
}


static inline vec_t
vec_less(vec_t x, vec_t y, vec_t yes, vec_t no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(x, y, _CMP_LT_OQ));
}


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


/* The sum of the elements of each vector: pairs, fours, then halves. */
static inline __attribute__((always_inline)) int_t
int_sums(const int_t r[8])
{
    __m256i  low, high;

    low = _mm256_hadd_epi32(_mm256_hadd_epi32(r[0], r[1]), _mm256_hadd_epi32(r[2], r[3]));
    high = _mm256_hadd_epi32(_mm256_hadd_epi32(r[4], r[5]), _mm256_hadd_epi32(r[6], r[7]));

    return int_add(_mm256_permute2x128_si256(low, high, 0x20),
                   _mm256_permute2x128_si256(low, high, 0x31));
}


/* Pairs of two rows' 16-bit numbers, eight of them. */
static inline void
pair_eight(const int16_t *low, const int16_t *high, int32_t *to)
{
    __m128i  a = _mm_loadu_si128((const __m128i *) low);
    __m128i  b = _mm_loadu_si128((const __m128i *) high);

    _mm_storeu_si128((__m128i *) to, _mm_unpacklo_epi16(a, b));
    _mm_storeu_si128((__m128i *) (to + 4), _mm_unpackhi_epi16(a, b));
}

#endif
