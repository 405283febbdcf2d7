/*
 * An arithmetic estimate of a launch's time on a small card.  Operations cut their work into
 * launches by it, and it decides when the host waits and asks whether to go on.  The figures are
 * not measured.
 *
 * The card is an RTX 4050 for laptops.  192 GB/s are NVIDIA's figure for it.  Its 20 processors at
 * 1.6 GHz give 8, 16 and 65 * 10^12 operations a second in f32, and on tensor cores in bf16 and
 * int8; a quarter of that is assumed, with enough blocks for all processors.
 */

#ifndef VLM_COST_H
#define VLM_COST_H

#include <stdint.h>

#define VLM_BOUND_US    50000.0        /* a cancellation takes effect within about that time */

/* In a microsecond. */
#define VLM_CARD_BYTES  192e3
#define VLM_CARD_F32    2e6            /* operations: a multiplication and an addition are two */
#define VLM_CARD_BF16   4e6
#define VLM_CARD_INT8   16e6


/* Microseconds: the larger of the times for memory and for arithmetic. */
static inline double
vlm_cost_us(double bytes, double ops, double rate)
{
    bytes /= VLM_CARD_BYTES;
    ops /= rate;

    return bytes > ops ? bytes : ops;
}


/* How many of n units, of us microseconds each, one launch may have: at least one. */
static inline uint32_t
vlm_cost_fit(double us, uint32_t n)
{
    double  most = VLM_BOUND_US / us;

    return most >= n ? n : most < 1 ? 1 : (uint32_t) most;
}

#endif
