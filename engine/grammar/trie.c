/* Tries of fixed texts and of keys, and the tokens that they take. */

#include <string.h>

#include "grammar/grammar.h"

typedef struct {                       /* a place in both tries, while they are walked together */
    const vlm_branch_t  *branch;       /* the next to try */
    uint32_t             at;           /* of the vocabulary */
} pair_t;


const vlm_branch_t *
vlm_trie_child(const vlm_branch_t *b, uint8_t byte)
{
    const vlm_branch_t  *c;

    for (c = b->child; c != NULL && c->byte != byte; c = c->sibling) { /* void */ }

    return c;
}


static vlm_branch_t *
add_branch(vlm_maker_t *k, vlm_branch_t *last)
{
    vlm_branch_t  *b;

    b = vlm_grammar_take(k, sizeof(*b));

    if (b != NULL) {
        b->made = last;
        b->tokens = VLM_GRAMMAR_NEVER;
    }

    return b;
}


/* The root's own "made" is the last branch of the trie. */
vlm_branch_t *
vlm_trie_add(vlm_maker_t *k, vlm_branch_t **trie, const char *text, size_t bytes)
{
    size_t         i;
    vlm_branch_t  *b, *c;

    if (*trie == NULL) {
        *trie = add_branch(k, NULL);

        if (*trie == NULL) {
            return NULL;
        }

        (*trie)->made = *trie;
    }

    for (b = *trie, i = 0; i < bytes; b = c, i++) {
        c = (vlm_branch_t *) vlm_trie_child(b, (uint8_t) text[i]);

        if (c != NULL) {
            continue;
        }

        c = add_branch(k, (*trie)->made);

        if (c == NULL) {
            return NULL;
        }

        c->byte = (uint8_t) text[i];
        c->sibling = b->child;
        b->child = c;
        (*trie)->made = c;
    }

    return b;
}


/* Adds a text to a node of fixed ones. */
int
vlm_trie_fix(vlm_maker_t *k, vlm_node_t *fixed, const char *text, size_t bytes)
{
    char          *copy;
    vlm_text_t    *t;
    vlm_branch_t  *b;

    b = vlm_trie_add(k, &fixed->trie, text, bytes);
    t = vlm_grammar_take(k, sizeof(*t));
    copy = vlm_grammar_take(k, bytes);

    if (b == NULL || t == NULL || copy == NULL) {
        return -1;
    }

    if (b->ends) {
        return 0;
    }

    memcpy(copy, text, bytes);
    b->ends = 1;
    t->text = copy;
    t->bytes = (uint32_t) bytes;
    t->next = fixed->texts;
    fixed->texts = t;

    return 0;
}


/*
 * The fewest tokens from a branch to an end, by those of all branches behind it: every token that
 * leads along the trie is one more than where it leads to.
 */
static uint32_t
count_branch(vlm_maker_t *k, const vlm_branch_t *b, const vlm_trie_t *t)
{
    uint32_t             depth, steps, least;
    pair_t               stack[VLM_PIECE_BYTES + 2], *p;
    const vlm_branch_t  *c;

    least = VLM_GRAMMAR_NEVER;
    stack[0].branch = b->child;
    stack[0].at = t->n;

    for (depth = 1, steps = 0; depth > 0; steps++) {
        p = &stack[depth - 1];
        c = p->branch;

        if (c == NULL) {
            depth--;
            continue;
        }

        p->branch = c->sibling;
        p[1].at = vlm_tokens_child(t, p->at, c->byte);
        p[1].branch = c->child;

        if (p[1].at == t->n) {
            continue;
        }

        if (t->node[p[1].at].first < t->node[p[1].at + 1].first && c->tokens + 1 < least) {
            least = c->tokens + 1;
        }

        depth++;
    }

    return vlm_grammar_step(k, steps + 1) == 0 ? least : 0;
}


int
vlm_trie_count(vlm_maker_t *k, vlm_branch_t *trie)
{
    uint32_t       i, n;
    vlm_branch_t  *b;

    /* Each branch was made behind its parent, so this goes from the ends to the root. */

    for (b = trie->made; ; b = b->made) {
        b->tokens = b->ends ? 0 : VLM_GRAMMAR_NEVER;

        for (i = 0; !b->ends && i < VLM_TRIES; i++) {
            n = count_branch(k, b, &k->pieces->trie[i]);
            b->tokens = n < b->tokens ? n : b->tokens;
        }

        if (k->steps == VLM_GRAMMAR_STEPS) {
            return -1;
        }

        if (b == trie) {
            return 0;
        }
    }
}


/* Lists in each branch the keys that go on from it, with their tokens to behind the colon. */
static int
add_ways(vlm_maker_t *k, vlm_node_t *o, uint32_t i)
{
    char           *text;
    uint32_t        j, *tokens;
    vlm_branch_t   *b;
    vlm_member_t   *m = &o->member[i];
    const uint32_t  n = m->bytes + 3;  /* with both quotes and the colon */

    text = vlm_grammar_take(k, n);
    tokens = vlm_grammar_take(k, (n + 1) * sizeof(uint32_t));

    if (text == NULL || tokens == NULL || vlm_grammar_step(k, 8 * n) != 0) {
        return -1;
    }

    text[0] = '"';
    memcpy(text + 1, m->key, m->bytes);
    memcpy(text + 1 + m->bytes, "\":", 2);
    vlm_tokens_count(k->pieces, text, n, tokens);
    m->key_tokens = tokens[0];

    for (j = 0, b = o->trie; ; j++) {
        b->way[b->n_ways].member = i;
        b->way[b->n_ways++].tokens = tokens[j + 1];

        if (j == m->bytes) {
            return 0;
        }

        b = (vlm_branch_t *) vlm_trie_child(b, (uint8_t) m->key[j]);
    }
}


/* How far a quote is that ends a key which is none of the object's: 1 where none of them ends. */
static uint32_t
quote_far(const vlm_branch_t *b)
{
    uint8_t              c;
    uint32_t             far, least;
    const vlm_branch_t  *next;

    if (!b->ends) {
        return 1;
    }

    least = VLM_GRAMMAR_NEVER;

    for (c = 'a'; c <= 'z'; c++) {
        next = vlm_trie_child(b, c);
        far = 1 + (next == NULL ? 1 : next->tokens);
        least = far < least ? far : least;
    }

    return least;
}


int
vlm_trie_keys(vlm_maker_t *k, vlm_node_t *o)
{
    uint32_t       i, j;
    vlm_branch_t  *b;

    for (i = 0; i < o->n; i++) {
        for (j = 0, b = o->trie; b != NULL; j++) {
            b->n_ways++;               /* counted first */
            b = j == o->member[i].bytes
                ? NULL : (vlm_branch_t *) vlm_trie_child(b, (uint8_t) o->member[i].key[j]);
        }
    }

    for (b = o->trie->made; ; b = b->made) {
        b->way = vlm_grammar_take(k, b->n_ways * sizeof(vlm_way_t));

        if (b->way == NULL) {
            return -1;
        }

        b->n_ways = 0;
        b->tokens = quote_far(b);
        o->far = b->tokens > o->far ? b->tokens : o->far;

        if (b == o->trie) {
            break;
        }
    }

    for (i = 0; i < o->n; i++) {
        if (add_ways(k, o, i) != 0) {
            return -1;
        }
    }

    return 0;
}
