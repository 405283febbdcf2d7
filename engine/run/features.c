/* The cache of pictures' features: which entry has which picture. */

#include "run/features.h"

#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"


int
vlm_features_open(vlm_features_t *f, uint32_t n, vlm_err_t *err)
{
    f->n = n;
    f->clock = 0;
    f->entry = calloc(n, sizeof(*f->entry));

    return f->entry == NULL
           ? vlm_fail(err, VLM_EMEMORY, "no memory for the entries of %u pictures", n) : 0;
}


void
vlm_features_close(vlm_features_t *f)
{
    free(f->entry);
    memset(f, 0, sizeof(*f));
}


void
vlm_picture_key(const vlm_prompt_t *p, uint32_t i, vlm_picture_key_t *key)
{
    const vlm_picture_t  *pic = p->picture[i];

    memcpy(key->sha256, pic->sha256, sizeof(key->sha256));
    memcpy(key->salt, p->salt, sizeof(key->salt));
    memset(key->adapted, 0, sizeof(key->adapted));

    if (p->tower) {
        memcpy(key->adapted, p->adapted, sizeof(key->adapted));
    }

    key->grid_h = pic->grid_h;
    key->grid_w = pic->grid_w;
}


/* An entry without holders: an empty one, or the one released first. */
static uint32_t
find_entry(const vlm_features_t *f)
{
    uint32_t                     i, found;
    const vlm_features_entry_t  *e;

    found = VLM_NONE;

    for (i = 0; i < f->n; i++) {
        e = &f->entry[i];

        if (e->holders > 0) {
            continue;
        }

        if (!e->used) {
            return i;
        }

        if (found == VLM_NONE || e->released < f->entry[found].released) {
            found = i;
        }
    }

    return found;
}


uint32_t
vlm_features_hold(vlm_features_t *f, const vlm_picture_key_t *key, int *hit)
{
    uint32_t               i;
    vlm_features_entry_t  *e;

    for (i = 0; i < f->n; i++) {
        e = &f->entry[i];

        if (e->used && memcmp(&e->key, key, sizeof(*key)) == 0) {
            e->holders++;
            *hit = 1;
            return i;
        }
    }

    i = find_entry(f);
    e = &f->entry[i];
    e->key = *key;
    e->used = 1;
    e->ready = 0;
    e->holders = 1;
    *hit = 0;

    return i;
}


void
vlm_features_release(vlm_features_t *f, uint32_t i)
{
    vlm_features_entry_t  *e = &f->entry[i];

    e->holders--;
    e->released = ++f->clock;

    if (e->holders == 0 && !e->ready) {
        e->used = 0;                   /* no job waits for it any more */
    }
}


void
vlm_features_forget(vlm_features_t *f, uint32_t i)
{
    f->entry[i].used = 0;
}
