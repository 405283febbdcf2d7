/*
 * Compiled grammars that are kept for the next request with the same form, found by the SHA-256 of
 * it: clients send one schema again and again.  Any thread.
 */

#ifndef VLM_FORMS_H
#define VLM_FORMS_H

#include "grammar/grammar.h"

#define VLM_FORMS  64                   /* grammars */

typedef struct vlm_forms_s  vlm_forms_t;

/* bytes: of all that are kept.  NULL: no memory. */
vlm_forms_t *vlm_forms_open(uint64_t bytes);
void vlm_forms_close(vlm_forms_t *k);    /* takes NULL */

/*
 * A grammar of a form, compiled or found: one more user of it.  NULL with err, as of
 * vlm_grammar_make().  The one that was used longest ago gives way; a grammar larger than all of
 * the memory is not kept.
 */
vlm_grammar_t *vlm_forms_get(vlm_forms_t *k, const vlm_tokens_t *pieces, const vlm_json_t *form,
                            vlm_form_t kind, vlm_err_t *err);

/* Bytes that are kept, and how often a grammar was found. */
uint64_t vlm_forms_bytes(vlm_forms_t *k, uint64_t *found);

#endif
