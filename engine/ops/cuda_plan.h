/*
 * Sizes of the buffers in a CUDA device's memory.  The plan uses them without a device, and
 * libvlm_cuda.so is built from the same source.
 */

#ifndef VLM_CUDA_PLAN_H
#define VLM_CUDA_PLAN_H

#include "base/arena.h"
#include "ops/ops.h"
#include "vlm.h"

#define VLM_CUDA_ROWS      1024        /* activation rows that go through a product together */
#define VLM_CUDA_TILE      16          /* weight rows that are packed together */
#define VLM_CUDA_GROUP4    34          /* bytes of VLM_BLOCK values of a weight row in int4 */
#define VLM_CUDA_TURNED    8u          /* rows that are turned together around a norm */
#define VLM_CUDA_LOW       256u        /* activation rows that adapters add to together */
#define VLM_CUDA_SPLIT     128         /* cached rows that one block of threads attends to */

/* The operations' own memory: activation rows as a product takes them, and partial sums. */
typedef struct {
    void      *q;                      /* [ROWS][blocks 64] int8 or bf16, by the weights */
    float     *s;                      /* [blocks][ROWS] scales of int8 */
    float     *qkv;                    /* [ROWS][qkv] before rotation */
    float     *turn;                   /* [TURNED][2 K] of int8: rows in two states */
    void      *normed;                 /* act [TURNED][K] */
    float     *low_inputs;             /* [LOW][VLM_LOW_PARTS rank] of adapters */
    float     *low;                    /* [vlm_cuda_low()]: what they add to some rows */
    float     *split;                  /* [rows][heads][splits][head_dim + 2] of attention */
    uint32_t  *ticket;                 /* [rows][heads] blocks that have finished */
    uint32_t  *head_ticket;            /* the same of the heads of qkv: of 2 tiles at least */
} vlm_cuda_scratch_t;

uint64_t vlm_cuda_act_bytes(uint64_t n);
uint64_t vlm_cuda_packed_bytes(vlm_type_t type, uint32_t N, uint32_t K);
void vlm_cuda_place_scratch(vlm_arena_t *a, vlm_cuda_scratch_t *s, const vlm_need_t *need);

/* The most blocks that share the cached rows of one sequence. */
static inline uint32_t
vlm_cuda_splits(const vlm_need_t *need)
{
    return need->keys / VLM_CUDA_SPLIT + 1;
}

/* Sums of adapters that there is room for: of VLM_CUDA_LOW rows, or one of the head.  A matrix has
   twice as many outputs as some other has inputs, gates beside them, or fewer. */
static inline uint64_t
vlm_cuda_low(const vlm_need_t *need)
{
    uint64_t  row, n;

    row = 2 * (uint64_t) need->K > need->qkv ? 2 * (uint64_t) need->K : need->qkv;
    n = VLM_CUDA_LOW * row > need->vocab ? VLM_CUDA_LOW * row : need->vocab;

    return need->rank == 0 ? 0 : n;
}

/* 1: activation rows become int8 beside weights of that type. */
static inline int
vlm_cuda_int8(vlm_type_t type)
{
    return type == VLM_INT8 || type == VLM_INT4;
}

/* Inputs of a row, padded with zeros to whole blocks. */
static inline uint32_t
vlm_cuda_padded(uint32_t K)
{
    return (K + VLM_BLOCK - 1) / VLM_BLOCK * VLM_BLOCK;
}

#endif
