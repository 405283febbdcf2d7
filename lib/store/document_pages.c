
/*
 * Pages that were read from a document, with their words.  A disk may have changed them, so each is
 * checked when it is read.
 */


#define _GNU_SOURCE

#include "store/document.h"

#include <stdlib.h>
#include <string.h>


#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND


typedef vlm_store_t            store_t;
typedef vlm_store_text_t       text_t;
typedef vlm_store_err_t        err_t;
typedef vlm_document_t         doc_t;
typedef vlm_document_page_t    page_t;
typedef vlm_document_chunk_t   chunk_t;


int
vlm_document_no_memory(err_t *err)
{
    return vlm_db_fail(err, VLM_STORE_EIO, "no memory for a document");
}


int
vlm_document_damaged(err_t *err, const char *id)
{
    return vlm_db_fail(err, VLM_STORE_ECORRUPT, "what was read from document %.36s is damaged:"
                       " delete it and add it again", id);
}


int
vlm_document_page_check(const page_t *page)
{
    vlm_pdf_page_head_t  head;

    if (page->bytes > VLM_PDF_TEXT || page->n_words > VLM_PDF_WORDS) {
        return -1;
    }

    head = (vlm_pdf_page_head_t) {
        .number = page->number,
        .width = page->width,
        .height = page->height,
        .flags = page->flags,
        .words = (uint32_t) page->n_words,
        .text_bytes = (uint32_t) page->bytes
    };

    return vlm_frame_page(&head, page->words, page->text, NULL);
}


static int
is_continuation(const page_t *page, size_t at)
{
    return at < page->bytes && (page->text[at] & 0xc0) == 0x80;
}


int
vlm_document_text(const page_t *page, const chunk_t *chunk, text_t *text)
{
    size_t  first, end;

    first = chunk->first;
    end = first + chunk->bytes;

    if (chunk->page != page->number || end > page->bytes
        || is_continuation(page, first) || is_continuation(page, end))
    {
        return -1;
    }

    text->data = page->text + first;
    text->len = chunk->bytes;

    return 0;
}


/* The columns of PAGE_GET, copied; -1: no memory, and page->memory is NULL, or damaged. */

static int
copy_page(store_t *st, page_t *page)
{
    char    *p;
    text_t   text, words;
    int64_t  flags;

    page->width = (float) vlm_db_col_real(st->db, VLM_DB_PAGE_GET, 0);
    page->height = (float) vlm_db_col_real(st->db, VLM_DB_PAGE_GET, 1);
    flags = vlm_db_col_int(st->db, VLM_DB_PAGE_GET, 2);
    text = vlm_db_col_text(st->db, VLM_DB_PAGE_GET, 3);
    words = vlm_db_col_blob(st->db, VLM_DB_PAGE_GET, 4);

    page->flags = (uint32_t) flags;
    page->bytes = text.len;
    page->n_words = words.len / sizeof(vlm_pdf_word_t);

    p = malloc(words.len + text.len + 1);
    if (p == NULL) {
        return -1;
    }

    page->memory = p;
    page->words = page->memory;
    page->text = p + words.len;

    if (words.len > 0 && words.data != NULL) {
        memcpy(p, words.data, words.len);
    }

    if (text.len > 0 && text.data != NULL) {
        memcpy(p + words.len, text.data, text.len);
    }

    p[words.len + text.len] = '\0';

    return text.data != NULL && (words.len == 0 || words.data != NULL)
           && words.len % sizeof(vlm_pdf_word_t) == 0
           && flags >= 0 && flags <= UINT32_MAX && vlm_document_page_check(page) == 0 ? 0 : -1;
}


static int
read_page(store_t *st, const doc_t *doc, int64_t n, page_t *page, err_t *err)
{
    int            rc;
    vlm_db_stmt_t  get;

    get = VLM_DB_PAGE_GET;

    vlm_db_int(st->db, get, 1, n);
    vlm_db_int(st->db, get, 2, page->number);

    rc = vlm_db_row(st->db, get, err);

    if (rc == NOTFOUND) {
        return vlm_db_fail(err, NOTFOUND, "The document has no page %u", page->number);
    }

    if (rc != OK) {
        return rc;
    }

    if (copy_page(st, page) != 0) {
        rc = page->memory == NULL ? vlm_document_no_memory(err)
                                  : vlm_document_damaged(err, doc->id);
    }

    vlm_db_end(st->db, get);

    return rc;
}


int
vlm_document_page(store_t *st, text_t id, uint32_t number, page_t *page, err_t *err)
{
    int      rc;
    doc_t    doc;
    int64_t  n;

    memset(page, 0, sizeof(*page));
    page->number = number;

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    rc = vlm_document_row_get(st, id, &doc, &n, err);

    if (rc == OK) {
        rc = doc.state == VLM_DOCUMENT_READY ? read_page(st, &doc, n, page, err)
                                             : vlm_document_none(err);
    }

    rc = vlm_db_leave(st->db, rc, err);

    if (rc != OK) {
        vlm_document_page_free(page);
    }

    return rc;
}


void
vlm_document_page_free(page_t *page)
{
    free(page->memory);
    memset(page, 0, sizeof(*page));
}
