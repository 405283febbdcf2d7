/*
 * Cuts a page's text into pieces for a search.
 *
 * A piece has at most VLM_CHUNK characters and ends, as far as it can, at the end of a paragraph, a
 * sentence, a line or a word in its second half.  The next one begins at a word about
 * VLM_CHUNK_OVERLAP characters before that end, so that a sentence across a border is whole in one
 * of them.  A piece never crosses a page, so that each has one page to show.
 */

#ifndef VLM_CHUNK_H
#define VLM_CHUNK_H

#include <stddef.h>

#define VLM_CHUNK          1000            /* characters, as System B's */
#define VLM_CHUNK_OVERLAP  100

typedef struct {
    size_t  first;                         /* byte of the page's text */
    size_t  bytes;
} vlm_chunk_t;

/*
 * The next piece of a valid UTF-8 text.  chunk is zero before the first, later the one before.
 * 0: there is none; a piece has at least one character that is not a space.
 */
int vlm_chunk_next(vlm_chunk_t *chunk, const char *text, size_t bytes);

#endif
