/* A mask of the vocabulary's tokens that may come next in a JSON answer. */

#ifndef VLM_JSON_TOKENS_H
#define VLM_JSON_TOKENS_H

#include "chat/json_mode.h"
#include "text/tokenizer.h"

typedef struct vlm_json_tokens_s  vlm_json_tokens_t;

/*
 * Sorts the vocabulary's text tokens, once, in some 10 ms.  The result is read-only.
 *
 *   n_ids      ids from here on are never picked
 *   eos        [n_eos] ids that end an answer: never part of one
 *   returns    a structure, freed with vlm_json_tokens_close(); NULL: VLM_EMEMORY
 */
vlm_json_tokens_t *vlm_json_tokens_open(const vlm_tokenizer_t *t, uint32_t n_ids,
                                        const uint32_t *eos, uint32_t n_eos, vlm_err_t *err);
void vlm_json_tokens_close(vlm_json_tokens_t *t);  /* takes NULL */

/*
 * 0; or -1 and VLM_EINPUT: some byte has no token of its own, so that some objects cannot be ended.
 */
int vlm_json_tokens_check(const vlm_json_tokens_t *t, vlm_err_t *err);

/*
 * Sets a bit for each id, in [(n_ids + 31) / 32] words: the token may come after m, and the object
 * can then be completed with n_after more tokens.  At least one bit is set if m can be completed
 * with n_after + 1.
 */
void vlm_json_tokens_allow(const vlm_json_tokens_t *t, const vlm_json_mode_t *m, uint32_t n_after,
                           uint32_t *allowed);

#endif
