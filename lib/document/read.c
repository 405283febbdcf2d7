/* Frames of vlm-pdf to pages, chunks and terms. */

#include "document/read.h"

#include <stdlib.h>
#include <string.h>

#include "document/prompt.h"


/* A copy of the page's text in which hidden words are spaces; NULL: no memory. */
static char *
seen_text(const vlm_document_page_t *page)
{
    int                    layer;
    char                  *seen;
    size_t                 i;
    const vlm_pdf_word_t  *word;

    seen = malloc(page->bytes + 1);

    if (seen == NULL) {
        return NULL;
    }

    memcpy(seen, page->text, page->bytes);

    layer = vlm_page_layer(page->flags, page->words, page->n_words);

    for (i = 0; i < page->n_words && !layer; i++) {
        word = &page->words[i];

        if (word->flags & VLM_PDF_HIDDEN) {
            memset(seen + word->first, ' ', word->bytes);
        }
    }

    return seen;
}


/* Room for one more chunk: the number doubles. */
static int
grow(vlm_document_page_t *page)
{
    size_t        room = page->n_chunks ? 2 * page->n_chunks : 1;
    vlm_terms_t  *terms;
    vlm_chunk_t  *chunks;

    if (page->n_chunks & (page->n_chunks - 1)) {
        return 0;
    }

    chunks = realloc((vlm_chunk_t *) page->chunks, room * sizeof(*chunks));

    if (chunks == NULL) {
        return -1;
    }

    page->chunks = chunks;
    terms = realloc((vlm_terms_t *) page->terms, room * sizeof(*terms));

    if (terms == NULL) {
        return -1;
    }

    page->terms = terms;

    return 0;
}


static int
cut(vlm_document_page_t *page, const char *seen)
{
    vlm_chunk_t   chunk = { 0 };
    vlm_terms_t  *terms;

    while (vlm_chunk_next(&chunk, seen, page->bytes)) {
        if (grow(page)) {
            return -1;
        }

        terms = (vlm_terms_t *) &page->terms[page->n_chunks];

        if (vlm_terms_of(terms, seen + chunk.first, chunk.bytes)) {
            return -1;
        }

        ((vlm_chunk_t *) page->chunks)[page->n_chunks++] = chunk;
    }

    return 0;
}


static void
free_page(vlm_document_page_t *page)
{
    size_t  i;

    for (i = 0; i < page->n_chunks; i++) {
        free(page->terms[i].terms);
    }

    free((vlm_chunk_t *) page->chunks);
    free((vlm_terms_t *) page->terms);
    free(page->memory);
}


/* The words, then the text, in one piece of memory. */
static int
copy(vlm_document_page_t *page, const vlm_frame_t *frame)
{
    char    *text;
    size_t   words = frame->page.words * sizeof(vlm_pdf_word_t);

    page->memory = malloc(words + frame->bytes + 1);

    if (page->memory == NULL) {
        return -1;
    }

    text = (char *) page->memory + words;

    if (words) {
        memcpy(page->memory, frame->words, words);
    }

    memcpy(text, frame->text, frame->bytes);

    page->number = frame->page.number;
    page->flags = frame->page.flags;
    page->width = frame->page.width;
    page->height = frame->page.height;
    page->text = text;
    page->bytes = frame->bytes;
    page->words = page->memory;
    page->n_words = frame->page.words;

    return 0;
}


static int
add_page(vlm_read_t *read, const vlm_frame_t *frame)
{
    int                   rc;
    char                 *seen;
    size_t                room;
    vlm_document_page_t  *page;

    if (read->n == read->room) {
        room = read->room ? 2 * read->room : 16;
        page = realloc(read->page, room * sizeof(*page));

        if (page == NULL) {
            return -1;
        }

        read->page = page;
        read->room = room;
    }

    page = &read->page[read->n];
    memset(page, 0, sizeof(*page));

    if (copy(page, frame)) {
        return -1;
    }

    read->n++;

    seen = seen_text(page);
    rc = seen ? cut(page, seen) : -1;
    free(seen);

    read->n_chunks += page->n_chunks;

    return rc;
}


int
vlm_read_frame(vlm_read_t *read, const vlm_frame_t *frame)
{
    size_t  n;

    switch (frame->kind) {

    case VLM_FRAME_INFO:
        n = frame->bytes < VLM_FRAME_TITLE ? frame->bytes : VLM_FRAME_TITLE;

        read->pages = frame->pages;
        read->to_read = frame->to_read;
        memcpy(read->title, frame->text, n);
        read->title[n] = '\0';

        return 0;

    case VLM_FRAME_PAGE:
        return add_page(read, frame);

    default:
        return 0;
    }
}


void
vlm_read_free(vlm_read_t *read)
{
    size_t  i;

    for (i = 0; i < read->n; i++) {
        free_page(&read->page[i]);
    }

    free(read->page);
    memset(read, 0, sizeof(*read));
}
