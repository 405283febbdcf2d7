/* The readers of expressions and of grammars share these: their text, and parts of the graph. */

#ifndef VLM_READER_H
#define VLM_READER_H

#include "grammar/nfa.h"

typedef struct {
    vlm_nfa_t   *f;
    const char  *text;                 /* [bytes] */
    size_t       at, bytes;
    uint32_t     depth;                /* of groups */
} vlm_reader_t;

/* The byte that comes next; 0: none. */
static inline char
vlm_reader_peek(const vlm_reader_t *r)
{
    return r->at < r->bytes ? r->text[r->at] : '\0';
}

int vlm_reader_starts(const vlm_reader_t *r, const char *with);

/* Return -1: what is wrong is noted with its place, unless something was before. */

int vlm_reader_refuse(vlm_reader_t *r, const char *what);
int vlm_reader_character(vlm_reader_t *r, uint32_t *code);
int vlm_reader_hex(vlm_reader_t *r, uint32_t digits, uint32_t *code);

/* No byte; a part, and then another. */
int vlm_strand_nothing(vlm_nfa_t *f, vlm_strand_t *out);
void vlm_strand_join(vlm_nfa_t *f, vlm_strand_t *a, const vlm_strand_t *b);

typedef int (*vlm_read_pt)(vlm_reader_t *r, vlm_strand_t *out);

/*
 * Reads an atom and how often it comes; it is read again for each further time.  lazy: a "?" behind
 * that says nothing.
 */
int vlm_reader_repeated(vlm_reader_t *r, vlm_read_pt atom, int lazy, vlm_strand_t *out);

#endif
