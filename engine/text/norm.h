/* Unicode before the tokenizer: is it UTF-8, and its canonical composition (NFC). */

#ifndef VLM_NORM_H
#define VLM_NORM_H

#include "vlm.h"

/* The byte where text stops being UTF-8 (no surrogates, nothing overlong); bytes if it does not. */
size_t vlm_utf8_check(const char *text, size_t bytes);

/*
 * NFC of a text that vlm_utf8_check() has passed.
 *
 *   *out   malloc()ed, [*out_bytes]; or NULL: the text is in this form already, nothing was copied
 *
 * VLM_EMEMORY.  Linear in the text's length, however many marks a letter carries.
 */
int vlm_norm_nfc(const char *text, size_t bytes, char **out, size_t *out_bytes, vlm_err_t *err);

#endif
