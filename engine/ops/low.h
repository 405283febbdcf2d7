/*
 * Adds the products of adapters to the linears of the CPU device: see vlm_lows_t.
 *
 * A linear whose rows have adapters goes in two steps of its own after its rows are ready: threads
 * share the products with a, then panels of the matrix, whose sums stay in a thread's scratch until
 * b's products have been added and the epilogue is done.  Rows without an adapter get the bits that
 * they get without this.
 */

#ifndef VLM_LOW_H
#define VLM_LOW_H

#include "ops/kernels.h"

typedef struct {
    const vlm_kernels_t  *k;
    vlm_linear_args_t     args;
    const float          *rows;        /* [T][K] as the matrix reads them, in f32 */
    uint32_t              first;       /* row of the call that is row 0 here */
    const uint32_t       *row_of;      /* [T] or that of each, from a batch; or NULL */
    uint32_t              rank;        /* of need */
    float                *z;           /* [T][VLM_LOW_PARTS][rank] */
    float                *room;        /* [threads][vlm_low_floats()] */
    uint32_t              chunk;       /* the most rows */
} vlm_low_job_t;

/* Floats of a thread's scratch for so many rows. */
uint64_t vlm_low_floats(uint32_t rows);

/* 1: the matrix has rows of some adapter among rows [0, T) of the job. */
int vlm_low_wanted(const vlm_low_job_t *j);
/* Items of the first step, and their work: vlm_threads_run()'s. */
uint32_t vlm_low_items(const vlm_low_job_t *j);
void vlm_low_inputs(void *job, uint32_t begin, uint32_t end, uint32_t thread);
/* Panels [begin, end). */
void vlm_low_panels(void *job, uint32_t begin, uint32_t end, uint32_t thread);

/* Adds to x [K] what the adapter of row t adds to a table's row of a token. */
void vlm_low_embed(const vlm_kernels_t *k, const vlm_linear_t *table, uint32_t t, uint32_t token,
                   float *x);

#endif
