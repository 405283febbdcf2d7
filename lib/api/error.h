/*
 * Errors in OpenAI's form.  Clients choose their exception by the status, and what to do by type
 * and code; so each status has both, and a request may have a more exact code.
 */

#ifndef VLM_ERROR_H
#define VLM_ERROR_H

#include "base/json_out.h"

/*
 *   status   of HTTP, from 400 on
 *   code     the more exact one; or NULL: the status's, if it has one
 *   param    the field in error, or NULL; an error of the server has none
 */
void vlm_error_put(vlm_json_out_t *w, unsigned status, const char *code, const char *param,
                   const char *text);

#endif
