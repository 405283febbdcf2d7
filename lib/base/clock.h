/* The monotonic clock, for durations. */

#ifndef VLM_CLOCK_H
#define VLM_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Microseconds; never goes back. */
static inline uint64_t
vlm_now_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

#endif
