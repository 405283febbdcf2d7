/*
 * Turns: orthogonal matrices that the int8 form multiplies into its weights, so that a few large
 * values are spread over many before they are rounded.
 *
 * The turn of a stream of n values, R = M (C x H) S: S has random signs; H is a Hadamard matrix of
 * the largest power of two in n; C is a Hartley matrix, cos + sin, of the odd rest; M is the
 * reflection that leaves rows of equal values as they are, for streams whose norms take a mean off.
 * Without M it is left out.  C and H are their own inverses, and so is M.
 *
 * The turn of blocks is a Hadamard matrix for each VLM_BLOCK values, without signs; what is left of
 * a row has one for each power of two in its number.  It is its own inverse.
 *
 * The same bits everywhere: butterflies of neighbours come first, then of values 2 apart, 4, ...;
 * the factor comes last.  Nothing is fused.
 */

#ifndef VLM_TURN_H
#define VLM_TURN_H

#include <math.h>

#include "ops/ops.h"

#define VLM_TURN_ODD  63               /* the largest odd part of a width that is turned */

/* 1: widths of n are turned.  Sets n, two and odd. */
int vlm_turn_of(vlm_turn_t *t, uint32_t n);
/* Fills sign [n], small [odd][odd], and mirror [n] if it is not NULL, which the caller has set. */
void vlm_turn_fill(vlm_turn_t *t);

/* x [n] = R x, and x = R^T x; work [n] */
void vlm_turn_row(const vlm_turn_t *t, float *x, float *work);
void vlm_turn_back(const vlm_turn_t *t, float *x, float *work);
/* y [K] = the turn of x's blocks; y may be x */
void vlm_turn_blocks(const float *x, uint32_t K, float *y);
/* x [n][c] = R x, for c columns; work [c] and, if n has an odd part, [odd][c] more */
void vlm_turn_columns(const vlm_turn_t *t, float *x, uint32_t c, float *work);

#ifdef __CUDACC__
#define VLM_TURN_FN  static __host__ __device__ inline
#else
#define VLM_TURN_FN  static inline
#endif

/* In a row's rest of r values, of a block or less, the size of the matrix that has value p. */
VLM_TURN_FN uint32_t
vlm_turn_size(uint32_t r, uint32_t p)
{
    uint32_t  size, at;

    for (at = 0, size = VLM_BLOCK; r < VLM_BLOCK && size > 0; size /= 2) {
        if ((r & size) != 0) {
            at += size;

            if (p < at) {
                break;
            }
        }
    }

    return size;
}

/* The factor of a Hadamard matrix of that size. */
VLM_TURN_FN float
vlm_turn_factor(uint32_t size)
{
    return 1 / sqrtf((float) size);
}

#endif
