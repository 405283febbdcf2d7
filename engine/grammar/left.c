/* How many tokens the shortest way from a thread to the end takes. */

#include "grammar/dfa.h"
#include "grammar/walk.h"

#define add  vlm_cost_add


int
vlm_thread_deep(const vlm_thread_t *t, const vlm_node_t *n)
{
    return n == NULL || n->need > (uint32_t) VLM_GRAMMAR_DEPTH - t->depth;
}


/* From behind the value at hand to behind the container, and further to the end. */
uint32_t
vlm_thread_tail(const vlm_thread_t *t)
{
    uint64_t           more;
    const vlm_node_t  *c = t->container;

    if (c == NULL) {
        return 0;
    }

    if (c->kind == VLM_NODE_OBJECT) {
        return add(c->member[t->index].tail, t->below);
    }

    if (t->index <= c->n) {
        return add(c->tail[t->index], t->below);
    }

    if (t->index >= c->low) {
        return add(1, t->below);
    }

    more = (uint64_t) (c->low - t->index) * (1 + (uint64_t) c->rest->tokens) + 1;

    return more >= VLM_GRAMMAR_NEVER ? VLM_GRAMMAR_NEVER : add((uint32_t) more, t->below);
}


/* From before a key.  Near the greatest depth only some members can be had. */
static uint32_t
before_key(const vlm_thread_t *t)
{
    uint32_t           i, best;
    const vlm_node_t  *o = t->container;

    if (o->deep <= (uint32_t) VLM_GRAMMAR_DEPTH - t->depth) {
        return o->member[t->index].best;
    }

    best = VLM_GRAMMAR_NEVER;

    for (i = t->index; i < o->n && i <= o->member[t->index].must; i++) {
        if (!vlm_thread_deep(t, o->member[i].value) && o->member[i].tokens < best) {
            best = o->member[i].tokens;
        }
    }

    if (o->member[t->index].must == o->n && !vlm_thread_deep(t, o->rest)
        && o->member[o->n].tokens < best)
    {
        best = o->member[o->n].tokens;
    }

    return best;
}


/* The first way from a branch to a member that may come, or NULL. */
const vlm_way_t *
vlm_thread_way(const vlm_thread_t *t, const vlm_branch_t *b, const vlm_way_t *behind)
{
    uint32_t             low, high, middle;
    const vlm_way_t     *way, *end = b->way + b->n_ways;
    const vlm_member_t  *m = t->container->member;

    for (low = 0, high = behind == NULL ? b->n_ways : 0; low < high; ) {
        middle = (low + high) / 2;

        if (b->way[middle].member < t->index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }

    for (way = behind == NULL ? b->way + low : behind + 1;
         way < end && way->member <= m[t->index].must; way++)
    {
        if (!vlm_thread_deep(t, m[way->member].value)) {
            return way;
        }
    }

    return NULL;
}


static uint32_t
in_key(const vlm_thread_t *t)
{
    uint32_t             best, n;
    const vlm_way_t     *way;
    const vlm_member_t  *m = t->container->member;

    best = VLM_GRAMMAR_NEVER;

    for (way = vlm_thread_way(t, t->trie, NULL); way != NULL;
         way = vlm_thread_way(t, t->trie, way))
    {
        n = add(add(way->tokens, m[way->member].value->tokens), m[way->member + 1].tail);
        best = n < best ? n : best;
    }

    return best;
}


/* Tokens from a thread's place to the end. */
uint32_t
vlm_thread_left(const vlm_thread_t *t)
{
    uint32_t           quote;
    const vlm_node_t  *c = t->container;

    switch (t->at) {
    case VALUE:
        return add(t->node->tokens, vlm_thread_tail(t));
    case FIRST_KEY:
        return add(t->below, c->member->must == c->n ? 1 : before_key(t));
    case KEY:
        return add(t->below, before_key(t));
    case COLON:
        return add(add(1, t->node->tokens), vlm_thread_tail(t));
    case FIRST_ITEM:
        return add(t->below, c->low == 0 ? 1 : c->tail[0] - 1);
    case AFTER:
        return vlm_thread_tail(t);
    case DONE:
        return 0;
    case IN_FIXED:
        return add(t->trie->tokens, vlm_thread_tail(t));
    case IN_KEY:
        return add(t->below, in_key(t));
    case IN_PATTERN:
        return add(t->node->dfa->left[t->count], vlm_thread_tail(t));
    case IN_RULE:
        return add(t->node->dfa->left[t->count], t->below);
    }

    if (t->at >= MINUS) {
        return add(t->at < ZERO, vlm_thread_tail(t));
    }

    if (t->key) {
        quote = t->trie == NULL ? 1 : t->at == TEXT ? t->trie->tokens : c->far;
        quote = add(quote, add(1, c->rest->tokens));

    } else {
        quote = 1 + (t->count < t->node->low ? t->node->low - t->count : 0);
    }

    return add(add(quote, t->at == TEXT ? 0 : t->rest), vlm_thread_tail(t));
}
