/*
 * The device's side of products on tensor cores: weights are the 16 rows and activations the 8
 * columns of a fragment.  See pack.cu and ready.cuh for both orders of bytes.
 *
 * With up to 8 activation rows, the 8 warps of a block divide the K of 16 weight rows among them;
 * a block computes one such tile after the other, and a warp has all loads of a piece in flight at
 * once.
 *
 * In int8 the products of a piece of 256 values, which has one scale, are added to the bits of the
 * float 1.5 * 2^23.  While their sum is below 2^22 in magnitude, the result has the bits of 1.5 *
 * 2^23 plus the sum, so a subtraction converts it to a float: 256 times -128 times 127 is less.
 */

#ifndef VLM_PRODUCT_CUH
#define VLM_PRODUCT_CUH

#include "ready.cuh"

#define VLM_FEW_THREADS  (VLM_CUDA_PARTS * VLM_WARP)
#define VLM_FEW_PARTS    (VLM_CUDA_PARTS * VLM_CUDA_TILE * VLM_FEW)

#define VLM_AHEAD        4             /* groups whose loads are in flight together: a piece */
#define VLM_MAGIC        0x4b400000
#define VLM_MAGIC_F32    12582912.0f

static_assert(VLM_FEW_THREADS == VLM_READY_THREADS, "a block of both");
static_assert(VLM_AHEAD == VLM_PIECE_GROUPS, "a round of a run");


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

/* Sums [row g: columns 2 t, 2 t + 1; row g + 8], and of int8 those of a piece so far. */
typedef struct {
    float  sum[4];
    int    dot[4];
} vlm_sums_t;


static __device__ __forceinline__ void
vlm_begin_piece(vlm_sums_t &s)
{
    s.dot[0] = s.dot[1] = s.dot[2] = s.dot[3] = VLM_MAGIC;
}


/* Adds a group: bf16 products to sum, those of int8 to dot. */
template <bool INT8>
static __device__ __forceinline__ void
vlm_add_group(float (&sum)[4], int (&dot)[4], uint4 first, uint4 second, uint4 b)
{
    unsigned  a0[4] = { first.x, first.y, first.z, first.w };
    unsigned  a1[4] = { second.x, second.y, second.z, second.w };
    unsigned  b0[2] = { b.x, b.y }, b1[2] = { b.z, b.w };

    if (INT8) {
        vlm_mma_s8(dot, a0, b0);
        vlm_mma_s8(dot, a1, b1);
    } else {
        vlm_mma_bf16(sum, a0, b0);
        vlm_mma_bf16(sum, a1, b1);
    }
}


/* The end of a piece of int8: by has the scales of both columns. */
static __device__ __forceinline__ void
vlm_end_piece(vlm_sums_t &s, float2 by)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        s.sum[i] = fmaf(i % 2 == 0 ? by.x : by.y,
                        __int_as_float(s.dot[i]) - VLM_MAGIC_F32, s.sum[i]);
    }

    vlm_begin_piece(s);
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


/* The lane's pieces of group g of 16 weight rows; of int4 the second has its numbers. */
template <int FORM>
static __device__ __forceinline__ void
vlm_load_group(const uint4 *tile, uint32_t g, uint4 (&w)[2])
{
    tile += g * VLM_LOADS(FORM);
    w[0] = vlm_load_once(tile + threadIdx.x % VLM_WARP);

    if (FORM == VLM_FORM_INT4) {
        w[1].x = vlm_numbers4(tile);
    } else {
        w[1] = vlm_load_once(tile + VLM_WARP + threadIdx.x % VLM_WARP);
    }
}


/* The activations of group g for the lane's column; beyond the rows there are zeros. */
static __device__ __forceinline__ uint4
vlm_activations(const vlm_product_t &a, uint32_t g)
{
    const uint32_t  lane = threadIdx.x % VLM_WARP, t = lane / 4;

    if (t >= a.T) {
        return make_uint4(0, 0, 0, 0);
    }

    return *reinterpret_cast<const uint4 *>(a.in.q + static_cast<size_t>(t) * a.in.q_stride
                                            + g * 16 + lane % 4 * 4);
}


/* The scales of group g for the lane's two columns of sums. */
static __device__ __forceinline__ float2
vlm_scales(const vlm_product_t &a, uint32_t g)
{
    const uint32_t  t = threadIdx.x % 4 * 2;

    if (t >= a.T) {
        return make_float2(0, 0);
    }

    return *reinterpret_cast<const float2 *>(a.in.s + g * a.in.s_stride + t);
}


/* Group g of a piece of few rows.  The products of int8 groups do not wait for each other. */
template <int FORM>
static __device__ __forceinline__ void
vlm_use_group(const vlm_product_t &a, uint32_t g, const uint4 (&w)[2], vlm_sums_t &s)
{
    int    dot[4] = { 0, 0, 0, 0 };
    uint4  first = w[0], second = w[1];

    if (FORM == VLM_FORM_INT4) {
        vlm_unpack4(w[0], w[1].x, &first, &second);
    }

    vlm_add_group<VLM_IS_INT8(FORM)>(s.sum, dot, first, second, vlm_activations(a, g));

#pragma unroll
    for (int i = 0; i < 4; i++) {
        s.dot[i] += dot[i];
    }
}


/* Groups g to end of this warp's run, a piece of int8 after the other. */
template <int FORM>
static __device__ __forceinline__ void
vlm_sum_run(const vlm_product_t &a, const uint4 *tile, uint32_t g, uint32_t end, vlm_sums_t &s)
{
    uint4     w[VLM_AHEAD][2];
    uint32_t  i;

    for ( /* void */ ; g < end; g += VLM_AHEAD) {

#pragma unroll
        for (i = 0; i < VLM_AHEAD; i++) {
            if (g + i < end) {
                vlm_load_group<FORM>(tile, g + i, w[i]);
            }
        }

#pragma unroll
        for (i = 0; i < VLM_AHEAD; i++) {
            if (g + i < end) {
                vlm_use_group<FORM>(a, g + i, w[i], s);
            }
        }

        if (VLM_IS_INT8(FORM)) {
            vlm_end_piece(s, vlm_scales(a, g));
        }
    }
}


/* Each warp's part of a tile, to parts [VLM_CUDA_PARTS][VLM_CUDA_TILE][VLM_FEW]; then a barrier. */
template <int FORM>
static __device__ __forceinline__ void
vlm_sum_tile(const vlm_product_t &a, uint32_t tile, float *parts)
{
    uint32_t    i, lane, g;
    vlm_sums_t  s;

    s.sum[0] = s.sum[1] = s.sum[2] = s.sum[3] = 0;
    vlm_begin_piece(s);

    g = threadIdx.x / VLM_WARP * a.run;
    vlm_sum_run<FORM>(a, vlm_tile_at<FORM>(a, tile), g, min(g + a.run, a.groups), s);

    lane = threadIdx.x % VLM_WARP;
    i = (threadIdx.x / VLM_WARP * VLM_CUDA_TILE + lane / 4) * VLM_FEW + lane % 4 * 2;
    parts[i] = s.sum[0];
    parts[i + 1] = s.sum[1];
    parts[i + 8 * VLM_FEW] = s.sum[2];
    parts[i + 8 * VLM_FEW + 1] = s.sum[3];
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
