/* The memory of a grammar, and what it is made of. */

#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK  65536                   /* bytes taken at a time */

struct vlm_block_s {
    vlm_block_t  *next;
    max_align_t   data[];
};


vlm_grammar_t *
vlm_grammar_begin(vlm_maker_t *k, const vlm_tokens_t *pieces, vlm_err_t *err)
{
    memset(k, 0, sizeof(*k));
    k->pieces = pieces;
    k->err = err;

    if (vlm_tokens_check(pieces, err) != 0) {
        return NULL;
    }

    k->g = calloc(1, sizeof(*k->g));

    if (k->g == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for a grammar");
        return NULL;
    }

    atomic_init(&k->g->users, 1);

    return k->g;
}


/* Memory lives as long as the grammar. */
void *
vlm_grammar_take(vlm_maker_t *k, uint64_t bytes)
{
    void         *p;
    uint64_t      room;
    vlm_block_t  *b;

    bytes = (bytes + sizeof(max_align_t)) / sizeof(max_align_t) * sizeof(max_align_t);

    if (bytes > k->room) {
        room = bytes > BLOCK ? bytes : BLOCK;

        if (k->g->bytes + room > VLM_GRAMMAR_MEMORY) {
            (void) vlm_fail(k->err, VLM_ELIMIT, "the schema takes more than %u bytes of memory",
                            VLM_GRAMMAR_MEMORY);
            return NULL;
        }

        b = calloc(1, sizeof(*b) + (size_t) room);

        if (b == NULL) {
            (void) vlm_fail(k->err, VLM_EMEMORY, "no memory for a grammar");
            return NULL;
        }

        b->next = k->g->blocks;
        k->g->blocks = b;
        k->g->bytes += room;
        k->block = (uint8_t *) b->data;
        k->room = (size_t) room;
    }

    p = k->block;
    k->block += bytes;
    k->room -= (size_t) bytes;

    return p;
}


vlm_node_t *
vlm_grammar_node(vlm_maker_t *k, vlm_node_kind_t kind)
{
    vlm_node_t  *n;

    n = vlm_grammar_take(k, sizeof(*n));

    if (n != NULL) {
        n->kind = kind;
        n->high = UINT32_MAX;
        n->tokens = n->need = VLM_GRAMMAR_NEVER;
        n->made = k->nodes;
        k->nodes = n;
    }

    return n;
}


int
vlm_grammar_step(vlm_maker_t *k, uint32_t n)
{
    k->steps = n > VLM_GRAMMAR_STEPS - k->steps ? VLM_GRAMMAR_STEPS : k->steps + n;

    if (k->steps == VLM_GRAMMAR_STEPS) {
        return vlm_fail(k->err, VLM_ELIMIT, "the schema takes more than %u steps of work",
                        VLM_GRAMMAR_STEPS);
    }

    return 0;
}


int
vlm_grammar_end(vlm_maker_t *k, vlm_node_t *root)
{
    vlm_node_t  *n;

    k->g->root = root;

    if (vlm_union_flatten(k) != 0) {
        return -1;
    }

    for (n = k->nodes; n != NULL; n = n->made) {
        if ((n->kind == VLM_NODE_FIXED && vlm_trie_count(k, n->trie) != 0)
            || (n->kind == VLM_NODE_OBJECT && n->trie != NULL && vlm_trie_keys(k, n) != 0))
        {
            return -1;
        }
    }

    if (vlm_cost(k) != 0) {
        return -1;
    }

    root = k->g->root;

    if (vlm_grammar_classes(k) != 0) {
        return -1;
    }

    return root->tokens < VLM_GRAMMAR_NEVER && root->need <= VLM_GRAMMAR_DEPTH ? 0
           : vlm_fail(k->err, VLM_EINPUT, "the schema describes no value that comes to an end "
                      "within %d brackets", VLM_GRAMMAR_DEPTH);
}


vlm_grammar_t *
vlm_grammar_share(vlm_grammar_t *g)
{
    if (g != NULL) {
        (void) atomic_fetch_add(&g->users, 1);
    }

    return g;
}


void
vlm_grammar_free(vlm_grammar_t *g)
{
    vlm_block_t  *b;

    if (g == NULL || atomic_fetch_sub(&g->users, 1) > 1) {
        return;
    }

    while (g->blocks != NULL) {
        b = g->blocks;
        g->blocks = b->next;
        free(b);
    }

    free(g);
}


uint32_t
vlm_grammar_least(const vlm_grammar_t *g)
{
    return g->root->tokens;
}
