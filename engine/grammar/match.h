/*
 * Reads an answer byte by byte: which bytes may come next by a grammar, and how many tokens the
 * shortest end takes.
 *
 * Where a value may be one of several, all of them are followed at once, each as a thread, until
 * the bytes tell them apart.  An object or array that is open is a cell; cells are never changed,
 * so that threads share those below them.  At most VLM_GRAMMAR_CHOICES threads are followed: of
 * more the last are dropped, which leaves fewer answers, but never the one with the shortest end.
 */

#ifndef VLM_MATCH_H
#define VLM_MATCH_H

#include "grammar/grammar.h"

#define VLM_MATCH_BLANKS  32           /* in a row: a line break and an indentation */
#define VLM_MATCH_NUMBER  32           /* bytes of a number */
#define VLM_MATCH_CELLS   (VLM_GRAMMAR_CHOICES * VLM_GRAMMAR_DEPTH)

typedef struct {
    const vlm_node_t    *container;    /* the innermost open object or array; NULL: none */
    const vlm_node_t    *node;         /* of the value at hand, or behind the key */
    const vlm_branch_t  *trie;         /* in a fixed text or a key; NULL: a key like none of them */
    uint32_t             below;        /* tokens to the end from behind the container */
    uint32_t             index;        /* of the container: the next member, or items so far */
    uint32_t             count;        /* characters of a string */
    uint16_t             cell;         /* what is open around the container */
    uint8_t              at;           /* the place in the grammar, see match.c */
    uint8_t              run;          /* blanks, or bytes of a number, in a row */
    uint8_t              rest;         /* bytes to come of an escape or a character */
    uint8_t              depth;        /* brackets open */
    uint8_t              key;          /* the string is a further member's name */
    uint8_t              kept;         /* has the shortest end, or comes from the one that had */
} vlm_thread_t;

typedef struct {
    const vlm_node_t  *container;
    uint32_t           below, index;
    uint16_t           cell;
} vlm_cell_t;

typedef struct {                       /* an answer so far */
    const vlm_grammar_t  *g;
    uint32_t              n_threads, n_cells;
    vlm_thread_t          thread[VLM_GRAMMAR_CHOICES];
    vlm_cell_t            cell[VLM_MATCH_CELLS];
} vlm_match_t;

/*
 * Tries bytes behind an answer so far: state d is that after d bytes.  Room for one thread to work
 * with, used for one answer after the other.
 */
typedef struct vlm_walk_s  vlm_walk_t;

vlm_walk_t *vlm_walk_open(const vlm_tokens_t *p);  /* NULL: no memory */
void vlm_walk_close(vlm_walk_t *w);    /* takes NULL */

/* g lives as long as m. */
void vlm_match_start(vlm_match_t *m, const vlm_grammar_t *g);
void vlm_match_copy(vlm_match_t *to, const vlm_match_t *m);
/* Reads the bytes of a token.  -1: they cannot come next, or w is spent; m is unchanged. */
int vlm_match_read(vlm_match_t *m, vlm_walk_t *w, const char *bytes, size_t n);

uint32_t vlm_match_left(const vlm_match_t *m);     /* tokens of the shortest end */
int vlm_match_done(const vlm_match_t *m);          /* 1: nothing may follow */
int vlm_match_may_end(const vlm_match_t *m);       /* 1: it is whole, but something may follow */

/*
 * Bounds the work from now on: so many steps, of one thread by one byte, and no more once *quit is
 * set (NULL: never is).  A walk that is spent reads no more bytes: what it says is not all.
 */
void vlm_walk_allow(vlm_walk_t *w, uint64_t most, const atomic_int *quit);
int vlm_walk_spent(const vlm_walk_t *w);
uint64_t vlm_walk_work(const vlm_walk_t *w);       /* steps since then */

/* Begins at m. */
void vlm_walk_begin(vlm_walk_t *w, const vlm_match_t *m);
/* Makes state d + 1 of state d, d below VLM_PIECE_BYTES.  0: the byte cannot come. */
int vlm_walk_byte(vlm_walk_t *w, uint32_t d, uint8_t byte);
int vlm_walk_may_end(const vlm_walk_t *w, uint32_t d);         /* 1: state d is whole */
/* 1: from state d so many tokens can lead to an end. */
int vlm_walk_fits(const vlm_walk_t *w, uint32_t d, uint32_t tokens);
/* 1: in state d any plain token may come, and then so many tokens can lead to an end; odd: even
   those with characters that few expressions mean. */
int vlm_walk_roomy(const vlm_walk_t *w, uint32_t d, int odd, uint32_t tokens);
/* The same of state 0, and of any token that leaves a string open. */
int vlm_walk_free(const vlm_walk_t *w, uint32_t tokens);
/* 1: in state d all threads are in strings, from which no plain token can lead to an end so. */
int vlm_walk_hopeless(const vlm_walk_t *w, uint32_t d, uint32_t tokens);

typedef struct {                       /* a string at hand, of one thread, between characters */
    uint32_t  most;                    /* characters that may still come */
    uint32_t  least;                   /* characters that must come */
    uint32_t  left;                    /* tokens of the shortest end */
} vlm_string_t;

/*
 * Takes the threads that are in a string, but for names, out of state 0, until the next
 * vlm_walk_begin(): string is set to [returned] of VLM_GRAMMAR_CHOICES.
 */
uint32_t vlm_walk_strings(vlm_walk_t *w, vlm_string_t *string);

typedef struct {                       /* a pattern at hand, of one thread */
    const vlm_dfa_t  *dfa;
    uint32_t          state, tail;     /* tail: tokens to the end from behind it */
} vlm_pattern_t;

/* The same of threads that are in a pattern, but for numbers: a plain token does not leave it. */
uint32_t vlm_walk_patterns(vlm_walk_t *w, vlm_pattern_t *pattern);

#endif
