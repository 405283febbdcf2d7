
/*
 * Sessions and their turns in SQLite: the table of functions behind store.h.  db.c has the
 * connection, sql.c the statements.
 *
 * A session has an epoch, a random number that a reset replaces.  A request that makes an answer
 * has the epoch of its question, and the answer is kept only if the session still has it: so a
 * reset or a delete in between wins, even if a session of the same id was made again.
 */


#define _GNU_SOURCE

#include <stdlib.h>
#include <string.h>

#include "store/calls.h"


#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND
#define GONE            VLM_STORE_GONE

#define BATCH           64                 /* sessions evicted in one transaction */


typedef vlm_store_t         store_t;
typedef vlm_store_text_t    text_t;
typedef vlm_store_err_t     err_t;
typedef vlm_store_upload_t  upload_t;


/* a row of session */

typedef struct {
    int64_t                       n;
    int64_t                       epoch;
    char                          image[VLM_STORE_NAME + 1];
} session_t;


static int session_add(store_t *st, text_t id, err_t *err);
static int session_get(store_t *st, text_t id, session_t *row, err_t *err);
static int session_get_epoch(store_t *st, text_t id, int64_t epoch,
    session_t *row, err_t *err);
static int session_touch(store_t *st, const session_t *row, text_t image,
    err_t *err);

static int turn_add(store_t *st, const session_t *row,
    const vlm_store_turn_t *turn, int64_t *n, err_t *err);
static int turn_once(store_t *st, const session_t *row,
    const vlm_store_turn_t *turn, err_t *err);
static int entry_add(store_t *st, const session_t *row,
    const vlm_store_turn_t *turn, vlm_store_role_t role,
    int64_t number, err_t *err);
static int entry_count(store_t *st, const session_t *row, int64_t *n,
    err_t *err);

static int entries_load(store_t *st, const session_t *row, size_t max,
    vlm_store_loaded_t *loaded, err_t *err);
static int entry_load(store_t *st, vlm_store_entry_t *e);
static int column(store_t *st, int i, text_t *t);


/* ---- sessions ------------------------------------------------------------ */


/* Usually the session exists: a read waits for no writer. */

static int
session_ensure(store_t *st, text_t id, err_t *err)
{
    int        rc;
    session_t  row;

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    rc = session_get(st, id, &row, err);

    rc = vlm_db_leave(st->db, rc, err);
    if (rc != NOTFOUND) {
        return rc;
    }

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = session_add(st, id, err);

    return vlm_db_leave(st->db, rc, err);
}


static int
session_add(store_t *st, text_t id, err_t *err)
{
    vlm_db_stmt_t  add;

    add = VLM_DB_SESSION_ADD;

    vlm_db_text(st->db, add, 1, id);
    vlm_db_int(st->db, add, 2, vlm_db_random());
    vlm_db_int(st->db, add, 3, vlm_store_now());

    return vlm_db_run(st->db, add, err);
}


static int
session_get(store_t *st, text_t id, session_t *row, err_t *err)
{
    int                     rc;
    text_t                  image;
    vlm_db_stmt_t           get;

    get = VLM_DB_SESSION_GET;

    vlm_db_text(st->db, get, 1, id);

    rc = vlm_db_row(st->db, get, err);

    if (rc == NOTFOUND) {
        return vlm_db_fail(err, NOTFOUND, "Session not found");
    }

    if (rc != OK) {
        return rc;
    }

    row->n = vlm_db_col_int(st->db, get, 0);
    row->epoch = vlm_db_col_int(st->db, get, 1);

    image = vlm_db_col_text(st->db, get, 2);

    if (image.data == NULL || image.len > VLM_STORE_NAME) {
        image.data = "";
        image.len = 0;
    }

    memcpy(row->image, image.data, image.len);
    row->image[image.len] = '\0';

    vlm_db_end(st->db, get);

    return OK;
}


static int
session_get_epoch(store_t *st, text_t id, int64_t epoch, session_t *row,
    err_t *err)
{
    int  rc;

    rc = session_get(st, id, row, err);

    if (rc == NOTFOUND || (rc == OK && row->epoch != epoch)) {
        return vlm_db_fail(err, GONE, "Session was reset or deleted"
                           " meanwhile");
    }

    return rc;
}


static int
session_drop(store_t *st, text_t id, err_t *err)
{
    int        rc;
    session_t  row;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = session_get(st, id, &row, err);

    if (rc == OK) {
        vlm_db_int(st->db, VLM_DB_ENTRY_CLEAR, 1, row.n);
        rc = vlm_db_run(st->db, VLM_DB_ENTRY_CLEAR, err);
    }

    if (rc == OK) {
        vlm_db_int(st->db, VLM_DB_SESSION_DROP, 1, row.n);
        rc = vlm_db_run(st->db, VLM_DB_SESSION_DROP, err);
    }

    return vlm_db_leave(st->db, rc, err);
}


static int
session_reset(store_t *st, text_t id, err_t *err)
{
    int                     rc;
    session_t               row;
    vlm_db_stmt_t           reset;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = session_get(st, id, &row, err);

    if (rc == OK) {
        vlm_db_int(st->db, VLM_DB_ENTRY_CLEAR, 1, row.n);
        rc = vlm_db_run(st->db, VLM_DB_ENTRY_CLEAR, err);
    }

    if (rc == OK) {
        vlm_db_int(st->db, VLM_DB_LINK_CLEAR, 1, row.n);
        rc = vlm_db_run(st->db, VLM_DB_LINK_CLEAR, err);
    }

    if (rc == OK) {
        reset = VLM_DB_SESSION_RESET;

        vlm_db_int(st->db, reset, 1, row.n);
        vlm_db_int(st->db, reset, 2, vlm_store_now());
        vlm_db_int(st->db, reset, 3, vlm_db_random());

        rc = vlm_db_run(st->db, reset, err);
    }

    return vlm_db_leave(st->db, rc, err);
}


static int
session_count(store_t *st, uint64_t *n, err_t *err)
{
    int                     rc;
    vlm_db_stmt_t           count;

    count = VLM_DB_SESSION_COUNT;

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    rc = vlm_db_row(st->db, count, err);

    if (rc == OK) {
        *n = (uint64_t) vlm_db_col_int(st->db, count, 0);
        vlm_db_end(st->db, count);
    }

    return vlm_db_leave(st->db, rc, err);
}


static int
session_image(store_t *st, text_t id, int64_t epoch, text_t image, err_t *err)
{
    int        rc;
    session_t  row;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = session_get_epoch(st, id, epoch, &row, err);

    if (rc == OK) {
        rc = session_touch(st, &row, image, err);
    }

    return vlm_db_leave(st->db, rc, err);
}


static int
session_touch(store_t *st, const session_t *row, text_t image, err_t *err)
{
    vlm_db_stmt_t  touch;

    touch = VLM_DB_SESSION_TOUCH;

    vlm_db_int(st->db, touch, 1, row->n);
    vlm_db_int(st->db, touch, 2, vlm_store_now());
    vlm_db_text(st->db, touch, 3, image);

    return vlm_db_run(st->db, touch, err);
}


/* a batch, so that a worker does not wait long for it */

static int
session_expire(store_t *st, int64_t before, uint64_t *n, err_t *err)
{
    int            rc;
    size_t         i;
    vlm_db_stmt_t  old[2];

    old[0] = VLM_DB_OLD_ENTRIES;
    old[1] = VLM_DB_OLD_SESSIONS;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    for (i = 0; i < 2 && rc == OK; i++) {
        vlm_db_int(st->db, old[i], 1, before);
        vlm_db_int(st->db, old[i], 2, BATCH);

        rc = vlm_db_run(st->db, old[i], err);
    }

    if (rc == OK) {
        *n = (uint64_t) vlm_db_changes(st->db);
    }

    rc = vlm_db_leave(st->db, rc, err);

    if (rc != OK) {
        *n = 0;
    }

    return rc;
}


/* ---- turns --------------------------------------------------------------- */


static int
session_append(store_t *st, text_t id, int64_t epoch,
    const vlm_store_turn_t *turn, int64_t *n, err_t *err)
{
    int        rc;
    session_t  row;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    rc = session_get_epoch(st, id, epoch, &row, err);

    if (rc == OK) {
        rc = turn_add(st, &row, turn, n, err);
    }

    if (rc == OK) {
        rc = session_touch(st, &row, turn->image, err);
    }

    return vlm_db_leave(st->db, rc, err);
}


/* inserts the pair, evicts the oldest entries; the number that are left */

static int
turn_add(store_t *st, const session_t *row,
    const vlm_store_turn_t *turn, int64_t *n, err_t *err)
{
    int                     rc;
    vlm_db_stmt_t           trim;

    rc = turn_once(st, row, turn, err);

    if (rc == OK) {
        rc = entry_count(st, row, n, err);
    }

    if (rc == OK) {
        rc = entry_add(st, row, turn, VLM_STORE_USER, 0, err);
    }

    if (rc == OK) {
        rc = entry_add(st, row, turn, VLM_STORE_ASSISTANT,
                       *n + 2 > VLM_STORE_ENTRIES
                       ? VLM_STORE_ENTRIES : *n + 2, err);
    }

    if (rc == OK) {
        trim = VLM_DB_ENTRY_TRIM;

        vlm_db_int(st->db, trim, 1, row->n);
        vlm_db_int(st->db, trim, 2, VLM_STORE_ENTRIES);

        rc = vlm_db_run(st->db, trim, err);
    }

    if (rc == OK) {
        rc = entry_count(st, row, n, err);
    }

    return rc;
}


/* two workers may run the same request during a reload */

static int
turn_once(store_t *st, const session_t *row,
    const vlm_store_turn_t *turn, err_t *err)
{
    int                     rc;
    vlm_db_stmt_t           keyed;

    if (turn->key.data == NULL) {
        return OK;
    }

    keyed = VLM_DB_ENTRY_KEYED;

    vlm_db_int(st->db, keyed, 1, row->n);
    vlm_db_text(st->db, keyed, 2, turn->key);
    vlm_db_int(st->db, keyed, 3, vlm_store_now() - VLM_STORE_REPEAT);

    rc = vlm_db_row(st->db, keyed, err);

    if (rc == OK) {
        vlm_db_end(st->db, keyed);

        return vlm_db_fail(err, GONE, "Session has this turn");
    }

    return rc == NOTFOUND ? OK : rc;
}


static int
entry_add(store_t *st, const session_t *row,
    const vlm_store_turn_t *turn, vlm_store_role_t role,
    int64_t number, err_t *err)
{
    int64_t                 time;
    vlm_db_stmt_t           add;

    time = vlm_store_now();
    add = VLM_DB_ENTRY_ADD;

    vlm_db_int(st->db, add, 1, row->n);
    vlm_db_int(st->db, add, 2, (int64_t) role);
    vlm_db_text(st->db, add, 4, turn->image);
    vlm_db_text(st->db, add, 5, turn->task);

    if (role == VLM_STORE_USER) {
        vlm_db_text(st->db, add, 3, turn->message);

        if (turn->asked > 0 && turn->asked < time) {
            time = turn->asked;
        }

    } else {
        vlm_db_text(st->db, add, 3, turn->answer);
        vlm_db_text(st->db, add, 6, turn->thinking);
        vlm_db_text(st->db, add, 7, turn->output);

        if (turn->key.data != NULL) {
            vlm_db_text(st->db, add, 9, turn->key);
            vlm_db_int(st->db, add, 10, turn->body);
            vlm_db_int(st->db, add, 11, number);
        }
    }

    vlm_db_int(st->db, add, 8, time);

    return vlm_db_run(st->db, add, err);
}


static int
entry_count(store_t *st, const session_t *row, int64_t *n, err_t *err)
{
    int                     rc;
    vlm_db_stmt_t           count;

    *n = 0;
    count = VLM_DB_ENTRY_COUNT;

    vlm_db_int(st->db, count, 1, row->n);

    rc = vlm_db_row(st->db, count, err);

    if (rc == OK) {
        *n = vlm_db_col_int(st->db, count, 0);
        vlm_db_end(st->db, count);
    }

    return rc;
}


/* ---- loading ------------------------------------------------------------- */


static int
session_load(store_t *st, text_t id, size_t max, vlm_store_loaded_t *loaded,
    err_t *err)
{
    int        rc;
    session_t  row;

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    rc = session_get(st, id, &row, err);

    if (rc == OK) {
        rc = entries_load(st, &row, max, loaded, err);
    }

    return vlm_db_leave(st->db, rc, err);
}


static int
entries_load(store_t *st, const session_t *row, size_t max,
    vlm_store_loaded_t *loaded, err_t *err)
{
    int                     rc;
    int64_t                 total;
    vlm_db_stmt_t           list;

    rc = entry_count(st, row, &total, err);
    if (rc != OK) {
        return rc;
    }

    loaded->epoch = row->epoch;
    loaded->total = (size_t) total;

    if (row->image[0] != '\0') {
        loaded->image = vlm_store_upload_path(st, row->image);
        if (loaded->image == NULL) {
            goto no_memory;
        }
    }

    loaded->entries = calloc(max + 1, sizeof(vlm_store_entry_t));
    if (loaded->entries == NULL) {
        goto no_memory;
    }

    list = VLM_DB_ENTRY_LIST;

    vlm_db_int(st->db, list, 1, row->n);
    vlm_db_int(st->db, list, 2, (int64_t) max);

    while ((rc = vlm_db_row(st->db, list, err)) == OK) {

        if (entry_load(st, &loaded->entries[loaded->n++]) != 0) {
            vlm_db_end(st->db, list);
            goto no_memory;
        }
    }

    return rc == NOTFOUND ? OK : rc;

no_memory:

    return vlm_db_fail(err, VLM_STORE_EIO,
                       "no memory for a session's turns");
}


static int
entry_load(store_t *st, vlm_store_entry_t *e)
{
    text_t                  name;
    vlm_db_stmt_t  list;

    list = VLM_DB_ENTRY_LIST;

    e->role = vlm_db_col_int(st->db, list, 0) == 0
              ? VLM_STORE_USER : VLM_STORE_ASSISTANT;

    e->us = vlm_db_col_int(st->db, list, 6);
    e->body = vlm_db_col_int(st->db, list, 8);
    e->number = (size_t) vlm_db_col_int(st->db, list, 9);

    vlm_store_iso_time(e->time, sizeof(e->time), e->us);

    if (column(st, 1, &e->content) != 0 || column(st, 3, &e->task) != 0
        || column(st, 4, &e->thinking) != 0 || column(st, 5, &e->output) != 0
        || column(st, 7, &e->key) != 0)
    {
        return -1;
    }

    name = vlm_db_col_text(st->db, list, 2);

    if (name.data != NULL) {
        e->image.data = vlm_store_upload_path(st, name.data);
        if (e->image.data == NULL) {
            return -1;
        }

        e->image.len = strlen(e->image.data);
    }

    return 0;
}


/* a column of the list */

static int
column(store_t *st, int i, text_t *t)
{
    return vlm_store_copy(t, vlm_db_col_text(st->db, VLM_DB_ENTRY_LIST, i));
}


/* ---- uploads ------------------------------------------------------------- */


static int
upload_known(store_t *st, const upload_t *up, char name[VLM_STORE_NAME + 1],
    err_t *err)
{
    int            rc;
    text_t         text;
    vlm_db_stmt_t  get;

    get = VLM_DB_UPLOAD_GET;

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    vlm_db_int(st->db, get, 1, up->hash);
    vlm_db_int(st->db, get, 2, (int64_t) up->bytes);
    vlm_db_text(st->db, get, 3, up->secure);

    rc = vlm_db_row(st->db, get, err);

    if (rc == OK) {
        text = vlm_db_col_text(st->db, get, 0);

        if (text.data != NULL && text.len <= VLM_STORE_NAME) {
            memcpy(name, text.data, text.len);
            name[text.len] = '\0';

        } else {
            rc = NOTFOUND;
        }

        vlm_db_end(st->db, get);
    }

    return vlm_db_leave(st->db, rc, err);
}


static int
upload_note(store_t *st, const upload_t *up, text_t name, err_t *err)
{
    int            rc;
    vlm_db_stmt_t  put;

    put = VLM_DB_UPLOAD_PUT;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    vlm_db_int(st->db, put, 1, up->hash);
    vlm_db_int(st->db, put, 2, (int64_t) up->bytes);
    vlm_db_text(st->db, put, 3, up->secure);
    vlm_db_text(st->db, put, 4, name);

    rc = vlm_db_run(st->db, put, err);

    return vlm_db_leave(st->db, rc, err);
}


static int
files_begin(store_t *st, err_t *err)
{
    return vlm_db_enter(st->db, VLM_DB_WRITE, err);
}


static int
files_end(store_t *st, int rc, err_t *err)
{
    return vlm_db_leave(st->db, rc, err);
}


static int
upload_shows(store_t *st, text_t name, int64_t used, err_t *err)
{
    int            rc;
    vlm_db_stmt_t  shows;

    shows = VLM_DB_SESSION_SHOWS;

    vlm_db_text(st->db, shows, 1, name);
    vlm_db_int(st->db, shows, 2, used);

    rc = vlm_db_row(st->db, shows, err);

    if (rc == OK) {
        vlm_db_end(st->db, shows);
    }

    return rc;
}


static int
upload_forget(store_t *st, text_t name, err_t *err)
{
    vlm_db_text(st->db, VLM_DB_UPLOAD_DROP, 1, name);

    return vlm_db_run(st->db, VLM_DB_UPLOAD_DROP, err);
}


/* ---- the table ----------------------------------------------------------- */


/* nothing but its folders shows that it can be written: the database is opened by the first call */

static int
usable(store_t *st, err_t *err)
{
    (void) st;
    (void) err;

    return OK;
}


static void
sqlite_close(store_t *st)
{
    vlm_db_free(st->db);
}


const vlm_store_calls_t  vlm_store_sqlite = {
    .close = sqlite_close,
    .usable = usable,
    .ensure = session_ensure,
    .drop = session_drop,
    .reset = session_reset,
    .load = session_load,
    .append = session_append,
    .image = session_image,
    .count = session_count,
    .known = upload_known,
    .note = upload_note,
    .begin = files_begin,
    .end = files_end,
    .shows = upload_shows,
    .forget = upload_forget,
    .expire = session_expire,
};
