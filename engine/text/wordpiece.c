/*
 * Splits texts into pieces of words.  A text is read once, character by character, into one word at
 * a time, so that a long text costs no more than the part that is kept.
 */

#include "text/wordpiece.h"

#include <stdlib.h>
#include <string.h>

#include "base/unicode.h"
#include "base/utf8.h"
#include "text/vocab.h"
#include "text/wordpiece_read.h"

#define REPLACEMENT  0xfffd
#define FULL         1                 /* no more ids are kept */

typedef struct {
    const vlm_wordpiece_t  *t;
    uint32_t               *ids;       /* [n] of most, without the end token's place */
    uint32_t                n, most;
    uint32_t                chars;     /* of the word, also of one that is too long */
    size_t                  end;       /* of the word's bytes */
    uint8_t                 bytes[VLM_PIECE_PREFIX + 4 * VLM_PIECE_CHARS];
                                       /* the word begins behind room for a prefix */
} word_t;


/* The ideographs that stand for words; Kana and Hangul do not. */
static int
is_ideograph(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf)
           || (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f)
           || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf)
           || (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}


/* Signs such as $ and ^ count as punctuation if they are ASCII. */
static int
is_punctuation(uint32_t c)
{
    return (c >= 0x21 && c <= 0x2f) || (c >= 0x3a && c <= 0x40) || (c >= 0x5b && c <= 0x60)
           || (c >= 0x7b && c <= 0x7e) || (c >= 0x80 && vlm_unicode_punctuation(c));
}


static int
add_id(word_t *w, uint32_t id)
{
    if (w->n < w->most) {
        w->ids[w->n++] = id;
    }

    return w->n == w->most ? FULL : 0;
}


/*
 * The longest piece that begins at byte `at` of the word; its end, or 0.  The prefix of a piece
 * within a word is put over bytes that were taken already.
 */
static size_t
find_piece(word_t *w, size_t at, uint32_t *id)
{
    size_t                  from, end;
    int64_t                 found;
    const vlm_wordpiece_t  *t = w->t;

    from = at;

    if (at > VLM_PIECE_PREFIX) {
        from = at - t->n_prefix;
        memcpy(w->bytes + from, t->prefix, t->n_prefix);
    }

    end = w->end - from > t->vocab.max_bytes ? from + t->vocab.max_bytes : w->end;

    for ( /* void */ ; end > at; end--) {
        if (end < w->end && (w->bytes[end] & 0xc0) == 0x80) {
            continue;
        }

        found = vlm_vocab_find(&t->vocab, w->bytes + from, end - from);

        if (found >= 0) {
            *id = (uint32_t) found;
            return end;
        }
    }

    return 0;
}


/* The word's pieces; a word that has an unknown part is unknown. */
static int
end_word(word_t *w)
{
    int       rc;
    size_t    at;
    uint32_t  i, n, ids[VLM_PIECE_CHARS];

    if (w->chars == 0) {
        return 0;
    }

    n = 0;

    for (at = VLM_PIECE_PREFIX; w->chars <= w->t->max_chars && at < w->end; n++) {
        at = find_piece(w, at, &ids[n]);

        if (at == 0) {
            break;
        }
    }

    if (w->chars > w->t->max_chars || at == 0) {
        ids[0] = w->t->unknown;
        n = 1;
    }

    w->chars = 0;
    w->end = VLM_PIECE_PREFIX;

    for (rc = 0, i = 0; rc == 0 && i < n; i++) {
        rc = add_id(w, ids[i]);
    }

    return rc;
}


static void
add_to_word(word_t *w, uint32_t c)
{
    if (w->chars++ < w->t->max_chars) {
        w->end += vlm_utf8_put(w->bytes + w->end, c);
    }
}


/* A character after folding. */
static int
add_folded(word_t *w, uint32_t c)
{
    if (vlm_unicode_space(c)) {
        return end_word(w);
    }

    if (!is_punctuation(c)) {
        add_to_word(w, c);
        return 0;
    }

    if (end_word(w) == FULL) {
        return FULL;
    }

    add_to_word(w, c);

    return end_word(w);
}


static int
add_parts(word_t *w, uint32_t c)
{
    int       rc;
    size_t    i, n;
    uint32_t  part[VLM_UNICODE_DECOMPOSED];

    if (c < 0x80 || !w->t->strip) {
        return add_folded(w, w->t->lower ? vlm_unicode_lower(c) : c);
    }

    n = vlm_unicode_canonical(c, part);

    for (rc = 0, i = 0; rc == 0 && i < n; i++) {
        if (!vlm_unicode_mark(part[i])) {
            rc = add_folded(w, w->t->lower ? vlm_unicode_lower(part[i]) : part[i]);
        }
    }

    return rc;
}


static int
add_char(word_t *w, uint32_t c)
{
    if (w->t->clean && c != '\t' && c != '\n' && c != '\r'
        && (c == REPLACEMENT || vlm_unicode_other(c)))
    {
        return 0;
    }

    if (!w->t->ideographs || !is_ideograph(c)) {
        return add_parts(w, c);
    }

    return end_word(w) == FULL || add_parts(w, c) == FULL ? FULL : end_word(w);
}


/* The control token that the text spells here, or NULL. */
static const vlm_entry_t *
control_at(const vlm_wordpiece_t *t, const char *p, size_t left, uint32_t *id)
{
    uint32_t            i;
    const vlm_entry_t  *e, *best = NULL;

    for (i = 0; i < t->n_control; i++) {
        e = vlm_vocab_token(&t->vocab, t->control[i]);

        if (e->bytes <= left && memcmp(t->vocab.pool + e->at, p, e->bytes) == 0
            && (best == NULL || e->bytes > best->bytes))
        {
            best = e;
            *id = t->control[i];
        }
    }

    return best;
}


int
vlm_wordpiece_ids(const vlm_wordpiece_t *t, const char *text, size_t bytes, uint32_t *ids,
                  uint32_t most, uint32_t *n, vlm_err_t *err)
{
    int                 rc;
    size_t              at, used;
    word_t              w = { .t = t, .ids = ids, .most = most - 1, .end = VLM_PIECE_PREFIX };
    uint32_t            c, id;
    const vlm_entry_t  *control;

    *n = 0;
    rc = add_id(&w, t->begin);

    for (at = 0; rc == 0 && at < bytes; at += used) {
        control = t->starts[(uint8_t) text[at]] ? control_at(t, text + at, bytes - at, &id) : NULL;

        if (control != NULL) {
            used = control->bytes;
            rc = end_word(&w) == FULL ? FULL : add_id(&w, id);
            continue;
        }

        used = vlm_utf8((const unsigned char *) text + at, bytes - at, &c);

        if (used == 0) {
            return vlm_fail(err, VLM_EINPUT, "a text is not UTF-8 at byte %zu", at);
        }

        rc = add_char(&w, c);
    }

    if (rc == 0) {
        (void) end_word(&w);
    }

    ids[w.n++] = t->end;
    *n = w.n;

    return 0;
}
