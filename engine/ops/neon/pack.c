/*
 * The order of weights for NEON: AVX2's panels of 64 rows, in int8 signed, so that a cache file's
 * panels are read as they lie.
 */

#include "base/size.h"
#include "format/int4.h"
#include "ops/kernels.h"


uint64_t
vlm_packed_bytes_neon(vlm_type_t type, uint32_t N, uint32_t K)
{
    uint64_t  panel;

    panel = type == VLM_INT8   ? vlm_panel_bytes(K)
            : type == VLM_INT4 ? vlm_int4_panel_bytes(K)
                               : vlm_mul(VLM_PANEL, vlm_mul(K, vlm_type_bytes(type)));

    return vlm_mul(vlm_round(N, VLM_PANEL) / VLM_PANEL, panel);
}


/* Rows [n][K] of f32, as [K][VLM_PANEL]. */
static void
pack_float(uint8_t *panel, int bf16, const float *from, uint32_t n, uint32_t K)
{
    size_t    at;
    uint32_t  i, k;

    memset(panel, 0, (size_t) VLM_PANEL * K * (bf16 ? 2 : 4));

    for (i = 0; i < n; i++, from += K) {
        for (k = 0, at = i; k < K; k++, at += VLM_PANEL) {
            if (bf16) {
                ((uint16_t *) panel)[at] = vlm_f32_bf16(from[k]);
            } else {
                ((float *) panel)[at] = from[k];
            }
        }
    }
}


void
vlm_pack_neon(vlm_linear_t *w, uint32_t row, uint32_t n, const void *from)
{
    uint32_t        p, rows, K = w->K;
    uint64_t        bytes = vlm_packed_bytes_neon(w->type, VLM_PANEL, K);
    uint8_t        *panel = (uint8_t *) w->w + row / VLM_PANEL * bytes;
    const uint8_t  *in = from;

    for (p = 0; p < n; p += VLM_PANEL, panel += bytes) {
        rows = n - p < VLM_PANEL ? n - p : VLM_PANEL;

        switch (w->type) {

        case VLM_INT8:
            vlm_pack_words((uint32_t *) panel, (const int8_t *) in + (size_t) p * K, rows, K, 0);
            break;

        case VLM_INT4:
            vlm_int4_pack(panel, in + p * vlm_int4_row_bytes(K), rows, K, 0);
            break;

        default:
            pack_float(panel, w->type == VLM_BF16, (const float *) from + (size_t) p * K, rows, K);
        }
    }
}


void
vlm_unpack_row_neon(const vlm_linear_t *w, uint32_t row, float *out)
{
    size_t          at;
    uint32_t        k, i = row % VLM_PANEL;
    const uint8_t  *panel;

    panel = (const uint8_t *) w->w
            + row / VLM_PANEL * vlm_packed_bytes_neon(w->type, VLM_PANEL, w->K);

    if (w->type == VLM_INT4) {
        vlm_int4_unpack_row(panel, i, w->K, out);
        return;
    }

    for (k = 0; k < w->K; k++) {
        at = w->type == VLM_INT8 ? ((size_t) k / 4 * VLM_PANEL + i) * 4 + k % 4
                                 : (size_t) k * VLM_PANEL + i;
        out[k] = w->type == VLM_INT8   ? (float) ((const int8_t *) panel)[at]
                 : w->type == VLM_BF16 ? vlm_bf16_f32(((const uint16_t *) panel)[at])
                                       : ((const float *) panel)[at];
    }
}
