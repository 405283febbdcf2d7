/*
 * Counts the tokens of the shortest value of each node, and its brackets within each other.
 *
 * Both begin at "never" and fall until nothing changes, so that of a recursion only what comes to
 * an end is counted.  Brackets are those of the value with the fewest tokens, since that is the one
 * to which an answer is steered.
 */

#include "grammar/dfa.h"

#define add  vlm_cost_add


static uint32_t
times(uint32_t n, uint32_t tokens)
{
    uint64_t  t = (uint64_t) n * tokens;

    return t >= VLM_GRAMMAR_NEVER ? VLM_GRAMMAR_NEVER : (uint32_t) t;
}


static uint32_t
at_most(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}


/* From the last member to the first; member n is what may follow all of them. */
static uint32_t
object_tokens(vlm_node_t *o)
{
    uint32_t       i;
    vlm_member_t  *m = &o->member[o->n];

    m->must = o->n;
    m->tail = 1;
    m->tokens = o->rest == NULL ? VLM_GRAMMAR_NEVER
                : add(o->rest->tokens, 3 + (o->trie == NULL ? 1 : o->trie->tokens));
    m->best = m->tokens;

    for (i = o->n; i-- > 0; ) {
        m = &o->member[i];
        m->tokens = add(add(m->key_tokens, m->value->tokens), m[1].tail);
        m->must = m->required ? i : m[1].must;
        m->best = m->required ? m->tokens : at_most(m->tokens, m[1].best);
        m->tail = m->must == o->n ? 1 : add(1, m->best);
    }

    m = o->member;

    return add(1, m->must == o->n ? 1 : m->best);
}


static uint32_t
array_tokens(vlm_node_t *a)
{
    uint32_t           i, more;
    const vlm_node_t  *item;

    more = a->low > a->n ? a->low - a->n : 0;      /* of those behind the first ones */
    item = vlm_grammar_item(a, a->n);
    a->tail[a->n] = more == 0 ? 1
                    : item == NULL ? VLM_GRAMMAR_NEVER : add(times(more, add(1, item->tokens)), 1);

    for (i = a->n; i-- > 0; ) {
        item = vlm_grammar_item(a, i);
        a->tail[i] = i >= a->low ? 1
                     : item == NULL ? VLM_GRAMMAR_NEVER
                     : add(add(1, item->tokens), a->tail[i + 1]);
    }

    /* The first item has no comma before it. */

    return a->low == 0 ? 2 : add(a->tail[0], 0);
}


static uint32_t
tokens_of(vlm_node_t *n)
{
    uint32_t  i, least;

    switch (n->kind) {
    case VLM_NODE_STRING:
        return add(2, n->low);
    case VLM_NODE_FIXED:
        return n->trie->tokens;
    case VLM_NODE_PATTERN:
    case VLM_NODE_RULE:
        return n->dfa->left[0];        /* a byte is a token */
    case VLM_NODE_OBJECT:
        return object_tokens(n);
    case VLM_NODE_ARRAY:
        return array_tokens(n);
    case VLM_NODE_ANY:
        for (least = VLM_GRAMMAR_NEVER, i = 0; i < n->n; i++) {
            least = at_most(least, n->part[i]->tokens);
        }

        return least;
    default:
        return 1;
    }
}


static void
raise(uint32_t *max, const vlm_node_t *n)
{
    if (n != NULL && n->need > *max) {
        *max = n->need;
    }
}


static uint32_t
need_of(vlm_node_t *n)
{
    uint32_t  i, need;

    need = 0;
    n->deep = 0;

    if (n->tokens >= VLM_GRAMMAR_NEVER) {
        return VLM_GRAMMAR_NEVER;
    }

    if (n->kind == VLM_NODE_RULE) {
        return n->need;

    } else if (n->kind == VLM_NODE_OBJECT) {
        for (i = 0; i < n->n; i++) {
            raise(&n->deep, n->member[i].value);

            if (n->member[i].required) {
                raise(&need, n->member[i].value);
            }
        }

    } else if (n->kind == VLM_NODE_ARRAY) {
        for (i = 0; i < n->n; i++) {
            raise(&n->deep, n->part[i]);

            if (i < n->low) {
                raise(&need, n->part[i]);
            }
        }

        if (n->low > n->n) {
            raise(&need, n->rest);
        }

    } else if (n->kind == VLM_NODE_ANY) {
        for (need = VLM_GRAMMAR_NEVER, i = 0; i < n->n; i++) {
            if (n->part[i]->tokens == n->tokens) {
                need = at_most(need, n->part[i]->need);
            }
        }

        return need;

    } else {
        return 0;
    }

    raise(&n->deep, n->rest);

    return add(1, need);
}


int
vlm_cost(vlm_maker_t *k)
{
    int          changed;
    uint32_t     before;
    vlm_node_t  *n;

    do {
        changed = 0;

        for (n = k->nodes; n != NULL; n = n->made) {
            before = n->tokens;
            n->tokens = tokens_of(n);
            changed |= n->tokens != before;

            if (vlm_grammar_step(k, n->n + 1) != 0) {
                return -1;
            }
        }
    } while (changed);

    do {
        changed = 0;

        for (n = k->nodes; n != NULL; n = n->made) {
            before = n->need;
            n->need = need_of(n);
            changed |= n->need != before;

            if (vlm_grammar_step(k, n->n + 1) != 0) {
                return -1;
            }
        }
    } while (changed);

    return 0;
}
