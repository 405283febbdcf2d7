/*
 * Adds the products of adapters to the linears of the CPU device: see vlm_lows_t.
 *
 * A linear whose rows have adapters begins with the products with a, which threads share once the
 * rows are ready.  Then it goes on as without adapters, but each set of kernels ends a panel with
 * vlm_low_end(), which adds the products with b to the sums before the epilogue.  Rows without an
 * adapter get the bits that they get without this.
 */

#ifndef VLM_LOW_H
#define VLM_LOW_H

#include "ops/kernels.h"

#define VLM_LOW_ROWS  12               /* of a tile */

typedef struct {                       /* rows that have the same adapter */
    const vlm_low_t  *low;
    uint32_t          n, row[VLM_LOW_ROWS];
} vlm_low_tile_t;

typedef struct vlm_low_job_s {
    const vlm_kernels_t  *k;
    const vlm_linear_t   *w;
    const float          *x;           /* [T][K] as the matrix reads them, in f32 */
    uint32_t              T;
    uint32_t              first;       /* row of the call that is row 0 here */
    const uint32_t       *row_of;      /* [T] or that of each, from a batch; or NULL */
    uint32_t              rank;        /* of need */
    float                *z;           /* [T][VLM_LOW_PARTS rank] */
    vlm_low_tile_t       *tile;        /* [T] at most */
    uint32_t              n, groups;   /* tiles, groups of a part: set by vlm_low_begin() */
    int                   all;         /* 1: each row has an adapter */
} vlm_low_job_t;

/* 1: the matrix has something of an adapter for some of the rows. */
int vlm_low_begin(vlm_low_job_t *j);
/* Items of the products with a, and their work: vlm_threads_run()'s. */
uint32_t vlm_low_items(const vlm_low_job_t *j);
void vlm_low_inputs(void *job, uint32_t begin, uint32_t end, uint32_t thread);
/*
 * The end of rows [t, t + rows) of panels [p, p + panels), of which y [panels][rows] has the sums,
 * and is used up: products with b, and the epilogue.
 */
void vlm_low_end(const vlm_linear_args_t *a, uint32_t p, uint32_t t, uint32_t panels,
                 uint32_t rows, float y[][VLM_PANEL]);

/* The end of those rows with or without adapters, by a set's epilogue. */
static inline void
vlm_linear_end(const vlm_linear_args_t *a, vlm_epilogue_fn epilogue, uint32_t p, uint32_t t,
               uint32_t panels, uint32_t rows, float y[][VLM_PANEL])
{
    float     *to = a->y + t * vlm_linear_out(a->w);
    uint32_t   n0, n;

    if (a->low != NULL) {
        vlm_low_end(a, p, t, panels, rows, y);
        return;
    }

    for ( /* void */ ; panels > 0; panels--, p++, y += rows) {
        n0 = p * VLM_PANEL;
        n = a->w->N - n0 < VLM_PANEL ? a->w->N - n0 : VLM_PANEL;
        epilogue(a->w, n0, n, rows, y, to);
    }
}

/* Adds to x [K] what the adapter of row t adds to a table's row of a token. */
void vlm_low_embed(const vlm_kernels_t *k, const vlm_linear_t *table, uint32_t t, uint32_t token,
                   float *x);

#endif
