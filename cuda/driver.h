/*
 * The calls of CUDA's runtime that this library makes, as a table: runtime.cu fills it in with
 * CUDA's own, emu/driver.cpp with an emulated device that a test can make fail.
 *
 * Functions return CUDA's error codes; 0 is success.  A stream is a void *.
 */

#ifndef VLM_DRIVER_H
#define VLM_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "common.cuh"

typedef struct {
    const void    *kernel;
    const char    *name;
    double         cost;               /* by cost.h */
    dim3           grid, block;
    size_t         shared;             /* bytes of dynamic shared memory */
    void          *stream;
    void         **args;               /* addresses of the parameters, as cudaLaunchKernel() has */
    const size_t  *sizes;              /* and their bytes */
    unsigned       n_args;
    void         (*call)(const void *kernel, void **args);     /* the emulator's threads call it */
} vlm_launch_t;

typedef struct {
    char      name[128];
    uint32_t  arch;                    /* 75, 80, 86, 89, 90, 100, 120 */
    uint32_t  n_sms;
    uint64_t  bytes;                   /* of memory in all */
    uint64_t  shared;                  /* most shared bytes of a block */
} vlm_facts_of_device_t;

typedef struct {
    int         (*version)(int *driver, int *runtime);     /* 13000 is 13.0; driver 0: none */
    int         (*count)(int *n);
    int         (*facts)(int index, vlm_facts_of_device_t *f);
    int         (*use)(int index);     /* this thread's calls are for that device */
    /* The f32 operations that the device does in a microsecond, measured for some milliseconds. */
    int         (*speed)(uint32_t n_sms, double *ops);
    int         (*memory)(size_t *free, size_t *total);
    int         (*reserve)(void **p, size_t bytes);
    int         (*release)(void *p);
    int         (*open_stream)(void **stream);
    int         (*close_stream)(void *stream);
    /* Copies in the order of the stream; host memory may be changed after the call. */
    int         (*fill)(void *to, int byte, size_t bytes, void *stream);
    int         (*put)(void *to, const void *from, size_t bytes, void *stream);
    int         (*get)(void *to, const void *from, size_t bytes, void *stream);
    /* Loads the kernel onto the device; its blocks have at most shared dynamic bytes. */
    int         (*load)(const void *kernel, size_t shared);
    int         (*launch)(const vlm_launch_t *l);          /* the kernel is loaded */
    int         (*wait)(void *stream);
    /* Launches from capture() to captured() do not run but become a graph; meanwhile only launch()
       may be called of this table.  captured() allocates the graph's memory on the device. */
    int         (*capture)(void *stream);
    int         (*captured)(void *stream, void **graph);
    int         (*replay)(void *graph, void *stream);
    int         (*drop)(void *graph);
    /* Bytes of the device that are in use, by any process.  The call makes no context, so that it
       can come before the first use of the device.  -1: not known. */
    int         (*in_use)(int index, uint64_t *bytes);
    const char *(*text)(int code);     /* "an illegal memory access was encountered" */
} vlm_driver_t;

/* Linked in once: CUDA's, or the emulator's. */
const vlm_driver_t *vlm_driver(void);

#endif
