/* The CPU device's parts, shared by cpu.c and cpu_vision.c. */

#ifndef VLM_CPU_H
#define VLM_CPU_H

#include "base/threads.h"
#include "ops/kernels.h"
#include "ops/low.h"

#define CHUNK           256            /* activation rows between two readings of the weights */
#define MAX_HEAD_DIM    512
#define MAX_BLOCKS      16             /* of memory: an engine has one, tests some */

typedef struct {                       /* the operations' own memory */
    float            *normed;          /* [CHUNK][K] */
    int8_t           *q;               /* [CHUNK][blocks 64] */
    float            *s;               /* [CHUNK][pieces] */
    int32_t          *sum;             /* [CHUNK][pieces] */
    float            *qkv;             /* [CHUNK][qkv] */
    float            *attend;          /* [threads][vlm_cpu_attend_floats()] */
    float            *rows;            /* [rows][K], gathered for the head */
    float            *turn;            /* [threads][K], of int8 */
    float            *low;             /* [CHUNK][VLM_LOW_PARTS rank] of adapters */
    vlm_low_tile_t   *tiles;           /* [CHUNK] of rows with adapters */
    vlm_candidate_t  *candidates;      /* [threads][vocab] */
} vlm_scratch_t;

typedef struct {                       /* of memory */
    uint8_t  *base;
    uint64_t  bytes;
} vlm_block_t;

struct vlm_device_s {
    vlm_kernels_t    k;
    uint32_t         n_threads;
    vlm_threads_t   *threads;          /* started by the first reserve() */
    vlm_scratch_t    scratch;
    vlm_need_t       need;

    uint32_t         n_blocks;
    vlm_block_t      block[MAX_BLOCKS];
};


/* Floats of a thread's scratch for attention. */
static inline uint64_t
vlm_cpu_attend_floats(const vlm_need_t *need)
{
    uint64_t  n, n16;

    n = vlm_attend_floats(need->keys, need->head_dim);
    n16 = vlm_int16_floats(need->head_dim);

    return n > n16 ? n : n16;
}


static inline float *
vlm_cpu_attend_scratch(const vlm_device_t *d, uint32_t thread)
{
    return d->scratch.attend + thread * vlm_cpu_attend_floats(&d->need);
}


/*
 * At most CHUNK rows, of which the first is row `first` of the call; with row_of row t is that of
 * the batch.  norm may be NULL.
 */
void vlm_cpu_linear_chunk(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm,
                          const float *x, uint32_t T, float *y, uint32_t first,
                          const uint32_t *row_of);

/* The operations of vision: see ops.h. */
void vlm_cpu_patch_embed(vlm_device_t *d, const vlm_linear_t *w, const uint8_t *pixels, uint32_t P,
                         float *x);
void vlm_cpu_add_places(vlm_device_t *d, const vlm_places_t *places, const vlm_patches_t *p,
                        uint32_t E, float *x);
void vlm_cpu_qkv_2d(vlm_device_t *d, const vlm_qkv_t *a, const float *x, const vlm_patches_t *at,
                    void *q, void *k, void *v);
void vlm_cpu_attend_segments(vlm_device_t *d, const vlm_attend_t *a, const void *q, const void *k,
                             const void *v, const vlm_segments_t *s, void *o);

#endif
