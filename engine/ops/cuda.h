/*
 * The interface between the engine and libvlm_cuda.so: how the library is opened, and an ABI number
 * that differs between incompatible builds.
 *
 * Only the library calls CUDA.  It is opened at run time, in the process that runs the model and
 * never before a fork.  cuda.c says where the file is looked for.
 */

#ifndef VLM_CUDA_H
#define VLM_CUDA_H

#include "ops/cuda_plan.h"
#include "ops/ops.h"
#include "vlm.h"

#define VLM_CUDA_LIBRARY   "libvlm_cuda.so"
#define VLM_CUDA_VERSION   9           /* goes up when an operation's meaning changes */

/* The layout of the structures that cross the interface is part of the ABI as well. */
#define VLM_CUDA_ABI                                                                             \
    ((uint32_t) VLM_CUDA_VERSION << 16                                                           \
     | (uint32_t) (sizeof(vlm_ops_t) + 17 * sizeof(vlm_basic_t) + 3 * sizeof(vlm_batch_t)         \
                   + 5 * sizeof(vlm_linear_t) + 7 * sizeof(vlm_need_t)                           \
                   + 11 * sizeof(vlm_pick_t) + 13 * sizeof(vlm_kv_t) + 19 * sizeof(vlm_norm_t)   \
                   + 23 * sizeof(vlm_qkv_t) + 29 * sizeof(vlm_attend_t)                          \
                   + 31 * sizeof(vlm_patches_t) + 37 * sizeof(vlm_segments_t)                    \
                   + 41 * sizeof(vlm_places_t) + 43 * sizeof(vlm_turn_t)                         \
                   + 47 * sizeof(vlm_low_t) + 53 * sizeof(vlm_lows_t)                            \
                   + 59 * sizeof(vlm_low_rows_t)))

/*
 * The driver's own memory: context, kernels, their stacks, kept steps.  This is a declared figure,
 * for the plan; the table's taken() returns the measured one.
 */
#define VLM_CUDA_OVERHEAD  (UINT64_C(400) << 20)

typedef struct {
    uint32_t    abi;                   /* VLM_CUDA_ABI of the caller; always the first member */
    uint32_t    index;                 /* of the device */
    vlm_type_t  weights;
    uint64_t    bytes;                 /* to be reserved: refused if they are not free */
    int         lost;                  /* set on return: only a new process can recover */
} vlm_cuda_request_t;

/*
 * Exported by the library.  NULL: the error names the cause (no driver, a driver that is too old,
 * no such device, too little memory) with the numbers, VLM_EDEVICE.
 */
typedef vlm_device_t *vlm_cuda_open_fn(vlm_cuda_request_t *r, const vlm_ops_t **table,
                                       vlm_err_t *err);

/* ---- the engine's side, cuda.c ------------------------------------------- */

/* Checks that kernels exist for a model: VLM_EDEVICE names what is beyond them. */
int vlm_cuda_takes(vlm_type_t weights, uint32_t head_dim, uint32_t vision_head_dim, vlm_err_t *err);

/* "cuda" is 0, "cuda:N" is N.  -1: neither. */
int vlm_cuda_index(const char *device, uint32_t *index);

/* 1 if the library's file exists.  The function loads nothing, so that it can run before a fork. */
int vlm_cuda_is_there(void);

/* A table that can only plan: it touches no device and loads nothing. */
vlm_device_t *vlm_cuda_planner(const vlm_ops_t **table);

/* Loads the library and opens a device; abi is set here. */
vlm_device_t *vlm_cuda_load(vlm_cuda_request_t *r, const vlm_ops_t **table, vlm_err_t *err);

#endif
