/* The kernels that smmla (FEAT_I8MM) replaces in NEON's table: called after vlm_kernels_neon(). */

#include <sys/auxv.h>

#include "ops/kernels.h"

#ifndef HWCAP2_I8MM
#define HWCAP2_I8MM  (1 << 13)
#endif

void vlm_linear_i8mm(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);


int
vlm_i8mm_there(void)
{
    return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
}


void
vlm_kernels_i8mm(vlm_kernels_t *k)
{
    k->name = "i8mm";
    k->linear = vlm_linear_i8mm;
}
