/*
 * The kernels that NEON with sdot (FEAT_DotProd) replaces in the table of definitions: called after
 * vlm_kernels_plain().  Compilers make vectors of the others' definitions, as all processors for
 * arm64 have NEON.
 */

#include <sys/auxv.h>

#include "ops/kernels.h"

#ifndef HWCAP_ASIMDDP
#define HWCAP_ASIMDDP  (1 << 20)
#endif

uint64_t vlm_packed_bytes_neon(vlm_type_t type, uint32_t N, uint32_t K);
void vlm_pack_neon(vlm_linear_t *w, uint32_t row, uint32_t n, const void *from);
void vlm_unpack_row_neon(const vlm_linear_t *w, uint32_t row, float *out);
void vlm_attend_neon(const vlm_attend_args_t *a, uint32_t begin, uint32_t end, uint32_t kv_head,
                     float *scratch);
void vlm_attend_segments_neon(const vlm_segments_args_t *a, uint32_t begin, uint32_t end,
                              uint32_t head, float *scratch);
float vlm_int16_row_neon(const float *x, uint32_t n, float most, int16_t *q);
void vlm_segments_int16_neon(const vlm_segments16_args_t *a, uint32_t begin, uint32_t end,
                             uint32_t head, float *scratch);
void vlm_attend_int16_neon(const vlm_attend_args_t *a, uint32_t begin, uint32_t end,
                           uint32_t kv_head, float *scratch);


int
vlm_neon_there(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}


void
vlm_kernels_neon(vlm_kernels_t *k)
{
    k->name = "neon";
    k->order = 0;
    k->packed_bytes = vlm_packed_bytes_neon;
    k->pack = vlm_pack_neon;
    k->unpack_row = vlm_unpack_row_neon;
    k->linear = vlm_linear_neon;
    k->attend = vlm_attend_neon;
    k->attend_segments = vlm_attend_segments_neon;
    k->int16_row = vlm_int16_row_neon;
    k->segments_int16 = vlm_segments_int16_neon;
    k->attend_int16 = vlm_attend_int16_neon;
}
