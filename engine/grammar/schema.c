/*
 * A JSON schema becomes nodes of a grammar.
 *
 * The grammar may be narrower than the schema (keys come in the schema's order, numbers have a
 * bounded length), but has no value that the schema refuses.  So every keyword is either obeyed, or
 * known to say nothing about values, or refused with its place.
 */

#include "grammar/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NESTED  64                     /* schemas within each other */

static const struct {
    const char  *name;
    unsigned     group;
} words[] = {
    { "$schema", NOTE }, { "$comment", NOTE }, { "$defs", NOTE }, { "definitions", NOTE },
    { "title", NOTE }, { "description", NOTE }, { "default", NOTE }, { "examples", NOTE },
    { "example", NOTE }, { "deprecated", NOTE }, { "readOnly", NOTE }, { "writeOnly", NOTE },
    { "discriminator", NOTE }, { "readonly", NOTE }, { "links", NOTE }, { "self", ROOT },
    { "$id", ID }, { "id", ID }, { "additionalItems", MORE },
    { "type", TYPE }, { "nullable", NULLABLE }, { "$ref", REF },
    { "enum", FIXED }, { "const", FIXED },
    { "anyOf", UNION }, { "oneOf", UNION }, { "allOf", UNION },
    { "properties", OBJECT }, { "required", OBJECT }, { "additionalProperties", OBJECT },
    { "items", ARRAY }, { "prefixItems", ARRAY }, { "minItems", ARRAY }, { "maxItems", ARRAY },
    { "minLength", STRING }, { "maxLength", STRING }, { "pattern", STRING }, { "format", STRING },
    { "minimum", NUMBER }, { "maximum", NUMBER }, { "exclusiveMinimum", NUMBER },
    { "exclusiveMaximum", NUMBER }, { "multipleOf", NUMBER }
};

static const struct {
    const char  *name;
    unsigned     bit;
} types[] = {                          /* in the order of the bits */
    { "null", T_NULL }, { "boolean", T_BOOLEAN }, { "integer", T_INTEGER },
    { "number", T_NUMBER }, { "string", T_STRING }, { "array", T_ARRAY }, { "object", T_OBJECT }
};

#define count_of(array)  (sizeof(array) / sizeof((array)[0]))


/* ---- places and failures ------------------------------------------------- */


static size_t
put_place(const at_t *at, char *out, size_t room)
{
    int     n;
    size_t  used;

    used = at->up == NULL ? 0 : put_place(at->up, out, room);

    n = at->up == NULL ? snprintf(out, room, "%s", vlm_printable(at->key))
        : at->key != NULL ? snprintf(out + used, room - used, "/%s", vlm_printable(at->key))
        : snprintf(out + used, room - used, "/%u", at->number);

    return n < 0 || (size_t) n >= room - used ? room - 1 : used + (size_t) n;
}


vlm_node_t *
vlm_schema_refuse(schema_t *s, const at_t *at, const char *key, const char *what)
{
    char  place[256];
    at_t  last = { at, key, 0, 0 };

    (void) put_place(key == NULL ? at : &last, place, sizeof(place));
    (void) vlm_fail(s->k.err, VLM_EINPUT, "the schema's %s %s", place, what);

    return NULL;
}


/* ---- one schema ---------------------------------------------------------- */


/* The group of a keyword; 0: it is not known.  Names with "x-" are extensions, which are notes. */
static unsigned
group_of(const char *keyword)
{
    size_t  i;

    for (i = 0; i < count_of(words) && strcmp(words[i].name, keyword) != 0; i++) { /* void */ }

    return i < count_of(words) ? words[i].group : strncmp(keyword, "x-", 2) == 0 ? NOTE : 0;
}


/* 1: some schema in a value may refer to a place; -1: it took too long to see. */
static int
refers(schema_t *s, const vlm_json_t *j)
{
    int                rc;
    const vlm_json_t  *m;

    if (vlm_grammar_step(&s->k, 1) != 0) {
        return -1;
    }

    rc = vlm_json_get(j, "$ref") != NULL;

    for (m = vlm_json_first(j); rc == 0 && m != NULL; m = vlm_json_next(m)) {
        rc = refers(s, m);
    }

    return rc;
}


int
vlm_schema_has_base(schema_t *s, const vlm_json_t *j)
{
    return j == s->root || (vlm_json_get(j, "$id") == NULL && vlm_json_get(j, "id") == NULL)
           ? 0 : refers(s, j);
}


/* Which groups of keywords there are; 0 with an error: one is not supported. */
static unsigned
groups_of(schema_t *s, const vlm_json_t *j, const at_t *at)
{
    unsigned           groups, one;
    const char        *key;
    const vlm_json_t  *m;

    groups = NOTE;

    for (m = vlm_json_first(j); m != NULL; m = vlm_json_next(m)) {
        key = vlm_json_key(m);
        one = group_of(key);

        if (one == 0 || (one == ROOT && j != s->root)
            || (one == ID && vlm_schema_has_base(s, j) != 0)
            || (one == MORE && vlm_json_is_array(vlm_json_get(j, "items"))))
        {
            (void) vlm_schema_refuse(s, at, key, "is a keyword that is not supported");
            return 0;
        }

        groups |= one;
    }

    return groups;
}


int
vlm_schema_is_note(const char *keyword)
{
    return (group_of(keyword) & (NOTE | ROOT | ID | MORE)) != 0;
}


const char *
vlm_schema_type(uint32_t bit)
{
    return bit < count_of(types) ? types[bit].name : NULL;
}


unsigned
vlm_schema_types(schema_t *s, const vlm_json_t *j, const at_t *at)
{
    size_t             i;
    unsigned           mask;
    const char        *name;
    const vlm_json_t  *type, *one;

    type = vlm_json_get(j, "type");
    one = vlm_json_is_array(type) ? vlm_json_first(type) : type;
    mask = 0;

    for ( /* void */ ; one != NULL; one = one == type ? NULL : vlm_json_next(one)) {
        name = vlm_json_text(one);

        if (vlm_grammar_step(&s->k, 8) != 0) {
            return 0;
        }

        for (i = 0; i < count_of(types); i++) {
            if (name != NULL && strcmp(types[i].name, name) == 0) {
                break;
            }
        }

        if (i == count_of(types)) {
            (void) vlm_schema_refuse(s, at, "type", "is none of null, boolean, integer, number, "
                                     "string, array and object, nor a list of them");
            return 0;
        }

        mask |= types[i].bit;
    }

    if (mask == 0) {
        (void) vlm_schema_refuse(s, at, "type", "is an empty list");
    }

    return mask | (mask != 0 && vlm_json_is_true(vlm_json_get(j, "nullable")) ? T_NULL : 0);
}


/* Bits of "type"; where it is absent those that the other keywords speak of, or all. */
static unsigned
types_of(schema_t *s, const vlm_json_t *j, unsigned groups, const at_t *at)
{
    unsigned  mask;

    if (vlm_json_get(j, "type") != NULL) {
        return vlm_schema_types(s, j, at);
    }

    mask = (groups & OBJECT ? T_OBJECT : 0) | (groups & ARRAY ? T_ARRAY : 0)
           | (groups & STRING ? T_STRING : 0) | (groups & NUMBER ? T_NUMBER : 0);

    return mask != 0 ? mask : T_ALL;
}


const vlm_json_t *
vlm_schema_find(const vlm_json_t *root, const char *pointer)
{
    char               key[256], *end;
    size_t             n;
    unsigned long      i;
    const vlm_json_t  *j;

    if (*pointer++ != '#') {
        return NULL;
    }

    for (j = root; j != NULL && *pointer == '/'; ) {
        for (n = 0, pointer++; *pointer != '\0' && *pointer != '/' && n < sizeof(key) - 1; n++) {
            if (*pointer == '%') {
                return NULL;           /* no key of ours needs an escape of addresses */
            }

            key[n] = *pointer++;

            if (key[n] == '~') {
                if (*pointer != '0' && *pointer != '1') {
                    return NULL;
                }

                key[n] = *pointer++ == '0' ? '~' : '/';
            }
        }

        key[n] = '\0';

        if (!vlm_json_is_array(j)) {
            j = vlm_json_get(j, key);
            continue;
        }

        i = strtoul(key, &end, 10);

        j = key[0] < '0' || key[0] > '9' || *end != '\0' ? NULL : vlm_json_first(j);

        for ( /* void */ ; j != NULL && i > 0; i--) {
            j = vlm_json_next(j);
        }
    }

    return *pointer == '\0' ? j : NULL;
}


/* So a schema may refer to itself. */
vlm_node_t *
vlm_schema_later(schema_t *s, const vlm_json_t *target, const char *pointer)
{
    later_t  *l;

    for (l = s->later; l != NULL && l->schema != target; l = l->next) { /* void */ }

    if (l != NULL) {
        return l->node;
    }

    l = vlm_grammar_take(&s->k, sizeof(*l));

    if (l == NULL) {
        return NULL;
    }

    l->schema = target;
    l->root = s->root;
    l->pointer = pointer;
    l->node = vlm_grammar_node(&s->k, VLM_NODE_ANY);
    *s->last = l;
    s->last = &l->next;

    return l->node;
}


static vlm_node_t *
reference(schema_t *s, const vlm_json_t *j, const at_t *at)
{
    const char        *pointer;
    const vlm_json_t  *target;

    pointer = vlm_json_text(vlm_json_get(j, "$ref"));
    target = pointer == NULL ? NULL : vlm_schema_find(s->root, pointer);

    if (target == NULL) {
        return vlm_schema_refuse(s, at, "$ref", "leads to no place in the schema; it has the form "
                      "\"#/$defs/name\"");
    }

    return vlm_grammar_step(&s->k, 64) != 0 ? NULL : vlm_schema_later(s, target, pointer);
}


/* The schemas of an array, *n of them; NULL: it is none, or one of them is refused. */
vlm_node_t **
vlm_schema_list(schema_t *s, const vlm_json_t *list, const char *key, uint32_t *n, const at_t *at)
{
    vlm_node_t       **part;
    const vlm_json_t  *j;

    if (!vlm_json_is_array(list) || vlm_json_count(list) == 0) {
        (void) vlm_schema_refuse(s, at, key, "is not an array of schemas");
        return NULL;
    }

    part = vlm_grammar_take(&s->k, vlm_json_count(list) * sizeof(*part));
    *n = 0;

    for (j = vlm_json_first(list); part != NULL && j != NULL; j = vlm_json_next(j)) {
        part[*n] = vlm_schema_compile(s, j, &(at_t) { &(at_t) { at, key, 0, 0 }, NULL, *n,
                                                      at->depth + 1 });

        if (part[(*n)++] == NULL) {
            return NULL;
        }
    }

    return part;
}


/* "oneOf": its parts are checked for common values once all of them are known. */
static int
note_one_of(schema_t *s, vlm_node_t **part, uint32_t n, const at_t *at)
{
    char       place[256];
    one_of_t  *one;

    one = vlm_grammar_take(&s->k, sizeof(*one));

    if (one == NULL) {
        return -1;
    }

    (void) put_place(&(at_t) { at, "oneOf", 0, 0 }, place, sizeof(place));
    one->place = vlm_grammar_take(&s->k, strlen(place) + 1);

    if (one->place == NULL) {
        return -1;
    }

    memcpy(one->place, place, strlen(place) + 1);
    one->part = part;
    one->n = n;
    one->next = s->one_of;
    s->one_of = one;

    return 0;
}


/* Each of the alternatives, together with what stands beside them. */
static vlm_node_t **
each_with(schema_t *s, const vlm_json_t *j, const char *key, uint32_t *n, const at_t *at)
{
    at_t               here;
    vlm_node_t       **part;
    const vlm_json_t  *list, *one, *both;

    list = vlm_json_get(j, key);

    if (!vlm_json_is_array(list) || vlm_json_count(list) == 0) {
        (void) vlm_schema_refuse(s, at, key, "is not an array of schemas");
        return NULL;
    }

    part = vlm_grammar_take(&s->k, vlm_json_count(list) * sizeof(*part));
    *n = 0;

    for (one = vlm_json_first(list); part != NULL && one != NULL; one = vlm_json_next(one)) {
        here = (at_t) { &(at_t) { at, key, 0, 0 }, NULL, *n, at->depth + 1 };
        both = vlm_schema_merge(s, j, one, key, &here);
        part[*n] = both == NULL ? NULL : vlm_schema_compile(s, both, &here);

        if (part[(*n)++] == NULL) {
            return NULL;
        }
    }

    return part;
}


/* "anyOf", "oneOf", or "allOf" of one schema. */
static vlm_node_t *
combine(schema_t *s, const vlm_json_t *j, int beside, const at_t *at)
{
    uint32_t      n;
    vlm_node_t  **part;
    const char   *key;

    key = vlm_json_get(j, "anyOf") != NULL ? "anyOf"
          : vlm_json_get(j, "oneOf") != NULL ? "oneOf" : "allOf";
    part = beside ? each_with(s, j, key, &n, at)
           : vlm_schema_list(s, vlm_json_get(j, key), key, &n, at);

    if (part == NULL || (key[0] == 'o' && note_one_of(s, part, n, at) != 0)) {
        return NULL;
    }

    return vlm_schema_union(s, part, n);
}


/* "$ref", "anyOf", "oneOf", "allOf", and what stands beside them. */
static vlm_node_t *
combined(schema_t *s, const vlm_json_t *j, unsigned groups, const at_t *at)
{
    int                beside;
    uint32_t           all;
    at_t               here = *at;
    const vlm_json_t  *one;

    all = vlm_json_count(vlm_json_get(j, "allOf"));
    beside = (groups & (TYPE | NULLABLE | OBJECT | ARRAY | STRING | NUMBER | FIXED)) != 0
             || ((groups & REF) != 0) + (all > 0) + (vlm_json_get(j, "anyOf") != NULL)
                + (vlm_json_get(j, "oneOf") != NULL) > 1;

    if (groups & REF && !beside) {
        return reference(s, j, at);
    }

    if (groups & REF || all > 1 || (all == 1 && beside)) {
        one = vlm_schema_merge(s, j, NULL, NULL, at);
        here.depth++;

        return one == NULL ? NULL : vlm_schema_compile(s, one, &here);
    }

    return combine(s, j, beside, at);
}


/* Keywords that cannot stand beside "enum" or "const"; NULL: there are none. */
static const char *
beside_fixed(const vlm_json_t *j)
{
    size_t  i;

    for (i = 0; i < count_of(words); i++) {
        if ((words[i].group & (NULLABLE | OBJECT | ARRAY | STRING | NUMBER)) != 0
            && vlm_json_get(j, words[i].name) != NULL)
        {
            return words[i].name;
        }
    }

    return NULL;
}


vlm_node_t *
vlm_schema_compile(schema_t *s, const vlm_json_t *j, const at_t *at)
{
    unsigned     groups, mask;
    const char  *other;

    if (vlm_json_is_bool(j) && vlm_json_bool(j, 0)) {
        return vlm_schema_any(s);
    }

    if (!vlm_json_is_object(j)) {
        return vlm_schema_refuse(s, at, NULL, "is neither an object nor true");
    }

    if (at->depth > NESTED) {
        return vlm_schema_refuse(s, at, NULL, "lies too deep: 64 schemas may stand within each "
                                 "other");
    }

    groups = groups_of(s, j, at);

    if (groups == 0) {
        return NULL;
    }

    if (groups & (REF | UNION)) {
        return combined(s, j, groups, at);
    }

    other = groups & FIXED ? beside_fixed(j) : NULL;

    if (other != NULL) {
        return vlm_schema_refuse(s, at, other, "is not supported beside \"enum\" or \"const\"");
    }

    mask = types_of(s, j, groups, at);

    if (mask == 0) {
        return NULL;
    }

    return groups & FIXED ? vlm_schema_fixed(s, j, mask, at)
                          : vlm_schema_typed(s, j, groups, mask, at);
}


/* ---- the whole ----------------------------------------------------------- */


static int
check_one_of(schema_t *s)
{
    uint32_t         i, j;
    const one_of_t  *o;

    for (o = s->one_of; o != NULL; o = o->next) {
        for (i = 0; i < o->n; i++) {
            for (j = 0; j < i; j++) {
                if (!vlm_union_apart(&s->k, o->part[j], o->part[i], 0)) {
                    return vlm_fail(s->k.err, VLM_EINPUT, "the schema's %s has numbers %u and %u, "
                                    "which may have a value in common: use \"anyOf\"", o->place,
                                    j, i);
                }
            }
        }
    }

    return 0;
}


int
vlm_schema_size(const vlm_json_t *schema, vlm_err_t *err)
{
    int              rc;
    vlm_json_out_t   w;

    vlm_json_init(&w, VLM_GRAMMAR_BYTES);
    vlm_json_put_value(&w, schema);
    rc = vlm_json_done(&w);
    vlm_json_release(&w);

    return rc == 0 ? 0 : vlm_fail(err, VLM_ELIMIT, "the schema has more than %u bytes",
                                  VLM_GRAMMAR_BYTES);
}


vlm_grammar_t *
vlm_schema_finish(schema_t *s, vlm_node_t *root)
{
    later_t     *l;
    vlm_node_t  *node;

    for (l = s->later; root != NULL && l != NULL; l = l->next) {
        s->root = l->root;
        node = vlm_schema_compile(s, l->schema, &(at_t) { NULL, l->pointer, 0, 0 });
        l->node->part = node == NULL ? NULL : vlm_grammar_take(&s->k, sizeof(node));

        if (l->node->part == NULL) {
            root = NULL;
            break;
        }

        l->node->part[0] = node;
        l->node->n = 1;
    }

    vlm_schema_forget(s);

    if (root == NULL || vlm_grammar_end(&s->k, root) != 0 || check_one_of(s) != 0) {
        vlm_grammar_free(s->k.g);
        return NULL;
    }

    return s->k.g;
}


vlm_grammar_t *
vlm_schema_within(const vlm_tokens_t *pieces, const vlm_json_t *schema, uint32_t *steps,
                  vlm_err_t *err)
{
    schema_t        s = { .root = schema };
    vlm_grammar_t  *g;

    if (vlm_schema_size(schema, err) != 0 || vlm_grammar_begin(&s.k, pieces, err) == NULL) {
        return NULL;
    }

    s.k.g->blanks = 1;
    s.k.steps = *steps;
    s.last = &s.later;
    g = vlm_schema_finish(&s, vlm_schema_later(&s, schema, "#"));
    *steps = s.k.steps;

    return g;
}


vlm_grammar_t *
vlm_schema_make(const vlm_tokens_t *pieces, const vlm_json_t *schema, vlm_err_t *err)
{
    uint32_t  steps = 0;

    return vlm_schema_within(pieces, schema, &steps, err);
}


vlm_grammar_t *
vlm_object_make(const vlm_tokens_t *pieces, vlm_err_t *err)
{
    schema_t  s = { 0 };

    if (vlm_grammar_begin(&s.k, pieces, err) == NULL) {
        return NULL;
    }

    s.k.g->blanks = 1;

    if (vlm_schema_any(&s) == NULL || vlm_grammar_end(&s.k, s.object) != 0) {
        vlm_grammar_free(s.k.g);
        return NULL;
    }

    return s.k.g;
}
