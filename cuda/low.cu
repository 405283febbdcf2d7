/*
 * The sums that adapters add to products and to rows of the embedding table: see vlm_lows_t in
 * engine/ops/ops.h.
 *
 * Two launches go before a product.  `low_down` multiplies an activation row by the rows of its
 * adapter's A, which gives z: a block has four rows of A.  `low_up` multiplies z by B, a thread for
 * each output, and the product adds these sums before its bias.  Both find a row's adapter in
 * device memory, so that rows of several adapters, and of none, share a launch.  A and B are bf16,
 * the activations as a product reads them, but not rounded to int8, and sums are f32 in one order.
 */

#include "ready.cuh"

#define DOWN_ROWS    4u                /* of A, that a block multiplies */
#define UP_THREADS   128
#define ROW_THREADS  128

typedef struct {
    const uint8_t   *table;            /* a vlm_low_t for each place, `stride` bytes apart */
    uint64_t         stride;
    const uint32_t  *place;            /* of the rows of a call; NULL: all rows have `all` */
    const float     *scale;
    uint32_t         all;
    float            all_scale;
    vlm_which_t      which;            /* the rows of the call that are rows here */
    uint32_t         first_end, second_end;        /* rows where the second and third part begin */
    uint32_t         parts, in_turn, N;
    uint32_t         z_stride;
    float           *z;                /* [T][z_stride]: [parts][r] of each row's own r */
    float           *sum;              /* [T][N] */
} adds_t;


/* The adapter of row t; NULL: none, or one that leaves the matrix alone.  *scale is the row's. */
static __device__ __forceinline__ const vlm_low_t *
low_of(const adds_t &a, uint32_t t, float *scale)
{
    uint32_t          row, place = a.all;
    const vlm_low_t  *low;

    *scale = a.all_scale;

    if (a.place != nullptr) {
        row = a.which.rows == nullptr ? a.which.first + t : a.which.rows[t];
        place = a.place[row];
        *scale = a.scale[row];
    }

    if (place == VLM_NONE) {
        return nullptr;
    }

    low = reinterpret_cast<const vlm_low_t *>(a.table + place * a.stride);

    return low->r == 0 ? nullptr : low;
}


/* ---- A ------------------------------------------------------------------------------------ */

/* The warp's shares of the sums of n rows of A, which begin at `rows`, times row t. */
static __device__ __forceinline__ void
multiply_rows(const vlm_ready_t &in, uint32_t t, float mean, float r, const vlm_bf16_t *rows,
              uint32_t n, float (&sum)[DOWN_ROWS])
{
    float4    v, w;
    uint32_t  i, j, quads = (in.K + VLM_BLOCK - 1) / VLM_BLOCK * (VLM_BLOCK / 4);

    for (i = threadIdx.x; i - i % VLM_WARP < quads; i += VLM_READY_THREADS) {
        v = vlm_ready_four(in, t, i, mean, r);

#pragma unroll
        for (j = 0; j < DOWN_ROWS; j++) {
            if (j < n) {
                w = vlm_load_four(rows + static_cast<size_t>(j) * in.K, i, in.K);
                sum[j] = fmaf(v.x, w.x, sum[j]);
                sum[j] = fmaf(v.y, w.y, sum[j]);
                sum[j] = fmaf(v.z, w.z, sum[j]);
                sum[j] = fmaf(v.w, w.w, sum[j]);
            }
        }
    }
}


/* blockIdx.x is four rows of A, y is an activation row. */
__global__ void __launch_bounds__(VLM_READY_THREADS, 4)
low_down(vlm_ready_t in, adds_t a)
{
    float             s, mean, r, sum[DOWN_ROWS] = { 0, 0, 0, 0 };
    uint32_t          j, n, row;
    const uint32_t    t = blockIdx.y, first = blockIdx.x * DOWN_ROWS;
    const vlm_low_t  *low = low_of(a, t, &s);

    VLM_SHARED(float, norms, 2 * VLM_READY_WARPS);
    VLM_SHARED(float, shares, DOWN_ROWS * VLM_READY_WARPS);

    if (low == nullptr || first >= a.parts * low->r) {
        return;                        /* all threads of the block */
    }

    n = min(DOWN_ROWS, a.parts * low->r - first);
    vlm_norm_row(in, t, norms, &mean, &r);
    multiply_rows(in, t, mean, r,
                  static_cast<const vlm_bf16_t *>(low->a) + static_cast<size_t>(first) * in.K, n,
                  sum);

#pragma unroll
    for (j = 0; j < DOWN_ROWS; j++) {
        sum[j] = vlm_warp_sum(sum[j]);

        if (threadIdx.x % VLM_WARP == 0) {
            shares[j * VLM_READY_WARPS + threadIdx.x / VLM_WARP] = sum[j];
        }
    }

    __syncthreads();

    if (threadIdx.x < n) {
        row = first + threadIdx.x;
        a.z[static_cast<size_t>(t) * a.z_stride + row] =
            low->scale[row / low->r] * s
            * (vlm_add_warps(shares + threadIdx.x * VLM_READY_WARPS) + low->c[row]);
    }
}


/* ---- B ------------------------------------------------------------------------------------ */

static __device__ __forceinline__ uint32_t
part_of(const adds_t &a, uint32_t n)
{
    return a.in_turn ? n % a.parts : (n >= a.first_end) + (n >= a.second_end);
}


/* The sum over a row's z and a column of B, whose rows are `stride` values apart. */
static __device__ __forceinline__ float
sum_column(const vlm_bf16_t *b, uint32_t stride, const float *z, uint32_t r)
{
    float  sum = 0;

    for (uint32_t i = 0; i < r; i++) {
        sum = fmaf(vlm_from_bf16(b[static_cast<size_t>(i) * stride]), z[i], sum);
    }

    return sum;
}


/* blockIdx.x is some outputs, y is an activation row; -0 changes no bit of what it is added to. */
__global__ void __launch_bounds__(UP_THREADS)
low_up(adds_t a)
{
    float              s, sum;
    uint32_t           p;
    const uint32_t     n = blockIdx.x * UP_THREADS + threadIdx.x, t = blockIdx.y;
    const vlm_low_t   *low = low_of(a, t, &s);
    const vlm_bf16_t  *b;

    if (n >= a.N) {
        return;
    }

    sum = -0.0f;

    if (low != nullptr) {
        p = part_of(a, n);
        b = static_cast<const vlm_bf16_t *>(low->b) + n;
        sum = sum_column(b, a.N, a.z + static_cast<size_t>(t) * a.z_stride + p * low->r, low->r);

        if (low->shift) {
            sum = fmaf(vlm_from_bf16(b[static_cast<size_t>(low->r) * a.N]), low->scale[p] * s, sum);
        }
    }

    a.sum[static_cast<size_t>(t) * a.N + n] = sum;
}


/* ---- the embedding table ------------------------------------------------------------------ */

/* A block for each row of x [T][D]; of the table A is [tokens][r] and B [r][D]. */
__global__ void __launch_bounds__(ROW_THREADS)
low_embed(adds_t a, const uint32_t *token, const uint32_t *source, uint32_t D, float *x)
{
    float              s;
    uint32_t           k;
    const uint32_t     t = blockIdx.x;
    const vlm_low_t   *low = low_of(a, t, &s);
    const vlm_bf16_t  *row;

    VLM_SHARED(float, z, VLM_MAX_RANK);

    if (low == nullptr || source[t] != VLM_NONE) {
        return;                        /* all threads of the block */
    }

    row = static_cast<const vlm_bf16_t *>(low->a) + static_cast<size_t>(token[t]) * low->r;

    for (k = threadIdx.x; k < low->r; k += ROW_THREADS) {
        z[k] = vlm_from_bf16(row[k]) * (low->scale[0] * s);
    }

    __syncthreads();

    for (k = threadIdx.x; k < D; k += ROW_THREADS) {
        x[static_cast<size_t>(t) * D + k] += sum_column(static_cast<const vlm_bf16_t *>(low->b) + k,
                                                        D, z, low->r);
    }
}


void
vlm_load_low(vlm_device_t *d)
{
    VLM_LOAD(d, low_down, 0);
    VLM_LOAD(d, low_up, 0);
    VLM_LOAD(d, low_embed, 0);
}


/* ---- launches ----------------------------------------------------------------------------- */

static adds_t
adds_of(const vlm_device_t *d, const vlm_linear_t *w, vlm_which_t which)
{
    adds_t                 a;
    const vlm_lows_t      *lows = w->low;
    const vlm_low_rows_t  *rows = lows->rows;

    a.table = static_cast<const uint8_t *>(lows->there);
    a.stride = lows->stride;
    a.place = rows->place == nullptr ? nullptr : rows->place_there;
    a.scale = rows->scale_there;
    a.all = rows->all;
    a.all_scale = rows->all_scale;
    a.which = which;
    a.parts = lows->parts;
    a.in_turn = lows->in_turn;
    a.first_end = lows->parts > 1 ? lows->end[0] : UINT32_MAX;
    a.second_end = lows->parts > 2 ? lows->end[1] : UINT32_MAX;
    a.N = w->N;
    a.z_stride = VLM_LOW_PARTS * d->need.rank;
    a.z = d->scratch.low_inputs;
    a.sum = d->scratch.low;

    return a;
}


/*
 * The highest rank of the matrix's adapters; 0: no row of the call has one, or all leave it alone.
 * A step that is being recorded will have other adapters.
 */
static uint32_t
rank_of(const vlm_device_t *d, const vlm_linear_t *w)
{
    uint32_t           i, r = 0;
    const vlm_lows_t  *lows = w->low;

    if (d->recording && lows != nullptr && lows->rows->any) {
        return d->need.rank;
    }

    for (i = 0; lows != nullptr && lows->rows->any && i < lows->places; i++) {
        r = lows->place[i].r > r ? lows->place[i].r : r;
    }

    return r;
}


/* Costs of a row in each launch: the bytes of A and B count each time that they are read. */

static double
cost_down(const vlm_linear_t *w, uint32_t rank)
{
    const double  values = static_cast<double>(w->low->parts) * rank * w->K;

    return vlm_cost(2 * values + 4.0 * vlm_divide_up(w->low->parts * rank, DOWN_ROWS) * w->K,
                    2 * values);
}


static double
cost_up(const vlm_linear_t *w, uint32_t rank)
{
    return vlm_cost((2.0 * rank + 4) * w->N, 2.0 * rank * w->N);
}


uint32_t
vlm_low_rows(const vlm_device_t *d, const vlm_linear_t *w, uint32_t n)
{
    double          cost;
    const uint32_t  rank = rank_of(d, w);
    const uint64_t  room = vlm_cuda_low(&d->need) / w->N;

    if (rank == 0) {
        return n;
    }

    cost = cost_down(w, rank) > cost_up(w, rank) ? cost_down(w, rank) : cost_up(w, rank);
    n = min(n, VLM_CUDA_LOW);

    return vlm_fit(d, cost, room < n ? static_cast<uint32_t>(room) : n);
}


const float *
vlm_low_sums(vlm_device_t *d, const vlm_linear_t *w, const vlm_ready_t &in, uint32_t T,
             vlm_which_t which)
{
    adds_t          a;
    const uint32_t  rank = rank_of(d, w);

    if (rank == 0) {
        return nullptr;
    }

    a = adds_of(d, w, which);

    VLM_LAUNCH(d, T * cost_down(w, rank), low_down,
               dim3(vlm_divide_up(a.parts * rank, DOWN_ROWS), T), VLM_READY_THREADS, 0, in, a);
    VLM_LAUNCH(d, T * cost_up(w, rank), low_up, dim3(vlm_divide_up(a.N, UP_THREADS), T),
               UP_THREADS, 0, a);

    return a.sum;
}


void
vlm_low_embed(vlm_device_t *d, const vlm_linear_t *table, const vlm_batch_t *b, float *x)
{
    const uint32_t  rank = rank_of(d, table);

    if (rank == 0) {
        return;
    }

    VLM_LAUNCH(d, b->T * vlm_cost((2.0 * rank + 8) * table->K, 2.0 * rank * table->K), low_embed,
               b->T, ROW_THREADS, 0, adds_of(d, table, { 0, nullptr }), b->token, b->source,
               table->K, x);
}
