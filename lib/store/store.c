
/*
 * The store as its callers see it: store.h.  Values of callers are checked here; the table
 * of functions behind it does the rest (calls.h).  Uploads and results are in files.c.
 */


#define _GNU_SOURCE

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/calls.h"
#include "store/disk.h"
#include "store/redis.h"
#include "base/utf8.h"


#define PATH            VLM_STORE_PATH
#define SALT            17                 /* bytes before the id in a session's name */

#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND
#define GONE            VLM_STORE_GONE


typedef vlm_store_t       store_t;
typedef vlm_store_text_t  text_t;
typedef vlm_store_err_t   err_t;


static int turn_check(vlm_store_turn_t *turn, err_t *err);
static int image_name(text_t *image, err_t *err);


/* ---- open and close ------------------------------------------------------ */


static store_t *
store_of(const char *dir)
{
    size_t    len;
    store_t  *st;

    len = strlen(dir);

    if (len + sizeof("/uploads/") + VLM_STORE_NAME > PATH) {
        return NULL;
    }

    st = calloc(1, sizeof(store_t));

    if (st != NULL) {
        memcpy(st->dir, dir, len + 1);
    }

    return st;
}


store_t *
vlm_store_open(const char *dir)
{
    store_t  *st;

    st = store_of(dir);
    if (st == NULL) {
        return NULL;
    }

    st->calls = &vlm_store_sqlite;

    st->db = vlm_db_new(st->dir);
    if (st->db == NULL) {
        free(st);
        return NULL;
    }

    return st;
}


store_t *
vlm_store_open_redis(const vlm_redis_conf_t *conf, const char *dir, int64_t age)
{
    store_t  *st;

    st = store_of(dir);
    if (st == NULL) {
        return NULL;
    }

#if (VLM_HIREDIS)
    st->calls = &vlm_store_redis;
    st->redis = vlm_redis_new(conf);
    st->age = age;
#else
    (void) conf;
    (void) age;
#endif

    if (st->redis == NULL) {
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

    st->calls->close(st);
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

    case VLM_STORE_WAITS:
        return "Another request of this session is being answered";

    case VLM_STORE_EDOWN:
        return "The store does not answer, try again";

    case VLM_STORE_EREFUSES:
        return "The store takes no writes at the moment, try again";
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


text_t
vlm_store_session_name(uint64_t salt, text_t id, char name[VLM_STORE_SESSION + 1])
{
    int     n;
    text_t  t;

    n = 0;

    if (vlm_store_id(id, NULL) != OK) {
        id.len = 0;

    } else {
        n = salt != 0 ? snprintf(name, SALT + 1, "%016" PRIx64 "/", salt) : 0;
        memcpy(name + n, id.data, id.len);
    }

    t.data = name;
    t.len = (size_t) n + id.len;
    name[t.len] = '\0';

    return t;
}


text_t
vlm_store_session_id(text_t name)
{
    if (name.len > SALT && name.data[SALT - 1] == '/') {
        name.data += SALT;
        name.len -= SALT;
    }

    return name;
}


int
vlm_store_session_create(store_t *st, uint64_t salt, char id[37], err_t *err)
{
    char  name[VLM_STORE_SESSION + 1];

    if (vlm_disk_uuid(id) != 0) {
        return vlm_db_fail(err, VLM_STORE_EIO,
                           "no random numbers for a session id");
    }

    return vlm_store_session_ensure(st, vlm_store_session_name(salt, vlm_store_string(id), name),
                                    err);
}


int
vlm_store_session_ensure(store_t *st, text_t id, err_t *err)
{
    int  rc;

    rc = vlm_store_id(vlm_store_session_id(id), err);

    return rc == OK ? st->calls->ensure(st, id, err) : rc;
}


int
vlm_store_session_delete(store_t *st, text_t id, err_t *err)
{
    return st->calls->drop(st, id, err);
}


int
vlm_store_session_reset(store_t *st, text_t id, err_t *err)
{
    return st->calls->reset(st, id, err);
}


int
vlm_store_session_count(store_t *st, uint64_t *n, err_t *err)
{
    *n = 0;

    return st->calls->count(st, n, err);
}


int
vlm_store_session_image(store_t *st, text_t id, int64_t epoch,
    text_t image, err_t *err)
{
    int  rc;

    rc = image_name(&image, err);

    return rc == OK ? st->calls->image(st, id, epoch, image, err) : rc;
}


int
vlm_store_session_append(store_t *st, text_t id, int64_t epoch,
    const vlm_store_turn_t *turn, size_t *turn_number,
    int *context_used, err_t *err)
{
    int                rc;
    int64_t            n;
    vlm_store_turn_t   t;

    t = *turn;

    rc = turn_check(&t, err);
    if (rc != OK) {
        return rc;
    }

    n = 0;

    rc = st->calls->append(st, id, epoch, &t, &n, err);

    *turn_number = (size_t) n;
    *context_used = n > 2;

    return rc;
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


int
vlm_store_session_load(store_t *st, text_t id, size_t max,
    vlm_store_loaded_t *loaded, err_t *err)
{
    int  rc;

    memset(loaded, 0, sizeof(*loaded));

    if (max > VLM_STORE_ENTRIES) {
        max = VLM_STORE_ENTRIES;
    }

    rc = st->calls->load(st, id, max, loaded, err);

    if (rc != OK) {
        vlm_store_loaded_free(loaded);
    }

    return rc;
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


/* ---- the queue of a session ---------------------------------------------- */


int
vlm_store_lease_new(store_t *st, vlm_store_lease_t *lease, err_t *err)
{
    char  id[37];

    memset(lease, 0, sizeof(vlm_store_lease_t));

    if (st->calls->lease == NULL) {
        return OK;
    }

    if (vlm_disk_uuid(id) != 0) {
        return vlm_db_fail(err, VLM_STORE_EIO, "no random numbers for a lease");
    }

    memcpy(lease->token, id, sizeof(lease->token) - 1);

    return OK;
}


int
vlm_store_lease(store_t *st, text_t id, vlm_store_lease_t *lease, err_t *err)
{
    return st->calls->lease == NULL ? OK : st->calls->lease(st, id, lease, err);
}


int
vlm_store_lease_keep(store_t *st, const vlm_store_place_t *places, size_t n, err_t *err)
{
    return st->calls->keep == NULL ? OK : st->calls->keep(st, places, n, err);
}


int
vlm_store_lease_leave(store_t *st, text_t id, const char *token, err_t *err)
{
    return st->calls->leave == NULL ? OK : st->calls->leave(st, id, token, err);
}


/* ---- for the files of the store ------------------------------------------ */


int
vlm_store_copy(text_t *dst, text_t src)
{
    char  *p;

    if (src.data == NULL) {
        return 0;
    }

    p = malloc(src.len + 1);
    if (p == NULL) {
        return -1;
    }

    memcpy(p, src.data, src.len);
    p[src.len] = '\0';

    dst->data = p;
    dst->len = src.len;

    return 0;
}


char *
vlm_store_upload_path(store_t *st, const char *name)
{
    char  *path;

    return asprintf(&path, "%s/uploads/%s", st->dir, name) < 0 ? NULL : path;
}


void
vlm_store_iso_time(char *buf, size_t size, int64_t us)
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
