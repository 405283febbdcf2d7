/* The table of definitions. */

#include "ops/kernels.h"

uint64_t vlm_packed_bytes_plain(vlm_type_t type, uint32_t N, uint32_t K);
void vlm_pack_plain(vlm_linear_t *w, uint32_t row, uint32_t n, const void *from);
void vlm_unpack_row_plain(const vlm_linear_t *w, uint32_t row, float *out);
void vlm_linear_plain(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);
float vlm_int16_row_plain(const float *x, uint32_t n, float most, int16_t *q);
void vlm_norm_plain(const vlm_norm_t *norm, const float *x, uint32_t n, float *y);
void vlm_add_four_plain(const float *const row[4], const float weight[4], uint32_t n,
                       float *x);
void vlm_quantize_plain(const float *x, uint32_t n, int8_t *q, float *s, int32_t *sum);
void vlm_low_down_plain(const vlm_low_down_t *d, const float *const x[], uint32_t m,
                      float y[][VLM_LOW_GROUP]);


void
vlm_kernels_plain(vlm_kernels_t *k)
{
    k->name = "plain";
    k->order = VLM_NONE;
    k->together = 1;
    k->packed_bytes = vlm_packed_bytes_plain;
    k->pack = vlm_pack_plain;
    k->unpack_row = vlm_unpack_row_plain;
    k->linear = vlm_linear_plain;
    k->attend = vlm_attend_plain;
    k->attend_int16 = vlm_attend_int16_plain;
    k->attend_segments = vlm_attend_segments_plain;
    k->int16_row = vlm_int16_row_plain;
    k->segments_int16 = vlm_segments_int16_plain;
    k->norm = vlm_norm_plain;
    k->add_four = vlm_add_four_plain;
    k->quantize = vlm_quantize_plain;
    k->epilogue = vlm_epilogue_plain;
    k->low_down = vlm_low_down_plain;
    k->low_up = vlm_low_up_plain;
}
