/*
 * The definition of linear: y = epilogue(W x + b), each output summed in the order of k.
 *
 * Weights keep their order, row by row; int8 rows are padded with zeros to whole blocks, and int4
 * rows become such ones where they are used.  Sums in
 * f32 are fused multiply-adds, as in vector units, so that faster versions give the same bits for
 * every type.
 */

#include <math.h>

#include "base/size.h"
#include "format/int4.h"
#include "ops/kernels.h"
#include "ops/low.h"
#include "ops/plain/fused.h"


static uint64_t
row_bytes(vlm_type_t type, uint32_t K)
{
    return type == VLM_INT8   ? (uint64_t) vlm_blocks(K) * VLM_BLOCK
           : type == VLM_INT4 ? vlm_int4_row_bytes(K)
                              : vlm_mul(K, vlm_type_bytes(type));
}


uint64_t
vlm_packed_bytes_plain(vlm_type_t type, uint32_t N, uint32_t K)
{
    return vlm_mul(N, row_bytes(type, K));
}


void
vlm_pack_plain(vlm_linear_t *w, uint32_t row, uint32_t n, const void *from)
{
    uint32_t        i, k;
    uint64_t        bytes;
    uint8_t        *to;
    const float    *f;
    const uint8_t  *b;

    bytes = row_bytes(w->type, w->K);

    for (i = 0; i < n; i++) {
        to = (uint8_t *) w->w + (row + i) * bytes;
        f = (const float *) from + (size_t) i * w->K;
        b = (const uint8_t *) from + (size_t) i * w->K;

        switch (w->type) {

        case VLM_INT8:
            memset(to, 0, bytes);
            memcpy(to, b, w->K);
            break;

        case VLM_INT4:
            memcpy(to, (const uint8_t *) from + i * bytes, bytes);
            break;

        case VLM_BF16:
            for (k = 0; k < w->K; k++) {
                ((uint16_t *) to)[k] = vlm_f32_bf16(f[k]);
            }
            break;

        default:
            memcpy(to, f, bytes);
            break;
        }
    }
}


void
vlm_unpack_row_plain(const vlm_linear_t *w, uint32_t row, float *out)
{
    int8_t          values[VLM_BLOCK];
    uint32_t        k;
    const uint8_t  *from;

    from = (const uint8_t *) w->w + row * row_bytes(w->type, w->K);

    for (k = 0; w->type == VLM_INT4 && k < w->K; k++) {
        if (k % VLM_BLOCK == 0) {
            vlm_int4_values(from + k / VLM_BLOCK * VLM_INT4_GROUP, 1, values);
        }

        out[k] = values[k % VLM_BLOCK];
    }

    for (k = 0; w->type != VLM_INT4 && k < w->K; k++) {
        out[k] = w->type == VLM_INT8   ? (float) ((const int8_t *) from)[k]
                 : w->type == VLM_BF16 ? vlm_bf16_f32(((const uint16_t *) from)[k])
                                       : ((const float *) from)[k];
    }
}


VLM_FUSED static float
dot_f32(const float *w, const float *x, uint32_t K)
{
    float     sum;
    uint32_t  k;

    sum = 0;

    for (k = 0; k < K; k++) {
        sum = fmaf(w[k], x[k], sum);
    }

    return sum;
}


VLM_FUSED static float
dot_bf16(const uint16_t *w, const float *x, uint32_t K)
{
    float     sum;
    uint32_t  k;

    sum = 0;

    for (k = 0; k < K; k++) {
        sum = fmaf(vlm_bf16_f32(w[k]), x[k], sum);
    }

    return sum;
}


/* n values: whole blocks */
static float
dot_int8(const int8_t *w, const int8_t *q, const float *s, uint32_t n)
{
    float     sum;
    int32_t   dot;
    uint32_t  k, end;

    sum = 0;

    for (k = 0; k < n; s++) {
        end = n - k < VLM_PIECE ? n : k + VLM_PIECE;

        for (dot = 0; k < end; k++) {
            dot += (int32_t) w[k] * q[k];
        }

        sum = fmaf(*s, (float) dot, sum);
    }

    return sum;
}


/* The same of an int4 row: its values go through a piece in int8. */
static float
dot_int4(const uint8_t *w, const int8_t *q, const float *s, uint32_t n)
{
    float     sum;
    int8_t    values[VLM_PIECE];
    int32_t   dot;
    uint32_t  i, k, now;

    sum = 0;

    for (k = 0; k < n; k += now, q += now, s++) {
        now = n - k < VLM_PIECE ? n - k : VLM_PIECE;
        vlm_int4_values(w + k / VLM_BLOCK * VLM_INT4_GROUP, now / VLM_BLOCK, values);

        for (dot = 0, i = 0; i < now; i++) {
            dot += (int32_t) values[i] * q[i];
        }

        sum = fmaf(*s, (float) dot, sum);
    }

    return sum;
}


/* Weight row n against activation row t. */
static float
dot_row(const vlm_linear_args_t *a, uint32_t n, uint32_t t)
{
    uint32_t             values;
    const float         *x;
    const uint8_t       *row;
    const vlm_linear_t  *w = a->w;

    x = a->x + (size_t) t * w->K;
    row = (const uint8_t *) w->w + n * row_bytes(w->type, w->K);

    switch (w->type) {

    case VLM_INT8:
        values = vlm_blocks(w->K) * VLM_BLOCK;
        return dot_int8((const int8_t *) row, a->q + (size_t) t * values,
                        a->s + (size_t) t * vlm_pieces(w->K), values);

    case VLM_INT4:
        values = vlm_blocks(w->K) * VLM_BLOCK;
        return dot_int4(row, a->q + (size_t) t * values, a->s + (size_t) t * vlm_pieces(w->K),
                        values);

    case VLM_BF16:
        return dot_bf16((const uint16_t *) row, x, w->K);

    default:
        return dot_f32((const float *) row, x, w->K);
    }
}


void
vlm_linear_plain(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    float                acc[1][VLM_PANEL];
    uint32_t             p, t, i, n0, n;
    const vlm_linear_t  *w = a->w;

    for (p = begin; p < end; p++) {
        n0 = p * VLM_PANEL;
        n = w->N - n0 < VLM_PANEL ? w->N - n0 : VLM_PANEL;

        for (t = 0; t < a->T; t++) {
            for (i = 0; i < n; i++) {
                acc[0][i] = dot_row(a, n0 + i, t);
            }

            vlm_linear_end(a, vlm_epilogue_plain, p, t, 1, 1, acc);
        }
    }
}
