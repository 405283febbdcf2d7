/* Readers of fields that are more than a number or a boolean: see fields.c. */

#include "api/field_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "robobrain/task.h"


/* An empty string stops nothing. */
static int
read_stop(vlm_field_reader_t *r, const vlm_json_t *item)
{
    size_t        len;
    const char   *text;
    vlm_fields_t *f = r->f;

    text = vlm_json_text(item);

    if (text == NULL) {
        return vlm_fail(r->err, VLM_EINPUT, "stop is neither a string nor an array of strings");
    }

    len = strlen(text);

    if (len == 0) {
        return 0;
    }

    if (len > VLM_FIELDS_STOP) {
        return vlm_fail(r->err, VLM_EINPUT, "stop has a string of %zu bytes, it may have %d", len,
                        VLM_FIELDS_STOP);
    }

    if (f->n_stop == VLM_FIELDS_STOPS) {
        return vlm_fail(r->err, VLM_EINPUT, "stop has more than %d strings", VLM_FIELDS_STOPS);
    }

    f->stop[f->n_stop] = strdup(text);

    if (f->stop[f->n_stop] == NULL) {
        return vlm_fail(r->err, VLM_EMEMORY, "No memory for the stop strings");
    }

    f->n_stop++;

    return 0;
}


int
vlm_field_stops(vlm_field_reader_t *r, const vlm_json_t *value, const char *name)
{
    const vlm_json_t  *item;

    (void) name;

    if (!vlm_json_is_array(value)) {
        return read_stop(r, value);
    }

    for (item = vlm_json_first(value); item != NULL; item = vlm_json_next(item)) {
        if (read_stop(r, item) != 0) {
            return -1;
        }
    }

    return 0;
}


/* -1 asks for a fresh seed, as 0 does in the engine, so these two change places: 0 is a seed like
   any other. */
int
vlm_field_seed(vlm_field_reader_t *r, const vlm_json_t *value, const char *name)
{
    int64_t  n;

    if (vlm_json_int(value, INT64_MIN, INT64_MAX, &n) != 0) {
        return vlm_fail(r->err, VLM_EINPUT, "%s is not a whole number from %" PRId64 " to %" PRId64,
                        name, INT64_MIN, INT64_MAX);
    }

    r->f->seed = n == -1 ? 0 : n == 0 ? UINT64_MAX : (uint64_t) n;

    return 0;
}


int
vlm_field_format(vlm_field_reader_t *r, const vlm_json_t *value, const char *name)
{
    const char        *text;
    vlm_constraint_t  *c = &r->f->constraint;

    text = vlm_json_text(value);

    if (text != NULL && text[0] == '\0') {
        return 0;
    }

    if (!vlm_json_is_object(value) && (text == NULL || strcmp(text, "json") != 0)) {
        return vlm_fail(r->err, VLM_EINPUT,
                        "invalid format, expected \"json\" or a JSON schema");
    }

    return vlm_constraint_set(c, text != NULL ? NULL : value, name, VLM_CONSTRAINT_SCHEMA, r->err);
}


int
vlm_field_task(vlm_field_reader_t *r, const vlm_json_t *value, const char *name)
{
    int          task;
    const char  *text;

    text = vlm_json_text(value);
    task = text != NULL ? vlm_task_find(text, strlen(text)) : -1;

    if (task < 0) {
        return vlm_fail(r->err, VLM_EINPUT, "%s is neither general, grounding, affordance, "
                        "trajectory nor pointing", name);
    }

    r->f->task = task;

    return 0;
}


int
vlm_field_streams(vlm_field_reader_t *r, const vlm_json_t *value, const char *name)
{
    (void) value;

    return r->f->number[VLM_FIELD_STREAM] == 1 ? 0
           : vlm_fail(r->err, VLM_EINPUT, "%s is for requests with \"stream\": true", name);
}


/* The id that a key names; -1: it is no token. */
static int64_t
token_of(const char *key, uint32_t vocab)
{
    int64_t  id;

    if (*key == '\0') {
        return -1;
    }

    for (id = 0; *key >= '0' && *key <= '9' && id < vocab; key++) {
        id = id * 10 + (*key - '0');
    }

    return *key == '\0' && id < vocab ? id : -1;
}


/* Of equal ids the last counts. */
static int
read_bias(vlm_field_reader_t *r, const vlm_json_t *field)
{
    size_t         i;
    double         x;
    int64_t        id;
    const char    *key;
    vlm_fields_t  *f = r->f;

    key = vlm_json_key(field);
    id = token_of(key, r->model->vocab);

    (void) snprintf(f->param, sizeof(f->param), "logit_bias.%s", key);
    f->param[vlm_utf8_whole(f->param, strlen(f->param))] = '\0';

    if (id < 0) {
        return vlm_fail(r->err, VLM_EINPUT, "logit_bias has a key that is no token: they are 0 to "
                        "%u", r->model->vocab - 1);
    }

    x = vlm_json_number(field, NAN);

    if (!(x >= -100 && x <= 100)) {
        return vlm_fail(r->err, VLM_EINPUT, "logit_bias of token %" PRId64 " is not a number from "
                        "-100 to 100", id);
    }

    for (i = 0; i < f->n_bias && f->bias[i].id != (uint32_t) id; i++) { /* void */ }

    f->bias[i].id = (uint32_t) id;
    f->bias[i].bias = (float) x;

    if (i == f->n_bias) {
        f->n_bias++;
    }

    return 0;
}


int
vlm_field_biases(vlm_field_reader_t *r, const vlm_json_t *value, const char *name)
{
    size_t             n;
    const vlm_json_t  *one;

    n = vlm_json_count(value);

    if (n > VLM_MAX_BIAS) {
        return vlm_fail(r->err, VLM_EINPUT, "%s has %zu tokens, it may have %d", name, n,
                        VLM_MAX_BIAS);
    }

    free(r->f->bias);
    r->f->n_bias = 0;
    r->f->bias = calloc(n + 1, sizeof(vlm_bias_t));

    if (r->f->bias == NULL) {
        return vlm_fail(r->err, VLM_EMEMORY, "No memory for %s", name);
    }

    for (one = vlm_json_first(value); one != NULL; one = vlm_json_next(one)) {
        if (read_bias(r, one) != 0) {
            return -1;
        }
    }

    return 0;
}


int
vlm_field_think(vlm_field_reader_t *r, const vlm_json_t *value, const char *name)
{
    if (!vlm_json_is_bool(value) && !vlm_json_is_string(value)) {
        return vlm_fail(r->err, VLM_EINPUT, "%s is neither a boolean nor a string", name);
    }

    if (vlm_json_is_true(value) && !r->model->thinks) {
        return vlm_fail(r->err, VLM_EINPUT, "\"%s\" does not support thinking", r->model->name);
    }

    r->f->number[VLM_FIELD_THINK] = vlm_json_is_true(value);

    return 0;
}


/* 0 or "0s", "0m", ... unloads; not -1, which means for ever. */
int
vlm_field_keep(vlm_field_reader_t *r, const vlm_json_t *value, const char *name)
{
    const char  *text;

    text = vlm_json_text(value);

    if (text == NULL && !vlm_json_is_number(value)) {
        return vlm_fail(r->err, VLM_EINPUT, "%s is neither a number nor a string", name);
    }

    r->f->number[VLM_FIELD_UNLOADS] = text != NULL
                                      ? strchr(text, '0') != NULL
                                        && strpbrk(text, "123456789") == NULL
                                      : vlm_json_number(value, 1) == 0;

    return 0;
}


int
vlm_field_encoding(vlm_field_reader_t *r, const vlm_json_t *value, const char *name)
{
    int          base64;
    const char  *text;

    text = vlm_json_text(value);
    base64 = text != NULL && strcmp(text, "base64") == 0;

    r->f->number[VLM_FIELD_BASE64] = base64;

    return base64 || (text != NULL && strcmp(text, "float") == 0) ? 0
           : vlm_fail(r->err, VLM_EINPUT, "%s is neither \"float\" nor \"base64\"", name);
}


/* Only those that there are. */
int
vlm_field_dimensions(vlm_field_reader_t *r, const vlm_json_t *value, const char *name)
{
    if (vlm_json_number(value, 0) == r->model->hidden) {
        return 0;
    }

    r->f->code = vlm_json_is_number(value) ? "unsupported_value" : NULL;

    return vlm_fail(r->err, VLM_EINPUT, "%s can only be %u: this model's vectors are not shortened",
                    name, r->model->hidden);
}
