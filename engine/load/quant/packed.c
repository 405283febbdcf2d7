/*
 * pack-quantized of compressed-tensors: rows of words, in which values of four or eight bits lie
 * from the lowest bits on.  A value is stored with half of its range added.  Zero points are packed
 * the same way, but from one row to the next.  Eight bits with a scale a row are the engine's own
 * form, but for that addition.
 */

#include "load/quant.h"


static int32_t
zero_of(const vlm_made_t *m, uint64_t row, uint64_t column)
{
    uint32_t             word, per = vlm_made_per_word(m);
    const vlm_tensor_t  *t = &m->part[VLM_ZEROS];

    if (t->data == NULL) {
        return 1 << (m->bits - 1);
    }

    word = vlm_made_word(t, row / per * m->grid + column);

    return vlm_made_value(m, word, (uint32_t) (row % per));
}


static void
read(const vlm_made_t *m, uint64_t row, uint32_t n, float *out, uint64_t stride)
{
    float                s;
    int32_t              zero;
    uint32_t             i, per;
    uint64_t             k, end, at, words;
    const vlm_tensor_t  *t = &m->part[VLM_VALUES];

    per = vlm_made_per_word(m);
    words = vlm_made_words(m, m->K);

    for (i = 0; i < n; i++, row++, out += stride) {
        for (at = 0, k = 0; k < m->K; k = end, at++) {
            s = vlm_made_scale(m, row * m->grid + at);
            zero = zero_of(m, row, at);
            end = m->K - k < m->columns ? m->K : k + m->columns;

            for ( /* void */ ; k < end; k++) {
                out[k] = (float) (vlm_made_value(m, vlm_made_word(t, row * words + k / per),
                                                 (uint32_t) (k % per)) - zero) * s;
            }
        }
    }
}


static void
take(const vlm_made_t *m, uint64_t row, void *out, float *scale)
{
    uint64_t        k;
    const uint8_t  *from;

    from = m->part[VLM_VALUES].data + row * 4 * vlm_made_words(m, m->K);

    for (k = 0; k < m->K; k++) {
        ((uint8_t *) out)[k] = from[k] ^ 0x80;
    }

    *scale = vlm_made_scale(m, row);
}


/* weight_shape is needed where a row does not fill its words. */
static int
set_shape(vlm_made_t *m, const char *name, vlm_err_t *err)
{
    uint64_t             shape[2];
    const vlm_tensor_t  *t = &m->part[VLM_EXTRA], *values = &m->part[VLM_VALUES];

    m->N = values->n_dims == 2 ? values->dims[0] : 0;
    m->K = values->n_dims == 2 ? vlm_mul(values->dims[1], vlm_made_per_word(m)) : 0;

    if (t->data != NULL) {
        if (vlm_made_check(m, VLM_EXTRA, "I64", 2, 1, name, err) != 0) {
            return -1;
        }

        shape[0] = vlm_made_word(t, 0);
        shape[1] = vlm_made_word(t, 2);

        if (shape[0] != m->N || shape[1] > m->K || vlm_made_word(t, 1) != 0
            || vlm_made_word(t, 3) != 0)
        {
            return vlm_fail(err, VLM_EMODEL, "%s: the size does not fit weight_shape", name);
        }

        m->K = shape[1];
    }

    return 0;
}


static int
make(vlm_made_t *m, const char *name, vlm_err_t *err)
{
    if (set_shape(m, name, err) != 0
        || vlm_made_check(m, VLM_VALUES, "I32", m->N, vlm_made_words(m, m->K), name, err) != 0)
    {
        return -1;
    }

    vlm_made_cover(m);

    if (vlm_made_check_scales(m, m->N, m->grid, name, err) != 0
        || (m->part[VLM_ZEROS].data != NULL
            && vlm_made_check(m, VLM_ZEROS, "I32", vlm_made_words(m, m->N), m->grid, name, err)
               != 0))
    {
        return -1;
    }

    m->read = read;

    if (m->bits == 8 && m->grid == 1 && m->part[VLM_ZEROS].data == NULL) {
        m->own = vlm_format_scaled("I8");
        m->take = take;
    }

    return 0;
}


const vlm_quant_form_t  vlm_quant_packed = {
    .suffix = { ".weight_packed", ".weight_scale", ".weight_zero_point", ".weight_shape" },
    .spare = { ".input_scale" },
    .make = make
};
