/* The elements of a tensor, whether they are its own or computed from others. */

#include <string.h>

#include "base/size.h"
#include "load/checkpoint.h"
#include "load/quant.h"

#define SAMPLE     512                 /* elements of a sample of a tensor, and number of samples */
#define N_SAMPLES  64                  /* such: rows of a vocabulary's matrix */


static uint64_t
row_of(const vlm_tensor_t *t)
{
    uint32_t  i;
    uint64_t  n;

    for (n = 1, i = 1; i < t->n_dims; i++) {
        n *= t->dims[i];
    }

    return n;
}


void
vlm_tensor_f32(const vlm_tensor_t *t, uint64_t first, uint64_t n, float *out)
{
    uint64_t  row;

    if (t->made == NULL) {
        t->format->read(t->data, first, n, out);
        return;
    }

    row = row_of(t);
    t->made->read(t->made, first / row, (uint32_t) (n / row), out, row);
}


void
vlm_tensor_rows(const vlm_tensor_t *t, uint64_t row, uint32_t n, float *out, uint64_t stride)
{
    uint32_t  i;
    uint64_t  K;

    if (t->made != NULL) {
        t->made->read(t->made, row, n, out, stride);
        return;
    }

    K = row_of(t);

    for (i = 0; i < n; i++) {
        t->format->read(t->data, (row + i) * K, K, out + i * stride);
    }
}


const vlm_format_t *
vlm_tensor_own(const vlm_tensor_t *t)
{
    return t->made == NULL ? NULL : t->made->own;
}


void
vlm_tensor_take(const vlm_tensor_t *t, uint64_t row, void *out, float *scale)
{
    t->made->take(t->made, row, out, scale);
}


int
vlm_tensor_same(const vlm_tensor_t *a, const vlm_tensor_t *b)
{
    float     x[SAMPLE], y[SAMPLE];
    uint32_t  i;
    uint64_t  n, all, first;

    for (all = 1, i = 0; i < a->n_dims; i++) {
        all = vlm_mul(all, a->dims[i]);
    }

    if (a->made != NULL || b->made != NULL) {
        return 1;
    }

    n = all < SAMPLE ? all : SAMPLE;

    for (i = 0; i < N_SAMPLES; i++) {
        first = (all - n) / (N_SAMPLES - 1) * i;
        first = i == N_SAMPLES - 1 ? all - n : first;

        vlm_tensor_f32(a, first, n, x);
        vlm_tensor_f32(b, first, n, y);

        if (memcmp(x, y, n * sizeof(float)) != 0) {
            return 0;
        }
    }

    return 1;
}
