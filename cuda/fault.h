/*
 * The class of an error of CUDA's runtime: can the process go on with this device?
 *
 * Codes are numbers here, so that the table is tested where there is no CUDA.
 */

#ifndef VLM_FAULT_H
#define VLM_FAULT_H

/* Codes for which we have error texts of our own. */
#define VLM_CODE_NO_MEMORY   2         /* MemoryAllocation */
#define VLM_CODE_OLD_DRIVER  35        /* InsufficientDriver */
#define VLM_CODE_NO_DEVICE   100       /* NoDevice */
#define VLM_CODE_NO_KERNEL   209       /* NoKernelImageForDevice */
#define VLM_CODE_BAD_PTX     218       /* InvalidPtx */
#define VLM_CODE_NO_COMPILER 221       /* JitCompilerNotFound */
#define VLM_CODE_NEW_PTX     222       /* UnsupportedPtxVersion */
#define VLM_CODE_NO_COMPILING 223      /* JitCompilationDisabled */

typedef enum {
    VLM_FAULT_NONE,
    VLM_FAULT_REFUSED,                 /* this call was not done; the device is still usable */
    VLM_FAULT_UNUSABLE,                /* there is no usable device */
    VLM_FAULT_LOST                     /* no function of CUDA may be called any more */
} vlm_fault_t;

#ifdef __cplusplus
extern "C"
#endif
vlm_fault_t vlm_fault_of(int code);

#endif
