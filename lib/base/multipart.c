
/*
 * multipart/form-data, by RFC 7578 and what browsers make of it.
 *
 * A part's data ends before CR LF "--" boundary and nowhere else; a boundary
 * is followed by "--" (the last one) or by spaces and CR LF.  A body without
 * the last boundary is an upload that was cut, and is refused.
 */


#define _GNU_SOURCE

#include "base/multipart.h"

#include <string.h>
#include <strings.h>


#define NAME   VLM_MULTIPART_NAME


typedef struct {
    const char               *pos;
    const char               *last;
} range_t;


typedef vlm_multipart_t       multipart_t;
typedef vlm_multipart_part_t  part_t;


static int fail(multipart_t *mp, const char *text);
static int boundary(multipart_t *mp, range_t type);
static int first_delimiter(multipart_t *mp);
static int after_delimiter(multipart_t *mp, const char *p);
static int headers(multipart_t *mp, part_t *part);
static int disposition(multipart_t *mp, range_t value, part_t *part);
static int parameter(range_t *r, range_t *key, range_t *value, int *quoted);
static int is(range_t r, const char *word);
static int unquote(char dst[NAME], size_t *len, range_t value, int quoted);
static int extended(char dst[NAME], size_t *len, range_t value);
static int hex(int c);
static range_t trim(range_t r);


static int
fail(multipart_t *mp, const char *text)
{
    mp->error = text;

    return -1;
}


int
vlm_multipart_init(multipart_t *mp, const char *type,
    size_t type_len, const void *data, size_t bytes)
{
    range_t              t;
    size_t               n;

    static const char    form[] = "multipart/form-data";

    memset(mp, 0, sizeof(*mp));

    n = sizeof(form) - 1;

    if (type == NULL || type_len < n || strncasecmp(type, form, n) != 0
        || (type_len > n && type[n] != ';' && type[n] != ' '
            && type[n] != '\t'))
    {
        mp->error = "The content type is not multipart/form-data";
        return 1;
    }

    mp->pos = data;
    mp->last = mp->pos + bytes;

    t.pos = type + n;
    t.last = type + type_len;

    if (boundary(mp, t) != 0) {
        return -1;
    }

    return first_delimiter(mp);
}


static int
boundary(multipart_t *mp, range_t type)
{
    int      quoted;
    char     name[NAME];
    size_t   len;
    range_t  key, value;

    while (parameter(&type, &key, &value, &quoted) == 1) {

        if (!is(key, "boundary")) {
            continue;
        }

        if (unquote(name, &len, value, quoted) != 0 || len == 0
            || len > VLM_MULTIPART_BOUNDARY
            || memchr(name, '\r', len) != NULL
            || memchr(name, '\n', len) != NULL)
        {
            return fail(mp, "The boundary is not 1 to 70 characters long");
        }

        memcpy(mp->delimiter, "\r\n--", 4);
        memcpy(mp->delimiter + 4, name, len);
        mp->len = len + 4;

        return 0;
    }

    return fail(mp, "The content type has no boundary");
}


/* the preamble before the first boundary is ignored; without one the boundary need not follow a
   line break */

static int
first_delimiter(multipart_t *mp)
{
    size_t       bytes;
    const char  *p;

    bytes = (size_t) (mp->last - mp->pos);

    if (bytes >= mp->len - 2
        && memcmp(mp->pos, mp->delimiter + 2, mp->len - 2) == 0)
    {
        return after_delimiter(mp, mp->pos + mp->len - 2);
    }

    p = bytes == 0 ? NULL : memmem(mp->pos, bytes, mp->delimiter, mp->len);

    if (p == NULL) {
        return fail(mp, "The body has no boundary");
    }

    return after_delimiter(mp, p + mp->len);
}


/* mp->pos to the headers of the next part; NULL after the last boundary */

static int
after_delimiter(multipart_t *mp, const char *p)
{
    if (mp->last - p >= 2 && p[0] == '-' && p[1] == '-') {
        mp->pos = NULL;
        return 0;
    }

    while (p < mp->last && (*p == ' ' || *p == '\t')) {
        p++;
    }

    if (mp->last - p < 2 || p[0] != '\r' || p[1] != '\n') {
        return fail(mp, "A boundary is not followed by a line break");
    }

    mp->pos = p + 2;

    return 0;
}


int
vlm_multipart_next(multipart_t *mp, part_t *part)
{
    const char  *end, *data;

    if (mp->error != NULL) {
        return -1;
    }

    if (mp->pos == NULL) {
        return 0;
    }

    if (mp->n_parts++ == VLM_MULTIPART_PARTS) {
        return fail(mp, "The body has more than 64 parts");
    }

    part->name_len = 0;
    part->filename_len = 0;
    part->is_file = 0;

    if (headers(mp, part) != 0) {
        return -1;
    }

    /* mp->pos is behind the empty line; an empty part may end with the line
       break of that line */

    data = mp->pos;

    end = memmem(data - 2, (size_t) (mp->last - data) + 2, mp->delimiter,
                 mp->len);

    if (end == NULL) {
        return fail(mp, "The body ends before its last boundary");
    }

    part->data = end < data ? end : data;
    part->bytes = (size_t) (end - part->data);

    return after_delimiter(mp, end + mp->len) == 0 ? 1 : -1;
}


/* reads the header lines up to the empty one; only one of them matters */

static int
headers(multipart_t *mp, part_t *part)
{
    int          seen;
    size_t       left;
    range_t      line, key;
    const char  *end, *colon;

    seen = 0;
    left = VLM_MULTIPART_HEADERS;

    for ( ;; ) {

        line.pos = mp->pos;
        line.last = mp->last;

        if ((size_t) (line.last - line.pos) > left) {
            line.last = line.pos + left;
        }

        end = memmem(line.pos, (size_t) (line.last - line.pos), "\r\n", 2);

        if (end == NULL) {
            return fail(mp, line.last == mp->last
                            ? "The body ends within the headers of a part"
                            : "The headers of a part are longer than 8192"
                              " bytes");
        }

        mp->pos = end + 2;
        left -= (size_t) (mp->pos - line.pos);
        line.last = end;

        if (line.pos == line.last) {
            break;
        }

        colon = memchr(line.pos, ':', (size_t) (line.last - line.pos));

        if (colon == NULL) {
            return fail(mp, "A header of a part has no colon");
        }

        key.pos = line.pos;
        key.last = colon;

        if (!is(trim(key), "content-disposition") || seen) {
            continue;
        }

        seen = 1;
        line.pos = colon + 1;

        if (disposition(mp, line, part) != 0) {
            return -1;
        }
    }

    if (!seen) {
        return fail(mp, "A part has no Content-Disposition");
    }

    return 0;
}


/*
 * form-data; name="file"; filename="a.png"; filename*=UTF-8''a.png
 *
 * The form with the star has the same name in an encoding, and takes precedence.
 */

static int
disposition(multipart_t *mp, range_t value, part_t *part)
{
    int      rc, star, quoted;
    range_t  key, v;

    star = 0;

    /* the word before the first parameter */

    while (value.pos < value.last && *value.pos != ';') {
        value.pos++;
    }

    while ((rc = parameter(&value, &key, &v, &quoted)) == 1) {

        if (is(key, "name")) {
            rc = unquote(part->name, &part->name_len, v, quoted);

        } else if (is(key, "filename") && !star) {
            part->is_file = 1;
            rc = unquote(part->filename, &part->filename_len, v, quoted);

        } else if (is(key, "filename*")
                   && extended(part->filename, &part->filename_len, v) == 0)
        {
            part->is_file = 1;
            star = 1;
        }

        if (rc == -1) {
            return fail(mp, "A name in a part is longer than 1023 bytes");
        }
    }

    return rc == 0 ? 0 : fail(mp, "A part's Content-Disposition is malformed");
}


/*
 * The next ";key=value" of r: 1, 0 at its end, -1 if the syntax is wrong.  A quoted value is
 * returned without its quotes, with its escapes still in it.
 */

static int
parameter(range_t *r, range_t *key, range_t *value, int *quoted)
{
    const char  *p;

    p = r->pos;

    while (p < r->last && (*p == ' ' || *p == '\t' || *p == ';')) {
        p++;
    }

    if (p == r->last) {
        return 0;
    }

    key->pos = p;

    while (p < r->last && *p != '=' && *p != ';') {
        p++;
    }

    if (p == r->last || *p == ';') {
        return -1;
    }

    key->last = p++;
    *key = trim(*key);

    while (p < r->last && (*p == ' ' || *p == '\t')) {
        p++;
    }

    *quoted = p < r->last && *p == '"';

    if (*quoted) {

        value->pos = ++p;

        while (p < r->last && *p != '"') {
            p += (*p == '\\' && p + 1 < r->last
                  && (p[1] == '"' || p[1] == '\\')) ? 2 : 1;
        }

        if (p >= r->last) {
            return -1;
        }

        value->last = p++;

    } else {
        value->pos = p;

        while (p < r->last && *p != ';') {
            p++;
        }

        value->last = p;
        *value = trim(*value);
    }

    r->pos = p;

    return 1;
}


static int
is(range_t r, const char *word)
{
    size_t  len;

    len = strlen(word);

    return (size_t) (r.last - r.pos) == len
           && strncasecmp(r.pos, word, len) == 0;
}


static range_t
trim(range_t r)
{
    while (r.pos < r.last && (*r.pos == ' ' || *r.pos == '\t')) {
        r.pos++;
    }

    while (r.pos < r.last && (r.last[-1] == ' ' || r.last[-1] == '\t')) {
        r.last--;
    }

    return r;
}


/*
 * Browsers write a quote as %22 and leave a backslash as it is; others escape
 * both with a backslash.
 */

static int
unquote(char dst[NAME], size_t *len, range_t value, int quoted)
{
    size_t       n;
    const char  *p;

    n = 0;

    for (p = value.pos; p < value.last; p++) {

        if (n == NAME - 1) {
            return -1;
        }

        if (quoted && *p == '\\' && value.last - p > 1
            && (p[1] == '"' || p[1] == '\\'))
        {
            p++;

        } else if (quoted && value.last - p > 2
                   && memcmp(p, "%22", 3) == 0)
        {
            dst[n++] = '"';
            p += 2;
            continue;
        }

        dst[n++] = *p;
    }

    dst[n] = '\0';
    *len = n;

    return 0;
}


/* charset'language'percent-encoded; -1 if it is not, or not UTF-8 or ASCII */

static int
extended(char dst[NAME], size_t *len, range_t value)
{
    int          high, low;
    size_t       n;
    range_t      charset;
    const char  *p;

    charset.pos = value.pos;
    charset.last = memchr(value.pos, '\'', (size_t) (value.last - value.pos));

    if (charset.last == NULL
        || (!is(charset, "utf-8") && !is(charset, "us-ascii")))
    {
        return -1;
    }

    p = charset.last + 1;
    p = memchr(p, '\'', (size_t) (value.last - p));

    if (p == NULL) {
        return -1;
    }

    for (n = 0, p++; p < value.last; p++) {

        if (n == NAME - 1) {
            return -1;
        }

        if (*p != '%') {
            dst[n++] = *p;
            continue;
        }

        if (value.last - p < 3) {
            return -1;
        }

        high = hex(p[1]);
        low = hex(p[2]);

        if (high < 0 || low < 0) {
            return -1;
        }

        dst[n++] = (char) (high << 4 | low);
        p += 2;
    }

    dst[n] = '\0';
    *len = n;

    return 0;
}


static int
hex(int c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c |= 0x20;

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}


int
vlm_multipart_form(vlm_multipart_form_t *form,
    const char *type, size_t type_len, const void *data, size_t bytes,
    const char *file, const char *text, const char **error)
{
    int                   rc;
    vlm_multipart_t       mp;
    vlm_multipart_part_t  part;

    memset(form, 0, sizeof(vlm_multipart_form_t));

    rc = vlm_multipart_init(&mp, type, type_len, data, bytes);
    *error = mp.error;

    if (rc != 0) {
        return rc == 1 ? 0 : -1;
    }

    while ((rc = vlm_multipart_next(&mp, &part)) == 1) {

        if (part.is_file && form->file.data == NULL
            && strcmp(part.name, file) == 0)
        {
            form->file = part;

        } else if (!part.is_file && form->text == NULL && text != NULL
                   && strcmp(part.name, text) == 0)
        {
            form->text = part.data;
            form->text_bytes = part.bytes;
        }
    }

    *error = mp.error;

    return rc;
}
