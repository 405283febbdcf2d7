/* The graph of an expression: classes of characters as bytes, and the automaton of it. */

#include "grammar/nfa.h"

#include <stdlib.h>
#include <string.h>

#define LAST  0x10ffff

typedef struct {                       /* while sets of links are followed */
    const vlm_nfa_t  *f;
    uint32_t          mark;
    uint32_t         *marks;           /* [n] */
    uint16_t         *stack;           /* [n] */
    uint16_t         *found;           /* [n] */
    uint32_t          n_found;
    uint32_t          work;            /* links followed, not yet counted */
} set_t;


int
vlm_nfa_open(vlm_nfa_t *f, vlm_maker_t *k, int json)
{
    memset(f, 0, sizeof(*f));
    f->k = k;
    f->json = json;
    f->link = calloc(VLM_NFA_NODES, sizeof(*f->link));

    return f->link != NULL ? 0 : vlm_fail(k->err, VLM_EMEMORY, "no memory for a pattern");
}


void
vlm_nfa_close(vlm_nfa_t *f)
{
    free(f->link);
    f->link = NULL;
}


int
vlm_nfa_link(vlm_nfa_t *f, uint8_t kind, uint16_t a, uint16_t b)
{
    if (f->n == VLM_NFA_NODES) {
        f->what = "makes it too large";
        return -1;
    }

    f->link[f->n].kind = kind;
    f->link[f->n].a = a;
    f->link[f->n].b = b;

    return (int) f->n++;
}


/* ---- classes ------------------------------------------------------------- */


void
vlm_class_add(vlm_class_t *c, uint32_t low, uint32_t high)
{
    uint32_t  i;

    for (i = 0; i < c->n && low <= high; i++) {
        if (c->low[i] <= low && c->high[i] >= high) {
            return;
        }
    }

    if (low <= high && c->n < VLM_NFA_RANGES) {
        c->low[c->n] = low;
        c->high[c->n++] = high;
    }
}


static int
by_low(const void *a, const void *b)
{
    const uint32_t  *x = a, *y = b;

    return x[0] < y[0] ? -1 : x[0] > y[0];
}


/* Sorted ranges that do not touch, without U+0000 and surrogates; returns how many there are. */
static uint32_t
tidy(const vlm_class_t *c, uint32_t (*out)[2])
{
    uint32_t  i, n, pair[VLM_NFA_RANGES][2];

    for (i = 0; i < c->n; i++) {
        pair[i][0] = c->low[i] == 0 ? 1 : c->low[i];
        pair[i][1] = c->high[i] > LAST ? LAST : c->high[i];
    }

    qsort(pair, c->n, sizeof(pair[0]), by_low);

    for (n = 0, i = 0; i < c->n; i++) {
        if (pair[i][0] > pair[i][1]) {
            continue;
        }

        if (n > 0 && pair[i][0] <= out[n - 1][1] + 1) {
            out[n - 1][1] = pair[i][1] > out[n - 1][1] ? pair[i][1] : out[n - 1][1];
        } else {
            out[n][0] = pair[i][0];
            out[n++][1] = pair[i][1];
        }
    }

    return n;
}


void
vlm_class_invert(vlm_class_t *c)
{
    uint32_t  i, n, next, out[VLM_NFA_RANGES][2];

    n = tidy(c, out);
    c->n = 0;

    for (next = 1, i = 0; i < n; i++) {
        vlm_class_add(c, next, out[i][0] - 1);
        next = out[i][1] + 1;
    }

    vlm_class_add(c, next, LAST);
}


/* One more way through a part: bytes in these ranges, one behind the other. */
static int
add_bytes(vlm_nfa_t *f, vlm_strand_t *out, const uint8_t (*range)[2], uint32_t n)
{
    int       id;
    uint16_t  next;

    for (next = out->last; n-- > 0; next = (uint16_t) id) {
        id = vlm_nfa_link(f, VLM_LINK_BYTES, next, 0);

        if (id < 0) {
            return -1;
        }

        f->link[id].low = range[n][0];
        f->link[id].high = range[n][1];
    }

    id = vlm_nfa_link(f, VLM_LINK_SPLIT, next, out->first);
    out->first = (uint16_t) id;

    return id < 0 ? -1 : 0;
}


static uint32_t
encode(uint32_t code, uint8_t *out)
{
    if (code < 0x80) {
        out[0] = (uint8_t) code;
        return 1;
    }

    if (code < 0x800) {
        out[0] = (uint8_t) (0xc0 | code >> 6);
        out[1] = (uint8_t) (0x80 | (code & 0x3f));
        return 2;
    }

    if (code < 0x10000) {
        out[0] = (uint8_t) (0xe0 | code >> 12);
        out[1] = (uint8_t) (0x80 | (code >> 6 & 0x3f));
        out[2] = (uint8_t) (0x80 | (code & 0x3f));
        return 3;
    }

    out[0] = (uint8_t) (0xf0 | code >> 18);
    out[1] = (uint8_t) (0x80 | (code >> 12 & 0x3f));
    out[2] = (uint8_t) (0x80 | (code >> 6 & 0x3f));
    out[3] = (uint8_t) (0x80 | (code & 0x3f));

    return 4;
}


/* Characters from low to high: cut until all that have the same first bytes are taken whole. */
static int
add_range(vlm_nfa_t *f, vlm_strand_t *out, uint32_t low, uint32_t high)
{
    uint8_t         a[4], b[4], range[4][2];
    uint32_t        i, n, bits;
    static const uint32_t  ends[] = { 0x7f, 0x7ff, 0xd7ff, 0xdfff, 0xffff };

    for (i = 0; i < 5; i++) {
        if (low <= ends[i] && high > ends[i]) {
            return add_range(f, out, low, ends[i]) != 0 ? -1
                   : add_range(f, out, ends[i] + 1, high);
        }
    }

    if (low >= 0xd800 && high <= 0xdfff) {
        return 0;
    }

    n = encode(low, a);
    (void) encode(high, b);

    for (i = 1; i < n; i++) {
        bits = (1u << (6 * i)) - 1;

        if ((low & ~bits) != (high & ~bits)) {
            if ((low & bits) != 0) {
                return add_range(f, out, low, low | bits) != 0 ? -1
                       : add_range(f, out, (low | bits) + 1, high);
            }

            if ((high & bits) != bits) {
                return add_range(f, out, low, (high & ~bits) - 1) != 0 ? -1
                       : add_range(f, out, high & ~bits, high);
            }
        }
    }

    for (i = 0; i < n; i++) {
        range[i][0] = a[i];
        range[i][1] = b[i];
    }

    return add_bytes(f, out, (const uint8_t (*)[2]) range, n);
}


/* One more way, a byte from low to high and then "next", beside those of *ways. */
static int
add_way(vlm_nfa_t *f, uint16_t *ways, uint8_t low, uint8_t high, uint16_t next)
{
    int  id;

    id = vlm_nfa_link(f, VLM_LINK_BYTES, next, 0);

    if (id < 0) {
        return -1;
    }

    f->link[id].low = low;
    f->link[id].high = high;
    id = vlm_nfa_link(f, VLM_LINK_SPLIT, (uint16_t) id, *ways);
    *ways = (uint16_t) id;

    return id < 0 ? -1 : 0;
}


/* The characters that JSON escapes, as "\n" or "\u001f"; of: a bit for each, of a quote bit 32, of
   a backslash bit 33. */
static int
add_escaped(vlm_nfa_t *f, vlm_strand_t *out, uint64_t of)
{
    int       rc;
    uint16_t  letters, tens, numbers;
    uint32_t  i, k, n;
    static const char  digits[] = "0123456789abcdef";
    static const struct {
        uint8_t  bit;
        char     letter;
    } own[] = { { 8, 'b' }, { 9, 't' }, { 10, 'n' }, { 12, 'f' }, { 13, 'r' }, { 32, '"' },
                { 33, '\\' } };

    letters = tens = VLM_NFA_END;
    rc = 0;

    for (i = 0; i < sizeof(own) / sizeof(own[0]) && rc == 0; i++) {
        if (of >> own[i].bit & 1) {
            rc = add_way(f, &letters, (uint8_t) own[i].letter, (uint8_t) own[i].letter, out->last);
        }

        of &= ~((uint64_t) 1 << own[i].bit);
    }

    /* Hexadecimal digits in a row, but for the gap between 9 and a, are one way. */

    for (i = 0; i < 2 && rc == 0; i++) {
        numbers = VLM_NFA_END;

        for (k = 0; k < 16 && rc == 0; k += n + 1) {
            for (n = 0; k + n < 16 && (of >> (16 * i + k + n) & 1) && (n == 0 || k + n != 10); n++)
            {
                /* void */
            }

            if (n > 0) {
                rc = add_way(f, &numbers, (uint8_t) digits[k], (uint8_t) digits[k + n - 1],
                             out->last);
                n -= k + n == 10 && n > 0;
            }
        }

        if (numbers != VLM_NFA_END && rc == 0) {
            rc = add_way(f, &tens, (uint8_t) digits[i], (uint8_t) digits[i], numbers);
        }
    }

    for (i = 0; i < 3 && tens != VLM_NFA_END && rc == 0; i++) {
        numbers = i < 2 ? VLM_NFA_END : letters;
        rc = add_way(f, &numbers, (uint8_t) "00u"[i], (uint8_t) "00u"[i], tens);
        tens = numbers;
        letters = i < 2 ? letters : numbers;
    }

    return rc != 0 || letters == VLM_NFA_END ? rc : add_way(f, &out->first, '\\', '\\', letters);
}


/* Characters of a range that JSON escapes are collected; the others are added. */
static int
add_json(vlm_nfa_t *f, vlm_strand_t *out, uint32_t low, uint32_t high, uint64_t *escaped)
{
    int       rc;
    uint32_t  end;

    for (rc = 0; low <= high && rc == 0; low = end + 1) {
        end = low;

        if (low < 0x20) {
            *escaped |= (uint64_t) 1 << low;

        } else if (low == '"' || low == '\\') {
            *escaped |= (uint64_t) 1 << (low == '"' ? 32 : 33);

        } else {
            end = low < '"' ? '!' : low < '\\' ? '[' : LAST;
            end = end < high ? end : high;
            rc = add_range(f, out, low, end);
        }
    }

    return rc;
}


int
vlm_nfa_class(vlm_nfa_t *f, vlm_class_t *c, vlm_strand_t *out)
{
    int       id;
    uint32_t  i, n, range[VLM_NFA_RANGES][2];
    uint64_t  escaped;

    id = vlm_nfa_link(f, VLM_LINK_SPLIT, VLM_NFA_END, VLM_NFA_END);

    if (id < 0) {
        return -1;
    }

    out->last = (uint16_t) id;
    out->first = VLM_NFA_END;
    n = tidy(c, range);

    for (escaped = 0, i = 0; i < n; i++) {
        if ((f->json ? add_json(f, out, range[i][0], range[i][1], &escaped)
                     : add_range(f, out, range[i][0], range[i][1])) != 0)
        {
            return -1;
        }
    }

    if (escaped != 0 && add_escaped(f, out, escaped) != 0) {
        return -1;
    }

    if (out->first == VLM_NFA_END) {               /* no character: no way through */
        id = vlm_nfa_link(f, VLM_LINK_SPLIT, VLM_NFA_END, VLM_NFA_END);
        out->first = (uint16_t) id;
    }

    return id < 0 ? -1 : 0;
}


/* ---- sets of links ------------------------------------------------------- */


static int
by_number(const void *a, const void *b)
{
    const uint16_t  *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}


/* Follows splits from a link; kept are those that read bytes, and those at which a text may end. */
static void
follow(set_t *s, uint32_t from, int begins, int ends)
{
    uint32_t           n;
    uint16_t           i, to[2];
    const vlm_link_t  *l;

    n = 0;
    s->stack[n++] = (uint16_t) from;

    while (n > 0) {
        i = s->stack[--n];

        if (i == VLM_NFA_END || s->marks[i] == s->mark) {
            continue;
        }

        s->marks[i] = s->mark;
        s->work++;
        l = &s->f->link[i];
        to[0] = to[1] = VLM_NFA_END;

        if (l->kind == VLM_LINK_SPLIT || (l->kind == VLM_LINK_BEGIN && begins)
            || (l->kind == VLM_LINK_END && ends))
        {
            to[0] = l->a;
            to[1] = l->kind == VLM_LINK_SPLIT ? l->b : VLM_NFA_END;

        } else if (l->kind != VLM_LINK_BEGIN) {
            s->found[s->n_found++] = i;
        }

        /* Each link is marked once and puts two on the stack, which has room for both. */

        s->stack[n++] = to[1];
        s->stack[n++] = to[0];
    }
}


/* Beyond the bound on work there is no way on; the explorer finds the error. */
static uint32_t
put_key(set_t *s, uint8_t *key)
{
    int  rc;

    rc = vlm_grammar_step(s->f->k, s->work + 4 * s->n_found);
    s->work = 0;

    if (rc != 0) {
        return 0;
    }

    qsort(s->found, s->n_found, sizeof(*s->found), by_number);
    memcpy(key, s->found, s->n_found * sizeof(*s->found));

    return s->n_found * (uint32_t) sizeof(*s->found);
}


static uint32_t
set_start(void *data, uint8_t *key)
{
    set_t  *s = data;

    s->mark++;
    s->n_found = 0;
    follow(s, s->f->start, 1, 0);

    return put_key(s, key);
}


static uint32_t
set_step(void *data, const uint8_t *key, uint32_t n, uint8_t byte, uint8_t *to)
{
    set_t             *s = data;
    uint16_t           id;
    uint32_t           i;
    const vlm_link_t  *l;

    s->mark++;
    s->n_found = 0;

    for (i = 0; i < n; i += (uint32_t) sizeof(id)) {
        memcpy(&id, key + i, sizeof(id));
        l = &s->f->link[id];

        if (l->kind == VLM_LINK_BYTES && byte >= l->low && byte <= l->high) {
            follow(s, l->a, 0, 0);
        }
    }

    return put_key(s, to);
}


static int
set_ends(void *data, const uint8_t *key, uint32_t n)
{
    set_t     *s = data;
    uint16_t   id;
    uint32_t   i;

    s->mark++;
    s->n_found = 0;

    for (i = 0; i < n; i += (uint32_t) sizeof(id)) {
        memcpy(&id, key + i, sizeof(id));
        follow(s, id, 0, 1);
    }

    for (i = 0; i < s->n_found && s->f->link[s->found[i]].kind != VLM_LINK_MATCH; i++) {
        /* void */
    }

    return i < s->n_found;
}


/* Bytes that no range tells apart are a class. */
static void
find_classes(const vlm_nfa_t *f, vlm_explore_t *e)
{
    uint8_t   begins[257] = { 0 };
    uint32_t  i, c;

    for (i = 0; i < f->n; i++) {
        if (f->link[i].kind == VLM_LINK_BYTES) {
            begins[f->link[i].low] = 1;
            begins[f->link[i].high + 1] = 1;
        }
    }

    for (c = 0, i = 0; i < 256; i++) {
        c += (uint32_t) (i > 0 && begins[i]);
        e->class_of[i] = (uint8_t) c;
    }

    e->n_classes = c + 1;
}


static int
open_set(set_t *s)
{
    const size_t  n = s->f->n;

    s->marks = calloc(n, sizeof(*s->marks));
    s->stack = calloc(3 * n + 3, sizeof(*s->stack));
    s->found = calloc(n, sizeof(*s->found));

    return s->marks == NULL || s->stack == NULL || s->found == NULL ? -1 : 0;
}


static void
close_set(set_t *s)
{
    free(s->marks);
    free(s->stack);
    free(s->found);
}


static vlm_dfa_t *
determine(vlm_nfa_t *f)
{
    set_t          s = { .f = f };
    vlm_dfa_t     *d;
    vlm_explore_t  e = { .data = &s, .start = set_start, .step = set_step, .ends = set_ends };

    find_classes(f, &e);
    e.key_bytes = (f->n + 1) * (uint32_t) sizeof(uint16_t);
    d = NULL;

    if (open_set(&s) == 0) {
        d = vlm_dfa_explore(f->k, &e);
    } else {
        (void) vlm_fail(f->k->err, VLM_EMEMORY, "no memory for a pattern");
    }

    close_set(&s);

    return d;
}


/* Any characters, as often as one likes. */
static int
any(vlm_nfa_t *f, vlm_strand_t *out)
{
    int          id;
    vlm_class_t  c = { 0 };

    vlm_class_add(&c, 1, LAST);

    if (vlm_nfa_class(f, &c, out) != 0
        || (id = vlm_nfa_link(f, VLM_LINK_SPLIT, out->first, VLM_NFA_END)) < 0)
    {
        return -1;
    }

    f->link[out->last].a = (uint16_t) id;
    out->first = out->last = (uint16_t) id;

    return 0;
}


/* 1: every text that matches has the expression at its beginning, so that none comes before. */
static int
anchored(const vlm_nfa_t *f, uint16_t first)
{
    int    is;
    set_t  s = { .f = f, .mark = 1 };

    is = open_set(&s) == 0;

    if (is) {
        follow(&s, first, 0, 0);
        is = s.n_found == 0;
    }

    close_set(&s);

    return is;
}


vlm_dfa_t *
vlm_nfa_whole(vlm_nfa_t *f, const vlm_strand_t *found)
{
    int  match, end;

    match = vlm_nfa_link(f, VLM_LINK_MATCH, VLM_NFA_END, 0);
    end = match < 0 ? -1 : vlm_nfa_link(f, VLM_LINK_END, (uint16_t) match, 0);

    if (end < 0) {
        return NULL;
    }

    f->start = found->first;
    f->link[found->last].a = (uint16_t) end;

    return determine(f);
}


vlm_dfa_t *
vlm_nfa_compile(vlm_nfa_t *f, const char *expression, size_t bytes, int whole)
{
    int           match;
    vlm_strand_t  before, found, behind;

    if (vlm_expression_read(f, expression, bytes, &found) != 0) {
        return NULL;
    }

    f->at = 0;

    if (whole) {
        return vlm_nfa_whole(f, &found);
    }

    match = vlm_nfa_link(f, VLM_LINK_MATCH, VLM_NFA_END, 0);

    if (match < 0) {
        return NULL;
    }

    f->start = found.first;

    if (!anchored(f, found.first)) {
        if (any(f, &before) != 0) {
            return NULL;
        }

        f->link[before.last].b = found.first;
        f->start = before.first;
    }

    if (any(f, &behind) != 0) {
        return NULL;
    }

    f->link[found.last].a = behind.first;
    f->link[behind.last].b = (uint16_t) match;

    return determine(f);
}
