/*
 * A cache of pictures that were read lately, as patches: a conversation sends its pictures with
 * each turn, and a photograph takes a hundred milliseconds to decode.
 *
 * The key is the SHA-256 of the file and a salt (see vlm_prompt_salt()).  An entry is shared by all
 * prompts that use it; the least recently used entry is evicted first.  Any thread.
 */

#ifndef VLM_KNOWN_H
#define VLM_KNOWN_H

#include <pthread.h>

#include "image/picture.h"
#include "vlm.h"

typedef struct {
    vlm_picture_t  *picture;
    uint8_t         salt[32];
    uint64_t        used;              /* time of the last use, by the clock below */
} vlm_known_entry_t;

typedef struct {
    pthread_mutex_t     mutex;         /* held while entries are searched */
    vlm_known_entry_t  *entry;         /* [n] */
    uint32_t            n;
    uint64_t            clock;
} vlm_known_t;

int vlm_known_open(vlm_known_t *k, uint32_t n, vlm_err_t *err);
void vlm_known_close(vlm_known_t *k);  /* safe on a zeroed structure; pictures in use stay */

/* A picture of that file, or NULL: it is not cached, or no memory. */
vlm_picture_t *vlm_known_find(vlm_known_t *k, const uint8_t sha256[32], const uint8_t salt[32]);

/* Caches a picture and returns one that shares its patches; or the picture itself: no memory. */
vlm_picture_t *vlm_known_add(vlm_known_t *k, vlm_picture_t *p, const uint8_t salt[32]);

#endif
