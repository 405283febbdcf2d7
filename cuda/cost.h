/*
 * The cost of work.  By it operations are cut into launches, and the host decides when to wait for
 * the device and check for cancellation.  Neither one launch nor all launches between two checks
 * together take longer than VLM_BOUND_US.
 *
 * A cost is a number of f32 operations, of which a multiplication and an addition are two.  Tensor
 * cores do more of them at a time, and a byte that is moved counts as several.  The number that a
 * card does in a microsecond is measured when it is opened (driver.h, speed()), by products that
 * wait for nothing; kernels are assumed to reach VLM_SHARE of that.
 */

#ifndef VLM_COST_H
#define VLM_COST_H

#include <stdint.h>

#define VLM_BOUND_US  50000.0          /* a cancellation takes effect within about that time */
#define VLM_SHARE     0.25             /* assumed, not measured */
#define VLM_TENSOR    0.5              /* of an operation on tensor cores, at most, on any card */

/*
 * The cost of a moved byte.  By NVIDIA's figures no card from Turing to Blackwell does more
 * operations meanwhile: an L40S, with 91.6 * 10^12 operations and 864 * 10^9 bytes a second, does
 * 106, and 27 at VLM_SHARE.
 */
#define VLM_BYTE      32.0


/* The larger of the costs of bytes and of operations, since the two overlap. */
static inline double
vlm_cost(double bytes, double ops)
{
    bytes *= VLM_BYTE;

    return bytes > ops ? bytes : ops;
}


/* The number of n units of this cost each that cost at most `most` together; at least one. */
static inline uint32_t
vlm_cost_fit(double most, double cost, uint32_t n)
{
    most /= cost;

    return most >= n ? n : most < 1 ? 1 : (uint32_t) most;
}

#endif
