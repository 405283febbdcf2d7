
/*
 * The fields of POST /generate-lite.  All that are wrong are listed in one
 * 422, in the form of FastAPI's clients: for each the type of the error, its
 * place, a sentence and the value.  Texts that are numbers or truth values are
 * taken as such, and unknown fields are ignored, as there.
 */


#include "lite.h"
#include <math.h>


#define NGX_HTTP_VLM_LITE_ERRORS  65536        /* bytes of JSON */


typedef enum {
    NGX_HTTP_VLM_LITE_TEXT = 0,
    NGX_HTTP_VLM_LITE_INT,
    NGX_HTTP_VLM_LITE_FLOAT,
    NGX_HTTP_VLM_LITE_BOOL
} ngx_http_vlm_lite_kind_e;


typedef struct {
    const char                   *name;
    ngx_http_vlm_lite_kind_e      kind;
    ngx_uint_t                    required;    /* there is no default */
    ngx_uint_t                    optional;    /* may be null */
    double                        low, high;   /* of a number */
    const char                   *text;        /* the default, or NULL */
    double                        number;
} ngx_http_vlm_lite_row_t;


/* as ngx_http_vlm_lite_field_e counts them */

static const ngx_http_vlm_lite_row_t
    ngx_http_vlm_lite_rows[NGX_HTTP_VLM_LITE_FIELDS] =
{
    { "prompt", NGX_HTTP_VLM_LITE_TEXT, 1, 0, 0, 0, NULL, 0 },
    { "max_new_tokens", NGX_HTTP_VLM_LITE_INT, 0, 0, 1, 512, NULL, 100 },
    { "temperature", NGX_HTTP_VLM_LITE_FLOAT, 0, 0, 0, 2, NULL, 0.7 },
    { "adapter_path", NGX_HTTP_VLM_LITE_TEXT, 0, 1, 0, 0, NULL, 0 },
    { "base_model", NGX_HTTP_VLM_LITE_TEXT, 0, 0, 0, 0, "gpt2", 0 },
    { "do_sample", NGX_HTTP_VLM_LITE_BOOL, 0, 0, 0, 0, NULL, 1 },
    { "top_p", NGX_HTTP_VLM_LITE_FLOAT, 0, 0, 0, 1, NULL, 0.9 },
    { "top_k", NGX_HTTP_VLM_LITE_INT, 0, 0, 0, INFINITY, NULL, 50 },
    { "repetition_penalty", NGX_HTTP_VLM_LITE_FLOAT, 0, 0, 0, 10, NULL, 1.1 }
};


/* ---- the body of a 422 --------------------------------------------------- */


/* the first one begins the body, which ..._failed() of lite.c ends */

void
ngx_http_vlm_lite_wrong(ngx_http_vlm_ctx_t *ctx, const char *name,
    const vlm_json_t *value, const ngx_http_vlm_lite_error_t *e)
{
    vlm_json_out_t  *w;

    w = &ctx->out.json;

    if (w->limit == 0) {
        vlm_json_init(w, NGX_HTTP_VLM_LITE_ERRORS);
        vlm_json_open(w, '{');
        vlm_json_add_open(w, "detail", '[');

        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_VLM_LITE_WRONG, "%s: %s",
                                 name ? name : "body", e->message);
    }

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "type", e->type);
    vlm_json_add_open(w, "loc", '[');
    vlm_json_put_text(w, "body", sizeof("body") - 1);

    if (name) {
        vlm_json_put_text(w, name, ngx_strlen(name));
    }

    vlm_json_shut(w, ']');
    vlm_json_add_string(w, "msg", e->message);
    vlm_json_put_key(w, "input");


    if (value == NULL && e->text) {
        vlm_json_open(w, '{');
        vlm_json_shut(w, '}');
    } else {
        vlm_json_put_value(w, value);
    }

    if (e->key) {
        vlm_json_add_open(w, "ctx", '{');

        if (e->text && e->text[0] == '\0') {
            vlm_json_add_open(w, e->key, '{');
            vlm_json_shut(w, '}');
        } else if (e->text) {
            vlm_json_add_string(w, e->key, e->text);
        } else if (e->whole) {
            vlm_json_add_int(w, e->key, (int64_t) e->number);
        } else {
            vlm_json_add_double(w, e->key, e->number);
        }

        vlm_json_shut(w, '}');
    }

    vlm_json_shut(w, '}');
}


/* ---- the fields ---------------------------------------------------------- */


static void
ngx_http_vlm_lite_text(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_lite_t *lite,
    const ngx_http_vlm_lite_row_t *row, const vlm_json_t *value)
{
    const char  *text;

    static const ngx_http_vlm_lite_error_t
        no_text = { "string_type", "Input should be a valid string",
                    NULL, NULL, 0, 0 },
        is_short = { "string_too_short",
                     "String should have at least 1 character",
                     "min_length", NULL, 1, 1 },
        is_blank = { "value_error", "Value error, prompt must not be empty or "
                     "whitespace only", "error", "", 0, 0 };

    text = vlm_json_text(value);

    if (text == NULL) {
        ngx_http_vlm_lite_wrong(ctx, row->name, value, &no_text);
        return;
    }

    if (!row->optional && text[0] == '\0') {
        ngx_http_vlm_lite_wrong(ctx, row->name, value, &is_short);
        return;
    }

    if (row->required && text[strspn(text, " \t\n\v\f\r")] == '\0') {
        ngx_http_vlm_lite_wrong(ctx, row->name, value, &is_blank);
        return;
    }

    lite->text[row - ngx_http_vlm_lite_rows] = strdup(text);

    if (lite->text[row - ngx_http_vlm_lite_rows] == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the request");
    }
}


/* NAN: it is none.  A text may be one, and a truth value is 0 or 1 */

static double
ngx_http_vlm_lite_value(const vlm_json_t *value)
{
    char        *end;
    double       x;
    const char  *text;

    text = vlm_json_text(value);

    if (text == NULL) {
        return vlm_json_is_bool(value) ? vlm_json_is_true(value)
                                       : vlm_json_number(value, NAN);
    }

    x = strtod(text, &end);

    return end == text || *end != '\0' || isinf(x) ? NAN : x;
}


static void
ngx_http_vlm_lite_number(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_lite_t *lite,
    const ngx_http_vlm_lite_row_t *row, const vlm_json_t *value)
{
    char                       text[80];
    double                     x;
    ngx_uint_t                 whole;
    ngx_http_vlm_lite_error_t  e;

    x = ngx_http_vlm_lite_value(value);
    whole = row->kind == NGX_HTTP_VLM_LITE_INT;

    ngx_memzero(&e, sizeof(ngx_http_vlm_lite_error_t));

    if (isnan(x)
        || (whole && vlm_json_is_string(value) && x != floor(x)))
    {
        e.type = whole ? "int_type" : "float_type";
        e.message = whole ? "Input should be a valid integer"
                          : "Input should be a valid number";

        if (vlm_json_is_string(value)) {
            e.type = whole ? "int_parsing" : "float_parsing";
            e.message = whole ? "Input should be a valid integer, unable to "
                                "parse string as an integer"
                              : "Input should be a valid number, unable to "
                                "parse string as a number";
        }

    } else if (whole && x != floor(x)) {
        e.type = "int_from_float";
        e.message = "Input should be a valid integer, got a number with a "
                    "fractional part";

    } else if (x < row->low || x > row->high) {
        e.type = x < row->low ? "greater_than_equal" : "less_than_equal";
        e.key = x < row->low ? "ge" : "le";
        e.number = x < row->low ? row->low : row->high;
        e.whole = whole;
        e.message = text;

        (void) snprintf(text, sizeof(text), "Input should be %s than or equal "
                        "to %g", x < row->low ? "greater" : "less", e.number);
    }

    if (e.type) {
        ngx_http_vlm_lite_wrong(ctx, row->name, value, &e);
    }

    lite->number[row - ngx_http_vlm_lite_rows] = x;
}


static void
ngx_http_vlm_lite_bool(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_lite_t *lite,
    const ngx_http_vlm_lite_row_t *row, const vlm_json_t *value)
{
    double       x;
    ngx_uint_t   i;
    const char  *text;

    static const char *const  words[] = {
        "false", "true", "f", "t", "no", "yes", "n", "y", "off", "on"
    };
    static const ngx_http_vlm_lite_error_t
        no_bool = { "bool_type", "Input should be a valid boolean",
                    NULL, NULL, 0, 0 },
        no_word = { "bool_parsing", "Input should be a valid boolean, unable "
                    "to interpret input", NULL, NULL, 0, 0 };

    x = ngx_http_vlm_lite_value(value);
    text = vlm_json_text(value);

    for (i = 0; text && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            x = i % 2;
        }
    }

    if (x != 0 && x != 1) {
        ngx_http_vlm_lite_wrong(ctx, row->name, value,
                                text || vlm_json_is_number(value) ? &no_word
                                                                  : &no_bool);
    }

    lite->number[row - ngx_http_vlm_lite_rows] = x == 1;
}


static void
ngx_http_vlm_lite_field(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_lite_t *lite,
    const ngx_http_vlm_lite_row_t *row, const vlm_json_t *json)
{
    ngx_uint_t         i;
    const vlm_json_t  *value;

    static const ngx_http_vlm_lite_error_t  missing = {
        "missing", "Field required", NULL, NULL, 0, 0
    };

    i = row - ngx_http_vlm_lite_rows;
    value = vlm_json_get(json, row->name);

    if (value == NULL || (row->optional && vlm_json_is_null(value))) {

        if (row->required) {
            ngx_http_vlm_lite_wrong(ctx, row->name, json, &missing);
        }

        lite->number[i] = row->number;
        lite->text[i] = row->text ? strdup(row->text) : NULL;

        if (row->text && lite->text[i] == NULL) {
            (void) ngx_http_vlm_fail_memory(ctx, "the request");
        }

    } else if (row->kind == NGX_HTTP_VLM_LITE_TEXT) {
        ngx_http_vlm_lite_text(ctx, lite, row, value);

    } else if (row->kind == NGX_HTTP_VLM_LITE_BOOL) {
        ngx_http_vlm_lite_bool(ctx, lite, row, value);

    } else {
        ngx_http_vlm_lite_number(ctx, lite, row, value);
    }
}


ngx_int_t
ngx_http_vlm_lite_fields(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_lite_t *lite,
    const vlm_json_t *json)
{
    ngx_uint_t  i;

    static const ngx_http_vlm_lite_error_t
        missing = { "missing", "Field required", NULL, NULL, 0, 0 },
        no_object = { "model_attributes_type", "Input should be a valid "
                      "dictionary or object to extract fields from",
                      NULL, NULL, 0, 0 };

    if (!vlm_json_is_object(json)) {
        ngx_http_vlm_lite_wrong(ctx, NULL, json, json ? &no_object : &missing);
        return NGX_ERROR;
    }

    for (i = 0; i < NGX_HTTP_VLM_LITE_FIELDS; i++) {
        ngx_http_vlm_lite_field(ctx, lite, &ngx_http_vlm_lite_rows[i], json);
    }

    return ctx->error.status ? NGX_ERROR : NGX_OK;
}
