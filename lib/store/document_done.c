
/*
 * Writes the content that was read from a document: pages with their words, and chunks with their
 * terms, which a search loads as two blobs a document.  Blobs have the byte order of the machine.
 */


#define _GNU_SOURCE

#include "store/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define DAMAGED         10     /* numbers of damaged pages in a sentence */

#define OK              VLM_STORE_OK


typedef vlm_store_t            store_t;
typedef vlm_store_text_t       text_t;
typedef vlm_store_err_t        err_t;
typedef vlm_document_t         doc_t;
typedef vlm_document_page_t    page_t;
typedef vlm_document_chunk_t   chunk_t;
typedef vlm_document_stored_t  stored_t;


/* all that ..._done() writes but for the pages, which it has already */

typedef struct {
    stored_t                     *chunks;      /* [n_chunks] */
    vlm_term_t                   *terms;       /* [n_terms] */
    size_t                        n_chunks;
    size_t                        n_terms;
    size_t                        rows;        /* bytes of everything */
    uint32_t                      scans;
    uint32_t                      ocr;
    uint32_t                      hidden;
    uint32_t                      n_damaged;   /* pages */
    char                          error[VLM_FRAME_ERROR_TEXT];     /* names them; "": none */
} content_t;


/* adds a page's chunks; -1: they do not lie within it, or their terms are none */

static int
add_chunks(content_t *c, const page_t *page)
{
    size_t   i, length;
    text_t   text;
    chunk_t  chunk;

    for (i = 0; i < page->n_chunks; i++) {

        if (page->chunks[i].first > page->bytes || page->chunks[i].bytes > page->bytes
            || vlm_document_terms(page->terms[i].terms, page->terms[i].n, &length) != 0)
        {
            return -1;
        }

        chunk.page = page->number;
        chunk.first = (uint32_t) page->chunks[i].first;
        chunk.bytes = (uint32_t) page->chunks[i].bytes;

        if (vlm_document_text(page, &chunk, &text) != 0) {
            return -1;
        }

        c->chunks[c->n_chunks++] = (stored_t) { chunk.page, chunk.first, chunk.bytes,
                                                (uint32_t) page->terms[i].n };

        if (page->terms[i].n > 0) {
            memcpy(c->terms + c->n_terms, page->terms[i].terms,
                   page->terms[i].n * sizeof(vlm_term_t));
            c->n_terms += page->terms[i].n;
        }
    }

    return 0;
}


static int
add_page(content_t *c, const page_t *page, uint32_t last)
{
    size_t  i;

    if (page->number != last + 1 || page->number > VLM_PDF_PAGES
        || vlm_document_page_check(page) != 0)
    {
        return -1;
    }

    c->scans += (page->flags & VLM_PDF_SCAN) != 0;
    c->ocr += (page->flags & VLM_PDF_OCR) != 0;
    c->n_damaged += page->flags == VLM_PDF_DAMAGED;
    c->rows += page->bytes + page->n_words * sizeof(vlm_pdf_word_t);

    for (i = 0; i < page->n_words; i++) {
        c->hidden += (page->words[i].flags & VLM_PDF_HIDDEN) != 0;
    }

    return add_chunks(c, page);
}


/*
 * Why pages are missing, if they are; "page 3 is damaged", "pages 3, 4 and 5 are damaged", or the
 * first of them and how many more
 */

static void
say_what_is_wrong(content_t *c, const page_t *pages, size_t n, const char *why)
{
    size_t    i, at;
    uint32_t  k, named;

    named = c->n_damaged > DAMAGED ? DAMAGED : c->n_damaged;
    at = why == NULL ? 0 : (size_t) snprintf(c->error, sizeof(c->error), "%.200s%s", why,
                                             named > 0 ? "; " : "");

    for (i = 0, k = 0; i < n && k < named; i++) {

        if (pages[i].flags == VLM_PDF_DAMAGED) {
            at += (size_t) snprintf(c->error + at, sizeof(c->error) - at, "%s%u",
                                    k == 0 ? named == 1 ? "page " : "pages "
                                           : k + 1 == c->n_damaged ? " and " : ", ",
                                    pages[i].number);
            k++;
        }
    }

    if (c->n_damaged > named) {
        at += (size_t) snprintf(c->error + at, sizeof(c->error) - at, " and %u more",
                                c->n_damaged - named);
    }

    if (named > 0) {
        (void) snprintf(c->error + at, sizeof(c->error) - at, " %s damaged",
                        named == 1 ? "is" : "are");
    }
}


static int
make_content(content_t *c, const page_t *pages, size_t n, const char *why, err_t *err)
{
    size_t  i, k, n_chunks, n_terms;

    memset(c, 0, sizeof(*c));

    for (i = n_chunks = n_terms = 0; i < n; i++) {
        n_chunks += pages[i].n_chunks;

        for (k = 0; k < pages[i].n_chunks; k++) {
            n_terms += pages[i].terms[k].n;
        }
    }

    c->chunks = malloc((n_chunks + !n_chunks) * sizeof(*c->chunks));
    c->terms = malloc((n_terms + !n_terms) * sizeof(*c->terms));

    if (c->chunks == NULL || c->terms == NULL) {
        return vlm_document_no_memory(err);
    }

    for (i = 0; i < n; i++) {
        if (add_page(c, &pages[i], i == 0 ? 0 : pages[i - 1].number) != 0) {
            return vlm_db_fail(err, VLM_STORE_EINPUT, "page %u of a document is none",
                               pages[i].number);
        }
    }

    say_what_is_wrong(c, pages, n, why);

    c->rows += n_chunks * sizeof(*c->chunks) + n_terms * sizeof(*c->terms);

    return OK;
}


static int
write_page(store_t *st, int64_t n, const page_t *page, err_t *err)
{
    vlm_db_stmt_t  add;

    add = VLM_DB_PAGE_ADD;

    vlm_db_int(st->db, add, 1, n);
    vlm_db_int(st->db, add, 2, page->number);
    vlm_db_real(st->db, add, 3, page->width);
    vlm_db_real(st->db, add, 4, page->height);
    vlm_db_int(st->db, add, 5, page->flags);
    vlm_db_text(st->db, add, 6, (text_t) { page->bytes, page->bytes ? page->text : "" });
    vlm_db_blob(st->db, add, 7, page->words, page->n_words * sizeof(vlm_pdf_word_t));

    return vlm_db_run(st->db, add, err);
}


/* the row becomes READY, if the document is the one that was taken */

static int
write_ready(store_t *st, const doc_t *doc, text_t title, const content_t *c, uint32_t read,
    uint32_t last, err_t *err)
{
    int            rc;
    vlm_db_stmt_t  done;

    done = VLM_DB_READING_DONE;

    vlm_db_text(st->db, done, 1, vlm_store_string(doc->id));
    vlm_db_int(st->db, done, 2, doc->attempt);
    vlm_db_text(st->db, done, 3, title);
    vlm_db_int(st->db, done, 4, read);
    vlm_db_int(st->db, done, 5, c->scans);
    vlm_db_int(st->db, done, 6, c->hidden);
    vlm_db_int(st->db, done, 7, (int64_t) c->n_chunks);
    vlm_db_int(st->db, done, 8, (int64_t) c->rows);
    vlm_db_int(st->db, done, 9, last);
    vlm_db_int(st->db, done, 10, c->ocr);
    vlm_db_text(st->db, done, 11, vlm_store_string(c->error));

    rc = vlm_db_run(st->db, done, err);

    if (rc == OK && vlm_db_changes(st->db) == 0) {
        rc = vlm_db_fail(err, VLM_STORE_GONE, "The document was deleted or taken again");
    }

    return rc;
}


static int
write_all(store_t *st, const doc_t *doc, text_t title, const content_t *c, const page_t *pages,
    size_t n, err_t *err)
{
    int            rc;
    doc_t          row;
    size_t         i;
    int64_t        number;
    vlm_db_stmt_t  add;

    add = VLM_DB_CONTENT_ADD;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = write_ready(st, doc, title, c, (uint32_t) n, n == 0 ? 0 : pages[n - 1].number, err);

    if (rc == OK) {
        rc = vlm_document_row_get(st, vlm_store_string(doc->id), &row, &number, err);
    }

    for (i = 0; i < n && rc == OK; i++) {
        rc = write_page(st, number, &pages[i], err);
    }

    if (rc == OK) {
        vlm_db_int(st->db, add, 1, number);
        vlm_db_blob(st->db, add, 2, c->chunks, c->n_chunks * sizeof(*c->chunks));
        vlm_db_blob(st->db, add, 3, c->terms, c->n_terms * sizeof(*c->terms));

        rc = vlm_db_run(st->db, add, err);
    }

    return vlm_db_leave(st->db, rc, err);
}


int
vlm_document_done(store_t *st, const doc_t *doc, text_t title, const page_t *pages, size_t n,
    const char *why, err_t *err)
{
    int        rc;
    char       text[VLM_FRAME_ERROR_TEXT];
    content_t  c;

    if (title.data == NULL || title.len > VLM_FRAME_TITLE) {
        title = vlm_store_string("");
    }

    rc = make_content(&c, pages, n, why, err);

    if (rc == OK && c.n_chunks > VLM_DOCUMENT_CHUNKS) {
        (void) snprintf(text, sizeof(text), "has %zu chunks of text, at most %d are possible",
                        c.n_chunks, VLM_DOCUMENT_CHUNKS);
        rc = vlm_document_fail(st, doc, text, 0, err);

    } else if (rc == OK) {
        rc = write_all(st, doc, title, &c, pages, n, err);
    }

    free(c.chunks);
    free(c.terms);

    return rc;
}
