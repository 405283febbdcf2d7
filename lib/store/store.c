
/*
 * Sessions and their turns.  See the header; uploads and results are in files.c, SQLite is in db.c.
 *
 * A session has an epoch, a random number that a reset replaces.  A request that makes an answer
 * has the epoch of its question, and the answer is kept only if the session still has it: so a
 * reset or a delete in between wins, even if a session of the same id was made again.
 */


#define _GNU_SOURCE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/db.h"
#include "store/disk.h"
#include "base/json.h"
#include "base/utf8.h"


#define PATH            VLM_STORE_PATH

#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND
#define GONE            VLM_STORE_GONE


typedef vlm_store_t       store_t;
typedef vlm_store_text_t  text_t;
typedef vlm_store_err_t   err_t;


/* a row of session */

typedef struct {
    int64_t                       n;
    int64_t                       epoch;
    char                          image[VLM_STORE_NAME + 1];
} session_t;


static int session_get(store_t *st, text_t id, session_t *row, err_t *err);
static int session_get_epoch(store_t *st, text_t id, int64_t epoch,
    session_t *row, err_t *err);
static int session_add(store_t *st, text_t id, err_t *err);
static int session_touch(store_t *st, const session_t *row, text_t image,
    err_t *err);

static int turn_check(vlm_store_turn_t *turn, err_t *err);
static int image_name(text_t *image, err_t *err);
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
static int copy(store_t *st, int i, text_t *t);
static char *upload_path(store_t *st, const char *name);
static void iso_time(char *buf, size_t size, int64_t us);


/* ---- open and close ------------------------------------------------------ */


store_t *
vlm_store_open(const char *dir)
{
    size_t    len;
    store_t  *st;

    len = strlen(dir);

    if (len + sizeof("/uploads/") + VLM_STORE_NAME > PATH) {
        return NULL;
    }

    st = calloc(1, sizeof(store_t));
    if (st == NULL) {
        return NULL;
    }

    memcpy(st->dir, dir, len + 1);

    st->db = vlm_db_new(st->dir);
    if (st->db == NULL) {
        free(st);
        return NULL;
    }

    return st;
}


void
vlm_store_close(store_t *st)
{
    if (st == NULL) {
        return;
    }

    vlm_db_free(st->db);
    free(st);
}


text_t
vlm_store_string(const char *text)
{
    text_t  t;

    t.data = text;
    t.len = text ? strlen(text) : 0;

    return t;
}


const char *
vlm_store_text(int code)
{
    switch (code) {

    case OK:
        return "";

    case NOTFOUND:
        return "Session not found";

    case GONE:
        return "Session was reset or deleted meanwhile";

    case VLM_STORE_EINPUT:
        return "Not possible as a session or a turn";

    case VLM_STORE_ELIMIT:
        return "More than a session may have";

    case VLM_STORE_EFULL:
        return "The store is full";

    case VLM_STORE_EREADONLY:
        return "The store cannot be written";

    case VLM_STORE_ECORRUPT:
        return "The database of the store is damaged";

    case VLM_STORE_EBUSY:
        return "The store is busy, try again";
    }

    return "The store failed, the error log says why";
}


/* ---- sessions ------------------------------------------------------------ */


int
vlm_store_id(text_t id, err_t *err)
{
    int     code;
    size_t  i;

    code = VLM_STORE_EINPUT;

    if (id.data == NULL || id.len == 0 || id.len > VLM_STORE_ID) {
        return vlm_db_fail(err, code, "Session id of %zu bytes, 1 to"
                           " %d are possible", id.len,
                           VLM_STORE_ID);
    }

    for (i = 0; i < id.len; i++) {
        if ((unsigned char) id.data[i] < 0x20 || id.data[i] == 0x7f) {
            return vlm_db_fail(err, code, "Session id has a control"
                               " character at byte %zu", i);
        }
    }

    if (vlm_utf8_whole(id.data, id.len) != id.len) {
        return vlm_db_fail(err, code, "Session id is not UTF-8");
    }

    /* it must be one segment of a path: /api/history/ID */

    if (memchr(id.data, '/', id.len) != NULL || id.data[0] == '.') {
        return vlm_db_fail(err, code, "Session id has a \"/\" or"
                           " begins with a dot");
    }

    return OK;
}


int
vlm_store_session_create(store_t *st, char id[37], err_t *err)
{
    text_t  t;

    if (vlm_disk_uuid(id) != 0) {
        return vlm_db_fail(err, VLM_STORE_EIO,
                           "no random numbers for a session id");
    }

    t.data = id;
    t.len = 36;

    return vlm_store_session_ensure(st, t, err);
}


/* Usually the session exists: a read waits for no writer. */

int
vlm_store_session_ensure(store_t *st, text_t id, err_t *err)
{
    int        rc;
    session_t  row;

    rc = vlm_store_id(id, err);
    if (rc != OK) {
        return rc;
    }

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


int
vlm_store_session_delete(store_t *st, text_t id, err_t *err)
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


int
vlm_store_session_reset(store_t *st, text_t id, err_t *err)
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


int
vlm_store_session_count(store_t *st, uint64_t *n, err_t *err)
{
    int                     rc;
    vlm_db_stmt_t           count;

    *n = 0;
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


int
vlm_store_session_image(store_t *st, text_t id, int64_t epoch,
    text_t image, err_t *err)
{
    int        rc;
    session_t  row;

    rc = image_name(&image, err);
    if (rc != OK) {
        return rc;
    }

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


/* ---- turns --------------------------------------------------------------- */


int
vlm_store_session_append(store_t *st, text_t id, int64_t epoch,
    const vlm_store_turn_t *turn, size_t *turn_number,
    int *context_used, err_t *err)
{
    int                        rc;
    int64_t                    n;
    session_t                  row;
    vlm_store_turn_t           t;

    t = *turn;

    rc = turn_check(&t, err);
    if (rc != OK) {
        return rc;
    }

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    n = 0;

    rc = session_get_epoch(st, id, epoch, &row, err);

    if (rc == OK) {
        rc = turn_add(st, &row, &t, &n, err);
    }

    if (rc == OK) {
        rc = session_touch(st, &row, t.image, err);
    }

    *turn_number = (size_t) n;
    *context_used = n > 2;

    return vlm_db_leave(st->db, rc, err);
}


static int
turn_check(vlm_store_turn_t *turn, err_t *err)
{
    if (turn->message.data == NULL || turn->answer.data == NULL
        || turn->message.len > VLM_STORE_TEXT
        || turn->answer.len > VLM_STORE_TEXT
        || turn->thinking.len > VLM_STORE_TEXT
        || turn->task.len > VLM_STORE_NAME
        || turn->output.len > VLM_STORE_NAME)
    {
        return vlm_db_fail(err, VLM_STORE_EINPUT,
                           "Turn of %zu and %zu bytes, %u each can"
                           " be kept", turn->message.len,
                           turn->answer.len,
                           VLM_STORE_TEXT);
    }

    return image_name(&turn->image, err);
}


/* keeps only the file's name, because the store's directory may move */

static int
image_name(text_t *image, err_t *err)
{
    const char  *slash;

    if (image->data == NULL) {
        return OK;
    }

    slash = memrchr(image->data, '/', image->len);

    if (slash != NULL) {
        image->len -= (size_t) (slash + 1 - image->data);
        image->data = slash + 1;
    }

    if (!vlm_disk_plain(image->data, image->len)) {
        return vlm_db_fail(err, VLM_STORE_EINPUT,
                           "Not the name of an upload");
    }

    return OK;
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


int
vlm_store_session_load(store_t *st, text_t id, size_t max,
    vlm_store_loaded_t *loaded, err_t *err)
{
    int        rc;
    session_t  row;

    memset(loaded, 0, sizeof(*loaded));

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    rc = session_get(st, id, &row, err);

    if (rc == OK) {
        rc = entries_load(st, &row, max, loaded, err);
    }

    rc = vlm_db_leave(st->db, rc, err);

    if (rc != OK) {
        vlm_store_loaded_free(loaded);
    }

    return rc;
}


static int
entries_load(store_t *st, const session_t *row, size_t max,
    vlm_store_loaded_t *loaded, err_t *err)
{
    int                     rc;
    int64_t                 total;
    vlm_db_stmt_t           list;

    if (max > VLM_STORE_ENTRIES) {
        max = VLM_STORE_ENTRIES;
    }

    rc = entry_count(st, row, &total, err);
    if (rc != OK) {
        return rc;
    }

    loaded->epoch = row->epoch;
    loaded->total = (size_t) total;

    if (row->image[0] != '\0') {
        loaded->image = upload_path(st, row->image);
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

    iso_time(e->time, sizeof(e->time), e->us);

    if (copy(st, 1, &e->content) != 0 || copy(st, 3, &e->task) != 0
        || copy(st, 4, &e->thinking) != 0 || copy(st, 5, &e->output) != 0
        || copy(st, 7, &e->key) != 0)
    {
        return -1;
    }

    name = vlm_db_col_text(st->db, list, 2);

    if (name.data != NULL) {
        e->image.data = upload_path(st, name.data);
        if (e->image.data == NULL) {
            return -1;
        }

        e->image.len = strlen(e->image.data);
    }

    return 0;
}


/* a column of the list, with a zero behind it; NULL stays NULL */

static int
copy(store_t *st, int i, text_t *t)
{
    char    *p;
    text_t   src;

    src = vlm_db_col_text(st->db, VLM_DB_ENTRY_LIST, i);

    if (src.data == NULL) {
        return 0;
    }

    p = malloc(src.len + 1);
    if (p == NULL) {
        return -1;
    }

    memcpy(p, src.data, src.len);
    p[src.len] = '\0';

    t->data = p;
    t->len = src.len;

    return 0;
}


static char *
upload_path(store_t *st, const char *name)
{
    char  *path;

    return asprintf(&path, "%s/uploads/%s", st->dir, name) < 0 ? NULL : path;
}


void
vlm_store_loaded_free(vlm_store_loaded_t *loaded)
{
    size_t                       i;
    vlm_store_entry_t           *e;

    for (i = 0; i < loaded->n; i++) {
        e = &loaded->entries[i];

        free((void *) e->content.data);
        free((void *) e->image.data);
        free((void *) e->task.data);
        free((void *) e->thinking.data);
        free((void *) e->output.data);
        free((void *) e->key.data);
    }

    free(loaded->entries);
    free(loaded->image);
    memset(loaded, 0, sizeof(*loaded));
}


/* as Python's datetime.isoformat() of a local time: no zone */

static void
iso_time(char *buf, size_t size, int64_t us)
{
    size_t     n;
    time_t     sec;
    struct tm  tm;

    sec = (time_t) (us / 1000000);

    if (us < 0 || localtime_r(&sec, &tm) == NULL) {
        (void) snprintf(buf, size, "1970-01-01T00:00:00.000000");
        return;
    }

    n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);

    (void) snprintf(buf + n, size - n, ".%06d", (int) (us % 1000000));
}


int64_t
vlm_store_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_REALTIME, &ts);

    return (int64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}
