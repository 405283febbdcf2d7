/* The fields of a request that are wrong, as FastAPI lists them: see wrong.h. */

#include "api/wrong.h"

#include <stdio.h>
#include <string.h>

#define ERRORS  65536                  /* bytes of JSON */

const vlm_wrong_t
    vlm_wrong_missing = { "missing", "Field required", NULL, NULL, 0, 0 },
    vlm_wrong_object = { "model_attributes_type",
                         "Input should be a valid dictionary or object to extract fields from",
                         NULL, NULL, 0, 0 },
    vlm_wrong_string = { "string_type", "Input should be a valid string", NULL, NULL, 0, 0 };


static void
put_context(vlm_json_out_t *w, const vlm_wrong_t *e)
{
    vlm_json_add_open(w, "ctx", '{');

    if (e->text != NULL && e->text[0] == '\0') {
        vlm_json_add_open(w, e->key, '{');
        vlm_json_shut(w, '}');

    } else if (e->text != NULL) {
        vlm_json_add_string(w, e->key, e->text);

    } else if (e->whole) {
        vlm_json_add_int(w, e->key, (int64_t) e->number);

    } else {
        vlm_json_add_double(w, e->key, e->number);
    }

    vlm_json_shut(w, '}');
}


void
vlm_wrong_put(vlm_json_out_t *w, const char *name, const vlm_json_t *value, const vlm_wrong_t *e)
{
    if (w->limit == 0) {
        vlm_json_init(w, ERRORS);
        vlm_json_open(w, '{');
        vlm_json_add_open(w, "detail", '[');
    }

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "type", e->type);
    vlm_json_add_open(w, "loc", '[');
    vlm_json_put_text(w, "body", strlen("body"));

    if (name != NULL) {
        vlm_json_put_text(w, name, strlen(name));
    }

    vlm_json_shut(w, ']');
    vlm_json_add_string(w, "msg", e->message);
    vlm_json_put_key(w, "input");

    if (value == NULL && e->text != NULL) {
        vlm_json_open(w, '{');
        vlm_json_shut(w, '}');
    } else {
        vlm_json_put_value(w, value);
    }

    if (e->key != NULL) {
        put_context(w, e);
    }

    vlm_json_shut(w, '}');
}


void
vlm_wrong_end(vlm_json_out_t *w, const char *error)
{
    vlm_json_shut(w, ']');

    if (error != NULL) {
        vlm_json_add_string(w, "error", error);
    }

    vlm_json_shut(w, '}');
}


void
vlm_wrong_json(vlm_json_out_t *w, const char *sentence, const char *error)
{
    const vlm_wrong_t  e = { "json_invalid", "JSON decode error", "error", sentence, 0, 0 };

    vlm_wrong_put(w, NULL, NULL, &e);
    vlm_wrong_end(w, error);
}


/* ---- bodies of strings -------------------------------------------------------------------- */

static const vlm_wrong_t *
what_is_wrong(const vlm_wrong_field_t *field, const vlm_json_t *value)
{
    if (vlm_json_is_string(value) || (field->optional && vlm_json_is_null(value))) {
        return NULL;
    }

    return value == NULL ? &vlm_wrong_missing : &vlm_wrong_string;
}


int
vlm_wrong_strings(const vlm_json_t *json, const vlm_wrong_field_t *fields, vlm_json_out_t *w,
    vlm_err_t *err)
{
    const vlm_json_t   *value;
    const vlm_wrong_t  *e;

    err->code = VLM_OK;

    if (!vlm_json_is_object(json)) {
        e = json != NULL ? &vlm_wrong_object : &vlm_wrong_missing;
        vlm_wrong_put(w, NULL, json, e);
        (void) vlm_fail(err, VLM_EINPUT, "body: %s", e->message);

    } else {
        for ( ; fields->name != NULL; fields++) {
            value = vlm_json_get(json, fields->name);
            e = what_is_wrong(fields, value);

            if (e != NULL) {
                vlm_wrong_put(w, fields->name, value != NULL ? value : json, e);
                (void) vlm_fail(err, VLM_EINPUT, "%s: %s", fields->name, e->message);
            }
        }
    }

    if (err->code == VLM_OK) {
        return 0;
    }

    vlm_wrong_end(w, err->text);

    return -1;
}
