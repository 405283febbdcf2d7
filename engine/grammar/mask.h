/* A mask of the vocabulary's tokens that may come next in an answer with a grammar. */

#ifndef VLM_MASK_H
#define VLM_MASK_H

#include "grammar/match.h"

#define VLM_MASK_QUICK  (1u << 14)     /* steps of most masks: below a millisecond */
#define VLM_MASK_MOST   (1u << 22)     /* of any: some tenths of a second */

/*
 * Sets a bit for each id, in [p->n_words] words: the token may come after m, and the answer can
 * then be completed with n_after more tokens.  At least one bit is set if m can be completed with
 * n_after + 1.  Where m may be whole, the ids that end an answer are set, too.  -1: the walk is
 * spent, and bits are missing.
 */
int vlm_mask(const vlm_tokens_t *p, const vlm_match_t *m, vlm_walk_t *w, uint32_t n_after,
              uint32_t *allowed);

int vlm_mask_too_much(vlm_err_t *err); /* -1, and the sentence for a walk that is spent */

/* 1: the text of one token may come so. */
int vlm_mask_one(const vlm_match_t *m, vlm_walk_t *w, uint32_t n_after, const char *bytes,
                 size_t n);

#endif
