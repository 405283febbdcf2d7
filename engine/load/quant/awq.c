/*
 * AWQ, the order of its "gemm" kernels: the matrix is transposed, and a word has eight rows of one
 * column, of which the even ones come first.
 */

#include "load/quant.h"

#define PER_WORD  8

static const uint8_t  row_of[PER_WORD] = { 0, 2, 4, 6, 1, 3, 5, 7 };


/* The zero points and scales of one group, for the rows of words [word, word + n). */
static void
read_group(const vlm_made_t *m, uint64_t group, uint64_t word, uint32_t n, int32_t *zero,
           float *scale)
{
    uint32_t  i, j, w;

    for (i = 0; i < n; i++) {
        w = vlm_made_word(&m->part[VLM_ZEROS], group * (m->N / PER_WORD) + word + i);

        for (j = 0; j < PER_WORD; j++) {
            zero[i * PER_WORD + row_of[j]] = vlm_made_value(m, w, j);
            scale[i * PER_WORD + j] = vlm_made_scale(m, group * m->N + (word + i) * PER_WORD + j);
        }
    }
}


/* Rows of whole words; those before `skip` and from `end` on are left out. */
static void
read_words(const vlm_made_t *m, uint64_t word, uint32_t n, uint32_t skip, uint32_t end, float *out,
           uint64_t stride)
{
    float     scale[VLM_QUANT_ROWS + PER_WORD];
    int32_t   zero[VLM_QUANT_ROWS + PER_WORD];
    uint32_t  i, j, w, row;
    uint64_t  k;

    for (k = 0; k < m->K; k++) {
        if (k % m->columns == 0) {
            read_group(m, k / m->columns, word, n, zero, scale);
        }

        for (i = 0; i < n; i++) {
            w = vlm_made_word(&m->part[VLM_VALUES], k * (m->N / PER_WORD) + word + i);

            for (j = 0; j < PER_WORD; j++) {
                row = i * PER_WORD + row_of[j];

                if (row >= skip && row < end) {
                    out[(row - skip) * stride + k]
                        = (float) (vlm_made_value(m, w, j) - zero[row]) * scale[row];
                }
            }
        }
    }
}


static void
read(const vlm_made_t *m, uint64_t row, uint32_t n, float *out, uint64_t stride)
{
    uint32_t  now, skip;

    for ( /* void */ ; n > 0; n -= now, row += now, out += now * stride) {
        now = n < VLM_QUANT_ROWS ? n : VLM_QUANT_ROWS;
        skip = (uint32_t) (row % PER_WORD);
        read_words(m, row / PER_WORD, (skip + now + PER_WORD - 1) / PER_WORD, skip, skip + now, out,
                   stride);
    }
}


static int
make(vlm_made_t *m, const char *name, vlm_err_t *err)
{
    const vlm_tensor_t  *t = &m->part[VLM_VALUES];

    m->K = t->n_dims == 2 ? t->dims[0] : 0;
    m->N = t->n_dims == 2 ? vlm_mul(t->dims[1], PER_WORD) : 0;
    vlm_made_cover(m);
    m->read = read;

    return vlm_made_check(m, VLM_VALUES, "I32", m->K, m->N / PER_WORD, name, err) != 0
           || vlm_made_check(m, VLM_ZEROS, "I32", m->grid, m->N / PER_WORD, name, err) != 0
           || vlm_made_check_scales(m, m->grid, m->N, name, err) != 0 ? -1 : 0;
}


const vlm_quant_form_t  vlm_quant_awq = {
    .suffix = { ".qweight", ".scales", ".qzeros", NULL },
    .make = make
};
