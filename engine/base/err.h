/* Errors as values: see vlm_err_t in vlm.h. */

#ifndef VLM_ERR_H
#define VLM_ERR_H

#include "vlm.h"

/*
 * Writes the sentence and returns -1, so that "return vlm_fail(err, ...)" is the whole of it.
 * The first failure is kept: a later call on the same err changes nothing.  err may be NULL.
 */
int vlm_fail(vlm_err_t *err, vlm_code_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define VLM_SHOWN  96                  /* bytes that a file's text has in a sentence, and a zero */

/*
 * A text from a file as a sentence shows it, in out, which is returned: quotes and backslashes
 * behind a backslash, control characters and what is not UTF-8 as \xNN, a long one cut before
 * "...".  NULL is "".
 */
const char *vlm_show(char out[VLM_SHOWN], const char *text, size_t bytes);

/* The same within the block that it is called in. */
#define vlm_shown(text)  vlm_shown_part(text, SIZE_MAX)
#define vlm_shown_part(text, bytes)  vlm_show((char[VLM_SHOWN]) { 0 }, text, bytes)

#endif
