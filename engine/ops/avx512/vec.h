/* Vectors of 16 floats and of 16 integers, for attention. */

#ifndef VLM_AVX512_VEC_H
#define VLM_AVX512_VEC_H

#include <immintrin.h>
#include <stdint.h>

#define WIDTH          16

typedef __m512  vec_t;

#define vec_zero()       _mm512_setzero_ps()
#define vec_set(x)       _mm512_set1_ps(x)
#define vec_load(p)      _mm512_loadu_ps(p)
#define vec_store(p, x)  _mm512_storeu_ps(p, x)
#define vec_mul(a, b)    _mm512_mul_ps(a, b)
#define vec_add(a, b)    _mm512_add_ps(a, b)
#define vec_sub(a, b)    _mm512_sub_ps(a, b)
#define vec_div(a, b)    _mm512_div_ps(a, b)
#define vec_max(a, b)    _mm512_max_ps(a, b)
#define vec_fma(a, b, c) _mm512_fmadd_ps(a, b, c)
#define vec_pair(x)      _mm512_castsi512_ps(_mm512_set1_epi64(x))

#define vec_load_half(p)      _mm512_maskz_loadu_ps(0xff, p)
#define vec_store_half(p, x)  _mm512_mask_storeu_ps(p, 0xff, x)


typedef __m512i  int_t;

#define int_zero()       _mm512_setzero_si512()
#define int_set(x)       _mm512_set1_epi32(x)
#define int_load(p)      _mm512_loadu_si512(p)
#define int_store(p, x)  _mm512_storeu_si512(p, x)
#define int_add(a, b)    _mm512_add_epi32(a, b)
#define int_or(a, b)     _mm512_or_si512(a, b)
#define int_max(a, b)    _mm512_max_epu32(a, b)
#define int_shift(a, n)  _mm512_slli_epi32(a, n)
#define int_to_vec(a)    _mm512_cvtepi32_ps(a)
#define vec_to_int(a)    _mm512_cvtps_epi32(a)
#define int_as_vec(a)    _mm512_castsi512_ps(a)
#define vec_as_int(a)    _mm512_castps_si512(a)


/* Elements of yes where x is above y or below y, of no elsewhere. */
static inline vec_t
vec_above(vec_t x, float y, vec_t yes, vec_t no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, vec_set(y), _CMP_GT_OQ), no, yes);
}


static inline vec_t
vec_less(vec_t x, vec_t y, vec_t yes, vec_t no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), no, yes);
}


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


/* The sum of the elements of each vector: pairs, fours, then lanes of four. */
static inline __attribute__((always_inline)) int_t
int_sums(const int_t r[16])
{
    int      i;
    __m512i  t[8], u[4], v[2];

    for (i = 0; i < 8; i++) {
        t[i] = int_add(_mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]),
                       _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]));
    }

    for (i = 0; i < 4; i++) {
        u[i] = int_add(_mm512_unpacklo_epi64(t[2 * i], t[2 * i + 1]),
                       _mm512_unpackhi_epi64(t[2 * i], t[2 * i + 1]));
    }

    for (i = 0; i < 2; i++) {
        v[i] = int_add(_mm512_shuffle_i32x4(u[2 * i], u[2 * i + 1], 0x88),
                       _mm512_shuffle_i32x4(u[2 * i], u[2 * i + 1], 0xdd));
    }

    return int_add(_mm512_shuffle_i32x4(v[0], v[1], 0x88),
                   _mm512_shuffle_i32x4(v[0], v[1], 0xdd));
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

#define PAIR_WIDE  16


/* The same, sixteen. */
static inline void
pair_wide(const int16_t *low, const int16_t *high, int32_t *to)
{
    __m512i  a = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *) low));
    __m512i  b = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *) high));

    int_store(to, int_or(a, int_shift(b, 16)));
}

#endif
