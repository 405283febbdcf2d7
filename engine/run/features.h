/*
 * A cache of the features of pictures, found by the picture's content.
 *
 * A job holds the entry of the picture whose rows it reads.  The first holder has the picture
 * encoded, and later ones wait for it.  An entry without holders stays until the cache needs it;
 * the one released first is evicted first.  A job holds one entry at a time and there are at least
 * as many entries as slots, so an entry is always free.  Only the engine thread uses the cache;
 * entry i is place i of vlm_vision_work_t.features.
 */

#ifndef VLM_FEATURES_H
#define VLM_FEATURES_H

#include "chat/prompt.h"
#include "vlm.h"

typedef struct {                       /* no padding: compared as bytes */
    uint8_t   sha256[32];              /* of the file */
    uint8_t   salt[32];                /* of the prompt */
    uint8_t   adapted[32];             /* by an adapter that changes the encoder; or zeros */
    uint32_t  grid_h, grid_w;          /* patches */
} vlm_picture_key_t;

typedef struct {
    vlm_picture_key_t  key;
    int                used;           /* key is set */
    int                ready;          /* the features are computed */
    uint32_t           holders;
    uint64_t           released;       /* time of the last release, by the clock below */
} vlm_features_entry_t;

typedef struct {
    vlm_features_entry_t  *entry;      /* [n] */
    uint32_t               n;
    uint64_t               clock;      /* one more with each release */
} vlm_features_t;

int vlm_features_open(vlm_features_t *f, uint32_t n, vlm_err_t *err);
void vlm_features_close(vlm_features_t *f);        /* safe on a zeroed structure */

/* Picture i of a prompt. */
void vlm_picture_key(const vlm_prompt_t *p, uint32_t i, vlm_picture_key_t *key);

/* The entry for a picture; *hit: it was encoded, or is being encoded, for another job. */
uint32_t vlm_features_hold(vlm_features_t *f, const vlm_picture_key_t *key, int *hit);
void vlm_features_release(vlm_features_t *f, uint32_t i);

/* Marks an entry without a holder as overwritten. */
void vlm_features_forget(vlm_features_t *f, uint32_t i);

#endif
