/*
 * norm, norm_stream: each block normalises one row, with or without subtracting its mean.  Mergers
 * and an embedding use these kernels; other norms are in turn.cu, or fused into products.
 */

#include "product.h"

#define THREADS  256


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


/* y may be x: each thread reads a value that it writes, after all have been summed. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
norm_rows(const float *x, vlm_norm_t norm, uint32_t n, T *y)
{
    float     sum, mean, r, v;
    uint32_t  i;

    VLM_SHARED(float, sums, 2 * VLM_WARP);

    x += static_cast<size_t>(blockIdx.x) * n;
    y += static_cast<size_t>(blockIdx.x) * n;
    mean = 0;

    if (norm.kind == VLM_NORM_LAYER) {
        for (sum = 0, i = threadIdx.x; i < n; i += THREADS) {
            sum += x[i];
        }

        mean = vlm_block_sum(sum, sums) / static_cast<float>(n);
    }

    for (sum = 0, i = threadIdx.x; i < n; i += THREADS) {
        v = x[i] - mean;
        sum = fmaf(v, v, sum);
    }

    r = 1 / sqrtf(vlm_block_sum(sum, sums + VLM_WARP) / static_cast<float>(n) + norm.eps);

    for (i = threadIdx.x; i < n; i += THREADS) {
        v = (x[i] - mean) * r * norm.gain[i];
        put(&y[i], norm.shift == nullptr ? v : v + norm.shift[i]);
    }
}


void
vlm_load_norm(vlm_device_t *d)
{
    VLM_LOAD(d, norm_rows<vlm_bf16_t>, 0);
    VLM_LOAD(d, norm_rows<float>, 0);
}


template <typename Y>
static void
launch(vlm_device_t *d, const vlm_norm_t *norm, const float *x, uint32_t T, uint32_t n, Y *y)
{
    size_t        at;
    uint32_t      t, rows;
    const double  cost = vlm_cost(6.0 * n, 0);

    for (t = 0; t < T; t += rows) {
        rows = vlm_fit(d, cost, T - t);
        at = static_cast<size_t>(t) * n;
        VLM_LAUNCH(d, cost * rows, norm_rows<Y>, rows, THREADS, 0, x + at, *norm, n, y + at);
    }
}


void
vlm_cuda_norm(vlm_device_t *d, const vlm_norm_t *norm, const float *x, uint32_t T, uint32_t n,
              void *y)
{
    launch(d, norm, x, T, n, static_cast<vlm_bf16_t *>(y));
}


void
vlm_cuda_norm_stream(vlm_device_t *d, const vlm_norm_t *norm, const vlm_turn_t *turn, float *x,
                     uint32_t T, uint32_t n)
{
    uint32_t  t, rows;

    if (turn == nullptr) {
        launch(d, norm, x, T, n, x);
        return;
    }

    for (t = 0; t < T; t += rows) {
        rows = min(T - t, VLM_CUDA_TURNED);
        vlm_norm_turned(d, norm, turn, x + static_cast<size_t>(t) * n, nullptr, rows, VLM_OUT_F32,
                        x + static_cast<size_t>(t) * n);
    }
}
