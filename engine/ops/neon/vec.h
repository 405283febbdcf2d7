/* Vectors of 4 floats and of 4 integers, for attention. */

#ifndef VLM_NEON_VEC_H
#define VLM_NEON_VEC_H

#include <arm_neon.h>
#include <stdint.h>

#define WIDTH          4

typedef float32x4_t  vec_t;

#define vec_zero()       vdupq_n_f32(0)
#define vec_set(x)       vdupq_n_f32(x)
#define vec_load(p)      vld1q_f32(p)
#define vec_store(p, x)  vst1q_f32(p, x)
#define vec_mul(a, b)    vmulq_f32(a, b)
#define vec_add(a, b)    vaddq_f32(a, b)
#define vec_sub(a, b)    vsubq_f32(a, b)
#define vec_div(a, b)    vdivq_f32(a, b)
#define vec_fma(a, b, c) vfmaq_f32(c, a, b)

#define vec_load_half(p)      vec_load(p)          /* a head has whole vectors */
#define vec_load_half_bf16(p) vec_load_bf16(p)
#define vec_store_half(p, x)  vec_store(p, x)


typedef int32x4_t  int_t;

#define int_zero()       vdupq_n_s32(0)
#define int_set(x)       vdupq_n_s32(x)
#define int_load(p)      vld1q_s32((const int32_t *) (p))
#define int_store(p, x)  vst1q_s32(p, x)
#define int_add(a, b)    vaddq_s32(a, b)
#define int_or(a, b)     vorrq_s32(a, b)
#define int_shift(a, n)  vshlq_n_s32(a, n)
#define int_to_vec(a)    vcvtq_f32_s32(a)
#define vec_to_int(a)    vcvtnq_s32_f32(a)
#define int_as_vec(a)    vreinterpretq_f32_s32(a)
#define vec_as_int(a)    vreinterpretq_s32_f32(a)


/* The larger one of each, as numbers without a sign. */
static inline int_t
int_max(int_t a, int_t b)
{
    return vreinterpretq_s32_u32(vmaxq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b)));
}


/* The larger one of each; b's if one is not a number. */
static inline vec_t
vec_max(vec_t a, vec_t b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}


/* Elements of yes where x is above y or below y, of no elsewhere. */
static inline vec_t
vec_above(vec_t x, float y, vec_t yes, vec_t no)
{
    return vbslq_f32(vcgtq_f32(x, vec_set(y)), yes, no);
}


static inline vec_t
vec_less(vec_t x, vec_t y, vec_t yes, vec_t no)
{
    return vbslq_f32(vcltq_f32(x, y), yes, no);
}


static inline vec_t
vec_load_bf16(const uint16_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}


/* Element j of vector i becomes element i of vector j: pairs, then halves. */
static inline __attribute__((always_inline)) void
vec_turn(vec_t r[4])
{
    int          i;
    float64x2_t  t[4];

    for (i = 0; i < 4; i += 2) {
        t[i] = vreinterpretq_f64_f32(vtrn1q_f32(r[i], r[i + 1]));
        t[i + 1] = vreinterpretq_f64_f32(vtrn2q_f32(r[i], r[i + 1]));
    }

    for (i = 0; i < 2; i++) {
        r[i] = vreinterpretq_f32_f64(vzip1q_f64(t[i], t[i + 2]));
        r[i + 2] = vreinterpretq_f32_f64(vzip2q_f64(t[i], t[i + 2]));
    }
}


/* The sum of the elements of each vector. */
static inline __attribute__((always_inline)) int_t
int_sums(const int_t r[4])
{
    return vpaddq_s32(vpaddq_s32(r[0], r[1]), vpaddq_s32(r[2], r[3]));
}


/* Pairs of two rows' 16-bit numbers, eight of them. */
static inline void
pair_eight(const int16_t *low, const int16_t *high, int32_t *to)
{
    int16x8x2_t  both = { { vld1q_s16(low), vld1q_s16(high) } };

    vst2q_s16((int16_t *) to, both);
}

#endif
