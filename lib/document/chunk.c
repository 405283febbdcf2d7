/* Pieces of a page's text, cut at the best place near their greatest length. */

#include "document/chunk.h"

#include <string.h>

#define IDEOGRAPHIC_STOP  "\xe3\x80\x82"   /* U+3002 */
#define DANDA             "\xe0\xa5\xa4"   /* U+0964, which ends a sentence in Hindi */


static int
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}


/* The byte after n characters from at on, or the end. */
static size_t
after(const char *text, size_t bytes, size_t at, size_t n)
{
    for ( ; at < bytes && n > 0; n--) {
        do {
            at++;
        } while (at < bytes && (text[at] & 0xc0) == 0x80);
    }

    return at;
}


/* The byte of the character n characters before at, not before low. */
static size_t
before(const char *text, size_t low, size_t at, size_t n)
{
    for ( ; at > low && n > 0; n--) {
        do {
            at--;
        } while (at > low && (text[at] & 0xc0) == 0x80);
    }

    return at;
}


static int
ends_with(const char *text, size_t at, const char *mark)
{
    const size_t  n = strlen(mark);

    return at >= n && memcmp(text + at - n, mark, n) == 0;
}


/* How good it is to cut before byte at; 0: within a word. */
static int
quality(const char *text, size_t at)
{
    if (ends_with(text, at, "\n\n")) {
        return 4;
    }

    if (ends_with(text, at, IDEOGRAPHIC_STOP) || ends_with(text, at, DANDA)
        || ends_with(text, at, ". ") || ends_with(text, at, ".\n") || ends_with(text, at, "? ")
        || ends_with(text, at, "! "))
    {
        return 3;
    }

    return text[at - 1] == '\n' ? 2 : is_space(text[at - 1]);
}


/* The best cut of (low, high], the last of equal ones; high if there is no space. */
static size_t
best_cut(const char *text, size_t low, size_t high)
{
    int     q, best;
    size_t  at, cut;

    cut = high;
    best = 0;

    for (at = high; at > low; at--) {
        q = quality(text, at);

        if (q > best) {
            best = q;
            cut = at;
        }
    }

    return cut;
}


/* The first byte of a word at or after at; at itself if no word begins before end. */
static size_t
word_after(const char *text, size_t at, size_t end)
{
    size_t  i;

    for (i = at; i < end && !is_space(text[i]); i++) { }

    return i < end ? i : at;
}


static size_t
skip_spaces(const char *text, size_t at, size_t bytes)
{
    while (at < bytes && is_space(text[at])) {
        at++;
    }

    return at;
}


/* The end of a piece that begins at first, without spaces. */
static size_t
piece_end(const char *text, size_t first, size_t bytes)
{
    size_t  end;

    end = after(text, bytes, first, VLM_CHUNK);

    if (end < bytes) {
        end = best_cut(text, after(text, bytes, first, VLM_CHUNK / 2), end);
    }

    while (end > first && is_space(text[end - 1])) {
        end--;
    }

    return end;
}


/* Where the next piece begins so that it overlaps the last one. */
static size_t
overlapping(const vlm_chunk_t *last, const char *text, size_t bytes)
{
    size_t  end, at;

    end = last->first + last->bytes;
    at = before(text, after(text, end, last->first, 1), end, VLM_CHUNK_OVERLAP);

    return skip_spaces(text, word_after(text, at, end), bytes);
}


int
vlm_chunk_next(vlm_chunk_t *chunk, const char *text, size_t bytes)
{
    size_t  first, end, old_end;

    old_end = chunk->first + chunk->bytes;
    first = skip_spaces(text, old_end, bytes);

    if (first == bytes) {
        return 0;
    }

    if (old_end > 0) {
        first = overlapping(chunk, text, bytes);
    }

    end = piece_end(text, first, bytes);

    /* Before a long gap the overlap alone would be a piece. */
    if (end <= old_end) {
        first = skip_spaces(text, old_end, bytes);
        end = piece_end(text, first, bytes);
    }

    chunk->first = first;
    chunk->bytes = end - first;

    return 1;
}
