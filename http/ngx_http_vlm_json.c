
/*
 * JSON: a check and limits before cJSON, getters over it, and a writer.  The
 * only file of the nginx side that includes cJSON.
 *
 * cJSON takes more than JSON: bytes that are not UTF-8, control characters,
 * U+0000 as the end of a string, a million nested brackets, a gigabyte of
 * nodes for a body of a few.  So a scan goes over the text first; it knows no
 * grammar, which remains cJSON's.
 */


#include "ngx_http_vlm_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>


#define EXACT   9007199254740992.0         /* 2^53: doubles are whole to here */


typedef struct {
    const unsigned char      *data;
    size_t                    bytes;
    size_t                    i;
    size_t                    depth;
    size_t                    values;
} scan_t;


static int scan(scan_t *s, ngx_http_vlm_json_err_t *err);
static int scan_string(scan_t *s, ngx_http_vlm_json_err_t *err);
static int fail(ngx_http_vlm_json_err_t *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static size_t utf8_char(const unsigned char *p, size_t len, uint32_t *code);

static void put(ngx_http_vlm_json_out_t *w, const char *p, size_t len);
static void separate(ngx_http_vlm_json_out_t *w);
static char *digits(char *end, uint64_t n);
static void put_object(ngx_http_vlm_json_out_t *w,
    const ngx_http_vlm_json_t *j);
static int by_key(const void *one, const void *two);
static char *hex4(char *dst, uint32_t unit);


/* ---- parsing ---- */


ngx_http_vlm_json_t *
ngx_http_vlm_json_parse(const void *data, size_t bytes,
    ngx_http_vlm_json_err_t *err)
{
    cJSON       *j;
    scan_t       s;
    const char  *end, *last;

    s.data = data;
    s.bytes = bytes;
    s.i = 0;
    s.depth = 0;
    s.values = 1;

    if (bytes >= 2 && s.data[0] == 0x1f && s.data[1] == 0x8b) {
        (void) fail(err, "The body is compressed with gzip: send it as it is");
        return NULL;
    }

    if (scan(&s, err) != 0) {
        return NULL;
    }

    end = NULL;
    last = (const char *) data + bytes;

    j = cJSON_ParseWithLengthOpts(data, bytes, &end, 0);

    if (j == NULL) {
        (void) fail(err, "Not JSON at byte %zu of %zu",
                    end == NULL ? (size_t) 0
                                : (size_t) (end - (const char *) data),
                    bytes);
        return NULL;
    }

    while (end < last && (*end == ' ' || *end == '\t' || *end == '\r'
                          || *end == '\n'))
    {
        end++;
    }

    if (end != last) {
        (void) fail(err, "More than one JSON value: the second begins at"
                    " byte %zu of %zu", (size_t) (end - (const char *) data),
                    bytes);
        cJSON_Delete(j);
        return NULL;
    }

    return j;
}


static int
scan(scan_t *s, ngx_http_vlm_json_err_t *err)
{
    unsigned char  c;

    if (s->bytes > NGX_HTTP_VLM_JSON_BYTES) {
        return fail(err, "JSON of %zu bytes, %u can be read", s->bytes,
                    NGX_HTTP_VLM_JSON_BYTES);
    }

    for ( /* void */ ; s->i < s->bytes; s->i++) {

        c = s->data[s->i];

        switch (c) {

        case '"':

            if (scan_string(s, err) != 0) {
                return -1;
            }

            break;

        case '{':
        case '[':

            if (++s->depth > NGX_HTTP_VLM_JSON_DEPTH) {
                return fail(err, "JSON nested deeper than %d at byte %zu",
                            NGX_HTTP_VLM_JSON_DEPTH, s->i);
            }

            /* there may be a value in it */

            /* fall through */

        case ',':

            if (++s->values > NGX_HTTP_VLM_JSON_VALUES) {
                return fail(err, "JSON of more than %d values",
                            NGX_HTTP_VLM_JSON_VALUES);
            }

            break;

        case '}':
        case ']':

            if (s->depth > 0) {
                s->depth--;
            }

            break;

        default:

            if (c < 0x20 && c != '\t' && c != '\r' && c != '\n') {
                return fail(err, "Not JSON: control character at byte %zu",
                            s->i);
            }
        }
    }

    return 0;
}


/* from one quote to the next; s->i stays on it, for the loop's step */

static int
scan_string(scan_t *s, ngx_http_vlm_json_err_t *err)
{
    size_t         n;
    uint32_t       code;
    unsigned char  c;

    for (s->i++; s->i < s->bytes; s->i += n) {

        c = s->data[s->i];
        n = 1;

        if (c == '"') {
            return 0;
        }

        if (c < 0x20) {
            return fail(err, "Not JSON: control character in a string at"
                        " byte %zu", s->i);
        }

        if (c == '\\') {
            n = 2;

            if (s->bytes - s->i >= 6
                && memcmp(s->data + s->i, "\\u0000", 6) == 0)
            {
                return fail(err, "Character U+0000 in a string at byte %zu",
                            s->i);
            }

        } else if (c >= 0x80) {
            n = utf8_char(s->data + s->i, s->bytes - s->i, &code);

            if (n == 0) {
                return fail(err, "Not UTF-8 at byte %zu", s->i);
            }
        }
    }

    return fail(err, "Not JSON: the text ends within a string");
}


static int
fail(ngx_http_vlm_json_err_t *err, const char *fmt, ...)
{
    va_list  args;

    if (err != NULL) {
        va_start(args, fmt);
        (void) vsnprintf(err->text, sizeof(err->text), fmt, args);
        va_end(args);
    }

    return -1;
}


void
ngx_http_vlm_json_free(ngx_http_vlm_json_t *j)
{
    cJSON_Delete(j);
}


/* ---- getters ---- */


const ngx_http_vlm_json_t *
ngx_http_vlm_json_get(const ngx_http_vlm_json_t *j, const char *key)
{
    const cJSON  *m, *found;

    if (!cJSON_IsObject(j)) {
        return NULL;
    }

    found = NULL;

    for (m = j->child; m != NULL; m = m->next) {
        if (m->string != NULL && strcmp(m->string, key) == 0) {
            found = m;
        }
    }

    return found;
}


const ngx_http_vlm_json_t *
ngx_http_vlm_json_first(const ngx_http_vlm_json_t *j)
{
    return j == NULL ? NULL : j->child;
}


const ngx_http_vlm_json_t *
ngx_http_vlm_json_next(const ngx_http_vlm_json_t *j)
{
    return j == NULL ? NULL : j->next;
}


const char *
ngx_http_vlm_json_key(const ngx_http_vlm_json_t *j)
{
    return j == NULL || j->string == NULL ? "" : j->string;
}


size_t
ngx_http_vlm_json_count(const ngx_http_vlm_json_t *j)
{
    size_t        n;
    const cJSON  *m;

    n = 0;

    for (m = ngx_http_vlm_json_first(j); m != NULL; m = m->next) {
        n++;
    }

    return n;
}


int
ngx_http_vlm_json_is_object(const ngx_http_vlm_json_t *j)
{
    return cJSON_IsObject(j);
}


int
ngx_http_vlm_json_is_array(const ngx_http_vlm_json_t *j)
{
    return cJSON_IsArray(j);
}


int
ngx_http_vlm_json_is_string(const ngx_http_vlm_json_t *j)
{
    return cJSON_IsString(j);
}


int
ngx_http_vlm_json_is_number(const ngx_http_vlm_json_t *j)
{
    return cJSON_IsNumber(j);
}


int
ngx_http_vlm_json_is_bool(const ngx_http_vlm_json_t *j)
{
    return cJSON_IsBool(j);
}


int
ngx_http_vlm_json_is_null(const ngx_http_vlm_json_t *j)
{
    return j == NULL || cJSON_IsNull(j);
}


int
ngx_http_vlm_json_is_true(const ngx_http_vlm_json_t *j)
{
    if (cJSON_IsBool(j)) {
        return cJSON_IsTrue(j);
    }

    if (cJSON_IsString(j)) {
        return j->valuestring[0] != '\0';
    }

    if (cJSON_IsNumber(j)) {
        return j->valuedouble != 0;
    }

    return ngx_http_vlm_json_first(j) != NULL;
}


const char *
ngx_http_vlm_json_text(const ngx_http_vlm_json_t *j)
{
    return cJSON_IsString(j) ? j->valuestring : NULL;
}


double
ngx_http_vlm_json_number(const ngx_http_vlm_json_t *j, double otherwise)
{
    return cJSON_IsNumber(j) && isfinite(j->valuedouble) ? j->valuedouble
                                                         : otherwise;
}


int
ngx_http_vlm_json_bool(const ngx_http_vlm_json_t *j, int otherwise)
{
    return cJSON_IsBool(j) ? cJSON_IsTrue(j) : otherwise;
}


int
ngx_http_vlm_json_int(const ngx_http_vlm_json_t *j, int64_t low, int64_t high,
    int64_t *out)
{
    double  x;

    if (!cJSON_IsNumber(j)) {
        return -1;
    }

    x = j->valuedouble;

    if (!(x >= -EXACT && x <= EXACT) || x != floor(x)) {
        return -1;
    }

    if ((int64_t) x < low || (int64_t) x > high) {
        return -1;
    }

    *out = (int64_t) x;

    return 0;
}


/* ---- writing ---- */


void
ngx_http_vlm_json_init(ngx_http_vlm_json_out_t *w, size_t limit)
{
    memset(w, 0, sizeof(*w));
    w->limit = limit;
}


static void
put(ngx_http_vlm_json_out_t *w, const char *p, size_t len)
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


/* before a value: the comma, if one stood before it */

static void
separate(ngx_http_vlm_json_out_t *w)
{
    if (w->comma) {
        put(w, ",", 1);
    }

    w->comma = 1;
}


void
ngx_http_vlm_json_open(ngx_http_vlm_json_out_t *w, char bracket)
{
    separate(w);
    put(w, &bracket, 1);
    w->comma = 0;
}


void
ngx_http_vlm_json_shut(ngx_http_vlm_json_out_t *w, char bracket)
{
    put(w, &bracket, 1);
    w->comma = 1;
}


void
ngx_http_vlm_json_put_key(ngx_http_vlm_json_out_t *w, const char *key)
{
    ngx_http_vlm_json_put_text(w, key, strlen(key));
    put(w, ":", 1);
    w->comma = 0;
}


void
ngx_http_vlm_json_put_text(ngx_http_vlm_json_out_t *w, const char *text,
    size_t len)
{
    char    buf[6 * 256];
    size_t  n;

    if (text == NULL) {
        ngx_http_vlm_json_put_null(w);
        return;
    }

    separate(w);
    put(w, "\"", 1);

    while (len > 0 && !w->failed) {
        n = len;

        if (n > 256) {

            /* in pieces that do not end within a character */

            for (n = 256; n > 252 && ((unsigned char) text[n] & 0xc0) == 0x80;
                 n--)
            {
                /* void */
            }
        }

        put(w, buf, ngx_http_vlm_json_escape(buf, text, n));

        text += n;
        len -= n;
    }

    put(w, "\"", 1);
}


void
ngx_http_vlm_json_put_int(ngx_http_vlm_json_out_t *w, int64_t n)
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
 * Without printf(), for an answer may have tens of thousands of them.  What
 * can hardly be has the number that OpenAI's documentation gives it.
 */

void
ngx_http_vlm_json_put_logprob(ngx_http_vlm_json_out_t *w, double x)
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


/* where the digits of n begin that end before end */

static char *
digits(char *end, uint64_t n)
{
    do {
        *--end = (char) ('0' + n % 10);
        n /= 10;
    } while (n > 0);

    return end;
}


/* the shortest digits that read back as the same number, as Python's repr() */

void
ngx_http_vlm_json_put_double(ngx_http_vlm_json_out_t *w, double x)
{
    int   len, digits;
    char  buf[40];

    if (!isfinite(x)) {
        ngx_http_vlm_json_put_null(w);
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
ngx_http_vlm_json_put_bool(ngx_http_vlm_json_out_t *w, int yes)
{
    separate(w);
    put(w, yes ? "true" : "false", yes ? 4 : 5);
}


void
ngx_http_vlm_json_put_null(ngx_http_vlm_json_out_t *w)
{
    separate(w);
    put(w, "null", 4);
}


/* as deep as what was parsed: NGX_HTTP_VLM_JSON_DEPTH */

void
ngx_http_vlm_json_put_value(ngx_http_vlm_json_out_t *w,
    const ngx_http_vlm_json_t *j)
{
    int64_t       n;
    const cJSON  *m;

    if (cJSON_IsObject(j)) {
        put_object(w, j);

    } else if (cJSON_IsArray(j)) {
        ngx_http_vlm_json_open(w, '[');

        for (m = j->child; m != NULL; m = m->next) {
            ngx_http_vlm_json_put_value(w, m);
        }

        ngx_http_vlm_json_shut(w, ']');

    } else if (cJSON_IsString(j)) {
        ngx_http_vlm_json_put_text(w, j->valuestring,
                                   strlen(j->valuestring));

    } else if (ngx_http_vlm_json_int(j, INT64_MIN, INT64_MAX, &n) == 0) {
        ngx_http_vlm_json_put_int(w, n);

    } else if (cJSON_IsNumber(j)) {
        ngx_http_vlm_json_put_double(w, j->valuedouble);

    } else if (cJSON_IsBool(j)) {
        ngx_http_vlm_json_put_bool(w, cJSON_IsTrue(j));

    } else {
        ngx_http_vlm_json_put_null(w);
    }
}


typedef struct {
    size_t                    i;           /* the later of equals counts */
    const cJSON              *m;
} member_t;


static void
put_object(ngx_http_vlm_json_out_t *w, const ngx_http_vlm_json_t *j)
{
    size_t        i, n;
    member_t     *members;
    const cJSON  *m;

    n = ngx_http_vlm_json_count(j);

    members = malloc((n + 1) * sizeof(member_t));
    if (members == NULL) {
        w->failed = 1;
        return;
    }

    for (i = 0, m = j->child; m != NULL; i++, m = m->next) {
        members[i].i = i;
        members[i].m = m;
    }

    qsort(members, n, sizeof(member_t), by_key);

    ngx_http_vlm_json_open(w, '{');

    for (i = 0; i < n; i++) {

        if (i + 1 < n
            && strcmp(members[i].m->string, members[i + 1].m->string) == 0)
        {
            continue;
        }

        ngx_http_vlm_json_put_key(w, members[i].m->string);
        ngx_http_vlm_json_put_value(w, members[i].m);
    }

    ngx_http_vlm_json_shut(w, '}');

    free(members);
}


static int
by_key(const void *one, const void *two)
{
    int              rc;
    const member_t  *a, *b;

    a = one;
    b = two;

    rc = strcmp(a->m->string, b->m->string);

    if (rc != 0) {
        return rc;
    }

    return a->i < b->i ? -1 : a->i > b->i;
}


void
ngx_http_vlm_json_put_raw(ngx_http_vlm_json_out_t *w, const char *bytes,
    size_t len)
{
    put(w, bytes, len);
    w->comma = 0;
}


int
ngx_http_vlm_json_done(ngx_http_vlm_json_out_t *w)
{
    put(w, "\n", 1);

    return w->failed ? -1 : 0;
}


void
ngx_http_vlm_json_release(ngx_http_vlm_json_out_t *w)
{
    free(w->data);
    memset(w, 0, sizeof(*w));
}


/* ---- characters ---- */


size_t
ngx_http_vlm_json_escape(char *dst, const char *text, size_t len)
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
            n = utf8_char(p + i, len - i, &code);

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


size_t
ngx_http_vlm_json_utf8(const char *text, size_t len)
{
    size_t                i, n;
    uint32_t              code;
    const unsigned char  *p;

    p = (const unsigned char *) text;

    for (i = 0; i < len; i += n) {

        n = utf8_char(p + i, len - i, &code);

        if (n == 0) {
            break;
        }
    }

    return i;
}


/* the length of the character at p, or 0: shortest form, no surrogates */

static size_t
utf8_char(const unsigned char *p, size_t len, uint32_t *code)
{
    size_t    i, n;
    uint32_t  c, low;

    c = p[0];

    if (c < 0x80) {
        *code = c;
        return 1;
    }

    if (c >= 0xc2 && c <= 0xdf) {
        n = 2;
        c &= 0x1f;
        low = 0x80;

    } else if (c >= 0xe0 && c <= 0xef) {
        n = 3;
        c &= 0x0f;
        low = 0x800;

    } else if (c >= 0xf0 && c <= 0xf4) {
        n = 4;
        c &= 0x07;
        low = 0x10000;

    } else {
        return 0;
    }

    if (n > len) {
        return 0;
    }

    for (i = 1; i < n; i++) {

        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }

        c = (c << 6) | (p[i] & 0x3f);
    }

    if (c < low || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        return 0;
    }

    *code = c;

    return n;
}
