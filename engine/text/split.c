/*
 * The split pattern.  No other file includes PCRE2.
 *
 * Patterns are written for Oniguruma, which the reference uses; constructs with another meaning in
 * PCRE2 are rewritten before the pattern is compiled.  Compiled code is read-only; each walk has
 * its own match data.
 */

#define PCRE2_CODE_UNIT_WIDTH  8

#include "text/split.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MATCH_LIMIT  (64u << 20)       /* steps of one match: 16 per byte of the longest text */
#define HEAP_LIMIT   (64u << 10)       /* KiB of one match without JIT */
#define NOT_YET      SIZE_MAX          /* in pieces->from: no match waits */

struct vlm_split_s {
    pcre2_code           *code;
    pcre2_match_context  *limits;
};

/*
 * PCRE2's \s has U+180E, which is no longer white space in Unicode and not in Oniguruma.  So \s is
 * replaced by a list.  Inside brackets that is possible for \s only: \S there stays as it is.
 *
 * A bracket within a class begins one more class, all of which belongs to the outer one: its
 * brackets are left out.
 */
#define SPACES  "\\t-\\r\\x{85}\\p{Z}"


/* The length of the start of a class, which is copied unchanged. */
static size_t
bracket_bytes(const char *p)
{
    size_t  n;

    n = p[1] == '^' ? 2 : 1;

    return p[n] == ']' ? n + 1 : n;    /* a bracket that comes first is a character */
}


/* The length of a [:name:] within a class; 0: the bracket begins one more class. */
static size_t
name_bytes(const char *p)
{
    const char  *end;

    end = p[1] == ':' ? strstr(p + 2, ":]") : NULL;

    return end == NULL ? 0 : (size_t) (end - p) + 2;
}


/* Copies the pattern to out, which has room for it. */
static int
spell(const char *p, char *out, vlm_err_t *err)
{
    size_t       n;
    uint32_t     inside;               /* so many classes, one in the other */
    const char  *pattern = p;

    inside = 0;

    while (*p != '\0') {
        n = 1;

        if (inside > 0 && ((p[0] == '&' && p[1] == '&')
                           || (p[0] == '[' && (p[1] == '^' || p[1] == ']'))))
        {
            return vlm_fail(err, VLM_EMODEL, "split pattern \"%s\": \"%.2s\" within a class, at "
                            "byte %zu, is not supported", vlm_printable(pattern), p,
                            (size_t) (p - pattern));
        }

        if (p[0] == '\\' && p[1] == 's') {
            out += sprintf(out, inside > 0 ? "%s" : "[%s]", SPACES);
            p += 2;
            continue;
        }

        if (p[0] == '\\' && p[1] == 'S' && inside == 0) {
            out += sprintf(out, "[^%s]", SPACES);
            p += 2;
            continue;
        }

        if (p[0] == '\\' && p[1] != '\0') {
            n = 2;

        } else if (*p == '[' && inside == 0) {
            n = bracket_bytes(p);
            inside = 1;

        } else if (*p == '[') {
            n = name_bytes(p);

            if (n == 0) {
                inside++;
                p++;
                continue;
            }

        } else if (*p == ']' && inside > 0 && --inside > 0) {
            p++;
            continue;
        }

        memcpy(out, p, n);
        out += n;
        p += n;
    }

    *out = '\0';

    return 0;
}


static int
compile(vlm_split_t *s, const char *pattern, vlm_err_t *err)
{
    int          code;
    char        *spelled;
    PCRE2_UCHAR  text[160];
    PCRE2_SIZE   offset;

    spelled = malloc(strlen(pattern) * sizeof(SPACES "[^]") + 1);
    if (spelled == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for the split pattern");
    }

    if (spell(pattern, spelled, err) != 0) {
        free(spelled);
        return -1;
    }

    s->code = pcre2_compile((PCRE2_SPTR) spelled, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &offset, NULL);

    free(spelled);

    if (s->code == NULL) {
        (void) pcre2_get_error_message(code, text, sizeof(text));
        return vlm_fail(err, VLM_EMODEL, "split pattern \"%s\": %s at byte %zu",
                        vlm_printable(pattern), (char *) text, (size_t) offset);
    }

    /* Without JIT (a hardened kernel forbids it) the interpreter does the same, slower. */
    (void) pcre2_jit_compile(s->code, PCRE2_JIT_COMPLETE);

    return 0;
}


vlm_split_t *
vlm_split_open(const char *pattern, vlm_err_t *err)
{
    vlm_split_t  *s;

    if (pattern == NULL) {             /* nor has the family one */
        (void) vlm_fail(err, VLM_EMODEL, "the tokenizer has no pattern by which text is split");
        return NULL;
    }

    if (strlen(pattern) > VLM_MAX_PATTERN) {
        (void) vlm_fail(err, VLM_EMODEL, "split pattern of %zu bytes, at most %u are supported",
                        strlen(pattern), VLM_MAX_PATTERN);
        return NULL;
    }

    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for the split pattern");
        return NULL;
    }

    if (compile(s, pattern, err) != 0) {
        goto failed;
    }

    s->limits = pcre2_match_context_create(NULL);
    if (s->limits == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for the split pattern");
        goto failed;
    }

    (void) pcre2_set_match_limit(s->limits, MATCH_LIMIT);
    (void) pcre2_set_heap_limit(s->limits, HEAP_LIMIT);

    return s;

failed:

    vlm_split_close(s);

    return NULL;
}


void
vlm_split_close(vlm_split_t *s)
{
    if (s == NULL) {
        return;
    }

    pcre2_match_context_free(s->limits);
    pcre2_code_free(s->code);
    free(s);
}


int
vlm_pieces_open(vlm_pieces_t *p, const vlm_split_t *split, const char *text, size_t bytes,
                vlm_err_t *err)
{
    memset(p, 0, sizeof(*p));

    p->match = pcre2_match_data_create(1, NULL);       /* bounds of a match, no groups */
    if (p->match == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory to split a text of %zu bytes", bytes);
    }

    p->split = split;
    vlm_pieces_again(p, text, bytes);

    return 0;
}


void
vlm_pieces_again(vlm_pieces_t *p, const char *text, size_t bytes)
{
    p->text = bytes == 0 ? "" : text;
    p->bytes = bytes;
    p->done = p->to = p->search = 0;
    p->from = NOT_YET;
}


void
vlm_pieces_close(vlm_pieces_t *p)
{
    pcre2_match_data_free(p->match);

    memset(p, 0, sizeof(*p));
}


/* One character on. */
static size_t
step(const vlm_pieces_t *p, size_t at)
{
    do {
        at++;
    } while (at < p->bytes && ((uint8_t) p->text[at] & 0xc0) == 0x80);

    return at;
}


/* The next match; its end is p->bytes and it is empty if there is none. */
static int
find(vlm_pieces_t *p, vlm_err_t *err)
{
    int          rc;
    PCRE2_SIZE  *range;

    rc = pcre2_match(p->split->code, (PCRE2_SPTR) p->text, p->bytes, p->search,
                     PCRE2_NO_UTF_CHECK, p->match, p->split->limits);

    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
        rc = pcre2_match(p->split->code, (PCRE2_SPTR) p->text, p->bytes, p->search,
                         PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, p->match, p->split->limits);
    }

    if (rc == PCRE2_ERROR_NOMATCH) {
        p->from = p->to = p->bytes;
        return 0;
    }

    if (rc < 0) {
        return vlm_fail(err, VLM_ELIMIT,
                        "the split pattern gave up at byte %zu of %zu (PCRE2 error %d)", p->search,
                        p->bytes, rc);
    }

    range = pcre2_get_ovector_pointer(p->match);
    p->from = range[0];
    p->to = range[1];

    if (p->from < p->search || p->to < p->from || p->to > p->bytes) {      /* \K can do that */
        return vlm_fail(err, VLM_EMODEL, "the split pattern matches bytes %zu to %zu from byte %zu",
                        p->from, p->to, p->search);
    }

    return 0;
}


int
vlm_pieces_next(vlm_pieces_t *p, const char **piece, size_t *bytes, vlm_err_t *err)
{
    size_t  end;

    while (p->done < p->bytes) {
        if (p->from == NOT_YET && find(p, err) != 0) {
            return -1;
        }

        end = p->done < p->from ? p->from : p->to;

        if (end == p->to) {            /* the match itself is next */
            p->search = p->to == p->from ? step(p, p->to) : p->to;
            p->from = NOT_YET;
        }

        if (end > p->done) {
            *piece = p->text + p->done;
            *bytes = end - p->done;
            p->done = end;
            return 1;
        }
    }

    return 0;
}
