/*
 * The cost of work, by which operations are cut into launches and the host decides when to wait for
 * the device and ask whether to go on: no launch, and no launches between two questions together,
 * take longer than VLM_BOUND_US.
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
#define VLM_TENSOR    0.5              /* of an operation on tensor cores; at most, on any card */

/*
 * Of a byte.  By NVIDIA's figures no card from Turing to Blackwell does more operations while it
 * moves one: an L40S, at 91.6 * 10^12 operations and 864 * 10^9 bytes a second, 27 by that share.
 */
#define VLM_BYTE      32.0


/* The larger one of the costs of bytes and of operations, as they overlap. */
static inline double
vlm_cost(double bytes, double ops)
{
    bytes *= VLM_BYTE;

    return bytes > ops ? bytes : ops;
}


/* How many of n units of that cost have together at most the other: at least one. */
static inline uint32_t
vlm_cost_fit(double most, double cost, uint32_t n)
{
    most /= cost;

    return most >= n ? n : most < 1 ? 1 : (uint32_t) most;
}

#endif
