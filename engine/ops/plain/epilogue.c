/*
 * The definition of a linear's epilogue: scale, bias, and the function applied to the sums.
 *
 * Each value is independent: the same source is compiled for wider registers (../avx2/epilogue.c,
 * ../avx512/epilogue.c) and gives the same bits.
 */

#include "ops/kernels.h"
#include "ops/plain/softmax.h"

#ifndef VLM_ISA
#define VLM_ISA(name)  name##_plain
#endif


static float
gelu(float x)
{
    return 0.5f * x * (1 + erff(x * 0.70710678118654752f));
}


static inline __attribute__((always_inline)) void
epilogue(const vlm_linear_t *w, uint32_t n0, uint32_t n, const float *acc, float *y)
{
    float         v[VLM_PANEL];
    uint32_t      i;
    const float  *scale, *bias;

    /* Pointers, because a sum of 32-bit indices may wrap, which prevents vectorisation. */

    scale = w->scale == NULL ? NULL : w->scale + n0;
    bias = w->bias == NULL ? NULL : w->bias + n0;
    y += w->epilogue == VLM_SILU_MUL ? n0 / 2 : n0;

    for (i = 0; i < n; i++) {
        v[i] = scale == NULL ? acc[i] : acc[i] * scale[i];
    }

    if (bias != NULL) {
        for (i = 0; i < n; i++) {
            v[i] += bias[i];
        }
    }

    switch (w->epilogue) {

    case VLM_STORE:
        memcpy(y, v, n * sizeof(float));
        break;

    case VLM_ADD:
        for (i = 0; i < n; i++) {
            y[i] += v[i];
        }
        break;

    case VLM_SILU_MUL:
        for (i = 0; i < n / 2; i++) {
            y[i] = vlm_silu(v[2 * i]) * v[2 * i + 1];
        }
        break;

    case VLM_GELU:
        for (i = 0; i < n; i++) {
            y[i] = gelu(v[i]);
        }
        break;

    case VLM_GELU_TANH:
        for (i = 0; i < n; i++) {
            y[i] = vlm_gelu_tanh(v[i]);
        }
        break;
    }
}


/*
 * Nearly all calls have a whole panel: with a constant length the loop has full vectors and no
 * remainder.
 */
void
VLM_ISA(vlm_epilogue)(const vlm_linear_t *w, uint32_t n0, uint32_t n, uint32_t rows,
                      float acc[][VLM_PANEL], float *y)
{
    size_t    out = vlm_linear_out(w);
    uint32_t  i;

    for (i = 0; i < rows; i++, y += out) {
        if (n == VLM_PANEL) {
            epilogue(w, n0, VLM_PANEL, acc[i], y);
        } else {
            epilogue(w, n0, n, acc[i], y);
        }
    }
}
