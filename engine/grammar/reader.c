/* Parts that the readers of expressions and of grammars share: see the header. */

#include "grammar/reader.h"

#include <string.h>

#include "base/utf8.h"

#define TIMES   10000
#define refuse  vlm_reader_refuse
#define peek    vlm_reader_peek


int
vlm_reader_refuse(vlm_reader_t *r, const char *what)
{
    if (r->f->what == NULL) {
        r->f->what = what;
        r->f->at = r->at;
    }

    return -1;
}


int
vlm_reader_starts(const vlm_reader_t *r, const char *with)
{
    size_t  n = strlen(with);

    return r->bytes - r->at >= n && memcmp(r->text + r->at, with, n) == 0;
}


int
vlm_reader_character(vlm_reader_t *r, uint32_t *code)
{
    size_t  n;

    n = vlm_utf8((const uint8_t *) r->text + r->at, r->bytes - r->at, code);

    if (n == 0 || *code == 0) {
        return refuse(r, "has a character that cannot be");
    }

    r->at += n;

    return 0;
}


int
vlm_reader_hex(vlm_reader_t *r, uint32_t digits, uint32_t *code)
{
    char         c;
    uint32_t     i;
    const char  *p;
    static const char  numerals[] = "0123456789abcdef";

    for (*code = 0, i = 0; i < digits; i++, r->at++) {
        c = peek(r);
        p = c == '\0' ? NULL : strchr(numerals, c >= 'A' && c <= 'F' ? c | 0x20 : c);

        if (p == NULL) {
            return refuse(r, "has no hexadecimal digit");
        }

        *code = *code * 16 + (uint32_t) (p - numerals);
    }

    return 0;
}


/* ---- parts of the graph -------------------------------------------------- */


int
vlm_strand_nothing(vlm_nfa_t *f, vlm_strand_t *out)
{
    int  id;

    id = vlm_nfa_link(f, VLM_LINK_SPLIT, VLM_NFA_END, VLM_NFA_END);
    out->first = out->last = (uint16_t) id;

    return id < 0 ? -1 : 0;
}


void
vlm_strand_join(vlm_nfa_t *f, vlm_strand_t *a, const vlm_strand_t *b)
{
    f->link[a->last].a = b->first;
    a->last = b->last;
}


/* A part that comes again and again: at least once, or not at all. */
static int
loop(vlm_nfa_t *f, vlm_strand_t *p, int skip)
{
    int  first, last;

    last = vlm_nfa_link(f, VLM_LINK_SPLIT, VLM_NFA_END, VLM_NFA_END);
    first = last < 0 ? -1 : vlm_nfa_link(f, VLM_LINK_SPLIT, p->first,
                                         skip ? (uint16_t) last : VLM_NFA_END);

    if (first < 0) {
        return -1;
    }

    f->link[p->last].a = (uint16_t) first;

    if (!skip) {
        f->link[p->last].b = (uint16_t) last;
    }

    p->first = (uint16_t) first;
    p->last = (uint16_t) last;

    return 0;
}


/* A part that may be left out, with all that follow it up to an end. */
static int
option(vlm_nfa_t *f, vlm_strand_t *p, uint16_t end)
{
    int  first;

    first = vlm_nfa_link(f, VLM_LINK_SPLIT, p->first, end);
    p->first = (uint16_t) first;

    return first < 0 ? -1 : 0;
}


/* ---- repetition ---------------------------------------------------------- */


static int
number(vlm_reader_t *r, uint32_t *n)
{
    size_t  from = r->at;

    for (*n = 0; peek(r) >= '0' && peek(r) <= '9' && *n <= TIMES; r->at++) {
        *n = *n * 10 + (uint32_t) (peek(r) - '0');
    }

    return r->at > from && *n <= TIMES ? 0 : -1;
}


/* 1: a repetition stands here, from low to high times (UINT32_MAX: any).  "{" may be a letter. */
static int
times(vlm_reader_t *r, int lazy, uint32_t *low, uint32_t *high)
{
    char    c = peek(r);
    size_t  from = r->at;

    if (c == '*' || c == '+' || c == '?') {
        *low = c == '+';
        *high = c == '?' ? 1 : UINT32_MAX;
        r->at++;

    } else if (c == '{') {
        r->at++;

        if (number(r, low) != 0) {
            r->at = from;
            return refuse(r, "has a bracket { that is not behind a backslash, or too many times");
        }

        *high = *low;

        if (peek(r) == ',') {
            r->at++;
            *high = UINT32_MAX;

            if (peek(r) != '}' && number(r, high) != 0) {
                return refuse(r, "repeats a part too often");
            }
        }

        if (peek(r) != '}' || *high < *low) {
            return refuse(r, "has a number of times that cannot be");
        }

        r->at++;

    } else {
        return 0;
    }

    r->at += (size_t) (lazy && peek(r) == '?');    /* as few as can be: the same texts */

    return peek(r) == '+' || peek(r) == '*' || peek(r) == '?' || peek(r) == '{'
           ? refuse(r, "repeats a repetition") : 1;
}


/* The atom from a place on, so many times; p has its first. */
static int
repeat(vlm_reader_t *r, vlm_read_pt atom, size_t from, const uint32_t *often, vlm_strand_t *p,
       vlm_strand_t *out)
{
    uint32_t        i;
    vlm_strand_t    end;
    const uint32_t  low = often[0], high = often[1];

    if (vlm_strand_nothing(r->f, out) != 0 || vlm_strand_nothing(r->f, &end) != 0) {
        return -1;
    }

    for (i = 0; high > 0 && (i == 0 || i < low || (i < high && high != UINT32_MAX)); i++) {
        r->at = from;

        if ((i > 0 && atom(r, p) != 0)
            || (high == UINT32_MAX && i + 1 >= low && loop(r->f, p, low == 0) != 0)
            || (high != UINT32_MAX && i >= low && option(r->f, p, end.first) != 0)
            || vlm_grammar_step(r->f->k, 16) != 0)
        {
            return -1;
        }

        vlm_strand_join(r->f, out, p);
    }

    vlm_strand_join(r->f, out, &end);

    return 0;
}


int
vlm_reader_repeated(vlm_reader_t *r, vlm_read_pt atom, int lazy, vlm_strand_t *out)
{
    int           rc;
    size_t        from, end;
    uint32_t      often[2];
    vlm_strand_t  p;

    from = r->at;

    if (atom(r, &p) != 0) {
        return -1;
    }

    rc = times(r, lazy, &often[0], &often[1]);
    end = r->at;

    if (rc <= 0) {
        *out = p;
        return rc;
    }

    rc = repeat(r, atom, from, often, &p, out);
    r->at = rc == 0 ? end : r->at;

    return rc;
}
