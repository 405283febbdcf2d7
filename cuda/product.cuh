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


/* The form of weights, of which the second and third have activations in int8. */
enum { VLM_FORM_BF16, VLM_FORM_INT8, VLM_FORM_INT4 };

/* Loads of 16 bytes that a group of 16 weight rows is. */
#define VLM_LOADS(form)  ((form) == VLM_FORM_INT4 ? VLM_WARP + 2 : 2 * VLM_WARP)
#define VLM_IS_INT8(form)  ((form) != VLM_FORM_BF16)

static_assert((VLM_WARP + 2) * 16 == VLM_CUDA_GROUP4 * VLM_CUDA_TILE, "as they are packed");


/* ---- int4 --------------------------------------------------------------------------------- */

/* Four values of a byte each from as many of four bits: base + step q, of which base is in each
   byte.  step q stays below 256, and sums of bytes carry into no other. */
static __device__ __forceinline__ unsigned
vlm_four(unsigned q, unsigned step, unsigned base)
{
    q *= step;

    return ((q & 0x7f7f7f7f) + (base & 0x7f7f7f7f)) ^ ((q ^ base) & 0x80808080);
}


/* A lane's two pieces of int8 from that of int4; numbers: of its two rows, as pack.cu has them. */
static __device__ __forceinline__ void
vlm_unpack4(uint4 q, unsigned numbers, uint4 *first, uint4 *second)
{
    unsigned  step0, step1, base0, base1;

    step0 = numbers & 0xff;
    base0 = (numbers >> 8 & 0xff) * 0x01010101;
    step1 = numbers >> 16 & 0xff;
    base1 = (numbers >> 24) * 0x01010101;

    first->x = vlm_four(q.x & 0x0f0f0f0f, step0, base0);
    first->y = vlm_four(q.y & 0x0f0f0f0f, step1, base1);
    first->z = vlm_four(q.z & 0x0f0f0f0f, step0, base0);
    first->w = vlm_four(q.w & 0x0f0f0f0f, step1, base1);

    second->x = vlm_four(q.x >> 4 & 0x0f0f0f0f, step0, base0);
    second->y = vlm_four(q.y >> 4 & 0x0f0f0f0f, step1, base1);
    second->z = vlm_four(q.z >> 4 & 0x0f0f0f0f, step0, base0);
    second->w = vlm_four(q.w >> 4 & 0x0f0f0f0f, step1, base1);
}


/* The lane's numbers of a group of int4, whose pieces begin at `group`. */
static __device__ __forceinline__ unsigned
vlm_numbers4(const uint4 *group)
{
    return reinterpret_cast<const unsigned *>(group + VLM_WARP)[threadIdx.x % VLM_WARP / 4];
}


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
template <int FORM>
static __device__ __forceinline__ const uint4 *
vlm_tile_at(const vlm_product_t &a, uint32_t tile)
{
    return a.w + static_cast<size_t>(tile) * a.groups * VLM_LOADS(FORM);
}


/*
 * Called before the first tile: makes rows ready in room, a block's dynamic memory, unless a launch
 * has done it, while the first tile's weights are prefetched.  sums is shared, VLM_FEW_PARTS.
 */
template <int FORM>
static __device__ __forceinline__ void
vlm_begin_few(vlm_product_t &a, uint32_t tile, unsigned char *room, float *sums)
{
    uint32_t  g, at;

    if (!a.inside) {
        return;
    }

    /* 128 bytes a lane are VLM_AHEAD groups of 16 rows, or more of int4. */

    g = threadIdx.x / VLM_WARP * a.run;
    at = g * VLM_LOADS(FORM) + threadIdx.x % VLM_WARP * 8;

    if (at < a.groups * VLM_LOADS(FORM)) {
        vlm_prefetch(vlm_tile_at<FORM>(a, tile) + at);
    }

    a.in.q = reinterpret_cast<unsigned *>(room);
    a.in.s = reinterpret_cast<float *>(room + a.T * a.in.q_stride * 4);
    vlm_ready_rows<VLM_IS_INT8(FORM)>(a.in, 0, a.T, sums);

    __syncthreads();
}


/* Groups [g, end) of this warp's run; tile is where the 16 weight rows begin. */
template <int FORM>
static __device__ __forceinline__ void
vlm_sum_run(const vlm_product_t &a, const uint4 *tile, uint32_t g, uint32_t end, float (&sum)[4])
{
    uint4            w[2 * VLM_AHEAD], b, first, second;
    float2           s;
    uint32_t         i, lane, t;
    const uint4     *at;
    const unsigned  *q;

    lane = threadIdx.x % VLM_WARP;
    t = lane / 4;
    q = a.in.q + (static_cast<size_t>(t) * a.in.q_stride + lane % 4 * 4);

    for ( /* void */ ; g < end; g += VLM_AHEAD) {

#pragma unroll
        for (i = 0; i < VLM_AHEAD; i++) {
            if (g + i < end) {
                at = tile + (g + i) * VLM_LOADS(FORM);
                w[2 * i] = vlm_load_once(at + lane);

                if (FORM == VLM_FORM_INT4) {
                    w[2 * i + 1].x = vlm_numbers4(at);
                } else {
                    w[2 * i + 1] = vlm_load_once(at + VLM_WARP + lane);
                }
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

                if (VLM_IS_INT8(FORM) && lane % 4 * 2 < a.T) {
                    s = *reinterpret_cast<const float2 *>(a.in.s + (g + i) * a.in.s_stride
                                                          + lane % 4 * 2);
                }

                first = w[2 * i];
                second = w[2 * i + 1];

                if (FORM == VLM_FORM_INT4) {
                    vlm_unpack4(w[2 * i], w[2 * i + 1].x, &first, &second);
                }

                vlm_add_group<VLM_IS_INT8(FORM)>(sum, first, second, b, s);
            }
        }
    }
}


/* Each warp's part of a tile, to parts [VLM_CUDA_PARTS][VLM_CUDA_TILE][VLM_FEW]; then a barrier. */
template <int FORM>
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
        vlm_sum_run<FORM>(a, vlm_tile_at<FORM>(a, tile), g, end, sum);
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
