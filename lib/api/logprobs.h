/*
 * Log-probabilities of tokens, in the two forms of OpenAI's interface: an object for each token, as
 * in a chat and in Ollama's answers, or four parallel arrays, as in a completion.
 *
 * A token is bytes, and may be a part of a character.  In an object its bytes stand beside its
 * text; in the arrays the text of such a token is written as "bytes:\xf0\x9f", by which clients
 * recognise it.
 */

#ifndef VLM_API_LOGPROBS_H
#define VLM_API_LOGPROBS_H

#include "base/json_out.h"
#include "base/logits.h"


/* the vocabulary: the bytes of a token, NULL of one that is none */
typedef struct {
    const char  *(*piece)(const void *data, uint32_t id, size_t *bytes);
    const void    *data;
} vlm_pieces_t;

/* Adds an array of n objects; "top_logprobs" stands in each always, or if there are any. */
void vlm_logprobs_objects(vlm_json_out_t *w, const char *key, const vlm_token_t *t, size_t n,
                          int always, const vlm_pieces_t *pieces);

/*
 * Adds the four arrays of n tokens.  Of a token of more than 160 bytes, the end is left out.
 *
 *   tops     1: the likeliest tokens beside each were asked for
 *   offset   characters of the tokens before these; gets those of these, too
 */
void vlm_logprobs_arrays(vlm_json_out_t *w, const vlm_token_t *t, size_t n, int tops,
                         size_t *offset, const vlm_pieces_t *pieces);

#endif
