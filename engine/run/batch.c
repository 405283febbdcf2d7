/* Rows for one pass through the language model. */

#include "run/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"


uint64_t
vlm_batch_words(uint32_t max_T, uint32_t max_S)
{
    /* token, source, seq, pos [3], place, scale; start [S + 1], slot, n_ctx, logit_row [S] */

    return vlm_add(vlm_mul(max_T, 8), vlm_add(vlm_mul(max_S, 4), 1));
}


int
vlm_rows_open(vlm_rows_t *r, uint32_t max_T, uint32_t max_S, vlm_err_t *err)
{
    uint32_t  *p;

    memset(r, 0, sizeof(*r));

    r->max_T = max_T;
    r->max_S = max_S;
    r->ids = calloc(vlm_batch_words(max_T, max_S), sizeof(uint32_t));
    r->pick = calloc(max_S, sizeof(vlm_pick_t));

    if (r->ids == NULL || r->pick == NULL) {
        vlm_rows_close(r);
        return vlm_fail(err, VLM_EMEMORY, "no memory for a batch of %u rows", max_T);
    }

    p = r->ids;
    r->token = p;
    r->source = p += max_T;
    r->seq = p += max_T;
    r->pos = (int32_t *) (p += max_T);
    r->place = p += 3 * (size_t) max_T;
    r->scale = (float *) (p += max_T);
    r->start = p += max_T;
    r->slot = p += max_S + 1;
    r->n_ctx = p += max_S;
    r->logit_row = p + max_S;

    return 0;
}


void
vlm_rows_close(vlm_rows_t *r)
{
    free(r->ids);
    free(r->pick);
    memset(r, 0, sizeof(*r));
}


void
vlm_rows_clear(vlm_rows_t *r)
{
    r->T = r->S = r->R = r->pictures = r->adapted = 0;
    r->start[0] = 0;
}


void
vlm_rows_sequence(vlm_rows_t *r, uint32_t slot, uint32_t n_ctx)
{
    r->slot[r->S] = slot;
    r->n_ctx[r->S] = n_ctx;
    r->S++;
    r->start[r->S] = r->T;
    r->last_place = VLM_NONE;
}


void
vlm_rows_adapter(vlm_rows_t *r, uint32_t place, float scale)
{
    r->last_place = place;
    r->last_scale = scale;
}


void
vlm_rows_add(vlm_rows_t *r, uint32_t token, uint32_t source, const int32_t pos[3])
{
    uint32_t  axis;

    r->token[r->T] = token;
    r->source[r->T] = source;
    r->seq[r->T] = r->S - 1;
    r->pictures += source != VLM_NONE;
    r->adapted += r->last_place != VLM_NONE;
    r->place[r->T] = r->last_place;
    r->scale[r->T] = r->last_scale;

    for (axis = 0; axis < 3; axis++) {
        r->pos[(size_t) axis * r->max_T + r->T] = pos[axis];
    }

    r->T++;
    r->start[r->S] = r->T;
}


void
vlm_rows_pick(vlm_rows_t *r, const vlm_pick_t *pick)
{
    if (pick != NULL) {
        r->pick[r->R] = *pick;
    }

    r->logit_row[r->R++] = r->T - 1;
}


void
vlm_rows_put(vlm_rows_t *r, const vlm_ops_t *ops, vlm_device_t *d, uint32_t *ids, vlm_pick_t *pick,
             vlm_batch_t *b)
{
    uint32_t  axis, s, rows;

    for (axis = 1; axis < 3; axis++) {
        memmove(r->pos + (size_t) axis * r->T, r->pos + (size_t) axis * r->max_T,
                r->T * sizeof(int32_t));
    }

    ops->basic->put(d, ids, r->ids, vlm_batch_words(r->max_T, r->max_S) * sizeof(uint32_t));
    ops->basic->put(d, pick, r->pick, r->R * sizeof(vlm_pick_t));

    b->T = r->T;
    b->S = r->S;
    b->R = r->R;
    b->pictures = r->pictures;
    b->max_rows = b->max_ctx = 0;

    for (s = 0; s < r->S; s++) {
        rows = r->start[s + 1] - r->start[s];
        b->max_rows = rows > b->max_rows ? rows : b->max_rows;
        b->max_ctx = r->n_ctx[s] + rows > b->max_ctx ? r->n_ctx[s] + rows : b->max_ctx;
    }

    b->token = ids;
    b->source = ids + (r->source - r->ids);
    b->seq = ids + (r->seq - r->ids);
    b->pos = (const int32_t *) ids + ((uint32_t *) r->pos - r->ids);
    b->start = ids + (r->start - r->ids);
    b->slot = ids + (r->slot - r->ids);
    b->n_ctx = ids + (r->n_ctx - r->ids);
    b->logit_row = ids + (r->logit_row - r->ids);
    b->pick = pick;
}
