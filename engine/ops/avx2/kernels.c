/* The kernels that AVX2 replaces in the table of definitions: called after vlm_kernels_plain(). */

#include "ops/kernels.h"

uint64_t vlm_packed_bytes_avx2(vlm_type_t type, uint32_t N, uint32_t K);
void vlm_pack_avx2(vlm_linear_t *w, uint32_t row, uint32_t n, const void *from);
void vlm_unpack_row_avx2(const vlm_linear_t *w, uint32_t row, float *out);
void vlm_linear_many_avx2(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);
void vlm_attend_avx2(const vlm_attend_args_t *a, uint32_t begin, uint32_t end, uint32_t kv_head,
                      float *scratch);
void vlm_attend_segments_avx2(const vlm_segments_args_t *a, uint32_t begin, uint32_t end,
                               uint32_t head, float *scratch);
void vlm_norm_avx2(const vlm_norm_t *norm, const float *x, uint32_t n, float *y);
void vlm_add_four_avx2(const float *const row[4], const float weight[4], uint32_t n,
                       float *x);
void vlm_quantize_avx2(const float *x, uint32_t n, int8_t *q, float *s, int32_t *sum);
void vlm_low_down_avx2(const vlm_low_down_t *d, const float *const x[], uint32_t m,
                      float y[][VLM_LOW_GROUP]);
void vlm_low_up_avx2(const vlm_low_up_t *u, const float *const z[], float *const y[], uint32_t m);
float vlm_int16_row_avx2(const float *x, uint32_t n, float most, int16_t *q);
void vlm_segments_int16_avx2(const vlm_segments16_args_t *a, uint32_t begin, uint32_t end,
                                uint32_t head, float *scratch);
void vlm_attend_int16_avx2(const vlm_attend_args_t *a, uint32_t begin, uint32_t end,
                          uint32_t kv_head, float *scratch);


void
vlm_kernels_avx2(vlm_kernels_t *k)
{
    k->name = "avx2";
    k->order = 0;
    k->packed_bytes = vlm_packed_bytes_avx2;
    k->pack = vlm_pack_avx2;
    k->unpack_row = vlm_unpack_row_avx2;
    k->linear = vlm_linear_many_avx2;
    k->attend = vlm_attend_avx2;
    k->attend_segments = vlm_attend_segments_avx2;
    k->int16_row = vlm_int16_row_avx2;
    k->segments_int16 = vlm_segments_int16_avx2;
    k->attend_int16 = vlm_attend_int16_avx2;
    k->norm = vlm_norm_avx2;
    k->add_four = vlm_add_four_avx2;
    k->quantize = vlm_quantize_avx2;
    k->epilogue = vlm_epilogue_avx2;
    k->low_down = vlm_low_down_avx2;
    k->low_up = vlm_low_up_avx2;
}
