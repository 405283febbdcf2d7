
/* Helpers that the tests of documents share: documents with pages that are made of a number. */


#ifndef _NGX_HTTP_VLM_DOCUMENTS_FIXTURE_H_INCLUDED_
#define _NGX_HTTP_VLM_DOCUMENTS_FIXTURE_H_INCLUDED_


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/documents.h"


#define PAGE_TEXT   64

typedef vlm_document_t       doc_t;
typedef vlm_document_page_t  page_t;
typedef vlm_document_set_t   set_t;


/* a page's text has two words, the second hidden, and the chunks are equal parts of it */

static inline void
make_page(page_t *page, uint32_t number, size_t n_chunks)
{
    char            *text;
    size_t           i;
    vlm_chunk_t     *chunks;
    vlm_terms_t     *terms;
    vlm_pdf_word_t  *words;

    memset(page, 0, sizeof(*page));

    text = malloc(PAGE_TEXT);
    words = calloc(2, sizeof(*words));
    chunks = calloc(n_chunks + 1, sizeof(*chunks));
    terms = calloc(n_chunks + 1, sizeof(*terms));

    page->number = number;
    page->width = 595.5f;
    page->height = 842;
    page->flags = number == 1 ? VLM_PDF_SCAN : number == 2 ? VLM_PDF_OCR : 0;
    page->bytes = (size_t) snprintf(text, PAGE_TEXT, "page%u secret%u und noch sonst etwas",
                                    number, number);

    words[0] = (vlm_pdf_word_t) { 0, 4, 10, 10, 50, 20, 0 };
    words[1] = (vlm_pdf_word_t) { (uint32_t) (strchr(text, 's') - text), 6, 60, 10, 595.5f, 20,
                                  VLM_PDF_HIDDEN };

    for (i = 0; i < n_chunks; i++) {
        chunks[i].first = i % 8;
        chunks[i].bytes = page->bytes - chunks[i].first;
        (void) vlm_terms_of(&terms[i], text + chunks[i].first, chunks[i].bytes);
    }

    page->text = text;
    page->words = words;
    page->n_words = 2;
    page->chunks = chunks;
    page->terms = terms;
    page->n_chunks = n_chunks;
}


static inline void
free_page(page_t *page)
{
    size_t  i;

    for (i = 0; i < page->n_chunks; i++) {
        free(page->terms[i].terms);
    }

    free((void *) page->text);
    free((void *) page->words);
    free((void *) page->chunks);
    free((void *) page->terms);
}


/* ends the reading of a document with so many pages and chunks on each */

static inline int
done(vlm_store_t *st, const doc_t *doc, uint32_t n, size_t n_chunks, vlm_store_err_t *err)
{
    int        rc;
    page_t    *pages;
    uint32_t   i;

    pages = calloc(n + 1, sizeof(*pages));

    for (i = 0; i < n; i++) {
        make_page(&pages[i], i + 1, n_chunks);
    }

    rc = vlm_document_done(st, doc, vlm_store_string("Title"), pages, n, NULL, err);

    for (i = 0; i < n; i++) {
        free_page(&pages[i]);
    }

    free(pages);

    return rc;
}


/* a document in a session, which is made if need be */

static inline int
add(vlm_store_t *st, const char *session, const char *bytes, const char *name, uint64_t salt,
    doc_t *doc, vlm_store_err_t *err)
{
    vlm_document_upload_t  up;

    up.data = bytes;
    up.bytes = strlen(bytes);
    up.salt = salt;
    up.name = vlm_store_string(name);

    (void) vlm_store_session_ensure(st, vlm_store_string(session), err);

    return vlm_document_add(st, vlm_store_string(session), &up, doc, err);
}


/* a client of this salt and session; NULL: of none */

static inline const vlm_document_client_t *
client(vlm_document_client_t *c, uint64_t salt, const char *session)
{
    c->salt = salt;
    c->session = session ? vlm_store_string(session) : (vlm_store_text_t) { 0 };

    return c;
}

#define CLIENT(salt, session)  client(&(vlm_document_client_t) { 0 }, salt, session)


#endif /* _NGX_HTTP_VLM_DOCUMENTS_FIXTURE_H_INCLUDED_ */
