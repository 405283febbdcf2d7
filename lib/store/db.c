
/*
 * The connection to SQLite: transactions, rows, errors.  The only file that includes it; sql.c has
 * the statements and the tables.
 *
 * A connection is opened by the first call (so never before fork), guarded by a mutex, and has its
 * statements prepared with it.  The journal is a write-ahead log, synced at every commit: readers
 * of other workers do not wait for writers, and an acknowledged commit survives a crash.  A damaged
 * database closes the connection, so that a repaired one is opened by the next call without a
 * restart.
 */


#define _GNU_SOURCE

#include "store/db.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif


#define BUSY_MS         5000               /* other workers' commits take ms */
#define FAST_MS         1000               /* after that, no waiting */
#define DATABASE        "vlm.db"

#define OK              VLM_STORE_OK
#define N_STMTS         VLM_DB_STATEMENTS


typedef vlm_db_t          db_t;
typedef vlm_db_stmt_t     stmt_t;
typedef vlm_store_text_t  text_t;
typedef vlm_store_err_t   err_t;


struct vlm_db_s {
    pthread_mutex_t               lock;
    sqlite3                      *conn;        /* NULL: to be opened */
    sqlite3_stmt                 *stmt[N_STMTS];
    const char                   *dir;
    int                           broken;      /* close it when done */
    atomic_llong                  busy_until[2];   /* ms of WRITE and READ: until then callers are
                                                      refused */
};


static void leave_moved(db_t *db);
static int open_database(db_t *db, err_t *err);
static int configure(db_t *db);
static int make_schema(db_t *db, err_t *err);
static int user_version(db_t *db, int *version);
static int prepare_all(db_t *db, err_t *err);
static void close_database(db_t *db);
static int fail_sqlite(db_t *db, int rc, err_t *err);
static long long now_ms(void);
static int fail_busy(db_t *db, err_t *err);
static int fail_step(db_t *db, int rc, err_t *err);


db_t *
vlm_db_new(const char *dir)
{
    db_t  *db;

    db = calloc(1, sizeof(db_t));
    if (db == NULL) {
        return NULL;
    }

    if (pthread_mutex_init(&db->lock, NULL) != 0) {
        free(db);
        return NULL;
    }

    db->dir = dir;

    return db;
}


void
vlm_db_free(db_t *db)
{
    close_database(db);
    (void) pthread_mutex_destroy(&db->lock);
    free(db);
}


/* ms that are left of a wait, one at least */

static int
rest_of(const struct timespec *until)
{
    long             ms;
    struct timespec  now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);

    ms = (until->tv_sec - now.tv_sec) * 1000
         + (until->tv_nsec - now.tv_nsec) / 1000000;

    return ms < 1 ? 1 : ms > BUSY_MS ? BUSY_MS : (int) ms;
}


/* GCC 12's ThreadSanitizer does not see pthread_mutex_clocklock(), so it is told. */

static int
lock_until(pthread_mutex_t *lock, const struct timespec *until)
{
    int  rc;

    rc = pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, until);

#ifdef __SANITIZE_THREAD__
    __tsan_mutex_pre_lock(lock, __tsan_mutex_try_lock);
    __tsan_mutex_post_lock(lock, rc == 0 ? __tsan_mutex_try_lock
                                         : __tsan_mutex_try_lock | __tsan_mutex_try_lock_failed, 0);
#endif

    return rc;
}


/* locks the store and begins a transaction; after OK comes leave() */

int
vlm_db_enter(db_t *db, stmt_t how, err_t *err)
{
    int              rc;
    struct timespec  until;

    /* a store whose sessions are in a Redis */

    if (db == NULL) {
        return vlm_db_fail(err, VLM_STORE_EIO, "this store has no documents");
    }

    /* after a failed wait no other thread waits for a while */

    if (now_ms() < atomic_load(&db->busy_until[how])) {
        return fail_busy(db, err);
    }

    /* while one thread waits for other processes, others do not wait longer */

    (void) clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += BUSY_MS / 1000;

    if (lock_until(&db->lock, &until) != 0) {
        return fail_busy(db, err);
    }

    if (now_ms() < atomic_load(&db->busy_until[how])) {
        (void) pthread_mutex_unlock(&db->lock);
        return fail_busy(db, err);
    }

    if (db->conn != NULL) {
        leave_moved(db);
    }

    rc = db->conn == NULL ? open_database(db, err) : OK;

    if (rc == OK) {
        (void) sqlite3_busy_timeout(db->conn, rest_of(&until));
        rc = vlm_db_run(db, how, err);
    }

    if (rc == VLM_STORE_EBUSY) {
        atomic_store(&db->busy_until[how], now_ms() + FAST_MS);
    }

    if (rc != OK) {
        (void) vlm_db_leave(db, rc, NULL);
    }

    return rc;
}


/*
 * The file was moved away or removed: this connection still uses it, while other workers have a new
 * one.  An orderly close would remove the journal by its name, which is the new one's.
 */

static void
leave_moved(db_t *db)
{
    int  moved;

    moved = 0;

    if (sqlite3_file_control(db->conn, "main", SQLITE_FCNTL_HAS_MOVED, &moved)
        != SQLITE_OK
        || !moved)
    {
        return;
    }

    (void) sqlite3_db_config(db->conn, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                             NULL);
    close_database(db);
}


/*
 * Ends the transaction, by a commit if rc is OK, and unlocks.  Returns rc, or
 * why the commit failed.
 */

int
vlm_db_leave(db_t *db, int rc, err_t *err)
{
    if (db->conn != NULL) {

        if (rc == OK) {
            rc = vlm_db_run(db, VLM_DB_COMMIT, err);
        }

        if (!sqlite3_get_autocommit(db->conn)) {
            (void) vlm_db_run(db, VLM_DB_ROLLBACK, NULL);
        }

        if (db->broken) {
            close_database(db);
        }
    }

    (void) pthread_mutex_unlock(&db->lock);

    return rc;
}


static int
open_database(db_t *db, err_t *err)
{
    int   rc;
    char  path[VLM_STORE_PATH + sizeof(DATABASE)];

    (void) snprintf(path, sizeof(path), "%s/" DATABASE, db->dir);

    rc = sqlite3_open_v2(path, &db->conn, SQLITE_OPEN_READWRITE
                         |SQLITE_OPEN_CREATE|SQLITE_OPEN_NOMUTEX, NULL);

    if (rc == SQLITE_OK) {
        rc = configure(db);
    }

    if (rc != SQLITE_OK) {
        rc = fail_sqlite(db, rc, err);

    } else {
        rc = make_schema(db, err);
    }

    if (rc == OK) {
        rc = prepare_all(db, err);
    }

    if (rc != OK) {
        close_database(db);
    }

    return rc;
}


/*
 * The switch to the write-ahead log needs the file exclusively for a moment and does not always
 * call the busy handler: workers that start together would fail.
 */

static int
configure(db_t *db)
{
    int              rc;
    struct timespec  pause, start, now;

    pause.tv_sec = 0;
    pause.tv_nsec = 10 * 1000000;

    (void) clock_gettime(CLOCK_MONOTONIC, &start);

    (void) sqlite3_busy_timeout(db->conn, BUSY_MS);
    (void) sqlite3_extended_result_codes(db->conn, 1);

    for ( ;; ) {

        rc = sqlite3_exec(db->conn, "PRAGMA journal_mode = WAL;"
                          "PRAGMA synchronous = FULL;"
                          "PRAGMA trusted_schema = OFF;"
                          "PRAGMA cache_size = -1024;", NULL, NULL, NULL);

        (void) clock_gettime(CLOCK_MONOTONIC, &now);

        if ((rc & 0xff) != SQLITE_BUSY
            || now.tv_sec - start.tv_sec >= BUSY_MS / 1000)
        {
            return rc;
        }

        (void) nanosleep(&pause, NULL);
    }
}


/* the first process creates the tables; the others see the version */

static int
make_schema(db_t *db, err_t *err)
{
    int  rc, version;

    rc = user_version(db, &version);

    if (rc == SQLITE_OK && version < VLM_DB_SCHEMA) {

        rc = sqlite3_exec(db->conn, "BEGIN IMMEDIATE", NULL, NULL, NULL);

        if (rc == SQLITE_OK) {
            rc = user_version(db, &version);
        }

        while (rc == SQLITE_OK && version >= 0 && version < VLM_DB_SCHEMA) {
            rc = sqlite3_exec(db->conn, vlm_db_schema[version++], NULL, NULL, NULL);
        }

        if (rc == SQLITE_OK) {
            rc = sqlite3_exec(db->conn, "COMMIT", NULL, NULL, NULL);
        }
    }

    if (rc != SQLITE_OK) {
        return fail_sqlite(db, rc, err);
    }

    if (version != VLM_DB_SCHEMA) {
        return vlm_db_fail(err, VLM_STORE_ECORRUPT,
                           "store %.100s: " DATABASE " has schema"
                           " %d, this server knows %d: move it away,"
                           " or run the version that made it",
                           db->dir, version, VLM_DB_SCHEMA);
    }

    return OK;
}


static int
user_version(db_t *db, int *version)
{
    int            rc;
    sqlite3_stmt  *s;

    *version = 0;

    rc = sqlite3_prepare_v2(db->conn, "PRAGMA user_version", -1, &s, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }

    rc = sqlite3_step(s);

    if (rc == SQLITE_ROW) {
        *version = sqlite3_column_int(s, 0);
        rc = SQLITE_OK;
    }

    (void) sqlite3_finalize(s);

    return rc;
}


static int
prepare_all(db_t *db, err_t *err)
{
    int  i, rc;

    for (i = 0; i < N_STMTS; i++) {

        rc = sqlite3_prepare_v3(db->conn, vlm_db_sql[i], -1,
                                SQLITE_PREPARE_PERSISTENT,
                                &db->stmt[i], NULL);

        if (rc != SQLITE_OK) {
            return fail_sqlite(db, rc == SQLITE_ERROR ? SQLITE_CORRUPT : rc,
                               err);
        }
    }

    return OK;
}


static void
close_database(db_t *db)
{
    int  i;

    for (i = 0; i < N_STMTS; i++) {
        (void) sqlite3_finalize(db->stmt[i]);
        db->stmt[i] = NULL;
    }

    (void) sqlite3_close(db->conn);
    db->conn = NULL;
    db->broken = 0;
}


void
vlm_db_int(db_t *db, stmt_t which, int i, int64_t n)
{
    (void) sqlite3_bind_int64(db->stmt[which], i, n);
}


void
vlm_db_blob(db_t *db, stmt_t which, int i, const void *data, size_t bytes)
{
    (void) sqlite3_bind_blob64(db->stmt[which], i, bytes == 0 ? "" : data, bytes, SQLITE_STATIC);
}


void
vlm_db_real(db_t *db, stmt_t which, int i, double x)
{
    (void) sqlite3_bind_double(db->stmt[which], i, x);
}


void
vlm_db_text(db_t *db, stmt_t which, int i, text_t text)
{
    sqlite3_stmt  *s;

    s = db->stmt[which];

    if (text.data == NULL) {
        (void) sqlite3_bind_null(s, i);
        return;
    }

    (void) sqlite3_bind_text64(s, i, text.data, text.len, SQLITE_STATIC,
                               SQLITE_UTF8);
}


int64_t
vlm_db_changes(db_t *db)
{
    return sqlite3_changes(db->conn);
}


int
vlm_db_run(db_t *db, stmt_t which, err_t *err)
{
    int  rc;

    rc = vlm_db_row(db, which, err);

    if (rc == OK) {
        vlm_db_end(db, which);
    }

    return rc == VLM_STORE_NOTFOUND ? OK : rc;
}


int
vlm_db_row(db_t *db, stmt_t which, err_t *err)
{
    int  rc;

    rc = sqlite3_step(db->stmt[which]);

    if (rc == SQLITE_ROW) {
        return OK;
    }

    rc = rc == SQLITE_DONE ? VLM_STORE_NOTFOUND
                           : fail_step(db, rc, err);

    vlm_db_end(db, which);

    return rc;
}


int64_t
vlm_db_col_int(db_t *db, stmt_t which, int i)
{
    return sqlite3_column_int64(db->stmt[which], i);
}


text_t
vlm_db_col_text(db_t *db, stmt_t which, int i)
{
    text_t  t;

    /* NULL for NULL, and for no memory */

    t.data = (const char *) sqlite3_column_text(db->stmt[which], i);
    t.len = (size_t) sqlite3_column_bytes(db->stmt[which], i);

    return t;
}


double
vlm_db_col_real(db_t *db, stmt_t which, int i)
{
    return sqlite3_column_double(db->stmt[which], i);
}


text_t
vlm_db_col_blob(db_t *db, stmt_t which, int i)
{
    text_t  t;

    t.data = sqlite3_column_blob(db->stmt[which], i);
    t.len = (size_t) sqlite3_column_bytes(db->stmt[which], i);

    return t;
}


void
vlm_db_end(db_t *db, stmt_t which)
{
    (void) sqlite3_reset(db->stmt[which]);
    (void) sqlite3_clear_bindings(db->stmt[which]);
}


int64_t
vlm_db_random(void)
{
    int64_t  n;

    sqlite3_randomness(sizeof(n), &n);

    return n;
}


static int
fail_sqlite(db_t *db, int rc, err_t *err)
{
    int          e, code;
    const char  *dir, *text;

    dir = db->dir;
    e = db->conn == NULL ? 0 : sqlite3_system_errno(db->conn);
    text = db->conn == NULL ? sqlite3_errstr(rc) : sqlite3_errmsg(db->conn);

    switch (rc & 0xff) {

    case SQLITE_FULL:
        return vlm_db_fail_errno(err, ENOSPC, dir);

    case SQLITE_READONLY:
    case SQLITE_PERM:
        code = VLM_STORE_EREADONLY;
        return vlm_db_fail(err, code, "store %.100s: " DATABASE
                           " cannot be written: %.80s", dir, text);

    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        code = VLM_STORE_ECORRUPT;
        return vlm_db_fail(err, code, "store %.100s: " DATABASE
                           " is damaged or no database (%.60s): move"
                           " it away and a new one is made", dir,
                           text);

    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fail_busy(db, err);

    case SQLITE_CANTOPEN:

        /* after a failed open SQLite tries another, whose error is different */

        if (access(dir, W_OK|X_OK) != 0) {
            e = errno;
        }

        /* fall through */

    case SQLITE_IOERR:

        if (e != 0) {
            return vlm_db_fail_errno(err, e, dir);
        }

        break;
    }

    return vlm_db_fail(err, VLM_STORE_EIO,
                       "store %.100s: " DATABASE ": %.100s", dir,
                       text);
}


static long long
now_ms(void)
{
    struct timespec  now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);

    return (long long) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}


static int
fail_busy(db_t *db, err_t *err)
{
    return vlm_db_fail(err, VLM_STORE_EBUSY,
                       "store %.100s: " DATABASE " was locked by"
                       " others for %d ms", db->dir, BUSY_MS);
}


static int
fail_step(db_t *db, int rc, err_t *err)
{
    rc = fail_sqlite(db, rc, err);

    if (rc == VLM_STORE_ECORRUPT || rc == VLM_STORE_EIO) {
        db->broken = 1;
    }

    return rc;
}


int
vlm_db_fail(err_t *err, int code, const char *fmt, ...)
{
    va_list  args;

    if (err != NULL) {
        err->code = code;

        va_start(args, fmt);
        (void) vsnprintf(err->text, sizeof(err->text), fmt, args);
        va_end(args);
    }

    return code;
}


int
vlm_db_fail_errno(err_t *err, int e, const char *path)
{
    switch (e) {

    case ENOSPC:
    case EDQUOT:
        return vlm_db_fail(err, VLM_STORE_EFULL,
                           "store %.150s: the disk is full", path);

    case EACCES:
    case EPERM:
    case EROFS:
        return vlm_db_fail(err, VLM_STORE_EREADONLY,
                           "store %.150s cannot be written: %s",
                           path, strerror(e));
    }

    return vlm_db_fail(err, VLM_STORE_EIO,
                       "store %.150s: %s", path, strerror(e));
}
