/* Weight rows in int8: see ops/ops.h for the definition, and panel.h for their order. */

#ifndef VLM_INT8_H
#define VLM_INT8_H

#include <stdint.h>

/*
 * Quantises one row of n values to q [n], each within -127 .. 127, and returns its scale, max|x| /
 * 127.  The scale is not a number if one of the values is not finite.  q may be x's own memory.
 */
float vlm_quant_row(const float *x, uint32_t n, int8_t *q);

/* Of vlm_format_t. */
float vlm_int8_largest(const float *x, uint32_t n, float before);
float vlm_int8_scale(float largest);
void vlm_int8_round(const float *x, uint32_t n, float largest, void *q);
void vlm_int8_quantise(const float *x, uint32_t K, void *row, float *scale);
uint64_t vlm_int8_panel_bytes(uint32_t K);
void vlm_int8_pack(void *panel, const void *rows, uint32_t n, uint32_t K, uint32_t flip);
void vlm_int8_unpack(void *rows, const void *panel, uint32_t n, uint32_t K, uint32_t flip);

#endif
