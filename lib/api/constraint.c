/* Reads the form that a request wants its answer to have. */

#include "api/constraint.h"

#include <string.h>

#define SCHEMA  VLM_CONSTRAINT_SCHEMA
#define CHOICE  VLM_CONSTRAINT_CHOICE
#define REGEX   VLM_CONSTRAINT_REGEX
#define GBNF    VLM_CONSTRAINT_GBNF
#define ABSENT  -1

typedef struct {
    const char  *outer, *name;         /* the field, in an object of this name or in the request */
    const char  *shown;
    int          kind;                 /* ABSENT: it is not supported */
} field_t;

static const field_t  fields[] = {
    { NULL, "guided_json", "guided_json", SCHEMA },
    { NULL, "guided_choice", "guided_choice", CHOICE },
    { NULL, "guided_regex", "guided_regex", REGEX },
    { NULL, "guided_grammar", "guided_grammar", GBNF },
    { NULL, "grammar", "grammar", GBNF },
    { NULL, "json_schema", "json_schema", SCHEMA },
    { "structured_outputs", "json", "structured_outputs.json", SCHEMA },
    { "structured_outputs", "choice", "structured_outputs.choice", CHOICE },
    { "structured_outputs", "regex", "structured_outputs.regex", REGEX },
    { "structured_outputs", "grammar", "structured_outputs.grammar", GBNF },
    { "structured_outputs", "structural_tag", "structured_outputs.structural_tag", ABSENT }
};


static int
fail(vlm_constraint_t *c, const char *name, const char *what, vlm_err_t *err)
{
    c->name = name;

    return vlm_fail(err, VLM_EINPUT, "%s %s", name, what);
}


int
vlm_constraint_set(vlm_constraint_t *c, const vlm_json_t *value, const char *name,
                   vlm_constraint_e kind, vlm_err_t *err)
{
    const char  *text;

    if (c->form != NULL) {
        return fail(c, name, "is a second form of the answer", err);
    }

    text = value == NULL ? "{\"type\":\"object\"}" : kind == SCHEMA ? vlm_json_text(value) : NULL;
    c->form = text == NULL ? vlm_json_copy(value) : vlm_json_parse(text, strlen(text), NULL);
    c->name = name;
    c->kind = kind;

    return c->form != NULL ? 0 : fail(c, name, "is not JSON", err);
}


void
vlm_constraint_free(vlm_constraint_t *c)
{
    vlm_json_free(c->form);
    c->form = NULL;
}


/* Empty values switch a field off, but {} is a schema: it demands JSON of any form. */
static int
read_field(vlm_constraint_t *c, const field_t *f, const vlm_json_t *value, vlm_err_t *err)
{
    if (vlm_json_is_null(value) || (f->kind != SCHEMA && !vlm_json_is_true(value))) {
        return 0;
    }

    if (f->kind == ABSENT) {
        c->code = "unsupported_parameter";
        return fail(c, f->shown, "is not supported by this server", err);
    }

    return vlm_constraint_set(c, value, f->shown, (vlm_constraint_e) f->kind, err);
}


/* The schema of llama.cpp's clients stands beside the type. */
static int
read_format(vlm_constraint_t *c, const vlm_json_t *format, vlm_err_t *err)
{
    int                schema;
    const char        *type;
    const vlm_json_t  *nested, *beside;

    if (vlm_json_is_null(format)) {
        return 0;
    }

    if (!vlm_json_is_object(format)) {
        return fail(c, "response_format", "is not an object", err);
    }

    type = vlm_json_text(vlm_json_get(format, "type"));
    schema = type != NULL && strcmp(type, "json_schema") == 0;

    if (type != NULL && strcmp(type, "text") == 0) {
        return 0;
    }

    if (!schema && (type == NULL || strcmp(type, "json_object") != 0)) {
        return fail(c, "response_format.type", "is neither text, json_object nor json_schema", err);
    }

    nested = vlm_json_get(vlm_json_get(format, "json_schema"), "schema");
    beside = vlm_json_get(format, "schema");

    if (schema && !vlm_json_is_null(nested)) {
        return vlm_constraint_set(c, nested, "response_format.json_schema.schema", 0, err);
    }

    if (!vlm_json_is_null(beside)) {
        return vlm_constraint_set(c, beside, "response_format.schema", 0, err);
    }

    return schema ? fail(c, "response_format.json_schema.schema", "is missing", err)
                  : vlm_constraint_set(c, NULL, "response_format.type", 0, err);
}


int
vlm_constraint_read(vlm_constraint_t *c, const vlm_json_t *request, int chat, vlm_err_t *err)
{
    size_t             i;
    const field_t     *f;
    const vlm_json_t  *outputs;

    outputs = vlm_json_get(request, "structured_outputs");

    if (!vlm_json_is_null(outputs) && !vlm_json_is_object(outputs)) {
        return fail(c, "structured_outputs", "is not an object", err);
    }

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        f = &fields[i];

        if (read_field(c, f, vlm_json_get(f->outer == NULL ? request : outputs, f->name), err)
            != 0)
        {
            return -1;
        }
    }

    if (vlm_json_is_true(vlm_json_get(outputs, "json_object"))
        && vlm_constraint_set(c, NULL, "structured_outputs.json_object", 0, err) != 0)
    {
        return -1;
    }

    return chat ? read_format(c, vlm_json_get(request, "response_format"), err) : 0;
}
