/* Learned positions of patches on the CPU device: see vlm_places_t. */

#ifndef VLM_OPS_PLACES_H
#define VLM_OPS_PLACES_H

#include "ops/kernels.h"

typedef struct {
    const vlm_kernels_t  *k;
    const vlm_places_t   *places;
    const vlm_patches_t  *patches;
    uint32_t              E;
    float                *x;           /* [P][E] */
} vlm_places_job_t;

/* Adds to patches [begin, end) their places: vlm_threads_run()'s. */
void vlm_place_patches(void *job, uint32_t begin, uint32_t end, uint32_t thread);

#endif
