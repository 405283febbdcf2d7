/*
 * Log-probabilities on their way to the host: noted when a token is picked, told when its text is
 * visible, which stop strings and half characters may put off.
 */

#ifndef VLM_TOLD_H
#define VLM_TOLD_H

#include "run/job.h"
#include "vlm.h"

/* This id has become part of the answer; its likeliest ones were noted by vlm_adjust(). */
void vlm_told_add(vlm_job_t *j, uint32_t id);

/*
 * The text of the tokens so far was appended, but for held bytes that are no character yet.
 * fed: bytes of the last token.
 */
void vlm_told_place(vlm_job_t *j, size_t held, size_t fed);

/* How many tokens there are whose text is clear. */
uint32_t vlm_told_clear(vlm_job_t *j);

#endif
