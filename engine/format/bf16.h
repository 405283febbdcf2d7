/* bf16 to f32 and back. */

#ifndef VLM_BF16_H
#define VLM_BF16_H

#include <stdint.h>
#include <string.h>

static inline float
vlm_bf16_f32(uint16_t b)
{
    uint32_t  u = (uint32_t) b << 16;
    float     f;

    memcpy(&f, &u, sizeof(f));

    return f;
}

/* Rounds to nearest, ties to even; a NaN stays a NaN. */
static inline uint16_t
vlm_f32_bf16(float f)
{
    uint32_t  u;

    memcpy(&u, &f, sizeof(u));

    if ((u & 0x7fffffff) > 0x7f800000) {
        return (uint16_t) (u >> 16) | 0x40;
    }

    return (uint16_t) ((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

#endif
