/* Sizes of what lies in a CUDA device's memory.  Compiled into libvlm_cuda.so as well. */

#include "ops/cuda_plan.h"

#include <stddef.h>
#include <string.h>

#include "base/size.h"


uint64_t
vlm_cuda_act_bytes(uint64_t n)
{
    return vlm_mul(n, sizeof(uint16_t));
}


/* Tiles of 16 rows by 32 bytes, with int4's numbers, see cuda/pack.cu; f32 rows (the patch
   embedding's) as they are. */
uint64_t
vlm_cuda_packed_bytes(vlm_type_t type, uint32_t N, uint32_t K)
{
    uint64_t  rows;

    if (type == VLM_F32) {
        return vlm_mul(vlm_mul(N, K), sizeof(float));
    }

    rows = vlm_round(N, VLM_CUDA_TILE);

    if (type == VLM_INT4) {
        return vlm_mul(rows, vlm_mul(vlm_round(K, VLM_BLOCK) / VLM_BLOCK, VLM_CUDA_GROUP4));
    }

    return vlm_mul(rows, vlm_mul(vlm_round(K, VLM_BLOCK), type == VLM_INT8 ? 1 : 2));
}


void
vlm_cuda_place_scratch(vlm_arena_t *a, vlm_cuda_scratch_t *s, const vlm_need_t *need)
{
    uint64_t  blocks, values, heads, turned;

    memset(s, 0, sizeof(*s));

    blocks = vlm_mul(VLM_CUDA_ROWS, vlm_round(need->K, VLM_BLOCK) / VLM_BLOCK);
    values = vlm_mul(blocks, VLM_BLOCK);

    s->q = vlm_place(a, values, vlm_cuda_int8(need->type) ? 1 : 2);
    s->s = vlm_place(a, vlm_cuda_int8(need->type) ? blocks : 0, sizeof(float));
    s->qkv = vlm_place(a, vlm_mul(VLM_CUDA_ROWS, need->qkv), sizeof(float));

    turned = vlm_cuda_int8(need->type) ? vlm_mul(VLM_CUDA_TURNED, need->K) : 0;
    s->turn = vlm_place(a, vlm_mul(2, turned), sizeof(float));
    s->normed = vlm_place(a, vlm_cuda_act_bytes(turned), 1);

    s->low_inputs = vlm_place(a, vlm_mul(VLM_CUDA_LOW * VLM_LOW_PARTS, need->rank),
                              sizeof(float));
    s->low = vlm_place(a, vlm_cuda_low(need), sizeof(float));

    heads = vlm_mul(need->rows, need->heads);
    s->split = vlm_place(a, vlm_mul(vlm_mul(heads, vlm_cuda_splits(need)),
                                    vlm_add(need->head_dim, 2)), sizeof(float));
    s->ticket = vlm_place(a, heads, sizeof(uint32_t));
    s->head_ticket = vlm_place(a, need->qkv / (2 * VLM_CUDA_TILE), sizeof(uint32_t));
}
