/* Tokens that an answer's grammar leaves no choice about: see the header. */

#include "run/feed.h"

#include <string.h>

#include "base/utf8.h"

typedef struct {                       /* the last tokens, the forced text, and what may follow */
    char             text[VLM_FEED_TEXT];
    size_t           before, bytes;    /* of the tokens; of both */
    vlm_forced_t     forced;
    const uint32_t  *ids;              /* [n_ids] of the text */
    size_t           n_ids;
} feed_t;


void
vlm_feed_start(vlm_job_t *j)
{
    j->n_last = 0;
    vlm_blanks_start(&j->blanks);
}


void
vlm_feed_read(vlm_job_t *j, uint32_t id, const char *bytes, size_t n)
{
    if (j->n_last == VLM_LAST) {
        memmove(j->last, j->last + 1, (VLM_LAST - 1) * sizeof(*j->last));
        j->n_last--;
    }

    j->last[j->n_last++] = id;
    vlm_blanks_read(&j->blanks, bytes, n);
}


/* Puts the text behind the last n tokens.  -1: one of them has no text. */
static int
put_text(const vlm_adjust_t *a, const vlm_job_t *j, uint32_t n, feed_t *f)
{
    size_t       bytes;
    uint32_t     i;
    const char  *p;

    for (f->before = 0, i = j->n_last - n; i < j->n_last; i++) {
        p = vlm_token_bytes(a->tokenizer, j->last[i], &bytes);

        if (p == NULL || bytes > VLM_PIECE_BYTES) {
            return -1;
        }

        memcpy(f->text + f->before, p, bytes);
        f->before += bytes;
    }

    memcpy(f->text + f->before, f->forced.text, f->forced.n);
    f->bytes = f->before + f->forced.n;

    return 0;
}


/* 1: with the text behind them, the last n tokens stay as they are; the text's are f->ids. */
static int
tokenise(const vlm_adjust_t *a, const vlm_job_t *j, uint32_t n, feed_t *f)
{
    if (put_text(a, j, n, f) != 0) {
        return 0;
    }

    f->ids = vlm_encoder_ids(a->encoder, f->text, f->bytes, &f->n_ids);

    return f->ids != NULL && f->n_ids >= n
           && memcmp(f->ids, j->last + j->n_last - n, n * sizeof(*j->last)) == 0;
}


/* One byte stands for the others of its kind: letters and digits are alike to the pattern. */
static int
same_kind(uint32_t c, uint32_t d)
{
    const uint32_t  x = c | 0x20, y = d | 0x20;

    return (x >= 'a' && x <= 'z' && y >= 'a' && y <= 'z')
           || (c >= '0' && c <= '9' && d >= '0' && d <= '9');
}


/* Where the piece begins that some byte which may follow could become part of, at most `end`. */
static size_t
border(const vlm_adjust_t *a, feed_t *f, size_t end)
{
    size_t       start;
    uint32_t     c, last, n;
    const char  *p;

    for (last = 0, c = 0; c < 256; c++) {
        if (!f->forced.next[c] || same_kind(c, last)) {
            continue;
        }

        last = c;
        p = c < 0x80 ? NULL : "\xc3\xa9";          /* a letter */
        n = p == NULL ? 1 : 2;
        memcpy(f->text + f->bytes, p == NULL ? (const char[]) { (char) c } : p, n);

        if (vlm_encoder_piece(a->encoder, f->text, f->bytes + n, f->bytes, &start) != 0) {
            return 0;
        }

        end = start < end ? start : end;

        if (p != NULL) {
            break;
        }
    }

    return end;
}


/* Copies the tokens up to a border of the text, as long as the answer can be ended behind each. */
static uint32_t
copy(const vlm_adjust_t *a, const vlm_job_t *j, const feed_t *f, uint32_t first, size_t end,
     uint32_t most, uint32_t *id)
{
    size_t       at, bytes;
    uint32_t     n, left, token;
    const char  *p;

    left = j->sampling.max_tokens - j->usage.completion_tokens;

    for (n = 0, at = f->before; n < most && n < left && first + n < f->n_ids; n++, at += bytes) {
        token = f->ids[first + n];
        p = token < a->n_ids && vlm_token_is_text(a->tokenizer, token)
            ? vlm_token_bytes(a->tokenizer, token, &bytes) : NULL;

        if (p == NULL || bytes > end - at || memcmp(f->text + at, p, bytes) != 0
            || vlm_tokens_ends(a->pieces, token)
            || !vlm_walk_fits(a->walk, (uint32_t) (at + bytes - f->before), left - n - 1))
        {
            break;
        }

        id[n] = token;
    }

    return n;
}


uint32_t
vlm_feed(const vlm_adjust_t *a, const vlm_job_t *j, uint32_t most, uint32_t id[VLM_FED],
         int *whole)
{
    feed_t    f;
    size_t    end;
    uint32_t  n, k;

    *whole = 0;

    if (a->unforced || j->match == NULL || j->hold != VLM_HOLD_VALUE || most == 0) {
        return 0;
    }

    vlm_walk_allow(a->walk, VLM_MASK_QUICK, NULL);
    vlm_forced_text(&f.forced, j->match, a->walk, &j->blanks);
    end = vlm_utf8_whole(f.forced.text, f.forced.n);
    f.forced.whole &= end == f.forced.n;
    f.forced.n = (uint32_t) end;

    if (end == 0) {
        return 0;
    }

    for (k = j->n_last; k > 0 && !tokenise(a, j, k, &f); k--) { /* void */ }

    if (k == 0 && !tokenise(a, j, 0, &f)) {
        return 0;
    }

    end = f.forced.whole ? f.bytes : border(a, &f, f.bytes);
    n = end < f.before ? 0 : copy(a, j, &f, k, end, most < VLM_FED ? most : VLM_FED, id);
    *whole = f.forced.whole && k + n == f.n_ids;

    return n;
}
