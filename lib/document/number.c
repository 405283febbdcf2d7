/*
 * Numbers in texts.  Digits are collected in groups with the separators between them; then the
 * groups are read as thousands and decimals in each way that holds.
 */

#include "document/number.h"

#include "base/utf8.h"

#define GROUPS  12                         /* of one number; a longer run is several */

/* Separators, by what they may stand for. */
#define POINT       '.'
#define COMMA       ','
#define APOSTROPHE  '\''
#define SPACE       ' '

typedef struct {
    size_t    first, end;                  /* bytes */
    size_t    digits;
    uint32_t  mark;                        /* the separator before it */
} group_t;

typedef struct {
    const char  *text;
    size_t       bytes;
    group_t      group[GROUPS];
    size_t       n;
} run_t;


/* Zeros of the scripts whose digits stand in texts. */
static const uint32_t  zeros[] = {
    '0', 0x660, 0x6f0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xff10
};


/* The value of a digit; -1: it is none. */
static int
digit_of(uint32_t code)
{
    size_t  i;

    for (i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++) {
        if (code >= zeros[i] && code <= zeros[i] + 9) {
            return (int) (code - zeros[i]);
        }
    }

    return -1;
}


/* The kind of a separator; 0: it is none. */
static uint32_t
mark_of(uint32_t code)
{
    switch (code) {
    case '.':
    case 0xff0e:
    case 0x66b:                            /* Arabic decimal separator */
        return POINT;
    case ',':
    case 0xff0c:
    case 0x66c:                            /* Arabic thousands separator */
        return COMMA;
    case '\'':
    case 0x2019:
        return APOSTROPHE;
    case ' ':
    case 0xa0:
    case 0x2009:
    case 0x202f:
        return SPACE;
    default:
        return 0;
    }
}


/* The character at byte at, and its length; 0: the end, or not UTF-8. */
static size_t
code_at(const char *text, size_t bytes, size_t at, uint32_t *code)
{
    return at < bytes ? vlm_utf8((const unsigned char *) text + at, bytes - at, code) : 0;
}


/* Collects the digits from byte at on. */
static void
read_digits(const char *text, size_t bytes, size_t at, group_t *g)
{
    size_t    len;
    uint32_t  code;

    g->first = at;
    g->digits = 0;

    while ((len = code_at(text, bytes, at, &code)) > 0 && digit_of(code) >= 0) {
        at += len;
        g->digits++;
    }

    g->end = at;
}


/* A space is within a number only before three digits. */
static int
joins(const group_t *last, const group_t *next, uint32_t mark)
{
    return next->digits > 0
           && ((mark != SPACE && mark != APOSTROPHE)
               || (next->digits == 3 && last->digits <= 3));
}


static void
read_run(run_t *r, size_t at)
{
    size_t    len;
    group_t   next;
    uint32_t  code, mark;

    read_digits(r->text, r->bytes, at, &r->group[0]);
    r->group[0].mark = 0;

    for (r->n = 1; r->n < GROUPS; r->n++) {
        at = r->group[r->n - 1].end;
        len = code_at(r->text, r->bytes, at, &code);
        mark = len > 0 ? mark_of(code) : 0;

        if (mark == 0) {
            return;
        }

        read_digits(r->text, r->bytes, at + len, &next);

        if (!joins(&r->group[r->n - 1], &next, mark)) {
            return;
        }

        next.mark = mark;
        r->group[r->n] = next;
    }
}


/* FNV-1a of the digits that count, with a point before the first decimal that does. */
typedef struct {
    uint64_t  hash;
    size_t    zeros;                       /* decimals that count if another digit follows */
    int       begun;                       /* a digit other than 0 stood before the decimals */
    int       pointed;
} value_t;


static void
add(value_t *v, int c)
{
    v->hash = (v->hash ^ (uint64_t) (unsigned char) c) * 1099511628211u;
}


static void
add_whole(value_t *v, int digit)
{
    v->begun |= digit != 0;

    if (v->begun) {
        add(v, '0' + digit);
    }
}


static void
add_decimal(value_t *v, int digit)
{
    if (digit == 0) {
        v->zeros++;
        return;
    }

    if (!v->pointed) {
        v->pointed = 1;
        add(v, '.');
    }

    for ( ; v->zeros > 0; v->zeros--) {
        add(v, '0');
    }

    add(v, '0' + digit);
}


/* The groups up to n are whole, those behind them decimals. */
static uint64_t
value_of(const run_t *r, size_t first, size_t whole, size_t end)
{
    size_t    i, at, len;
    value_t   v = { .hash = 14695981039346656037u };
    uint32_t  code;

    for (i = first; i < end; i++) {
        for (at = r->group[i].first; at < r->group[i].end; at += len) {
            len = code_at(r->text, r->bytes, at, &code);

            if (i < whole) {
                add_whole(&v, digit_of(code));
            } else {
                add_decimal(&v, digit_of(code));
            }
        }
    }

    return v.hash;
}


/* Are the groups up to n, of two or more, thousands?  India has groups of two before the last. */
static int
is_thousands(const run_t *r, size_t n)
{
    size_t    i;
    uint32_t  mark = r->group[1].mark;

    if (r->group[0].digits > 3 || r->group[n - 1].digits != 3) {
        return 0;
    }

    for (i = 1; i < n; i++) {
        if (r->group[i].mark != mark
            || (r->group[i].digits != 3 && (r->group[i].digits != 2 || mark != COMMA)))
        {
            return 0;
        }
    }

    return 1;
}


static int
is_decimal_mark(const run_t *r, uint32_t mark)
{
    return (mark == POINT || mark == COMMA) && (r->n == 2 || mark != r->group[1].mark);
}


static void
add_value(vlm_number_t *n, uint64_t value)
{
    n->value[n->n_values++] = value;
}


/* The ways to read all groups; none: they are several numbers. */
static void
read_values(vlm_number_t *n, const run_t *r)
{
    const size_t  last = r->n - 1;

    n->n_values = 0;

    if (r->n == 1) {
        add_value(n, value_of(r, 0, 1, 1));
        return;
    }

    if (is_thousands(r, r->n) && !(r->n == 2 && r->group[0].digits == 0)) {
        add_value(n, value_of(r, 0, r->n, r->n));
    }

    if (is_decimal_mark(r, r->group[last].mark) && (last == 1 || is_thousands(r, last))) {
        add_value(n, value_of(r, 0, last, r->n));
    }
}


/* A number such as .05: a point behind no letter or digit, and before digits. */
static int
begins_with_point(const run_t *r)
{
    const size_t  at = r->group[0].first;

    return r->n == 1 && at > 0 && r->text[at - 1] == '.'
           && (at == 1 || r->text[at - 2] == ' ' || r->text[at - 2] == '\n'
               || r->text[at - 2] == '\t' || r->text[at - 2] == '(');
}


static void
read_number(vlm_number_t *n, const char *text, size_t bytes, size_t at)
{
    run_t  r = { .text = text, .bytes = bytes };

    if (at < n->single) {
        read_digits(text, bytes, at, &r.group[0]);
        r.n = 1;
    } else {
        read_run(&r, at);
    }

    read_values(n, &r);

    if (n->n_values == 0) {
        n->single = r.group[r.n - 1].end;
        r.n = 1;
        read_values(n, &r);

    } else if (at >= n->single && begins_with_point(&r)) {
        add_value(n, value_of(&r, 0, 0, 1));
    }

    n->first = at;
    n->bytes = r.group[r.n - 1].end - at;
}


int
vlm_number_next(vlm_number_t *number, const char *text, size_t bytes)
{
    size_t    at, len;
    uint32_t  code;

    for (at = number->first + number->bytes; at < bytes; at += len) {
        len = code_at(text, bytes, at, &code);

        if (len == 0) {
            len = 1;
            continue;
        }

        if (digit_of(code) >= 0) {
            read_number(number, text, bytes, at);
            return 1;
        }
    }

    return 0;
}
