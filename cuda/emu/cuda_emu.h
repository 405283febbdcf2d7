/*
 * The part of CUDA's C++ that our kernels use, for a host compiler: included by common.cuh in place
 * of CUDA's headers when VLM_EMU is defined.  Its value is the architecture that is emulated: 750
 * or 900.
 *
 * Types and names are CUDA's.  This file defines each name; grid.cpp schedules the threads.
 */

#ifndef VLM_CUDA_EMU_H
#define VLM_CUDA_EMU_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "grid.h"

#define __global__      static
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __restrict__    __restrict
#define __launch_bounds__(...)
#define __align__(n)    __attribute__((aligned(n)))

#define threadIdx  vlm_emu.thread
#define blockIdx   vlm_emu.block
#define blockDim   vlm_emu.threads
#define gridDim    vlm_emu.blocks

struct float2 { float x, y; } __attribute__((aligned(8)));
struct float4 { float x, y, z, w; } __attribute__((aligned(16)));
struct int2 { int x, y; } __attribute__((aligned(8)));
struct int4 { int x, y, z, w; } __attribute__((aligned(16)));
struct uint2 { unsigned x, y; } __attribute__((aligned(8)));
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16)));

struct dim3 {
    unsigned  x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) { }
};

static inline float2 make_float2(float x, float y) { return { x, y }; }
static inline float4 make_float4(float x, float y, float z, float w) { return { x, y, z, w }; }
static inline int2 make_int2(int x, int y) { return { x, y }; }
static inline int4 make_int4(int x, int y, int z, int w) { return { x, y, z, w }; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return { x, y }; }

static inline uint4
make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return { x, y, z, w };
}


/* ---- shared memory ------------------------------------------------------------------------ */

/* A reference to T[n], as __shared__ would give an array; the key is a variable of the kernel's. */
#define VLM_SHARED(T, name, n)                                                                   \
    static char  name##_key;                                                                     \
    T  (&name)[n] = *static_cast<T (*)[n]>(vlm_emu_shared(&name##_key, sizeof(T[n])))

#define VLM_SHARED_DYNAMIC(name)                                                                 \
    unsigned char  *name = static_cast<unsigned char *>(vlm_emu_dynamic())


/* ---- one thread's arithmetic -------------------------------------------------------------- */

template <class To, class From>
static inline To
vlm_emu_bits(From from)
{
    To  to;

    static_assert(sizeof(To) == sizeof(From), "as many bits");
    memcpy(&to, &from, sizeof(to));

    return to;
}


static inline float __int_as_float(int i) { return vlm_emu_bits<float>(i); }
static inline float __uint_as_float(unsigned i) { return vlm_emu_bits<float>(i); }
static inline int __float_as_int(float f) { return vlm_emu_bits<int>(f); }
static inline unsigned __float_as_uint(float f) { return vlm_emu_bits<unsigned>(f); }
static inline int __float2int_rn(float f) { return static_cast<int>(nearbyintf(f)); }
static inline float __int2float_rn(int i) { return static_cast<float>(i); }
static inline int __popc(unsigned u) { return __builtin_popcount(u); }
static inline int __clz(int i) { return i == 0 ? 32 : __builtin_clz(static_cast<unsigned>(i)); }
static inline int __ffs(int i) { return __builtin_ffs(i); }
static inline unsigned __brev(unsigned u)
{
    unsigned  r = 0;

    for (int i = 0; i < 32; i++) {
        r |= (u >> i & 1) << (31 - i);
    }

    return r;
}

template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T max(T a, T b) { return a < b ? b : a; }
template <class T> static inline T __ldg(const T *p) { return *p; }


/* Four products of signed bytes, added up. */
static inline int
__dp4a(int a, int b, int c)
{
    for (int i = 0; i < 4; i++) {
        c += static_cast<int8_t>(a >> 8 * i) * static_cast<int8_t>(b >> 8 * i);
    }

    return c;
}


/* Bytes of y:x (0 to 7) chosen by four hexadecimal digits of s. */
static inline unsigned
__byte_perm(unsigned x, unsigned y, unsigned s)
{
    uint64_t  both = static_cast<uint64_t>(y) << 32 | x;
    unsigned  r = 0;

    for (int i = 0; i < 4; i++) {
        r |= static_cast<unsigned>(both >> 8 * (s >> 4 * i & 7) & 0xff) << 8 * i;
    }

    return r;
}


/* ---- between threads ---------------------------------------------------------------------- */

#define VLM_HERE(name)  (vlm_place_t { __FILE__, __LINE__, name })

#define __syncthreads()   vlm_emu_barrier(VLM_HERE("__syncthreads"))
#define __syncwarp(...)   vlm_emu_sync_warp(VLM_HERE("__syncwarp"), ##__VA_ARGS__)
#define __threadfence()        static_cast<void>(0)
#define __threadfence_block()  static_cast<void>(0)

#define __shfl_sync(m, v, l, ...)                                                                \
    vlm_emu_shuffle(VLM_HERE("__shfl_sync"), VLM_SHFL_LANE, m, v, l, ##__VA_ARGS__)
#define __shfl_xor_sync(m, v, l, ...)                                                            \
    vlm_emu_shuffle(VLM_HERE("__shfl_xor_sync"), VLM_SHFL_XOR, m, v, l, ##__VA_ARGS__)
#define __shfl_up_sync(m, v, l, ...)                                                             \
    vlm_emu_shuffle(VLM_HERE("__shfl_up_sync"), VLM_SHFL_UP, m, v, l, ##__VA_ARGS__)
#define __shfl_down_sync(m, v, l, ...)                                                           \
    vlm_emu_shuffle(VLM_HERE("__shfl_down_sync"), VLM_SHFL_DOWN, m, v, l, ##__VA_ARGS__)

#define __ballot_sync(m, p)  vlm_emu_ballot(VLM_HERE("__ballot_sync"), m, p)
#define __any_sync(m, p)     (vlm_emu_ballot(VLM_HERE("__any_sync"), m, p) != 0)
#define __all_sync(m, p)     (vlm_emu_ballot(VLM_HERE("__all_sync"), m, !(p)) == 0)

typedef enum { VLM_SHFL_LANE, VLM_SHFL_XOR, VLM_SHFL_UP, VLM_SHFL_DOWN } vlm_shuffle_t;

void vlm_emu_sync_warp(vlm_place_t at, unsigned mask = 0xffffffffu);
unsigned vlm_emu_ballot(vlm_place_t at, unsigned mask, int predicate);
uint64_t vlm_emu_shuffle_bits(vlm_place_t at, vlm_shuffle_t how, unsigned mask, uint64_t value,
                              unsigned lane, unsigned width);

template <class T>
static inline T
vlm_emu_shuffle(vlm_place_t at, vlm_shuffle_t how, unsigned mask, T value, unsigned lane,
                unsigned width = 32)
{
    uint64_t  bits = 0;

    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "what a shuffle can carry");
    memcpy(&bits, &value, sizeof(T));
    bits = vlm_emu_shuffle_bits(at, how, mask, bits, lane, width);
    memcpy(&value, &bits, sizeof(T));

    return value;
}


/* Fibres do not interrupt each other: code without a meeting is atomic. */

template <class T>
static inline T
vlm_emu_swap(T *p, T value)
{
    T  old = *p;

    *p = value;

    return old;
}

template <class T> static inline T atomicAdd(T *p, T v) { return vlm_emu_swap<T>(p, *p + v); }
template <class T> static inline T atomicOr(T *p, T v) { return vlm_emu_swap<T>(p, *p | v); }
template <class T> static inline T atomicExch(T *p, T v) { return vlm_emu_swap<T>(p, v); }

template <class T>
static inline T
atomicMax(T *p, T v)
{
    return vlm_emu_swap<T>(p, *p < v ? v : *p);
}


template <class T>
static inline T
atomicMin(T *p, T v)
{
    return vlm_emu_swap<T>(p, v < *p ? v : *p);
}


template <class T>
static inline T
atomicCAS(T *p, T expected, T v)
{
    return vlm_emu_swap<T>(p, *p == expected ? v : *p);
}


/* Counts up to most, then from 0 again: a ticket. */
static inline unsigned
atomicInc(unsigned *p, unsigned most)
{
    return vlm_emu_swap<unsigned>(p, *p >= most ? 0 : *p + 1);
}


/* ---- tensor cores ------------------------------------------------------------------------- */

/*
 * D = A B + C of a warp; the comments at vlm_mma_* in common.cuh say which lane has which elements.
 * A lane's registers are copied here, where sanitizers see the kernel's arrays: the products
 * themselves are compiled without them.
 */
typedef struct {
    unsigned  a[4], b[2], c[4];
} vlm_lane_t;

void vlm_emu_meet_s8(vlm_place_t at, vlm_lane_t *lane);
void vlm_emu_meet_s8_small(vlm_place_t at, vlm_lane_t *lane);      /* a[0], b[0], c[0] and c[1] */
void vlm_emu_meet_bf16(vlm_place_t at, vlm_lane_t *lane);


template <class T>
static inline void
vlm_emu_mma(vlm_place_t at, void (*meet)(vlm_place_t, vlm_lane_t *), T *c, const unsigned *a,
            const unsigned *b)
{
    vlm_lane_t  lane;

    memcpy(lane.a, a, sizeof(lane.a));
    memcpy(lane.b, b, sizeof(lane.b));
    memcpy(lane.c, c, sizeof(lane.c));
    meet(at, &lane);
    memcpy(c, lane.c, sizeof(lane.c));
}


static inline void
vlm_emu_mma_s8_small(vlm_place_t at, int *c, unsigned a, unsigned b)
{
    vlm_lane_t  lane = { { a }, { b }, { 0 } };

    memcpy(lane.c, c, 2 * sizeof(int));
    vlm_emu_meet_s8_small(at, &lane);
    memcpy(c, lane.c, 2 * sizeof(int));
}

#endif
