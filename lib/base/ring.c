/* Keeps the latest of many texts: see ring.h. */

#include "base/ring.h"

#include <string.h>


void
vlm_ring_put(vlm_ring_t *ring, const char *id, const char *text, size_t bytes)
{
    const size_t  i = ring->next++ % VLM_RING;

    ring->last[i].bytes = bytes < VLM_RING_TEXT ? bytes : VLM_RING_TEXT;

    memcpy(ring->last[i].id, id, VLM_RING_ID);
    memcpy(ring->last[i].text, text, ring->last[i].bytes);
}


size_t
vlm_ring_get(const vlm_ring_t *ring, const char *id, char text[VLM_RING_TEXT])
{
    size_t  i, n;

    for (n = 1; n <= VLM_RING; n++) {
        i = (ring->next + VLM_RING - n) % VLM_RING;

        if (ring->last[i].bytes > 0 && memcmp(ring->last[i].id, id, VLM_RING_ID) == 0) {
            memcpy(text, ring->last[i].text, ring->last[i].bytes);
            return ring->last[i].bytes;
        }
    }

    return 0;
}
