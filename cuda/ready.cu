/*
 * Makes activation rows ready for a product, by a launch of its own: normalised if there is a gain,
 * then in int8 with a scale for each block, or in bf16.  See ready.cuh for the order of bytes.
 */

#include "ready.cuh"


/* A block of threads for each row. */
template <bool INT8>
__global__ void __launch_bounds__(VLM_READY_THREADS)
ready(vlm_ready_t a)
{
    VLM_SHARED(float, sums, 2 * VLM_READY_WARPS);

    vlm_ready_rows<INT8>(a, blockIdx.x, 1, sums);
}


void
vlm_load_ready(vlm_device_t *d)
{
    VLM_LOAD(d, ready<true>, 0);
    VLM_LOAD(d, ready<false>, 0);
}


void
vlm_make_ready(vlm_device_t *d, vlm_type_t weights, const vlm_ready_t &a, uint32_t T)
{
    const double  cost = vlm_cost(6.0 * T * a.K, 0);

    if (vlm_cuda_int8(weights)) {
        VLM_LAUNCH(d, cost, ready<true>, T, VLM_READY_THREADS, 0, a);
    } else {
        VLM_LAUNCH(d, cost, ready<false>, T, VLM_READY_THREADS, 0, a);
    }
}
