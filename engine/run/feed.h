/*
 * Tokens that an answer's grammar leaves no choice about: they are read together with the last
 * token, as rows of a prompt, and not picked.
 *
 * The text is tokenised as the tokenizer tokenises it behind the last tokens of the answer, or by
 * itself where it would have joined these with it.  Its last tokens are left to a pick where what
 * may follow could be joined with them.
 */

#ifndef VLM_FEED_H
#define VLM_FEED_H

#include "run/adjust.h"

/*
 * Finds the tokens that have to come next, at most `most`; returns how many.  *whole: 1 if the
 * answer ends behind them.
 */
uint32_t vlm_feed(const vlm_adjust_t *a, const vlm_job_t *j, uint32_t most, uint32_t id[VLM_FED],
                  int *whole);

/* Notes a token of a value, for the next call. */
void vlm_feed_read(vlm_job_t *j, uint32_t id, const char *bytes, size_t n);
/* A value begins. */
void vlm_feed_start(vlm_job_t *j);

#endif
