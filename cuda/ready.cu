/*
 * Activation rows as a product takes them: normed if there is a gain, then in int8 with a scale
 * for each block, or in bf16.
 *
 * Within a group of 64 bytes the 16 words stand in the order in which a lane of vlm_mma_*() wants
 * them: words 4 t to 4 t + 3 are b[0], b[1] of the first 32 bytes, then of the others, of the
 * lanes with lane % 4 = t.  So one 16-byte load is all that a lane needs of a group.
 *
 *   q [row][group][64 bytes]        s [block][VLM_CUDA_ROWS]
 */

#include "product.h"

#define THREADS  256


/* Where word i of a row goes. */
static __device__ __forceinline__ uint32_t
place_of(uint32_t i)
{
    uint32_t  w = i % 16;

    return i - w + w % 4 * 4 + w / 8 * 2 + w / 4 % 2;
}


/* Values 4 i to 4 i + 3 of a row of K; beyond its end there are zeros. */
static __device__ __forceinline__ float4
load_four(const float *x, uint32_t i, uint32_t K)
{
    uint32_t  k = 4 * i;

    if (K % 4 == 0 && k < K) {
        return *reinterpret_cast<const float4 *>(x + k);
    }

    return make_float4(k < K ? x[k] : 0, k + 1 < K ? x[k + 1] : 0, k + 2 < K ? x[k + 2] : 0,
                       k + 3 < K ? x[k + 3] : 0);
}


static __device__ __forceinline__ float4
load_four(const vlm_bf16_t *x, uint32_t i, uint32_t K)
{
    uint2     two;
    float2    a, b;
    uint32_t  k = 4 * i;

    if (K % 4 == 0 && k < K) {
        two = *reinterpret_cast<const uint2 *>(x + k);
        a = vlm_unpack_bf16(two.x);
        b = vlm_unpack_bf16(two.y);

        return make_float4(a.x, a.y, b.x, b.y);
    }

    return make_float4(k < K ? vlm_from_bf16(x[k]) : 0, k + 1 < K ? vlm_from_bf16(x[k + 1]) : 0,
                       k + 2 < K ? vlm_from_bf16(x[k + 2]) : 0,
                       k + 3 < K ? vlm_from_bf16(x[k + 3]) : 0);
}


/* 1 / rms of a row, in all threads. */
template <class T>
static __device__ __forceinline__ float
norm_of(const T *x, uint32_t K, float eps, float *warps)
{
    float     sum;
    float4    v;
    uint32_t  i;

    for (sum = 0, i = threadIdx.x; 4 * i < K; i += THREADS) {
        v = load_four(x, i, K);
        sum = fmaf(v.x, v.x, sum);
        sum = fmaf(v.y, v.y, sum);
        sum = fmaf(v.z, v.z, sum);
        sum = fmaf(v.w, v.w, sum);
    }

    return 1 / sqrtf(vlm_block_sum(sum, warps) / static_cast<float>(K) + eps);
}


/* All lanes come here, those beyond the padded row as well: a block is quantised by 16 of them. */
static __device__ __forceinline__ void
store_int8(const vlm_ready_t &a, uint32_t t, uint32_t i, float4 v)
{
    float     scale;
    unsigned  four;

    four = vlm_quantize(v, &scale);

    if (i >= a.row_words) {
        return;
    }

    a.q[static_cast<size_t>(t) * a.row_words + place_of(i)] = four;

    if (i % VLM_QUAD_LANES == 0) {
        a.s[static_cast<size_t>(i / VLM_QUAD_LANES) * VLM_CUDA_ROWS + t] = scale;
    }
}


static __device__ __forceinline__ void
store_bf16(const vlm_ready_t &a, uint32_t t, uint32_t i, float4 v)
{
    unsigned  *row = a.q + static_cast<size_t>(t) * a.row_words;

    row[place_of(2 * i)] = vlm_pack_bf16(v.x, v.y);
    row[place_of(2 * i + 1)] = vlm_pack_bf16(v.z, v.w);
}


/* A block of threads for each row; whole warps, so that 16 lanes have a block of values. */
template <class T, bool INT8>
__global__ void __launch_bounds__(THREADS)
ready(vlm_ready_t a)
{
    float     r;
    float4    v, g;
    uint32_t  i, t, padded;
    const T  *x;

    VLM_SHARED(float, warps, VLM_WARP);

    t = blockIdx.x;
    padded = (a.K + VLM_BLOCK - 1) / VLM_BLOCK * VLM_BLOCK;
    x = static_cast<const T *>(a.x)
        + static_cast<size_t>(a.rows == nullptr ? t : a.rows[t]) * a.K;
    r = a.gain == nullptr ? 1 : norm_of(x, a.K, a.eps, warps);

    /* As many rounds for all threads of a warp. */

    for (i = threadIdx.x; 4 * (i - i % VLM_WARP) < padded; i += THREADS) {
        v = load_four(x, i, a.K);

        if (a.gain != nullptr) {
            g = load_four(a.gain, i, a.K);
            v = make_float4(v.x * r * g.x, v.y * r * g.y, v.z * r * g.z, v.w * r * g.w);
        }

        if (INT8) {
            store_int8(a, t, i, v);
        } else if (4 * i < padded) {
            store_bf16(a, t, i, v);
        }
    }
}


void
vlm_make_ready(vlm_device_t *d, vlm_type_t weights, vlm_form_t form, const vlm_ready_t &a,
               uint32_t T)
{
    if (weights == VLM_INT8) {
        if (form == VLM_FORM_F32) {
            VLM_LAUNCH(d, (ready<float, true>), T, THREADS, 0, a);
        } else {
            VLM_LAUNCH(d, (ready<vlm_bf16_t, true>), T, THREADS, 0, a);
        }

    } else if (form == VLM_FORM_F32) {
        VLM_LAUNCH(d, (ready<float, false>), T, THREADS, 0, a);

    } else {
        VLM_LAUNCH(d, (ready<vlm_bf16_t, false>), T, THREADS, 0, a);
    }
}
