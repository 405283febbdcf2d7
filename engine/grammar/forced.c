/* Text that a grammar allows in one way only: see the header. */

#include "grammar/forced.h"

#include <string.h>

enum { NOT_KNOWN, NO_BLANK, SPACE, OTHER };        /* forms */


static int
is_blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}


void
vlm_blanks_start(vlm_blanks_t *b)
{
    b->in_string = b->escaped = b->last = b->run = 0;
    b->behind = VLM_BEHIND_NOTHING;
}


static uint8_t
place_behind(uint8_t c, uint8_t before)
{
    switch (c) {
    case ':':
        return VLM_BEHIND_COLON;
    case ',':
        return before == '}' ? VLM_BEHIND_OBJECT : VLM_BEHIND_COMMA;
    case '{':
        return VLM_BEHIND_BRACE;
    case '[':
        return VLM_BEHIND_BRACKET;
    default:
        return VLM_BEHIND_VALUE;
    }
}


/* A byte outside of strings that is no blank.  Within a number or a word there is no place. */
static void
read_mark(vlm_blanks_t *b, uint8_t c)
{
    if (b->behind != VLM_BEHIND_VALUE || (c != '\0' && strchr(",:]}", c) != NULL)) {
        b->form[b->behind] = b->run == 0 ? NO_BLANK : b->run == 1 ? SPACE : OTHER;
    }

    b->behind = place_behind(c, b->last);
    b->in_string = c == '"';
    b->last = c;
    b->run = 0;
}


void
vlm_blanks_read(vlm_blanks_t *b, const char *bytes, size_t n)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; i < n; i++) {
        c = (uint8_t) bytes[i];

        if (!b->in_string && is_blank(c)) {
            b->run = c == ' ' && b->run == 0 ? 1 : 2;      /* 2: neither none nor one space */

        } else if (!b->in_string) {
            read_mark(b, c);

        } else if (b->escaped || c == '\\') {
            b->escaped = !b->escaped;

        } else {
            b->in_string = c != '"';
        }
    }
}


/* 1: a blank has to come, if it may. */
static int
wants_space(const vlm_blanks_t *b, int blanks)
{
    return blanks && !b->in_string && b->form[b->behind] == SPACE && b->run == 0
           && b->behind != VLM_BEHIND_VALUE;       /* which may go on there */
}


/* 1: there are several ways on from state 0.  That is so mostly, and two bytes show it. */
static int
has_choice(vlm_walk_t *w)
{
    uint8_t   c;
    uint32_t  i, n;

    for (n = 0, i = 0; i < 256 && n < 2; i++) {
        c = (uint8_t) ('a' + i);
        n += !is_blank(c) && vlm_walk_byte(w, 0, c);
    }

    return n == 2 || vlm_walk_spent(w);
}


/* Sets what may follow state d, and returns how many. */
static uint32_t
find_next(vlm_forced_t *f, vlm_walk_t *w, uint32_t d)
{
    uint32_t  c, n;

    for (n = 0, c = 0; c < 256; c++) {
        f->next[c] = (uint8_t) vlm_walk_byte(w, d, (uint8_t) c);
        n += f->next[c];
    }

    return n;
}


/* The one byte that may follow by the blanks so far; or -1, and next without other blanks. */
static int
only(vlm_forced_t *f, const vlm_blanks_t *b, int blanks)
{
    uint32_t       c, n, last;
    const uint8_t  form = b->form[b->behind];

    if (f->next[' '] && wants_space(b, blanks)) {
        return ' ';
    }

    if (blanks && !b->in_string && b->run == (form == SPACE) && (form == NO_BLANK || form == SPACE))
    {
        f->next[' '] = f->next['\t'] = f->next['\n'] = f->next['\r'] = 0;
    }

    for (n = 0, last = 0, c = 0; c < 256; c++) {
        n += f->next[c];
        last = f->next[c] ? c : last;
    }

    return n == 1 ? (int) last : -1;
}


void
vlm_forced_text(vlm_forced_t *f, const vlm_match_t *m, vlm_walk_t *w, const vlm_blanks_t *b)
{
    int           c;
    char          byte;
    uint32_t      n;
    vlm_blanks_t  at = *b;

    vlm_walk_begin(w, m);
    f->n = 0;
    f->whole = 0;

    if (!wants_space(b, m->g->blanks) && has_choice(w)) {
        return;
    }

    for ( ;; f->n++) {
        n = find_next(f, w, f->n);

        if (vlm_walk_spent(w)) {
            memset(f->next, 1, sizeof(f->next));   /* what may follow is not known */
            return;
        }

        if (vlm_walk_may_end(w, f->n)) {
            f->whole = n == 0;
            return;
        }

        c = only(f, &at, m->g->blanks);

        if (c == -1 || f->n == VLM_FORCED_BYTES) {
            return;
        }

        byte = (char) c;
        (void) vlm_walk_byte(w, f->n, (uint8_t) c);
        vlm_blanks_read(&at, &byte, 1);
        f->text[f->n] = byte;
    }
}
