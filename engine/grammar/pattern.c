/* Nodes of patterns: strings with "pattern" or "format", numbers with bounds, an expression. */

#include "grammar/schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/nfa.h"

#define HUGE_WHOLE  1e18               /* integers have fewer than 19 digits here */
#define WHOLE       999999999999999999 /* the greatest of them */
#define EXACT       9007199254740992   /* 2^53: of numbers with a point, all are doubles to here */

#define DATE   "\\d{3}[1-9]-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])" \
               "|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))"
#define TIME   "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?" \
               "(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
#define LABEL  "[A-Za-z0-9](?:-?[A-Za-z0-9]){0,20}"        /* "--" is of names in other letters */
#define HOST   LABEL "(?:\\." LABEL "){0,4}"
#define BYTE   "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define IPV4   BYTE "(?:\\." BYTE "){3}"
#define URI    "https?://" HOST "(?:/[A-Za-z0-9._~-]{0,64}){0,8}"

/* Each has a part of what the format allows: a client's check of any strictness takes it. */
static const struct {
    const char  *name, *expression;
} formats[] = {
    { "date-time", DATE "T" TIME },
    { "date", DATE },
    { "time", TIME },
    { "duration", "P(?:\\d{1,4}D(?:T\\d{1,4}H)?|T\\d{1,4}H(?:\\d{1,2}M)?|T\\d{1,4}M(?:\\d{1,2}S)?"
                  "|T\\d{1,4}S)" },
    { "uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}" },
    { "email", "[A-Za-z0-9](?:[A-Za-z0-9_+-]|\\.[A-Za-z0-9]){0,30}@" LABEL "(?:\\." LABEL "){0,2}"
               "\\.[A-Za-z]{2,8}" },
    { "hostname", HOST },
    { "ipv4", IPV4 },
    { "ipv6", "(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}" },
    { "uri", URI },
    { "uri-reference", URI }
};

#define N_FORMATS  (sizeof(formats) / sizeof(formats[0]))


/* ---- strings ------------------------------------------------------------- */


/* The automaton of an expression, or NULL: key is refused. */
static vlm_dfa_t *
compile(schema_t *s, const char *expression, int whole, const char *key, const at_t *at)
{
    char        text[160];
    vlm_dfa_t  *d;
    vlm_err_t   err = { VLM_OK, "" }, *own = s->k.err;
    vlm_nfa_t   f;

    s->k.err = &err;
    d = NULL;

    if (vlm_nfa_open(&f, &s->k, 1) == 0) {
        d = vlm_nfa_compile(&f, expression, strlen(expression), whole);
    }

    s->k.err = own;

    if (d == NULL && f.what != NULL) {
        (void) snprintf(text, sizeof(text), "%s, at byte %zu", f.what, f.at);
        (void) vlm_schema_refuse(s, at, key, text);

    } else if (d == NULL && err.code == VLM_EINPUT) {
        (void) vlm_schema_refuse(s, at, key, "fits no text");

    } else if (d == NULL) {
        (void) vlm_fail(own, err.code, "%s", err.text);
    }

    vlm_nfa_close(&f);

    return d;
}


/* Returns the intersection, and frees both, which may be NULL after an error. */
static vlm_dfa_t *
narrow(schema_t *s, vlm_dfa_t *a, vlm_dfa_t *b, const at_t *at)
{
    vlm_dfa_t  *both;
    vlm_err_t   err = { VLM_OK, "" }, *own = s->k.err;

    if (a == NULL || b == NULL) {
        vlm_dfa_free(a);
        vlm_dfa_free(b);
        return NULL;
    }

    s->k.err = &err;
    both = vlm_dfa_both(&s->k, a, b);
    s->k.err = own;

    if (both == NULL && err.code == VLM_EINPUT) {
        (void) vlm_schema_refuse(s, at, NULL, "has a pattern, a format or lengths of which no text "
                                 "has all");
    } else if (both == NULL) {
        (void) vlm_fail(own, err.code, "%s", err.text);
    }

    vlm_dfa_free(a);
    vlm_dfa_free(b);

    return both;
}


static vlm_node_t *
pattern_node(schema_t *s, vlm_dfa_t *d, char first)
{
    vlm_node_t  *n;

    n = d == NULL ? NULL : vlm_grammar_node(&s->k, VLM_NODE_PATTERN);

    if (n != NULL) {
        n->first = first;
        n->dfa = vlm_dfa_keep(&s->k, d, first == '"');
        n = n->dfa == NULL ? NULL : n;
    }

    vlm_dfa_free(d);

    return n;
}


/* lengths: a node that has them. */
vlm_node_t *
vlm_schema_pattern(schema_t *s, const vlm_json_t *j, const vlm_node_t *lengths, const at_t *at)
{
    size_t             i;
    vlm_dfa_t         *d;
    const char        *name, *expression;
    const vlm_json_t  *pattern, *format;

    pattern = vlm_json_get(j, "pattern");
    format = vlm_json_get(j, "format");
    expression = vlm_json_text(pattern);
    name = vlm_json_text(format);

    for (i = 0; name != NULL && i < N_FORMATS && strcmp(formats[i].name, name) != 0; i++) {
        /* void */
    }

    if (format != NULL && (name == NULL || i == N_FORMATS)) {
        return vlm_schema_refuse(s, at, "format", "is a format that is not supported; these are: "
                                 "date-time, date, time, duration, uuid, email, hostname, ipv4, "
                                 "ipv6, uri, uri-reference");
    }

    if (pattern != NULL && expression == NULL) {
        return vlm_schema_refuse(s, at, "pattern", "is not a string");
    }

    d = expression == NULL ? compile(s, formats[i].expression, 1, "format", at)
                           : compile(s, expression, 0, "pattern", at);

    if (d != NULL && expression != NULL && name != NULL) {
        d = narrow(s, d, compile(s, formats[i].expression, 1, "format", at), at);
    }

    if (d != NULL && (lengths->low > 0 || lengths->high < UINT32_MAX)) {
        d = narrow(s, d, vlm_dfa_length(&s->k, lengths->low, lengths->high), at);
    }

    return pattern_node(s, d, '"');
}


/* ---- numbers ------------------------------------------------------------- */


/* The digits of a number: the fewest that a double is read back from. */
static int
write_bound(vlm_bound_t *b, double x)
{
    int          n, i, point;
    char         text[40], digits[24], *e;
    const char  *p;

    for (n = 0; n < 17; n++) {
        (void) snprintf(text, sizeof(text), "%.*e", n, fabs(x));

        if (strtod(text, NULL) == fabs(x)) {
            break;
        }
    }

    e = strchr(text, 'e');
    point = e == NULL ? 0 : (int) strtol(e + 1, NULL, 10) + 1;     /* digits before the point */

    for (n = 0, p = text; e != NULL && p < e && n < 20; p++) {
        if (*p != '.') {
            digits[n++] = *p;
        }
    }

    while (n > 0 && digits[n - 1] == '0') {
        n--;
    }

    if (e == NULL || point > 18 || n - point > (int) sizeof(b->part) - 1 || point < -4) {
        return -1;
    }

    b->negative = x < 0;

    for (i = 0; i < point; i++) {
        b->whole[i] = i < n ? digits[i] : '0';
    }

    if (point <= 0) {
        b->whole[0] = '0';
    }

    for (i = 0; i < n - point; i++) {
        b->part[i] = point + i < 0 ? '0' : digits[point + i];
    }

    return 0;
}


/* The number of a keyword, 1; 0: there is none; -1: it is refused. */
static int
read_number(schema_t *s, const vlm_json_t *j, const char *key, double *x, const at_t *at)
{
    const vlm_json_t  *value;

    value = vlm_json_get(j, key);

    if (value == NULL || vlm_json_is_bool(value)) {
        return 0;
    }

    *x = vlm_json_number(value, NAN);

    if (isnan(*x)) {
        (void) vlm_schema_refuse(s, at, key, "is not a number");
        return -1;
    }

    return 1;
}


/* A whole number with all its digits; -1: the value is none, or has more than answers have. */
static int
whole_bound(const vlm_json_t *value, int sign, int integer, double *x, vlm_bound_t *b)
{
    int64_t  n;

    if (vlm_json_int(value, integer ? -WHOLE : -EXACT, integer ? WHOLE : EXACT, &n) != 0) {
        return -1;
    }

    if (integer && b->exclusive) {
        n += sign;
        b->exclusive = 0;
    }

    *x = (double) n;
    b->negative = n < 0;
    (void) snprintf(b->whole, sizeof(b->whole), "%" PRId64, n < 0 ? -n : n);

    return 0;
}


/* sign: 1 of a least number, -1 of a greatest.  "exclusiveMinimum": true is of older drafts. */
static int
read_bound(schema_t *s, const vlm_json_t *j, int sign, int integer, double *x, vlm_bound_t *b,
           const at_t *at)
{
    int                with, without;
    double             y = 0;
    const char        *key = sign > 0 ? "minimum" : "maximum";
    const char        *other = sign > 0 ? "exclusiveMinimum" : "exclusiveMaximum";
    const vlm_json_t  *value = vlm_json_get(j, key);

    with = read_number(s, j, key, x, at);
    without = read_number(s, j, other, &y, at);

    if (with < 0 || without < 0) {
        return -1;
    }

    b->exclusive = with && vlm_json_bool(vlm_json_get(j, other), 0);

    if (without && (!with || sign * vlm_schema_compare(vlm_json_get(j, other), value) >= 0)) {
        *x = y;
        b->exclusive = 1;
        key = other;
        value = vlm_json_get(j, other);
    }

    b->is = with || without;

    if (!b->is) {
        *x = sign > 0 ? -INFINITY : INFINITY;
        return 0;
    }

    if (sign * *x <= -HUGE_WHOLE) {
        b->is = 0;                     /* beyond all numbers that there are here */
        return 0;
    }

    if (whole_bound(value, sign, integer, x, b) == 0) {
        return 0;
    }

    if (integer) {
        *x = sign > 0 ? ceil(*x) : floor(*x);
        b->exclusive = 0;
    }

    if (fabs(*x) >= (double) EXACT || write_bound(b, *x) != 0) {
        (void) vlm_schema_refuse(s, at, key, "is beyond 2^53, or closer to zero than 0.0001");
        return -1;
    }

    return 0;
}


/* 1: some bound or multiple is given. */
static int
has_bounds(const vlm_json_t *j)
{
    return vlm_json_get(j, "minimum") != NULL || vlm_json_get(j, "maximum") != NULL
           || vlm_json_get(j, "exclusiveMinimum") != NULL
           || vlm_json_get(j, "exclusiveMaximum") != NULL || vlm_json_get(j, "multipleOf") != NULL;
}


/* Formats of OpenAPI; -1: another one. */
static int
read_width(schema_t *s, const vlm_json_t *j, int integer, vlm_bound_t *low, vlm_bound_t *high,
           const at_t *at)
{
    const char  *name;

    if (vlm_json_get(j, "format") == NULL) {
        return 0;
    }

    name = vlm_json_text(vlm_json_get(j, "format"));

    if (name == NULL || (integer ? strcmp(name, "int32") != 0 && strcmp(name, "int64") != 0
                                 : strcmp(name, "float") != 0 && strcmp(name, "double") != 0))
    {
        (void) vlm_schema_refuse(s, at, "format", integer ? "is neither \"int32\" nor \"int64\""
                                 : "is neither \"float\" nor \"double\"");
        return -1;
    }

    if (strcmp(name, "int32") == 0) {
        low->is = low->is || write_bound(low, -2147483648.0) == 0;
        high->is = high->is || write_bound(high, 2147483647.0) == 0;
    }

    return 0;
}


/* NULL without an error: there are no bounds. */
vlm_node_t *
vlm_schema_range(schema_t *s, const vlm_json_t *j, int integer, const at_t *at)
{
    double              x[2];
    int64_t             of;
    vlm_err_t           err = { VLM_OK, "" }, *own = s->k.err;
    vlm_dfa_t          *d;
    vlm_node_t         *n;
    vlm_bound_t         low = { 0 }, high = { 0 };
    const vlm_json_t   *multiple;

    multiple = vlm_json_get(j, "multipleOf");
    of = 1;

    if (read_bound(s, j, 1, integer, &x[0], &low, at) != 0
        || read_bound(s, j, -1, integer, &x[1], &high, at) != 0
        || read_width(s, j, integer, &low, &high, at) != 0)
    {
        return NULL;
    }

    if (multiple != NULL && (!integer || vlm_json_int(multiple, 1, 1000, &of) != 0)) {
        return vlm_schema_refuse(s, at, "multipleOf", "is not a whole number from 1 to 1000 beside "
                                 "the type \"integer\"");
    }

    if (!has_bounds(j) && !low.is) {
        return vlm_grammar_node(&s->k, integer ? VLM_NODE_INTEGER : VLM_NODE_NUMBER);
    }

    s->k.err = &err;
    d = vlm_dfa_range(&s->k, &low, &high, integer, (uint32_t) of);
    s->k.err = own;

    if (d == NULL && err.code == VLM_EINPUT) {
        return vlm_schema_refuse(s, at, NULL, "has bounds between which there is no number");
    }

    if (d == NULL) {
        (void) vlm_fail(own, err.code, "%s", err.text);
        return NULL;
    }

    n = pattern_node(s, d, '0');

    if (n != NULL) {
        n->from = x[0];
        n->to = x[1];
    }

    return n;
}


/* ---- an expression ------------------------------------------------------- */


vlm_grammar_t *
vlm_dfa_text(vlm_maker_t *k, vlm_dfa_t *d, const char *noun)
{
    int          rc;
    vlm_node_t  *root;

    root = d == NULL ? NULL : vlm_grammar_node(k, VLM_NODE_PATTERN);
    rc = -1;

    if (root != NULL) {
        root->dfa = vlm_dfa_keep(k, d, 0);
        rc = root->dfa == NULL ? -1 : vlm_grammar_end(k, root);
    }

    vlm_dfa_free(d);

    if (rc == 0 && root->dfa->left[0] == 0 && !root->dfa->more[0]) {
        rc = vlm_fail(k->err, VLM_EINPUT, "the %s fits no text but the empty one", noun);
    }

    return rc == 0 ? k->g : NULL;
}


vlm_grammar_t *
vlm_regex_make(const vlm_tokens_t *pieces, const char *expression, vlm_err_t *err)
{
    vlm_err_t       own = { VLM_OK, "" };
    vlm_nfa_t       f;
    vlm_dfa_t      *d;
    vlm_maker_t     k;
    vlm_grammar_t  *made;

    if (strlen(expression) > VLM_GRAMMAR_BYTES) {
        (void) vlm_fail(err, VLM_ELIMIT, "the expression has more than %u bytes",
                        VLM_GRAMMAR_BYTES);
        return NULL;
    }

    if (vlm_grammar_begin(&k, pieces, err) == NULL) {
        return NULL;
    }

    k.err = &own;
    d = vlm_nfa_open(&f, &k, 0) == 0 ? vlm_nfa_compile(&f, expression, strlen(expression), 1)
                                     : NULL;
    k.err = err;

    if (d == NULL) {
        (void) (f.what != NULL ? vlm_fail(err, VLM_EINPUT, "the expression %s, at byte %zu", f.what,
                                          f.at)
                : own.code == VLM_EINPUT ? vlm_fail(err, VLM_EINPUT, "the expression fits no text")
                : vlm_fail(err, own.code, "%s", own.text));
    }

    vlm_nfa_close(&f);
    made = vlm_dfa_text(&k, d, "expression");

    if (made == NULL) {
        vlm_grammar_free(k.g);
    }

    return made;
}
