/*
 * Features of the pictures that were asked about lately, found by what is in them.
 *
 * Whoever reads a picture's rows holds its entry.  The first to hold one has the picture encoded,
 * those who come meanwhile wait for that; an entry that nobody holds stays until its place is
 * needed, the one that was let go first before the others.  A job holds one entry at a time and
 * there are as many as slots, so there always is a place.  The engine thread's alone; entry i is
 * place i of vlm_vision_work_t.features.
 */

#ifndef VLM_FEATURES_H
#define VLM_FEATURES_H

#include "chat/prompt.h"
#include "vlm.h"

typedef struct {                       /* no padding: compared as bytes */
    uint8_t   sha256[32];              /* of the file */
    uint8_t   salt[32];                /* of the prompt */
    uint32_t  grid_h, grid_w;          /* patches */
} vlm_picture_key_t;

typedef struct {
    vlm_picture_key_t  key;
    int                used;           /* key means something */
    int                ready;          /* the features are there */
    uint32_t           holders;
    uint64_t           let_go;         /* when, by the clock below */
} vlm_features_entry_t;

typedef struct {
    vlm_features_entry_t  *entry;      /* [n] */
    uint32_t               n;
    uint64_t               clock;      /* one more with each letting go */
} vlm_features_t;

int vlm_features_open(vlm_features_t *f, uint32_t n, vlm_err_t *err);
void vlm_features_close(vlm_features_t *f);        /* safe on a zeroed structure */

/* Picture i of a prompt. */
void vlm_picture_key(const vlm_prompt_t *p, uint32_t i, vlm_picture_key_t *key);

/* The entry for a picture; *known: another job had it made, or is having it made. */
uint32_t vlm_features_hold(vlm_features_t *f, const vlm_picture_key_t *key, int *known);
void vlm_features_let_go(vlm_features_t *f, uint32_t i);

/* What is in this place has been overwritten.  Nobody holds it. */
void vlm_features_forget(vlm_features_t *f, uint32_t i);

#endif
