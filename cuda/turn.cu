/*
 * Norms of a turned stream whose gain is that of the stream before it was turned: the normed row is
 * turned back, gets gain and shift, and is turned again.  A block has a row, in the scratch memory,
 * in two states that take turns.  See format/turn.h for the turn.
 */

#include "product.h"

#define THREADS  256

typedef struct {
    vlm_norm_t       norm;
    vlm_turn_t       turn;
    const float     *x;
    const uint32_t  *rows;             /* NULL: the first ones */
    float           *work;             /* [rows][2][n] */
} turned_t;


static __device__ __forceinline__ void
swap(float **a, float **b)
{
    float  *c = *a;

    *a = *b;
    *b = c;
}


/* *x = (C x H) *x, without H's factor, by way of *y; the two change places. */
static __device__ void
spread(const vlm_turn_t &t, float **x, float **y)
{
    float     sum;
    uint32_t  i, j, k, h, at;

    for (h = 1; h < t.two; h *= 2) {
        __syncthreads();

        for (i = threadIdx.x; i < t.n; i += THREADS) {
            at = i & ~h;
            (*y)[i] = (i & h) == 0 ? (*x)[at] + (*x)[at + h] : (*x)[at] - (*x)[at + h];
        }

        swap(x, y);
    }

    if (t.odd == 1) {
        __syncthreads();
        return;
    }

    __syncthreads();

    for (i = threadIdx.x; i < t.n; i += THREADS) {
        j = i % t.two;

        for (sum = 0, k = 0; k < t.odd; k++) {
            sum += t.small[i / t.two * t.odd + k] * (*x)[k * t.two + j];
        }

        (*y)[i] = sum;
    }

    swap(x, y);
    __syncthreads();
}


static __device__ void
times(const vlm_turn_t &t, float *x)
{
    for (uint32_t i = threadIdx.x; i < t.n; i += THREADS) {
        x[i] *= t.sign[i];
    }
}


/* Threads read and write their own values alone. */
static __device__ void
reflect(const vlm_turn_t &t, float *x, float *sums)
{
    float     sum;
    uint32_t  i;

    if (t.mirror == nullptr) {
        return;
    }

    __syncthreads();

    for (sum = 0, i = threadIdx.x; i < t.n; i += THREADS) {
        sum += t.mirror[i] * x[i];
    }

    sum = vlm_block_sum(sum, sums);

    for (i = threadIdx.x; i < t.n; i += THREADS) {
        x[i] -= sum * t.mirror[i];
    }
}


/* The normed row without gain and shift. */
static __device__ void
norm_row(const turned_t &a, const float *x, float *y, float *sums)
{
    float     sum, mean, r, v;
    uint32_t  i, n = a.turn.n;

    mean = 0;

    if (a.norm.kind == VLM_NORM_LAYER) {
        for (sum = 0, i = threadIdx.x; i < n; i += THREADS) {
            sum += x[i];
        }

        mean = vlm_block_sum(sum, sums) / static_cast<float>(n);
    }

    for (sum = 0, i = threadIdx.x; i < n; i += THREADS) {
        v = x[i] - mean;
        sum = fmaf(v, v, sum);
    }

    r = 1 / sqrtf(vlm_block_sum(sum, sums + VLM_WARP) / static_cast<float>(n) + a.norm.eps);

    for (i = threadIdx.x; i < n; i += THREADS) {
        y[i] = (x[i] - mean) * r;
    }
}


static __device__ __forceinline__ void
put(vlm_bf16_t *to, float v)
{
    *to = vlm_to_bf16(v);
}


static __device__ __forceinline__ void
put(float *to, float v)
{
    *to = v;
}


template <typename Y>
__global__ void __launch_bounds__(THREADS)
norm_turned(turned_t a, Y *y)
{
    float     *v, *w;
    uint32_t   i, row, n = a.turn.n;

    VLM_SHARED(float, sums, 4 * VLM_WARP);

    row = a.rows == nullptr ? blockIdx.x : a.rows[blockIdx.x];
    v = a.work + static_cast<size_t>(blockIdx.x) * 2 * n;
    w = v + n;
    y += static_cast<size_t>(blockIdx.x) * n;

    norm_row(a, a.x + static_cast<size_t>(row) * n, v, sums);
    reflect(a.turn, v, sums + 2 * VLM_WARP);
    spread(a.turn, &v, &w);
    times(a.turn, v);

    for (i = threadIdx.x; i < n; i += THREADS) {
        v[i] = a.norm.shift == nullptr ? v[i] * a.norm.gain[i]
                                       : v[i] * a.norm.gain[i] + a.norm.shift[i];
    }

    times(a.turn, v);
    spread(a.turn, &v, &w);
    reflect(a.turn, v, sums + 3 * VLM_WARP);

    for (i = threadIdx.x; i < n; i += THREADS) {
        put(&y[i], v[i]);
    }
}


void
vlm_load_turn(vlm_device_t *d)
{
    VLM_LOAD(d, norm_turned<vlm_bf16_t>, 0);
    VLM_LOAD(d, norm_turned<float>, 0);
}


void
vlm_norm_turned(vlm_device_t *d, const vlm_norm_t *norm, const vlm_turn_t *turn, const float *x,
                const uint32_t *rows, uint32_t T, vlm_out_t form, void *y)
{
    turned_t  a = { *norm, *turn, x, rows, d->scratch.turn };
    double    cost = vlm_cost(200.0 * turn->n, (40.0 + 4.0 * turn->odd) * turn->n);

    if (form == VLM_OUT_F32) {
        VLM_LAUNCH(d, cost * T, norm_turned<float>, T, THREADS, 0, a, static_cast<float *>(y));
    } else {
        VLM_LAUNCH(d, cost * T, norm_turned<vlm_bf16_t>, T, THREADS, 0, a,
                   static_cast<vlm_bf16_t *>(y));
    }
}
