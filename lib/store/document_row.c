
/*
 * Rows of documents, read as if a disk or another program had written them: texts are UTF-8 that
 * fits, an id can be a path, numbers are possible.
 */


#define _GNU_SOURCE

#include "store/document.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"


#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND


typedef vlm_store_t       store_t;
typedef vlm_store_text_t  text_t;
typedef vlm_store_err_t   err_t;
typedef vlm_document_t    doc_t;


int
vlm_document_is_id(const char *id, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (id[i] != '-') {
                return 0;
            }

        } else if (!((id[i] >= '0' && id[i] <= '9') || (id[i] >= 'a' && id[i] <= 'f'))) {
            return 0;
        }
    }

    return len == 36;
}


/* A text of at most max bytes; -1: longer, not UTF-8, with control characters, or NULL. */

static int
text_column(store_t *st, vlm_db_stmt_t which, int i, char *dst, size_t max)
{
    size_t  k;
    text_t  t;

    t = vlm_db_col_text(st->db, which, i);

    if (t.data == NULL || t.len > max || vlm_utf8_whole(t.data, t.len) != t.len) {
        return -1;
    }

    for (k = 0; k < t.len; k++) {
        if ((unsigned char) t.data[k] < 0x20 || t.data[k] == 0x7f) {
            return -1;
        }
    }

    memcpy(dst, t.data, t.len);
    dst[t.len] = '\0';

    return 0;
}


static int
number_column(store_t *st, vlm_db_stmt_t which, int i, uint32_t max, uint32_t *n)
{
    int64_t  value;

    value = vlm_db_col_int(st->db, which, i);
    *n = (uint32_t) value;

    return value >= 0 && value <= (int64_t) max ? 0 : -1;
}


static int
columns(store_t *st, vlm_db_stmt_t which, doc_t *doc)
{
    int64_t   bytes;
    uint32_t  state;

    if (text_column(st, which, 1, doc->id, 36) || !vlm_document_is_id(doc->id, strlen(doc->id))
        || text_column(st, which, 2, doc->name, VLM_STORE_NAME)
        || text_column(st, which, 3, doc->title, VLM_FRAME_TITLE)
        || text_column(st, which, 4, doc->error, VLM_FRAME_ERROR_TEXT)
        || number_column(st, which, 5, VLM_DOCUMENT_FAILED, &state)
        || number_column(st, which, 8, VLM_PDF_PAGES, &doc->pages)
        || number_column(st, which, 9, doc->pages, &doc->to_read)
        || number_column(st, which, 10, doc->to_read, &doc->read)
        || number_column(st, which, 11, doc->read, &doc->scans)
        || number_column(st, which, 12, UINT32_MAX, &doc->hidden_words)
        || number_column(st, which, 13, VLM_DOCUMENT_CHUNKS, &doc->n_chunks)
        || number_column(st, which, 14, UINT32_MAX, &doc->attempt)
        || number_column(st, which, 17, doc->read, &doc->ocr_pages))
    {
        return -1;
    }

    bytes = vlm_db_col_int(st->db, which, 7);

    doc->state = (vlm_document_state_t) state;
    doc->salt = (uint64_t) vlm_db_col_int(st->db, which, 6);
    doc->bytes = (uint64_t) bytes;
    doc->made = vlm_db_col_int(st->db, which, 15);
    doc->used = vlm_db_col_int(st->db, which, 16);

    return bytes < 0 ? -1 : 0;
}


int
vlm_document_row(store_t *st, vlm_db_stmt_t which, doc_t *doc, int64_t *n, err_t *err)
{
    int  rc;

    rc = vlm_db_row(st->db, which, err);
    if (rc != OK) {
        return rc;
    }

    memset(doc, 0, sizeof(*doc));
    *n = vlm_db_col_int(st->db, which, 0);

    if (columns(st, which, doc) != 0) {
        vlm_db_end(st->db, which);
        return vlm_db_fail(err, VLM_STORE_ECORRUPT, "store %.150s: the row of document %lld"
                           " is damaged", st->dir, (long long) *n);
    }

    return OK;
}


int
vlm_document_row_get(store_t *st, text_t id, doc_t *doc, int64_t *n, err_t *err)
{
    int  rc;

    if (id.data == NULL || !vlm_document_is_id(id.data, id.len)) {
        return vlm_document_none(err);
    }

    vlm_db_text(st->db, VLM_DB_DOCUMENT_GET, 1, id);

    rc = vlm_document_row(st, VLM_DB_DOCUMENT_GET, doc, n, err);

    if (rc == OK) {
        vlm_db_end(st->db, VLM_DB_DOCUMENT_GET);
    }

    return rc == NOTFOUND ? vlm_document_none(err) : rc;
}


/* A document whose chunks do not fit with those before it cannot be searched here. */

static void
limit(doc_t *doc, uint32_t *chunks)
{
    if (doc->state != VLM_DOCUMENT_READY) {
        return;
    }

    if (doc->n_chunks <= VLM_DOCUMENT_CHUNKS - *chunks) {
        *chunks += doc->n_chunks;
        return;
    }

    doc->state = VLM_DOCUMENT_FAILED;
    (void) snprintf(doc->error, sizeof(doc->error),
                    "%u chunks are too many for this session, which has %u of %u",
                    doc->n_chunks, *chunks, VLM_DOCUMENT_CHUNKS);
}


int
vlm_document_rows(store_t *st, int64_t session, doc_t docs[VLM_DOCUMENT_MAX],
    int64_t numbers[VLM_DOCUMENT_MAX], size_t *n, err_t *err)
{
    int            rc;
    size_t         i;
    uint32_t       chunks;
    vlm_db_stmt_t  list;

    *n = 0;
    chunks = 0;
    list = VLM_DB_LINK_LIST;

    vlm_db_int(st->db, list, 1, session);
    vlm_db_int(st->db, list, 2, VLM_DOCUMENT_MAX);

    for (i = 0; i < VLM_DOCUMENT_MAX; i++) {
        rc = vlm_document_row(st, list, &docs[i], &numbers[i], err);

        if (rc == NOTFOUND) {
            break;
        }

        if (rc != OK) {
            return rc;
        }

        limit(&docs[i], &chunks);
    }

    vlm_db_end(st->db, list);
    *n = i;

    return OK;
}


int
vlm_document_session(store_t *st, text_t id, int64_t *n, err_t *err)
{
    int            rc;
    vlm_db_stmt_t  get;

    get = VLM_DB_SESSION_GET;

    vlm_db_text(st->db, get, 1, id);

    rc = vlm_db_row(st->db, get, err);

    if (rc == NOTFOUND) {
        return vlm_db_fail(err, NOTFOUND, "Session not found");
    }

    if (rc == OK) {
        *n = vlm_db_col_int(st->db, get, 0);
        vlm_db_end(st->db, get);
    }

    return rc;
}


int
vlm_document_none(err_t *err)
{
    return vlm_db_fail(err, NOTFOUND, "Document not found");
}
