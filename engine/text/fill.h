/*
 * The functions with which the readers of both forms fill a tokenizer.  All tokens come first, the
 * check comes last.  Texts are in the byte-level alphabet, as in the files.  Every function returns
 * 0, or -1 and VLM_EMODEL (VLM_EMEMORY) with an error that does not name the file.
 */

#ifndef VLM_FILL_H
#define VLM_FILL_H

#include "text/read.h"

/* Adds one token of the vocabulary; number is its id as read, and may be anything. */
int vlm_fill_token(vlm_tokenizer_t *t, const char *text, double number, vlm_err_t *err);

/*
 * Finds, after all tokens, the token of each byte.  Some vocabularies lack control characters and
 * bytes of rare characters; without one of ASCII's others the file is of another kind.
 */
int vlm_fill_bytes(vlm_tokenizer_t *t, vlm_err_t *err);

/* Adds one merge: the two halves and their join must be tokens. */
int vlm_fill_merge(vlm_tokenizer_t *t, const char *left, size_t n_left, const char *right,
                   size_t n_right, uint32_t rank, vlm_err_t *err);

/*
 * The same from "left right": neither half has a blank in it, as the alphabet spells blanks
 * otherwise.
 */
int vlm_fill_merge_line(vlm_tokenizer_t *t, const char *line, size_t n, uint32_t rank,
                        vlm_err_t *err);

/* Adds one added token; name may be NULL, which is refused. */
int vlm_fill_name(vlm_tokenizer_t *t, double number, const char *name, int special,
                  vlm_err_t *err);

/* Checks, at the end, that no text can become a special token. */
int vlm_fill_check(const vlm_tokenizer_t *t, vlm_err_t *err);

#endif
