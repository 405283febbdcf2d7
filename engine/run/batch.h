/*
 * Rows for one pass through the language model, built on the host and copied to the device in one
 * piece.
 */

#ifndef VLM_BATCH_H
#define VLM_BATCH_H

#include "ops/ops.h"

struct vlm_prompt_s;

typedef struct {                       /* the host's side of a vlm_batch_t */
    uint32_t    max_T, max_S;
    uint32_t   *ids;                   /* [vlm_batch_words(max_T, max_S)] */
    vlm_pick_t *pick;                  /* [max_S] */
    uint32_t    T, S, R;
    uint32_t    pictures;              /* rows with a source */
    uint32_t    adapted;               /* rows with an adapter */
    uint32_t    last_place;            /* of the last sequence */
    float       last_scale;
    uint32_t   *token, *source, *seq;  /* [max_T] each; these lie in ids, one after the other */
    int32_t    *pos;                   /* [3][max_T], packed to [3][T] when it is put */
    uint32_t   *place;                 /* [max_T] of the adapter, or VLM_NONE */
    float      *scale;                 /* [max_T] of the adapter */
    uint32_t   *start, *slot, *n_ctx, *logit_row;
} vlm_rows_t;

/* Words of the arrays of a batch. */
uint64_t vlm_batch_words(uint32_t max_T, uint32_t max_S);

int vlm_rows_open(vlm_rows_t *r, uint32_t max_T, uint32_t max_S, vlm_err_t *err);
void vlm_rows_close(vlm_rows_t *r);    /* safe on a zeroed structure */

void vlm_rows_clear(vlm_rows_t *r);
/* Begins a sequence: its slot, and the number of rows in its cache. */
void vlm_rows_sequence(vlm_rows_t *r, uint32_t slot, uint32_t n_ctx);
/* The adapter of the last sequence's rows, which has none without this. */
void vlm_rows_adapter(vlm_rows_t *r, uint32_t place, float scale);
/* Adds a row to the last sequence; source is VLM_NONE for a token. */
void vlm_rows_add(vlm_rows_t *r, uint32_t token, uint32_t source, const int32_t pos[3]);
/* Asks for logits of the last row, and for a pick (pick may be NULL: logits alone). */
void vlm_rows_pick(vlm_rows_t *r, const vlm_pick_t *pick);

/* Copies the rows to device memory (ids, pick: as planned) and describes them in b. */
void vlm_rows_put(vlm_rows_t *r, const vlm_ops_t *ops, vlm_device_t *d, uint32_t *ids,
                  vlm_pick_t *pick, vlm_batch_t *b);

#endif
