/*
 * When a job's answer is held to its grammar: always, or from behind a trigger on; and with a text
 * between values, value after value.
 */

#ifndef VLM_HOLD_H
#define VLM_HOLD_H

#include "run/adjust.h"
#include "run/masks.h"

/* 1: tokens are picked by the grammar now. */
static inline int
vlm_held(const vlm_job_t *j)
{
    return j->match != NULL && j->hold != VLM_HOLD_FREE;
}

/* Makes the match of a new job.  -1: no memory. */
int vlm_hold_open(vlm_job_t *j, const vlm_sampling_t *s, uint32_t n_ids);
void vlm_hold_close(vlm_job_t *j);

/*
 * Makes the mask of the job's next token, or lets m make one that takes long.  1: it is there, or
 * none is needed; 0: not yet; -1: it would take too much work, and err says so.
 */
int vlm_hold_mask(const vlm_adjust_t *a, vlm_masks_t *m, vlm_job_t *j, vlm_err_t *err);

/*
 * Reads an id that was picked.  -1 with err: the grammar does not go on with it, or reading it
 * would take too much work.
 */
int vlm_hold_read(const vlm_adjust_t *a, vlm_job_t *j, const vlm_tokenizer_t *t, uint32_t id,
                  vlm_err_t *err);

#endif
