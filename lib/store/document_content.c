
/*
 * The content that was read from a document: pages with their words, and its chunks with their
 * terms, which a search loads as two blobs a document.  Blobs have the byte order of the machine.
 * A disk may have changed them, so each is checked when it is read.
 */


#define _GNU_SOURCE

#include "store/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define DAMAGED         10     /* numbers of damaged pages in a sentence */

#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND


typedef vlm_store_t            store_t;
typedef vlm_store_text_t       text_t;
typedef vlm_store_err_t        err_t;
typedef vlm_document_t         doc_t;
typedef vlm_document_page_t    page_t;
typedef vlm_document_chunk_t   chunk_t;
typedef vlm_document_set_t     set_t;


/* a chunk in its blob; n_terms vlm_term_t of it follow those of the chunk before in the other */

typedef struct {
    uint32_t                      page;
    uint32_t                      first;
    uint32_t                      bytes;
    uint32_t                      n_terms;
} stored_t;


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
    char                          damaged[VLM_FRAME_ERROR_TEXT];   /* names them; "": none */
} content_t;


static int
no_memory(err_t *err)
{
    return vlm_db_fail(err, VLM_STORE_EIO, "no memory for a document");
}


static int
damaged(err_t *err, const char *id)
{
    return vlm_db_fail(err, VLM_STORE_ECORRUPT, "what was read from document %.36s is damaged:"
                       " delete it and add it again", id);
}


/* ---- pages and chunks, by themselves ------------------------------------- */


/* 0 if terms are as vlm_terms_of() gives them; their length is the sum of the counts */

static int
check_terms(const vlm_term_t *terms, size_t n, size_t *length)
{
    size_t  i;

    *length = 0;

    for (i = 0; i < n; i++) {
        if (terms[i].count == 0 || (i > 0 && terms[i].hash <= terms[i - 1].hash)) {
            return -1;
        }

        *length += terms[i].count;
    }

    return 0;
}


static int
check_page(const page_t *page)
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


/* ---- writing ------------------------------------------------------------- */


/* adds a page's chunks; -1: they do not lie within it, or their terms are none */

static int
add_chunks(content_t *c, const page_t *page)
{
    size_t   i, length;
    text_t   text;
    chunk_t  chunk;

    for (i = 0; i < page->n_chunks; i++) {

        if (page->chunks[i].first > page->bytes || page->chunks[i].bytes > page->bytes
            || check_terms(page->terms[i].terms, page->terms[i].n, &length) != 0)
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

    if (page->number != last + 1 || page->number > VLM_PDF_PAGES || check_page(page) != 0) {
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


/* "page 3 is damaged", "pages 3, 4 and 5 are damaged", or the first of them and how many more */

static void
name_damaged(content_t *c, const page_t *pages, size_t n)
{
    size_t    i, at;
    uint32_t  k, named;

    named = c->n_damaged > DAMAGED ? DAMAGED : c->n_damaged;
    at = 0;

    for (i = 0, k = 0; i < n && k < named; i++) {

        if (pages[i].flags == VLM_PDF_DAMAGED) {
            at += (size_t) snprintf(c->damaged + at, sizeof(c->damaged) - at, "%s%u",
                                    k == 0 ? named == 1 ? "page " : "pages "
                                           : k + 1 == c->n_damaged ? " and " : ", ",
                                    pages[i].number);
            k++;
        }
    }

    if (c->n_damaged > named) {
        at += (size_t) snprintf(c->damaged + at, sizeof(c->damaged) - at, " and %u more",
                                c->n_damaged - named);
    }

    if (named > 0) {
        (void) snprintf(c->damaged + at, sizeof(c->damaged) - at, " %s damaged",
                        named == 1 ? "is" : "are");
    }
}


static int
make_content(content_t *c, const page_t *pages, size_t n, err_t *err)
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
        return no_memory(err);
    }

    for (i = 0; i < n; i++) {
        if (add_page(c, &pages[i], i == 0 ? 0 : pages[i - 1].number) != 0) {
            return vlm_db_fail(err, VLM_STORE_EINPUT, "page %u of a document is none",
                               pages[i].number);
        }
    }

    name_damaged(c, pages, n);

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
    vlm_db_text(st->db, done, 11, vlm_store_string(c->damaged));

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
    err_t *err)
{
    int        rc;
    char       text[VLM_FRAME_ERROR_TEXT];
    content_t  c;

    if (title.data == NULL || title.len > VLM_FRAME_TITLE) {
        title = vlm_store_string("");
    }

    rc = make_content(&c, pages, n, err);

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


/* ---- reading pages ------------------------------------------------------- */


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
           && flags >= 0 && flags <= UINT32_MAX && check_page(page) == 0 ? 0 : -1;
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
        rc = page->memory == NULL ? no_memory(err) : damaged(err, doc->id);
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


/* ---- reading chunks ------------------------------------------------------ */


/* Chunks of a blob, and their terms, which lie in terms [n_terms]; -1: damaged. */

static int
take_chunks(set_t *set, size_t index, const stored_t *chunks, size_t n, vlm_term_t *terms,
    size_t n_terms)
{
    size_t           i, at, length;
    const stored_t  *c;

    for (i = at = 0; i < n; i++) {
        c = &chunks[i];

        if (c->page < 1 || c->page > VLM_PDF_PAGES
            || c->first > VLM_PDF_TEXT || c->bytes > VLM_PDF_TEXT - c->first
            || c->n_terms > n_terms - at
            || (i > 0 && c->page < chunks[i - 1].page)
            || check_terms(terms + at, c->n_terms, &length) != 0)
        {
            return -1;
        }

        set->chunks[set->n] = (chunk_t) { (uint32_t) index, c->page, c->first, c->bytes, NULL };
        set->terms[set->n] = (vlm_terms_t) { terms + at, c->n_terms, length };
        set->n++;

        at += c->n_terms;
    }

    return at == n_terms ? 0 : -1;
}


/* the row of CONTENT_GET as chunks of the set */

static int
take_content(store_t *st, set_t *set, size_t index, err_t *err)
{
    int           rc;
    text_t        chunks, terms;
    stored_t     *copy;
    const doc_t  *doc;
    vlm_term_t   *kept;

    doc = &set->docs[index];
    chunks = vlm_db_col_blob(st->db, VLM_DB_CONTENT_GET, 0);
    terms = vlm_db_col_blob(st->db, VLM_DB_CONTENT_GET, 1);

    if (chunks.len != doc->n_chunks * sizeof(*copy) || terms.len % sizeof(*kept) != 0) {
        return damaged(err, doc->id);
    }

    if (doc->n_chunks == 0) {
        return OK;
    }

    copy = malloc(chunks.len);
    kept = malloc(terms.len + 1);
    set->memory[2 * index] = kept;

    if (copy == NULL || kept == NULL || chunks.data == NULL) {
        free(copy);
        return no_memory(err);
    }

    memcpy(copy, chunks.data, chunks.len);

    if (terms.data != NULL) {
        memcpy(kept, terms.data, terms.len);
    }

    rc = terms.len > 0 && terms.data == NULL ? no_memory(err)
         : take_chunks(set, index, copy, doc->n_chunks, kept, terms.len / sizeof(*kept)) == 0
         ? OK : damaged(err, doc->id);

    free(copy);

    return rc;
}


/* vectors of this model for the first of the document's chunks, the last ones of the set */

static int
read_vectors(store_t *st, set_t *set, size_t index, int64_t n, int64_t model, err_t *err)
{
    int       rc;
    size_t    i, count;
    text_t    vectors;
    int64_t   dim;
    int8_t   *kept;

    vlm_db_int(st->db, VLM_DB_VECTOR_GET, 1, n);
    vlm_db_int(st->db, VLM_DB_VECTOR_GET, 2, model);

    rc = vlm_db_row(st->db, VLM_DB_VECTOR_GET, err);
    if (rc != OK) {
        return rc == NOTFOUND ? OK : rc;
    }

    dim = vlm_db_col_int(st->db, VLM_DB_VECTOR_GET, 0);
    vectors = vlm_db_col_blob(st->db, VLM_DB_VECTOR_GET, 1);
    count = set->docs[index].n_chunks;

    if (dim < 1 || dim > VLM_DOCUMENT_DIM || (set->dim != 0 && (int64_t) set->dim != dim)
        || vectors.data == NULL || vectors.len == 0 || vectors.len % (size_t) dim != 0
        || vectors.len / (size_t) dim > count)
    {
        rc = damaged(err, set->docs[index].id);

    } else if ((kept = malloc(vectors.len)) == NULL) {
        rc = no_memory(err);

    } else {
        memcpy(kept, vectors.data, vectors.len);
        set->memory[2 * index + 1] = kept;
        set->dim = (uint32_t) dim;

        for (i = 0; i < vectors.len / (size_t) dim; i++) {
            set->chunks[set->n - count + i].vector = kept + i * (size_t) dim;
        }
    }

    vlm_db_end(st->db, VLM_DB_VECTOR_GET);

    return rc;
}


static int
read_content(store_t *st, set_t *set, size_t index, int64_t n, int64_t model, err_t *err)
{
    int  rc;

    vlm_db_int(st->db, VLM_DB_CONTENT_GET, 1, n);

    rc = vlm_db_row(st->db, VLM_DB_CONTENT_GET, err);

    if (rc == NOTFOUND) {
        return damaged(err, set->docs[index].id);
    }

    if (rc != OK) {
        return rc;
    }

    rc = take_content(st, set, index, err);

    vlm_db_end(st->db, VLM_DB_CONTENT_GET);

    if (rc == OK && model != 0 && set->docs[index].n_chunks > 0) {
        rc = read_vectors(st, set, index, n, model, err);
    }

    return rc;
}


/* the content of the READY ones of set->docs, whose numbers are given */

static int
read_set(store_t *st, set_t *set, const int64_t *numbers, int64_t model, err_t *err)
{
    int     rc;
    size_t  i, n;

    for (i = n = 0; i < set->n_docs; i++) {
        n += set->docs[i].state == VLM_DOCUMENT_READY ? set->docs[i].n_chunks : 0;
    }

    set->chunks = malloc((n + !n) * sizeof(*set->chunks));
    set->terms = malloc((n + !n) * sizeof(*set->terms));

    if (set->chunks == NULL || set->terms == NULL) {
        return no_memory(err);
    }

    for (i = 0, rc = OK; i < set->n_docs && rc == OK; i++) {
        if (set->docs[i].state == VLM_DOCUMENT_READY) {
            rc = read_content(st, set, i, numbers[i], model, err);
        }
    }

    return rc;
}


/* keeps those documents of a session that the ids name */

static int
choose(set_t *set, int64_t *numbers, const text_t *ids, size_t n_ids, err_t *err)
{
    size_t   i, k, n;
    uint8_t  chosen[VLM_DOCUMENT_MAX] = { 0 };

    for (k = 0; k < n_ids; k++) {
        for (i = 0; i < set->n_docs; i++) {
            if (ids[k].len == 36 && memcmp(ids[k].data, set->docs[i].id, 36) == 0) {
                break;
            }
        }

        if (i == set->n_docs) {
            return vlm_db_fail(err, NOTFOUND, "The session does not have this document");
        }

        chosen[i] = 1;
    }

    for (i = n = 0; i < set->n_docs; i++) {
        if (n_ids == 0 || chosen[i]) {
            set->docs[n] = set->docs[i];
            numbers[n++] = numbers[i];
        }
    }

    set->n_docs = n;

    return OK;
}


int
vlm_document_chunks(store_t *st, text_t session, const text_t *ids, size_t n_ids, int64_t model,
    set_t *set, err_t *err)
{
    int      rc;
    int64_t  s, numbers[VLM_DOCUMENT_MAX];

    memset(set, 0, sizeof(*set));

    set->docs = malloc(VLM_DOCUMENT_MAX * sizeof(*set->docs));
    if (set->docs == NULL) {
        return no_memory(err);
    }

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);

    if (rc == OK) {
        rc = vlm_document_session(st, session, &s, err);

        if (rc == OK) {
            rc = vlm_document_rows(st, s, set->docs, numbers, &set->n_docs, err);
        }

        if (rc == OK) {
            rc = choose(set, numbers, ids, n_ids, err);
        }

        if (rc == OK) {
            rc = read_set(st, set, numbers, model, err);
        }

        rc = vlm_db_leave(st->db, rc, err);
    }

    if (rc != OK) {
        vlm_document_set_free(set);
    }

    return rc;
}


int
vlm_document_pieces(store_t *st, text_t id, int64_t model, set_t *set, err_t *err)
{
    int      rc;
    int64_t  n;

    memset(set, 0, sizeof(*set));

    set->docs = malloc(sizeof(*set->docs));
    if (set->docs == NULL) {
        return no_memory(err);
    }

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);

    if (rc == OK) {
        rc = vlm_document_row_get(st, id, set->docs, &n, err);

        if (rc == OK) {
            set->n_docs = 1;
            rc = set->docs->state == VLM_DOCUMENT_READY ? read_set(st, set, &n, model, err)
                                                        : vlm_document_none(err);
        }

        rc = vlm_db_leave(st->db, rc, err);
    }

    if (rc != OK) {
        vlm_document_set_free(set);
    }

    return rc;
}


void
vlm_document_set_free(set_t *set)
{
    size_t  i;

    for (i = 0; i < sizeof(set->memory) / sizeof(set->memory[0]); i++) {
        free(set->memory[i]);
    }

    free(set->chunks);
    free(set->terms);
    free(set->docs);
    memset(set, 0, sizeof(*set));
}


/* ---- vectors ------------------------------------------------------------- */


int
vlm_document_unencoded(store_t *st, int64_t model, doc_t *doc, err_t *err)
{
    int      rc;
    int64_t  n;

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    vlm_db_int(st->db, VLM_DB_VECTOR_NEXT, 1, model);

    rc = vlm_document_row(st, VLM_DB_VECTOR_NEXT, doc, &n, err);

    if (rc == OK) {
        vlm_db_end(st->db, VLM_DB_VECTOR_NEXT);
    }

    return vlm_db_leave(st->db, rc, err);
}


int
vlm_document_lacking(store_t *st, int64_t model, uint64_t *n, err_t *err)
{
    int  rc;

    *n = 0;

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    vlm_db_int(st->db, VLM_DB_VECTOR_LACK, 1, model);

    rc = vlm_db_row(st->db, VLM_DB_VECTOR_LACK, err);

    if (rc == OK) {
        *n = (uint64_t) vlm_db_col_int(st->db, VLM_DB_VECTOR_LACK, 0);
        vlm_db_end(st->db, VLM_DB_VECTOR_LACK);
    }

    return vlm_db_leave(st->db, rc, err);
}


int
vlm_document_vectors(store_t *st, text_t id, int64_t model, const int8_t *vectors, size_t n,
    uint32_t dim, err_t *err)
{
    int            rc;
    doc_t          doc;
    int64_t        number;
    vlm_db_stmt_t  put;

    put = VLM_DB_VECTOR_PUT;

    if (n < 1 || dim < 1 || dim > VLM_DOCUMENT_DIM) {
        return vlm_db_fail(err, VLM_STORE_EINPUT, "%zu vectors of %u numbers", n, dim);
    }

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = vlm_document_row_get(st, id, &doc, &number, err);

    if (rc == NOTFOUND || (rc == OK && (doc.state != VLM_DOCUMENT_READY || doc.n_chunks < n))) {
        rc = vlm_db_fail(err, VLM_STORE_GONE, "The document was deleted meanwhile");
    }

    if (rc == OK) {
        vlm_db_int(st->db, put, 1, number);
        vlm_db_int(st->db, put, 2, model);
        vlm_db_int(st->db, put, 3, dim);
        vlm_db_blob(st->db, put, 4, vectors, n * dim);

        rc = vlm_db_run(st->db, put, err);
    }

    return vlm_db_leave(st->db, rc, err);
}
