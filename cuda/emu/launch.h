/* For tests of the emulator itself: a lambda as a kernel. */

#ifndef VLM_EMU_LAUNCH_H
#define VLM_EMU_LAUNCH_H

#include "cuda_emu.h"

template <class F>
static inline void
vlm_emu_call_lambda(void *arg)
{
    (*static_cast<F *>(arg))();
}


template <class F>
static inline int
vlm_emu_launch(dim3 grid, dim3 block, size_t shared, F f)
{
    return vlm_emu_run({ grid.x, grid.y, grid.z }, { block.x, block.y, block.z }, shared,
                       vlm_emu_call_lambda<F>, &f);
}

#endif
