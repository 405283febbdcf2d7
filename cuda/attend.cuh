/*
 * Attention, shared by attend.cu and segments.cu: a block of threads and a tile of query vectors
 * walk along keys and values, with a running maximum, all sums in f32.
 *
 * 128 threads are 8 groups of 16 lanes; a group has Q of the tile's 8 Q query vectors.  Of a tile
 * of 64 keys a lane has keys lane, lane + 16, ...; of a head's values it has lane, lane + 16, ....
 * Heads are padded with zeros to 16 D values.  A query vector's result depends on its own keys
 * alone, not on Q nor on the other vectors of the tile, because masked keys change nothing.
 */

#ifndef VLM_ATTEND_CUH
#define VLM_ATTEND_CUH

#include "device.h"

#define VLM_ATTEND_THREADS  128
#define VLM_GROUPS          8
#define VLM_LANES           16
#define VLM_KEYS            64         /* of a tile */
#define VLM_NEVER           (-__uint_as_float(0x7f800000u))            /* -infinity */

template <int D, int Q>
struct alignas(16) vlm_attend_shared_t {
    enum { ROW = VLM_LANES * D + 8 };  /* 16 bytes more: rows begin in different banks */

    vlm_bf16_t  q[VLM_GROUPS * Q][ROW];
    vlm_bf16_t  v[VLM_KEYS][ROW];

    union {                            /* keys; after their product, weights */
        vlm_bf16_t  k[VLM_KEYS][ROW];
        float       p[VLM_GROUPS * Q][VLM_KEYS];
    };
};

template <int D, int Q>
struct vlm_attend_state_t {            /* of this lane */
    float  m[Q], l[Q];                 /* maximum, sum of weights */
    float  o[Q][D];                    /* sums of values, not yet divided */
};


template <int D, int Q>
static __device__ __forceinline__ void
vlm_attend_clear(vlm_attend_state_t<D, Q> &s)
{
#pragma unroll
    for (int i = 0; i < Q; i++) {
        s.m[i] = VLM_NEVER;
        s.l[i] = 0;

#pragma unroll
        for (int j = 0; j < D; j++) {
            s.o[i][j] = 0;
        }
    }
}


/* The factor that rescales sums from maximum m to maximum most. */
static __device__ __forceinline__ float
vlm_attend_scale(float m, float most)
{
    return expf(m - (most == VLM_NEVER ? 0 : most));
}


/* Adds a run of keys to the runs before it; the order of runs is the order of keys. */
template <int D, int Q>
static __device__ __forceinline__ void
vlm_attend_fold(vlm_attend_state_t<D, Q> &to, const vlm_attend_state_t<D, Q> &run)
{
    float  most, a, b;

#pragma unroll
    for (int i = 0; i < Q; i++) {
        most = fmaxf(to.m[i], run.m[i]);
        a = vlm_attend_scale(to.m[i], most);
        b = vlm_attend_scale(run.m[i], most);
        to.m[i] = most;
        to.l[i] = to.l[i] * a + run.l[i] * b;

#pragma unroll
        for (int j = 0; j < D; j++) {
            to.o[i][j] = to.o[i][j] * a + run.o[i][j] * b;
        }
    }
}


/* Copies n of a tile's rows, hd values each; missing rows and the padding of a head are zeros. */
template <int ROW>
static __device__ __forceinline__ void
vlm_attend_copy(vlm_bf16_t (*to)[ROW], uint32_t rows, const vlm_bf16_t *from, size_t stride,
                uint32_t n, uint32_t hd)
{
    uint32_t           i, r, d;
    const uint32_t     pieces = (ROW - 8) / 8;
    const vlm_bf16_t  *row;

    for (i = threadIdx.x; i < rows * pieces; i += VLM_ATTEND_THREADS) {
        r = i / pieces;
        d = i % pieces * 8;
        row = from + r * stride + d;

        if (hd % 8 == 0) {
            vlm_copy(&to[r][d], r < n && d < hd ? row : from, r < n && d < hd ? 16 : 0);
            continue;
        }

        /* A head that is no multiple of 16 bytes may begin at any address. */

        for (uint32_t j = 0; j < 8; j++) {
            to[r][d + j] = r < n && d + j < hd ? row[j] : 0;
        }
    }
}


/* s [i][j] = q . k of the lane's queries and keys. */
template <int D, int Q>
static __device__ __forceinline__ void
vlm_attend_scores(const vlm_attend_shared_t<D, Q> &sh, uint32_t group, uint32_t lane,
                  float (&s)[Q][4])
{
    uint4   k[4], q;
    float2  a, b;

#pragma unroll
    for (int i = 0; i < Q * 4; i++) {
        s[i / 4][i % 4] = 0;
    }

#pragma unroll 2
    for (int d = 0; d < VLM_LANES * D; d += 8) {

#pragma unroll
        for (int j = 0; j < 4; j++) {
            k[j] = *reinterpret_cast<const uint4 *>(&sh.k[lane + VLM_LANES * j][d]);
        }

#pragma unroll
        for (int i = 0; i < Q; i++) {
            q = *reinterpret_cast<const uint4 *>(&sh.q[group * Q + i][d]);

#pragma unroll
            for (int j = 0; j < 4; j++) {
                a = vlm_unpack_bf16(q.x);
                b = vlm_unpack_bf16(k[j].x);
                s[i][j] = fmaf(a.y, b.y, fmaf(a.x, b.x, s[i][j]));
                a = vlm_unpack_bf16(q.y);
                b = vlm_unpack_bf16(k[j].y);
                s[i][j] = fmaf(a.y, b.y, fmaf(a.x, b.x, s[i][j]));
                a = vlm_unpack_bf16(q.z);
                b = vlm_unpack_bf16(k[j].z);
                s[i][j] = fmaf(a.y, b.y, fmaf(a.x, b.x, s[i][j]));
                a = vlm_unpack_bf16(q.w);
                b = vlm_unpack_bf16(k[j].w);
                s[i][j] = fmaf(a.y, b.y, fmaf(a.x, b.x, s[i][j]));
            }
        }
    }
}


/* Turns scores into weights, and scales the sums so far to the new maximum. */
template <int D, int Q>
static __device__ __forceinline__ void
vlm_attend_weigh(vlm_attend_state_t<D, Q> &st, float (&s)[Q][4])
{
    float  most, sum, a;

#pragma unroll
    for (int i = 0; i < Q; i++) {
        most = fmaxf(fmaxf(s[i][0], s[i][1]), fmaxf(s[i][2], s[i][3]));

#pragma unroll
        for (int m = VLM_LANES / 2; m > 0; m /= 2) {
            most = fmaxf(most, __shfl_xor_sync(VLM_ALL, most, m));
        }

        most = fmaxf(most, st.m[i]);
        a = vlm_attend_scale(st.m[i], most);
        st.m[i] = most;
        sum = 0;

#pragma unroll
        for (int j = 0; j < 4; j++) {
            s[i][j] = vlm_attend_scale(s[i][j], most);
            sum += s[i][j];
        }

#pragma unroll
        for (int m = VLM_LANES / 2; m > 0; m /= 2) {
            sum += __shfl_xor_sync(VLM_ALL, sum, m);
        }

        st.l[i] = st.l[i] * a + sum;

#pragma unroll
        for (int j = 0; j < D; j++) {
            st.o[i][j] *= a;
        }
    }
}


template <int D, int Q>
static __device__ __forceinline__ void
vlm_attend_values(const vlm_attend_shared_t<D, Q> &sh, uint32_t group, uint32_t lane,
                  vlm_attend_state_t<D, Q> &st)
{
    float   v;
    float4  p[Q];

#pragma unroll 1
    for (int j = 0; j < VLM_KEYS; j += 4) {

#pragma unroll
        for (int i = 0; i < Q; i++) {
            p[i] = *reinterpret_cast<const float4 *>(&sh.p[group * Q + i][j]);
        }

#pragma unroll
        for (int d = 0; d < D; d++) {

#pragma unroll
            for (int n = 0; n < 4; n++) {
                v = vlm_from_bf16(sh.v[j + n][lane + VLM_LANES * d]);

#pragma unroll
                for (int i = 0; i < Q; i++) {
                    st.o[i][d] = fmaf(n == 0 ? p[i].x : n == 1 ? p[i].y : n == 2 ? p[i].z : p[i].w,
                                      v, st.o[i][d]);
                }
            }
        }
    }
}


typedef struct {
    const vlm_bf16_t  *k, *v;          /* row 0 of the keys and values */
    size_t             stride;         /* from row to row */
    uint32_t           hd;
    float              scale, slope;   /* slope of ALiBi; 0: none */
} vlm_attend_keys_t;


/*
 * Attends over keys [first, end), first a multiple of VLM_KEYS; a query sees those below its limit.
 * The tile's queries are in shared memory.  All threads of the block take part.
 */
template <int D, int Q>
static __device__ __forceinline__ void
vlm_attend_run(vlm_attend_shared_t<D, Q> &sh, const vlm_attend_keys_t &a, uint32_t first,
               uint32_t end, const uint32_t (&limit)[Q], vlm_attend_state_t<D, Q> &st)
{
    float     s[Q][4];
    uint32_t  key, n, group, lane;

    group = threadIdx.x / VLM_LANES;
    lane = threadIdx.x % VLM_LANES;

    for (key = first; key < end; key += VLM_KEYS) {
        n = min(end - key, static_cast<uint32_t>(VLM_KEYS));

        __syncthreads();               /* the previous tile's values are no longer needed */

        vlm_attend_copy(sh.k, VLM_KEYS, a.k + key * a.stride, a.stride, n, a.hd);
        vlm_attend_copy(sh.v, VLM_KEYS, a.v + key * a.stride, a.stride, n, a.hd);
        vlm_copy_commit();
        vlm_copy_wait<0>();

        __syncthreads();

        vlm_attend_scores<D, Q>(sh, group, lane, s);

#pragma unroll
        for (int i = 0; i < Q * 4; i++) {
            s[i / 4][i % 4] = key + lane + VLM_LANES * (i % 4) < limit[i / 4]
                              ? s[i / 4][i % 4] * a.scale : VLM_NEVER;
        }

        if (a.slope != 0) {

#pragma unroll
            for (int i = 0; i < Q * 4; i++) {
                s[i / 4][i % 4] = fmaf(a.slope, __int2float_rn(static_cast<int>(
                    key + lane + VLM_LANES * (i % 4) - (limit[i / 4] - 1))), s[i / 4][i % 4]);
            }
        }

        vlm_attend_weigh<D, Q>(st, s);

        __syncthreads();               /* keys are no longer needed; weights take their place */

#pragma unroll
        for (int i = 0; i < Q * 4; i++) {
            sh.p[group * Q + i / 4][lane + VLM_LANES * (i % 4)] = s[i / 4][i % 4];
        }

        __syncwarp();

        vlm_attend_values<D, Q>(sh, group, lane, st);
    }
}

#endif
