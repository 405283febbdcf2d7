
/*
 * Rows that the store has not written: any type and any bytes in any column, as a damaged file or
 * another program would leave them.  A loaded session is valid, every byte of it, or it is refused.
 */


#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "store/store.h"


#define COLUMNS  9


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static char                    dir[] = "/dev/shm/vlm-store-XXXXXX";
static vlm_store_t   *store;
static sqlite3                *db;

static const vlm_store_text_t  session = { 1, "s" };

static const char *const  columns[COLUMNS] = {
    "UPDATE entry SET role = ?1",
    "UPDATE entry SET content = ?1",
    "UPDATE entry SET image = ?1",
    "UPDATE entry SET task = ?1",
    "UPDATE entry SET thinking = ?1",
    "UPDATE entry SET output = ?1",
    "UPDATE entry SET time = ?1",
    "UPDATE session SET image = ?1",
    "UPDATE session SET epoch = ?1"
};


static void
end(void)
{
    char  command[64];

    (void) snprintf(command, sizeof(command), "rm -rf %s", dir);

    if (system(command) != 0) {
        abort();
    }
}


static int
begin(void)
{
    char                         path[128];
    vlm_store_turn_t             turn;
    vlm_store_loaded_t           loaded;

    if (mkdtemp(dir) == NULL
        || atexit(end) != 0
        || vlm_store_prepare(dir, (uid_t) -1, (gid_t) -1, NULL)
           != VLM_STORE_OK)
    {
        return -1;
    }

    store = vlm_store_open(dir);

    if (store == NULL
        || vlm_store_session_ensure(store, session, NULL)
           != VLM_STORE_OK
        || vlm_store_session_load(store, session, 0, &loaded, NULL)
           != VLM_STORE_OK)
    {
        return -1;
    }

    memset(&turn, 0, sizeof(turn));
    turn.message = session;
    turn.answer = session;

    if (vlm_store_session_append(store, session, loaded.epoch, &turn,
                                 &(size_t) { 0 }, &(int) { 0 }, NULL)
        != VLM_STORE_OK)
    {
        return -1;
    }

    vlm_store_loaded_free(&loaded);

    snprintf(path, sizeof(path), "%s/vlm.db", dir);

    return sqlite3_open(path, &db) == SQLITE_OK
           && sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL)
              == SQLITE_OK
           ? 0 : -1;
}


static void
set(const char *sql, unsigned kind, const uint8_t *data, size_t bytes)
{
    int64_t        n;
    double         x;
    sqlite3_stmt  *stmt;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        abort();
    }

    n = 0;
    memcpy(&n, data, bytes < sizeof(n) ? bytes : sizeof(n));
    memcpy(&x, &n, sizeof(x));

    switch (kind % 4) {
    case 0:
        (void) sqlite3_bind_blob(stmt, 1, data, (int) bytes, SQLITE_STATIC);
        break;
    case 1:
        (void) sqlite3_bind_text(stmt, 1, (const char *) data, (int) bytes,
                                 SQLITE_STATIC);
        break;
    case 2:
        (void) sqlite3_bind_int64(stmt, 1, n);
        break;
    default:
        (void) sqlite3_bind_double(stmt, 1, x);
    }

    (void) sqlite3_step(stmt);             /* NOT NULL may refuse it */
    (void) sqlite3_finalize(stmt);
}


static unsigned
touch(vlm_store_text_t text)
{
    size_t    i;
    unsigned  sum;

    for (sum = 0, i = 0; i < text.len; i++) {
        sum += (unsigned char) text.data[i];
    }

    return sum;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t                        i, n;
    volatile unsigned             sink;
    vlm_store_err_t      err;
    vlm_store_entry_t   *e;
    vlm_store_loaded_t   loaded;

    if (store == NULL && begin() != 0) {
        return 0;
    }

    sink = 0;

    while (bytes > 2) {
        n = data[1] < bytes - 2 ? data[1] : bytes - 2;
        set(columns[data[0] % COLUMNS], data[0] / COLUMNS, data + 2, n);
        data += 2 + n;
        bytes -= 2 + n;
    }

    if (vlm_store_session_load(store, session, 20, &loaded, &err)
        != VLM_STORE_OK)
    {
        return 0;
    }

    if (loaded.image) {
        sink += (unsigned) strlen(loaded.image);
    }

    for (i = 0; i < loaded.n; i++) {
        e = &loaded.entries[i];

        sink += touch(e->content) + touch(e->image) + touch(e->task)
                + touch(e->thinking) + touch(e->output);
        sink += (unsigned) strlen(e->time);

        if (e->role != VLM_STORE_USER
            && e->role != VLM_STORE_ASSISTANT)
        {
            abort();
        }
    }

    vlm_store_loaded_free(&loaded);

    return 0;
}
