/* Weight rows to int8: see ops/ops.h for the definition. */

#ifndef VLM_QUANT_H
#define VLM_QUANT_H

#include <stdint.h>

/*
 * Quantises one row of n values to q [n], each within -127 .. 127, and returns its scale, max|x| /
 * 127.  The scale is not a number if one of the values is not finite.  q may be x's own memory.
 */
float vlm_quant_row(const float *x, uint32_t n, int8_t *q);

#endif
