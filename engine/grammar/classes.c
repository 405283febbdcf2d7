/*
 * Classes of bytes that a grammar does not tell apart, wherever they stand: a mask reads all tokens
 * at once whose bytes are of the same classes.
 */

#include "grammar/dfa.h"

#include <string.h>

#define BYTES  256


/* Bytes that match.h's places within JSON tell apart. */
static uint8_t
json_class(uint32_t c)
{
    size_t       i;
    const char  *p;
    static const char  *const ascii[] = {
        "1234567", "89", "acABCF", "dD", "eE", "bf", "nrt"
    };
    static const uint8_t  from[] = {   /* of classes above ASCII */
        0x80, 0x90, 0xa0, 0xc0, 0xc2, 0xe0, 0xe1, 0xed, 0xee, 0xf0, 0xf1, 0xf4, 0xf5
    };

    if (c >= 0x80) {
        for (i = 0; i < sizeof(from) && from[i] <= c; i++) { /* void */ }

        return (uint8_t) (0x80 + i);
    }

    if (c == 0 || (c < ' ' && strchr("\t\n\r", (int) c) == NULL)) {
        return 1;
    }

    for (i = 0; i < sizeof(ascii) / sizeof(ascii[0]); i++) {
        p = strchr(ascii[i], (int) c);

        if (p != NULL) {
            return (uint8_t) ascii[i][0];
        }
    }

    return strchr(" \t\n\r\"\\/{}[],:-+.0u", (int) c) != NULL ? (uint8_t) c : 2;
}


/* Parts classes by another distinction. */
static void
refine(vlm_grammar_t *g, const uint8_t *by)
{
    uint32_t  c, b, n;
    uint8_t   class_of[BYTES];

    for (n = 0, c = 0; c < BYTES; c++) {
        for (b = 0; b < c && !(g->class_of[b] == g->class_of[c] && by[b] == by[c]); b++) {
            /* void */
        }

        class_of[c] = b < c ? class_of[b] : (uint8_t) n++;
    }

    memcpy(g->class_of, class_of, BYTES);
    g->n_classes = n;
}


static void
add_trie(const vlm_branch_t *trie, uint8_t *by)
{
    const vlm_branch_t  *b;

    for (b = trie == NULL ? NULL : trie->made; b != NULL && b != trie; b = b->made) {
        by[b->byte] = b->byte;         /* a class of its own; byte 0 stands in no text */
    }
}


int
vlm_grammar_classes(vlm_maker_t *k)
{
    uint32_t           c;
    uint8_t            by[BYTES] = { 0 };
    vlm_grammar_t     *g = k->g;
    const vlm_node_t  *n;

    for (n = k->nodes; n != NULL; n = n->made) {
        add_trie(n->trie, by);
    }

    memset(g->class_of, 0, BYTES);
    refine(g, by);

    for (c = 0; c < BYTES; c++) {
        by[c] = json_class(c);
    }

    if (g->root->kind != VLM_NODE_RULE && g->root->kind != VLM_NODE_PATTERN) {
        refine(g, by);
    }

    for (n = k->nodes; n != NULL && g->n_classes < BYTES; n = n->made) {
        if (n->dfa != NULL) {
            if (vlm_grammar_step(k, BYTES * g->n_classes) != 0) {
                return -1;
            }

            refine(g, n->dfa->class_of);
        }
    }

    return 0;
}
