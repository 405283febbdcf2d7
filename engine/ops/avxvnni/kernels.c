/* The kernels that AVX-VNNI replaces in AVX2's table: called after vlm_kernels_avx2(). */

#include <cpuid.h>

#include "ops/kernels.h"

#define LEAF_FEATURES  7
#define AVXVNNI        (1u << 4)       /* of eax, sub-leaf 1 */

void vlm_linear_avxvnni(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);
void vlm_segments_int16_avxvnni(const vlm_segments16_args_t *a, uint32_t begin, uint32_t end,
                                uint32_t head, float *scratch);
void vlm_attend_int16_avxvnni(const vlm_attend_args_t *a, uint32_t begin, uint32_t end,
                             uint32_t kv_head, float *scratch);


#ifdef VLM_EVEX

int
vlm_avxvnni_there(void)
{
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl");
}

#else

int
vlm_avxvnni_there(void)
{
    unsigned  eax, ebx, ecx, edx;

    return __get_cpuid_count(LEAF_FEATURES, 1, &eax, &ebx, &ecx, &edx) != 0
           && (eax & AVXVNNI) != 0;
}

#endif


void
vlm_kernels_avxvnni(vlm_kernels_t *k)
{
    k->name = "avxvnni";
    k->linear = vlm_linear_avxvnni;
    k->segments_int16 = vlm_segments_int16_avxvnni;
    k->attend_int16 = vlm_attend_int16_avxvnni;
}
