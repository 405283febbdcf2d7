/* Unicode before the tokenizer: canonical composition (NFC). */

#ifndef VLM_NORM_H
#define VLM_NORM_H

#include "vlm.h"

/*
 * NFC of a text that is UTF-8.
 *
 *   *out   malloc()ed, [*out_bytes]; or NULL: the text is in NFC already and was not copied
 *
 * The error is VLM_EMEMORY.  The time is linear in the text's length, however many marks a letter
 * carries.
 */
int vlm_norm_nfc(const char *text, size_t bytes, char **out, size_t *out_bytes, vlm_err_t *err);

/* 1: a text that is UTF-8 is in NFC for certain, which takes no memory to see. */
int vlm_norm_is_nfc(const char *text, size_t bytes);

#endif
