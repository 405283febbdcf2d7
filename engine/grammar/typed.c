/* The nodes of a schema's types: values that it fixes, strings, objects, arrays, and any value. */

#include "grammar/schema.h"

#include <string.h>

#define LENGTH  INT32_MAX              /* characters or items that a bound may name */


/* ---- nodes without a bound ----------------------------------------------- */


static vlm_node_t *
once(schema_t *s, vlm_node_t **n, vlm_node_kind_t kind)
{
    if (*n == NULL) {
        *n = vlm_grammar_node(&s->k, kind);
    }

    return *n;
}


static vlm_node_t *
fixed_once(schema_t *s, vlm_node_t **n, const char *a, const char *b)
{
    if (*n == NULL) {
        *n = vlm_grammar_node(&s->k, VLM_NODE_FIXED);

        if (*n == NULL || vlm_trie_fix(&s->k, *n, a, strlen(a)) != 0
            || (b != NULL && vlm_trie_fix(&s->k, *n, b, strlen(b)) != 0))
        {
            return NULL;
        }
    }

    return *n;
}


vlm_node_t *
vlm_schema_union(schema_t *s, vlm_node_t *const *part, uint32_t n)
{
    vlm_node_t  *any;

    any = vlm_grammar_node(&s->k, VLM_NODE_ANY);

    if (any == NULL) {
        return NULL;
    }

    any->part = vlm_grammar_take(&s->k, n * sizeof(*part));
    any->n = n;

    if (any->part == NULL) {
        return NULL;
    }

    memcpy(any->part, part, n * sizeof(*part));

    return any;
}


/* Any value; the object and the array of any values are made with it. */
vlm_node_t *
vlm_schema_any(schema_t *s)
{
    vlm_node_t  *part[6];

    if (s->any != NULL) {
        return s->any;
    }

    part[0] = once(s, &s->string, VLM_NODE_STRING);
    part[1] = once(s, &s->number, VLM_NODE_NUMBER);
    part[2] = fixed_once(s, &s->boolean, "true", "false");
    part[3] = fixed_once(s, &s->null, "null", NULL);
    part[4] = once(s, &s->array, VLM_NODE_ARRAY);
    part[5] = once(s, &s->object, VLM_NODE_OBJECT);

    if (part[0] == NULL || part[1] == NULL || part[2] == NULL || part[3] == NULL
        || part[4] == NULL || part[5] == NULL)
    {
        return NULL;
    }

    s->object->member = vlm_grammar_take(&s->k, sizeof(vlm_member_t));
    s->array->tail = vlm_grammar_take(&s->k, sizeof(uint32_t));
    s->any = vlm_schema_union(s, part, 6);

    if (s->object->member == NULL || s->array->tail == NULL || s->any == NULL) {
        return NULL;
    }

    s->object->rest = s->array->rest = s->any;

    return s->any;
}


/* ---- fixed values -------------------------------------------------------- */


static unsigned
type_of(const vlm_json_t *j)
{
    int64_t  n;

    return vlm_json_is_null(j) ? T_NULL : vlm_json_is_bool(j) ? T_BOOLEAN
           : vlm_json_is_string(j) ? T_STRING : vlm_json_is_array(j) ? T_ARRAY
           : vlm_json_is_object(j) ? T_OBJECT
           : vlm_json_int(j, INT64_MIN, INT64_MAX, &n) == 0 || vlm_json_digits(j) != NULL
           ? T_INTEGER | T_NUMBER : T_NUMBER;
}


static int
add_fixed(schema_t *s, vlm_node_t *node, const vlm_json_t *value, const at_t *at)
{
    int              rc;
    vlm_json_out_t   w;

    vlm_json_init(&w, 8 * VLM_GRAMMAR_BYTES);

    if (vlm_fixed_value(&w, value, 0) != 0) {
        (void) vlm_schema_refuse(s, at, NULL, "has a number beyond 2^53, or too many brackets");
        rc = -1;

    } else if (vlm_json_done(&w) != 0) {
        rc = vlm_fail(s->k.err, VLM_EMEMORY, "no memory for a value of the schema");

    } else {
        rc = vlm_trie_fix(&s->k, node, w.data, w.len - 1);         /* without the newline */
    }

    vlm_json_release(&w);

    return rc;
}


/* "enum", or "const"; mask has the types that "type" allows. */
vlm_node_t *
vlm_schema_fixed(schema_t *s, const vlm_json_t *j, unsigned mask, const at_t *at)
{
    uint32_t           n;
    vlm_node_t        *node;
    const char        *key;
    const vlm_json_t  *list, *value;

    list = vlm_json_get(j, "enum");
    key = list != NULL ? "enum" : "const";
    value = list != NULL ? vlm_json_first(list) : vlm_json_get(j, "const");
    node = vlm_grammar_node(&s->k, VLM_NODE_FIXED);

    if (list != NULL && (!vlm_json_is_array(list) || vlm_json_get(j, "const") != NULL)) {
        return vlm_schema_refuse(s, at, "enum", "is not an array, or stands beside \"const\"");
    }

    for (n = 0; node != NULL && value != NULL; value = list == NULL ? NULL : vlm_json_next(value)) {
        if ((type_of(value) & mask) == 0) {
            continue;
        }

        n++;

        if (add_fixed(s, node, value, &(at_t) { at, key, 0, 0 }) != 0) {
            return NULL;
        }
    }

    return n > 0 || node == NULL
           ? node : vlm_schema_refuse(s, at, key, "has no value of the schema's type");
}


/* ---- types --------------------------------------------------------------- */


static int
read_bound(schema_t *s, const vlm_json_t *j, const char *key, uint32_t *bound, const at_t *at)
{
    int64_t            n;
    const vlm_json_t  *value;

    value = vlm_json_get(j, key);

    if (value == NULL) {
        return 0;
    }

    if (vlm_json_int(value, 0, LENGTH, &n) != 0) {
        (void) vlm_schema_refuse(s, at, key, "is not a whole number from 0 to 2147483647");
        return -1;
    }

    *bound = (uint32_t) n;

    return 0;
}


static int
read_bounds(schema_t *s, const vlm_json_t *j, const char *min, const char *max, vlm_node_t *node,
            const at_t *at)
{
    if (read_bound(s, j, min, &node->low, at) != 0 || read_bound(s, j, max, &node->high, at) != 0) {
        return -1;
    }

    if (node->low > node->high) {
        (void) vlm_schema_refuse(s, at, min, "is more than the greatest length");
        return -1;
    }

    return 0;
}


static vlm_node_t *
string(schema_t *s, const vlm_json_t *j, const at_t *at)
{
    vlm_node_t  *node;

    node = vlm_grammar_node(&s->k, VLM_NODE_STRING);

    if (node == NULL || read_bounds(s, j, "minLength", "maxLength", node, at) != 0) {
        return NULL;
    }

    return vlm_json_get(j, "pattern") == NULL && vlm_json_get(j, "format") == NULL
           ? node : vlm_schema_pattern(s, j, node, at);
}


/*
 * A member's key is new, or gets another value: of equal keys the last counts.  A value of NULL: it
 * is required, and if it is new, a further one.
 */
static int
add_member(schema_t *s, vlm_node_t *o, const char *key, vlm_node_t *value, vlm_node_t *further)
{
    int              rc;
    char            *copy;
    vlm_branch_t    *b;
    vlm_member_t    *m;
    vlm_json_out_t   w;

    vlm_json_init(&w, 8 * VLM_GRAMMAR_BYTES);
    vlm_fixed_text(&w, key);
    rc = vlm_json_done(&w) == 0 ? 0 : vlm_fail(s->k.err, VLM_EMEMORY, "no memory for a key");
    b = rc == 0 ? vlm_trie_add(&s->k, &o->trie, w.data, w.len - 1) : NULL;
    copy = rc == 0 ? vlm_grammar_take(&s->k, w.len) : NULL;

    if (b == NULL || copy == NULL) {
        rc = -1;

    } else if (b->ends && value == NULL) {
        o->member[b->member].required = 1;

    } else if (b->ends) {
        o->member[b->member].value = value;

    } else {
        memcpy(copy, w.data, w.len - 1);
        b->ends = 1;
        b->member = o->n;
        m = &o->member[o->n++];
        m->key = copy;
        m->bytes = (uint32_t) w.len - 1;
        m->value = value != NULL ? value : further;
        m->required = value == NULL;
        rc = m->value == NULL ? 1 : 0;
    }

    vlm_json_release(&w);

    return rc;
}


/* The names of "required", of which some may not be in "properties". */
static int
read_required(schema_t *s, const vlm_json_t *j, vlm_node_t *o, const at_t *at)
{
    int                rc;
    vlm_node_t        *further = o->rest;
    const vlm_json_t  *name, *list;

    list = vlm_json_get(j, "required");

    if (vlm_json_get(j, "additionalProperties") == NULL
        && (further = vlm_schema_any(s)) == NULL)
    {
        return -1;
    }

    if (list != NULL && !vlm_json_is_array(list)) {
        return vlm_schema_refuse(s, at, "required", "is not an array of strings") == NULL ? -1 : 0;
    }

    for (name = vlm_json_first(list); name != NULL; name = vlm_json_next(name)) {
        rc = vlm_json_is_string(name) ? add_member(s, o, vlm_json_text(name), NULL, further) : 2;

        if (rc > 0) {
            (void) vlm_schema_refuse(s, at, "required", rc == 2 ? "is not an array of strings"
                          : "names a member that the object cannot have");
        }

        if (rc != 0) {
            return -1;
        }
    }

    return 0;
}


/*
 * Where nothing is said of additional members, an object with properties has none: narrower than
 * the schema, and what its author expects in an answer.
 */
static int
read_rest(schema_t *s, const vlm_json_t *j, vlm_node_t *o, const at_t *at)
{
    const vlm_json_t  *rest;

    rest = vlm_json_get(j, "additionalProperties");

    if (rest == NULL ? vlm_json_get(j, "properties") != NULL
                     : vlm_json_is_bool(rest) && !vlm_json_bool(rest, 0))
    {
        return 0;
    }

    o->rest = rest == NULL ? vlm_schema_any(s)
              : vlm_schema_compile(s, rest, &(at_t) { at, "additionalProperties", 0,
                                                      at->depth + 1 });

    return o->rest == NULL ? -1 : 0;
}


static vlm_node_t *
object(schema_t *s, const vlm_json_t *j, const at_t *at)
{
    uint32_t           n;
    vlm_node_t        *o, *value;
    const vlm_json_t  *m, *properties, *required;

    properties = vlm_json_get(j, "properties");
    required = vlm_json_get(j, "required");

    if (properties != NULL && !vlm_json_is_object(properties)) {
        return vlm_schema_refuse(s, at, "properties", "is not an object");
    }

    n = vlm_json_count(properties) + vlm_json_count(required) + 1;
    o = vlm_grammar_node(&s->k, VLM_NODE_OBJECT);

    if (o == NULL || (o->member = vlm_grammar_take(&s->k, n * sizeof(*o->member))) == NULL
        || read_rest(s, j, o, at) != 0)
    {
        return NULL;
    }

    for (m = vlm_json_first(properties); m != NULL; m = vlm_json_next(m)) {
        value = vlm_schema_compile(s, m, &(at_t) { &(at_t) { at, "properties", 0, 0 },
                                                   vlm_json_key(m), 0, at->depth + 1 });

        if (value == NULL || add_member(s, o, vlm_json_key(m), value, NULL) != 0) {
            return NULL;
        }
    }

    return read_required(s, j, o, at) != 0 ? NULL : o;
}


static vlm_node_t *
array(schema_t *s, const vlm_json_t *j, const at_t *at)
{
    vlm_node_t        *a;
    const vlm_json_t  *first, *items;

    first = vlm_json_get(j, "prefixItems");
    items = vlm_json_get(j, "items");
    a = vlm_grammar_node(&s->k, VLM_NODE_ARRAY);

    if (a == NULL || read_bounds(s, j, "minItems", "maxItems", a, at) != 0) {
        return NULL;
    }

    if (first != NULL) {
        a->part = vlm_schema_list(s, first, "prefixItems", &a->n, at);

        if (a->part == NULL) {
            return NULL;
        }
    }

    if (!(vlm_json_is_bool(items) && !vlm_json_bool(items, 0))) {
        a->rest = items == NULL ? vlm_schema_any(s)
                  : vlm_schema_compile(s, items, &(at_t) { at, "items", 0, at->depth + 1 });

        if (a->rest == NULL) {
            return NULL;
        }
    }

    a->tail = vlm_grammar_take(&s->k, (a->n + 1) * sizeof(uint32_t));

    return a->tail == NULL ? NULL : a;
}


/* "format" is of strings where they are among the types. */
static vlm_node_t *
number(schema_t *s, const vlm_json_t *j, unsigned groups, int integer, const at_t *at)
{
    if (groups & NUMBER || vlm_json_get(j, "format") != NULL) {
        return vlm_schema_range(s, j, integer, at);
    }

    return integer ? once(s, &s->integer, VLM_NODE_INTEGER) : once(s, &s->number, VLM_NODE_NUMBER);
}


vlm_node_t *
vlm_schema_typed(schema_t *s, const vlm_json_t *j, unsigned groups, unsigned mask, const at_t *at)
{
    uint32_t     i, n;
    vlm_node_t  *part[8];

    if (mask == T_ALL && (groups & (OBJECT | ARRAY | STRING | NUMBER)) == 0) {
        return vlm_schema_any(s);
    }

    n = 0;

    if (mask & T_OBJECT) {
        part[n++] = object(s, j, at);
    }

    if (mask & T_ARRAY) {
        part[n++] = array(s, j, at);
    }

    if (mask & T_STRING) {
        part[n++] = groups & STRING ? string(s, j, at) : once(s, &s->string, VLM_NODE_STRING);
    }

    if (mask & (T_NUMBER | T_INTEGER)) {
        part[n++] = number(s, j, groups, (mask & T_NUMBER) == 0, at);
    }

    if (mask & T_BOOLEAN) {
        part[n++] = fixed_once(s, &s->boolean, "true", "false");
    }

    if (mask & T_NULL) {
        part[n++] = fixed_once(s, &s->null, "null", NULL);
    }

    for (i = 0; i < n; i++) {
        if (part[i] == NULL) {
            return NULL;
        }
    }

    return n == 1 ? part[0] : vlm_schema_union(s, part, n);
}
