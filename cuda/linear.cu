/*
 * linear and head: products on tensor cores, weights as the 16 rows and activations as the 8
 * columns of a fragment.
 *
 * Up to 8 activation rows, `few` reads each weight once with all its threads' loads under way,
 * the K of 16 weight rows shared out among 8 warps.  Above, `many` has 64 weight rows and 64
 * activation rows in a block of threads; activations come through shared memory, weights as they
 * are packed straight into registers.  See pack.cu and ready.cu for both orders of bytes.
 *
 * The integer dot of a block starts at 1.5 * 2^23 as bits of a float: below 2^22 in size, it is
 * that float plus the dot, so a subtraction converts it.
 */

#include "product.h"

#define COLUMNS     8                  /* activation rows of a fragment */
#define TILE_WORDS  (VLM_CUDA_TILE * 8)            /* of 4 bytes: 16 rows of 32 bytes */
#define MAGIC       0x4b400000
#define MAGIC_F32   12582912.0f

typedef struct {
    const uint4     *w;                /* packed */
    const float     *scale, *bias;     /* [N] or NULL */
    const unsigned  *q;                /* [T][groups][16] */
    const float     *s;                /* [groups][VLM_CUDA_ROWS] of int8 */
    void            *y;
    uint32_t         N, T, groups;
    uint32_t         run;              /* groups of each of the VLM_CUDA_PARTS */
} args_t;


/* ---- sums --------------------------------------------------------------------------------- */

/* One group: sum [row g: columns 2 t, 2 t + 1; row g + 8] += its product, scaled by s of both. */
template <bool INT8>
static __device__ __forceinline__ void
add_group(float (&sum)[4], uint4 first, uint4 second, uint4 b, float2 s)
{
    int       dot[4] = { MAGIC, MAGIC, MAGIC, MAGIC };
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

    sum[0] = fmaf(s.x, __int_as_float(dot[0]) - MAGIC_F32, sum[0]);
    sum[1] = fmaf(s.y, __int_as_float(dot[1]) - MAGIC_F32, sum[1]);
    sum[2] = fmaf(s.x, __int_as_float(dot[2]) - MAGIC_F32, sum[2]);
    sum[3] = fmaf(s.y, __int_as_float(dot[3]) - MAGIC_F32, sum[3]);
}


/* ---- epilogues ---------------------------------------------------------------------------- */

enum { STORE_ACT, STORE_F32, ADD, SILU_MUL, GELU };


static __device__ __forceinline__ float
finish(const args_t &a, uint32_t n, float sum)
{
    sum = a.scale == nullptr ? sum : sum * a.scale[n];

    return a.bias == nullptr ? sum : sum + a.bias[n];
}


/* v is of weight row n; for SILU_MUL that is a gate, and up is of n + 1. */
template <int OUT>
static __device__ __forceinline__ void
put_out(const args_t &a, uint32_t t, uint32_t n, float v, float up)
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
    default:
        b[n] = vlm_to_bf16(vlm_gelu(v));
        break;
    }
}


/* ---- up to 8 rows ------------------------------------------------------------------------- */

#define FEW_THREADS  (VLM_CUDA_PARTS * VLM_WARP)
#define AHEAD        4                 /* groups whose loads are under way together */


/* Groups [g, end) of this warp's run; tile is the lane's place in the 16 weight rows. */
template <bool INT8>
static __device__ __forceinline__ void
sum_run(const args_t &a, const uint4 *tile, uint32_t g, uint32_t end, float (&sum)[4])
{
    uint4            w[2 * AHEAD], b;
    float2           s;
    uint32_t         i, lane, t;
    const unsigned  *q;

    lane = threadIdx.x % VLM_WARP;
    t = lane / 4;
    q = a.q + (static_cast<size_t>(t) * a.groups * 16 + lane % 4 * 4);

    for ( /* void */ ; g < end; g += AHEAD) {

#pragma unroll
        for (i = 0; i < AHEAD; i++) {
            if (g + i < end) {
                w[2 * i] = vlm_load_once(tile + (g + i) * 2 * VLM_WARP);
                w[2 * i + 1] = vlm_load_once(tile + ((g + i) * 2 + 1) * VLM_WARP);
            }
        }

#pragma unroll
        for (i = 0; i < AHEAD; i++) {
            if (g + i < end) {
                b = make_uint4(0, 0, 0, 0);
                s = make_float2(0, 0);

                if (t < a.T) {
                    b = *reinterpret_cast<const uint4 *>(q + (g + i) * 16);
                }

                if (INT8) {
                    s = *reinterpret_cast<const float2 *>(a.s + (g + i) * VLM_CUDA_ROWS
                                                          + lane % 4 * 2);
                }

                add_group<INT8>(sum, w[2 * i], w[2 * i + 1], b, s);
            }
        }
    }
}


/* 16 weight rows a block, all activation rows. */
template <bool INT8, int OUT>
__global__ void __launch_bounds__(FEW_THREADS)
few(args_t a)
{
    float     sum[4] = { 0, 0, 0, 0 }, v, up;
    uint32_t  i, g, n, row, lane, part, end;

    VLM_SHARED(float, parts, VLM_CUDA_PARTS * VLM_CUDA_TILE * COLUMNS);

    lane = threadIdx.x % VLM_WARP;
    part = threadIdx.x / VLM_WARP;
    g = part * a.run;
    end = min(g + a.run, a.groups);

    if (g < end) {
        sum_run<INT8>(a, a.w + static_cast<size_t>(blockIdx.x) * a.groups * 2 * VLM_WARP + lane, g,
                      end, sum);
    }

    i = (part * VLM_CUDA_TILE + lane / 4) * COLUMNS + lane % 4 * 2;
    parts[i] = sum[0];
    parts[i + 1] = sum[1];
    parts[i + 8 * COLUMNS] = sum[2];
    parts[i + 8 * COLUMNS + 1] = sum[3];

    __syncthreads();

    /* A thread for each pair of weight rows and activation row. */

    row = threadIdx.x / COLUMNS * 2;
    lane = threadIdx.x % COLUMNS;
    n = blockIdx.x * VLM_CUDA_TILE + row;

    if (row >= VLM_CUDA_TILE || lane >= a.T || n >= a.N) {
        return;
    }

    for (v = up = 0, i = 0; i < VLM_CUDA_PARTS; i++) {
        v += parts[(i * VLM_CUDA_TILE + row) * COLUMNS + lane];
        up += parts[(i * VLM_CUDA_TILE + row + 1) * COLUMNS + lane];
    }

    v = finish(a, n, v);
    up = n + 1 < a.N ? finish(a, n + 1, up) : 0;
    put_out<OUT>(a, lane, n, v, up);

    if (OUT != SILU_MUL && n + 1 < a.N) {
        put_out<OUT>(a, lane, n + 1, up, 0);
    }
}


/* ---- many rows ---------------------------------------------------------------------------- */

#define MANY_WARPS    4
#define MANY_THREADS  (MANY_WARPS * VLM_WARP)
#define MANY_ROWS     64               /* activation rows of a block */
#define TILES         (MANY_ROWS / COLUMNS)
#define STAGE         2                /* groups that are copied together */


typedef struct {
    uint4   q[STAGE][MANY_ROWS][4];    /* a group of each activation row */
    float4  s[STAGE][MANY_ROWS / 4];
} stage_t;


/* Groups g, g + 1 of this block's activation rows on their way to shared memory. */
template <bool INT8>
static __device__ __forceinline__ void
copy_stage(const args_t &a, stage_t *to, uint32_t t0, uint32_t g)
{
    uint32_t         i, j, row, quarter;
    const unsigned  *q;

    for (j = 0; j < STAGE && g + j < a.groups; j++) {
        for (i = threadIdx.x; i < MANY_ROWS * 4; i += MANY_THREADS) {
            row = i / 4;
            quarter = i % 4;
            q = a.q + (static_cast<size_t>(t0 + row) * a.groups + g + j) * 16 + quarter * 4;

            /* Rows beyond the last are zeros, and nobody asks for them. */

            vlm_copy(&to->q[j][row][quarter], t0 + row < a.T ? q : a.q, t0 + row < a.T ? 16 : 0);
        }

        if (INT8 && threadIdx.x < MANY_ROWS / 4) {
            vlm_copy(&to->s[j][threadIdx.x], a.s + static_cast<size_t>(g + j) * VLM_CUDA_ROWS + t0
                     + 4 * threadIdx.x, 16);
        }
    }

    vlm_copy_commit();
}


/* The lane's pieces of a group of its warp's 16 weight rows; tile NULL: there are none. */
static __device__ __forceinline__ void
load_weights(const args_t &a, const uint4 *tile, uint32_t g, uint4 *first, uint4 *second)
{
    *first = *second = make_uint4(0, 0, 0, 0);

    if (tile != nullptr && g < a.groups) {
        *first = tile[2 * g * VLM_WARP];
        *second = tile[(2 * g + 1) * VLM_WARP];
    }
}


template <bool INT8>
static __device__ __forceinline__ void
add_stage(const stage_t *from, uint32_t j, uint4 first, uint4 second, float (&sum)[TILES][4])
{
    float2    s;
    uint32_t  i, lane;

    lane = threadIdx.x % VLM_WARP;
    s = make_float2(0, 0);

#pragma unroll
    for (i = 0; i < TILES; i++) {
        if (INT8) {
            s = reinterpret_cast<const float2 *>(from->s[j])[i * 4 + lane % 4];
        }

        add_group<INT8>(sum[i], first, second, from->q[j][i * COLUMNS + lane / 4][lane % 4], s);
    }
}


template <int OUT>
static __device__ __forceinline__ void
put_tile(const args_t &a, uint32_t t, uint32_t n, float v0, float v1)
{
    float  v[2] = { v0, v1 }, up;

#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        v[i] = n < a.N ? finish(a, n, v[i]) : 0;

        /* The row after this one is 4 lanes on. */

        up = OUT == SILU_MUL ? __shfl_xor_sync(VLM_ALL, v[i], 4) : 0;

        if (n < a.N && t + i < a.T && (OUT != SILU_MUL || n % 2 == 0)) {
            put_out<OUT>(a, t + i, n, v[i], up);
        }
    }
}


/* blockIdx: x of 64 activation rows, y of 64 weight rows. */
template <bool INT8, int OUT>
__global__ void __launch_bounds__(MANY_THREADS, 3)
many(args_t a)
{
    float         sum[TILES][4], total[TILES][4];
    uint4         w[STAGE][2];
    uint32_t      i, j, g, left, t0, n0, lane;
    const uint4  *tile;

    VLM_SHARED(stage_t, stages, 2);

    lane = threadIdx.x % VLM_WARP;
    t0 = blockIdx.x * MANY_ROWS;
    n0 = (blockIdx.y * MANY_WARPS + threadIdx.x / VLM_WARP) * VLM_CUDA_TILE;
    tile = n0 < a.N ? a.w + static_cast<size_t>(n0 / VLM_CUDA_TILE) * a.groups * 2 * VLM_WARP
                      + lane
                    : nullptr;

#pragma unroll
    for (i = 0; i < TILES * 4; i++) {
        sum[i / 4][i % 4] = total[i / 4][i % 4] = 0;
    }

    copy_stage<INT8>(a, &stages[0], t0, 0);
    left = a.run;

#pragma unroll
    for (j = 0; j < STAGE; j++) {
        load_weights(a, tile, j, &w[j][0], &w[j][1]);
    }

    for (g = 0; g < a.groups; g += STAGE) {
        vlm_copy_wait<0>();
        __syncthreads();

        copy_stage<INT8>(a, &stages[(g / STAGE + 1) % 2], t0, g + STAGE);

#pragma unroll
        for (j = 0; j < STAGE; j++) {
            if (g + j < a.groups) {
                add_stage<INT8>(&stages[g / STAGE % 2], j, w[j][0], w[j][1], sum);
                load_weights(a, tile, g + j + STAGE, &w[j][0], &w[j][1]);
                left--;
            }

            if (left == 0) {
                left = a.run;

#pragma unroll
                for (i = 0; i < TILES * 4; i++) {
                    total[i / 4][i % 4] += sum[i / 4][i % 4];
                    sum[i / 4][i % 4] = 0;
                }
            }
        }
    }

#pragma unroll
    for (i = 0; i < TILES; i++) {
        put_tile<OUT>(a, t0 + i * COLUMNS + lane % 4 * 2, n0 + lane / 4, total[i][0] + sum[i][0],
                      total[i][1] + sum[i][1]);
        put_tile<OUT>(a, t0 + i * COLUMNS + lane % 4 * 2, n0 + lane / 4 + 8,
                      total[i][2] + sum[i][2], total[i][3] + sum[i][3]);
    }
}


/* ---- which of them ------------------------------------------------------------------------ */

template <bool INT8, int OUT>
static void
launch(vlm_device_t *d, const args_t &a)
{
    if (a.T <= COLUMNS) {
        VLM_LAUNCH(d, (few<INT8, OUT>), vlm_divide_up(a.N, VLM_CUDA_TILE), FEW_THREADS, 0, a);
        return;
    }

    VLM_LAUNCH(d, (many<INT8, OUT>), dim3(vlm_divide_up(a.T, MANY_ROWS),
               vlm_divide_up(a.N, MANY_WARPS * VLM_CUDA_TILE)), MANY_THREADS, 0, a);
}


template <bool INT8>
static void
launch_type(vlm_device_t *d, const vlm_linear_t *w, vlm_form_t store, const args_t &a)
{
    switch (w->epilogue) {
    case VLM_STORE:
        if (store == VLM_FORM_F32) {
            launch<INT8, STORE_F32>(d, a);
        } else {
            launch<INT8, STORE_ACT>(d, a);
        }
        break;
    case VLM_ADD:
        launch<INT8, ADD>(d, a);
        break;
    case VLM_SILU_MUL:
        launch<INT8, SILU_MUL>(d, a);
        break;
    case VLM_GELU:
        launch<INT8, GELU>(d, a);
        break;
    }
}


void
vlm_product(vlm_device_t *d, const vlm_linear_t *w, const void *x, const uint32_t *rows,
            const float *gain, float eps, uint32_t T, vlm_form_t store, void *y)
{
    args_t       a;
    vlm_ready_t  r;

    r.x = x;
    r.rows = rows;
    r.gain = gain;
    r.eps = eps;
    r.K = w->K;
    r.row_words = vlm_cuda_padded(w->K) / (w->type == VLM_INT8 ? 4 : 2);
    r.q = static_cast<unsigned *>(d->scratch.q);
    r.s = d->scratch.s;

    vlm_make_ready(d, w->type, gain == nullptr ? VLM_FORM_ACT : VLM_FORM_F32, r, T);

    a.w = static_cast<const uint4 *>(w->w);
    a.scale = w->scale;
    a.bias = w->bias;
    a.q = r.q;
    a.s = r.s;
    a.y = y;
    a.N = w->N;
    a.T = T;
    a.groups = r.row_words / 16;
    a.run = vlm_divide_up(a.groups, VLM_CUDA_PARTS);

    if (w->type == VLM_INT8) {
        launch_type<true>(d, w, store, a);
    } else {
        launch_type<false>(d, w, store, a);
    }

    if (T > COLUMNS) {
        vlm_device_pause(d);
    }
}


void
vlm_cuda_linear(vlm_device_t *d, const vlm_linear_t *w, const void *x, const float *gain, float eps,
                uint32_t T, void *y)
{
    size_t    in, out;
    uint32_t  t, n;

    in = static_cast<size_t>(w->K) * (gain == nullptr ? sizeof(vlm_bf16_t) : sizeof(float));
    out = w->epilogue == VLM_SILU_MUL ? w->N / 2 : w->N;
    out *= w->epilogue == VLM_ADD ? sizeof(float) : sizeof(vlm_bf16_t);

    for (t = 0; t < T; t += n) {
        n = min(T - t, static_cast<uint32_t>(VLM_CUDA_ROWS));
        vlm_product(d, w, static_cast<const uint8_t *>(x) + t * in, nullptr, gain, eps, n,
                    VLM_FORM_ACT, static_cast<uint8_t *>(y) + t * out);
    }
}


void
vlm_cuda_head(vlm_device_t *d, const vlm_linear_t *w, const float *x, const float *gain, float eps,
              const vlm_batch_t *b, float *logits)
{
    vlm_product(d, w, x, b->logit_row, gain, eps, b->R, VLM_FORM_F32, logits);
}
