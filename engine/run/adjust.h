/*
 * Rarely used adjustments of a pick, made on a host copy of one row of logits: log-probabilities,
 * frequency and presence penalty, bias, repeated n-grams, the least length, a grammar.  The table
 * of operations knows none of them, and rows of jobs without them stay on the device, bit for bit.
 */

#ifndef VLM_ADJUST_H
#define VLM_ADJUST_H

#include "grammar/mask.h"
#include "run/job.h"
#include "vlm.h"

/* The last tokens of an answer, a forced text behind them, and a character that may follow. */
#define VLM_FEED_TEXT  (VLM_LAST * VLM_PIECE_BYTES + VLM_FORCED_BYTES + 8)

typedef struct {                       /* the engine thread's, for one row at a time */
    uint32_t                  n_ids;   /* that can be picked */
    float                    *row;     /* [n_ids] */
    const vlm_tokens_t       *pieces;
    vlm_walk_t               *walk;
    const vlm_tokenizer_t    *tokenizer;
    vlm_encoder_t            *encoder; /* of texts of VLM_FEED_TEXT bytes */
    const uint32_t           *eos;     /* [n_eos] ids that end an answer; set after open */
    uint32_t                  n_eos;
    uint32_t                  mark[2], n_marks;    /* of calls: [n_marks]; set after open */
    int                       unforced;            /* 1: tokens are never fed, for tests */
} vlm_adjust_t;

typedef enum {
    VLM_ADJUST_KEEP,                   /* the row needs no change */
    VLM_ADJUST_PUT,                    /* a->row has to replace the row */
    VLM_ADJUST_NOTHING_LEFT            /* every id is forbidden */
} vlm_adjusted_t;

int vlm_adjust_open(vlm_adjust_t *a, uint32_t n_ids, const vlm_tokenizer_t *t,
                    const vlm_tokens_t *pieces, vlm_err_t *err);
void vlm_adjust_close(vlm_adjust_t *a);            /* safe on a zeroed structure */

int vlm_adjust_wanted(const vlm_job_t *j);

/* Where the job's row of logits, f32 [n_ids], is copied from the device. */
float *vlm_adjust_raw(const vlm_adjust_t *a, const vlm_job_t *j);

/*
 * Adjusts that copy.  A row with values that are not numbers is left as it is: the pick reports it.
 * The mask of a job that is held to a grammar is there (hold.h).
 */
vlm_adjusted_t vlm_adjust(const vlm_adjust_t *a, vlm_job_t *j);

/* Notes an id that has become part of the answer.  -1 with err: as vlm_hold_read(). */
int vlm_adjust_picked(const vlm_adjust_t *a, vlm_job_t *j, const vlm_tokenizer_t *t, uint32_t id,
                      vlm_err_t *err);

#endif
