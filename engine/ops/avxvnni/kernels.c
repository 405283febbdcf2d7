/* What AVX-VNNI has in place of AVX2's: called after vlm_kernels_avx2(). */

#include "ops/kernels.h"

void vlm_linear_avxvnni(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);


void
vlm_kernels_avxvnni(vlm_kernels_t *k)
{
    k->name = "avxvnni";
    k->linear = vlm_linear_avxvnni;
}
