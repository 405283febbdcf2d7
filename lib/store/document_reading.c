
/*
 * The states of a document that is being read.  A document that was taken is known by its id and
 * its attempt, so that an earlier reader, in a worker that should have ended, changes nothing.
 */


#define _GNU_SOURCE

#include "store/document.h"

#include <string.h>

#include "base/utf8.h"


#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND


typedef vlm_store_t      store_t;
typedef vlm_store_err_t  err_t;
typedef vlm_document_t   doc_t;


int
vlm_document_recover(store_t *st, err_t *err)
{
    int            rc;
    vlm_db_stmt_t  recover;

    recover = VLM_DB_READING_RECOVER;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    vlm_db_int(st->db, recover, 1, VLM_DOCUMENT_ATTEMPTS);
    vlm_db_text(st->db, recover, 2, vlm_store_string("the server died each time it read this"));

    rc = vlm_db_run(st->db, recover, err);

    return vlm_db_leave(st->db, rc, err);
}


int
vlm_document_take(store_t *st, doc_t *doc, err_t *err)
{
    int            rc;
    int64_t        n;
    vlm_db_stmt_t  next;

    next = VLM_DB_READING_NEXT;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = vlm_document_row(st, next, doc, &n, err);

    if (rc == OK) {
        vlm_db_end(st->db, next);
        vlm_db_int(st->db, VLM_DB_READING_TAKE, 1, n);
        rc = vlm_db_run(st->db, VLM_DB_READING_TAKE, err);

        if (rc == OK) {
            vlm_db_int(st->db, VLM_DB_READING_TURN, 1, n);
            vlm_db_int(st->db, VLM_DB_READING_TURN, 2, vlm_store_now());
            rc = vlm_db_run(st->db, VLM_DB_READING_TURN, err);
        }

        doc->attempt++;
        doc->state = VLM_DOCUMENT_READING;
    }

    return vlm_db_leave(st->db, rc, err);
}


static int
gone(err_t *err)
{
    return vlm_db_fail(err, VLM_STORE_GONE, "The document was deleted or taken again");
}


/* runs a statement of a document that was taken, whose further parameters are bound */

static int
run(store_t *st, const doc_t *doc, vlm_db_stmt_t which, err_t *err)
{
    int  rc;

    vlm_db_text(st->db, which, 1, vlm_store_string(doc->id));
    vlm_db_int(st->db, which, 2, doc->attempt);

    rc = vlm_db_run(st->db, which, err);

    return rc == OK && vlm_db_changes(st->db) == 0 ? gone(err) : rc;
}


int
vlm_document_progress(store_t *st, const doc_t *doc, uint32_t pages, uint32_t to_read,
    uint32_t read, err_t *err)
{
    int            rc;
    vlm_db_stmt_t  progress;

    progress = VLM_DB_READING_PROGRESS;

    if (pages > VLM_PDF_PAGES || to_read > pages || read > to_read) {
        return vlm_db_fail(err, VLM_STORE_EINPUT, "%u of %u of %u pages", read, to_read, pages);
    }

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    vlm_db_int(st->db, progress, 3, pages);
    vlm_db_int(st->db, progress, 4, to_read);
    vlm_db_int(st->db, progress, 5, read);

    return vlm_db_leave(st->db, run(st, doc, progress, err), err);
}


static int
waits(store_t *st, const doc_t *doc, int64_t not_counted, err_t *err)
{
    int  rc;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    vlm_db_int(st->db, VLM_DB_READING_BACK, 3, not_counted);

    return vlm_db_leave(st->db, run(st, doc, VLM_DB_READING_BACK, err), err);
}


int
vlm_document_back(store_t *st, const doc_t *doc, err_t *err)
{
    return waits(st, doc, 1, err);
}


int
vlm_document_again(store_t *st, const doc_t *doc, const char *sentence, err_t *err)
{
    return doc->attempt < VLM_DOCUMENT_ATTEMPTS ? waits(st, doc, 0, err)
                                                : vlm_document_fail(st, doc, sentence, 0, err);
}


int
vlm_document_fail(store_t *st, const doc_t *doc, const char *sentence, uint32_t rest_s,
    err_t *err)
{
    int               rc;
    int64_t           rest;
    vlm_store_text_t  text;

    text = vlm_store_string(sentence);

    if (text.len > VLM_FRAME_ERROR_TEXT) {
        text.len = VLM_FRAME_ERROR_TEXT;
    }

    text.len = vlm_utf8_whole(text.data, text.len);

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rest = rest_s > 0 ? vlm_store_now() + (int64_t) rest_s * 1000000 : 0;

    vlm_db_text(st->db, VLM_DB_READING_FAIL, 3, text);
    vlm_db_int(st->db, VLM_DB_READING_FAIL, 4, rest);

    return vlm_db_leave(st->db, run(st, doc, VLM_DB_READING_FAIL, err), err);
}
