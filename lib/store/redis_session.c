
/*
 * Sessions and their turns in a Redis: the table of functions behind store.h.  redis.c has the
 * connection, redis_entry.c the bytes of an entry, redis_line.c the queue of a session.
 *
 * ID is a session's name, as store.h has it.
 *
 *     vlm:s:ID      a hash: epoch, image, and fence, the number of the last turn's lease
 *     vlm:t:ID      a list: the entries, oldest first
 *     vlm:k:ID      a list: for each pair of them the time and its Idempotency-Key or nothing
 *     vlm:sessions  a sorted set: ids by the time of their last use, in us
 *     vlm:i:NAME    when a session with this current picture was last used, in us
 *     vlm:u:KEY     the name of the last upload with this content
 *
 * Each call is one script, so that it happens whole or not at all, and in one round trip.  An epoch
 * works as in session.c.  Redis itself expires what belongs to a session, at each use anew.
 *
 * A turn is stored if its request is the first of the session's queue; or if that queue is empty
 * and no turn of a later request was stored: so a turn survives a Redis that lost the queue.
 */


#define _GNU_SOURCE

#include "store/redis_call.h"


#if (VLM_HIREDIS)

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "store/disk.h"


#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND
#define GONE            VLM_STORE_GONE

#define REUSE           (VLM_STORE_GRACE / 2)  /* s, that an upload is found again: long before any
                                                  server may evict its file */
#define UPLOAD          (64 + VLM_DISK_SECURE)


typedef vlm_store_t         store_t;
typedef vlm_store_text_t    text_t;
typedef vlm_store_err_t     err_t;
typedef vlm_store_entry_t   entry_t;
typedef vlm_store_upload_t  upload_t;
typedef vlm_redis_args_t    args_t;
typedef vlm_redis_reply_t   reply_t;


/* ---- calls ---------------------------------------------------------------- */


/* adds the keys of TOUCH, that of the queue if there is a lease, and its arguments */

static void
begin(args_t *a, store_t *st, text_t id, int leased)
{
    memset(a, 0, sizeof(args_t));

    vlm_redis_add_key(a, 's', id);
    vlm_redis_add_key(a, 't', id);
    vlm_redis_add_key(a, 'k', id);

    vlm_redis_add(a, vlm_store_string("vlm:sessions"));

    if (leased) {
        vlm_redis_add_key(a, 'q', id);
    }

    a->n_keys = a->n;

    vlm_redis_add(a, id);
    vlm_redis_add_number(a, vlm_store_now());
    vlm_redis_add_number(a, st->age);
}


static int
fail_missing(err_t *err)
{
    return vlm_db_fail(err, NOTFOUND, "Session not found");
}


static int
fail_gone(err_t *err)
{
    return vlm_db_fail(err, GONE, "Session was reset or deleted meanwhile");
}


/* runs a script that says "ok" or nothing, which is the second code */

static int
run_ok(store_t *st, const char *script, const args_t *a, int otherwise, err_t *err)
{
    int      rc;
    reply_t  reply;

    rc = vlm_redis_run(st, script, a, &reply, err);

    if (rc == OK && reply.n == 0) {
        rc = otherwise == GONE ? fail_gone(err) : fail_missing(err);
    }

    vlm_redis_reply_free(&reply);

    return rc;
}


/* ---- sessions ------------------------------------------------------------ */


static int
session_ensure(store_t *st, text_t id, err_t *err)
{
    args_t  a;

    begin(&a, st, id, 0);
    vlm_redis_add_number(&a, vlm_db_random());

    return run_ok(st, vlm_lua_ensure, &a, NOTFOUND, err);
}


static int
session_drop(store_t *st, text_t id, err_t *err)
{
    args_t  a;

    if (id.len > VLM_STORE_SESSION) {
        return fail_missing(err);
    }

    begin(&a, st, id, 0);

    return run_ok(st, vlm_lua_drop, &a, NOTFOUND, err);
}


static int
session_reset(store_t *st, text_t id, err_t *err)
{
    args_t  a;

    if (id.len > VLM_STORE_SESSION) {
        return fail_missing(err);
    }

    begin(&a, st, id, 0);
    vlm_redis_add_number(&a, vlm_db_random());

    return run_ok(st, vlm_lua_reset, &a, NOTFOUND, err);
}


static int
session_image(store_t *st, text_t id, int64_t epoch, text_t name, err_t *err)
{
    args_t  a;

    begin(&a, st, id, 0);
    vlm_redis_add_number(&a, epoch);
    vlm_redis_add(&a, name);

    return run_ok(st, vlm_lua_image, &a, GONE, err);
}


/* Those that have expired leave the set of all, too: their number, and that of those left. */

static int
sessions_expire(store_t *st, int64_t before, int64_t n[2], err_t *err)
{
    int      rc;
    char     text[24];
    text_t   args[2];
    reply_t  reply;

    (void) snprintf(text, sizeof(text), "%" PRId64, before);

    args[0] = vlm_store_string("vlm:sessions");
    args[1] = vlm_store_string(text);

    rc = vlm_redis_eval(st->redis, vlm_lua_expire, args, 2, 1, &reply, err);

    if (rc == OK
        && (reply.n != 2 || vlm_redis_number(reply.item[0], &n[0]) != 0
            || vlm_redis_number(reply.item[1], &n[1]) != 0))
    {
        rc = vlm_redis_damaged(st, err);
    }

    vlm_redis_reply_free(&reply);

    return rc;
}


static int
session_expire(store_t *st, int64_t before, uint64_t *n, err_t *err)
{
    int      rc;
    int64_t  count[2];

    rc = sessions_expire(st, before, count, err);

    if (rc == OK) {
        *n = (uint64_t) count[0];
    }

    return rc;
}


static int
session_count(store_t *st, uint64_t *n, err_t *err)
{
    int      rc;
    int64_t  count[2];

    rc = sessions_expire(st, st->age > 0 ? vlm_store_now() - st->age * 1000000 : 0, count, err);

    if (rc == OK) {
        *n = (uint64_t) count[1];
    }

    return rc;
}


/* ---- turns --------------------------------------------------------------- */


/* what is stored must be readable again */

static int
texts_check(const vlm_store_turn_t *t, err_t *err)
{
    size_t        i;
    const text_t  text[] = { t->message, t->answer, t->thinking, t->task };

    for (i = 0; i < sizeof(text) / sizeof(text[0]); i++) {

        if (text[i].data != NULL && vlm_utf8_whole(text[i].data, text[i].len) != text[i].len) {
            return vlm_db_fail(err, VLM_STORE_EINPUT, "A text of the turn is not UTF-8");
        }
    }

    if ((t->output.data != NULL && !vlm_disk_plain(t->output.data, t->output.len))
        || t->key.len > VLM_STORE_KEY)
    {
        return vlm_db_fail(err, VLM_STORE_EINPUT, "Not the name of a result, or a key of %zu bytes",
                           t->key.len);
    }

    return OK;
}


static int
entries_write(const vlm_store_turn_t *t, int64_t now, text_t bytes[2], err_t *err)
{
    entry_t  e;

    memset(&e, 0, sizeof(entry_t));

    e.role = VLM_STORE_USER;
    e.content = t->message;
    e.image = t->image;
    e.task = t->task;
    e.us = t->asked > 0 && t->asked < now ? t->asked : now;

    bytes[0] = vlm_redis_entry_write(&e);

    e.role = VLM_STORE_ASSISTANT;
    e.content = t->answer;
    e.thinking = t->thinking;
    e.output = t->output;
    e.us = now;

    if (t->key.data != NULL) {
        e.key = t->key;
        e.body = t->body;
    }

    bytes[1] = vlm_redis_entry_write(&e);

    if (bytes[0].data == NULL || bytes[1].data == NULL) {
        free((void *) bytes[0].data);
        free((void *) bytes[1].data);

        return vlm_db_fail(err, VLM_STORE_EIO, "no memory for a session's turn");
    }

    return OK;
}


/* the number of entries, by what the script says */

static int
append_answer(store_t *st, const reply_t *reply, int64_t *n, err_t *err)
{
    const char  *state;

    state = reply->n > 0 && reply->item[0].data != NULL ? reply->item[0].data : "";

    if (strcmp(state, "gone") == 0) {
        return fail_gone(err);
    }

    if (strcmp(state, "twice") == 0) {
        return vlm_db_fail(err, GONE, "Session has this turn");
    }

    if (strcmp(state, "lost") == 0) {
        return vlm_db_fail(err, VLM_STORE_EBUSY, "store %.100s: the lease of the session was lost"
                           " meanwhile, and another request went before this one",
                           vlm_redis_name(st->redis));
    }

    return strcmp(state, "ok") == 0 && reply->n == 2 && vlm_redis_number(reply->item[1], n) == 0
           ? OK : vlm_redis_damaged(st, err);
}


static int
session_append(store_t *st, text_t id, int64_t epoch, const vlm_store_turn_t *turn, int64_t *n,
    err_t *err)
{
    int      rc;
    args_t   a;
    text_t   bytes[2];
    int64_t  now;
    reply_t  reply;

    now = vlm_store_now();

    rc = texts_check(turn, err);

    if (rc == OK) {
        rc = entries_write(turn, now, bytes, err);
    }

    if (rc != OK) {
        return rc;
    }

    begin(&a, st, id, 1);

    vlm_redis_add_number(&a, epoch);
    vlm_redis_add(&a, turn->image);
    vlm_redis_add(&a, bytes[0]);
    vlm_redis_add(&a, bytes[1]);
    vlm_redis_add(&a, turn->key);
    vlm_redis_add_number(&a, now - VLM_STORE_REPEAT);
    vlm_redis_add(&a, vlm_store_string(turn->lease != NULL ? turn->lease->token : ""));
    vlm_redis_add_number(&a, turn->lease != NULL ? turn->lease->number : 0);
    vlm_redis_add_number(&a, VLM_STORE_ENTRIES);

    rc = vlm_redis_run(st, vlm_lua_append, &a, &reply, err);

    if (rc == OK) {
        rc = append_answer(st, &reply, n, err);
    }

    vlm_redis_reply_free(&reply);
    free((void *) bytes[0].data);
    free((void *) bytes[1].data);

    return rc;
}


/* ---- loading ------------------------------------------------------------- */


static int
entry_load(store_t *st, text_t bytes, entry_t *e)
{
    char  *path;

    if (vlm_redis_entry_read(bytes, e) != 0) {
        return -1;
    }

    vlm_store_iso_time(e->time, sizeof(e->time), e->us);

    if (e->image.data == NULL) {
        return 0;
    }

    path = vlm_store_upload_path(st, e->image.data);

    if (path == NULL) {
        return -1;
    }

    free((void *) e->image.data);
    e->image = vlm_store_string(path);

    return 0;
}


static int
loaded_of(store_t *st, const reply_t *reply, size_t max, vlm_store_loaded_t *loaded)
{
    size_t   i;
    text_t   name;
    int64_t  total;

    if (reply->n < 3 || reply->n > 3 + max || vlm_redis_number(reply->item[0], &loaded->epoch) != 0
        || vlm_redis_number(reply->item[2], &total) != 0 || total < 0)
    {
        return -1;
    }

    loaded->total = (size_t) total;
    name = reply->item[1];

    if (name.data != NULL) {

        if (!vlm_disk_plain(name.data, name.len)) {
            return -1;
        }

        loaded->image = vlm_store_upload_path(st, name.data);

        if (loaded->image == NULL) {
            return -1;
        }
    }

    loaded->entries = calloc(max + 1, sizeof(entry_t));

    if (loaded->entries == NULL) {
        return -1;
    }

    for (i = 3; i < reply->n; i++) {

        if (entry_load(st, reply->item[i], &loaded->entries[loaded->n++]) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
session_load(store_t *st, text_t id, size_t max, vlm_store_loaded_t *loaded, err_t *err)
{
    int      rc;
    args_t   a;
    reply_t  reply;

    if (id.len > VLM_STORE_SESSION) {
        return fail_missing(err);
    }

    memset(&a, 0, sizeof(args_t));

    vlm_redis_add_key(&a, 's', id);
    vlm_redis_add_key(&a, 't', id);
    vlm_redis_add(&a, id);
    vlm_redis_add_number(&a, (int64_t) max);

    rc = vlm_redis_run(st, vlm_lua_load, &a, &reply, err);

    if (rc == OK) {
        rc = reply.n == 0 ? fail_missing(err)
             : loaded_of(st, &reply, max, loaded) == 0 ? OK : vlm_redis_damaged(st, err);
    }

    vlm_redis_reply_free(&reply);

    return rc;
}


/* ---- uploads ------------------------------------------------------------- */


/*
 * A file is found again for REUSE seconds from its last upload.  No server evicts such a file
 * (VLM_STORE_GRACE), so an upload that finds one needs no lock against evictions.
 */

static void
upload_key(const upload_t *up, char key[UPLOAD])
{
    (void) snprintf(key, UPLOAD, "vlm:u:%016" PRIx64 ":%zu:%.*s", (uint64_t) up->hash, up->bytes,
                    (int) up->secure.len, up->secure.data);
}


static int
upload_known(store_t *st, const upload_t *up, char name[VLM_STORE_NAME + 1], err_t *err)
{
    int      rc;
    char     key[UPLOAD], age[24];
    text_t   args[2], text;
    reply_t  reply;

    upload_key(up, key);
    (void) snprintf(age, sizeof(age), "%d", REUSE);

    args[0] = vlm_store_string(key);
    args[1] = vlm_store_string(age);

    rc = vlm_redis_eval(st->redis, vlm_lua_known, args, 2, 1, &reply, err);

    if (rc == OK) {
        text = reply.n > 0 ? reply.item[0] : vlm_store_string(NULL);

        if (text.data == NULL) {
            rc = NOTFOUND;

        } else if (!vlm_disk_plain(text.data, text.len)) {
            rc = vlm_redis_damaged(st, err);

        } else {
            memcpy(name, text.data, text.len + 1);
        }
    }

    vlm_redis_reply_free(&reply);

    return rc;
}


static int
upload_note(store_t *st, const upload_t *up, text_t name, err_t *err)
{
    int      rc;
    char     key[UPLOAD], age[24];
    text_t   args[3];
    reply_t  reply;

    upload_key(up, key);
    (void) snprintf(age, sizeof(age), "%d", REUSE);

    args[0] = vlm_store_string(key);
    args[1] = vlm_store_string(age);
    args[2] = name;

    rc = vlm_redis_eval(st->redis, vlm_lua_note, args, 3, 1, &reply, err);

    vlm_redis_reply_free(&reply);

    return rc;
}


static int
upload_shows(store_t *st, text_t name, int64_t used, err_t *err)
{
    int      rc;
    char     key[sizeof("vlm:i:") + VLM_STORE_NAME];
    text_t   arg;
    int64_t  when;
    reply_t  reply;

    (void) snprintf(key, sizeof(key), "vlm:i:%.*s", (int) name.len, name.data);
    arg = vlm_store_string(key);

    rc = vlm_redis_eval(st->redis, vlm_lua_shows, &arg, 1, 1, &reply, err);

    if (rc == OK
        && (reply.n == 0 || vlm_redis_number(reply.item[0], &when) != 0 || when <= used))
    {
        rc = NOTFOUND;
    }

    vlm_redis_reply_free(&reply);

    return rc;
}


/* the upload's key has expired */

static int
upload_forget(store_t *st, text_t name, err_t *err)
{
    (void) st;
    (void) name;
    (void) err;

    return OK;
}


static int
files_begin(store_t *st, err_t *err)
{
    (void) st;
    (void) err;

    return OK;
}


static int
files_end(store_t *st, int rc, err_t *err)
{
    (void) st;
    (void) err;

    return rc;
}


/* ---- the table ----------------------------------------------------------- */


static int
usable(store_t *st, err_t *err)
{
    int      rc;
    text_t   arg;
    reply_t  reply;

    arg = vlm_store_string("vlm:usable");

    rc = vlm_redis_eval(st->redis, vlm_lua_usable, &arg, 1, 1, &reply, err);

    vlm_redis_reply_free(&reply);

    return rc;
}


static void
redis_close(store_t *st)
{
    vlm_redis_free(st->redis);
}


const vlm_store_calls_t  vlm_store_redis = {
    .close = redis_close,
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
    .lease = vlm_redis_lease,
    .keep = vlm_redis_keep,
    .leave = vlm_redis_leave,
    .expire = session_expire,
};


#endif /* VLM_HIREDIS */
