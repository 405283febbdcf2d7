/* Unions: what a value may begin with, and whether two kinds of value have one in common. */

#include "grammar/dfa.h"

#include <string.h>

#define DEEP  8                        /* levels at which two values are compared */

typedef struct {
    vlm_node_t  *first, **last;        /* linked by queued */
    uint32_t     n, n_fixed, mark;
} found_t;


static void
find(found_t *f, vlm_node_t *n)
{
    if (n->mark == f->mark) {
        return;
    }

    n->mark = f->mark;
    n->queued = NULL;
    *f->last = n;
    f->last = &n->queued;
}


/* All texts of the nodes found become one node. */
static vlm_node_t *
merge(vlm_maker_t *k, const found_t *f)
{
    vlm_node_t        *n, *one;
    const vlm_text_t  *t;

    one = vlm_grammar_node(k, VLM_NODE_FIXED);

    for (n = f->first; one != NULL && n != NULL; n = n->queued) {
        for (t = n->kind == VLM_NODE_FIXED ? n->texts : NULL; t != NULL; t = t->next) {
            if (vlm_trie_fix(k, one, t->text, t->bytes) != 0
                || vlm_grammar_step(k, t->bytes) != 0)
            {
                return NULL;
            }
        }
    }

    return one;
}


/* A union that stands in itself adds nothing to itself. */
static int
flatten(vlm_maker_t *k, vlm_node_t *any, uint32_t mark)
{
    found_t      f = { NULL, &f.first, 0, 0, mark };
    uint32_t     i;
    vlm_node_t  *n, *one;

    find(&f, any);

    for (n = f.first; n != NULL; n = n->queued) {
        if (vlm_grammar_step(k, n->n + 1) != 0) {
            return -1;
        }

        for (i = 0; n->kind == VLM_NODE_ANY && i < n->n; i++) {
            find(&f, n->part[i]);
        }

        f.n += n->kind != VLM_NODE_ANY;
        f.n_fixed += n->kind == VLM_NODE_FIXED;
    }

    f.n = f.n_fixed > 1 ? f.n - f.n_fixed + 1 : f.n;

    if (f.n > VLM_GRAMMAR_CHOICES) {
        return vlm_fail(k->err, VLM_ELIMIT, "the schema has a place where one of %u kinds of "
                        "value may stand, the limit is %d", f.n, VLM_GRAMMAR_CHOICES);
    }

    any->part = vlm_grammar_take(k, f.n * sizeof(*any->part));
    any->n = 0;

    if (any->part == NULL) {
        return -1;
    }

    for (n = f.first; n != NULL; n = n->queued) {
        if (n->kind != VLM_NODE_ANY && (n->kind != VLM_NODE_FIXED || f.n_fixed == 1)) {
            any->part[any->n++] = n;
        }
    }

    if (f.n_fixed > 1) {
        one = merge(k, &f);

        if (one == NULL) {
            return -1;
        }

        any->part[any->n++] = one;
    }

    return 0;
}


/* A union of one is that one. */
static void
pass(vlm_node_t **n)
{
    if (*n != NULL && (*n)->kind == VLM_NODE_ANY && (*n)->n == 1) {
        *n = (*n)->part[0];
    }
}


int
vlm_union_flatten(vlm_maker_t *k)
{
    uint32_t     i, mark;
    vlm_node_t  *n;

    for (n = k->nodes, mark = 1; n != NULL; n = n->made) {
        if (n->kind == VLM_NODE_ANY && flatten(k, n, mark++) != 0) {
            return -1;
        }
    }

    for (n = k->nodes; n != NULL; n = n->made) {
        pass(&n->rest);

        for (i = 0; n->kind == VLM_NODE_OBJECT && i < n->n; i++) {
            pass(&n->member[i].value);
        }

        for (i = 0; n->kind == VLM_NODE_ARRAY && i < n->n; i++) {
            pass(&n->part[i]);
        }
    }

    pass(&k->g->root);

    return 0;
}


/* The kind of JSON value that begins with a byte, or that a node is. */
static uint32_t
begins(const vlm_node_t *n, char c)
{
    switch (n == NULL ? VLM_NODE_ANY : n->kind) {
    case VLM_NODE_STRING:
        return '"';
    case VLM_NODE_NUMBER:
    case VLM_NODE_INTEGER:
        return '0';
    case VLM_NODE_OBJECT:
        return '{';
    case VLM_NODE_ARRAY:
        return '[';
    case VLM_NODE_PATTERN:
        return (uint8_t) n->first;
    default:
        return c == '-' || (c >= '0' && c <= '9') ? '0' : (uint32_t) c;
    }
}


static int
fixed_apart(vlm_maker_t *k, const vlm_node_t *fixed, const vlm_node_t *b)
{
    uint32_t             i;
    const vlm_text_t    *t;
    const vlm_branch_t  *at;

    for (t = fixed->texts; t != NULL; t = t->next) {
        if (vlm_grammar_step(k, t->bytes) != 0) {
            return 0;
        }

        if (b->kind == VLM_NODE_PATTERN && b->first == '"') {
            if (vlm_dfa_has(b->dfa, t->text, t->bytes)) {
                return 0;
            }

            continue;
        }

        if (b->kind != VLM_NODE_FIXED) {
            if (begins(b, 0) == begins(NULL, t->text[0])) {
                return 0;
            }

            continue;
        }

        for (at = b->trie, i = 0; at != NULL && i < t->bytes; i++) {
            at = vlm_trie_child(at, (uint8_t) t->text[i]);
        }

        if (at != NULL && at->ends) {
            return 0;
        }
    }

    return 1;
}


/* A member that a must have and that b cannot have, or only with another value. */
static int
objects_apart(vlm_maker_t *k, const vlm_node_t *a, const vlm_node_t *b, uint32_t depth)
{
    uint32_t             i, j;
    const vlm_node_t    *other;
    const vlm_branch_t  *at;

    for (i = 0; i < a->n; i++) {
        if (!a->member[i].required) {
            continue;
        }

        for (at = b->trie, j = 0; at != NULL && j < a->member[i].bytes; j++) {
            at = vlm_trie_child(at, (uint8_t) a->member[i].key[j]);
        }

        other = at != NULL && at->ends ? b->member[at->member].value : b->rest;

        if (other == NULL || vlm_union_apart(k, a->member[i].value, other, depth + 1)) {
            return 1;
        }
    }

    return 0;
}


/* Two kinds of number, or of string. */
static int
patterns_apart(vlm_maker_t *k, const vlm_node_t *a, const vlm_node_t *b)
{
    int          apart;
    vlm_err_t    err = { VLM_OK, "" };
    vlm_dfa_t   *both;
    vlm_maker_t  own = *k;

    if (a->first == '0') {
        return a->to < b->from || b->to < a->from;
    }

    own.err = &err;
    both = vlm_dfa_both(&own, a->dfa, b->dfa);
    k->steps = own.steps;
    apart = both == NULL && err.code == VLM_EINPUT;
    vlm_dfa_free(both);

    return apart;
}


int
vlm_union_apart(vlm_maker_t *k, const vlm_node_t *a, const vlm_node_t *b, uint32_t depth)
{
    uint32_t           i;
    const vlm_node_t  *swap;

    if (depth > DEEP || vlm_grammar_step(k, a->n + b->n + 1) != 0) {
        return 0;
    }

    if (b->kind == VLM_NODE_ANY || (b->kind == VLM_NODE_FIXED && a->kind != VLM_NODE_ANY)) {
        swap = a;
        a = b;
        b = swap;
    }

    if (a->kind == VLM_NODE_ANY) {
        for (i = 0; i < a->n && vlm_union_apart(k, a->part[i], b, depth + 1); i++) { /* void */ }

        return i == a->n;
    }

    if (a->kind == VLM_NODE_FIXED) {
        return fixed_apart(k, a, b);
    }

    if (begins(a, 0) != begins(b, 0)) {
        return 1;
    }

    if (a->kind == VLM_NODE_PATTERN && b->kind == VLM_NODE_PATTERN) {
        return patterns_apart(k, a, b);
    }

    if (a->kind == VLM_NODE_PATTERN || b->kind == VLM_NODE_PATTERN) {
        return 0;
    }

    if (a->kind == VLM_NODE_OBJECT) {
        return objects_apart(k, a, b, depth) || objects_apart(k, b, a, depth);
    }

    if (a->kind != VLM_NODE_STRING && a->kind != VLM_NODE_ARRAY) {
        return 0;
    }

    return a->high < b->low || b->high < a->low
           || (a->kind == VLM_NODE_ARRAY && a->low > 0 && b->low > 0
               && vlm_grammar_item(a, 0) != NULL && vlm_grammar_item(b, 0) != NULL
               && vlm_union_apart(k, vlm_grammar_item(a, 0), vlm_grammar_item(b, 0), depth + 1));
}
