/*
 * Errors, in the form that the clients of a path read, and the sentences of statuses.
 *
 * OpenAI's clients choose their exception by the status, and what to do by type and code; so each
 * status has both, and a request may have a more exact code.
 */

#ifndef VLM_ERROR_H
#define VLM_ERROR_H

#include "base/json_out.h"

/*
 *   status   of HTTP, from 400 on
 *   code     the more exact one; or NULL: the status's, if it has one
 *   param    the field in error, or NULL; an error of the server has none
 *   chunk    1: in a stream of chunks, whose choice has the finish_reason "error"
 */
void vlm_error_put(vlm_json_out_t *w, unsigned status, const char *code, const char *param,
                   const char *text, int chunk);

/* OPENAI: vlm_error_put(); the others have the sentence as "error", "detail" or both. */
typedef enum {
    VLM_ERROR_PLAIN = 0,
    VLM_ERROR_DETAIL,
    VLM_ERROR_BOTH,
    VLM_ERROR_OPENAI
} vlm_error_form_t;

/* The form of the errors of a path, [bytes]. */
vlm_error_form_t vlm_error_form(const char *path, size_t bytes);

/* An error in one of the other forms. */
void vlm_error_put_text(vlm_json_out_t *w, vlm_error_form_t form, const char *text);

/* The meaning of a status, as a sentence without a period; NULL: it has none here. */
const char *vlm_error_text(unsigned status);

#endif
