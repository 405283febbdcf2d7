/* Weight rows in int8: symmetric, one scale a row, round half to even. */

#include "format/int8.h"

#include <math.h>
#include <string.h>

#include "format/panel.h"

#define ROUNDER  12582912.0f           /* 1.5 * 2^23: x + ROUNDER - ROUNDER rounds half to even */
#define TINY     0x1p-120f             /* 127 over less is infinite: such a row is zeros */


/* INFINITY: a value is not finite, of these or of those before. */
float
vlm_int8_largest(const float *x, uint32_t n, float before)
{
    int       finite;
    uint32_t  i;

    finite = 1;

    for (i = 0; i < n; i++) {
        before = fabsf(x[i]) > before ? fabsf(x[i]) : before;
        finite &= isfinite(x[i]) != 0;
    }

    return finite ? before : INFINITY;
}


float
vlm_int8_scale(float largest)
{
    /* Not a number is reported by the sampler; a zero would hide it. */

    return isinf(largest) ? NAN : largest / 127;
}


void
vlm_int8_round(const float *x, uint32_t n, float largest, void *row)
{
    float     inverse;
    int8_t   *q = row;
    uint32_t  i;

    if (isinf(largest)) {
        memset(q, 0, n);
        return;
    }

    inverse = largest >= TINY ? 127 / largest : 0;

    for (i = 0; i < n; i++) {
        q[i] = (int8_t) (int32_t) (x[i] * inverse + ROUNDER - ROUNDER);
    }
}


float
vlm_quant_row(const float *x, uint32_t n, int8_t *q)
{
    float  largest;

    largest = vlm_int8_largest(x, n, 0);
    vlm_int8_round(x, n, largest, q);

    return vlm_int8_scale(largest);
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
