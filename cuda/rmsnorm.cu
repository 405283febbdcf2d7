/* rmsnorm: y = x / rms(x) * gain, a row a block.  Only the merger's; other norms are fused. */

#include "device.h"

#define THREADS  256


__global__ void __launch_bounds__(THREADS)
rmsnorm(const float *x, const float *gain, float eps, uint32_t n, vlm_bf16_t *y)
{
    float     sum, r;
    uint32_t  i;

    VLM_SHARED(float, warps, VLM_WARP);

    x += static_cast<size_t>(blockIdx.x) * n;
    y += static_cast<size_t>(blockIdx.x) * n;

    for (sum = 0, i = threadIdx.x; i < n; i += THREADS) {
        sum = fmaf(x[i], x[i], sum);
    }

    r = 1 / sqrtf(vlm_block_sum(sum, warps) / static_cast<float>(n) + eps);

    for (i = threadIdx.x; i < n; i += THREADS) {
        y[i] = vlm_to_bf16(x[i] * r * gain[i]);
    }
}


void
vlm_load_rmsnorm(vlm_device_t *d)
{
    VLM_LOAD(d, rmsnorm, 0);
}


void
vlm_cuda_norm(vlm_device_t *d, const vlm_norm_t *norm, const float *x, uint32_t T, uint32_t n,
              void *y)
{
    VLM_LAUNCH(d, vlm_cost(6.0 * T * n, 0), rmsnorm, T, THREADS, 0, x, norm->gain, norm->eps, n,
               static_cast<vlm_bf16_t *>(y));
}
