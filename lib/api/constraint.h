/*
 * The form that a request wants its answer to have: a JSON schema, one of several texts, a regular
 * expression, or a grammar.
 *
 * Servers of the same interfaces name it in many ways, which all end here: OpenAI's
 * response_format, vLLM's guided_json, guided_choice, guided_regex, guided_grammar and
 * structured_outputs, llama.cpp's json_schema, grammar and response_format.schema.  Forms that this
 * server does not know are refused, since to ignore one would give an answer that its client
 * misreads.
 */

#ifndef VLM_CONSTRAINT_H
#define VLM_CONSTRAINT_H

#include "base/json.h"

typedef enum {
    VLM_CONSTRAINT_SCHEMA = 0,
    VLM_CONSTRAINT_CHOICE,             /* a list of texts */
    VLM_CONSTRAINT_REGEX,              /* a text */
    VLM_CONSTRAINT_GBNF                /* a text */
} vlm_constraint_e;

typedef struct {
    vlm_json_t       *form;            /* NULL: any answer */
    vlm_constraint_e  kind;            /* of it */
    const char       *name;            /* of the field that has it, or that is wrong; constant */
    const char       *code;            /* of an error, in OpenAI's interface; constant, or NULL */
} vlm_constraint_t;

/*
 * Reads a request's fields.  c is zeroed by the caller, and freed with ..._free() in any case.
 *
 *   chat      response_format counts
 *   returns   0; or -1 with VLM_EINPUT, and c->name and c->code
 */
int vlm_constraint_read(vlm_constraint_t *c, const vlm_json_t *request, int chat, vlm_err_t *err);

/* Takes a field's value: a schema, or its text (NULL: that of any object), or another kind. */
int vlm_constraint_set(vlm_constraint_t *c, const vlm_json_t *value, const char *name,
                       vlm_constraint_e kind, vlm_err_t *err);

void vlm_constraint_free(vlm_constraint_t *c);     /* safe twice */

#endif
