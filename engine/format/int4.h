/*
 * Weight rows in int4: int8 rows (int8.h) of few values.  A group of VLM_BLOCK values has a step,
 * 1 .. 16, and a base; each value is base + step q, q within 0 .. 15.
 *
 * A row is groups of 34 bytes: 32 with value i in the low four bits and value 32 + i in the high
 * ones, the step, the base.  Values beyond the row's end are those of its last group's base.
 *
 * A panel has the same of VLM_PANEL rows: for each piece of VLM_PIECE values the groups [groups][8]
 * [VLM_PANEL] words of four bytes; then the steps and the bases, [VLM_PANEL][4] bytes each.
 * Bytes beyond the last row and the last group are 0.  There is no flip.
 */

#ifndef VLM_INT4_H
#define VLM_INT4_H

#include <stdint.h>

#include "ops/ops.h"

#define VLM_INT4_GROUP   34            /* bytes of a group in a row */
#define VLM_INT4_GROUPS  (VLM_PIECE / VLM_BLOCK)           /* of a piece */
#define VLM_INT4_NIBBLES 2048          /* bytes of a group's values in a panel */
#define VLM_INT4_NUMBERS 256           /* bytes of a piece's steps there, and of its bases */

/* The values of n groups of a row: int8 [n][VLM_BLOCK]. */
void vlm_int4_values(const void *groups, uint32_t n, int8_t *values);

/* Row i of a panel. */
void vlm_int4_unpack_row(const void *panel, uint32_t i, uint32_t K, float *out);

/* Of vlm_format_t. */
uint64_t vlm_int4_row_bytes(uint64_t K);
void vlm_int4_quantise(const float *x, uint32_t K, void *row, float *scale);
void vlm_int4_round(const float *x, uint32_t n, float largest, void *groups);
uint64_t vlm_int4_panel_bytes(uint32_t K);
void vlm_int4_pack(void *panel, const void *rows, uint32_t n, uint32_t K, uint32_t flip);
void vlm_int4_unpack(void *rows, const void *panel, uint32_t n, uint32_t K, uint32_t flip);

#endif
