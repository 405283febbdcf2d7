/*
 * Device functions that the kernels share: bf16 as storage, sums in a fixed order, quantisation to
 * int8, wide loads, and tensor cores behind functions that document their fragments.
 *
 * nvcc compiles the file, and for the emulator under emu/ a host compiler does, with VLM_EMU
 * defined.  Device code calls fmaf() where a product is to be fused: the Makefile turns nvcc's own
 * fusing off, so that a sum has the same bits in every kernel and in the emulator.
 *
 * No kernel may use a stack: sinf() and cosf() would need one, vlm_sincos() does not.
 */

#ifndef VLM_COMMON_CUH
#define VLM_COMMON_CUH

#ifdef VLM_EMU
#include "emu/cuda_emu.h"
#else
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#endif

extern "C" {
#include "ops/cuda.h"
#include "format/turn.h"
}

#define VLM_WARP  32
#define VLM_ALL   0xffffffffu

#ifdef VLM_EMU

#define VLM_ARCH  VLM_EMU

#else

#ifdef __CUDA_ARCH__
#define VLM_ARCH  __CUDA_ARCH__
#else
#define VLM_ARCH  0                    /* the host's pass over the source */
#endif

#define VLM_SHARED(T, name, n)    __shared__ T  name[n]
#define VLM_SHARED_DYNAMIC(name)  extern __shared__ __align__(128) unsigned char  name[]

#endif


/* ---- bf16 --------------------------------------------------------------------------------- */

typedef uint16_t  vlm_bf16_t;

static __device__ __forceinline__ float
vlm_from_bf16(vlm_bf16_t b)
{
    return __uint_as_float(static_cast<unsigned>(b) << 16);
}


/* Rounds to nearest, ties to even, as engine/format/bf16.h does; a NaN remains one. */
static __device__ __forceinline__ vlm_bf16_t
vlm_to_bf16(float f)
{
    unsigned  u = __float_as_uint(f);

    if ((u & 0x7fffffff) > 0x7f800000) {
        return static_cast<vlm_bf16_t>(u >> 16 | 0x40);
    }

    return static_cast<vlm_bf16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}


/* Two values in a register; the first is in the lower half, as in memory. */
static __device__ __forceinline__ unsigned
vlm_pack_bf16(float first, float second)
{
    return vlm_to_bf16(first) | static_cast<unsigned>(vlm_to_bf16(second)) << 16;
}


static __device__ __forceinline__ float2
vlm_unpack_bf16(unsigned two)
{
    return make_float2(__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u));
}


/* ---- sums --------------------------------------------------------------------------------- */

/* The sum over a warp, in all its lanes: pairs 16 lanes apart first, then 8, 4, 2, 1. */
static __device__ __forceinline__ float
vlm_warp_sum(float v)
{
#pragma unroll
    for (int m = VLM_WARP / 2; m > 0; m /= 2) {
        v += __shfl_xor_sync(VLM_ALL, v, m);
    }

    return v;
}


static __device__ __forceinline__ float
vlm_warp_max(float v)
{
#pragma unroll
    for (int m = VLM_WARP / 2; m > 0; m /= 2) {
        v = fmaxf(v, __shfl_xor_sync(VLM_ALL, v, m));
    }

    return v;
}


/*
 * The sum over a block of whole warps, in all threads: warps are added in their order.  warps is
 * shared, [VLM_WARP], and may be used again after the next __syncthreads().
 */
static __device__ __forceinline__ float
vlm_block_sum(float v, float *warps)
{
    unsigned  warp, n;

    v = vlm_warp_sum(v);
    warp = threadIdx.x / VLM_WARP;
    n = blockDim.x / VLM_WARP;

    if (threadIdx.x % VLM_WARP == 0) {
        warps[warp] = v;
    }

    __syncthreads();

    for (v = warps[0], warp = 1; warp < n; warp++) {
        v += warps[warp];
    }

    return v;
}


/* ---- between blocks ----------------------------------------------------------------------- */

/*
 * Returns whether this block is the last of n to call it; the last one sees the stores of the
 * others.  ticket is 0 before and after; number is shared.
 */
static __device__ __forceinline__ bool
vlm_come_last(unsigned *ticket, uint32_t n, unsigned *number)
{
    __threadfence();
    __syncthreads();

    if (threadIdx.x == 0) {
        *number = atomicInc(ticket, n - 1);
    }

    __syncthreads();
    __threadfence();

    return *number == n - 1;
}


/* ---- int8, as ops/ops.h defines it -------------------------------------------------------- */

#define VLM_QUAD_LANES  (VLM_BLOCK / 4)            /* lanes of a block, 4 values each */

/*
 * The bits of the largest of four values without their signs, which compare as the values do;
 * values that are not finite come last.
 */
static __device__ __forceinline__ unsigned
vlm_largest_bits(float4 v)
{
    unsigned  top, b;

    top = __float_as_uint(v.x) & 0x7fffffff;
    b = __float_as_uint(v.y) & 0x7fffffff;
    top = b > top ? b : top;
    b = __float_as_uint(v.z) & 0x7fffffff;
    top = b > top ? b : top;
    b = __float_as_uint(v.w) & 0x7fffffff;

    return b > top ? b : top;
}


/*
 * The scale of a piece of VLM_PIECE values, eight in each lane of a warp; those beyond a row's end
 * are 0.  All lanes take part and get it, and 127 / max in inverse.
 */
static __device__ __forceinline__ float
vlm_piece_scale(float4 v, float4 u, float *inverse)
{
    float     max;
    unsigned  top, b;

    top = vlm_largest_bits(v);
    b = vlm_largest_bits(u);
    top = b > top ? b : top;

#pragma unroll
    for (int m = VLM_WARP / 2; m > 0; m /= 2) {
        b = __shfl_xor_sync(VLM_ALL, top, m);
        top = b > top ? b : top;
    }

    if (top >= 0x7f800000u) {
        *inverse = 0;
        return __uint_as_float(0x7fc00000u);
    }

    max = __uint_as_float(top);
    *inverse = max >= 0x1p-120f ? 127 / max : 0;

    return max / 127;
}


/* Four values in a register; 0 if the piece has a value that is not finite, whose inverse is 0. */
static __device__ __forceinline__ unsigned
vlm_round_four(float4 v, float inverse)
{
    unsigned  packed;

    if (inverse == 0) {
        return 0;
    }

    packed = static_cast<unsigned>(__float2int_rn(v.x * inverse)) & 0xff;
    packed |= (static_cast<unsigned>(__float2int_rn(v.y * inverse)) & 0xff) << 8;
    packed |= (static_cast<unsigned>(__float2int_rn(v.z * inverse)) & 0xff) << 16;

    return packed | static_cast<unsigned>(__float2int_rn(v.w * inverse)) << 24;
}


/* ---- loads -------------------------------------------------------------------------------- */

/*
 * Loads 16 bytes that are read once.  The load bypasses the first-level cache, so that weights
 * evict nothing from it.
 */
static __device__ __forceinline__ uint4
vlm_load_once(const void *p)
{
#ifdef VLM_EMU
    return *static_cast<const uint4 *>(p);
#else
    uint4  r;

    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));

    return r;
#endif
}


/* Loads a value that another block has just stored; it bypasses the first-level cache. */
static __device__ __forceinline__ float
vlm_load_fresh(const float *p)
{
#ifdef VLM_EMU
    return *p;
#else
    return __ldcg(p);
#endif
}


/* Prefetches the 128 bytes around p into the second-level cache, without waiting. */
static __device__ __forceinline__ void
vlm_prefetch(const void *p)
{
#ifdef VLM_EMU
    (void) *static_cast<const volatile char *>(p);     /* the emulator reads the bytes, so that
                                                          sanitizers check them */
#else
    asm volatile("prefetch.global.L2 [%0];" :: "l"(p));
#endif
}


/*
 * Copies 16 bytes to shared memory asynchronously; both addresses are multiples of 16.  Of them
 * `bytes` are read, the others become zeros.  Copies since the last commit are a group;
 * vlm_copy_wait<n>() waits for all groups but the last n, of this thread alone: a barrier must
 * follow.
 */
static __device__ __forceinline__ void
vlm_copy(void *shared, const void *global, unsigned bytes)
{
#if VLM_ARCH >= 800 && defined(VLM_EMU)
    vlm_emu_copy(VLM_HERE("vlm_copy"), shared, global, bytes);
#elif VLM_ARCH >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::
                 "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "l"(global),
                 "r"(bytes) : "memory");
#else
    if (bytes == 16) {
        *static_cast<uint4 *>(shared) = *static_cast<const uint4 *>(global);
        return;
    }

    for (unsigned i = 0; i < 16; i++) {
        static_cast<char *>(shared)[i] = i < bytes ? static_cast<const char *>(global)[i] : 0;
    }
#endif
}


static __device__ __forceinline__ void
vlm_copy_commit(void)
{
#if VLM_ARCH >= 800 && defined(VLM_EMU)
    vlm_emu_copy_commit();
#elif VLM_ARCH >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}


template <int N>
static __device__ __forceinline__ void
vlm_copy_wait(void)
{
#if VLM_ARCH >= 800 && defined(VLM_EMU)
    vlm_emu_copy_wait(N);
#elif VLM_ARCH >= 800
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
#endif
}


/* ---- tensor cores ------------------------------------------------------------------------- */

/*
 * The instruction of sm_75: A has 8 rows of 16 bytes, B 8 columns of 16 bytes, and a register holds
 * bytes 4 t to 4 t + 3 of row or column g; c[0], c[1] are row g, columns 2 t, 2 t + 1.
 */
static __device__ __forceinline__ void
vlm_mma_s8_small(int &c0, int &c1, unsigned a, unsigned b)
{
#ifdef VLM_EMU
    int  c[2] = { c0, c1 };

    vlm_emu_mma_s8_small(VLM_HERE("vlm_mma_s8_small"), c, a, b);
    c0 = c[0];
    c1 = c[1];
#elif VLM_ARCH > 0
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+r"(c0), "+r"(c1) : "r"(a), "r"(b));
#endif
}


/*
 * c += A B by a warp: A has 16 rows of 32 bytes, B 8 columns of 32 bytes.  With g = lane / 4 and
 * t = lane % 4, a register holds 4 bytes that follow each other in a row or column:
 *
 *   a[0], a[1]   rows g, g + 8, from byte 4 t          b[0]   column g, from byte 4 t
 *   a[2], a[3]   rows g, g + 8, from byte 16 + 4 t     b[1]   column g, from byte 16 + 4 t
 *   c[0], c[1]   row g, columns 2 t, 2 t + 1           c[2], c[3]   row g + 8, the same
 *
 * Bytes are 32 int8, or 16 bf16: the map is the same.
 */
static __device__ __forceinline__ void
vlm_mma_s8(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
#if VLM_ARCH >= 800 && defined(VLM_EMU)
    vlm_emu_mma(VLM_HERE("vlm_mma_s8"), vlm_emu_meet_s8, c, a, b);
#elif VLM_ARCH >= 800
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    for (int half = 0; half < 2; half++) {
        for (int rows = 0; rows < 2; rows++) {
            vlm_mma_s8_small(c[2 * rows], c[2 * rows + 1], a[2 * half + rows], b[half]);
        }
    }
#endif
}


/*
 * From sm_80 on: products of bf16.  Earlier cards refuse bf16 weights, and use attend_segment in
 * place of attend_tensor.
 */
static __device__ __forceinline__ void
vlm_mma_bf16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
#ifdef VLM_EMU
    vlm_emu_mma(VLM_HERE("vlm_mma_bf16"), vlm_emu_meet_bf16, c, a, b);
#elif VLM_ARCH >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    (void) a;
    (void) b;
    c[0] = c[1] = c[2] = c[3] = __uint_as_float(0x7fc00000u);
#endif
}


/* ---- functions ---------------------------------------------------------------------------- */

static __device__ __forceinline__ float
vlm_silu(float x)
{
    return x / (1 + expf(-x));
}


static __device__ __forceinline__ float
vlm_gelu(float x)
{
    return 0.5f * x * (1 + erff(x * 0.70710678118654752f));
}


/* See ops/plain/softmax.h. */
static __device__ __forceinline__ float
vlm_gelu_tanh(float x)
{
    return x / (1 + expf(-1.5957691216f * (x + 0.044715f * x * x * x)));
}


/*
 * sin and cos of |x| up to 2^21, within 2 units in the last place of 1: the nearest multiple of pi
 * / 2 is subtracted in three parts, and the rest, within pi / 4, goes through two polynomials.
 */
static __device__ __forceinline__ void
vlm_sincos(float x, float *sine, float *cosine)
{
    int    quarter;
    float  n, r, z, s, c, swap;

    n = rintf(x * 0.636619772f);
    quarter = static_cast<int>(n);
    r = fmaf(n, -1.57079601f, x);
    r = fmaf(n, -3.13916473e-7f, r);
    r = fmaf(n, -5.39030253e-15f, r);
    z = r * r;

    s = fmaf(fmaf(fmaf(-1.95152959e-4f, z, 8.33216087e-3f), z, -1.66666546e-1f), z * r, r);
    c = fmaf(fmaf(fmaf(2.44331571e-5f, z, -1.38873163e-3f), z, 4.16666457e-2f), z * z,
             fmaf(z, -0.5f, 1));

    if (quarter & 1) {
        swap = s;
        s = c;
        c = -swap;
    }

    *sine = quarter & 2 ? -s : s;
    *cosine = quarter & 2 ? -c : c;
}

#endif
