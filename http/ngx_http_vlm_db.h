
/*
 * The store's database: one connection per process, its statements, its
 * errors.  For the files of the store alone; ngx_http_vlm_store.h is what
 * others use.  Everything here waits for a disk.
 */


#ifndef _NGX_HTTP_VLM_DB_H_INCLUDED_
#define _NGX_HTTP_VLM_DB_H_INCLUDED_


#include "ngx_http_vlm_store.h"


/* the statements, in the order of the table in ngx_http_vlm_db.c */

typedef enum {
    NGX_HTTP_VLM_DB_WRITE = 0,             /* BEGIN IMMEDIATE */
    NGX_HTTP_VLM_DB_READ,                  /* BEGIN */
    NGX_HTTP_VLM_DB_COMMIT,
    NGX_HTTP_VLM_DB_ROLLBACK,

    NGX_HTTP_VLM_DB_SESSION_ADD,           /* id, epoch, used */
    NGX_HTTP_VLM_DB_SESSION_GET,           /* id: n, epoch, image */
    NGX_HTTP_VLM_DB_SESSION_TOUCH,         /* n, used, image or NULL */
    NGX_HTTP_VLM_DB_SESSION_RESET,         /* n, used, epoch */
    NGX_HTTP_VLM_DB_SESSION_DROP,          /* n */
    NGX_HTTP_VLM_DB_SESSION_COUNT,         /* : sessions */
    NGX_HTTP_VLM_DB_SESSION_SHOWS,         /* image, used after: 1 */

    NGX_HTTP_VLM_DB_OLD_ENTRIES,           /* used before, n sessions */
    NGX_HTTP_VLM_DB_OLD_SESSIONS,          /* used before, n sessions */

    NGX_HTTP_VLM_DB_ENTRY_ADD,             /* n, role, content, image, task,
                                              thinking, output, time, key,
                                              body, number */
    NGX_HTTP_VLM_DB_ENTRY_TRIM,            /* n, entries to keep */
    NGX_HTTP_VLM_DB_ENTRY_CLEAR,           /* n */
    NGX_HTTP_VLM_DB_ENTRY_COUNT,           /* n: entries */
    NGX_HTTP_VLM_DB_ENTRY_KEYED,           /* n, key, time after: 1 */
    NGX_HTTP_VLM_DB_ENTRY_LIST,            /* n, newest: role, content, image,
                                              task, thinking, output, time,
                                              key, body, number */

    NGX_HTTP_VLM_DB_UPLOAD_GET,            /* hash, bytes, secure: name */
    NGX_HTTP_VLM_DB_UPLOAD_PUT,            /* hash, bytes, secure, name */
    NGX_HTTP_VLM_DB_UPLOAD_DROP,           /* name */

    NGX_HTTP_VLM_DB_STATEMENTS
} ngx_http_vlm_db_stmt_t;


typedef struct ngx_http_vlm_db_s  ngx_http_vlm_db_t;


struct ngx_http_vlm_store_s {
    ngx_http_vlm_db_t            *db;
    char                          dir[NGX_HTTP_VLM_STORE_PATH];
};


/* fills in err, if there is one, and returns code */

int ngx_http_vlm_db_fail(ngx_http_vlm_store_err_t *err, int code,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* the code and the sentence for an errno */

int ngx_http_vlm_db_fail_errno(ngx_http_vlm_store_err_t *err, int e,
    const char *path);


/* nothing is opened yet; dir is kept by the caller; NULL: no memory */

ngx_http_vlm_db_t *ngx_http_vlm_db_new(const char *dir);
void ngx_http_vlm_db_free(ngx_http_vlm_db_t *db);


/*
 * Locks the connection, opens it if need be, and begins a transaction: WRITE
 * or READ.  After OK comes ..._leave(), which commits if rc is OK, else rolls
 * back; it returns rc, or why the commit failed.
 */

int ngx_http_vlm_db_enter(ngx_http_vlm_db_t *db, ngx_http_vlm_db_stmt_t how,
    ngx_http_vlm_store_err_t *err);
int ngx_http_vlm_db_leave(ngx_http_vlm_db_t *db, int rc,
    ngx_http_vlm_store_err_t *err);


/* Parameters count from 1.  Texts stay the caller's until the statement has
   run; NULL binds NULL. */

void ngx_http_vlm_db_int(ngx_http_vlm_db_t *db, ngx_http_vlm_db_stmt_t which,
    int i, int64_t n);
void ngx_http_vlm_db_text(ngx_http_vlm_db_t *db, ngx_http_vlm_db_stmt_t which,
    int i, ngx_http_vlm_store_text_t text);

/* rows that the last statement changed */

int64_t ngx_http_vlm_db_changes(ngx_http_vlm_db_t *db);

/* runs a statement that gives no rows */

int ngx_http_vlm_db_run(ngx_http_vlm_db_t *db, ngx_http_vlm_db_stmt_t which,
    ngx_http_vlm_store_err_t *err);

/*
 * The next row: OK, NOTFOUND when there is no more, or an error.  With OK the
 * columns, counted from 0, can be read until the next call; ..._end() leaves
 * the rows that are left.
 */

int ngx_http_vlm_db_row(ngx_http_vlm_db_t *db, ngx_http_vlm_db_stmt_t which,
    ngx_http_vlm_store_err_t *err);
int64_t ngx_http_vlm_db_col_int(ngx_http_vlm_db_t *db,
    ngx_http_vlm_db_stmt_t which, int i);
ngx_http_vlm_store_text_t ngx_http_vlm_db_col_text(ngx_http_vlm_db_t *db,
    ngx_http_vlm_db_stmt_t which, int i);
void ngx_http_vlm_db_end(ngx_http_vlm_db_t *db, ngx_http_vlm_db_stmt_t which);


/* for sessions: a random number */

int64_t ngx_http_vlm_db_random(void);


#endif /* _NGX_HTTP_VLM_DB_H_INCLUDED_ */
