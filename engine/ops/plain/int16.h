/*
 * The parts of the definition of attention in int16 (ops.h) that plain C and vectors share.
 */

#ifndef VLM_PLAIN_INT16_H
#define VLM_PLAIN_INT16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ops/kernels.h"

#define VLM_INT16_KEYS   64            /* of a block */
#define VLM_INT16_LANES  16            /* partial sums of a block's weights */
#define VLM_INT16_PART   8191          /* of a weight: 64 * 8191 * 4095 is below 2^31 */
#define VLM_INT16_LEAST  0x1p-100f     /* a block whose weights are all less has none */
#define VLM_LOG2E        1.44269504f

typedef int32_t  __attribute__((may_alias))  pair_t;         /* two 16-bit numbers */

#define VLM_ROUNDER      12582912.0f   /* 1.5 * 2^23: x + it - it rounds half to even */
#define VLM_TINY         0x1p-120f     /* a row of less is zeros */
#define VLM_INFINITE     0x7f800000u   /* as bits: the first value that is not finite */

/* 2^f from -1/2 to 1/2 is 1 + f (A + f (B + ...)), within 1e-7; 1 itself is exact. */
#define VLM_EXP2_A       0.693147004f
#define VLM_EXP2_B       0.240222424f
#define VLM_EXP2_C       0.0555073358f
#define VLM_EXP2_D       0.00967151392f
#define VLM_EXP2_E       0.00132647285f


/*
 * x [n] as int16 up to `most`, and their scale.  Floats without their sign compare as their
 * bits do; a value that is not finite makes the scale not a number.
 */
static inline float
vlm_int16_of(const float *x, uint32_t n, float most, int16_t *q)
{
    float     max, inverse;
    uint32_t  i, bits, top;

    top = 0;

    for (i = 0; i < n; i++) {
        memcpy(&bits, &x[i], sizeof(bits));
        bits &= 0x7fffffff;
        top = bits > top ? bits : top;
    }

    if (top >= VLM_INFINITE) {
        memset(q, 0, n * sizeof(int16_t));
        return NAN;
    }

    memcpy(&max, &top, sizeof(max));
    inverse = max >= VLM_TINY ? most / max : 0;

    for (i = 0; i < n; i++) {
        q[i] = (int16_t) (int32_t) (x[i] * inverse + VLM_ROUNDER - VLM_ROUNDER);
    }

    return max / most;
}

#endif
