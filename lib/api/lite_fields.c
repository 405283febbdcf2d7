/* The fields of POST /generate-lite, and the errors of a 422: see lite.h. */

#include "api/lite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SPACE   " \t\n\v\f\r"


typedef enum {
    TEXT = 0,
    INT,
    FLOAT,
    BOOL
} kind_e;

typedef struct {
    const char  *name;
    kind_e       kind;
    int          required;             /* there is no default */
    int          optional;             /* may be null */
    double       low, high;            /* of a number */
    const char  *text;                 /* the default, or NULL */
    double       number;
} row_t;

/* as vlm_lite_field_e counts them */
static const row_t  rows[VLM_LITE_FIELDS] = {
    { "prompt", TEXT, 1, 0, 0, 0, NULL, 0 },
    { "max_new_tokens", INT, 0, 0, 1, 512, NULL, 100 },
    { "temperature", FLOAT, 0, 0, 0, 2, NULL, 0.7 },
    { "adapter_path", TEXT, 0, 1, 0, 0, NULL, 0 },
    { "base_model", TEXT, 0, 0, 0, 0, "gpt2", 0 },
    { "do_sample", BOOL, 0, 0, 0, 0, NULL, 1 },
    { "top_p", FLOAT, 0, 0, 0, 1, NULL, 0.9 },
    { "top_k", INT, 0, 0, 0, INFINITY, NULL, 50 },
    { "repetition_penalty", FLOAT, 0, 0, 0, 10, NULL, 1.1 }
};

static const vlm_wrong_t
    no_character = { "string_too_short", "String should have at least 1 character",
                     "min_length", NULL, 1, 1 },
    blank = { "value_error", "Value error, prompt must not be empty or whitespace only",
              "error", "", 0, 0 },
    no_int = { "int_type", "Input should be a valid integer", NULL, NULL, 0, 0 },
    no_float = { "float_type", "Input should be a valid number", NULL, NULL, 0, 0 },
    int_text = { "int_parsing",
                 "Input should be a valid integer, unable to parse string as an integer",
                 NULL, NULL, 0, 0 },
    float_text = { "float_parsing",
                   "Input should be a valid number, unable to parse string as a number",
                   NULL, NULL, 0, 0 },
    fraction = { "int_from_float",
                 "Input should be a valid integer, got a number with a fractional part",
                 NULL, NULL, 0, 0 },
    no_bool = { "bool_type", "Input should be a valid boolean", NULL, NULL, 0, 0 },
    bool_text = { "bool_parsing", "Input should be a valid boolean, unable to interpret input",
                  NULL, NULL, 0, 0 };

typedef struct {
    vlm_lite_t      *lite;
    vlm_json_out_t  *errors;           /* empty while there is none */
    vlm_err_t       *err;
} reader_t;


static void
wrong(reader_t *r, const char *name, const vlm_json_t *value, const vlm_wrong_t *e)
{
    (void) vlm_fail(r->err, VLM_EINPUT, "%s: %s", name != NULL ? name : "body", e->message);

    vlm_wrong_put(r->errors, name, value, e);
}


static void
keep(reader_t *r, size_t i, const char *text)
{
    r->lite->text[i] = text != NULL ? strdup(text) : NULL;

    if (text != NULL && r->lite->text[i] == NULL) {
        (void) vlm_fail(r->err, VLM_EMEMORY, "no memory for the request");
    }
}


static void
read_text(reader_t *r, const row_t *row, const vlm_json_t *value)
{
    const char  *text = vlm_json_text(value);

    if (text == NULL) {
        wrong(r, row->name, value, &vlm_wrong_string);

    } else if (!row->optional && text[0] == '\0') {
        wrong(r, row->name, value, &no_character);

    } else if (row->required && text[strspn(text, SPACE)] == '\0') {
        wrong(r, row->name, value, &blank);

    } else {
        keep(r, (size_t) (row - rows), text);
    }
}


/* NAN: it is no number.  A text may be one, and a truth value is 0 or 1. */
static double
number_of(const vlm_json_t *value, kind_e kind)
{
    char        *end;
    double       x;
    size_t       n;
    const char  *text;

    text = vlm_json_text(value);

    if (text == NULL) {
        return vlm_json_is_bool(value) ? vlm_json_is_true(value) : vlm_json_number(value, NAN);
    }

    text += strspn(text, SPACE);
    n = strspn(text, kind == INT ? "+-.0123456789" : "+-.0123456789eE");
    x = strtod(text, &end);

    return end == text || end != text + n || end[strspn(end, SPACE)] != '\0' || isinf(x) ? NAN : x;
}


static void
read_number(reader_t *r, const row_t *row, const vlm_json_t *value)
{
    char         text[80];
    double       x;
    vlm_wrong_t  e;

    x = number_of(value, row->kind);
    r->lite->number[row - rows] = x;

    if (vlm_json_is_string(value) && (isnan(x) || (row->kind == INT && x != floor(x)))) {
        wrong(r, row->name, value, row->kind == INT ? &int_text : &float_text);

    } else if (isnan(x)) {
        wrong(r, row->name, value, row->kind == INT ? &no_int : &no_float);

    } else if (row->kind == INT && x != floor(x)) {
        wrong(r, row->name, value, &fraction);

    } else if (x < row->low || x > row->high) {
        e = (vlm_wrong_t) { .number = x < row->low ? row->low : row->high };
        e.whole = row->kind == INT;
        e.type = x < row->low ? "greater_than_equal" : "less_than_equal";
        e.key = x < row->low ? "ge" : "le";
        e.message = text;

        (void) snprintf(text, sizeof(text), "Input should be %s than or equal to %g",
                        x < row->low ? "greater" : "less", e.number);

        wrong(r, row->name, value, &e);
    }
}


static void
read_bool(reader_t *r, const row_t *row, const vlm_json_t *value)
{
    double       x;
    size_t       i;
    const char  *text;

    static const char *const  words[] = {
        "0", "1", "false", "true", "f", "t", "no", "yes", "n", "y", "off", "on"
    };

    text = vlm_json_text(value);
    x = text != NULL ? NAN : number_of(value, BOOL);

    for (i = 0; text != NULL && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            x = (double) (i % 2);
        }
    }

    if (x != 0 && x != 1) {
        wrong(r, row->name, value, text != NULL || x == floor(x) ? &bool_text : &no_bool);
    }

    r->lite->number[row - rows] = x == 1;
}


static void
read_field(reader_t *r, const row_t *row, const vlm_json_t *json)
{
    const vlm_json_t  *value = vlm_json_get(json, row->name);

    if (value == NULL && row->required) {
        wrong(r, row->name, json, &vlm_wrong_missing);

    } else if (value == NULL || (row->optional && vlm_json_is_null(value))) {
        r->lite->number[row - rows] = row->number;
        keep(r, (size_t) (row - rows), row->text);

    } else if (row->kind == TEXT) {
        read_text(r, row, value);

    } else if (row->kind == BOOL) {
        read_bool(r, row, value);

    } else {
        read_number(r, row, value);
    }
}


int
vlm_lite_read(const vlm_json_t *json, vlm_lite_t *lite, vlm_json_out_t *errors, vlm_err_t *err)
{
    size_t    i;
    reader_t  r = { lite, errors, err };

    err->code = VLM_OK;

    if (!vlm_json_is_object(json)) {
        wrong(&r, NULL, json, json != NULL ? &vlm_wrong_object : &vlm_wrong_missing);

    } else {
        for (i = 0; i < VLM_LITE_FIELDS; i++) {
            read_field(&r, &rows[i], json);
        }
    }

    if (errors->limit > 0) {
        vlm_wrong_end(errors, NULL);
    }

    return err->code == VLM_OK ? 0 : -1;
}


void
vlm_lite_free(vlm_lite_t *lite)
{
    size_t  i;

    for (i = 0; i < VLM_LITE_FIELDS; i++) {
        free(lite->text[i]);
        lite->text[i] = NULL;
    }
}
