/*
 * linear and head: products on tensor cores.
 *
 * Up to 8 activation rows, `few` reads each weight once: see product.cuh.  Above, `many` has 64
 * weight rows and 64 or 32 activation rows in a block of threads; activations come through shared
 * memory, weights as they are packed straight into registers, some groups before their use.
 */

#include "product.cuh"


/* ---- epilogues ---------------------------------------------------------------------------- */

enum { STORE_ACT, STORE_F32, ADD, SILU_MUL, GELU, GELU_TANH };


/* v is of weight row n; for SILU_MUL it is the gate, and up is of row n + 1. */
template <int OUT>
static __device__ __forceinline__ void
put_out(const vlm_product_t &a, uint32_t t, uint32_t n, float v, float up)
{
    size_t       at = static_cast<size_t>(t) * (OUT == SILU_MUL ? a.N / 2 : a.N);
    float       *f = static_cast<float *>(a.y) + at;
    vlm_bf16_t  *b = static_cast<vlm_bf16_t *>(a.y) + at;

    switch (OUT) {
    case STORE_ACT:
        b[n] = vlm_to_bf16(v);
        break;
    case STORE_F32:
        f[n] = v;
        break;
    case ADD:
        f[n] += v;
        break;
    case SILU_MUL:
        b[n / 2] = vlm_to_bf16(vlm_silu(v) * up);
        break;
    case GELU:
        b[n] = vlm_to_bf16(vlm_gelu(v));
        break;
    default:
        b[n] = vlm_to_bf16(vlm_gelu_tanh(v));
        break;
    }
}


/* ---- few rows ----------------------------------------------------------------------------- */

/* Each thread has a pair of weight rows and an activation row. */
template <int OUT>
static __device__ __forceinline__ void
put_few(const vlm_product_t &a, uint32_t tile, const float *parts)
{
    float     v, up;
    uint32_t  n, row, t;

    row = threadIdx.x / VLM_FEW * 2;
    t = threadIdx.x % VLM_FEW;
    n = tile * VLM_CUDA_TILE + row;

    if (row >= VLM_CUDA_TILE || t >= a.T || n >= a.N) {
        return;
    }

    v = vlm_finish(a, t, n, vlm_add_parts(parts, row, t));
    up = n + 1 < a.N ? vlm_finish(a, t, n + 1, vlm_add_parts(parts, row + 1, t)) : 0;
    put_out<OUT>(a, t, n, v, up);

    if (OUT != SILU_MUL && n + 1 < a.N) {
        put_out<OUT>(a, t, n + 1, up, 0);
    }
}


/* A block computes its tiles one after the other, each with all activation rows. */
template <int FORM, int OUT>
__global__ void __launch_bounds__(VLM_FEW_THREADS, VLM_FEW_BLOCKS)
few(vlm_product_t a)
{
    float     *to;
    uint32_t   tile, end;

    VLM_SHARED(float, parts, 2 * VLM_FEW_PARTS);
    VLM_SHARED_DYNAMIC(room);

    tile = blockIdx.x * a.tiles;
    end = min(tile + a.tiles, (a.N + VLM_CUDA_TILE - 1) / VLM_CUDA_TILE);

    vlm_begin_few<FORM>(a, tile, room, parts);

    /*
     * A thread at a tile's barrier has finished the previous tile, so two alternating buffers are
     * enough.
     */

    for ( /* void */ ; tile < end; tile++) {
        to = parts + tile % 2 * VLM_FEW_PARTS;
        vlm_sum_tile<FORM>(a, tile, to);

        __syncthreads();

        put_few<OUT>(a, tile, to);
    }
}


/* ---- many rows ---------------------------------------------------------------------------- */

#define MANY_WARPS    4
#define MANY_THREADS  (MANY_WARPS * VLM_WARP)
#define MANY_ROWS     64               /* activation rows of a block, or half as many */
#define STAGE         2                /* groups that are copied together */

/* Blocks that run together.  For int8 CUDA 11's compiler wants more registers than three have. */
#if !defined(VLM_EMU) && __CUDACC_VER_MAJOR__ < 12
#define MANY_BLOCKS   (FORM == VLM_FORM_INT8 && ROWS == MANY_ROWS ? 2 : 3)
#else
#define MANY_BLOCKS   3
#endif

static_assert(VLM_PIECE_GROUPS == 2 * STAGE, "a round of the loop");


template <int ROWS>
struct stage_t {
    uint4   q[STAGE][ROWS][4];         /* a group of each activation row */
    float4  s[STAGE][ROWS / 4];
};

/* A thread copies 16 bytes of each 32nd activation row, from its quarter of a group. */
template <int ROWS>
struct source_t {
    const unsigned  *q[ROWS / 32];
    unsigned         bytes[ROWS / 32]; /* 0 beyond the last row: they become zeros */
};

/* Sums of a warp's 16 weight rows and of 8 activation rows each: of the run, and of all before. */
template <int ROWS>
struct sums_t {
    vlm_sums_t  run[ROWS / VLM_FEW];
    float       all[ROWS / VLM_FEW][4];
};


template <int ROWS>
static __device__ __forceinline__ source_t<ROWS>
source_of(const vlm_product_t &a, uint32_t t0)
{
    uint32_t        i, t;
    source_t<ROWS>  from;

#pragma unroll
    for (i = 0; i < ROWS / 32; i++) {
        t = t0 + threadIdx.x / 4 + 32 * i;
        from.bytes[i] = t < a.T ? 16 : 0;
        from.q[i] = a.in.q + static_cast<size_t>(t < a.T ? t : 0) * a.in.q_stride
                    + threadIdx.x % 4 * 4;
    }

    return from;
}


/* Groups g, g + 1 of this block's activation rows on their way to shared memory. */
template <int FORM, int ROWS>
static __device__ __forceinline__ void
copy_stage(const vlm_product_t &a, const source_t<ROWS> &from, stage_t<ROWS> *to, uint32_t t0,
           uint32_t g)
{
    uint32_t  i, j;

#pragma unroll
    for (j = 0; j < STAGE; j++) {
        if (g + j >= a.groups) {
            break;
        }

#pragma unroll
        for (i = 0; i < ROWS / 32; i++) {
            vlm_copy(&to->q[j][threadIdx.x / 4 + 32 * i][threadIdx.x % 4],
                     from.q[i] + (g + j) * 16, from.bytes[i]);
        }

        if (VLM_IS_INT8(FORM) && threadIdx.x < ROWS / 4) {
            vlm_copy(&to->s[j][threadIdx.x], a.in.s + static_cast<size_t>(g + j) * a.in.s_stride
                     + t0 + 4 * threadIdx.x, 16);
        }
    }

    vlm_copy_commit();
}


/* The lane's pieces of a group of its warp's 16 weight rows; tile NULL: there are none.  Of int4
   the second has its numbers. */
template <int FORM>
static __device__ __forceinline__ void
load_weights(const vlm_product_t &a, const uint4 *tile, uint32_t g, uint4 (&w)[2])
{
    w[0] = w[1] = make_uint4(0, 0, 0, 0);

    if (tile != nullptr && g < a.groups) {
        tile += g * VLM_LOADS(FORM);
        w[0] = tile[threadIdx.x % VLM_WARP];

        if (FORM == VLM_FORM_INT4) {
            w[1].x = vlm_numbers4(tile);
        } else {
            w[1] = tile[VLM_WARP + threadIdx.x % VLM_WARP];
        }
    }
}


/* Group i of a piece, which is in this stage. */
template <int FORM, int ROWS>
static __device__ __forceinline__ void
add_stage(const stage_t<ROWS> *from, uint32_t i, const uint4 (&w)[2], sums_t<ROWS> &sums)
{
    uint4           first = w[0], second = w[1];
    uint32_t        n;
    const uint32_t  lane = threadIdx.x % VLM_WARP;

    if (FORM == VLM_FORM_INT4) {
        vlm_unpack4(w[0], w[1].x, &first, &second);
    }

#pragma unroll
    for (n = 0; n < ROWS / VLM_FEW; n++) {
        vlm_add_group<VLM_IS_INT8(FORM)>(sums.run[n].sum, sums.run[n].dot, first, second,
                                         from->q[i % STAGE][n * VLM_FEW + lane / 4][lane % 4]);
    }
}


/* The end of a piece, whose scales are those of group j of a stage. */
template <int ROWS>
static __device__ __forceinline__ void
end_pieces(const stage_t<ROWS> *from, uint32_t j, sums_t<ROWS> &sums)
{
#pragma unroll
    for (uint32_t n = 0; n < ROWS / VLM_FEW; n++) {
        vlm_end_piece(sums.run[n], reinterpret_cast<const float2 *>(from->s[j])
                      [n * 4 + threadIdx.x % 4]);
    }
}


template <int ROWS>
static __device__ __forceinline__ void
end_run(sums_t<ROWS> &sums)
{
#pragma unroll
    for (int i = 0; i < ROWS / VLM_FEW * 4; i++) {
        sums.all[i / 4][i % 4] += sums.run[i / 4].sum[i % 4];
        sums.run[i / 4].sum[i % 4] = 0;
    }
}


template <int OUT>
static __device__ __forceinline__ void
put_tile(const vlm_product_t &a, uint32_t t, uint32_t n, float v0, float v1)
{
    float  v[2] = { v0, v1 }, up;

#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        v[i] = n < a.N && t + i < a.T ? vlm_finish(a, t + i, n, v[i]) : 0;

        /* The row after this one is 4 lanes on. */

        up = OUT == SILU_MUL ? __shfl_xor_sync(VLM_ALL, v[i], 4) : 0;

        if (n < a.N && t + i < a.T && (OUT != SILU_MUL || n % 2 == 0)) {
            put_out<OUT>(a, t + i, n, v[i], up);
        }
    }
}


/* blockIdx.x is ROWS activation rows, y is 64 weight rows. */
template <int FORM, int OUT, int ROWS>
__global__ void __launch_bounds__(MANY_THREADS, MANY_BLOCKS)
many(vlm_product_t a)
{
    constexpr int  AHEAD = ROWS == MANY_ROWS ? STAGE : 2 * STAGE;

    uint4         w[AHEAD][2];
    uint32_t      i, last, g, left, t0, n0, lane;
    const uint4  *tile;
    sums_t<ROWS>  sums;

    VLM_SHARED(stage_t<ROWS>, stages, 2);

    lane = threadIdx.x % VLM_WARP;
    t0 = blockIdx.x * ROWS;
    n0 = (blockIdx.y * MANY_WARPS + threadIdx.x / VLM_WARP) * VLM_CUDA_TILE;
    tile = n0 < a.N ? vlm_tile_at<FORM>(a, n0 / VLM_CUDA_TILE) : nullptr;

    const source_t<ROWS>  from = source_of<ROWS>(a, t0);

#pragma unroll
    for (i = 0; i < ROWS / VLM_FEW * 4; i++) {
        sums.run[i / 4].sum[i % 4] = sums.all[i / 4][i % 4] = 0;
        vlm_begin_piece(sums.run[i / 4]);
    }

    copy_stage<FORM, ROWS>(a, from, &stages[0], t0, 0);
    left = a.run;

#pragma unroll
    for (i = 0; i < AHEAD; i++) {
        load_weights<FORM>(a, tile, i, w[i]);
    }

    for (g = 0; g < a.groups; g += VLM_PIECE_GROUPS) {

#pragma unroll
        for (i = 0; i < VLM_PIECE_GROUPS; i++) {
            if (g + i >= a.groups) {
                break;
            }

            if (i % STAGE == 0) {
                vlm_copy_wait<0>();
                __syncthreads();

                copy_stage<FORM, ROWS>(a, from, &stages[(i / STAGE + 1) % 2], t0, g + i + STAGE);
            }

            add_stage<FORM, ROWS>(&stages[i / STAGE], i, w[i % AHEAD], sums);
            load_weights<FORM>(a, tile, g + i + AHEAD, w[i % AHEAD]);
        }

        if (VLM_IS_INT8(FORM)) {
            last = min(a.groups - g, static_cast<uint32_t>(VLM_PIECE_GROUPS)) - 1;
            end_pieces<ROWS>(&stages[last / STAGE], last % STAGE, sums);
        }

        left -= VLM_PIECE_GROUPS;

        if (left == 0) {
            left = a.run;
            end_run<ROWS>(sums);
        }
    }

    end_run<ROWS>(sums);

#pragma unroll
    for (i = 0; i < ROWS / VLM_FEW; i++) {
        put_tile<OUT>(a, t0 + i * VLM_FEW + lane % 4 * 2, n0 + lane / 4, sums.all[i][0],
                      sums.all[i][1]);
        put_tile<OUT>(a, t0 + i * VLM_FEW + lane % 4 * 2, n0 + lane / 4 + 8, sums.all[i][2],
                      sums.all[i][3]);
    }
}


/* ---- the choice of a kernel --------------------------------------------------------------- */

static size_t
inside_bytes(const vlm_product_t &a)
{
    return (static_cast<size_t>(a.T) * a.in.q_stride + a.groups * a.in.s_stride) * 4;
}


vlm_product_t
vlm_product_of(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm, const void *x,
               const uint32_t *rows, uint32_t T, vlm_which_t which)
{
    vlm_product_t     a;
    const vlm_norm_t  none = { VLM_NORM_RMS, nullptr, 0, nullptr };

    a.in.x = x;
    a.in.rows = rows;
    a.in.norm = norm == nullptr ? none : *norm;
    a.in.blocks = vlm_cuda_int8(w->type) && w->blocks;
    a.in.K = w->K;
    a.in.row_words = vlm_cuda_padded(w->K) / (vlm_cuda_int8(w->type) ? 4 : 2);
    a.in.q = static_cast<unsigned *>(d->scratch.q);
    a.in.s = d->scratch.s;

    a.w = static_cast<const uint4 *>(w->w);
    a.scale = w->scale;
    a.bias = w->bias;
    a.y = nullptr;
    a.N = w->N;
    a.T = T;
    a.groups = a.in.row_words / 16;
    a.group_bytes = w->type == VLM_INT4 ? VLM_CUDA_GROUP4 : VLM_GROUP;
    a.run = vlm_divide_up(a.groups, VLM_PIECE_GROUPS * VLM_CUDA_PARTS) * VLM_PIECE_GROUPS;
    a.tiles = 1;

    /*
     * Rows in a block's own memory have an odd number of groups, so that they begin in different
     * banks.
     */

    a.in.q_stride = a.in.row_words | 16;
    a.in.s_stride = vlm_cuda_int8(w->type) ? (T + 1) / 2 * 2 : 0;
    a.inside = T <= VLM_FEW && inside_bytes(a) <= VLM_INSIDE;

    if (!a.inside) {
        a.in.q_stride = a.in.row_words;
        a.in.s_stride = VLM_CUDA_ROWS;
        vlm_make_ready(d, w->type, a.in, T);
    }

    a.low = vlm_low_sums(d, w, a.in, T, which);

    return a;
}


static double
ops_of_row(uint32_t N, uint32_t K)
{
    return 2.0 * VLM_TENSOR * N * K;
}


double
vlm_product_cost(const vlm_product_t &a)
{
    return vlm_cost(static_cast<double>(a.groups) * a.group_bytes * a.N,
                    ops_of_row(a.N, a.in.K) * a.T);
}


/* Rounds down to a multiple of the block's rows, unless there are fewer. */
uint32_t
vlm_product_rows(const vlm_device_t *d, const vlm_linear_t *w)
{
    uint32_t  n;

    n = vlm_low_rows(d, w, vlm_fit(d, ops_of_row(w->N, w->K), VLM_CUDA_ROWS));

    return n < MANY_ROWS ? n : n / MANY_ROWS * MANY_ROWS;
}


/* At most as many blocks as run at once; all but the last have the same number of units. */
vlm_few_grid_t
vlm_few_grid(const vlm_device_t *d, vlm_product_t *a, uint32_t units)
{
    size_t          fit;
    vlm_few_grid_t  grid;

    grid.shared = a->inside ? inside_bytes(*a) : 0;
    fit = d->facts.shared / (grid.shared + 2 * VLM_FEW_PARTS * sizeof(float) + 1024);
    fit = fit < 1 ? 1 : fit > VLM_FEW_BLOCKS ? VLM_FEW_BLOCKS : fit;

    a->tiles = vlm_divide_up(units, d->facts.n_sms * fit);
    grid.blocks = vlm_divide_up(units, a->tiles);

    return grid;
}


/* Blocks of many rows have half of them where the card would have less than two blocks of all. */
template <int FORM, int OUT>
static void
launch(vlm_device_t *d, vlm_product_t a)
{
    unsigned        n;
    vlm_few_grid_t  grid;
    const double    cost = vlm_product_cost(a);

    if (a.T <= VLM_FEW) {
        grid = vlm_few_grid(d, &a, vlm_divide_up(a.N, VLM_CUDA_TILE));
        VLM_LAUNCH(d, cost, (few<FORM, OUT>), grid.blocks, VLM_FEW_THREADS, grid.shared, a);
        return;
    }

    n = vlm_divide_up(a.N, MANY_WARPS * VLM_CUDA_TILE);

    if (vlm_divide_up(a.T, MANY_ROWS) * n < 2 * d->facts.n_sms) {
        VLM_LAUNCH(d, cost, (many<FORM, OUT, MANY_ROWS / 2>),
                   dim3(vlm_divide_up(a.T, MANY_ROWS / 2), n), MANY_THREADS, 0, a);
    } else {
        VLM_LAUNCH(d, cost, (many<FORM, OUT, MANY_ROWS>), dim3(vlm_divide_up(a.T, MANY_ROWS), n),
                   MANY_THREADS, 0, a);
    }
}


template <int FORM>
static void
launch_type(vlm_device_t *d, const vlm_linear_t *w, vlm_out_t store, const vlm_product_t &a)
{
    switch (w->epilogue) {
    case VLM_STORE:
        if (store == VLM_OUT_F32) {
            launch<FORM, STORE_F32>(d, a);
        } else {
            launch<FORM, STORE_ACT>(d, a);
        }
        break;
    case VLM_ADD:
        launch<FORM, ADD>(d, a);
        break;
    case VLM_SILU_MUL:
        launch<FORM, SILU_MUL>(d, a);
        break;
    case VLM_GELU:
        launch<FORM, GELU>(d, a);
        break;
    case VLM_GELU_TANH:
        launch<FORM, GELU_TANH>(d, a);
        break;
    }
}


template <int FORM, int OUT>
static void
load(vlm_device_t *d)
{
    VLM_LOAD(d, (few<FORM, OUT>), VLM_INSIDE);
    VLM_LOAD(d, (many<FORM, OUT, MANY_ROWS>), 0);
    VLM_LOAD(d, (many<FORM, OUT, MANY_ROWS / 2>), 0);
}


template <int FORM>
static void
load_type(vlm_device_t *d)
{
    load<FORM, STORE_ACT>(d);
    load<FORM, STORE_F32>(d);
    load<FORM, ADD>(d);
    load<FORM, SILU_MUL>(d);
    load<FORM, GELU>(d);
    load<FORM, GELU_TANH>(d);
}


void
vlm_load_linear(vlm_device_t *d)
{
    load_type<VLM_FORM_INT4>(d);
    load_type<VLM_FORM_INT8>(d);
    load_type<VLM_FORM_BF16>(d);
}


void
vlm_product(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm, const void *x,
            const uint32_t *rows, uint32_t T, vlm_which_t which, vlm_out_t store, void *y)
{
    vlm_product_t  a;

    a = vlm_product_of(d, w, norm, x, rows, T, which);
    a.y = y;

    switch (w->type) {
    case VLM_INT4:
        launch_type<VLM_FORM_INT4>(d, w, store, a);
        break;
    case VLM_INT8:
        launch_type<VLM_FORM_INT8>(d, w, store, a);
        break;
    default:
        launch_type<VLM_FORM_BF16>(d, w, store, a);
    }
}


void
vlm_cuda_linear(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm, const void *x,
                uint32_t T, void *y)
{
    size_t    in, out;
    uint32_t  t, n;

    in = static_cast<size_t>(w->K) * (norm == nullptr ? sizeof(vlm_bf16_t) : sizeof(float));
    out = w->epilogue == VLM_SILU_MUL ? w->N / 2 : w->N;
    out *= w->epilogue == VLM_ADD ? sizeof(float) : sizeof(vlm_bf16_t);

    for (t = 0; t < T; t += n) {
        n = min(T - t, vlm_product_rows(d, w));
        vlm_product(d, w, norm, static_cast<const uint8_t *>(x) + t * in, nullptr, n,
                    { t, nullptr }, VLM_OUT_ACT, static_cast<uint8_t *>(y) + t * out);
    }
}


void
vlm_cuda_head(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm, const float *x,
              const vlm_batch_t *b, float *logits)
{
    float        *to;
    uint32_t      r, n;
    vlm_which_t   which;

    for (r = 0; r < b->R; r += n) {
        n = min(b->R - r, vlm_product_rows(d, w));
        n = w->turn == nullptr ? n : min(n, VLM_CUDA_TURNED);
        to = logits + static_cast<size_t>(r) * w->N;
        which = { 0, b->logit_row + r };

        if (w->turn == nullptr) {
            vlm_product(d, w, norm, x, b->logit_row + r, n, which, VLM_OUT_F32, to);
        } else {
            vlm_norm_turned(d, norm, w->turn, x, b->logit_row + r, n, VLM_OUT_ACT,
                            d->scratch.normed);
            vlm_product(d, w, nullptr, d->scratch.normed, nullptr, n, which, VLM_OUT_F32, to);
        }
    }
}
