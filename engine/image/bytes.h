/* Numbers in files, most (be) or least (le) significant byte first. */

#ifndef VLM_BYTES_H
#define VLM_BYTES_H

#include <stdint.h>

static inline uint32_t
vlm_u16be(const uint8_t *p)
{
    return (uint32_t) p[0] << 8 | p[1];
}


static inline uint32_t
vlm_u32be(const uint8_t *p)
{
    return vlm_u16be(p) << 16 | vlm_u16be(p + 2);
}


static inline uint32_t
vlm_u16le(const uint8_t *p)
{
    return (uint32_t) p[1] << 8 | p[0];
}


static inline uint32_t
vlm_u24le(const uint8_t *p)
{
    return (uint32_t) p[2] << 16 | vlm_u16le(p);
}


static inline uint32_t
vlm_u32le(const uint8_t *p)
{
    return vlm_u16le(p + 2) << 16 | vlm_u16le(p);
}

#endif
