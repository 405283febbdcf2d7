/*
 * Regular sets of texts as deterministic automata over bytes: what a pattern, a format or the
 * bounds of a number allow.
 *
 * An automaton is found by exploring: a source names its states by keys, and says which key a byte
 * leads to.  Sources are an expression (nfa.h), the bounds of a number (range.c) and what two
 * automata have in common.
 */

#ifndef VLM_DFA_H
#define VLM_DFA_H

#include "grammar/grammar.h"

#define VLM_DFA_STATES  16384
#define VLM_DFA_NONE    UINT16_MAX     /* no text goes on so */

struct vlm_dfa_s {                     /* state 0 is the first */
    uint32_t   n_states, n_classes;
    uint16_t  *next;                   /* [n_states][n_classes] a state, or VLM_DFA_NONE */
    uint16_t  *left;                   /* [n_states] bytes of the shortest end; 0: one is here */
    uint8_t   *more;                   /* [n_states] 1: a byte may follow */
    uint8_t   *all;                    /* [n_states] 1: any plain characters may follow, as many as
                                          one likes, but perhaps not U+007F, U+2028 and U+2029 */
    uint32_t   far;                    /* the most bytes that are left in such a state */
    uint8_t    class_of[256];          /* bytes that lead to the same states */
};

typedef struct {
    uint32_t   n_classes;
    uint8_t    class_of[256];
    uint32_t   key_bytes;              /* the longest key */
    void      *data;

    /* Both write a key and return its bytes; 0: no text goes on so. */
    uint32_t  (*start)(void *data, uint8_t *key);
    uint32_t  (*step)(void *data, const uint8_t *key, uint32_t n, uint8_t byte, uint8_t *to);
    int       (*ends)(void *data, const uint8_t *key, uint32_t n);
} vlm_explore_t;

static inline uint32_t
vlm_dfa_next(const vlm_dfa_t *d, uint32_t state, uint8_t byte)
{
    return d->next[(size_t) state * d->n_classes + d->class_of[byte]];
}

/*
 * Made on the heap, freed with vlm_dfa_free().  NULL: no memory, too large, or VLM_EINPUT where
 * there is no text at all.
 */
vlm_dfa_t *vlm_dfa_explore(vlm_maker_t *k, const vlm_explore_t *e);
vlm_dfa_t *vlm_dfa_both(vlm_maker_t *k, const vlm_dfa_t *a, const vlm_dfa_t *b);
void vlm_dfa_free(vlm_dfa_t *d);       /* takes NULL */

/* Of the grammar's memory, with quotes around the texts or without. */
vlm_dfa_t *vlm_dfa_keep(vlm_maker_t *k, const vlm_dfa_t *d, int quoted);

/*
 * The maker's grammar, of an automaton's texts, which are plain; or NULL.  Frees d, which is NULL
 * after an error.  noun: what d comes from, for messages.
 */
vlm_grammar_t *vlm_dfa_text(vlm_maker_t *k, vlm_dfa_t *d, const char *noun);

int vlm_dfa_has(const vlm_dfa_t *d, const char *text, size_t bytes);

/* Texts in JSON's form, without quotes, of so many characters; high UINT32_MAX: no bound. */
vlm_dfa_t *vlm_dfa_length(vlm_maker_t *k, uint32_t low, uint32_t high);

/* Bounds of numbers as written: digits, a point, digits.  exclusive: the bound is none of them. */
typedef struct {
    int     is, negative, exclusive;
    char    whole[24];                 /* digits before the point, at least one */
    char    part[24];                  /* behind it, without zeros at the end */
} vlm_bound_t;

/* Numbers from low to high; integer: without a point; of more than 1: multiples of that. */
vlm_dfa_t *vlm_dfa_range(vlm_maker_t *k, const vlm_bound_t *low, const vlm_bound_t *high,
                         int integer, uint32_t of);

#endif
