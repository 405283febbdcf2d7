/*
 * The controls of the emulated device, for tests: its properties, and which call fails with which
 * error.  The emulated library exports them by name; CUDA's own library has none of them.
 */

#ifndef VLM_EMU_CONTROL_H
#define VLM_EMU_CONTROL_H

#include <stdint.h>

#define VLM_EMU_HANG  UINT64_MAX       /* as a code: the call does not return */

typedef enum {
    VLM_EMU_SEED,                      /* of blocks, warps, lanes and poison */
    VLM_EMU_DRIVER,                    /* CUDA's version that the driver knows: 13000; 0: none */
    VLM_EMU_BUILT_BY,                  /* CUDA's version that built the library */
    VLM_EMU_DEVICES,
    VLM_EMU_ARCH,
    VLM_EMU_BYTES,                     /* of memory */
    VLM_EMU_USED,                      /* before anything is reserved */
    VLM_EMU_TAKES,                     /* by the driver, once the device is used */
    VLM_EMU_KEEPS,                     /* by it, for each graph */
    VLM_EMU_FAIL_CODE,                 /* the error that the call below returns */
    VLM_EMU_FAIL_AT,                   /* calls until then: 1 is the next; 0: none fails */
    VLM_EMU_CAPTURES,                  /* 0: the driver refuses to */
    VLM_EMU_FORGET,                    /* reserved memory is freed, as by the end of a process */
    VLM_EMU_SLOW,                      /* a device that is opened then is this many times slower
                                          than 8 * 10^6 operations in a microsecond */
    VLM_EMU_SMS,                       /* its processors */
    VLM_EMU_IDLE,                      /* 1: launches are counted and not done */
    VLM_EMU_SETTINGS
} vlm_emu_setting_t;

typedef struct {
    uint64_t  calls;                   /* of the driver's table */
    uint64_t  calls_after_loss;        /* calls after an error that allows no further call */
    uint64_t  loaded;                  /* kernels */
    uint64_t  launches;                /* asked for: a graph is one */
    uint64_t  kernels;                 /* done */
    uint64_t  waits;                   /* of the host for the device */
    double    longest;                 /* launch, in microseconds, since IDLE was set last */
    double    between;                 /* two waits, at most, since then */
    uint64_t  blocks, streams, graphs; /* allocated and not freed */
    uint64_t  bytes;
} vlm_emu_counts_t;

#ifdef __cplusplus
extern "C" {
#endif

void vlm_emu_set(vlm_emu_setting_t setting, uint64_t value);
void vlm_emu_count(vlm_emu_counts_t *c);

typedef void vlm_emu_set_fn(vlm_emu_setting_t setting, uint64_t value);
typedef void vlm_emu_count_fn(vlm_emu_counts_t *c);

#ifdef __cplusplus
}
#endif

#endif
