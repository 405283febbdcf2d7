/* norm: a row a block, its mean taken off or not.  Only the mergers'; other norms are fused. */

#include "device.h"

#define THREADS  256


__global__ void __launch_bounds__(THREADS)
norm_rows(const float *x, vlm_norm_t norm, uint32_t n, vlm_bf16_t *y)
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
        y[i] = vlm_to_bf16(norm.shift == nullptr ? v : v + norm.shift[i]);
    }
}


void
vlm_load_norm(vlm_device_t *d)
{
    VLM_LOAD(d, norm_rows, 0);
}


void
vlm_cuda_norm(vlm_device_t *d, const vlm_norm_t *norm, const float *x, uint32_t T, uint32_t n,
              void *y)
{
    size_t        at;
    uint32_t      t, rows;
    const double  cost = vlm_cost(6.0 * n, 0);

    for (t = 0; t < T; t += rows) {
        rows = vlm_fit(d, cost, T - t);
        at = static_cast<size_t>(t) * n;
        VLM_LAUNCH(d, cost * rows, norm_rows, rows, THREADS, 0, x + at, *norm, n,
                   static_cast<vlm_bf16_t *>(y) + at);
    }
}
