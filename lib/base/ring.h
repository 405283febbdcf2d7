/*
 * The latest of many short texts, each with an id: a later text takes the place of the oldest.  The
 * ring may lie in shared memory; the caller has its lock.
 */

#ifndef VLM_RING_H
#define VLM_RING_H

#include <stddef.h>
#include <stdint.h>

#define VLM_RING       128
#define VLM_RING_ID    32              /* bytes of an id */
#define VLM_RING_TEXT  264             /* of a text */

typedef struct {
    uint64_t  next;                    /* texts so far */

    struct {
        char    id[VLM_RING_ID];
        size_t  bytes;                 /* 0: never used */
        char    text[VLM_RING_TEXT];
    } last[VLM_RING];
} vlm_ring_t;

/* Adds a text, cut to VLM_RING_TEXT bytes. */
void vlm_ring_put(vlm_ring_t *ring, const char *id, const char *text, size_t bytes);

/* Copies the text with this id, of several the latest, and returns its bytes; 0: it is not here, or
   no longer. */
size_t vlm_ring_get(const vlm_ring_t *ring, const char *id, char text[VLM_RING_TEXT]);

#endif
