/*
 * A launch on the host: its blocks one after the other, each thread of a block a fibre.
 *
 * Nothing runs in step but what the code brings into step: a thread runs on until it waits at a
 * barrier or for lanes of its warp.  Blocks, warps and lanes come in an order that a seed decides,
 * and shared memory is poisoned with bytes that it decides, so a kernel whose result depends on
 * either gives other bits under another seed.
 *
 * Blocks run to their end: a kernel that waits for another block cannot be emulated, one whose
 * last block merges what the others left can.
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

/* What the threads of a launch see; written before each of them runs. */
typedef struct {
    vlm_uint3_t  thread, block, threads, blocks;       /* threadIdx, blockIdx, blockDim, gridDim */
} vlm_indices_t;

extern vlm_indices_t  vlm_emu;

/*
 * Lanes of mask meet: the last that comes calls meet() with what each lane brought (NULL: not in
 * the mask), and then all go on.  A lane that never comes is found when nothing else can run.
 */
typedef void (*vlm_meet_fn)(void **lane);
void vlm_emu_meet(unsigned mask, vlm_meet_fn meet, void *mine, vlm_place_t at);

void vlm_emu_barrier(vlm_place_t at);  /* all threads of the block, none has left */
unsigned vlm_emu_lane(void);
unsigned vlm_emu_thread(void);         /* number within the block */

/* This block's shared array of that key (an address in the kernel), and the dynamic one. */
void *vlm_emu_shared(const void *key, size_t bytes);
void *vlm_emu_dynamic(void);

/*
 * A copy that is done at the latest possible time: when its group is waited for, or never.  bytes
 * are copied, the rest of the 16 becomes zeros.
 */
void vlm_emu_copy(vlm_place_t at, void *to, const void *from, unsigned bytes);
void vlm_emu_copy_commit(void);
void vlm_emu_copy_wait(unsigned groups);           /* all but the last of them */
void vlm_emu_copy_forget(void);        /* a block begins */

/* A kernel's mistake that the emulated code itself has found; ends the launch. */
[[noreturn]] void vlm_emu_fault(vlm_place_t at, const char *text);

/* ---- the host's side ---------------------------------------------------------------------- */

#define VLM_EMU_THREADS  1024          /* of a block, at most */

void vlm_emu_seed(uint64_t seed);

/* call(arg) in every thread; 0, or -1 and a report. */
int vlm_emu_run(vlm_uint3_t blocks, vlm_uint3_t threads, size_t dynamic_bytes, void (*call)(void *),
                void *arg);

const char *vlm_emu_report(void);      /* of the last launch that failed; "" */
uint64_t vlm_emu_shared_bytes(void);   /* that a block of the last launch had */

#endif
