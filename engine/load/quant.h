/* Weight rows to int8: see ops/ops.h for the definition. */

#ifndef VLM_QUANT_H
#define VLM_QUANT_H

#include <stdint.h>

/* One row of n values to q [n], each within -127 .. 127; returns its scale, max|x| / 127,
   which is not a number if one of them is not finite.  q may be x's own memory. */
float vlm_quant_row(const float *x, uint32_t n, int8_t *q);

#endif
