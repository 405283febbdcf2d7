/*
 * The device's side of products on tensor cores: weights are the 16 rows and activations the 8
 * columns of a fragment.  See pack.cu and ready.cuh for both orders of bytes.
 *
 * With up to 8 activation rows, the 8 warps of a block divide the K of 16 weight rows among them,
 * with all loads in flight at once; a block computes one such tile after the other.
 *
 * The integer product of a block of values is added to the bits of the float 1.5 * 2^23.  While the
 * product is below 2^22 in magnitude, the result has the bits of 1.5 * 2^23 plus the product, so a
 * subtraction converts it to a float.
 */

#ifndef VLM_PRODUCT_CUH
#define VLM_PRODUCT_CUH

#include "ready.cuh"

#define VLM_FEW_THREADS  (VLM_CUDA_PARTS * VLM_WARP)
#define VLM_FEW_PARTS    (VLM_CUDA_PARTS * VLM_CUDA_TILE * VLM_FEW)

#define VLM_AHEAD        4             /* groups whose loads are in flight together */
#define VLM_MAGIC        0x4b400000
#define VLM_MAGIC_F32    12582912.0f

static_assert(VLM_FEW_THREADS == VLM_READY_THREADS, "a block of both");


/* ---- sums --------------------------------------------------------------------------------- */

/* One group: sum [row g: columns 2 t, 2 t + 1; row g + 8] += its product, scaled by s of both. */
template <bool INT8>
static __device__ __forceinline__ void
vlm_add_group(float (&sum)[4], uint4 first, uint4 second, uint4 b, float2 s)
{
    int       dot[4] = { VLM_MAGIC, VLM_MAGIC, VLM_MAGIC, VLM_MAGIC };
    unsigned  a0[4] = { first.x, first.y, first.z, first.w };
    unsigned  a1[4] = { second.x, second.y, second.z, second.w };
    unsigned  b0[2] = { b.x, b.y }, b1[2] = { b.z, b.w };

    if (!INT8) {
        vlm_mma_bf16(sum, a0, b0);
        vlm_mma_bf16(sum, a1, b1);
        return;
    }

    vlm_mma_s8(dot, a0, b0);
    vlm_mma_s8(dot, a1, b1);

    sum[0] = fmaf(s.x, __int_as_float(dot[0]) - VLM_MAGIC_F32, sum[0]);
    sum[1] = fmaf(s.y, __int_as_float(dot[1]) - VLM_MAGIC_F32, sum[1]);
    sum[2] = fmaf(s.x, __int_as_float(dot[2]) - VLM_MAGIC_F32, sum[2]);
    sum[3] = fmaf(s.y, __int_as_float(dot[3]) - VLM_MAGIC_F32, sum[3]);
}


static __device__ __forceinline__ float
vlm_finish(const vlm_product_t &a, uint32_t t, uint32_t n, float sum)
{
    sum = a.scale == nullptr ? sum : sum * a.scale[n];
    sum = a.low == nullptr ? sum : sum + a.low[static_cast<size_t>(t) * a.N + n];

    return a.bias == nullptr ? sum : sum + a.bias[n];
}


/* ---- few rows ----------------------------------------------------------------------------- */

/* Where the pieces of 16 weight rows begin. */
static __device__ __forceinline__ const uint4 *
vlm_tile_at(const vlm_product_t &a, uint32_t tile)
{
    return a.w + static_cast<size_t>(tile) * a.groups * 2 * VLM_WARP;
}


/*
 * Called before the first tile: makes rows ready in room, a block's dynamic memory, unless a launch
 * has done it, while the first tile's weights are prefetched.  sums is shared, VLM_FEW_PARTS.
 */
template <bool INT8>
static __device__ __forceinline__ void
vlm_begin_few(vlm_product_t &a, uint32_t tile, unsigned char *room, float *sums)
{
    uint32_t  g;

    if (!a.inside) {
        return;
    }

    /* 128 bytes a lane are VLM_AHEAD groups of 16 rows. */

    g = threadIdx.x / VLM_WARP * a.run;

    if (g + threadIdx.x % VLM_WARP / 8 < a.groups) {
        vlm_prefetch(vlm_tile_at(a, tile) + g * 2 * VLM_WARP + threadIdx.x % VLM_WARP * 8);
    }

    a.in.q = reinterpret_cast<unsigned *>(room);
    a.in.s = reinterpret_cast<float *>(room + a.T * a.in.q_stride * 4);
    vlm_ready_rows<INT8>(a.in, 0, a.T, sums);

    __syncthreads();
}


/* Groups [g, end) of this warp's run; tile is the lane's place in the 16 weight rows. */
template <bool INT8>
static __device__ __forceinline__ void
vlm_sum_run(const vlm_product_t &a, const uint4 *tile, uint32_t g, uint32_t end, float (&sum)[4])
{
    uint4            w[2 * VLM_AHEAD], b;
    float2           s;
    uint32_t         i, lane, t;
    const unsigned  *q;

    lane = threadIdx.x % VLM_WARP;
    t = lane / 4;
    q = a.in.q + (static_cast<size_t>(t) * a.in.q_stride + lane % 4 * 4);

    for ( /* void */ ; g < end; g += VLM_AHEAD) {

#pragma unroll
        for (i = 0; i < VLM_AHEAD; i++) {
            if (g + i < end) {
                w[2 * i] = vlm_load_once(tile + (g + i) * 2 * VLM_WARP);
                w[2 * i + 1] = vlm_load_once(tile + ((g + i) * 2 + 1) * VLM_WARP);
            }
        }

#pragma unroll
        for (i = 0; i < VLM_AHEAD; i++) {
            if (g + i < end) {
                b = make_uint4(0, 0, 0, 0);
                s = make_float2(0, 0);

                if (t < a.T) {
                    b = *reinterpret_cast<const uint4 *>(q + (g + i) * 16);
                }

                if (INT8 && lane % 4 * 2 < a.T) {
                    s = *reinterpret_cast<const float2 *>(a.in.s + (g + i) * a.in.s_stride
                                                          + lane % 4 * 2);
                }

                vlm_add_group<INT8>(sum, w[2 * i], w[2 * i + 1], b, s);
            }
        }
    }
}


/* Each warp's part of a tile, to parts [VLM_CUDA_PARTS][VLM_CUDA_TILE][VLM_FEW]; then a barrier. */
template <bool INT8>
static __device__ __forceinline__ void
vlm_sum_tile(const vlm_product_t &a, uint32_t tile, float *parts)
{
    float     sum[4] = { 0, 0, 0, 0 };
    uint32_t  i, g, lane, part, end;

    lane = threadIdx.x % VLM_WARP;
    part = threadIdx.x / VLM_WARP;
    g = part * a.run;
    end = min(g + a.run, a.groups);

    if (g < end) {
        vlm_sum_run<INT8>(a, vlm_tile_at(a, tile) + lane, g, end, sum);
    }

    i = (part * VLM_CUDA_TILE + lane / 4) * VLM_FEW + lane % 4 * 2;
    parts[i] = sum[0];
    parts[i + 1] = sum[1];
    parts[i + 8 * VLM_FEW] = sum[2];
    parts[i + 8 * VLM_FEW + 1] = sum[3];
}


/* The parts of one weight row of a tile and activation row t, in their order. */
static __device__ __forceinline__ float
vlm_add_parts(const float *parts, uint32_t row, uint32_t t)
{
    float  v = 0;

    for (uint32_t i = 0; i < VLM_CUDA_PARTS; i++) {
        v += parts[(i * VLM_CUDA_TILE + row) * VLM_FEW + t];
    }

    return v;
}

#endif
