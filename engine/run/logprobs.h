/*
 * Log-probabilities on their way to the host: noted when a token is picked, sent when its text is
 * visible, which stop strings and half characters may delay.
 */

#ifndef VLM_LOGPROBS_H
#define VLM_LOGPROBS_H

#include "run/job.h"
#include "vlm.h"

/* Notes an id that has become part of the answer; vlm_adjust() noted its likeliest ones. */
void vlm_logprobs_add(vlm_job_t *j, uint32_t id);

/*
 * Notes that the text of the tokens so far was appended, except for `held` bytes that are no whole
 * character yet.  fed: bytes of the last token.
 */
void vlm_logprobs_place(vlm_job_t *j, size_t held, size_t fed);

/* The number of tokens whose text is clear. */
uint32_t vlm_logprobs_clear(vlm_job_t *j);

#endif
