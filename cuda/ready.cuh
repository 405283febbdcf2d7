/*
 * Makes activation rows ready by a block of 256 threads: for ready.cu, where a block has one row
 * and the product is another launch, and for the products of few rows, whose blocks do it for
 * themselves.  Both give the same bits.
 *
 * Within a group of 64 bytes the 16 words have the order that a lane of vlm_mma_*() needs: words 4
 * t to 4 t + 3 are b[0], b[1] of the first 32 bytes, then of the others, of the lanes with lane % 4
 * = t.  So a lane needs one 16-byte load for a group.
 */

#ifndef VLM_READY_CUH
#define VLM_READY_CUH

#include "product.h"

#define VLM_READY_THREADS  256
#define VLM_READY_WARPS    (VLM_READY_THREADS / VLM_WARP)

static_assert(VLM_PIECE == 8 * VLM_WARP, "a lane has eight values of a piece");

/* The place of word i of a row. */
static __device__ __forceinline__ uint32_t
vlm_place_of(uint32_t i)
{
    uint32_t  w = i % 16;

    return i - w + w % 4 * 4 + w / 8 * 2 + w / 4 % 2;
}


/* Values 4 i to 4 i + 3 of a row of K; beyond its end there are zeros. */
static __device__ __forceinline__ float4
vlm_load_four(const float *x, uint32_t i, uint32_t K)
{
    uint32_t  k = 4 * i;

    if (K % 4 == 0 && k < K) {
        return *reinterpret_cast<const float4 *>(x + k);
    }

    return make_float4(k < K ? x[k] : 0, k + 1 < K ? x[k + 1] : 0, k + 2 < K ? x[k + 2] : 0,
                       k + 3 < K ? x[k + 3] : 0);
}


static __device__ __forceinline__ float4
vlm_load_four(const vlm_bf16_t *x, uint32_t i, uint32_t K)
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


template <class X>
static __device__ __forceinline__ const X *
vlm_row_of(const vlm_ready_t &a, uint32_t t)
{
    return static_cast<const X *>(a.x)
           + static_cast<size_t>(a.rows == nullptr ? t : a.rows[t]) * a.K;
}


/* The warps' shares of a row's sum, added in their order. */
static __device__ __forceinline__ float
vlm_add_warps(const float *sums)
{
    float  sum = sums[0];

    for (int i = 1; i < VLM_READY_WARPS; i++) {
        sum += sums[i];
    }

    return sum;
}


/* The mean that the norm takes off, of the row with these sums: an RMS norm takes off none. */
static __device__ __forceinline__ float
vlm_mean_of(const vlm_ready_t &a, const float *sums)
{
    return a.norm.kind == VLM_NORM_LAYER ? vlm_add_warps(sums) / static_cast<float>(a.K) : 0;
}


/* Four values less the mean; those beyond the row's end, of which `left` are before, stay 0. */
static __device__ __forceinline__ float4
vlm_less(float4 v, float mean, uint32_t left)
{
    return make_float4(v.x - mean, left > 1 ? v.y - mean : 0, left > 2 ? v.z - mean : 0,
                       left > 3 ? v.w - mean : 0);
}


/*
 * Sums of rows first to first + n, or of the squares of values less the mean, a warp's share each:
 * means and sums [n][VLM_READY_WARPS], and means are such sums.
 */
template <bool SQUARES>
static __device__ __forceinline__ void
vlm_sum_rows(const vlm_ready_t &a, uint32_t first, uint32_t n, const float *means, float *sums)
{
    float         sum, mean;
    float4        v;
    uint32_t      i, t;
    const float  *x;

    for (t = 0; t < n; t++) {
        x = vlm_row_of<float>(a, first + t);
        mean = SQUARES ? vlm_mean_of(a, means + t * VLM_READY_WARPS) : 0;

        for (sum = 0, i = threadIdx.x; 4 * i < a.K; i += VLM_READY_THREADS) {
            v = vlm_load_four(x, i, a.K);

            if (!SQUARES) {
                sum += v.x + v.y + (v.z + v.w);
                continue;
            }

            v = vlm_less(v, mean, a.K - 4 * i);
            sum = fmaf(v.x, v.x, sum);
            sum = fmaf(v.y, v.y, sum);
            sum = fmaf(v.z, v.z, sum);
            sum = fmaf(v.w, v.w, sum);
        }

        sum = vlm_warp_sum(sum);

        if (threadIdx.x % VLM_WARP == 0) {
            sums[t * VLM_READY_WARPS + threadIdx.x / VLM_WARP] = sum;
        }
    }

    __syncthreads();
}


/* 1 / rms, or 1 / deviation, of the row with these sums of squares. */
static __device__ __forceinline__ float
vlm_norm_of(const vlm_ready_t &a, const float *sums)
{
    return 1 / sqrtf(vlm_add_warps(sums) / static_cast<float>(a.K) + a.norm.eps);
}


/* The mean of row t and the factor of its norm; sums is shared, [2][VLM_READY_WARPS]. */
static __device__ __forceinline__ void
vlm_norm_row(const vlm_ready_t &a, uint32_t t, float *sums, float *mean, float *r)
{
    *mean = *r = 0;

    if (a.norm.gain == nullptr) {
        return;
    }

    if (a.norm.kind == VLM_NORM_LAYER) {
        vlm_sum_rows<false>(a, t, 1, nullptr, sums);
    }

    vlm_sum_rows<true>(a, t, 1, sums, sums + VLM_READY_WARPS);
    *mean = vlm_mean_of(a, sums);
    *r = vlm_norm_of(a, sums + VLM_READY_WARPS);
}


/* Values 4 i to 4 i + 3 of a normed row. */
static __device__ __forceinline__ float4
vlm_norm_four(const vlm_ready_t &a, const float *x, uint32_t i, float mean, float r)
{
    float4  v = vlm_load_four(x, i, a.K), g = vlm_load_four(a.norm.gain, i, a.K), s;

    v = make_float4((v.x - mean) * r * g.x, (v.y - mean) * r * g.y, (v.z - mean) * r * g.z,
                    (v.w - mean) * r * g.w);

    if (a.norm.kind == VLM_NORM_RMS) {
        return v;
    }

    s = vlm_load_four(a.norm.shift, i, a.K);

    return make_float4(v.x + s.x, v.y + s.y, v.z + s.z, v.w + s.w);
}


/*
 * The turn of blocks (format/turn.h), of values 4 i to 4 i + 3 in each lane: 16 neighbouring lanes
 * have a block of the row, whose rest may be less, and all of them take part.
 */
static __device__ __forceinline__ float4
vlm_turn_four(float4 v, uint32_t i, uint32_t K)
{
    float     f;
    float4    u;
    uint32_t  k, h, p, rest, left, size;

    p = 4 * i % VLM_BLOCK;
    k = 4 * i - p;
    rest = K > k ? K - k : 0;
    left = rest > p ? rest - p : 0;
    size = left < 4 ? left : vlm_turn_size(rest, p);

    if (left >= 2) {
        v = left >= 4 ? make_float4(v.x + v.y, v.x - v.y, v.z + v.w, v.z - v.w)
                      : make_float4(v.x + v.y, v.x - v.y, v.z, v.w);
    }

    if (left >= 4) {
        v = make_float4(v.x + v.z, v.y + v.w, v.x - v.z, v.y - v.w);
    }

#pragma unroll
    for (h = 1; h < VLM_QUAD_LANES; h *= 2) {
        u.x = __shfl_xor_sync(VLM_ALL, v.x, h);
        u.y = __shfl_xor_sync(VLM_ALL, v.y, h);
        u.z = __shfl_xor_sync(VLM_ALL, v.z, h);
        u.w = __shfl_xor_sync(VLM_ALL, v.w, h);

        if (4 * h < size) {
            v = (i & h) == 0 ? make_float4(v.x + u.x, v.y + u.y, v.z + u.z, v.w + u.w)
                             : make_float4(u.x - v.x, u.y - v.y, u.z - v.z, u.w - v.w);
        }
    }

    f = left < 2 ? 1 : vlm_turn_factor(left < 4 ? 2 : size);

    return make_float4(v.x * f, v.y * f, left == 3 ? v.z : v.z * f, v.w * f);
}


/* Values 4 i to 4 i + 3 of a row, normed if there is a norm, and turned. */
static __device__ __forceinline__ float4
vlm_ready_four(const vlm_ready_t &a, uint32_t t, uint32_t i, float mean, float r)
{
    float4  v;

    if (a.norm.gain == nullptr) {
        v = vlm_load_four(vlm_row_of<vlm_bf16_t>(a, t), i, a.K);
    } else {
        v = vlm_norm_four(a, vlm_row_of<float>(a, t), i, mean, r);
    }

    return a.blocks ? vlm_turn_four(v, i, a.K) : v;
}


/* Four values of a block of int8, and the block's scale: that of its piece, which is repeated. */
static __device__ __forceinline__ void
vlm_put_four(const vlm_ready_t &a, uint32_t i, unsigned four, float scale, unsigned *q, float *s)
{
    if (i >= a.row_words) {
        return;
    }

    q[vlm_place_of(i)] = four;

    if (i % VLM_QUAD_LANES == 0) {
        s[i / VLM_QUAD_LANES * a.s_stride] = scale;
    }
}


/* A warp has a piece: each of its lanes two times four values. */
static __device__ __forceinline__ void
vlm_put_int8(const vlm_ready_t &a, uint32_t t, float mean, float r, unsigned *q, float *s)
{
    float     scale, inverse;
    float4    v, u;
    uint32_t  i;

    i = threadIdx.x / VLM_WARP * (VLM_PIECE / 4) + threadIdx.x % VLM_WARP;

    for ( /* void */ ; i - i % VLM_WARP < a.row_words; i += VLM_READY_WARPS * (VLM_PIECE / 4)) {
        v = vlm_ready_four(a, t, i, mean, r);
        u = vlm_ready_four(a, t, i + VLM_WARP, mean, r);
        scale = vlm_piece_scale(v, u, &inverse);
        vlm_put_four(a, i, vlm_round_four(v, inverse), scale, q, s);
        vlm_put_four(a, i + VLM_WARP, vlm_round_four(u, inverse), scale, q, s);
    }
}


static __device__ __forceinline__ void
vlm_put_bf16(const vlm_ready_t &a, uint32_t t, float mean, float r, unsigned *q)
{
    float4    v;
    uint32_t  i;

    for (i = threadIdx.x; 2 * i < a.row_words; i += VLM_READY_THREADS) {
        v = vlm_ready_four(a, t, i, mean, r);
        q[vlm_place_of(2 * i)] = vlm_pack_bf16(v.x, v.y);
        q[vlm_place_of(2 * i + 1)] = vlm_pack_bf16(v.z, v.w);
    }
}


/* Rows first to first + n: f32 with a norm, or bf16.  sums is shared, [2 n][VLM_READY_WARPS]. */
template <bool INT8>
static __device__ __forceinline__ void
vlm_ready_rows(const vlm_ready_t &a, uint32_t first, uint32_t n, float *sums)
{
    float      mean, r, *squares = sums + n * VLM_READY_WARPS;
    uint32_t   t;
    unsigned  *q;

    if (a.norm.gain != nullptr) {
        if (a.norm.kind == VLM_NORM_LAYER) {
            vlm_sum_rows<false>(a, first, n, nullptr, sums);
        }

        vlm_sum_rows<true>(a, first, n, sums, squares);
    }

    for (t = 0; t < n; t++) {
        mean = r = 0;

        if (a.norm.gain != nullptr) {
            mean = vlm_mean_of(a, sums + t * VLM_READY_WARPS);
            r = vlm_norm_of(a, squares + t * VLM_READY_WARPS);
        }

        q = a.q + static_cast<size_t>(first + t) * a.q_stride;

        if (INT8) {
            vlm_put_int8(a, first + t, mean, r, q, a.s + first + t);
        } else {
            vlm_put_bf16(a, first + t, mean, r, q);
        }
    }
}

#endif
