/*
 * GPTQ: the matrix is transposed, and a word has eight or four columns of one row.  Zero points are
 * packed along the rows, less one in files of the first version.  Columns that were quantised in
 * the order of their activations (act-order) have groups in any order, and are refused.
 */

#include "load/quant.h"

#include <inttypes.h>


static int32_t
zero_of(const vlm_made_t *m, uint64_t group, uint64_t row)
{
    uint32_t  w, per;

    per = vlm_made_per_word(m);
    w = vlm_made_word(&m->part[VLM_ZEROS], group * (m->N / per) + row / per);

    return (vlm_made_value(m, w, (uint32_t) (row % per)) + (int32_t) m->less)
           & ((1 << m->bits) - 1);
}


static void
read_some(const vlm_made_t *m, uint64_t row, uint32_t n, float *out, uint64_t stride)
{
    float     scale[VLM_QUANT_ROWS];
    int32_t   zero[VLM_QUANT_ROWS];
    uint32_t  i, per;
    uint64_t  k;

    per = vlm_made_per_word(m);

    for (k = 0; k < m->K; k++) {
        for (i = 0; k % m->columns == 0 && i < n; i++) {
            zero[i] = zero_of(m, k / m->columns, row + i);
            scale[i] = vlm_made_scale(m, k / m->columns * m->N + row + i);
        }

        for (i = 0; i < n; i++) {
            out[i * stride + k]
                = (float) (vlm_made_value(m, vlm_made_word(&m->part[VLM_VALUES],
                                                           k / per * m->N + row + i),
                                          (uint32_t) (k % per)) - zero[i]) * scale[i];
        }
    }
}


static void
read(const vlm_made_t *m, uint64_t row, uint32_t n, float *out, uint64_t stride)
{
    uint32_t  now;

    for ( /* void */ ; n > 0; n -= now, row += now, out += now * stride) {
        now = n < VLM_QUANT_ROWS ? n : VLM_QUANT_ROWS;
        read_some(m, row, now, out, stride);
    }
}


/* g_idx has the group of each column. */
static int
check_order(const vlm_made_t *m, const char *name, vlm_err_t *err)
{
    uint64_t             k;
    const vlm_tensor_t  *t = &m->part[VLM_EXTRA];

    if (t->data == NULL) {
        return 0;
    }

    if (vlm_made_check(m, VLM_EXTRA, "I32", m->K, 1, name, err) != 0) {
        return -1;
    }

    for (k = 0; k < m->K; k++) {
        if (vlm_made_word(t, k) != k / m->columns) {
            return vlm_fail(err, VLM_EMODEL, "%s has its columns in another order (g_idx), by "
                            "GPTQ's act-order, which is not supported", name);
        }
    }

    return 0;
}


static int
make(vlm_made_t *m, const char *name, vlm_err_t *err)
{
    uint32_t             per = vlm_made_per_word(m);
    const vlm_tensor_t  *t = &m->part[VLM_VALUES];

    m->K = t->n_dims == 2 ? vlm_mul(t->dims[0], per) : 0;
    m->N = t->n_dims == 2 ? t->dims[1] : 0;
    vlm_made_cover(m);
    m->read = read;

    if (m->N % per != 0) {
        return vlm_fail(err, VLM_EMODEL, "%s has %" PRIu64 " rows, which is no multiple of %u",
                        name, m->N, per);
    }

    return vlm_made_check(m, VLM_VALUES, "I32", m->K / per, m->N, name, err) != 0
           || vlm_made_check(m, VLM_ZEROS, "I32", m->grid, m->N / per, name, err) != 0
           || vlm_made_check_scales(m, m->grid, m->N, name, err) != 0
           || check_order(m, name, err) != 0 ? -1 : 0;
}


const vlm_quant_form_t  vlm_quant_gptq = {
    .suffix = { ".qweight", ".scales", ".qzeros", ".g_idx" },
    .make = make
};
