
/*
 * The chunks of documents for a search, with their terms and vectors, from the blobs that
 * document_done.c writes.  A disk may have changed them, so each is checked when it is read.
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
typedef vlm_document_chunk_t   chunk_t;
typedef vlm_document_stored_t  stored_t;
typedef vlm_document_set_t     set_t;


int
vlm_document_terms(const vlm_term_t *terms, size_t n, size_t *length)
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
            || vlm_document_terms(terms + at, c->n_terms, &length) != 0)
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
        return vlm_document_damaged(err, doc->id);
    }

    if (doc->n_chunks == 0) {
        return OK;
    }

    copy = malloc(chunks.len);
    kept = malloc(terms.len + 1);
    set->memory[2 * index] = kept;

    if (copy == NULL || kept == NULL || chunks.data == NULL) {
        free(copy);
        return vlm_document_no_memory(err);
    }

    memcpy(copy, chunks.data, chunks.len);

    if (terms.data != NULL) {
        memcpy(kept, terms.data, terms.len);
    }

    rc = terms.len > 0 && terms.data == NULL ? vlm_document_no_memory(err)
         : take_chunks(set, index, copy, doc->n_chunks, kept, terms.len / sizeof(*kept)) == 0
         ? OK : vlm_document_damaged(err, doc->id);

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
        rc = vlm_document_damaged(err, set->docs[index].id);

    } else if ((kept = malloc(vectors.len)) == NULL) {
        rc = vlm_document_no_memory(err);

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
        return vlm_document_damaged(err, set->docs[index].id);
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
        return vlm_document_no_memory(err);
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
        return vlm_document_no_memory(err);
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
        return vlm_document_no_memory(err);
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
