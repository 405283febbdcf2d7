/* Weight rows to int8: symmetric, one scale a row, round half to even. */

#include "load/quant.h"

#include <math.h>

#define ROUNDER  12582912.0f           /* 1.5 * 2^23: x + ROUNDER - ROUNDER rounds half to even */


float
vlm_quant_row(const float *x, uint32_t n, int8_t *q)
{
    float     max, inverse;
    uint32_t  i;

    max = 0;

    for (i = 0; i < n; i++) {
        max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
    }

    inverse = max > 0 ? 127 / max : 0;

    for (i = 0; i < n; i++) {
        q[i] = (int8_t) (int32_t) (x[i] * inverse + ROUNDER - ROUNDER);
    }

    return max / 127;
}
