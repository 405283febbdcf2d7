/*
 * Reads a regular expression.  A part that is repeated is read again for each further time, so that
 * there is no tree of it.
 */

#include "grammar/nfa.h"

#include <string.h>

#include "base/utf8.h"

#define NESTED  64                     /* groups within each other */
#define TIMES   10000
#define ASCII   0x7f
#define LAST    0x10ffff

typedef struct {
    vlm_nfa_t   *f;
    const char  *text;
    size_t       at, bytes;
    uint32_t     depth;
} reader_t;

static int read_all(reader_t *r, vlm_strand_t *out);


static int
refuse(reader_t *r, const char *what)
{
    if (r->f->what == NULL) {
        r->f->what = what;
        r->f->at = r->at;
    }

    return -1;
}


/* The byte that comes next; 0: none. */
static char
peek(const reader_t *r)
{
    return r->at < r->bytes ? r->text[r->at] : '\0';
}


static int
starts(const reader_t *r, const char *with)
{
    size_t  n = strlen(with);

    return r->bytes - r->at >= n && memcmp(r->text + r->at, with, n) == 0;
}


static int
character(reader_t *r, uint32_t *code)
{
    size_t  n;

    n = vlm_utf8((const uint8_t *) r->text + r->at, r->bytes - r->at, code);

    if (n == 0 || *code == 0) {
        return refuse(r, "has a character that cannot be");
    }

    r->at += n;

    return 0;
}


/* ---- parts of the graph -------------------------------------------------- */


static int
nothing(reader_t *r, vlm_strand_t *out)
{
    int  id;

    id = vlm_nfa_link(r->f, VLM_LINK_SPLIT, VLM_NFA_END, VLM_NFA_END);
    out->first = out->last = (uint16_t) id;

    return id < 0 ? -1 : 0;
}


static void
join(reader_t *r, vlm_strand_t *a, const vlm_strand_t *b)
{
    r->f->link[a->last].a = b->first;
    a->last = b->last;
}


/* A part that comes again and again: at least once, or not at all. */
static int
loop(reader_t *r, vlm_strand_t *p, int skip)
{
    int  first, last;

    last = vlm_nfa_link(r->f, VLM_LINK_SPLIT, VLM_NFA_END, VLM_NFA_END);
    first = last < 0 ? -1 : vlm_nfa_link(r->f, VLM_LINK_SPLIT, p->first,
                                         skip ? (uint16_t) last : VLM_NFA_END);

    if (first < 0) {
        return -1;
    }

    r->f->link[p->last].a = (uint16_t) first;

    if (!skip) {
        r->f->link[p->last].b = (uint16_t) last;
    }

    p->first = (uint16_t) first;
    p->last = (uint16_t) last;

    return 0;
}


/* A part that may be left out, with all that follow it up to an end. */
static int
option(reader_t *r, vlm_strand_t *p, uint16_t end)
{
    int  first;

    first = vlm_nfa_link(r->f, VLM_LINK_SPLIT, p->first, end);
    p->first = (uint16_t) first;

    return first < 0 ? -1 : 0;
}


/* ---- classes ------------------------------------------------------------- */


/*
 * Of \d, \w, \s and their opposites; wide: with all characters that some dialect counts among
 * them, so that what is left out of a class is out in all.
 */
static int
shorthand(vlm_class_t *c, char letter, int wide)
{
    vlm_class_t  own = { 0 };

    switch (letter | 0x20) {
    case 'd':
        vlm_class_add(&own, '0', '9');
        break;
    case 'w':
        vlm_class_add(&own, '0', '9');
        vlm_class_add(&own, 'A', 'Z');
        vlm_class_add(&own, '_', '_');
        vlm_class_add(&own, 'a', 'z');
        break;
    case 's':
        vlm_class_add(&own, '\t', '\r');
        vlm_class_add(&own, ' ', ' ');
        break;
    default:
        return 0;
    }

    if (letter == 'S' && !wide) {
        vlm_class_add(&own, 0x1c, 0x1f);
    }

    if (letter == 's' && wide) {
        vlm_class_add(&own, 0x1c, 0x1f);
    }

    if (letter < 'a') {
        if (!wide) {
            vlm_class_add(&own, ASCII + 1, LAST);
        }

        vlm_class_invert(&own);

    } else if (wide) {
        vlm_class_add(&own, ASCII + 1, LAST);
    }

    while (own.n-- > 0) {
        vlm_class_add(c, own.low[own.n], own.high[own.n]);
    }

    return 1;
}


static int
hex(reader_t *r, uint32_t digits, uint32_t *code)
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


/* Behind a backslash: one character, or 1 where it was a shorthand that c now has. */
static int
escape(reader_t *r, vlm_class_t *c, int wide, uint32_t *code)
{
    char         letter;
    const char  *p;
    static const char  letters[] = "t\tn\nr\rf\fv\v";

    letter = peek(r);

    if (shorthand(c, letter, wide)) {
        r->at++;
        return 1;
    }

    p = letter == '\0' ? NULL : strchr(letters, letter);

    if (p != NULL && (p - letters) % 2 == 0) {
        r->at++;
        *code = (uint32_t) p[1];
        return 0;
    }

    if (letter == 'x' || letter == 'u') {
        r->at++;

        if (hex(r, letter == 'x' ? 2 : 4, code) != 0) {
            return -1;
        }

        return *code == 0 || (*code >= 0xd800 && *code < 0xe000)
               ? refuse(r, "names a character that cannot be") : 0;
    }

    if ((letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z')
        || (letter >= 'A' && letter <= 'Z') || letter == '\0')
    {
        return refuse(r, "has an escape that is not supported");
    }

    return character(r, code);
}


/* One end of a range.  1: a shorthand, which has none. */
static int
one_end(reader_t *r, vlm_class_t *c, int wide, uint32_t *code)
{
    if (peek(r) != '\\') {
        return character(r, code);
    }

    r->at++;

    if (peek(r) == 'b') {
        r->at++;
        *code = '\b';
        return 0;
    }

    return escape(r, c, wide, code);
}


/* Both of \s and \S, or of such a pair: every character, in any dialect. */
static int
is_pair(const reader_t *r, size_t from)
{
    size_t       i;
    char         letter;
    unsigned     seen[2] = { 0, 0 };
    const char  *p;
    static const char  kinds[] = "dws";

    for (i = from; i + 1 < r->at; i++) {
        letter = r->text[i + 1];
        p = r->text[i] != '\\' || letter == '\0' ? NULL : strchr(kinds, letter | 0x20);
        i += (size_t) (r->text[i] == '\\');

        if (p != NULL) {
            seen[letter < 'a'] |= 1u << (p - kinds);
        }
    }

    return (seen[0] & seen[1]) != 0;
}


static int
bracket(reader_t *r, vlm_strand_t *out)
{
    int          rc, invert;
    size_t       from = r->at;
    uint32_t     low, high;
    vlm_class_t  c = { 0 };

    r->at++;
    invert = peek(r) == '^';
    r->at += (size_t) invert;

    if (peek(r) == ']') {
        return refuse(r, "has a class of no character");
    }

    while (peek(r) != ']') {
        if (r->at == r->bytes || starts(r, "[:")) {
            return refuse(r, "has no end of a class, or a class by name");
        }

        rc = one_end(r, &c, invert, &low);

        if (rc < 0) {
            return -1;
        }

        if (rc > 0) {
            if (starts(r, "-") && !starts(r, "-]")) {
                return refuse(r, "has a range that begins with a class");
            }

            continue;
        }

        high = low;

        if (starts(r, "-") && !starts(r, "-]")) {
            r->at++;
            rc = one_end(r, &c, invert, &high);

            if (rc != 0 || high < low) {
                return refuse(r, "has a range that is none");
            }
        }

        vlm_class_add(&c, low, high);

        if (c.n == VLM_NFA_RANGES) {
            return refuse(r, "has a class of too many parts");
        }
    }

    r->at++;

    if (is_pair(r, from)) {
        c.n = 0;
        vlm_class_add(&c, 0, LAST);
    }

    if (invert) {
        vlm_class_invert(&c);
    }

    return vlm_nfa_class(r->f, &c, out);
}


/* ---- expressions --------------------------------------------------------- */


static int
group(reader_t *r, vlm_strand_t *out)
{
    const char  *p;

    r->at++;

    if (starts(r, "?:")) {
        r->at += 2;

    } else if (starts(r, "?P<") || (starts(r, "?<") && !starts(r, "?<=") && !starts(r, "?<!"))) {
        p = memchr(r->text + r->at, '>', r->bytes - r->at);

        if (p == NULL) {
            return refuse(r, "has a name without an end");
        }

        r->at = (size_t) (p - r->text) + 1;

    } else if (peek(r) == '?') {
        return refuse(r, "looks ahead or behind, or sets a flag, which is not supported");
    }

    if (r->depth++ == NESTED) {
        return refuse(r, "has too many groups within each other");
    }

    if (read_all(r, out) != 0) {
        return -1;
    }

    if (peek(r) != ')') {
        return refuse(r, "has a bracket that is not closed");
    }

    r->at++;
    r->depth--;

    return 0;
}


static int
assertion(reader_t *r, uint8_t kind, vlm_strand_t *out)
{
    int  id;

    r->at++;
    id = vlm_nfa_link(r->f, kind, VLM_NFA_END, 0);
    out->first = out->last = (uint16_t) id;

    return id < 0 ? -1 : 0;
}


static int
atom(reader_t *r, vlm_strand_t *out)
{
    int          rc;
    uint32_t     code;
    vlm_class_t  c = { 0 };

    switch (peek(r)) {
    case '(':
        return group(r, out);
    case '[':
        return bracket(r, out);
    case '^':
        return assertion(r, VLM_LINK_BEGIN, out);
    case '$':
        return assertion(r, VLM_LINK_END, out);
    case '.':
        r->at++;
        vlm_class_add(&c, '\n', '\n');
        vlm_class_add(&c, '\r', '\r');
        vlm_class_add(&c, 0x2028, 0x2029);
        vlm_class_invert(&c);
        return vlm_nfa_class(r->f, &c, out);
    case '*':
    case '+':
    case '?':
        return refuse(r, "repeats nothing");
    case '\\':
        r->at++;
        rc = escape(r, &c, 0, &code);
        break;
    default:
        rc = character(r, &code);
    }

    if (rc == 0) {
        vlm_class_add(&c, code, code);
    }

    return rc < 0 ? -1 : vlm_nfa_class(r->f, &c, out);
}


static int
number(reader_t *r, uint32_t *n)
{
    size_t  from = r->at;

    for (*n = 0; peek(r) >= '0' && peek(r) <= '9' && *n <= TIMES; r->at++) {
        *n = *n * 10 + (uint32_t) (peek(r) - '0');
    }

    return r->at > from && *n <= TIMES ? 0 : -1;
}


/* 1: a repetition stands here, from low to high times (UINT32_MAX: any).  "{" may be a letter. */
static int
times(reader_t *r, uint32_t *low, uint32_t *high)
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

    r->at += (size_t) (peek(r) == '?');            /* as few as can be: the same texts */

    return peek(r) == '+' || peek(r) == '*' || peek(r) == '?' || peek(r) == '{'
           ? refuse(r, "repeats a repetition") : 1;
}


/* The atom from a place on, so many times; p has its first. */
static int
repeat(reader_t *r, size_t from, uint32_t low, uint32_t high, vlm_strand_t *p, vlm_strand_t *out)
{
    uint32_t      i;
    vlm_strand_t  end;

    if (nothing(r, out) != 0 || nothing(r, &end) != 0) {
        return -1;
    }

    for (i = 0; high > 0 && (i == 0 || i < low || (i < high && high != UINT32_MAX)); i++) {
        r->at = from;

        if ((i > 0 && atom(r, p) != 0)
            || (high == UINT32_MAX && i + 1 >= low && loop(r, p, low == 0) != 0)
            || (high != UINT32_MAX && i >= low && option(r, p, end.first) != 0)
            || vlm_grammar_step(r->f->k, 16) != 0)
        {
            return -1;
        }

        join(r, out, p);
    }

    join(r, out, &end);

    return 0;
}


/* An atom is read again for each further time that it may come. */
static int
repeated(reader_t *r, vlm_strand_t *out)
{
    int           rc;
    size_t        from, end;
    uint32_t      low, high;
    vlm_strand_t  p;

    from = r->at;

    if (atom(r, &p) != 0) {
        return -1;
    }

    rc = times(r, &low, &high);
    end = r->at;

    if (rc <= 0) {
        *out = p;
        return rc;
    }

    rc = repeat(r, from, low, high, &p, out);
    r->at = rc == 0 ? end : r->at;

    return rc;
}


/* Alternatives, to the end or to a bracket that closes. */
static int
read_all(reader_t *r, vlm_strand_t *out)
{
    int         first, last;
    vlm_strand_t  one, p;

    last = vlm_nfa_link(r->f, VLM_LINK_SPLIT, VLM_NFA_END, VLM_NFA_END);
    first = -1;

    do {
        r->at += (size_t) (first >= 0);            /* the stroke */

        if (last < 0 || nothing(r, &one) != 0) {
            return -1;
        }

        while (r->at < r->bytes && peek(r) != '|' && peek(r) != ')') {
            if (repeated(r, &p) != 0) {
                return -1;
            }

            join(r, &one, &p);
        }

        r->f->link[one.last].a = (uint16_t) last;
        first = vlm_nfa_link(r->f, VLM_LINK_SPLIT, one.first,
                             first < 0 ? VLM_NFA_END : (uint16_t) first);

        if (first < 0) {
            return -1;
        }
    } while (peek(r) == '|');

    out->first = (uint16_t) first;
    out->last = (uint16_t) last;

    return 0;
}


int
vlm_expression_read(vlm_nfa_t *f, const char *text, size_t bytes, vlm_strand_t *out)
{
    reader_t  r = { f, text, 0, bytes, 0 };

    if (read_all(&r, out) != 0) {
        if (f->what == NULL) {
            f->what = "makes it too large";
        }

        return -1;
    }

    return r.at == bytes ? 0 : refuse(&r, "has a bracket that closes nothing");
}
