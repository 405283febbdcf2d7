/* Unicode before the tokenizer: a check for UTF-8, and canonical composition (NFC). */

#ifndef VLM_NORM_H
#define VLM_NORM_H

#include "vlm.h"

/*
 * The offset of the first byte that is not UTF-8 (surrogates and overlong forms are not); bytes if
 * all is.
 */
size_t vlm_utf8_check(const char *text, size_t bytes);

/*
 * NFC of a text that vlm_utf8_check() has passed.
 *
 *   *out   malloc()ed, [*out_bytes]; or NULL: the text is in NFC already and was not copied
 *
 * The error is VLM_EMEMORY.  The time is linear in the text's length, however many marks a letter
 * carries.
 */
int vlm_norm_nfc(const char *text, size_t bytes, char **out, size_t *out_bytes, vlm_err_t *err);

#endif
