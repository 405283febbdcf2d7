/*
 * Sizes are uint64_t and saturate: a product or sum that overflows becomes UINT64_MAX, which fits
 * nowhere, so an overflow ends in "does not fit" and never in a small number.
 */

#ifndef VLM_SIZE_H
#define VLM_SIZE_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t
vlm_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t
vlm_mul(uint64_t a, uint64_t b)
{
    return (b != 0 && a > UINT64_MAX / b) ? UINT64_MAX : a * b;
}

/* Up to the next multiple of align, a power of two. */
static inline uint64_t
vlm_round(uint64_t n, uint64_t align)
{
    return n > UINT64_MAX - (align - 1) ? UINT64_MAX : (n + align - 1) & ~(align - 1);
}

/* In MiB, rounded up, so that "memory" may be set to the size that a sentence says. */
static inline uint64_t
vlm_mib(uint64_t bytes)
{
    return bytes / 1048576 + (bytes % 1048576 != 0);
}

/* No object exceeds PTRDIFF_MAX, and compilers warn of a malloc() that may ask for one. */
static inline void *
vlm_malloc(uint64_t bytes)
{
    return bytes > PTRDIFF_MAX ? NULL : malloc((size_t) bytes);
}

#endif
