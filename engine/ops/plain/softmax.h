/*
 * e^x, softmax, SiLU and the GELU by tanh: part of the definitions.
 *
 * The C library's expf() is one call for each value; these steps are products and sums alone, so
 * that vectors of any width compute the same bits.
 */

#ifndef VLM_SOFTMAX_H
#define VLM_SOFTMAX_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define VLM_LANES  16                  /* partial sums: an order that vectors can keep */


/*
 * e^x within 2 units in the last place from -87 to 88; beyond them the value at that end.  A NaN
 * stays a NaN.
 */
static inline float
vlm_exp(float x)
{
    int       low = x < -87, high = x > 88;        /* before x changes: no branch between them */
    float     t, n, r, p, power;
    uint32_t  bits;

    x = low ? -87 : x;
    x = high ? 88 : x;

    /* x = n ln 2 + r: t has n in its last bits, ln 2 is taken off in two parts. */

    t = x * 1.44269504f + 12582912.0f;
    n = t - 12582912.0f;
    r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;

    p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1;

    memcpy(&bits, &t, sizeof(bits));
    bits = (bits + 127) << 23;
    memcpy(&power, &bits, sizeof(power));

    return p * power;
}


static inline float
vlm_silu(float x)
{
    return x / (1 + vlm_exp(-x));
}


/* x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), which is x / (1 + e^-2u). */
static inline float
vlm_gelu_tanh(float x)
{
    return x / (1 + vlm_exp(-1.5957691216f * (x + 0.044715f * x * x * x)));
}


/* Turns scores [n] into weights and returns their sum. */
static inline float
vlm_softmax(float *scores, uint32_t n)
{
    float     max[VLM_LANES], sum[VLM_LANES] = { 0 };
    uint32_t  i, j;

    for (j = 0; j < VLM_LANES; j++) {
        max[j] = -INFINITY;
    }

    for (i = 0; i + VLM_LANES <= n; i += VLM_LANES) {
        for (j = 0; j < VLM_LANES; j++) {
            max[j] = scores[i + j] > max[j] ? scores[i + j] : max[j];
        }
    }

    for (j = 0; i + j < n; j++) {
        max[j] = scores[i + j] > max[j] ? scores[i + j] : max[j];
    }

    for (j = 1; j < VLM_LANES; j++) {
        max[0] = max[j] > max[0] ? max[j] : max[0];
    }

    for (i = 0; i < n; i++) {
        scores[i] = vlm_exp(scores[i] - max[0]);
    }

    for (i = 0; i + VLM_LANES <= n; i += VLM_LANES) {
        for (j = 0; j < VLM_LANES; j++) {
            sum[j] += scores[i + j];
        }
    }

    for (j = 0; i + j < n; j++) {
        sum[j] += scores[i + j];
    }

    for (i = VLM_LANES / 2; i > 0; i /= 2) {
        for (j = 0; j < i; j++) {
            sum[j] += sum[j + i];
        }
    }

    return sum[0];
}

#endif
