/*
 * A launch on the host: its blocks one after the other, each thread of a block a fibre.
 *
 * Threads run in step only where the code synchronises them: a thread runs on until it waits at a
 * barrier or for lanes of its warp.  A seed decides the order of blocks, warps and lanes, and the
 * bytes with which shared memory is poisoned, so that a kernel whose result depends on either gives
 * other bits under another seed.
 *
 * Blocks run to their end: a kernel that waits for another block cannot be emulated, but one whose
 * last block merges the results of the others can.
 */

#ifndef VLM_GRID_H
#define VLM_GRID_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    unsigned  x, y, z;
} vlm_uint3_t;

typedef struct {                       /* a place in a kernel's source, for reports */
    const char  *file;
    int          line;
    const char  *what;                 /* "__syncthreads" */
} vlm_place_t;

/* The built-in variables of a launch's threads; written before each of them runs. */
typedef struct {
    vlm_uint3_t  thread, block, threads, blocks;       /* threadIdx, blockIdx, blockDim, gridDim */
} vlm_indices_t;

extern vlm_indices_t  vlm_emu;

/*
 * The lanes of mask meet: the last lane to arrive calls meet() with the value of each lane (NULL:
 * not in the mask), and then all continue.  A lane that never arrives is reported when no other
 * lane can run.
 */
typedef void (*vlm_meet_fn)(void **lane);
void vlm_emu_meet(unsigned mask, vlm_meet_fn meet, void *mine, vlm_place_t at);

/* Waits for all threads of the block, of which none may have ended. */
void vlm_emu_barrier(vlm_place_t at);
unsigned vlm_emu_lane(void);
unsigned vlm_emu_thread(void);         /* number within the block */

/* This block's shared array of that key (an address in the kernel), and the dynamic one. */
void *vlm_emu_shared(const void *key, size_t bytes);
void *vlm_emu_dynamic(void);

/*
 * An asynchronous copy, done at the latest possible time: when its group is waited for, or never.
 * bytes are copied, the rest of the 16 becomes zeros.
 */
void vlm_emu_copy(vlm_place_t at, void *to, const void *from, unsigned bytes);
void vlm_emu_copy_commit(void);
void vlm_emu_copy_wait(unsigned groups);           /* for all but the last groups */
void vlm_emu_copy_forget(unsigned n_threads);      /* called when a block begins */

/* Reports a mistake of the kernel that the emulated code has found; ends the launch. */
[[noreturn]] void vlm_emu_fault(vlm_place_t at, const char *text);

/* ---- the host's side ---------------------------------------------------------------------- */

#define VLM_EMU_THREADS  1024          /* of a block, at most */

void vlm_emu_seed(uint64_t seed);

/* Runs call(arg) in every thread; returns 0, or -1 and a report. */
int vlm_emu_run(vlm_uint3_t blocks, vlm_uint3_t threads, size_t dynamic_bytes, void (*call)(void *),
                void *arg);

const char *vlm_emu_report(void);      /* of the last launch that failed; "" */
uint64_t vlm_emu_shared_bytes(void);   /* that a block of the last launch had */

#endif
