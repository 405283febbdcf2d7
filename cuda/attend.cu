/*
 * attend: rows of sequences over their cached keys and values, causal.
 *
 * The query vectors of one key-value head and one sequence are numbered row by row and head by
 * head, and are cut into tiles.  Keys are summed in runs of VLM_CUDA_SPLIT, and runs in their
 * order.  If every sequence has one row, each block computes one run, and the block that finishes
 * last adds the runs; otherwise one block walks all runs.  Both give a row the same bits.  cost.h
 * bounds the number of tiles, or sequences, of a launch.
 */

#include "attend.cuh"

#define FEW   1                        /* query vectors of a group of lanes */
#define MANY  4

typedef struct {
    const vlm_bf16_t  *q;              /* [T][heads hd] */
    vlm_bf16_t        *o;
    const uint32_t    *start, *slot, *n_ctx;       /* of the sequences */
    vlm_kv_t           kv;
    uint32_t           layer, heads, group;
    uint32_t           tile, sequence; /* the first of this launch */
    uint32_t           runs;           /* of the longest sequence, for which the grid has blocks */
    float              scale;
    const float       *slope;          /* [kv.heads] or NULL */
    float             *split;          /* [T][heads][splits][hd + 2] */
    uint32_t           splits;
    unsigned          *ticket;         /* [T][heads], 0 before and after */
} args_t;

typedef struct {                       /* a tile of query vectors of one sequence */
    uint32_t  row, n_rows, n_ctx;      /* first row of the sequence in the batch; rows; cached */
    uint32_t  first;                   /* vector */
    uint32_t  kv_head;
} tile_t;


static __device__ __forceinline__ tile_t
find_tile(const args_t &a, uint32_t sequence, uint32_t kv_head, uint32_t tile, uint32_t size)
{
    tile_t  t;

    t.row = a.start[sequence];
    t.n_rows = a.start[sequence + 1] - t.row;
    t.n_ctx = a.n_ctx[sequence];
    t.first = tile * size;
    t.kv_head = kv_head;

    return t;
}


/* Offset of vector i of a tile in q and o. */
static __device__ __forceinline__ size_t
vector_at(const args_t &a, const tile_t &t, uint32_t i)
{
    uint32_t  v = t.first + i;

    return (static_cast<size_t>(t.row + v / a.group) * a.heads + t.kv_head * a.group
            + v % a.group) * a.kv.head_dim;
}


/*
 * Copies queries to shared memory; limit: number of keys that each query of this lane sees, or 0.
 */
template <int D, int Q>
static __device__ __forceinline__ void
load_queries(const args_t &a, const tile_t &t, vlm_attend_shared_t<D, Q> &sh, uint32_t (&limit)[Q])
{
    uint32_t       i, d, v, n;
    const int      group = threadIdx.x / VLM_LANES;

    n = t.n_rows * a.group;

    for (i = threadIdx.x; i < VLM_GROUPS * Q * VLM_LANES * D; i += VLM_ATTEND_THREADS) {
        v = i / (VLM_LANES * D);
        d = i % (VLM_LANES * D);
        sh.q[v][d] = t.first + v < n && d < a.kv.head_dim ? a.q[vector_at(a, t, v) + d] : 0;
    }

#pragma unroll
    for (int j = 0; j < Q; j++) {
        v = t.first + group * Q + j;
        limit[j] = v < n ? t.n_ctx + v / a.group + 1 : 0;
    }
}


static __device__ __forceinline__ vlm_attend_keys_t
keys_of(const args_t &a, uint32_t sequence, uint32_t kv_head)
{
    size_t             at;
    vlm_attend_keys_t  k;

    at = ((static_cast<size_t>(a.layer) * a.kv.slots + a.slot[sequence]) * a.kv.heads + kv_head)
         * a.kv.context * a.kv.head_dim;
    k.k = static_cast<const vlm_bf16_t *>(a.kv.k) + at;
    k.v = static_cast<const vlm_bf16_t *>(a.kv.v) + at;
    k.stride = a.kv.head_dim;
    k.hd = a.kv.head_dim;
    k.scale = a.scale;
    k.slope = a.slope == nullptr ? 0 : a.slope[kv_head];

    return k;
}


/* blockIdx.x is a tile, counted from a.tile; y is a key-value head, z a sequence. */
template <int D>
__global__ void __launch_bounds__(VLM_ATTEND_THREADS, 2)
attend_rows(args_t a)
{
    tile_t                       t;
    uint32_t                     key, end, limit[MANY], d, group;
    vlm_attend_keys_t            k;
    vlm_attend_state_t<D, MANY>  all, run;

    typedef vlm_attend_shared_t<D, MANY>  shared_t;
    VLM_SHARED(shared_t, sh, 1);

    t = find_tile(a, blockIdx.z, blockIdx.y, a.tile + blockIdx.x, VLM_GROUPS * MANY);

    if (t.first >= t.n_rows * a.group) {
        return;                        /* all threads of the block: the sequence has no such tile */
    }

    load_queries<D, MANY>(a, t, sh[0], limit);
    k = keys_of(a, blockIdx.z, blockIdx.y);
    end = t.n_ctx + min(t.n_rows, (t.first + VLM_GROUPS * MANY - 1) / a.group + 1);
    vlm_attend_clear(all);

    for (key = 0; key < end; key += VLM_CUDA_SPLIT) {
        vlm_attend_clear(run);
        vlm_attend_run<D, MANY>(sh[0], k, key, min(end, key + VLM_CUDA_SPLIT), limit, run);
        vlm_attend_fold(all, run);
    }

    group = threadIdx.x / VLM_LANES;

#pragma unroll
    for (int i = 0; i < MANY * D; i++) {
        d = threadIdx.x % VLM_LANES + VLM_LANES * (i % D);

        if (limit[i / D] > 0 && d < a.kv.head_dim) {
            a.o[vector_at(a, t, group * MANY + i / D) + d] = vlm_to_bf16(all.o[i / D][i % D]
                                                                        / all.l[i / D]);
        }
    }
}


/* Stores the sums of a run of keys, except for vectors beyond the tile. */
template <int D>
static __device__ __forceinline__ void
store_run(const args_t &a, const tile_t &t, uint32_t run, const uint32_t (&limit)[FEW],
          const vlm_attend_state_t<D, FEW> &sums)
{
    float     *to;
    uint32_t   d, v;

    if (limit[0] == 0) {
        return;
    }

    v = t.first + threadIdx.x / VLM_LANES;
    to = a.split + ((static_cast<size_t>(t.row) * a.heads + t.kv_head * a.group + v) * a.splits
                    + run) * (a.kv.head_dim + 2);

#pragma unroll
    for (int j = 0; j < D; j++) {
        d = threadIdx.x % VLM_LANES + VLM_LANES * j;

        if (d < a.kv.head_dim) {
            to[d] = sums.o[0][j];
        }
    }

    if (threadIdx.x % VLM_LANES == 0) {
        to[a.kv.head_dim] = sums.m[0];
        to[a.kv.head_dim + 1] = sums.l[0];
    }
}


/*
 * Adds the runs of a tile's vectors in the order of vlm_attend_fold().  Each thread adds one value
 * of each vector.
 */
static __device__ __forceinline__ void
merge_runs(const args_t &a, const tile_t &t, uint32_t n)
{
    float         m[VLM_GROUPS], l[VLM_GROUPS], o[VLM_GROUPS], most, x, y, run_m;
    uint32_t      hd, i, d;
    const float  *from;

    hd = a.kv.head_dim;
    d = threadIdx.x;

    if (d >= hd) {
        return;
    }

#pragma unroll
    for (int v = 0; v < VLM_GROUPS; v++) {
        m[v] = VLM_NEVER;
        l[v] = o[v] = 0;
    }

#pragma unroll 1
    for (i = 0; i < n; i++) {

#pragma unroll
        for (uint32_t v = 0; v < VLM_GROUPS; v++) {
            if (t.first + v < a.group) {
                from = a.split + ((static_cast<size_t>(t.row) * a.heads + t.kv_head * a.group
                                   + t.first + v) * a.splits + i) * (hd + 2);
                run_m = vlm_load_fresh(from + hd);
                most = fmaxf(m[v], run_m);
                x = vlm_attend_scale(m[v], most);
                y = vlm_attend_scale(run_m, most);
                m[v] = most;
                l[v] = l[v] * x + vlm_load_fresh(from + hd + 1) * y;
                o[v] = o[v] * x + vlm_load_fresh(from + d) * y;
            }
        }
    }

#pragma unroll
    for (uint32_t v = 0; v < VLM_GROUPS; v++) {
        if (t.first + v < a.group) {
            a.o[vector_at(a, t, v) + d] = vlm_to_bf16(o[v] / l[v]);
        }
    }
}


/*
 * One run of keys, for sequences with one row each.  blockIdx.x is a run and a tile, y a key-value
 * head, z a sequence, counted from a.sequence.
 */
template <int D>
__global__ void __launch_bounds__(VLM_ATTEND_THREADS, 4)
attend_split(args_t a)
{
    tile_t                      t;
    uint32_t                    run, first, end, n, limit[FEW], sequence;
    vlm_attend_keys_t           k;
    vlm_attend_state_t<D, FEW>  sums;

    typedef vlm_attend_shared_t<D, FEW>  shared_t;
    VLM_SHARED(shared_t, sh, 1);
    VLM_SHARED(unsigned, number, 1);

    run = blockIdx.x % a.runs;
    sequence = a.sequence + blockIdx.z;
    t = find_tile(a, sequence, blockIdx.y, blockIdx.x / a.runs, VLM_GROUPS * FEW);
    first = run * VLM_CUDA_SPLIT;
    end = t.n_ctx + t.n_rows;
    n = (end + VLM_CUDA_SPLIT - 1) / VLM_CUDA_SPLIT;

    if (run >= n) {
        return;                        /* the sequence has no such run of keys */
    }

    load_queries<D, FEW>(a, t, sh[0], limit);
    k = keys_of(a, sequence, blockIdx.y);
    vlm_attend_clear(sums);
    vlm_attend_run<D, FEW>(sh[0], k, first, min(end, first + VLM_CUDA_SPLIT), limit, sums);
    store_run<D>(a, t, run, limit, sums);

    if (vlm_come_last(a.ticket + t.row * a.heads + t.kv_head * a.group + t.first, n, number)) {
        merge_runs(a, t, n);
    }
}


template <int D>
static void
load(vlm_device_t *d)
{
    VLM_LOAD(d, attend_rows<D>, 0);
    VLM_LOAD(d, attend_split<D>, 0);
}


void
vlm_load_attend(vlm_device_t *d)
{
    load<2>(d);
    load<4>(d);
    load<5>(d);
    load<8>(d);
}


/* The cost of one sequence's keys, for so many query vectors of each key-value head. */
static double
cost_of(const args_t &a, const vlm_batch_t *b, uint32_t vectors)
{
    const double  values = static_cast<double>(b->max_ctx) * a.kv.heads * a.kv.head_dim;

    return vlm_cost(4 * values, 4 * values * vectors);
}


template <int D>
static void
launch_rows(vlm_device_t *d, args_t a, const vlm_batch_t *b)
{
    uint32_t  n, tiles;
    double    cost;

    tiles = vlm_divide_up(static_cast<uint64_t>(b->max_rows) * a.group, VLM_GROUPS * MANY);
    cost = b->S * cost_of(a, b, VLM_GROUPS * MANY);

    for ( /* void */ ; a.tile < tiles; a.tile += n) {
        n = vlm_fit(d, cost, tiles - a.tile);
        VLM_LAUNCH(d, cost * n, attend_rows<D>, dim3(n, a.kv.heads, b->S),
                   VLM_ATTEND_THREADS, 0, a);
    }
}


template <int D>
static void
launch_split(vlm_device_t *d, args_t a, const vlm_batch_t *b)
{
    uint32_t  n, tiles;
    double    cost;

    tiles = vlm_divide_up(a.group, VLM_GROUPS * FEW);
    cost = cost_of(a, b, a.group);

    for ( /* void */ ; a.sequence < b->S; a.sequence += n) {
        n = vlm_fit(d, cost, b->S - a.sequence);
        VLM_LAUNCH(d, cost * n, attend_split<D>, dim3(tiles * a.runs, a.kv.heads, n),
                   VLM_ATTEND_THREADS, 0, a);
    }
}


template <int D>
static void
launch(vlm_device_t *d, const args_t &a, const vlm_batch_t *b)
{
    if (b->max_rows > 1) {
        launch_rows<D>(d, a, b);
    } else {
        launch_split<D>(d, a, b);
    }
}


void
vlm_cuda_attend(vlm_device_t *d, const vlm_attend_t *how, const void *q, const vlm_batch_t *b,
                const vlm_kv_t *kv, uint32_t layer, void *o)
{
    args_t  a;

    a.q = static_cast<const vlm_bf16_t *>(q);
    a.o = static_cast<vlm_bf16_t *>(o);
    a.start = b->start;
    a.slot = b->slot;
    a.n_ctx = b->n_ctx;
    a.kv = *kv;
    a.layer = layer;
    a.heads = how->heads;
    a.group = how->heads / kv->heads;
    a.tile = a.sequence = 0;
    a.runs = vlm_divide_up(b->max_ctx, VLM_CUDA_SPLIT);
    a.scale = how->scale;
    a.slope = how->slope;
    a.split = d->scratch.split;
    a.splits = vlm_cuda_splits(&d->need);
    a.ticket = d->scratch.ticket;

    if (kv->head_dim <= 32) {
        launch<2>(d, a, b);
    } else if (kv->head_dim <= 64) {
        launch<4>(d, a, b);
    } else if (kv->head_dim <= 80) {
        launch<5>(d, a, b);
    } else {
        launch<8>(d, a, b);
    }
}
