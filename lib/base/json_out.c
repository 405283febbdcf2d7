/* A writer of JSON over a buffer that grows, in the form of Flask's answers. */

#include "base/json_out.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"


static void put(vlm_json_out_t *w, const char *p, size_t len);
static void separate(vlm_json_out_t *w);
static char *digits(char *end, uint64_t n);
static void put_object(vlm_json_out_t *w,
    const vlm_json_t *j);
static int by_key(const void *one, const void *two);
static char *hex4(char *dst, uint32_t unit);


void
vlm_json_init(vlm_json_out_t *w, size_t limit)
{
    memset(w, 0, sizeof(*w));
    w->limit = limit;
}


static void
put(vlm_json_out_t *w, const char *p, size_t len)
{
    char    *data;
    size_t   size;

    if (w->failed) {
        return;
    }

    if (len > w->limit - w->len) {
        w->failed = 1;
        return;
    }

    if (w->len + len > w->size) {
        size = w->size < 256 ? 256 : w->size;

        while (size < w->len + len) {
            size += size / 2;
        }

        data = realloc(w->data, size);
        if (data == NULL) {
            w->failed = 1;
            return;
        }

        w->data = data;
        w->size = size;
    }

    memcpy(w->data + w->len, p, len);
    w->len += len;
}


/* before a value: writes a comma, if a value preceded */

static void
separate(vlm_json_out_t *w)
{
    if (w->comma) {
        put(w, ",", 1);
    }

    w->comma = 1;
}


void
vlm_json_open(vlm_json_out_t *w, char bracket)
{
    separate(w);
    put(w, &bracket, 1);
    w->comma = 0;
}


void
vlm_json_shut(vlm_json_out_t *w, char bracket)
{
    put(w, &bracket, 1);
    w->comma = 1;
}


void
vlm_json_put_key(vlm_json_out_t *w, const char *key)
{
    vlm_json_put_text(w, key, strlen(key));
    put(w, ":", 1);
    w->comma = 0;
}


void
vlm_json_put_text(vlm_json_out_t *w, const char *text,
    size_t len)
{
    char    buf[6 * 256];
    size_t  n;

    if (text == NULL) {
        vlm_json_put_null(w);
        return;
    }

    separate(w);
    put(w, "\"", 1);

    while (len > 0 && !w->failed) {
        n = len;

        if (n > 256) {

            /* in pieces that end between characters */

            for (n = 256; n > 252 && ((unsigned char) text[n] & 0xc0) == 0x80;
                 n--)
            {
                /* void */
            }
        }

        put(w, buf, vlm_json_escape(buf, text, n));

        text += n;
        len -= n;
    }

    put(w, "\"", 1);
}


void
vlm_json_put_int(vlm_json_out_t *w, int64_t n)
{
    char  *p, *end, buf[24];

    end = buf + sizeof(buf);
    p = digits(end, n < 0 ? - (uint64_t) n : (uint64_t) n);

    if (n < 0) {
        *--p = '-';
    }

    separate(w);
    put(w, p, (size_t) (end - p));
}


/*
 * Without printf(), because an answer may have tens of thousands of them.  Values out of range are
 * written as the number that OpenAI's documentation gives for improbable tokens.
 */

void
vlm_json_put_logprob(vlm_json_out_t *w, double x)
{
    int        i;
    char      *p, *end, buf[32];
    uint64_t   millionths, part;

    millionths = 0;

    if (!(x > -9999)) {
        millionths = 9999000000;

    } else if (x < 0) {
        millionths = (uint64_t) (-x * 1e6 + 0.5);
    }

    part = millionths % 1000000;

    end = buf + sizeof(buf);
    p = end;

    for (i = 0; i < 6; i++) {
        *--p = (char) ('0' + part % 10);
        part /= 10;
    }

    while (end > p + 1 && end[-1] == '0') {
        end--;
    }

    *--p = '.';
    p = digits(p, millionths / 1000000);

    if (millionths > 0) {
        *--p = '-';
    }

    separate(w);
    put(w, p, (size_t) (end - p));
}


/* the beginning of the digits of n that end before "end" */

static char *
digits(char *end, uint64_t n)
{
    do {
        *--end = (char) ('0' + n % 10);
        n /= 10;
    } while (n > 0);

    return end;
}


/* the beginning of a number of hundredths: coordinates are such, and the search below takes long */

static char *
hundredths(char *end, double x)
{
    uint64_t  n;

    n = (uint64_t) (fabs(x) * 100 + 0.5);

    if (n % 10 != 0) {
        *--end = (char) ('0' + n % 10);
    }

    *--end = (char) ('0' + n / 10 % 10);
    *--end = '.';
    end = digits(end, n / 100);

    if (signbit(x)) {
        *--end = '-';
    }

    return end;
}


/* the shortest digits that read back as the same number, as Python's repr() */

void
vlm_json_put_double(vlm_json_out_t *w, double x)
{
    int    len, digits;
    char  *p, buf[40];

    if (!isfinite(x)) {
        vlm_json_put_null(w);
        return;
    }

    if (fabs(x) < 1e12 && x == round(x * 100) / 100) {
        p = hundredths(buf + sizeof(buf), x);
        separate(w);
        put(w, p, (size_t) (buf + sizeof(buf) - p));
        return;
    }

    if (x == floor(x) && fabs(x) < 1e16) {
        len = snprintf(buf, sizeof(buf), "%.1f", x);

    } else {

        for (digits = 1; digits < 17; digits++) {
            (void) snprintf(buf, sizeof(buf), "%.*g", digits, x);

            if (strtod(buf, NULL) == x) {
                break;
            }
        }

        len = snprintf(buf, sizeof(buf), "%.*g", digits, x);
    }

    separate(w);
    put(w, buf, (size_t) len);
}


void
vlm_json_put_floats(vlm_json_out_t *w, const float *x, size_t n)
{
    int     len;
    char    text[32];
    size_t  i;

    vlm_json_open(w, '[');

    for (i = 0; i < n; i++) {

        if (!isfinite(x[i])) {
            vlm_json_put_null(w);
            continue;
        }

        len = snprintf(text, sizeof(text), "%.9g", x[i]);

        separate(w);
        put(w, text, (size_t) len);
    }

    vlm_json_shut(w, ']');
}


void
vlm_json_put_bool(vlm_json_out_t *w, int yes)
{
    separate(w);
    put(w, yes ? "true" : "false", yes ? 4 : 5);
}


void
vlm_json_put_null(vlm_json_out_t *w)
{
    separate(w);
    put(w, "null", 4);
}


void
vlm_json_add_open(vlm_json_out_t *w, const char *key, char bracket)
{
    vlm_json_put_key(w, key);
    vlm_json_open(w, bracket);
}


void
vlm_json_add_text(vlm_json_out_t *w, const char *key, const char *text, size_t len)
{
    vlm_json_put_key(w, key);
    vlm_json_put_text(w, text, len);
}


void
vlm_json_add_string(vlm_json_out_t *w, const char *key, const char *text)
{
    vlm_json_put_key(w, key);
    vlm_json_put_text(w, text, text == NULL ? 0 : strlen(text));
}


void
vlm_json_add_format(vlm_json_out_t *w, const char *key, const char *fmt, ...)
{
    char     text[1024];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    vlm_json_add_string(w, key, text);
}


void
vlm_json_add_int(vlm_json_out_t *w, const char *key, int64_t n)
{
    vlm_json_put_key(w, key);
    vlm_json_put_int(w, n);
}


void
vlm_json_add_bool(vlm_json_out_t *w, const char *key, int yes)
{
    vlm_json_put_key(w, key);
    vlm_json_put_bool(w, yes);
}


void
vlm_json_add_double(vlm_json_out_t *w, const char *key, double x)
{
    vlm_json_put_key(w, key);
    vlm_json_put_double(w, x);
}


void
vlm_json_add_logprob(vlm_json_out_t *w, const char *key, double x)
{
    vlm_json_put_key(w, key);
    vlm_json_put_logprob(w, x);
}


/* as deep as the parser allows: VLM_JSON_DEPTH */

void
vlm_json_put_value(vlm_json_out_t *w,
    const vlm_json_t *j)
{
    int64_t            n;
    const char        *whole;
    const vlm_json_t  *m;

    whole = vlm_json_digits(j);

    if (vlm_json_is_object(j)) {
        put_object(w, j);

    } else if (vlm_json_is_array(j)) {
        vlm_json_open(w, '[');

        for (m = vlm_json_first(j); m != NULL; m = vlm_json_next(m)) {
            vlm_json_put_value(w, m);
        }

        vlm_json_shut(w, ']');

    } else if (vlm_json_is_string(j)) {
        vlm_json_put_text(w, vlm_json_text(j),
                                   strlen(vlm_json_text(j)));

    } else if (vlm_json_int(j, INT64_MIN, INT64_MAX, &n) == 0) {
        vlm_json_put_int(w, n);

    } else if (whole != NULL) {
        separate(w);
        put(w, whole, strlen(whole));

    } else if (vlm_json_is_number(j)) {
        vlm_json_put_double(w, vlm_json_number(j, NAN));

    } else if (vlm_json_is_bool(j)) {
        vlm_json_put_bool(w, vlm_json_bool(j, 0));

    } else {
        vlm_json_put_null(w);
    }
}


typedef struct {
    size_t                    i;           /* of equal keys the later counts */
    const vlm_json_t         *m;
} member_t;


static void
put_object(vlm_json_out_t *w, const vlm_json_t *j)
{
    size_t        i, n;
    member_t     *members;
    const vlm_json_t  *m;

    n = vlm_json_count(j);

    members = malloc((n + 1) * sizeof(member_t));
    if (members == NULL) {
        w->failed = 1;
        return;
    }

    for (i = 0, m = vlm_json_first(j); m != NULL; i++, m = vlm_json_next(m)) {
        members[i].i = i;
        members[i].m = m;
    }

    qsort(members, n, sizeof(member_t), by_key);

    vlm_json_open(w, '{');

    for (i = 0; i < n; i++) {

        if (i + 1 < n
            && strcmp(vlm_json_key(members[i].m), vlm_json_key(members[i + 1].m)) == 0)
        {
            continue;
        }

        vlm_json_put_key(w, vlm_json_key(members[i].m));
        vlm_json_put_value(w, members[i].m);
    }

    vlm_json_shut(w, '}');

    free(members);
}


static int
by_key(const void *one, const void *two)
{
    int              rc;
    const member_t  *a, *b;

    a = one;
    b = two;

    rc = strcmp(vlm_json_key(a->m), vlm_json_key(b->m));

    if (rc != 0) {
        return rc;
    }

    return a->i < b->i ? -1 : a->i > b->i;
}


void
vlm_json_put_raw(vlm_json_out_t *w, const char *bytes,
    size_t len)
{
    put(w, bytes, len);
    w->comma = 0;
}


int
vlm_json_done(vlm_json_out_t *w)
{
    put(w, "\n", 1);

    return w->failed ? -1 : 0;
}


void
vlm_json_release(vlm_json_out_t *w)
{
    free(w->data);
    memset(w, 0, sizeof(*w));
}


/* ---- characters ---------------------------------------------------------- */


size_t
vlm_json_escape(char *dst, const char *text, size_t len)
{
    char                 *d, buf[12];
    size_t                i, n, total;
    uint32_t              code;
    const unsigned char  *p;

    static const char  letters[] = "btn\0fr";          /* U+0008 to U+000D */

    p = (const unsigned char *) text;
    total = 0;

    for (i = 0; i < len; i += n) {

        n = 1;
        code = p[i];
        d = buf;

        if (code >= 0x80) {
            n = vlm_utf8(p + i, len - i, &code);

            if (n == 0) {
                n = 1;
                code = 0xfffd;
            }
        }

        if (code == '"' || code == '\\') {
            *d++ = '\\';
            *d++ = (char) code;

        } else if (code >= 0x08 && code <= 0x0d && code != 0x0b) {
            *d++ = '\\';
            *d++ = letters[code - 0x08];

        } else if (code >= 0x20 && code < 0x7f) {
            *d++ = (char) code;

        } else if (code < 0x10000) {
            d = hex4(d, code);

        } else {
            d = hex4(d, 0xd800 + ((code - 0x10000) >> 10));
            d = hex4(d, 0xdc00 + ((code - 0x10000) & 0x3ff));
        }

        if (dst != NULL) {
            memcpy(dst + total, buf, (size_t) (d - buf));
        }

        total += (size_t) (d - buf);
    }

    return total;
}


static char *
hex4(char *dst, uint32_t unit)
{
    static const char  hex[] = "0123456789abcdef";

    *dst++ = '\\';
    *dst++ = 'u';
    *dst++ = hex[(unit >> 12) & 0xf];
    *dst++ = hex[(unit >> 8) & 0xf];
    *dst++ = hex[(unit >> 4) & 0xf];
    *dst++ = hex[unit & 0xf];

    return dst;
}
