/* Which tokens may come next in a JSON answer, of all that a vocabulary has. */

#ifndef VLM_JSON_TOKENS_H
#define VLM_JSON_TOKENS_H

#include "chat/json_mode.h"
#include "text/tokenizer.h"

typedef struct vlm_json_tokens_s  vlm_json_tokens_t;

/*
 * Sorts the tokens that texts are made of, once; takes some 10 ms.  Read-only after that.
 *
 *   n_ids      ids from here on are never picked
 *   eos        [n_eos] ids that end an answer: never part of one
 *   returns    freed with vlm_json_tokens_close(); NULL: VLM_EMEMORY
 */
vlm_json_tokens_t *vlm_json_tokens_open(const vlm_tokenizer_t *t, uint32_t n_ids,
                                        const uint32_t *eos, uint32_t n_eos, vlm_err_t *err);
void vlm_json_tokens_close(vlm_json_tokens_t *t);  /* NULL is fine */

/* 0; or -1 and VLM_EINPUT: a byte is no token of its own, so that not every object can be ended. */
int vlm_json_tokens_check(const vlm_json_tokens_t *t, vlm_err_t *err);

/*
 * A bit for each id, [(n_ids + 31) / 32] words: it may come after m, and the object can be
 * completed with n_after more tokens.  There is always one if m can be completed with n_after + 1.
 */
void vlm_json_tokens_allow(const vlm_json_tokens_t *t, const vlm_json_mode_t *m, uint32_t n_after,
                           uint32_t *allowed);

#endif
