/* The cache of pictures: it has few entries, so a lookup compares all of them. */

#include "image/known.h"

#include <stdlib.h>
#include <string.h>


int
vlm_known_open(vlm_known_t *k, uint32_t n, vlm_err_t *err)
{
    pthread_mutex_init(&k->mutex, NULL);
    k->n = n;
    k->clock = 0;
    k->entry = calloc(n, sizeof(*k->entry));

    return k->entry == NULL
           ? vlm_fail(err, VLM_EMEMORY, "no memory for a cache of %u pictures", n) : 0;
}


void
vlm_known_close(vlm_known_t *k)
{
    uint32_t  i;

    if (k->entry == NULL) {
        return;
    }

    for (i = 0; i < k->n; i++) {
        vlm_picture_free(k->entry[i].picture);
    }

    free(k->entry);
    pthread_mutex_destroy(&k->mutex);
    memset(k, 0, sizeof(*k));
}


/* Under the mutex. */
static vlm_known_entry_t *
find(vlm_known_t *k, const uint8_t sha256[32], const uint8_t salt[32])
{
    uint32_t            i;
    vlm_known_entry_t  *e;

    for (i = 0; i < k->n; i++) {
        e = &k->entry[i];

        if (e->picture != NULL && memcmp(e->picture->sha256, sha256, 32) == 0
            && memcmp(e->salt, salt, 32) == 0)
        {
            e->used = ++k->clock;
            return e;
        }
    }

    return NULL;
}


vlm_picture_t *
vlm_known_find(vlm_known_t *k, const uint8_t sha256[32], const uint8_t salt[32])
{
    vlm_picture_t      *p;
    vlm_known_entry_t  *e;

    pthread_mutex_lock(&k->mutex);

    e = find(k, sha256, salt);
    p = e == NULL ? NULL : vlm_picture_share(e->picture);

    pthread_mutex_unlock(&k->mutex);

    if (p != NULL) {
        p->info.decode_us = p->info.resize_us = 0;
    }

    return p;
}


/* Called under the mutex: an empty place, or the least recently used one. */
static vlm_known_entry_t *
find_place(vlm_known_t *k)
{
    uint32_t            i;
    vlm_known_entry_t  *e;

    e = &k->entry[0];

    for (i = 1; i < k->n && e->picture != NULL; i++) {
        if (k->entry[i].picture == NULL || k->entry[i].used < e->used) {
            e = &k->entry[i];
        }
    }

    return e;
}


vlm_picture_t *
vlm_known_add(vlm_known_t *k, vlm_picture_t *p, const uint8_t salt[32])
{
    vlm_picture_t      *shared, *old;
    vlm_known_entry_t  *e;

    shared = vlm_picture_share(p);
    if (shared == NULL) {
        return p;
    }

    old = p;
    pthread_mutex_lock(&k->mutex);

    /* Two threads that read the same file at once both come here: the first one's entry stays. */

    if (find(k, p->sha256, salt) == NULL) {
        e = find_place(k);
        old = e->picture;
        e->picture = p;
        memcpy(e->salt, salt, sizeof(e->salt));
        e->used = ++k->clock;
    }

    pthread_mutex_unlock(&k->mutex);

    vlm_picture_free(old);

    return shared;
}
