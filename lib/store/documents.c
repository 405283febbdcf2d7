
/*
 * Documents and the sessions that have them.  A file is on disk before its row is, and is removed
 * after its row, so that each row has its file; folders without a row are removed by a sweep.
 */


#define _GNU_SOURCE

#include "store/document.h"

#include <string.h>

#include "base/sha256.h"
#include "base/utf8.h"
#include "store/disk.h"


#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND


typedef vlm_store_t            store_t;
typedef vlm_store_text_t       text_t;
typedef vlm_store_err_t        err_t;
typedef vlm_document_t         doc_t;
typedef vlm_document_upload_t  upload_t;
typedef vlm_document_client_t  client_t;


/* an upload with what is found out about it */

typedef struct {
    const upload_t               *up;
    text_t                        session;     /* id */
    uint8_t                       sha256[32];
    char                          name[VLM_STORE_NAME + 1];
} adding_t;


/* The last segment of a client's path, as text that can be shown; the extension may be lost. */

static void
shown_name(char dst[VLM_STORE_NAME + 1], text_t name)
{
    size_t  i, n;

    for (i = name.len; i > 0 && name.data[i - 1] != '/' && name.data[i - 1] != '\\'; i--) {
        /* void */
    }

    n = name.len - i < VLM_STORE_NAME ? name.len - i : VLM_STORE_NAME;
    n = n > 0 ? vlm_utf8_whole(name.data + i, n) : 0;

    if (n == 0) {
        strcpy(dst, "document.pdf");
        return;
    }

    memcpy(dst, name.data + i, n);
    dst[n] = '\0';

    for (i = 0; i < n; i++) {
        if ((unsigned char) dst[i] < 0x20 || dst[i] == 0x7f) {
            dst[i] = '_';
        }
    }
}


/* Does a session have room for a document with so many chunks, if it is not this one? */

static int
check_room(store_t *st, int64_t session, int64_t n, uint32_t chunks, err_t *err)
{
    int            rc;
    int64_t        docs, sum;
    vlm_db_stmt_t  get;

    get = VLM_DB_LINK_SUM;

    vlm_db_int(st->db, get, 1, session);
    vlm_db_int(st->db, get, 2, n);

    rc = vlm_db_row(st->db, get, err);
    if (rc != OK) {
        return rc;
    }

    docs = vlm_db_col_int(st->db, get, 0);
    sum = vlm_db_col_int(st->db, get, 1);
    vlm_db_end(st->db, get);

    if (docs >= VLM_DOCUMENT_MAX) {
        return vlm_db_fail(err, VLM_STORE_ELIMIT, "The session has %lld documents, at most %d"
                           " are possible", (long long) docs, VLM_DOCUMENT_MAX);
    }

    if (sum >= VLM_DOCUMENT_CHUNKS || sum + chunks > VLM_DOCUMENT_CHUNKS) {
        return vlm_db_fail(err, VLM_STORE_ELIMIT, "The session's documents have %lld chunks%s,"
                           " at most %d are possible", (long long) sum,
                           chunks ? ", and more with this one" : "", VLM_DOCUMENT_CHUNKS);
    }

    return OK;
}


/* gives a session a document, by a name */

static int
link_row(store_t *st, int64_t session, int64_t n, const char *name, uint32_t chunks, err_t *err)
{
    int      rc;
    int64_t  now;

    rc = check_room(st, session, n, chunks, err);
    if (rc != OK) {
        return rc;
    }

    now = vlm_store_now();

    vlm_db_int(st->db, VLM_DB_LINK_ADD, 1, session);
    vlm_db_int(st->db, VLM_DB_LINK_ADD, 2, n);
    vlm_db_text(st->db, VLM_DB_LINK_ADD, 3, vlm_store_string(name));
    vlm_db_int(st->db, VLM_DB_LINK_ADD, 4, now);

    rc = vlm_db_run(st->db, VLM_DB_LINK_ADD, err);

    if (rc == OK) {
        vlm_db_int(st->db, VLM_DB_DOCUMENT_USED, 1, n);
        vlm_db_int(st->db, VLM_DB_DOCUMENT_USED, 2, now);

        rc = vlm_db_run(st->db, VLM_DB_DOCUMENT_USED, err);
    }

    if (rc == OK) {
        vlm_db_int(st->db, VLM_DB_SESSION_TOUCH, 1, session);
        vlm_db_int(st->db, VLM_DB_SESSION_TOUCH, 2, now);

        rc = vlm_db_run(st->db, VLM_DB_SESSION_TOUCH, err);
    }

    return rc;
}


/* The document that has these bytes, for this session; NOTFOUND: there is none. */

static int
link_known(store_t *st, const adding_t *a, int64_t session, doc_t *doc, err_t *err)
{
    int            rc;
    int64_t        n;
    vlm_db_stmt_t  find;

    find = VLM_DB_DOCUMENT_FIND;

    vlm_db_int(st->db, find, 1, (int64_t) a->up->salt);
    vlm_db_blob(st->db, find, 2, a->sha256, sizeof(a->sha256));

    rc = vlm_document_row(st, find, doc, &n, err);
    if (rc != OK) {
        return rc;
    }

    vlm_db_end(st->db, find);

    rc = link_row(st, session, n, a->name, doc->n_chunks, err);

    if (rc == OK) {
        vlm_db_int(st->db, VLM_DB_DOCUMENT_AGAIN, 1, n);
        vlm_db_int(st->db, VLM_DB_DOCUMENT_AGAIN, 2, vlm_store_now());
        rc = vlm_db_run(st->db, VLM_DB_DOCUMENT_AGAIN, err);
    }

    if (rc == OK) {
        rc = vlm_document_row_get(st, vlm_store_string(doc->id), doc, &n, err);
        strcpy(doc->name, a->name);
    }

    return rc;
}


/* NOTFOUND: these bytes are new, and the session has room for a document */

static int
add_known(store_t *st, const adding_t *a, doc_t *doc, err_t *err)
{
    int      rc;
    int64_t  session;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = vlm_document_session(st, a->session, &session, err);

    if (rc != OK) {
        rc = rc == NOTFOUND ? VLM_STORE_GONE : rc;

    } else {
        rc = link_known(st, a, session, doc, err);
    }

    if (rc == NOTFOUND) {
        rc = check_room(st, session, 0, 0, err);
        rc = rc == OK ? NOTFOUND : rc;
    }

    return vlm_db_leave(st->db, rc, err);
}


/* the row and the link of a file that is on disk; another call may have added the same meanwhile */

static int
add_row(store_t *st, const adding_t *a, const char *id, doc_t *doc, err_t *err)
{
    int            rc;
    int64_t        session, n;
    vlm_db_stmt_t  add;

    add = VLM_DB_DOCUMENT_ADD;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = vlm_document_session(st, a->session, &session, err);

    if (rc != OK) {
        return vlm_db_leave(st->db, rc, err);
    }

    rc = link_known(st, a, session, doc, err);

    if (rc == NOTFOUND) {
        vlm_db_text(st->db, add, 1, vlm_store_string(id));
        vlm_db_int(st->db, add, 2, (int64_t) a->up->salt);
        vlm_db_blob(st->db, add, 3, a->sha256, sizeof(a->sha256));
        vlm_db_text(st->db, add, 4, vlm_store_string(a->name));
        vlm_db_int(st->db, add, 5, (int64_t) a->up->bytes);
        vlm_db_int(st->db, add, 6, vlm_store_now());

        rc = vlm_db_run(st->db, add, err);

        if (rc == OK) {
            rc = vlm_document_row_get(st, vlm_store_string(id), doc, &n, err);
        }

        if (rc == OK) {
            rc = link_row(st, session, n, a->name, 0, err);
        }
    }

    return vlm_db_leave(st->db, rc, err);
}


int
vlm_document_add(store_t *st, text_t session, const upload_t *up, doc_t *doc, err_t *err)
{
    int       rc;
    char      id[37];
    adding_t  a;

    a.up = up;
    a.session = session;
    shown_name(a.name, up->name);
    vlm_sha256(up->data, up->bytes, a.sha256);

    rc = add_known(st, &a, doc, err);

    if (rc == VLM_STORE_GONE) {
        return vlm_db_fail(err, NOTFOUND, "Session not found");
    }

    if (rc == OK && !vlm_document_there(st, doc->id, up->bytes)) {
        return vlm_document_keep(st, doc->id, up->data, up->bytes, err);
    }

    if (rc != NOTFOUND) {
        return rc;
    }

    if (vlm_disk_uuid(id) != 0) {
        return vlm_db_fail(err, VLM_STORE_EIO, "no random numbers for a document's id");
    }

    rc = vlm_document_keep(st, id, up->data, up->bytes, err);

    if (rc == OK) {
        rc = add_row(st, &a, id, doc, err);
    }

    if (rc != OK || strcmp(id, doc->id) != 0) {
        vlm_document_remove(st, id);
    }

    return rc;
}


/* the document with this id, if the client's salt is its own */

static int
find(store_t *st, const client_t *client, text_t id, doc_t *doc, int64_t *n, err_t *err)
{
    int  rc;

    rc = vlm_document_row_get(st, id, doc, n, err);

    if (rc == OK && client != NULL && client->salt != doc->salt) {
        rc = vlm_document_none(err);
    }

    return rc;
}


/* the name by which a session has a document; NOTFOUND: it does not have it */

static int
name_of(store_t *st, int64_t session, int64_t n, char name[VLM_STORE_NAME + 1], err_t *err)
{
    int            rc;
    text_t         text;
    vlm_db_stmt_t  get;

    get = VLM_DB_LINK_NAME;

    vlm_db_int(st->db, get, 1, session);
    vlm_db_int(st->db, get, 2, n);

    rc = vlm_db_row(st->db, get, err);

    if (rc == NOTFOUND) {
        return vlm_db_fail(err, NOTFOUND, "The session does not have this document");
    }

    if (rc == OK) {
        text = vlm_db_col_text(st->db, get, 0);
        shown_name(name, text);
        vlm_db_end(st->db, get);
    }

    return rc;
}


/* The number of the client's session, 0 without one, and by which name that has the document. */

static int
named(store_t *st, const client_t *client, int64_t n, int64_t *session,
    char name[VLM_STORE_NAME + 1], err_t *err)
{
    int  rc;

    *session = 0;
    name[0] = '\0';

    if (client == NULL || client->session.data == NULL) {
        return OK;
    }

    rc = vlm_document_session(st, client->session, session, err);

    return rc == OK ? name_of(st, *session, n, name, err) : rc;
}


int
vlm_document_get(store_t *st, const client_t *client, text_t id, doc_t *doc, err_t *err)
{
    int      rc;
    int64_t  s, n;

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    rc = find(st, client, id, doc, &n, err);

    if (rc == OK) {
        rc = named(st, client, n, &s, doc->name, err);
    }

    return vlm_db_leave(st->db, rc, err);
}


int
vlm_document_list(store_t *st, text_t session, doc_t docs[VLM_DOCUMENT_MAX], size_t *n,
    err_t *err)
{
    int      rc;
    int64_t  s, numbers[VLM_DOCUMENT_MAX];

    *n = 0;

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    rc = vlm_document_session(st, session, &s, err);

    if (rc == OK) {
        rc = vlm_document_rows(st, s, docs, numbers, n, err);
    }

    return vlm_db_leave(st->db, rc, err);
}


int
vlm_document_link(store_t *st, const client_t *client, text_t id, text_t name, err_t *err)
{
    int      rc;
    char     shown[VLM_STORE_NAME + 1];
    doc_t    doc;
    int64_t  s, n;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = vlm_document_session(st, client->session, &s, err);

    if (rc == OK) {
        rc = find(st, client, id, &doc, &n, err);
    }

    if (rc == OK && (name.len > 0 || name_of(st, s, n, shown, NULL) != OK)) {
        shown_name(shown, name);
    }

    if (rc == OK) {
        rc = link_row(st, s, n, shown, doc.n_chunks, err);
    }

    return vlm_db_leave(st->db, rc, err);
}


int
vlm_document_unlink(store_t *st, text_t session, text_t id, err_t *err)
{
    int      rc;
    doc_t    doc;
    int64_t  s, n;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = vlm_document_session(st, session, &s, err);

    if (rc == OK) {
        rc = vlm_document_row_get(st, id, &doc, &n, err);
    }

    if (rc == OK) {
        vlm_db_int(st->db, VLM_DB_LINK_DROP, 1, s);
        vlm_db_int(st->db, VLM_DB_LINK_DROP, 2, n);

        rc = vlm_db_run(st->db, VLM_DB_LINK_DROP, err);
    }

    if (rc == OK && vlm_db_changes(st->db) == 0) {
        rc = vlm_db_fail(err, NOTFOUND, "The session does not have this document");
    }

    return vlm_db_leave(st->db, rc, err);
}


/* OK: no session has this document but the one with this number, 0: none at all */

static int
check_others(store_t *st, int64_t session, int64_t n, err_t *err)
{
    int            rc;
    int64_t        others;
    vlm_db_stmt_t  get;

    get = VLM_DB_LINK_OTHERS;

    vlm_db_int(st->db, get, 1, session);
    vlm_db_int(st->db, get, 2, n);

    rc = vlm_db_row(st->db, get, err);
    if (rc != OK) {
        return rc;
    }

    others = vlm_db_col_int(st->db, get, 0);
    vlm_db_end(st->db, get);

    if (others == 0) {
        return OK;
    }

    return vlm_db_fail(err, VLM_STORE_ELIMIT, session
                       ? "%lld other session%s this document: it can be removed from this one,"
                         " but not deleted"
                       : "%lld session%s this document: session_id must name the only one",
                       (long long) others, others == 1 ? " has" : "s have");
}


int
vlm_document_delete(store_t *st, const client_t *client, text_t id, err_t *err)
{
    int      rc;
    doc_t    doc;
    int64_t  s, n;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = find(st, client, id, &doc, &n, err);

    if (rc == OK) {
        rc = named(st, client, n, &s, doc.name, err);
    }

    if (rc == OK && client != NULL) {
        rc = check_others(st, s, n, err);
    }

    if (rc == OK) {
        vlm_db_int(st->db, VLM_DB_DOCUMENT_DROP, 1, n);
        rc = vlm_db_run(st->db, VLM_DB_DOCUMENT_DROP, err);
    }

    rc = vlm_db_leave(st->db, rc, err);

    if (rc == OK) {
        vlm_document_remove(st, doc.id);
    }

    return rc;
}


int
vlm_document_newest(store_t *st, uint64_t salt, char session[VLM_STORE_SESSION + 1], err_t *err)
{
    int            rc;
    text_t         id;
    vlm_db_stmt_t  newest;

    newest = VLM_DB_DOCUMENT_NEWEST;

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    vlm_db_int(st->db, newest, 1, (int64_t) salt);

    rc = vlm_db_row(st->db, newest, err);

    if (rc == OK) {
        id = vlm_db_col_text(st->db, newest, 0);

        if (vlm_store_id(vlm_store_session_id(id), err) == OK) {
            memcpy(session, id.data, id.len);
            session[id.len] = '\0';

        } else {
            rc = vlm_db_fail(err, VLM_STORE_ECORRUPT, "store %.150s: the row of a session is"
                             " damaged", st->dir);
        }

        vlm_db_end(st->db, newest);

    } else if (rc == NOTFOUND) {
        rc = vlm_document_none(err);
    }

    return vlm_db_leave(st->db, rc, err);
}


int
vlm_document_count(store_t *st, uint64_t n[VLM_DOCUMENT_FAILED + 1], err_t *err)
{
    int            rc;
    int64_t        state;
    vlm_db_stmt_t  count;

    count = VLM_DB_DOCUMENT_COUNT;
    memset(n, 0, (VLM_DOCUMENT_FAILED + 1) * sizeof(*n));

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    while ((rc = vlm_db_row(st->db, count, err)) == OK) {
        state = vlm_db_col_int(st->db, count, 0);

        if (state >= 0 && state <= VLM_DOCUMENT_FAILED) {
            n[state] = (uint64_t) vlm_db_col_int(st->db, count, 1);
        }
    }

    return vlm_db_leave(st->db, rc == NOTFOUND ? OK : rc, err);
}
