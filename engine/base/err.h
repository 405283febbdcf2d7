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

#endif
