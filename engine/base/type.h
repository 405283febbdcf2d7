/* Element types: how many bytes, and how they become f32. */

#ifndef VLM_TYPE_H
#define VLM_TYPE_H

#include <string.h>

#include "vlm.h"

static inline uint32_t
vlm_type_bytes(vlm_type_t type)
{
    return type == VLM_F32 ? 4 : type == VLM_INT8 ? 1 : 2;
}

static inline const char *
vlm_type_name(vlm_type_t type)
{
    return type == VLM_F32 ? "f32" : type == VLM_F16 ? "f16" : type == VLM_BF16 ? "bf16" : "int8";
}

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
