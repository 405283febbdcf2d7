/*
 * What the engine and libvlm_cuda.so agree upon: how the library is opened, and a number that two
 * builds which differ do not share.
 *
 * The library is the only one that speaks CUDA; it is opened at run time, in the process that runs
 * the model and never before a fork.  See cuda.c for where it is looked for.
 */

#ifndef VLM_CUDA_H
#define VLM_CUDA_H

#include "ops/cuda_plan.h"
#include "ops/ops.h"
#include "vlm.h"

#define VLM_CUDA_LIBRARY   "libvlm_cuda.so"
#define VLM_CUDA_VERSION   4           /* goes up when an operation's meaning changes */

/* And the layout of what crosses the border. */
#define VLM_CUDA_ABI                                                                             \
    ((uint32_t) VLM_CUDA_VERSION << 16                                                           \
     | (uint32_t) (sizeof(vlm_ops_t) + 3 * sizeof(vlm_batch_t) + 5 * sizeof(vlm_linear_t)        \
                   + 7 * sizeof(vlm_need_t) + 11 * sizeof(vlm_pick_t) + 13 * sizeof(vlm_kv_t)))

/*
 * What the driver takes for itself: context, kernels, their stacks, kept steps.  A declared figure,
 * for the plan; the table's taken() is what was measured.
 */
#define VLM_CUDA_OVERHEAD  (UINT64_C(400) << 20)

typedef struct {
    uint32_t    abi;                   /* VLM_CUDA_ABI of the caller, first whatever changes */
    uint32_t    index;                 /* of the device */
    vlm_type_t  weights;
    uint64_t    bytes;                 /* that will be reserved: refused if they are not free */
    int         lost;                  /* told: it failed as only a new process can undo */
} vlm_cuda_request_t;

/*
 * Exported by the library.  NULL: the error names the cause (no driver, one that is too old, no
 * such device, too little memory) with the numbers, VLM_EDEVICE.
 */
typedef vlm_device_t *vlm_cuda_open_fn(vlm_cuda_request_t *r, const vlm_ops_t **table,
                                       vlm_err_t *err);

/* ---- the engine's side, cuda.c ------------------------------------------- */

/* What kernels are made for: VLM_EDEVICE names what a model has beyond it. */
int vlm_cuda_takes(vlm_type_t weights, uint32_t head_dim, uint32_t vision_head_dim,
                   vlm_err_t *err);

/* "cuda" is 0, "cuda:N" is N.  -1: it is neither. */
int vlm_cuda_index(const char *device, uint32_t *index);

/* Is there a library to open?  Looks for the file, loads nothing: for the time before a fork. */
int vlm_cuda_is_there(void);

/* A table that can plan and do nothing else; no device is touched, nothing is loaded. */
vlm_device_t *vlm_cuda_planner(const vlm_ops_t **table);

/* Loads the library and opens a device; abi is set here. */
vlm_device_t *vlm_cuda_load(vlm_cuda_request_t *r, const vlm_ops_t **table, vlm_err_t *err);

#endif
