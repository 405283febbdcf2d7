/* The table of fields, and the function that reads an object by it. */

#include "api/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/field_values.h"


typedef enum {
    REAL = 0,                          /* numbers, from low to high */
    WHOLE,
    ENDLESS,                           /* whole, or -1: no limit */
    ONE,                               /* 1: there is one answer */
    ABSENT,                            /* a feature that there is not: a value that disables it */
    VALUE,                             /* of any type, for its reader */
    FLAGGED,                           /* a boolean */
    STRING,
    ARRAY,
    OBJECT
} kind_e;

typedef struct {
    const char        *name;
    unsigned           of;             /* the objects that have it */
    kind_e             kind;
    vlm_field_e        target;
    double             low, high;
    vlm_field_read_t  *read;           /* or NULL; after the type was checked */
    unsigned           inner;          /* what an object has */
} row_t;


#define BRAIN       VLM_OF_BRAIN
#define CHAT        VLM_OF_CHAT
#define TEXT        VLM_OF_TEXT
#define STREAM      VLM_OF_STREAM
#define OLLAMA      VLM_OF_OLLAMA
#define GENERATE    VLM_OF_GENERATE
#define OPTIONS     VLM_OF_OPTIONS
#define EMBEDDINGS  VLM_OF_EMBEDDINGS
#define EMBED       VLM_OF_EMBED

#define NUMBER(name, of, type, target, low, high)                                                 \
    { name, of, type, VLM_FIELD_##target, low, high, NULL, 0 }
#define FLAG(name, of, target)                                                                    \
    { name, of, FLAGGED, VLM_FIELD_##target, 0, 1, NULL, 0 }
#define OTHER(name, of, type)                                                                     \
    { name, of, type, VLM_FIELD_IGNORED, 0, 0, NULL, 0 }
#define READ(name, of, type, read, inner)                                                         \
    { name, of, type, VLM_FIELD_IGNORED, 0, 0, read, inner }


/* Fields of one object are read, and refused, in this order. */
static const row_t  table[] = {

    /* how tokens are picked */

    NUMBER("temperature", BRAIN|CHAT|TEXT, REAL, TEMPERATURE, 0, 2),
    NUMBER("temperature", OPTIONS, REAL, TEMPERATURE, 0, 100),
    NUMBER("top_p", BRAIN|CHAT|TEXT|OPTIONS, REAL, TOP_P, 0, 1),
    NUMBER("top_k", CHAT|TEXT, WHOLE, TOP_K, -1, 1000),
    NUMBER("top_k", OPTIONS, WHOLE, TOP_K, -1, 2147483647),
    NUMBER("frequency_penalty", CHAT|TEXT|OPTIONS, REAL, FREQUENCY, -2, 2),
    NUMBER("presence_penalty", CHAT|TEXT|OPTIONS, REAL, PRESENCE, -2, 2),
    NUMBER("repetition_penalty", CHAT|TEXT, REAL, REPETITION, 0.1, 10),
    NUMBER("repeat_penalty", OPTIONS, REAL, REPETITION, 0.01, 10),
    NUMBER("no_repeat_ngram_size", CHAT|TEXT, WHOLE, NGRAM, 0, 64),
    READ("seed", BRAIN|CHAT|TEXT|OPTIONS, VALUE, vlm_field_seed, 0),
    READ("logit_bias", CHAT|TEXT, OBJECT, vlm_field_biases, 0),

    /* where the answer ends */

    NUMBER("max_tokens", BRAIN|CHAT|TEXT, ENDLESS, MAX_TOKENS, 1, 2147483647),
    NUMBER("max_completion_tokens", CHAT, ENDLESS, MAX_COMPLETION, 1, 2147483647),
    NUMBER("num_predict", OPTIONS, WHOLE, MAX_TOKENS, -2, 2147483647),
    NUMBER("num_ctx", OPTIONS, WHOLE, IGNORED, 0, 2147483647),
    NUMBER("min_tokens", CHAT|TEXT, WHOLE, MIN_TOKENS, 0, 2147483647),
    READ("stop", BRAIN|CHAT|TEXT|OPTIONS, VALUE, vlm_field_stops, 0),

    /* the form of the answer */

    OTHER("n", CHAT|TEXT, ONE),
    OTHER("best_of", TEXT, ONE),
    OTHER("echo", TEXT, ABSENT),
    OTHER("suffix", TEXT, ABSENT),
    FLAG("stream", CHAT|TEXT|OLLAMA|GENERATE, STREAM),
    READ("stream_options", CHAT|TEXT, OBJECT, vlm_field_streams, STREAM),
    FLAG("include_usage", STREAM, INCLUDE),
    FLAG("timings_per_token", CHAT|TEXT, TIMINGS),
    FLAG("timings", BRAIN|CHAT|TEXT|OLLAMA|GENERATE, TIMINGS),
    NUMBER("logprobs", TEXT, WHOLE, TOP_LOGPROBS, 0, VLM_TOP_LOGPROBS),
    FLAG("logprobs", CHAT|OLLAMA|GENERATE, LOGPROBS),
    NUMBER("top_logprobs", CHAT|OLLAMA|GENERATE, WHOLE, TOP_LOGPROBS, 0, VLM_TOP_LOGPROBS),
    FLAG("parallel_tool_calls", CHAT, IGNORED),
    READ("format", BRAIN|OLLAMA|GENERATE, VALUE, vlm_field_format, 0),
    READ("think", OLLAMA|GENERATE, VALUE, vlm_field_think, 0),
    READ("task", CHAT|OLLAMA|GENERATE, VALUE, vlm_field_task, 0),

    /* Ollama's, of a prompt */

    FLAG("truncate", OLLAMA|GENERATE|EMBED, TRUNCATE),
    READ("options", OLLAMA|GENERATE, OBJECT, NULL, OPTIONS),
    OTHER("options", EMBED, OBJECT),
    READ("keep_alive", OLLAMA|GENERATE, VALUE, vlm_field_keep, 0),
    OTHER("messages", OLLAMA, ARRAY),
    OTHER("suffix", GENERATE, STRING),
    OTHER("template", GENERATE, STRING),
    OTHER("system", GENERATE, STRING),
    FLAG("raw", GENERATE, RAW),
    OTHER("context", GENERATE, ARRAY),
    OTHER("prompt", GENERATE, STRING),

    /* of vectors */

    READ("encoding_format", EMBEDDINGS, VALUE, vlm_field_encoding, 0),
    READ("dimensions", EMBEDDINGS|EMBED, VALUE, vlm_field_dimensions, 0)
};


static int
read_number(vlm_field_reader_t *r, const row_t *row, double x)
{
    int   whole, limit;
    char  range[64];

    whole = row->kind != REAL;
    limit = row->kind == ENDLESS;

    if ((x >= row->low && x <= row->high && (!whole || x == floor(x))) || (limit && x == -1)) {
        r->f->number[row->target] = x;
        return 0;
    }

    if (whole) {
        (void) snprintf(range, sizeof(range), "%" PRId64 " to %" PRId64, (int64_t) row->low,
                        (int64_t) row->high);

    } else {
        (void) snprintf(range, sizeof(range), "%g to %g", row->low, row->high);
    }

    return vlm_fail(r->err, VLM_EINPUT, "%s is not a %snumber from %s%s", row->name,
                    whole ? "whole " : "", range, limit ? ", or -1 for no limit" : "");
}


/* A field that clients send, of which only one value is possible here. */
static int
read_fixed(vlm_field_reader_t *r, const row_t *row, const vlm_json_t *value)
{
    if (row->kind == ABSENT) {
        if (!vlm_json_is_true(value)) {
            return 0;
        }

        r->f->code = "unsupported_parameter";

        return vlm_fail(r->err, VLM_EINPUT, "%s is not supported by this server", row->name);
    }

    if (vlm_json_number(value, 0) == 1) {
        return 0;
    }

    r->f->code = vlm_json_is_number(value) ? "unsupported_value" : NULL;

    return vlm_fail(r->err, VLM_EINPUT, "%s can only be 1: a request has one answer", row->name);
}


static int
read_row(vlm_field_reader_t *r, const row_t *row, const vlm_json_t *value)
{
    size_t  i;

    static const struct {
        int        (*is)(const vlm_json_t *json);
        const char  *name;
    } types[] = {
        { vlm_json_is_bool, "a boolean" },
        { vlm_json_is_string, "a string" },
        { vlm_json_is_array, "an array" },
        { vlm_json_is_object, "an object" }
    };

    if (row->kind < ONE) {
        return read_number(r, row, vlm_json_number(value, NAN));
    }

    if (row->kind < VALUE) {
        return read_fixed(r, row, value);
    }

    if (row->kind == VALUE) {
        return 0;
    }

    i = row->kind - FLAGGED;

    if (!types[i].is(value)) {
        return vlm_fail(r->err, VLM_EINPUT, "%s is not %s", row->name, types[i].name);
    }

    r->f->number[row->target] = vlm_json_is_true(value);

    return 0;
}


/* An object within the request, or the request itself, which has no name. */
static int
read_object(vlm_field_reader_t *r, const vlm_json_t *json, unsigned of, const char *outer)
{
    size_t             i;
    const row_t       *row;
    const vlm_json_t  *value;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        row = &table[i];
        value = row->of & of ? vlm_json_get(json, row->name) : NULL;

        if (vlm_json_is_null(value)) {
            continue;
        }

        (void) snprintf(r->f->param, sizeof(r->f->param), "%s%s%s", outer, *outer ? "." : "",
                        row->name);

        if (read_row(r, row, value) != 0
            || (row->read != NULL && row->read(r, value, row->name) != 0)
            || (row->inner != 0 && read_object(r, value, row->inner, row->name) != 0))
        {
            return -1;
        }
    }

    return 0;
}


void
vlm_fields_init(vlm_fields_t *f)
{
    size_t  i;

    for (i = 0; i < VLM_FIELD_NUMBERS; i++) {
        f->number[i] = NAN;
    }
}


int
vlm_fields_read(vlm_fields_t *f, const vlm_json_t *json, unsigned of,
                const vlm_fields_model_t *model, vlm_err_t *err)
{
    vlm_field_reader_t  r = { f, model, err };

    f->code = NULL;

    return read_object(&r, json, of, "");
}


void
vlm_fields_free(vlm_fields_t *f)
{
    while (f->n_stop != 0) {
        free(f->stop[--f->n_stop]);
    }

    vlm_constraint_free(&f->constraint);
    free(f->bias);
    f->bias = NULL;
    f->n_bias = 0;
}
