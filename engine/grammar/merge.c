/*
 * Merges schemas that hold together into one: the parts of "allOf", and keywords beside "$ref",
 * "anyOf" and "oneOf".
 *
 * The one schema is a document of its own that refers to values of the parts.  The schemas that
 * several parts have for a member or an item become an "allOf" there, which is merged in its turn.
 */

#include "grammar/schema.h"

#include <string.h>

#define PARTS   64
#define DEPTH   128                    /* of two values that are compared */
#define VALUE   80                     /* bytes of one in a document, but for its key */

typedef struct {
    schema_t          *s;
    const at_t        *at;
    const vlm_json_t  *of;             /* the part of which a keyword, "but", is left out */
    const char        *but;            /* or NULL */
    const vlm_json_t  *part[PARTS];
    uint32_t           n, keys;        /* keys: of all parts */
    vlm_json_t        *out;
} merge_t;

struct document_s {
    document_t  *next;
    vlm_json_t  *j;
};


static int
no_memory(const merge_t *m)
{
    return vlm_fail(m->s->k.err, VLM_EMEMORY, "no memory for a schema");
}


static int
refuse(const merge_t *m, const char *key, const char *what)
{
    (void) vlm_schema_refuse(m->s, m->at, key, what);

    return -1;
}


/* 1: parts were found by it, or its effect is in "type". */
static int
is_done(const char *key)
{
    return strcmp(key, "$ref") == 0 || strcmp(key, "allOf") == 0 || strcmp(key, "nullable") == 0;
}


static uint32_t
length(const char *text)
{
    return text == NULL ? 0 : (uint32_t) strlen(text);
}


/* Counts the memory of a value that a document gets; key NULL: an array's. */
static int
count(merge_t *m, const char *key)
{
    m->s->bytes += VALUE + length(key);

    return m->s->bytes <= VLM_GRAMMAR_MEMORY
           ? 0 : vlm_fail(m->s->k.err, VLM_ELIMIT, "schemas that hold together take more than %u "
                          "bytes of memory", VLM_GRAMMAR_MEMORY);
}


static int
refer(merge_t *m, vlm_json_t *to, const char *key, const vlm_json_t *value)
{
    return count(m, key) != 0 ? -1 : vlm_json_refer(to, key, value) == 0 ? 0 : no_memory(m);
}


/* Takes a value over, NULL: there was no memory for it. */
static int
give(merge_t *m, vlm_json_t *to, const char *key, vlm_json_t *value)
{
    if (value != NULL && count(m, key) != 0) {
        vlm_json_free(value);
        return -1;
    }

    return vlm_json_take(to, key, value) == 0 ? 0 : no_memory(m);
}


/* Returns the value of a part's keyword, or NULL. */
static const vlm_json_t *
get(const merge_t *m, uint32_t i, const char *key)
{
    return m->part[i] == m->of && m->but != NULL && strcmp(key, m->but) == 0
           ? NULL : vlm_json_get(m->part[i], key);
}


/* ---- the parts ----------------------------------------------------------- */


/* The base of a part is added before it, so that an object begins with its base's members. */
static int
add_part(merge_t *m, const vlm_json_t *j, uint32_t depth)
{
    const char        *pointer;
    const vlm_json_t  *list, *one, *target;

    if (vlm_json_is_bool(j) && vlm_json_bool(j, 0)) {
        return 0;
    }

    if (!vlm_json_is_object(j)) {
        return refuse(m, NULL, "has a part that is neither an object nor true");
    }

    if (vlm_grammar_step(&m->s->k, 1024 + 8 * vlm_json_count(j)) != 0) {
        return -1;
    }

    if (depth == PARTS) {
        return refuse(m, NULL, "has more than 64 schemas that hold together");
    }

    if (vlm_json_get(j, "$ref") != NULL) {
        pointer = vlm_json_text(vlm_json_get(j, "$ref"));
        target = pointer == NULL ? NULL : vlm_schema_find(m->s->root, pointer);

        if (target == NULL) {
            return refuse(m, "$ref", "leads to no place in the schema; it has the form "
                          "\"#/$defs/name\"");
        }

        if (add_part(m, target, depth + 1) != 0) {
            return -1;
        }
    }

    list = vlm_json_get(j, "allOf");

    if (list != NULL && (!vlm_json_is_array(list) || vlm_json_count(list) == 0)) {
        return refuse(m, "allOf", "is not an array of schemas");
    }

    for (one = vlm_json_first(list); one != NULL; one = vlm_json_next(one)) {
        if (add_part(m, one, depth + 1) != 0) {
            return -1;
        }
    }

    if (m->n == PARTS) {
        return refuse(m, NULL, "has more than 64 schemas that hold together");
    }

    if (vlm_schema_has_base(m->s, j) != 0) {
        return refuse(m, vlm_json_get(j, "$id") != NULL ? "$id" : "id",
                      "is a keyword that is not supported");
    }

    m->part[m->n++] = j;

    return 0;
}


/* ---- keywords ------------------------------------------------------------ */


static int
same_number(const vlm_json_t *a, const vlm_json_t *b)
{
    const char  *x = vlm_json_written(a), *y = vlm_json_written(b);

    return x == NULL && y == NULL ? vlm_schema_compare(a, b) == 0
           : x != NULL && y != NULL && strcmp(x, y) == 0;
}


/* 1: two values are the same, members in the same order.  0: or there were too many steps. */
static int
same(merge_t *m, const vlm_json_t *a, const vlm_json_t *b, uint32_t depth)
{
    const char  *x = vlm_json_text(a), *y = vlm_json_text(b);

    if (a == b) {
        return 1;
    }

    if (depth == DEPTH || vlm_grammar_step(&m->s->k, 8 + length(x) / 8) != 0) {
        return 0;
    }

    if (x != NULL || y != NULL) {
        return x != NULL && y != NULL && strcmp(x, y) == 0;
    }

    if (vlm_json_is_number(a) && vlm_json_is_number(b)) {
        return same_number(a, b);
    }

    if (vlm_json_is_bool(a) && vlm_json_is_bool(b)) {
        return vlm_json_bool(a, 0) == vlm_json_bool(b, 0);
    }

    if (!(vlm_json_is_object(a) && vlm_json_is_object(b))
        && !(vlm_json_is_array(a) && vlm_json_is_array(b)))
    {
        return vlm_json_is_null(a) && vlm_json_is_null(b);
    }

    for (a = vlm_json_first(a), b = vlm_json_first(b); a != NULL && b != NULL;
         a = vlm_json_next(a), b = vlm_json_next(b))
    {
        x = vlm_json_key(a);           /* NULL: an array's */

        if (vlm_grammar_step(&m->s->k, length(x) / 8) != 0
            || (x != NULL && strcmp(x, vlm_json_key(b)) != 0) || !same(m, a, b, depth + 1))
        {
            return 0;
        }
    }

    return a == b;                     /* both have come to their end */
}


int
vlm_schema_compare(const vlm_json_t *one, const vlm_json_t *other)
{
    double   x, y;
    int64_t  n, m;

    if (vlm_json_int(one, INT64_MIN, INT64_MAX, &n) == 0
        && vlm_json_int(other, INT64_MIN, INT64_MAX, &m) == 0)
    {
        return (n > m) - (n < m);
    }

    x = vlm_json_number(one, 0);
    y = vlm_json_number(other, 0);

    return (x > y) - (x < y);
}


/* Two schemas of one place: { "allOf": [a, b] }, or one of them. */
static int
put_both(merge_t *m, vlm_json_t *to, const char *key, const vlm_json_t *const *of, uint32_t n)
{
    uint32_t     i;
    vlm_json_t  *both, *list;

    for (i = 1; i < n && same(m, of[0], of[i], 0); i++) { /* void */ }

    if (i == n) {
        return refer(m, to, key, of[0]);
    }

    both = vlm_json_make('{');

    if (give(m, to, key, both) != 0) {
        return -1;
    }

    list = vlm_json_make('[');

    if (give(m, both, "allOf", list) != 0) {
        return -1;
    }

    for (i = 0; i < n; i++) {
        if (refer(m, list, NULL, of[i]) != 0) {
            return -1;
        }
    }

    return 0;
}


/* Finds a part's schema for a member: *value, NULL if any fits.  0: it has no such member. */
static int
member_of(const vlm_json_t *part, const char *key, const vlm_json_t **value)
{
    const vlm_json_t  *rest;

    *value = vlm_json_get(vlm_json_get(part, "properties"), key);

    if (*value != NULL) {
        return 1;
    }

    rest = vlm_json_get(part, "additionalProperties");
    *value = vlm_json_is_object(rest) ? rest : NULL;

    return !(vlm_json_is_bool(rest) && !vlm_json_bool(rest, 0));
}


static int
merge_properties(merge_t *m)
{
    int                has;
    uint32_t           i, k, n, keys;  /* keys: that are passed over to find one of a name */
    vlm_json_t        *out;
    const vlm_json_t  *p, *value, *all[PARTS];

    out = vlm_json_make('{');

    for (keys = 0, i = 0; i < m->n; i++) {
        keys += 64 + vlm_json_count(vlm_json_get(m->part[i], "properties"));
    }

    for (i = 0; out != NULL && i < m->n; i++) {
        p = vlm_json_first(vlm_json_get(m->part[i], "properties"));

        for ( /* void */ ; p != NULL; p = vlm_json_next(p)) {
            has = vlm_json_get(out, vlm_json_key(p)) == NULL;

            for (n = 0, k = 0; has && k < m->n; k++) {
                has = member_of(m->part[k], vlm_json_key(p), &value);

                if (value != NULL) {
                    all[n++] = value;
                }
            }

            if (vlm_grammar_step(&m->s->k, 2 * (keys + m->keys)) != 0
                || (has && put_both(m, out, vlm_json_key(p), all, n) != 0))
            {
                vlm_json_free(out);
                return -1;
            }
        }
    }

    return give(m, m->out, "properties", out);
}


static int
merge_required(merge_t *m)
{
    uint32_t           i;
    vlm_json_t        *out;
    const vlm_json_t  *p, *list;

    out = vlm_json_make('[');

    for (i = 0; out != NULL && i < m->n; i++) {
        list = vlm_json_get(m->part[i], "required");

        for (p = vlm_json_first(list); p != NULL; p = vlm_json_next(p)) {
            if (vlm_grammar_step(&m->s->k, 8) != 0 || refer(m, out, NULL, p) != 0) {
                vlm_json_free(out);
                return -1;
            }
        }
    }

    return give(m, m->out, "required", out);
}


/* False in any part is false for all; schemas hold together; true is less than both. */
static int
merge_rest(merge_t *m, const char *key)
{
    uint32_t           i, n;
    const vlm_json_t  *rest, *yes, *all[PARTS];

    for (yes = NULL, n = 0, i = 0; i < m->n; i++) {
        rest = vlm_json_get(m->part[i], key);

        if (vlm_json_is_bool(rest) && !vlm_json_bool(rest, 0)) {
            return refer(m, m->out, key, rest);
        }

        if (vlm_json_is_object(rest)) {
            all[n++] = rest;
        } else if (rest != NULL) {
            yes = rest;
        }
    }

    return n > 0 ? put_both(m, m->out, key, all, n) : refer(m, m->out, key, yes);
}


/* The types that all parts have: an integer is a number. */
static int
merge_type(merge_t *m)
{
    uint32_t     i;
    unsigned     mask, one;
    vlm_json_t  *out;
    const char  *name;

    for (mask = T_ALL, i = 0; i < m->n; i++) {
        if (vlm_json_get(m->part[i], "type") != NULL) {
            one = vlm_schema_types(m->s, m->part[i], m->at);

            if (one == 0) {
                return -1;
            }

            mask &= one & T_NUMBER ? one | T_INTEGER : one;
        }
    }

    mask = mask & T_NUMBER ? mask & ~(unsigned) T_INTEGER : mask;

    if (mask == 0) {
        return refuse(m, "type", "has none that all schemas which hold together allow");
    }

    out = vlm_json_make('[');

    for (i = 0; out != NULL && (name = vlm_schema_type(i)) != NULL; i++) {
        if ((mask >> i & 1) != 0 && give(m, out, NULL, vlm_json_make_text(name)) != 0) {
            vlm_json_free(out);
            return -1;
        }
    }

    return give(m, m->out, "type", out);
}


/* 1: of two bounds the greater counts; -1: the smaller; 0: it is no bound. */
static int
bound_of(const char *key)
{
    static const char  *const low[] = { "minimum", "exclusiveMinimum", "minLength", "minItems" };
    static const char  *const high[] = { "maximum", "exclusiveMaximum", "maxLength", "maxItems" };
    size_t  i;

    for (i = 0; i < 4; i++) {
        if (strcmp(key, low[i]) == 0 || strcmp(key, high[i]) == 0) {
            return strcmp(key, low[i]) == 0 ? 1 : -1;
        }
    }

    return 0;
}


static int
merge_other(merge_t *m, const char *key)
{
    int                sign;
    uint32_t           i;
    const vlm_json_t  *one, *value;

    sign = bound_of(key);

    for (value = NULL, i = 0; i < m->n; i++) {
        one = get(m, i, key);

        if (strcmp(key, "prefixItems") == 0 && one == NULL && get(m, i, "items") != NULL) {
            return refuse(m, key, "stands beside \"items\" of another schema that holds with it, "
                          "which is not supported");
        }

        if (one == NULL || value == NULL) {
            value = one == NULL ? value : one;

        } else if (sign != 0 && vlm_json_is_number(one) && vlm_json_is_number(value)) {
            value = sign * vlm_schema_compare(one, value) > 0 ? one : value;

        } else if (!same(m, one, value, 0)) {
            return vlm_grammar_step(&m->s->k, 0) != 0 ? -1
                   : refuse(m, key, "stands in several schemas that hold together, with different "
                          "values, which is not supported");
        }
    }

    return refer(m, m->out, key, value);
}


static int
merge_key(merge_t *m, const char *key)
{
    return strcmp(key, "properties") == 0 ? merge_properties(m)
           : strcmp(key, "required") == 0 ? merge_required(m)
           : strcmp(key, "type") == 0 ? merge_type(m)
           : strcmp(key, "additionalProperties") == 0 || strcmp(key, "items") == 0
           ? merge_rest(m, key) : merge_other(m, key);
}


const vlm_json_t *
vlm_schema_merge(schema_t *s, const vlm_json_t *a, const vlm_json_t *b, const char *but,
                 const at_t *at)
{
    merge_t            m = { .s = s, .at = at, .of = a, .but = but };
    uint32_t           i;
    document_t        *d;
    const char        *key;
    const vlm_json_t  *one;

    d = vlm_grammar_take(&s->k, sizeof(*d));

    if (d == NULL) {
        return NULL;
    }

    m.out = d->j = vlm_json_make('{');
    d->next = s->documents;
    s->documents = d;

    if (m.out == NULL) {
        (void) no_memory(&m);
        return NULL;
    }

    if (count(&m, NULL) != 0 || add_part(&m, a, 0) != 0
        || (b != NULL && add_part(&m, b, 0) != 0))
    {
        return NULL;
    }

    for (i = 0; i < m.n; i++) {
        m.keys += 64 + vlm_json_count(m.part[i]);
    }

    for (i = 0; i < m.n; i++) {
        for (one = vlm_json_first(m.part[i]); one != NULL; one = vlm_json_next(one)) {
            key = vlm_json_key(one);

            if (vlm_grammar_step(&s->k, 8) != 0) {
                return NULL;
            }

            if (is_done(key) || vlm_schema_is_note(key)) {
                continue;
            }

            if (vlm_grammar_step(&s->k, m.keys) != 0) {
                return NULL;
            }

            if (vlm_json_get(m.out, key) != NULL || get(&m, i, key) == NULL) {
                continue;
            }

            if (merge_key(&m, key) != 0) {
                return NULL;
            }
        }
    }

    return m.out;
}


void
vlm_schema_forget(schema_t *s)
{
    for ( /* void */ ; s->documents != NULL; s->documents = s->documents->next) {
        vlm_json_free(s->documents->j);
    }
}
