/*
 * Values of eight bits with scales: [N][K] of int8 or FP8 (e4m3).  A scale is a row's, a group's of
 * a row, a block's, or the whole matrix's.  int8 with a scale a row is the engine's own form, and
 * its bits are used as they are.
 */

#include "load/quant.h"

#include <string.h>


/* A row is a product of each value and its scale, rounded once. */
static void
read(const vlm_made_t *m, uint64_t row, uint32_t n, float *out, uint64_t stride)
{
    float     s;
    uint32_t  i;
    uint64_t  k, end, at;

    for (i = 0; i < n; i++, row++, out += stride) {
        m->format->read(m->part[VLM_VALUES].data, row * m->K, m->K, out);
        at = row / m->rows * m->grid;

        for (k = 0; k < m->K; k = end) {
            s = vlm_made_scale(m, at++);
            end = m->K - k < m->columns ? m->K : k + m->columns;

            for ( /* void */ ; k < end; k++) {
                out[k] *= s;
            }
        }
    }
}


static void
take(const vlm_made_t *m, uint64_t row, void *out, float *scale)
{
    memcpy(out, m->part[VLM_VALUES].data + row * m->K, m->K);
    *scale = vlm_made_scale(m, row);
}


static int
make(vlm_made_t *m, const char *name, vlm_err_t *err)
{
    const vlm_tensor_t  *t = &m->part[VLM_VALUES];

    if (t->n_dims != 2) {
        return vlm_fail(err, VLM_EMODEL, "%s has %u dimensions; a matrix of %s has 2", name,
                        t->n_dims, t->dtype);
    }

    m->N = t->dims[0];
    m->K = t->dims[1];
    m->format = vlm_format_scaled(t->dtype);
    vlm_made_cover(m);

    if (vlm_made_check_scales(m, m->N / m->rows + (m->N % m->rows != 0), m->grid, name, err) != 0) {
        return -1;
    }

    m->read = read;

    if (m->format->resident && m->rows == 1 && m->grid == 1) {
        m->own = m->format;
        m->take = take;
    }

    return 0;
}


/* Other orders of the values are for kernels of a GPU. */
static int
make_bnb(vlm_made_t *m, const char *name, vlm_err_t *err)
{
    const vlm_tensor_t  *order = &m->part[VLM_EXTRA];

    if (order->data != NULL && (order->bytes != 1 || order->data[0] != 0)) {
        return vlm_fail(err, VLM_EMODEL, "%s has a weight_format other than rows, which is not "
                        "read", name);
    }

    return make(m, name, err);
}


const vlm_quant_form_t  vlm_quant_scaled = {
    .suffix = { ".weight", ".weight_scale", NULL, NULL },
    .other = ".weight_scale_inv",
    .spare = { ".input_scale", ".weight_shape" },
    .make = make
};

const vlm_quant_form_t  vlm_quant_bnb = {
    .suffix = { ".weight", ".SCB", NULL, ".weight_format" },
    .make = make_bnb
};
