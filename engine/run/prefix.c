/* The record of the rows in the slots' caches: comparing prompts, choosing a slot, updating. */

#include "run/prefix.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "ops/ops.h"

/* The next prompt often spells the end of an answer differently, so an eighth may differ. */
#define GOES_ON(kept, match)  ((match) > 0 && (kept) - (match) <= (kept) / 8)
#define AGREES(kept, match)   ((match) > 0 && (match) >= (kept) / 2)


int
vlm_prefix_open(vlm_prefix_t *x, uint32_t slots, uint32_t context, vlm_err_t *err)
{
    uint32_t     i;
    vlm_kept_t  *k;

    x->slots = slots;
    x->context = context;
    x->clock = 0;
    x->slot = calloc(slots, sizeof(*x->slot));

    for (i = 0; x->slot != NULL && i < slots; i++) {
        k = &x->slot[i];
        k->token = calloc(context, sizeof(*k->token));
        k->picture = calloc(VLM_MAX_PICTURES, sizeof(*k->picture));
        k->picture_at = calloc(VLM_MAX_PICTURES, sizeof(*k->picture_at));
        k->time = calloc(VLM_MAX_PICTURES, sizeof(*k->time));

        if (k->token == NULL || k->picture == NULL || k->picture_at == NULL || k->time == NULL) {
            break;
        }
    }

    if (x->slot == NULL || i < slots) {
        return vlm_fail(err, VLM_EMEMORY, "no memory to tell the tokens of %u slots apart", slots);
    }

    return 0;
}


void
vlm_prefix_close(vlm_prefix_t *x)
{
    uint32_t  i;

    for (i = 0; x->slot != NULL && i < x->slots; i++) {
        free(x->slot[i].token);
        free(x->slot[i].picture);
        free(x->slot[i].picture_at);
        free(x->slot[i].time);
    }

    free(x->slot);
    memset(x, 0, sizeof(*x));
}


/* Not more than n rows, and none or all of each picture. */
static uint32_t
whole_pictures(const vlm_prompt_t *p, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < p->n_pictures && p->picture_at[i] < n; i++) {
        if (n - p->picture_at[i] < p->picture[i]->n_cells) {
            return p->picture_at[i];
        }
    }

    return n;
}


uint32_t
vlm_prefix_common(const vlm_prefix_t *x, uint32_t slot, const vlm_prompt_t *p)
{
    uint32_t           i, n, most;
    const vlm_kept_t  *k = &x->slot[slot];
    vlm_picture_key_t  key;

    if (memcmp(k->salt, p->salt, sizeof(k->salt)) != 0
        || memcmp(k->adapted, p->adapted, sizeof(k->adapted)) != 0)
    {
        return 0;
    }

    most = p->n - 1 < k->n_tokens ? p->n - 1 : k->n_tokens;

    for (n = 0; n < most && p->token[n] == k->token[n]; n++) { /* void */ }

    /* All pictures' rows have the same token, which an answer may have, too. */

    for (i = 0; i < p->n_pictures && p->picture_at[i] < n; i++) {
        vlm_picture_key(p, i, &key);

        if (i >= k->n_pictures || k->picture_at[i] != p->picture_at[i] || k->time[i] != p->time[i]
            || memcmp(&k->picture[i], &key, sizeof(key)) != 0)
        {
            return p->picture_at[i];
        }
    }

    return whole_pictures(p, n);
}


uint32_t
vlm_prefix_match(const vlm_prefix_t *x, uint32_t slot, const vlm_prompt_t *p)
{
    uint32_t  n;

    n = vlm_prefix_common(x, slot, p);

    return n <= x->slot[slot].n ? n : whole_pictures(p, x->slot[slot].n);
}


uint32_t
vlm_prefix_choose(const vlm_prefix_t *x, const vlm_prompt_t *p, vlm_job_t *const *job)
{
    uint32_t           i, n, going_on, empty, agreeing, oldest, most_on, most;
    const vlm_kept_t  *k;

    going_on = empty = agreeing = oldest = VLM_NONE;
    most_on = most = 0;

    for (i = 0; i < x->slots; i++) {
        k = &x->slot[i];

        if (job[i] != NULL) {
            continue;
        }

        n = vlm_prefix_match(x, i, p);

        if (GOES_ON(k->n, n) && n > most_on) {
            going_on = i;
            most_on = n;
        }

        if (k->n == 0 && empty == VLM_NONE) {
            empty = i;
        }

        if (AGREES(k->n, n) && n > most) {
            agreeing = i;
            most = n;
        }

        if (oldest == VLM_NONE || k->released < x->slot[oldest].released) {
            oldest = i;
        }
    }

    return going_on != VLM_NONE ? going_on : empty != VLM_NONE ? empty
           : agreeing != VLM_NONE ? agreeing : oldest;
}


uint32_t
vlm_prefix_begin(vlm_prefix_t *x, uint32_t slot, const vlm_prompt_t *p)
{
    uint32_t     i;
    vlm_kept_t  *k = &x->slot[slot];

    k->n = vlm_prefix_match(x, slot, p);
    k->n_tokens = p->n;
    k->n_pictures = p->n_pictures;
    memcpy(k->token, p->token, p->n * sizeof(*k->token));
    memcpy(k->salt, p->salt, sizeof(k->salt));
    memcpy(k->adapted, p->adapted, sizeof(k->adapted));

    for (i = 0; i < p->n_pictures; i++) {
        vlm_picture_key(p, i, &k->picture[i]);
        k->picture_at[i] = p->picture_at[i];
        k->time[i] = p->time[i];
    }

    return k->n;
}


void
vlm_prefix_read(vlm_prefix_t *x, uint32_t slot, uint32_t n)
{
    x->slot[slot].n = n;
}


void
vlm_prefix_add(vlm_prefix_t *x, uint32_t slot, uint32_t token)
{
    vlm_kept_t  *k = &x->slot[slot];

    k->token[k->n++] = token;
    k->n_tokens = k->n;
}


/* Tokens that were not read are dropped.  Pictures that had no turn are behind all tokens. */
void
vlm_prefix_end(vlm_prefix_t *x, uint32_t slot)
{
    vlm_kept_t  *k = &x->slot[slot];

    k->n_tokens = k->n;
    k->released = ++x->clock;
}


void
vlm_prefix_forget(vlm_prefix_t *x, uint32_t slot)
{
    x->slot[slot].n = x->slot[slot].n_tokens = 0;
}


uint64_t
vlm_prefix_rows(const vlm_prefix_t *x)
{
    uint32_t  i;
    uint64_t  n;

    n = 0;

    for (i = 0; i < x->slots; i++) {
        n += x->slot[i].n;
    }

    return n;
}
