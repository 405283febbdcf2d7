/*
 * What an error of CUDA's runtime means for us: can the process go on with this device?
 *
 * Codes are numbers here, so that the table is tested where there is no CUDA.
 */

#ifndef VLM_FAULT_H
#define VLM_FAULT_H

/* Those that we have words of our own for. */
#define VLM_CODE_NO_MEMORY   2         /* MemoryAllocation */
#define VLM_CODE_OLD_DRIVER  35        /* InsufficientDriver */
#define VLM_CODE_NO_DEVICE   100       /* NoDevice */

typedef enum {
    VLM_FAULT_NONE,
    VLM_FAULT_REFUSED,                 /* this call was not done; the device goes on */
    VLM_FAULT_UNUSABLE,                /* there is no device that we could use, now or at all */
    VLM_FAULT_LOST                     /* nothing of CUDA may be called any more */
} vlm_fault_t;

#ifdef __cplusplus
extern "C"
#endif
vlm_fault_t vlm_fault_of(int code);

#endif
