/*
 * attend_segments: the patches of a window, or of a whole picture, each over all of them.
 *
 * From sm_80 on it uses tensor cores: a warp has 16 queries, whose scores with 64 keys stay in its
 * registers, become weights there and are the next product's operand.  A weight is used as two
 * bf16, the second being the rounding error of the first, so that only the order of sums differs.
 * sm_75 has no products of bf16: there keys are shared out among lanes, as in attend.cuh.  cost.h
 * bounds the number of segments and tiles of a launch.
 */

#include "attend.cuh"

#define Q            4                 /* query vectors of a group of lanes, on sm_75 */
#define TILE         (VLM_GROUPS * Q)
#define TENSOR_TILE  64                /* query vectors of a block, from sm_80 on: 16 a warp */
#define COLUMNS      (VLM_KEYS / 8)    /* fragments of 8 keys */

typedef struct {
    const vlm_bf16_t  *q, *k, *v;      /* [P][heads hd] */
    vlm_bf16_t        *o;
    const uint32_t    *border;         /* of this launch's segments */
    uint32_t           tile;           /* of each segment: the launch's first */
    uint32_t           heads, hd;
    float              scale;
} args_t;

typedef struct {                       /* a block's share: rows row to row + tile of a segment */
    size_t    at, stride;              /* of the segment's head in q, k, v, o; from row to row */
    uint32_t  n, row;                  /* patches of the segment */
} share_t;


/* blockIdx.x is a segment, y a head, z a tile of the segment's rows, counted from a.tile. */
static __device__ __forceinline__ share_t
share_of(const args_t &a, uint32_t tile)
{
    share_t   s;
    uint32_t  first = a.border[blockIdx.x];

    s.stride = static_cast<size_t>(a.heads) * a.hd;
    s.at = first * s.stride + blockIdx.y * a.hd;
    s.n = a.border[blockIdx.x + 1] - first;
    s.row = (a.tile + blockIdx.z) * tile;

    return s;
}


/* ---- sm_75 -------------------------------------------------------------------------------- */

template <int D>
__global__ void __launch_bounds__(VLM_ATTEND_THREADS)
attend_segment(args_t a)
{
    share_t                   s;
    uint32_t                  i, d, limit[Q], group;
    vlm_attend_keys_t         k;
    vlm_attend_state_t<D, Q>  all;

    typedef vlm_attend_shared_t<D, Q>  shared_t;
    VLM_SHARED(shared_t, sh, 1);

    s = share_of(a, TILE);

    if (s.row >= s.n) {
        return;                        /* the whole block: others are longer */
    }

    group = threadIdx.x / VLM_LANES;

    for (i = threadIdx.x; i < TILE * VLM_LANES * D; i += VLM_ATTEND_THREADS) {
        d = i % (VLM_LANES * D);
        sh[0].q[i / (VLM_LANES * D)][d] = s.row + i / (VLM_LANES * D) < s.n && d < a.hd
                                          ? a.q[s.at + (s.row + i / (VLM_LANES * D)) * s.stride + d]
                                          : 0;
    }

#pragma unroll
    for (int j = 0; j < Q; j++) {
        limit[j] = s.row + group * Q + j < s.n ? s.n : 0;
    }

    k.k = a.k + s.at;
    k.v = a.v + s.at;
    k.stride = s.stride;
    k.hd = a.hd;
    k.scale = a.scale;
    k.slope = 0;
    vlm_attend_clear(all);
    vlm_attend_run<D, Q>(sh[0], k, 0, s.n, limit, all);

#pragma unroll
    for (int j = 0; j < Q * D; j++) {
        d = threadIdx.x % VLM_LANES + VLM_LANES * (j % D);

        if (limit[j / D] > 0 && d < a.hd) {
            a.o[s.at + (s.row + group * Q + j / D) * s.stride + d] = vlm_to_bf16(all.o[j / D][j % D]
                                                                                / all.l[j / D]);
        }
    }
}


/* ---- tensor cores ------------------------------------------------------------------------- */

template <int D>
struct alignas(16) tensor_shared_t {
    enum { ROW = VLM_LANES * D + 8 };  /* 16 bytes more: rows begin in different banks */

    vlm_bf16_t  k[VLM_KEYS][ROW], v[VLM_KEYS][ROW];
};

/* Of a lane, with g and t as at vlm_mma_bf16(): rows g and g + 8 of its warp's 16. */
template <int D>
struct tensor_state_t {
    unsigned  q[D][4];                 /* 16 values of the queries each */
    float     s[COLUMNS][4];           /* scores, and then weights, of 8 keys each */
    float     o[2 * D][4];             /* sums of values, of 8 each, not yet divided */
    float     m[2], l[2];              /* maximum, sum of weights */
};


/* Two values of a query; beyond its end and beyond the segment's there are zeros. */
static __device__ __forceinline__ unsigned
two_of_query(const args_t &a, const share_t &s, uint32_t row, uint32_t d)
{
    const vlm_bf16_t  *q = a.q + s.at + (s.row + row) * s.stride + d;

    if (s.row + row >= s.n) {
        return 0;
    }

    return (d < a.hd ? q[0] : 0) | static_cast<unsigned>(d + 1 < a.hd ? q[1] : 0) << 16;
}


template <int D>
static __device__ __forceinline__ void
begin_tensor(const args_t &a, const share_t &s, tensor_state_t<D> &st)
{
    const uint32_t  t = threadIdx.x % 4, row = threadIdx.x / VLM_WARP * 16 + threadIdx.x / 4 % 8;

#pragma unroll
    for (int i = 0; i < D * 4; i++) {
        st.q[i / 4][i % 4] = two_of_query(a, s, row + i % 2 * 8,
                                          i / 4 * 16 + 2 * t + i % 4 / 2 * 8);
    }

#pragma unroll
    for (int i = 0; i < 2 * D * 4; i++) {
        st.o[i / 4][i % 4] = 0;
    }

    st.m[0] = st.m[1] = VLM_NEVER;
    st.l[0] = st.l[1] = 0;
}


/* Scores of the tile's keys, of which there are n. */
template <int D>
static __device__ __forceinline__ void
score(const tensor_shared_t<D> &sh, float scale, uint32_t n, tensor_state_t<D> &st)
{
    unsigned           b[2];
    const uint32_t     g = threadIdx.x / 4 % 8, t = threadIdx.x % 4;
    const vlm_bf16_t  *k;

#pragma unroll
    for (uint32_t j = 0; j < COLUMNS; j++) {
        st.s[j][0] = st.s[j][1] = st.s[j][2] = st.s[j][3] = 0;

#pragma unroll
        for (int i = 0; i < D; i++) {
            k = &sh.k[j * 8 + g][i * 16 + 2 * t];
            b[0] = *reinterpret_cast<const unsigned *>(k);
            b[1] = *reinterpret_cast<const unsigned *>(k + 8);
            vlm_mma_bf16(st.s[j], st.q[i], b);
        }

#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            st.s[j][i] = j * 8 + 2 * t + i % 2 < n ? st.s[j][i] * scale : VLM_NEVER;
        }
    }
}


/* Turns scores into weights, and scales the sums so far to the new maximum. */
template <int D>
static __device__ __forceinline__ void
weigh(tensor_state_t<D> &st)
{
    float  most, sum, by;

#pragma unroll
    for (int r = 0; r < 2; r++) {
        most = st.m[r];

#pragma unroll
        for (int i = 0; i < 2 * COLUMNS; i++) {
            most = fmaxf(most, st.s[i / 2][2 * r + i % 2]);
        }

        most = fmaxf(most, __shfl_xor_sync(VLM_ALL, most, 2));
        most = fmaxf(most, __shfl_xor_sync(VLM_ALL, most, 1));
        by = vlm_attend_scale(st.m[r], most);
        st.m[r] = most;
        sum = 0;

#pragma unroll
        for (int i = 0; i < 2 * COLUMNS; i++) {
            st.s[i / 2][2 * r + i % 2] = vlm_attend_scale(st.s[i / 2][2 * r + i % 2], most);
            sum += st.s[i / 2][2 * r + i % 2];
        }

        sum += __shfl_xor_sync(VLM_ALL, sum, 2);
        sum += __shfl_xor_sync(VLM_ALL, sum, 1);
        st.l[r] = st.l[r] * by + sum;

#pragma unroll
        for (int i = 0; i < 4 * D; i++) {
            st.o[i / 2][2 * r + i % 2] *= by;
        }
    }
}


/* Splits two weights into two pairs of bf16, whose sums they are. */
static __device__ __forceinline__ void
split_two(float x, float y, unsigned *most, unsigned *rest)
{
    float2  v;

    *most = vlm_pack_bf16(x, y);
    v = vlm_unpack_bf16(*most);
    *rest = vlm_pack_bf16(x - v.x, y - v.y);
}


/* Rearranges scores of 16 keys within a lane into a product's operand of weights. */
template <int D>
static __device__ __forceinline__ void
add_values(const tensor_shared_t<D> &sh, tensor_state_t<D> &st)
{
    unsigned        most[4], rest[4], b[2];
    const uint32_t  g = threadIdx.x / 4 % 8, t = threadIdx.x % 4;

#pragma unroll
    for (uint32_t i = 0; i < VLM_KEYS / 16; i++) {

#pragma unroll
        for (int j = 0; j < 4; j++) {
            split_two(st.s[2 * i + j / 2][j % 2 * 2], st.s[2 * i + j / 2][j % 2 * 2 + 1], &most[j],
                      &rest[j]);
        }

#pragma unroll
        for (int j = 0; j < 2 * D; j++) {

#pragma unroll
            for (uint32_t h = 0; h < 2; h++) {
                b[h] = sh.v[i * 16 + h * 8 + 2 * t][j * 8 + g]
                       | static_cast<unsigned>(sh.v[i * 16 + h * 8 + 2 * t + 1][j * 8 + g]) << 16;
            }

            vlm_mma_bf16(st.o[j], most, b);
            vlm_mma_bf16(st.o[j], rest, b);
        }
    }
}


template <int D>
static __device__ __forceinline__ void
store_tensor(const args_t &a, const share_t &s, const tensor_state_t<D> &st)
{
    uint32_t        d, row;
    const uint32_t  t = threadIdx.x % 4;

#pragma unroll
    for (int i = 0; i < 2 * D * 4; i++) {
        row = s.row + threadIdx.x / VLM_WARP * 16 + threadIdx.x / 4 % 8 + i % 4 / 2 * 8;
        d = i / 4 * 8 + 2 * t + i % 2;

        if (row < s.n && d < a.hd) {
            a.o[s.at + row * s.stride + d] = vlm_to_bf16(st.o[i / 4][i % 4] / st.l[i % 4 / 2]);
        }
    }
}


template <int D>
__global__ void __launch_bounds__(VLM_ATTEND_THREADS, D == 5 ? 3 : 2)
attend_tensor(args_t a)
{
    share_t            s;
    uint32_t           key, n;
    tensor_state_t<D>  st;

    typedef tensor_shared_t<D>  shared_t;
    VLM_SHARED(shared_t, sh, 1);

    s = share_of(a, TENSOR_TILE);

    if (s.row >= s.n) {
        return;                        /* the whole block: others are longer */
    }

    begin_tensor<D>(a, s, st);

    for (key = 0; key < s.n; key += VLM_KEYS) {
        n = min(s.n - key, static_cast<uint32_t>(VLM_KEYS));

        __syncthreads();               /* the previous tile is no longer needed */

        vlm_attend_copy(sh[0].k, VLM_KEYS, a.k + s.at + key * s.stride, s.stride, n, a.hd);
        vlm_attend_copy(sh[0].v, VLM_KEYS, a.v + s.at + key * s.stride, s.stride, n, a.hd);
        vlm_copy_commit();
        vlm_copy_wait<0>();

        __syncthreads();

        score<D>(sh[0], a.scale, n, st);
        weigh<D>(st);
        add_values<D>(sh[0], st);
    }

    store_tensor<D>(a, s, st);
}


/* ---- the choice of a kernel --------------------------------------------------------------- */

template <int D>
static void
load(vlm_device_t *d)
{
    VLM_LOAD(d, attend_segment<D>, 0);
    VLM_LOAD(d, attend_tensor<D>, 0);
}


void
vlm_load_segments(vlm_device_t *d)
{
    load<2>(d);
    load<4>(d);
    load<5>(d);
    load<8>(d);
}


/* The cost of a tile, all heads of it: on tensor cores weights are multiplied twice. */
static double
cost_of(const vlm_device_t *d, const args_t &a, uint32_t longest)
{
    const double  values = static_cast<double>(longest) * a.heads * a.hd;

    if (d->facts.arch >= VLM_ARCH_BF16) {
        return vlm_cost(4 * values, 6 * VLM_TENSOR * values * TENSOR_TILE);
    }

    return vlm_cost(4 * values, 4 * values * TILE);
}


/* Launches n tiles, from a.tile on, of as many segments at a time as allowed. */
template <int D>
static void
launch_tiles(vlm_device_t *d, args_t a, uint32_t n_segments, uint32_t n, double cost)
{
    dim3      grid(0, a.heads, n);
    uint32_t  left;

    cost *= n;

    for (left = n_segments; left > 0; left -= grid.x, a.border += grid.x) {
        grid.x = vlm_fit(d, cost, left);

        if (d->facts.arch >= VLM_ARCH_BF16) {
            VLM_LAUNCH(d, cost * grid.x, attend_tensor<D>, grid, VLM_ATTEND_THREADS, 0, a);
        } else {
            VLM_LAUNCH(d, cost * grid.x, attend_segment<D>, grid, VLM_ATTEND_THREADS, 0, a);
        }
    }
}


template <int D>
static void
launch(vlm_device_t *d, args_t a, uint32_t n_segments, uint32_t longest)
{
    double    cost;
    uint32_t  n, tiles;

    tiles = vlm_divide_up(longest, d->facts.arch >= VLM_ARCH_BF16 ? TENSOR_TILE : TILE);
    cost = cost_of(d, a, longest);

    for (a.tile = 0; a.tile < tiles; a.tile += n) {
        n = vlm_fit(d, cost, tiles - a.tile);
        launch_tiles<D>(d, a, n_segments, n, cost);
    }
}


void
vlm_cuda_attend_segments(vlm_device_t *d, const vlm_attend_t *how, const void *q, const void *k,
                         const void *v, const vlm_segments_t *segments, void *o)
{
    args_t          a;
    const uint32_t  n = segments->n, longest = segments->longest;

    a.q = static_cast<const vlm_bf16_t *>(q);
    a.k = static_cast<const vlm_bf16_t *>(k);
    a.v = static_cast<const vlm_bf16_t *>(v);
    a.o = static_cast<vlm_bf16_t *>(o);
    a.border = segments->border;
    a.tile = 0;
    a.heads = how->heads;
    a.hd = how->head_dim;
    a.scale = how->scale;

    if (a.hd <= 32) {
        launch<2>(d, a, n, longest);
    } else if (a.hd <= 64) {
        launch<4>(d, a, n, longest);
    } else if (a.hd <= 80) {
        launch<5>(d, a, n, longest);
    } else {
        launch<8>(d, a, n, longest);
    }
}
