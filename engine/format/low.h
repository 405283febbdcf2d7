/*
 * The order of an adapter's two matrices (vlm_low_t in ops/ops.h), in which each is read as one
 * stream: of A, rows of a group take turns, some values each; of B, panels as the matrix has them.
 */

#ifndef VLM_FORMAT_LOW_H
#define VLM_FORMAT_LOW_H

#include <stddef.h>

#include "format/panel.h"

#define VLM_LOW_GROUP  4               /* rows of A that are read together */
#define VLM_LOW_LANES  16              /* values of one before those of the next one */


/* Value k of row i among a part's r rows [r][K]. */
static inline size_t
vlm_low_a_at(uint32_t r, uint32_t K, uint32_t i, uint32_t k)
{
    uint32_t  first, rows, begin, values;

    first = i / VLM_LOW_GROUP * VLM_LOW_GROUP;
    rows = r - first < VLM_LOW_GROUP ? r - first : VLM_LOW_GROUP;
    begin = k / VLM_LOW_LANES * VLM_LOW_LANES;
    values = K - begin < VLM_LOW_LANES ? K - begin : VLM_LOW_LANES;

    return (size_t) first * K + (size_t) begin * rows + (i - first) * values + (k - begin);
}


/* Value n of row i among r rows [r][N]. */
static inline size_t
vlm_low_b_at(uint32_t r, uint32_t N, uint32_t i, uint32_t n)
{
    uint32_t  first, values;

    first = n / VLM_PANEL * VLM_PANEL;
    values = N - first < VLM_PANEL ? N - first : VLM_PANEL;

    return (size_t) first * r + (size_t) i * values + (n - first);
}

#endif
