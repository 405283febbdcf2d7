/*
 * Readers for the pieces that coordinates are written in.  The text comes from a model, so none of
 * it is trusted to be JSON or XML, and shapes.c skips text that is no piece.  Every function is
 * linear in the bytes that it reads, and stops at the next bracket, quote or tag when it fails, so
 * that the whole is linear, too.
 */

#include "robobrain/shapes_read.h"

#include <math.h>
#include <string.h>

#define MAX_UNIT  1e9                  /* digits behind the point that count */
#define MAX_AXES  (VLM_MAX_TUPLE / 2)


static int
is_digit(char c)
{
    return c >= '0' && c <= '9';
}


static int
is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}


/* The signs of Chinese and Japanese keyboards, and the typographic minus. */
static int
read_wide_mark(const char *p, const char *end, size_t *bytes)
{
    size_t                    i;
    static const struct {
        char  text[4], mark;
    } marks[] = {
        { "\uff08", '(' }, { "\uff09", ')' }, { "\uff3b", '[' }, { "\uff3d", ']' },
        { "\u3010", '[' }, { "\u3011", ']' }, { "\uff0c", ',' }, { "\u3001", ',' },
        { "\uff1b", ',' }, { "\uff1a", ':' }, { "\uff0d", '-' }, { "\u2212", '-' },
        { "\u3000", ' ' }
    };

    for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (end - p >= 3 && memcmp(p, marks[i].text, 3) == 0) {
            *bytes = 3;
            return marks[i].mark;
        }
    }

    return 0;
}


int
vlm_scan_mark(const char *p, const char *end, size_t *bytes)
{
    *bytes = 1;

    switch (*p) {

    case '(': case ')': case '[': case ']': case ',': case '-': case '+': case ':':
        return *p;

    case ';':
        return ',';

    case ' ': case '\t': case '\r': case '\n':
        return ' ';

    default:
        return (*p & 0x80) ? read_wide_mark(p, end, bytes) : 0;
    }
}


/* Returns the end of the mark at p; or p itself: another character is there. */
static const char *
skip_mark(const char *p, const char *end, int mark)
{
    size_t  n;

    return (p < end && vlm_scan_mark(p, end, &n) == mark) ? p + n : p;
}


const char *
vlm_skip_blanks(const char *p, const char *end)
{
    const char  *q;

    while ((q = skip_mark(p, end, ' ')) != p) {
        p = q;
    }

    return p;
}


const char *
vlm_scan_number(double *v, const char *p, const char *end)
{
    int          n_digits;
    double       value, unit;
    const char  *first;

    first = skip_mark(p, end, '-');
    unit = first == p ? 1 : -1;
    p = first == p ? skip_mark(p, end, '+') : first;

    value = 0;

    for (n_digits = 0; p < end && is_digit(*p); p++, n_digits = 1) {
        value = value * 10 + (*p - '0');           /* infinity at worst */
    }

    if (p < end && *p == '.') {
        for (p++; p < end && is_digit(*p); p++, n_digits = 1) {
            if (fabs(unit) < MAX_UNIT) {
                value = value * 10 + (*p - '0');
                unit *= 10;
            }
        }
    }

    value /= unit;                     /* one rounding: 0.1 is the double that is nearest to it */

    if (n_digits == 0 || !(fabs(value) <= VLM_MAX_COORDINATE)) {
        return NULL;
    }

    if (end - p >= 2 && p[0] == 'p' && p[1] == 'x') {
        p += 2;
    }

    if (p < end && (is_word(*p) || *p == '.' || *p == '%')) {
        return NULL;
    }

    *v = value;

    return p;
}


int
vlm_scan_axis(const char *name, size_t bytes)
{
    size_t  i;
    int     n;

    if (bytes == 0 || bytes > 4 || memchr("xyXY", name[0], 4) == NULL) {
        return -1;
    }

    for (n = 0, i = 1; i < bytes; i++) {
        if (!is_digit(name[i])) {
            return -1;
        }

        n = n * 10 + (name[i] - '0');
    }

    n = n == 0 ? 0 : n - 1;

    return n < MAX_AXES ? 2 * n + ((name[0] | 0x20) == 'y') : -1;
}


/* Returns the end of "x1 =" or "y:"; or p itself. */
static const char *
skip_name(const char *p, const char *end)
{
    const char  *q, *r;

    for (q = p; q < end && is_word(*q); q++) { /* void */ }

    if (vlm_scan_axis(p, (size_t) (q - p)) < 0) {
        return p;
    }

    q = vlm_skip_blanks(q, end);
    r = skip_mark(q, end, ':');
    r = (r == q && q < end && *q == '=') ? q + 1 : r;

    return r == q ? p : vlm_skip_blanks(r, end);
}


const char *
vlm_scan_numbers(vlm_tuple_t *t, const char *p, const char *end)
{
    double       v;
    const char  *q, *next;

    t->n = 0;
    next = vlm_skip_blanks(p, end);

    while ((q = vlm_scan_number(&v, skip_name(next, end), end)) != NULL) {
        if (t->n < VLM_MAX_TUPLE) {
            t->v[t->n++] = v;
        }

        next = vlm_skip_blanks(q, end);
        next = vlm_skip_blanks(skip_mark(next, end, ','), end);

        if (next == q) {
            return q;
        }
    }

    return t->n == 0 ? p : next;
}


const char *
vlm_scan_tuple(vlm_tuple_t *t, const char *p, const char *end)
{
    int          open;
    size_t       n;
    const char  *q;

    open = vlm_scan_mark(p, end, &n);
    p = vlm_scan_numbers(t, p + n, end);
    q = skip_mark(p, end, open == '(' ? ')' : ']');

    return (q == p || t->n == 0) ? NULL : q;
}


const char *
vlm_scan_string(const char *p, const char *end)
{
    char  quote;

    for (quote = *p++; p < end && *p != quote; p++) {
        if (*p == '\\' && ++p == end) {
            break;
        }
    }

    return p < end ? p : NULL;
}


/* Returns the end of name="value" at p; or NULL. */
static const char *
read_attribute(vlm_tag_t *t, const char *p, const char *end)
{
    int          axis;
    double       v;
    size_t       n;
    const char  *value, *last;

    for (n = 0; p + n < end && is_word(p[n]); n++) { /* void */ }

    if (n == 0 || (size_t) (end - p) < n + 2 || p[n] != '='
        || (p[n + 1] != '"' && p[n + 1] != '\''))
    {
        return NULL;
    }

    last = vlm_scan_string(p + n + 1, end);

    if (last == NULL) {
        return NULL;
    }

    value = p + n + 2;

    axis = vlm_scan_axis(p, n);

    if (axis >= 0) {
        /* If an x lacks its y, all coordinates are dropped. */

        if (axis % 2 != (int) (t->places.n % 2) || vlm_scan_number(&v, value, last) != last) {
            t->places.n = 0;
            return NULL;
        }

        if (t->places.n < VLM_MAX_TUPLE) {
            t->places.v[t->places.n++] = v;
        }

    } else if ((n == 3 && memcmp(p, "alt", 3) == 0) || (n == 5 && memcmp(p, "label", 5) == 0)) {
        t->label = value;
        t->label_bytes = (size_t) (last - value);
    }

    return last + 1;
}


const char *
vlm_scan_tag(vlm_tag_t *t, const char *p, const char *end)
{
    const char  *last;

    memset(t, 0, offsetof(vlm_tag_t, places));
    t->places.n = 0;

    for (last = ++p; last < end && *last != '<' && *last != '>'; last++) { /* void */ }

    if (last == end || *last != '>') {
        return NULL;
    }

    t->closes = *p == '/';
    p += *p == '/' || *p == '|';
    t->name = p;

    while (p < last && is_word(*p)) {
        p++;
    }

    t->name_bytes = (size_t) (p - t->name);
    t->closes |= t->name_bytes > 4 && memcmp(p - 4, "_end", 4) == 0;

    while (p != NULL && p < last) {
        p = vlm_skip_blanks(p, last);
        p = p < last ? read_attribute(t, p, last) : NULL;
    }

    return last + 1;
}


/* Four hexadecimal digits at p, or -1. */
static int32_t
read_hex(const char *p, const char *end)
{
    int      i;
    int32_t  v;

    if (end - p < 4) {
        return -1;
    }

    for (v = 0, i = 0; i < 4; i++) {
        if (is_digit(p[i])) {
            v = v * 16 + (p[i] - '0');

        } else if ((p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'f') {
            v = v * 16 + ((p[i] | 0x20) - 'a' + 10);

        } else {
            return -1;
        }
    }

    return v;
}


/*
 * Reads \uXXXX, or two of them that are one character, and returns their end.  A broken one becomes
 * a '?'.
 */
static const char *
read_escaped(uint32_t *c, const char *p, const char *end)
{
    int32_t  high, low;

    *c = '?';
    high = read_hex(p, end);

    if (high < 0) {
        return p;
    }

    p += 4;

    if (high < 0xd800 || high > 0xdfff) {
        *c = (uint32_t) high;
        return p;
    }

    low = (end - p >= 6 && p[0] == '\\' && p[1] == 'u') ? read_hex(p + 2, end) : -1;

    if (high < 0xdc00 && low >= 0xdc00 && low <= 0xdfff) {
        *c = 0x10000 + (((uint32_t) high - 0xd800) << 10) + ((uint32_t) low - 0xdc00);
        p += 6;
    }

    return p;
}


/* Reads one character of UTF-8 and returns its end.  An invalid byte becomes a '?'. */
static const char *
read_character(uint32_t *c, const char *p, const char *end)
{
    int                    i, n;
    uint8_t                lead;
    static const uint32_t  least[] = { 0, 0x80, 0x800, 0x10000 };

    lead = (uint8_t) *p++;
    n = lead < 0x80 ? 0 : lead < 0xc0 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    *c = n <= 0 ? lead : lead & (0x3fu >> n);

    for (i = 0; i < n; i++) {
        if (end - p <= i || ((uint8_t) p[i] & 0xc0) != 0x80) {
            n = -1;
            break;
        }

        *c = *c << 6 | ((uint8_t) p[i] & 0x3f);
    }

    if (n < 0 || *c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff)) {
        *c = '?';
        return p;
    }

    return p + n;
}


/* UTF-8 of c, 1 to 4 bytes. */
static size_t
write_character(char out[4], uint32_t c)
{
    size_t  i, n;

    if (c < 0x80) {
        out[0] = (char) c;
        return 1;
    }

    n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (i = n - 1; i > 0; i--, c >>= 6) {
        out[i] = (char) (0x80 | (c & 0x3f));
    }

    out[0] = (char) ((0xf00u >> n & 0xf0) | c);

    return n;
}


void
vlm_scan_label(char label[64], const char *p, const char *end)
{
    char      out[4];
    size_t    n, at;
    uint32_t  c;

    at = 0;

    while (p < end) {
        if (*p == '\\' && end - p >= 2) {
            p += 2;
            c = (uint8_t) p[-1];

            if (c == 'u') {
                p = read_escaped(&c, p, end);

            } else if (strchr("bfnrt", (int) c) != NULL) {
                c = ' ';
            }

        } else {
            p = read_character(&c, p, end);
        }

        n = write_character(out, c < ' ' || c == 0x7f ? ' ' : c);

        if (n > 63 - at) {
            break;
        }

        memcpy(label + at, out, n);
        at += n;
    }

    label[at] = '\0';
}
