/*
 * When a job's answer is held to its grammar: always, or from behind a trigger on; and with a text
 * between values, value after value.
 */

#ifndef VLM_HOLD_H
#define VLM_HOLD_H

#include "run/adjust.h"

/* 1: tokens are picked by the grammar now. */
static inline int
vlm_held(const vlm_job_t *j)
{
    return j->match != NULL && j->hold != VLM_HOLD_FREE;
}

/* Makes the match of a new job.  -1: no memory. */
int vlm_hold_open(vlm_job_t *j, const vlm_sampling_t *s);
void vlm_hold_close(vlm_job_t *j);

/* Sets the ids that may come next, in a->allowed. */
void vlm_hold_mask(const vlm_adjust_t *a, const vlm_job_t *j);

/* Reads an id that was picked.  -1: the grammar does not go on with it. */
int vlm_hold_read(const vlm_adjust_t *a, vlm_job_t *j, const vlm_tokenizer_t *t, uint32_t id);

#endif
