/* Reads calls of tools out of a text that grows; writes them as templates have them. */

#define _GNU_SOURCE                    /* memmem() */

#include "api/calls.h"

#include <stdio.h>
#include <string.h>

enum { OUTSIDE, INSIDE, BEHIND };      /* a call; behind: before the closing mark */


void
vlm_calls_start(vlm_calls_t *c, const char *open, const char *end, int inside)
{
    memset(c, 0, sizeof(*c));
    c->open = open;
    c->end = end;
    c->place = inside ? INSIDE : OUTSIDE;
}


static int
is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}


/* The bytes at the end of a text with which a mark may begin. */
static size_t
held(const char *text, size_t bytes, const char *mark)
{
    size_t  n;

    for (n = strlen(mark) - 1; n > 0; n--) {
        if (n <= bytes && memcmp(text + bytes - n, mark, n) == 0) {
            return n;
        }
    }

    return 0;
}


static vlm_calls_e
content(vlm_calls_t *c, const char *text, size_t end, vlm_calls_piece_t *piece)
{
    piece->text = text + c->at;
    piece->bytes = end - c->at;
    c->at = end;

    return VLM_CALLS_TEXT;
}


/* Blanks before a call, and between calls, are no content. */
static vlm_calls_e
outside(vlm_calls_t *c, const char *text, size_t bytes, int last, vlm_calls_piece_t *piece)
{
    size_t       end;
    const char  *mark;

    mark = c->n == VLM_CALLS ? NULL
           : memmem(text + c->at, bytes - c->at, c->open, strlen(c->open));
    end = mark != NULL ? (size_t) (mark - text)
          : last ? bytes : bytes - held(text + c->at, bytes - c->at, c->open);

    if (mark != NULL || !last || c->n > 0) {
        while (end > c->at && is_blank(text[end - 1])) {
            end--;
        }
    }

    if (end > c->at) {
        return content(c, text, end, piece);
    }

    if (mark == NULL) {
        return VLM_CALLS_NONE;
    }

    c->from = (size_t) (mark - text);
    c->at = c->scanned = c->from + strlen(c->open);
    c->depth = 0;
    c->in_string = c->escaped = 0;
    c->place = INSIDE;

    return VLM_CALLS_NONE;
}


/* Looks for the bracket that closes the call's object.  1: found, and c->scanned is behind it. */
static int
scan(vlm_calls_t *c, const char *text, size_t bytes)
{
    char  b;

    while (c->scanned < bytes) {
        b = text[c->scanned++];

        if (c->escaped) {
            c->escaped = 0;

        } else if (c->in_string) {
            c->escaped = b == '\\';
            c->in_string = b != '"';

        } else if (b == '"') {
            c->in_string = 1;

        } else if (b == '{' || b == '[') {
            c->depth++;

        } else if ((b == '}' || b == ']') && c->depth > 0 && --c->depth == 0) {
            return 1;
        }
    }

    return 0;
}


/* A call, or where it is none the text of it, with its mark. */
static vlm_calls_e
call(vlm_calls_t *c, const char *text, size_t end, vlm_calls_piece_t *piece)
{
    vlm_err_t  err = { VLM_OK, "" };

    piece->call = vlm_json_parse(text + c->at, end - c->at, &err);
    piece->name = vlm_json_text(vlm_json_get(piece->call, "name"));
    piece->arguments = vlm_json_get(piece->call, "arguments");

    if (piece->name == NULL) {
        vlm_json_free(piece->call);
        piece->call = NULL;
        c->at = c->from;
        c->place = OUTSIDE;

        return content(c, text, end, piece);
    }

    c->at = end;
    c->place = BEHIND;
    c->n++;

    return VLM_CALLS_CALL;
}


static vlm_calls_e
inside(vlm_calls_t *c, const char *text, size_t bytes, int last, vlm_calls_piece_t *piece)
{
    size_t       blank;
    const char  *mark;

    for (blank = c->at; blank < bytes && is_blank(text[blank]); blank++) { /* void */ }

    if (blank == bytes && !last) {
        return VLM_CALLS_NONE;
    }

    if (blank < bytes && text[blank] == '{') {
        if (scan(c, text, bytes)) {
            return call(c, text, c->scanned, piece);
        }

    } else {
        mark = memmem(text + c->at, bytes - c->at, c->end, strlen(c->end));

        if (mark != NULL) {
            return call(c, text, (size_t) (mark - text) + strlen(c->end), piece);
        }
    }

    if (!last) {
        return VLM_CALLS_NONE;
    }

    /* An answer that was cut within a call: what there is of it is text. */

    c->place = OUTSIDE;
    c->n = VLM_CALLS;
    c->at = c->from;

    return c->at < bytes ? content(c, text, bytes, piece) : VLM_CALLS_NONE;
}


static void
behind(vlm_calls_t *c, const char *text, size_t bytes, int last)
{
    size_t  blank;

    for (blank = c->at; blank < bytes && is_blank(text[blank]); blank++) { /* void */ }

    if (bytes - blank >= strlen(c->end) && memcmp(text + blank, c->end, strlen(c->end)) == 0) {
        c->at = blank + strlen(c->end);
        c->place = OUTSIDE;

    } else if (last || memcmp(text + blank, c->end, bytes - blank < strlen(c->end)
                                                    ? bytes - blank : strlen(c->end)) != 0)
    {
        c->place = OUTSIDE;
    }
}


vlm_calls_e
vlm_calls_next(vlm_calls_t *c, const char *text, size_t bytes, int last, vlm_calls_piece_t *piece)
{
    int          before;
    vlm_calls_e  found;

    memset(piece, 0, sizeof(*piece));

    if (bytes == 0) {
        return VLM_CALLS_NONE;
    }

    do {
        before = c->place;
        found = VLM_CALLS_NONE;

        if (c->place == BEHIND) {
            behind(c, text, bytes, last);
        } else if (c->place == INSIDE) {
            found = inside(c, text, bytes, last, piece);
        } else {
            found = outside(c, text, bytes, last, piece);
        }
    } while (found == VLM_CALLS_NONE && c->place != before);

    return found;
}


/* ---- written ------------------------------------------------------------- */


static void
put_string(vlm_json_out_t *w, const char *text)
{
    char         buf[8];
    const char  *p, *letter;

    vlm_json_put_raw(w, "\"", 1);

    for (p = text; *p != '\0'; p++) {
        letter = strchr("\"\"\\\\\bb\ff\nn\rr\tt", *p);

        if (*p == '"' || *p == '\\' || ((unsigned char) *p < 0x20 && letter != NULL)) {
            buf[0] = '\\';
            buf[1] = letter[1];
            vlm_json_put_raw(w, buf, 2);

        } else if ((unsigned char) *p < 0x20) {
            (void) snprintf(buf, sizeof(buf), "\\u%04x", (unsigned) *p);
            vlm_json_put_raw(w, buf, 6);

        } else {
            vlm_json_put_raw(w, p, 1);
        }
    }

    vlm_json_put_raw(w, "\"", 1);
}


void
vlm_calls_put(vlm_json_out_t *w, const vlm_json_t *j)
{
    int64_t            n;
    const char        *written = vlm_json_written(j);
    const vlm_json_t  *m;
    const int          object = vlm_json_is_object(j);

    w->comma = 0;

    if (object || vlm_json_is_array(j)) {
        vlm_json_put_raw(w, object ? "{" : "[", 1);

        for (m = vlm_json_first(j); m != NULL; m = vlm_json_next(m)) {
            if (object) {
                put_string(w, vlm_json_key(m));
                vlm_json_put_raw(w, ": ", 2);
            }

            vlm_calls_put(w, m);
            vlm_json_put_raw(w, ", ", vlm_json_next(m) != NULL ? 2 : 0);
        }

        vlm_json_put_raw(w, object ? "}" : "]", 1);

    } else if (vlm_json_is_string(j)) {
        put_string(w, vlm_json_text(j));

    } else if (written != NULL) {
        vlm_json_put_raw(w, written, strlen(written));

    } else if (vlm_json_int(j, INT64_MIN, INT64_MAX, &n) == 0) {
        vlm_json_put_int(w, n);

    } else if (vlm_json_is_number(j)) {
        vlm_json_put_double(w, vlm_json_number(j, 0));

    } else if (vlm_json_is_bool(j)) {
        vlm_json_put_bool(w, vlm_json_bool(j, 0));

    } else {
        vlm_json_put_null(w);
    }

    w->comma = 0;
}


void
vlm_calls_arguments(vlm_json_out_t *w, const vlm_json_t *j)
{
    vlm_err_t    err = { VLM_OK, "" };
    const char  *text;
    vlm_json_t  *parsed;

    text = vlm_json_text(j);
    parsed = text == NULL ? NULL : vlm_json_parse(text, strlen(text), &err);

    if (parsed != NULL) {
        vlm_calls_put(w, parsed);

    } else if (text != NULL && text[0] != '\0') {
        vlm_json_put_raw(w, text, strlen(text));

    } else if (j == NULL || text != NULL || vlm_json_is_null(j)) {
        vlm_json_put_raw(w, "{}", 2);

    } else {
        vlm_calls_put(w, j);
    }

    vlm_json_free(parsed);
}


void
vlm_calls_write(vlm_json_out_t *w, const char *name, const vlm_json_t *arguments)
{
    vlm_json_put_raw(w, "\n{\"name\": ", strlen("\n{\"name\": "));
    put_string(w, name);
    vlm_json_put_raw(w, ", \"arguments\": ", strlen(", \"arguments\": "));
    vlm_calls_arguments(w, arguments);
    vlm_json_put_raw(w, "}", 1);
}


void
vlm_calls_add_arguments(vlm_json_out_t *w, const vlm_calls_piece_t *piece, int as_text)
{
    vlm_json_out_t  a;

    vlm_json_init(&a, VLM_CALLS_ARGUMENTS);
    vlm_calls_arguments(&a, piece->arguments);

    if (a.failed) {
        w->failed = 1;

    } else if (as_text) {
        vlm_json_add_text(w, "arguments", a.data, a.len);

    } else {
        vlm_json_put_key(w, "arguments");
        vlm_json_put_raw(w, a.data, a.len);
        w->comma = 1;
    }

    vlm_json_release(&a);
}
