/*
 * The vocabulary's texts as tries, in the order of their bytes, to find all tokens that have a
 * beginning in common.
 */

#ifndef VLM_TOKENS_H
#define VLM_TOKENS_H

#include "text/tokenizer.h"

/*
 * Three tries: whole characters without quote and backslash, most of all; others that stand
 * within a string and leave it open; and those with a quote that ends a string.
 */
enum { VLM_PLAIN, VLM_INSIDE, VLM_CLOSING, VLM_TRIES };

#define VLM_PIECE_BYTES  255           /* longer ones are left out; the longest published has 128 */

typedef struct {                       /* in preorder, a further one behind the last */
    uint32_t  skip;                    /* the next that does not begin with these bytes */
    uint32_t  first;                   /* in ids: those with exactly these bytes, up to the next
                                          node's; to skip's first: those that begin with them */
    uint8_t   byte, depth;             /* the last of the bytes; their number */
    uint8_t   odd;                     /* 1: some that begin with them have U+007F, U+2028 or
                                          U+2029 */
} vlm_piece_t;

typedef struct {
    uint32_t      n, n_ids;
    vlm_piece_t  *node;                /* [n + 1] */
    uint32_t     *id;                  /* [n_ids] */
    uint8_t      *chars;               /* [n_ids] of plain ones: characters */
    uint32_t     *bits;                /* [n_words] all ids; not of closing ones */
    uint32_t      start[256];          /* the node of a first byte; n: none */
} vlm_trie_t;

typedef struct {
    vlm_trie_t   trie[VLM_TRIES];
    uint32_t     n_words;              /* of a mask: (ids + 31) / 32 */
    uint32_t    *eos;                  /* [n_eos] ids that end an answer, below n_ids */
    uint32_t     n_eos;
    int          missing;              /* a byte that is no token, or -1 */
} vlm_tokens_t;

/*
 * Sorts the vocabulary's text tokens, once, in some 80 ms.  The result is read-only.
 *
 *   n_ids      ids from here on are never picked
 *   eos        [n_eos] ids that end an answer: never part of one
 *   returns    a structure, freed with vlm_tokens_close(); NULL: VLM_EMEMORY
 */
vlm_tokens_t *vlm_tokens_open(const vlm_tokenizer_t *t, uint32_t n_ids, const uint32_t *eos,
                              uint32_t n_eos, vlm_err_t *err);
void vlm_tokens_close(vlm_tokens_t *p);            /* takes NULL */

/*
 * 0; or -1 and VLM_EINPUT: some byte has no token of its own, so that some texts cannot be ended.
 */
int vlm_tokens_check(const vlm_tokens_t *p, vlm_err_t *err);

int vlm_tokens_ends(const vlm_tokens_t *p, uint32_t id);       /* 1: the id ends answers */

/* The node behind one more byte, or t->n: no token begins so.  at t->n: from the root. */
uint32_t vlm_tokens_child(const vlm_trie_t *t, uint32_t at, uint8_t byte);

/* Sets tokens[i], of [bytes + 1], to the fewest tokens that text[i..bytes] can have. */
void vlm_tokens_count(const vlm_tokens_t *p, const char *text, size_t bytes, uint32_t *tokens);

#endif
