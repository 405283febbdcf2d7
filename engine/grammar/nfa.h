/*
 * A regular expression as a graph of bytes: the subset of ECMA 262 that this server knows.
 *
 * Texts are JSON strings without their quotes, where a character that JSON escapes stands as its
 * one escape, or plain texts.  Where ECMA and Python differ, fewer texts match: \d and \w are
 * ASCII's, and \D, \W and \S have ASCII's characters alone.
 */

#ifndef VLM_NFA_H
#define VLM_NFA_H

#include "grammar/dfa.h"

#define VLM_NFA_NODES   60000
#define VLM_NFA_RANGES  256            /* of a class of characters */
#define VLM_NFA_END     UINT16_MAX     /* of an expression: a text may end here */

typedef struct {
    uint8_t   kind, low, high;
    uint16_t  a, b;                    /* nodes that follow */
} vlm_link_t;

enum { VLM_LINK_BYTES, VLM_LINK_SPLIT, VLM_LINK_BEGIN, VLM_LINK_END, VLM_LINK_MATCH };

typedef struct {
    uint32_t  n;
    uint32_t  low[VLM_NFA_RANGES], high[VLM_NFA_RANGES];
} vlm_class_t;

typedef struct {                       /* a part of the graph, whose last node leads nowhere yet */
    uint16_t  first, last;
} vlm_strand_t;

typedef struct {
    vlm_maker_t  *k;
    int           json;                /* texts are in JSON's form */
    vlm_link_t   *link;                /* [n] */
    uint32_t      n, start;
    const char   *what;                /* is wrong with the expression, from byte "at" on */
    size_t        at;
} vlm_nfa_t;

int vlm_nfa_open(vlm_nfa_t *f, vlm_maker_t *k, int json);
void vlm_nfa_close(vlm_nfa_t *f);

/* Return -1: there are too many nodes, and f->what says so. */
int vlm_nfa_link(vlm_nfa_t *f, uint8_t kind, uint16_t a, uint16_t b);          /* its number */
int vlm_nfa_class(vlm_nfa_t *f, vlm_class_t *c, vlm_strand_t *out);

void vlm_class_add(vlm_class_t *c, uint32_t low, uint32_t high);   /* beyond its room: nothing */
void vlm_class_invert(vlm_class_t *c);

/* Texts in which the expression is found ("whole": that match it as a whole).  NULL: f->what, or
   the maker's error. */
vlm_dfa_t *vlm_nfa_compile(vlm_nfa_t *f, const char *expression, size_t bytes, int whole);

/* Texts that are the strand as a whole. */
vlm_dfa_t *vlm_nfa_whole(vlm_nfa_t *f, const vlm_strand_t *found);

/* The text is a piece of an expression; -1: f->what is set. */
int vlm_expression_read(vlm_nfa_t *f, const char *text, size_t bytes, vlm_strand_t *out);

#endif
