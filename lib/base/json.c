/*
 * JSON over cJSON: requests behind a check with limits, files of a checkpoint without them.  The
 * only file that includes cJSON.
 *
 * cJSON accepts more than JSON: bytes that are not UTF-8, control characters, U+0000 as the end of
 * a string, a million nested brackets, a gigabyte of nodes for a body of some tens of megabytes.
 * So a scan checks a request's text first; it knows no grammar, which remains cJSON's.
 */

#include "base/json.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"

#define EXACT   9007199254740992.0         /* 2^53: doubles are whole to here */
#define DIGITS  16                         /* of 2^53 */

typedef struct {
    const unsigned char      *data;
    size_t                    bytes;
    size_t                    i;
    size_t                    depth;
    size_t                    values;
    int                       kept;        /* a number is not written as its double would be */
} scan_t;

static int scan(scan_t *s, vlm_err_t *err);
static int scan_string(scan_t *s, vlm_err_t *err);
static size_t scan_number(scan_t *s);
static int is_kept(const char *p, size_t n);
static void keep_numbers(cJSON *j, scan_t *s);
static size_t string_end(const unsigned char *p, size_t bytes, size_t from);
static int string_is(const unsigned char *p, size_t n, const char *key);
static int string_text(const unsigned char *p, size_t n, char *text, size_t size);
static int fail(vlm_err_t *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


vlm_json_t *
vlm_json_parse(const void *data, size_t bytes,
    vlm_err_t *err)
{
    cJSON       *j;
    scan_t       s;
    const char  *end, *last;

    s.data = data;
    s.bytes = bytes;
    s.i = 0;
    s.depth = 0;
    s.values = 1;
    s.kept = 0;

    if (bytes >= 2 && s.data[0] == 0x1f && s.data[1] == 0x8b) {
        (void) fail(err, "The body is compressed with gzip: send it uncompressed");
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

    if (s.kept) {
        s.i = 0;
        keep_numbers(j, &s);
    }

    return j;
}


static int
scan(scan_t *s, vlm_err_t *err)
{
    size_t         n;
    unsigned char  c;

    if (s->bytes > VLM_JSON_BYTES) {
        return fail(err, "JSON of %zu bytes, %u can be read", s->bytes,
                    VLM_JSON_BYTES);
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

            if (++s->depth > VLM_JSON_DEPTH) {
                return fail(err, "JSON nested deeper than %d at byte %zu",
                            VLM_JSON_DEPTH, s->i);
            }

            /* a value may follow */

            /* fall through */

        case ',':

            if (++s->values > VLM_JSON_VALUES) {
                return fail(err, "JSON of more than %d values",
                            VLM_JSON_VALUES);
            }

            break;

        case '}':
        case ']':

            if (s->depth > 0) {
                s->depth--;
            }

            break;

        case '-':
        case '0': case '1': case '2': case '3': case '4':
        case '5': case '6': case '7': case '8': case '9':

            n = scan_number(s);
            s->kept |= is_kept((const char *) s->data + s->i + 1 - n, n);

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
scan_string(scan_t *s, vlm_err_t *err)
{
    size_t         n, k;
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

            /* cJSON takes other characters for U+0000 */

            for (k = 2; k < 6 && s->bytes - s->i >= 2 && s->data[s->i + 1] == 'u'; k++) {
                if (s->bytes - s->i <= k || !isxdigit(s->data[s->i + k])) {
                    return fail(err, "Not JSON: \\u without four digits in a string at byte %zu",
                                s->i);
                }
            }

        } else if (c >= 0x80) {
            n = vlm_utf8(s->data + s->i, s->bytes - s->i, &code);

            if (n == 0) {
                return fail(err, "Not UTF-8 at byte %zu", s->i);
            }
        }
    }

    return fail(err, "Not JSON: the text ends within a string");
}


/* returns the bytes of a number; s->i stays on its last one, for the loop's step */

static size_t
scan_number(scan_t *s)
{
    size_t  n;

    for (n = 1; s->i + 1 < s->bytes; n++, s->i++) {
        if (memchr("0123456789+-.eE", s->data[s->i + 1], 15) == NULL) {
            break;
        }
    }

    return n;
}


static int
is_kept(const char *p, size_t n)
{
    size_t  i;

    if (n >= DIGITS || (n == 2 && p[0] == '-' && p[1] == '0')) {
        return 1;
    }

    for (i = 0; i < n && p[i] != '.' && p[i] != 'e' && p[i] != 'E'; i++) { /* void */ }

    return i < n;
}


/* the number of digits at p */

static size_t
digits(const char *p, size_t n)
{
    size_t  i;

    for (i = 0; i < n && isdigit((unsigned char) p[i]); i++) { /* void */ }

    return i;
}


/* cJSON takes numbers that JSON does not have, such as 007 */

static int
is_number(const char *p, size_t n)
{
    size_t  i, whole;

    i = p[0] == '-';
    whole = digits(p + i, n - i);

    if (whole == 0 || (whole > 1 && p[i] == '0')) {
        return 0;
    }

    i += whole;

    if (i < n && p[i] == '.') {
        i++;
        whole = digits(p + i, n - i);
        i += whole;
    }

    if (whole > 0 && i < n && (p[i] == 'e' || p[i] == 'E')) {
        i++;
        i += i < n && (p[i] == '+' || p[i] == '-');
        whole = digits(p + i, n - i);
        i += whole;
    }

    return whole > 0 && i == n;
}


/*
 * cJSON has a number as a double.  The text of one that this would not give again becomes the
 * value's string, in the order of the document, which is valid; cJSON frees it.
 */

static void
keep_numbers(cJSON *j, scan_t *s)
{
    char        *kept;
    size_t       n;
    const char  *text;

    for ( /* void */ ; j != NULL; j = j->next) {

        if (!cJSON_IsNumber(j)) {
            keep_numbers(j->child, s);
            continue;
        }

        for ( /* void */ ; s->i < s->bytes && s->data[s->i] != '-' && !isdigit(s->data[s->i]);
              s->i++)
        {
            if (s->data[s->i] == '"') {
                (void) scan_string(s, NULL);
            }
        }

        if (s->i >= s->bytes) {
            return;
        }

        text = (const char *) s->data + s->i;
        n = scan_number(s);
        s->i++;

        /* no strndup(): sanitizers want a zero at the end of its source, which a body lacks */
        kept = is_kept(text, n) && is_number(text, n) ? malloc(n + 1) : NULL;

        if (kept != NULL) {
            memcpy(kept, text, n);
            kept[n] = '\0';
            j->valuestring = kept;
        }
    }
}


int
vlm_json_peek(const void *data, size_t bytes, const char *key, char *text, size_t size)
{
    int                   found, named, value;
    size_t                i, from, depth;
    const unsigned char  *p = data;

    found = -1;
    named = 0;                                 /* the member that is read has this key */
    value = 0;                                 /* its colon was read */
    depth = 0;

    for (i = 0; i < bytes; i++) {

        switch (p[i]) {

        case '"':
            from = i;
            i = string_end(p, bytes, from);

            if (i == bytes) {
                found = -1;

            } else if (depth == 1 && !value) {
                named = string_is(p + from, i + 1 - from, key);

            } else if (depth == 1 && named) {
                found = string_text(p + from, i + 1 - from, text, size);
            }

            break;

        case ':':
        case ',':

            if (depth == 1) {
                value = p[i] == ':';
            }

            break;

        case '{':
        case '[':

            if (depth == 0 && p[i] == '[') {
                found = -1;
                bytes = i;                     /* the loop ends */

            } else if (depth++ == 1 && named && value) {
                found = -1;                    /* the last of equal keys counts */
            }

            break;

        case '}':
        case ']':
            depth -= depth > 0;
            break;

        default:

            if (depth == 1 && named && value && p[i] > ' ') {
                found = -1;
            }
        }
    }

    if (found != 0) {
        text[0] = '\0';
    }

    return found;
}


/* The closing quote of the string whose opening quote is at from; bytes: there is none. */
static size_t
string_end(const unsigned char *p, size_t bytes, size_t from)
{
    size_t                i, n;
    const unsigned char  *quote;

    for (i = from + 1; (quote = memchr(p + i, '"', bytes - i)) != NULL; i = quote + 1 - p) {

        for (n = 1; *(quote - n) == '\\'; n++) { /* void */ }

        if (n % 2) {
            return quote - p;
        }
    }

    return bytes;
}


static int
string_is(const unsigned char *p, size_t n, const char *key)
{
    char  name[64];

    if (memchr(p, '\\', n) == NULL) {
        return n == strlen(key) + 2 && memcmp(p + 1, key, n - 2) == 0;
    }

    return string_text(p, n, name, sizeof(name)) == 0 && strcmp(name, key) == 0;
}


/* Of n bytes with their quotes; an escape takes up to six bytes for one of the text. */
static int
string_text(const unsigned char *p, size_t n, char *text, size_t size)
{
    int          rc;
    size_t       len;
    vlm_json_t  *j;

    if (n > 6 * size + 2) {
        return -1;
    }

    rc = -1;
    j = vlm_json_parse(p, n, NULL);

    if (j != NULL) {
        len = strlen(vlm_json_text(j));

        if (len < size) {
            memcpy(text, vlm_json_text(j), len + 1);
            rc = 0;
        }
    }

    vlm_json_free(j);

    return rc;
}


/* A parse overwrites the error of an earlier one. */
static int
fail(vlm_err_t *err, const char *fmt, ...)
{
    va_list  args;

    if (err != NULL) {
        err->code = VLM_EINPUT;

        va_start(args, fmt);
        (void) vsnprintf(err->text, sizeof(err->text), fmt, args);
        va_end(args);
    }

    return -1;
}


void
vlm_json_free(vlm_json_t *j)
{
    cJSON_Delete(j);
}


vlm_json_t *
vlm_json_copy(const vlm_json_t *j)
{
    return cJSON_Duplicate(j, 1);
}


vlm_json_t *
vlm_json_make(char bracket)
{
    return bracket == '{' ? cJSON_CreateObject() : cJSON_CreateArray();
}


vlm_json_t *
vlm_json_make_text(const char *text)
{
    return cJSON_CreateString(text);
}


int
vlm_json_take(vlm_json_t *j, const char *key, vlm_json_t *child)
{
    if (child != NULL && (key == NULL ? cJSON_AddItemToArray(j, child)
                                      : cJSON_AddItemToObject(j, key, child)))
    {
        return 0;
    }

    cJSON_Delete(child);

    return -1;
}


/* cJSON does not change what is referred to. */
int
vlm_json_refer(vlm_json_t *j, const char *key, const vlm_json_t *child)
{
    return (key == NULL ? cJSON_AddItemReferenceToArray(j, (cJSON *) child)
                        : cJSON_AddItemReferenceToObject(j, key, (cJSON *) child)) ? 0 : -1;
}


vlm_json_t *
vlm_json_named(const void *data, size_t bytes, const char *name, vlm_err_t *err)
{
    cJSON       *j;
    size_t       at;
    const char  *end;

    end = NULL;

    j = cJSON_ParseWithLengthOpts(data, bytes, &end, 0);

    at = end == NULL ? 0 : (size_t) (end - (const char *) data);

    if (j != NULL) {                           /* cJSON ignores bytes after the value */
        while (at < bytes && strchr(" \t\r\n", ((const char *) data)[at]) != NULL
               && ((const char *) data)[at] != '\0')
        {
            at++;
        }

        if (at == bytes) {
            return j;
        }

        cJSON_Delete(j);
    }

    (void) vlm_fail(err, VLM_EMODEL, "%s: not JSON at byte %zu of %zu", name, at, bytes);

    return NULL;
}


vlm_json_t *
vlm_json_read(const char *dir, const char *name, uint64_t limit, vlm_err_t *err)
{
    char         path[4096];
    vlm_file_t   f;
    vlm_json_t  *j;

    if (vlm_file_path(path, sizeof(path), dir, name, err) != 0
        || vlm_file_open(&f, path, limit, err) != 0)
    {
        return NULL;
    }

    j = vlm_json_named(f.data, f.bytes, path, err);

    vlm_file_close(&f);

    return j;
}


const vlm_json_t *
vlm_json_get(const vlm_json_t *j, const char *key)
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


const vlm_json_t *
vlm_json_either(const vlm_json_t *j, const char *one, const char *other)
{
    const vlm_json_t  *m;

    m = vlm_json_get(j, one);

    return vlm_json_is_true(m) ? m : vlm_json_get(j, other);
}


const vlm_json_t *
vlm_json_first(const vlm_json_t *j)
{
    return j == NULL ? NULL : j->child;
}


const vlm_json_t *
vlm_json_next(const vlm_json_t *j)
{
    return j == NULL ? NULL : j->next;
}


const char *
vlm_json_key(const vlm_json_t *j)
{
    return j == NULL || j->string == NULL ? "" : j->string;
}


uint32_t
vlm_json_count(const vlm_json_t *j)
{
    uint32_t      n;
    const cJSON  *m;

    n = 0;

    for (m = vlm_json_first(j); m != NULL; m = m->next) {
        n++;
    }

    return n;
}


int
vlm_json_is_object(const vlm_json_t *j)
{
    return cJSON_IsObject(j);
}


int
vlm_json_is_array(const vlm_json_t *j)
{
    return cJSON_IsArray(j);
}


int
vlm_json_is_string(const vlm_json_t *j)
{
    return cJSON_IsString(j);
}


int
vlm_json_is_number(const vlm_json_t *j)
{
    return cJSON_IsNumber(j);
}


int
vlm_json_is_bool(const vlm_json_t *j)
{
    return cJSON_IsBool(j);
}


int
vlm_json_is_null(const vlm_json_t *j)
{
    return j == NULL || cJSON_IsNull(j);
}


int
vlm_json_is_true(const vlm_json_t *j)
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

    return vlm_json_first(j) != NULL;
}


const char *
vlm_json_text(const vlm_json_t *j)
{
    return cJSON_IsString(j) ? j->valuestring : NULL;
}


double
vlm_json_number(const vlm_json_t *j, double otherwise)
{
    return cJSON_IsNumber(j) && isfinite(j->valuedouble) ? j->valuedouble
                                                         : otherwise;
}


const char *
vlm_json_written(const vlm_json_t *j)
{
    return cJSON_IsNumber(j) ? j->valuestring : NULL;
}


const char *
vlm_json_digits(const vlm_json_t *j)
{
    const char  *text;

    text = vlm_json_written(j);

    return text != NULL && text[strspn(text, "-0123456789")] == '\0' ? text : NULL;
}


int
vlm_json_bool(const vlm_json_t *j, int otherwise)
{
    return cJSON_IsBool(j) ? cJSON_IsTrue(j) : otherwise;
}


int
vlm_json_int(const vlm_json_t *j, int64_t low, int64_t high,
    int64_t *out)
{
    char     *end;
    double    x;
    int64_t   n;

    if (!cJSON_IsNumber(j)) {
        return -1;
    }

    x = j->valuedouble;

    if (x > -EXACT && x < EXACT) {
        n = (int64_t) x;

        if (x != (double) n) {
            return -1;
        }

    } else {

        if (j->valuestring == NULL) {
            return -1;
        }

        errno = 0;
        n = strtoll(j->valuestring, &end, 10);

        if (errno != 0 || *end != '\0') {
            return -1;
        }
    }

    if (n < low || n > high) {
        return -1;
    }

    *out = n;

    return 0;
}


const char *
vlm_json_word(const vlm_json_t *j, char digits[VLM_JSON_DIGITS])
{
    int64_t  n;

    if (vlm_json_int(j, INT64_MIN, INT64_MAX, &n) == 0) {
        (void) snprintf(digits, VLM_JSON_DIGITS, "%" PRId64, n);
        return digits;
    }

    return cJSON_IsNumber(j) ? vlm_json_written(j) : vlm_json_text(j);
}


int
vlm_json_u64(const vlm_json_t *j, const char *file, const char *path, uint64_t low, uint64_t high,
             uint64_t *out, vlm_err_t *err)
{
    double  d;

    if (!cJSON_IsNumber(j)) {
        return vlm_fail(err, VLM_EMODEL,
                        "%s: %s is %s, expected a whole number from %" PRIu64 " to %" PRIu64,
                        file, path, j == NULL ? "missing" : "not a number", low, high);
    }

    d = j->valuedouble;

    if (!(d >= (double) low && d <= (double) high) || d != (double) (uint64_t) d) {
        return vlm_fail(err, VLM_EMODEL,
                        "%s: %s is %.17g, expected a whole number from %" PRIu64 " to %" PRIu64,
                        file, path, d, low, high);
    }

    *out = (uint64_t) d;

    return 0;
}
