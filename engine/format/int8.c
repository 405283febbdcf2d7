/* Weight rows in int8: symmetric, one scale a row, round half to even. */

#include "format/int8.h"

#include <math.h>
#include <string.h>

#include "format/panel.h"

#define ROUNDER  12582912.0f           /* 1.5 * 2^23: x + ROUNDER - ROUNDER rounds half to even */
#define TINY     0x1p-120f             /* 127 over less is infinite: such a row is zeros */


float
vlm_quant_row(const float *x, uint32_t n, int8_t *q)
{
    int       finite;
    float     max, inverse;
    uint32_t  i;

    max = 0;
    finite = 1;

    for (i = 0; i < n; i++) {
        max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
        finite &= isfinite(x[i]) != 0;
    }

    if (!finite) {
        memset(q, 0, n);
        return NAN;                    /* the sampler reports it; a zero would hide it */
    }

    inverse = max >= TINY ? 127 / max : 0;

    for (i = 0; i < n; i++) {
        q[i] = (int8_t) (int32_t) (x[i] * inverse + ROUNDER - ROUNDER);
    }

    return max / 127;
}


void
vlm_int8_quantise(const float *x, uint32_t K, void *row, float *scale)
{
    *scale = vlm_quant_row(x, K, row);
}


uint64_t
vlm_int8_panel_bytes(uint32_t K)
{
    return vlm_panel_bytes(K);
}


void
vlm_int8_pack(void *panel, const void *rows, uint32_t n, uint32_t K, uint32_t flip)
{
    vlm_pack_words(panel, rows, n, K, flip);
}


void
vlm_int8_unpack(void *rows, const void *panel, uint32_t n, uint32_t K, uint32_t flip)
{
    vlm_unpack_words(rows, panel, n, K, flip);
}
