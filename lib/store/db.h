
/*
 * The store's database: one connection per process, its statements, its errors.  Only the files of
 * the store include it; store.h is the interface for others.  Every function here may wait for a
 * disk.
 */


#ifndef _NGX_HTTP_VLM_DB_H_INCLUDED_
#define _NGX_HTTP_VLM_DB_H_INCLUDED_


#include "store/store.h"


/* the statements, in the order of the table in sql.c */

typedef enum {
    VLM_DB_WRITE = 0,             /* BEGIN IMMEDIATE */
    VLM_DB_READ,                  /* BEGIN */
    VLM_DB_COMMIT,
    VLM_DB_ROLLBACK,

    VLM_DB_SESSION_ADD,           /* id, epoch, used */
    VLM_DB_SESSION_GET,           /* id: n, epoch, image */
    VLM_DB_SESSION_TOUCH,         /* n, used, image or NULL */
    VLM_DB_SESSION_RESET,         /* n, used, epoch */
    VLM_DB_SESSION_DROP,          /* n */
    VLM_DB_SESSION_COUNT,         /* : sessions */
    VLM_DB_SESSION_SHOWS,         /* image, used after: 1 */

    VLM_DB_OLD_ENTRIES,           /* used before, n sessions */
    VLM_DB_OLD_SESSIONS,          /* used before, n sessions */

    VLM_DB_ENTRY_ADD,             /* n, role, content, image, task,
                                              thinking, output, time, key,
                                              body, number */
    VLM_DB_ENTRY_TRIM,            /* n, entries to keep */
    VLM_DB_ENTRY_CLEAR,           /* n */
    VLM_DB_ENTRY_COUNT,           /* n: entries */
    VLM_DB_ENTRY_KEYED,           /* n, key, time after: 1 */
    VLM_DB_ENTRY_LIST,            /* n, newest: role, content, image,
                                              task, thinking, output, time,
                                              key, body, number */

    VLM_DB_UPLOAD_GET,            /* hash, bytes, secure: name */
    VLM_DB_UPLOAD_PUT,            /* hash, bytes, secure, name */
    VLM_DB_UPLOAD_DROP,           /* name */

    VLM_DB_DOCUMENT_ADD,          /* id, salt, sha256, name, bytes, now */
    VLM_DB_DOCUMENT_FIND,         /* salt, sha256: a document */
    VLM_DB_DOCUMENT_GET,          /* id: a document */
    VLM_DB_DOCUMENT_USED,         /* n, now */
    VLM_DB_DOCUMENT_AGAIN,        /* n, now: if it has failed, and not rests */
    VLM_DB_DOCUMENT_DROP,         /* n */
    VLM_DB_DOCUMENT_NEWEST,       /* salt: a session's id */
    VLM_DB_DOCUMENT_COUNT,        /* : state, documents */
    VLM_DB_DOCUMENT_UNUSED,       /* after n, at most: n, id, state, rows, used, linked */

    VLM_DB_LINK_ADD,              /* session, n, name, now */
    VLM_DB_LINK_NAME,             /* session, n: name */
    VLM_DB_LINK_OTHERS,           /* session or 0, n: other sessions */
    VLM_DB_LINK_DROP,             /* session, n */
    VLM_DB_LINK_CLEAR,            /* session */
    VLM_DB_LINK_SUM,              /* session, n of one left out: documents, chunks */
    VLM_DB_LINK_LIST,             /* session, at most: documents */

    VLM_DB_READING_RECOVER,       /* attempts, sentence */
    VLM_DB_READING_NEXT,          /* : a document */
    VLM_DB_READING_TAKE,          /* n */
    VLM_DB_READING_TURN,          /* n, now: of the sessions that have it */
    VLM_DB_READING_PROGRESS,      /* id, attempt, pages, to_read, read */
    VLM_DB_READING_BACK,          /* id, attempt, attempts not counted */
    VLM_DB_READING_FAIL,          /* id, attempt, sentence, rests until */
    VLM_DB_READING_DONE,          /* id, attempt, title, read, scans, hidden, chunks, rows,
                                              last, OCR, error */

    VLM_DB_PAGE_ADD,              /* document, number, width, height, flags, text, words */
    VLM_DB_PAGE_GET,              /* document, number: width, height, flags, text, words */
    VLM_DB_CONTENT_ADD,           /* document, chunks, terms */
    VLM_DB_CONTENT_GET,           /* document: chunks, terms */
    VLM_DB_VECTOR_PUT,            /* document, model, dim, vectors */
    VLM_DB_VECTOR_GET,            /* document, model: dim, vectors */
    VLM_DB_VECTOR_NEXT,           /* model: a document */
    VLM_DB_VECTOR_LACK,           /* model: chunks */

    VLM_DB_STATEMENTS
} vlm_db_stmt_t;


#define VLM_DB_SCHEMA  6      /* steps, PRAGMA user_version of a database that has had all */

extern const char *const  vlm_db_sql[VLM_DB_STATEMENTS];
extern const char *const  vlm_db_schema[VLM_DB_SCHEMA];


typedef struct vlm_db_s           vlm_db_t;
typedef struct vlm_store_calls_s  vlm_store_calls_t;


/* one of db and redis is set */

struct vlm_store_s {
    const vlm_store_calls_t      *calls;
    vlm_db_t                     *db;
    struct vlm_redis_s           *redis;
    int64_t                       age;         /* s, of sessions in redis; 0: no end */
    char                          dir[VLM_STORE_PATH];
};


/* fills in err, if there is one, and returns code */

int vlm_db_fail(vlm_store_err_t *err, int code,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* the code and the sentence for an errno */

int vlm_db_fail_errno(vlm_store_err_t *err, int e,
    const char *path);


/* opens nothing yet; the caller keeps dir; NULL: no memory */

vlm_db_t *vlm_db_new(const char *dir);
void vlm_db_free(vlm_db_t *db);


/*
 * Locks the connection, opens it if need be, and begins a transaction: WRITE
 * or READ.  After OK comes ..._leave(), which commits if rc is OK, else rolls
 * back; it returns rc, or why the commit failed.
 */

int vlm_db_enter(vlm_db_t *db, vlm_db_stmt_t how,
    vlm_store_err_t *err);
int vlm_db_leave(vlm_db_t *db, int rc,
    vlm_store_err_t *err);


/* Parameters count from 1.  Texts and blobs stay the caller's until the statement has run; a text
   of NULL binds NULL. */

void vlm_db_int(vlm_db_t *db, vlm_db_stmt_t which,
    int i, int64_t n);
void vlm_db_real(vlm_db_t *db, vlm_db_stmt_t which, int i, double x);
void vlm_db_text(vlm_db_t *db, vlm_db_stmt_t which,
    int i, vlm_store_text_t text);
void vlm_db_blob(vlm_db_t *db, vlm_db_stmt_t which, int i, const void *data, size_t bytes);

/* rows that the last statement changed */

int64_t vlm_db_changes(vlm_db_t *db);

/* runs a statement that gives no rows */

int vlm_db_run(vlm_db_t *db, vlm_db_stmt_t which,
    vlm_store_err_t *err);

/*
 * The next row: OK, NOTFOUND when there is no more, or an error.  With OK the
 * columns, counted from 0, can be read until the next call; ..._end() leaves
 * the rows that are left.
 */

int vlm_db_row(vlm_db_t *db, vlm_db_stmt_t which,
    vlm_store_err_t *err);
int64_t vlm_db_col_int(vlm_db_t *db,
    vlm_db_stmt_t which, int i);
vlm_store_text_t vlm_db_col_text(vlm_db_t *db,
    vlm_db_stmt_t which, int i);
double vlm_db_col_real(vlm_db_t *db, vlm_db_stmt_t which, int i);
vlm_store_text_t vlm_db_col_blob(vlm_db_t *db, vlm_db_stmt_t which, int i);
void vlm_db_end(vlm_db_t *db, vlm_db_stmt_t which);


/* us since 1970, as rows have it (store.c) */

int64_t vlm_store_now(void);

/* for sessions: a random number */

int64_t vlm_db_random(void);


#endif /* _NGX_HTTP_VLM_DB_H_INCLUDED_ */
