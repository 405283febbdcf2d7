/*
 * Reads a regular expression.  A part that is repeated is read again for each further time, so that
 * there is no tree of it.
 */

#include "grammar/reader.h"

#include <string.h>

#define NESTED  64                     /* groups within each other */
#define ASCII   0x7f
#define LAST    0x10ffff

#define peek    vlm_reader_peek
#define refuse  vlm_reader_refuse
#define starts  vlm_reader_starts

static int read_all(vlm_reader_t *r, vlm_strand_t *out);


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


/* Behind a backslash: one character, or 1 where it was a shorthand that c now has. */
static int
escape(vlm_reader_t *r, vlm_class_t *c, int wide, uint32_t *code)
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

        if (vlm_reader_hex(r, letter == 'x' ? 2 : 4, code) != 0) {
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

    return vlm_reader_character(r, code);
}


/* One end of a range.  1: a shorthand, which has none. */
static int
one_end(vlm_reader_t *r, vlm_class_t *c, int wide, uint32_t *code)
{
    if (peek(r) != '\\') {
        return vlm_reader_character(r, code);
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
is_pair(const vlm_reader_t *r, size_t from)
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
bracket(vlm_reader_t *r, vlm_strand_t *out)
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
group(vlm_reader_t *r, vlm_strand_t *out)
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
assertion(vlm_reader_t *r, uint8_t kind, vlm_strand_t *out)
{
    int  id;

    r->at++;
    id = vlm_nfa_link(r->f, kind, VLM_NFA_END, 0);
    out->first = out->last = (uint16_t) id;

    return id < 0 ? -1 : 0;
}


static int
atom(vlm_reader_t *r, vlm_strand_t *out)
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
        rc = vlm_reader_character(r, &code);
    }

    if (rc == 0) {
        vlm_class_add(&c, code, code);
    }

    return rc < 0 ? -1 : vlm_nfa_class(r->f, &c, out);
}


/* Alternatives, to the end or to a bracket that closes. */
static int
read_all(vlm_reader_t *r, vlm_strand_t *out)
{
    int         first, last;
    vlm_strand_t  one, p;

    last = vlm_nfa_link(r->f, VLM_LINK_SPLIT, VLM_NFA_END, VLM_NFA_END);
    first = -1;

    do {
        r->at += (size_t) (first >= 0);            /* the stroke */

        if (last < 0 || vlm_strand_nothing(r->f, &one) != 0) {
            return -1;
        }

        while (r->at < r->bytes && peek(r) != '|' && peek(r) != ')') {
            if (vlm_reader_repeated(r, atom, 1, &p) != 0) {
                return -1;
            }

            vlm_strand_join(r->f, &one, &p);
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
    vlm_reader_t  r = { f, text, 0, bytes, 0 };

    if (read_all(&r, out) != 0) {
        if (f->what == NULL) {
            f->what = "makes it too large";
        }

        return -1;
    }

    return r.at == bytes ? 0 : refuse(&r, "has a bracket that closes nothing");
}
