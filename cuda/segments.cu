/* attend_segments: the patches of a window, or of a whole picture, each over all of them. */

#include "attend.cuh"

#define Q     4                        /* query vectors of a group of lanes */
#define TILE  (VLM_GROUPS * Q)

typedef struct {
    const vlm_bf16_t  *q, *k, *v;      /* [P][heads hd] */
    vlm_bf16_t        *o;
    const uint32_t    *border;
    uint32_t           heads, hd;
    float              scale;
} args_t;


/* blockIdx: x of segments, y of heads, z of tiles of a segment's rows. */
template <int D>
__global__ void __launch_bounds__(VLM_ATTEND_THREADS)
attend_segment(args_t a)
{
    size_t                    stride, at;
    uint32_t                  first, n, row, i, d, limit[Q], group;
    vlm_attend_keys_t         k;
    vlm_attend_state_t<D, Q>  all;

    typedef vlm_attend_shared_t<D, Q>  shared_t;
    VLM_SHARED(shared_t, sh, 1);

    first = a.border[blockIdx.x];
    n = a.border[blockIdx.x + 1] - first;
    row = blockIdx.z * TILE;

    if (row >= n) {
        return;                        /* the whole block: others are longer */
    }

    stride = static_cast<size_t>(a.heads) * a.hd;
    at = first * stride + blockIdx.y * a.hd;
    group = threadIdx.x / VLM_LANES;

    for (i = threadIdx.x; i < TILE * VLM_LANES * D; i += VLM_ATTEND_THREADS) {
        d = i % (VLM_LANES * D);
        sh[0].q[i / (VLM_LANES * D)][d] = row + i / (VLM_LANES * D) < n && d < a.hd
                                          ? a.q[at + (row + i / (VLM_LANES * D)) * stride + d] : 0;
    }

#pragma unroll
    for (int j = 0; j < Q; j++) {
        limit[j] = row + group * Q + j < n ? n : 0;
    }

    k.k = a.k + at;
    k.v = a.v + at;
    k.stride = stride;
    k.hd = a.hd;
    k.scale = a.scale;
    vlm_attend_clear(all);
    vlm_attend_run<D, Q>(sh[0], k, 0, n, limit, all);

#pragma unroll
    for (int j = 0; j < Q * D; j++) {
        d = threadIdx.x % VLM_LANES + VLM_LANES * (j % D);

        if (limit[j / D] > 0 && d < a.hd) {
            a.o[at + (row + group * Q + j / D) * stride + d] = vlm_to_bf16(all.o[j / D][j % D]
                                                                          / all.l[j / D]);
        }
    }
}


void
vlm_load_segments(vlm_device_t *d)
{
    VLM_LOAD(d, attend_segment<2>, 0);
    VLM_LOAD(d, attend_segment<4>, 0);
    VLM_LOAD(d, attend_segment<5>, 0);
    VLM_LOAD(d, attend_segment<8>, 0);
}


template <int D>
static void
launch(vlm_device_t *d, const args_t &a, uint32_t n_segments, uint32_t longest)
{
    VLM_LAUNCH(d, attend_segment<D>, dim3(n_segments, a.heads, vlm_divide_up(longest, TILE)),
               VLM_ATTEND_THREADS, 0, a);
}


void
vlm_cuda_attend_segments(vlm_device_t *d, const void *q, const void *k, const void *v,
                         const uint32_t *border, uint32_t n_segments, uint32_t P, uint32_t longest,
                         uint32_t heads, uint32_t head_dim, void *o)
{
    args_t  a;

    (void) P;

    a.q = static_cast<const vlm_bf16_t *>(q);
    a.k = static_cast<const vlm_bf16_t *>(k);
    a.v = static_cast<const vlm_bf16_t *>(v);
    a.o = static_cast<vlm_bf16_t *>(o);
    a.border = border;
    a.heads = heads;
    a.hd = head_dim;
    a.scale = 1 / sqrtf(static_cast<float>(head_dim));

    if (head_dim <= 32) {
        launch<2>(d, a, n_segments, longest);
    } else if (head_dim <= 64) {
        launch<4>(d, a, n_segments, longest);
    } else if (head_dim <= 80) {
        launch<5>(d, a, n_segments, longest);
    } else {
        launch<8>(d, a, n_segments, longest);
    }
}
