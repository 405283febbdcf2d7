/* SHA-256 (FIPS 180-4): identifies contents in caches.  Not for secrets, because its buffers
   are not wiped. */

#ifndef VLM_SHA256_H
#define VLM_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t  state[8];
    uint64_t  bytes;                   /* added so far */
    uint8_t   block[64];               /* the last bytes % 64 of them */
} vlm_sha256_t;

void vlm_sha256_start(vlm_sha256_t *s);
void vlm_sha256_add(vlm_sha256_t *s, const void *data, size_t bytes);
void vlm_sha256_end(vlm_sha256_t *s, uint8_t out[32]);

/* All three for one range of memory. */
void vlm_sha256(const void *data, size_t bytes, uint8_t out[32]);

#endif
