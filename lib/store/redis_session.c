
/*
 * Sessions and their turns in a Redis: the table of functions behind store.h.  redis.c has the
 * connection, redis_entry.c the bytes of an entry.
 *
 *     vlm:s:ID      a hash: epoch, image, and fence, the number of the last turn's lease
 *     vlm:t:ID      a list: the entries, oldest first
 *     vlm:k:ID      a list: for each pair of them the time and the Idempotency-Key, which may be empty
 *     vlm:q:ID      a sorted set: the line of the session's requests, tokens by number
 *     vlm:x:ID      a hash: until when each token keeps its place, in ms of Redis' clock
 *     vlm:sessions  a sorted set: ids by the time of their last use, in us
 *     vlm:i:NAME    when a session with this current picture was last used, in us
 *     vlm:u:KEY     the name of the last upload with this content
 *     vlm:ticket    the number that the line gave last
 *
 * Each call is one script, so that it happens whole or not at all, and in one round trip.  An epoch
 * works as in session.c.  Redis itself expires what belongs to a session (EXPIRE), at each use anew.
 *
 * The line of a session orders its requests among servers: the first in it holds the lease, and its
 * number is the fence.  A place that its server does not keep up goes when another request looks.  A
 * turn is stored if its request is the first in line; or if the line is empty and no turn of a later
 * request was stored, which is how a turn survives a Redis that has forgotten the line.
 */


#define _GNU_SOURCE

#include "store/calls.h"
#include "store/redis.h"


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
#define KEPT            64                 /* places in one script */
#define KEY             (sizeof("vlm:s:") + VLM_STORE_ID)
#define UPLOAD          (64 + VLM_DISK_SECURE)
#define ARGS            20


typedef vlm_store_t         store_t;
typedef vlm_store_text_t    text_t;
typedef vlm_store_err_t     err_t;
typedef vlm_store_entry_t   entry_t;
typedef vlm_store_upload_t  upload_t;
typedef vlm_store_lease_t   lease_t;
typedef vlm_redis_reply_t   reply_t;


/* the arguments of a script, keys first */

typedef struct {
    text_t                        text[ARGS];
    size_t                        n;
    size_t                        n_keys;
    char                          key[6][KEY];
    char                          number[8][24];
    size_t                        n_numbers;
} args_t;


/* ---- scripts ------------------------------------------------------------- */


/* KEYS: 1 session, 2 turns, 3 keys of turns, 4 sessions; ARGV: 1 id, 2 time, 3 age */

#define TOUCH                                                                                       \
    "local function touch(image)"                                                                   \
    "  redis.call('ZADD', KEYS[4], ARGV[2], ARGV[1])"                                               \
    "  if image ~= '' then redis.call('HSET', KEYS[1], 'image', image)"                             \
    "  else image = redis.call('HGET', KEYS[1], 'image') end "                                      \
    "  local age = tonumber(ARGV[3])"                                                               \
    "  if image then"                                                                               \
    "    redis.call('SET', 'vlm:i:' .. image, ARGV[2], 'EX', math.max(age, 3600)) end "             \
    "  for i = 1, 3 do"                                                                             \
    "    if age > 0 then redis.call('EXPIRE', KEYS[i], age)"                                        \
    "    else redis.call('PERSIST', KEYS[i]) end end "                                              \
    "end "

static const char  ensure[] =
    TOUCH
    "if redis.call('EXISTS', KEYS[1]) == 0 then"
    "  redis.call('DEL', KEYS[2], KEYS[3])"
    "  redis.call('HSET', KEYS[1], 'epoch', ARGV[4])"
    "  touch('') end "
    "return {'ok'}";

static const char  drop[] =
    "if redis.call('DEL', KEYS[1]) == 0 then return {} end "
    "redis.call('DEL', KEYS[2], KEYS[3])"
    "redis.call('ZREM', KEYS[4], ARGV[1])"
    "return {'ok'}";

static const char  reset[] =
    TOUCH
    "if redis.call('EXISTS', KEYS[1]) == 0 then return {} end "
    "redis.call('DEL', KEYS[2], KEYS[3])"
    "redis.call('HDEL', KEYS[1], 'image')"
    "redis.call('HSET', KEYS[1], 'epoch', ARGV[4])"
    "touch('')"
    "return {'ok'}";

static const char  image[] =
    TOUCH
    "if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[4] then return {} end "
    "touch(ARGV[5])"
    "return {'ok'}";

/* ARGV: 2 entries at most */

static const char  load[] =
    "local s = redis.call('HMGET', KEYS[1], 'epoch', 'image')"
    "if not s[1] then return {} end "
    "local out = {s[1], s[2], string.format('%d', redis.call('LLEN', KEYS[2]))}"
    "if tonumber(ARGV[2]) > 0 then"
    "  for _, e in ipairs(redis.call('LRANGE', KEYS[2], -tonumber(ARGV[2]), -1)) do"
    "    out[#out + 1] = e end end "
    "return out";

/*
 * KEYS: 5 line; ARGV: 4 epoch, 5 picture, 6 question, 7 answer, 8 key, 9 time before which a key may
 * come again, 10 token, 11 its number, 12 entries to keep
 */

static const char  append[] =
    TOUCH
    "if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[4] then return {'gone'} end "
    "if ARGV[10] ~= '' then"
    "  local first = redis.call('ZRANGE', KEYS[5], 0, 0)[1]"
    "  local fence = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')"
    "  if first ~= ARGV[10] and (first or fence > tonumber(ARGV[11])) then return {'lost'} end "
    "end "
    "if ARGV[8] ~= '' then"
    "  for _, k in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do"
    "    local at = string.find(k, ' ', 1, true)"
    "    if at and string.sub(k, at + 1) == ARGV[8]"
    "      and (tonumber(string.sub(k, 1, at - 1)) or 0) > tonumber(ARGV[9]) then"
    "      return {'twice'} end end end "
    "local max = tonumber(ARGV[12])"
    "local n = math.min(redis.call('LLEN', KEYS[2]) + 2, max)"
    "redis.call('RPUSH', KEYS[2], string.char(0) .. ARGV[6], string.char(n) .. ARGV[7])"
    "redis.call('LTRIM', KEYS[2], -max, -1)"
    "redis.call('RPUSH', KEYS[3], ARGV[2] .. ' ' .. ARGV[8])"
    "redis.call('LTRIM', KEYS[3], -max / 2, -1)"
    "if ARGV[10] ~= '' then redis.call('HSET', KEYS[1], 'fence', ARGV[11]) end "
    "touch(ARGV[5])"
    "return {'ok', string.format('%d', n)}";

/* KEYS: 1 sessions; ARGV: 1 time: those used before it have expired */

static const char  expire[] =
    "local n = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[1])"
    "return {string.format('%d', n), string.format('%d', redis.call('ZCARD', KEYS[1]))}";

static const char  known[] =
    "redis.call('EXPIRE', KEYS[1], ARGV[1])"
    "return {redis.call('GET', KEYS[1])}";

static const char  note[] =
    "redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[1])"
    "return {'ok'}";

static const char  shows[] =
    "return {redis.call('GET', KEYS[1])}";

/*
 * KEYS: 1 line, 2 its times, 3 the last number; ARGV: 1 token, 2 ms that a place lasts.  Numbers are
 * microseconds, so that they go on rising if Redis forgets the last one.
 */

static const char  lease_script[] =
    "local t = redis.call('TIME')"
    "local us = t[1] * 1000000 + t[2]"
    "local now = math.floor(us / 1000)"
    "local n = redis.call('ZSCORE', KEYS[1], ARGV[1])"
    "if not n then"
    "  n = math.max(us, tonumber(redis.call('GET', KEYS[3]) or '0') + 1)"
    "  redis.call('SET', KEYS[3], string.format('%.0f', n))"
    "  redis.call('ZADD', KEYS[1], string.format('%.0f', n), ARGV[1]) end "
    "redis.call('HSET', KEYS[2], ARGV[1], string.format('%.0f', now + ARGV[2]))"
    "for i = 1, 2 do redis.call('PEXPIRE', KEYS[i], 4 * ARGV[2]) end "
    "local state = 'first'"
    "while true do"
    "  local first = redis.call('ZRANGE', KEYS[1], 0, 0)[1]"
    "  if first == ARGV[1] then break end "
    "  local till = tonumber(redis.call('HGET', KEYS[2], first) or '0')"
    "  if till > now then state = 'waits' break end "
    "  redis.call('ZREM', KEYS[1], first)"
    "  redis.call('HDEL', KEYS[2], first) end "
    "return {state, string.format('%.0f', tonumber(n))}";

/* KEYS: of each place 1 line, 2 its times; ARGV: 1 ms that a place lasts, tokens */

static const char  keep_script[] =
    "local t = redis.call('TIME')"
    "local till = string.format('%.0f', math.floor(t[1] * 1000 + t[2] / 1000) + ARGV[1])"
    "for i = 1, #KEYS / 2 do"
    "  local q, x, token = KEYS[2 * i - 1], KEYS[2 * i], ARGV[i + 1]"
    "  if redis.call('ZSCORE', q, token) then"
    "    redis.call('HSET', x, token, till)"
    "    redis.call('PEXPIRE', q, 4 * ARGV[1])"
    "    redis.call('PEXPIRE', x, 4 * ARGV[1]) end end "
    "return {'ok'}";

static const char  leave_script[] =
    "redis.call('ZREM', KEYS[1], ARGV[1])"
    "redis.call('HDEL', KEYS[2], ARGV[1])"
    "return {'ok'}";

static const char  usable_script[] =
    "redis.call('SET', KEYS[1], '1', 'EX', 60)"
    "return {'ok'}";


/* ---- arguments and answers ----------------------------------------------- */


static void
add(args_t *a, text_t text)
{
    a->text[a->n++] = text;
}


static void
add_number(args_t *a, int64_t n)
{
    char  *p;

    p = a->number[a->n_numbers++];

    (void) snprintf(p, sizeof(a->number[0]), "%" PRId64, n);
    add(a, vlm_store_string(p));
}


/* an id may have any bytes but control characters */

static void
add_key(args_t *a, char kind, text_t id)
{
    text_t  key;
    char   *p;

    p = a->key[a->n_keys++];

    memcpy(p, "vlm:s:", 6);
    p[4] = kind;

    key.data = p;
    key.len = 6 + (id.len < VLM_STORE_ID ? id.len : VLM_STORE_ID);

    memcpy(p + 6, id.data, key.len - 6);
    add(a, key);
}


/* the keys of TOUCH, a line if there is a lease, and its arguments */

static void
begin(args_t *a, store_t *st, text_t id, int line)
{
    a->n = 0;
    a->n_keys = 0;
    a->n_numbers = 0;

    add_key(a, 's', id);
    add_key(a, 't', id);
    add_key(a, 'k', id);

    add(a, vlm_store_string("vlm:sessions"));

    if (line) {
        add_key(a, 'q', id);
    }

    a->n_keys = a->n;

    add(a, id);
    add_number(a, vlm_store_now());
    add_number(a, st->age);
}


static int
run(store_t *st, const char *script, const args_t *a, reply_t *reply, err_t *err)
{
    return vlm_redis_eval(st->redis, script, a->text, a->n, a->n_keys, reply, err);
}


static int
run_keys(store_t *st, const char *script, const text_t *text, size_t n, size_t n_keys,
    reply_t *reply, err_t *err)
{
    return vlm_redis_eval(st->redis, script, text, n, n_keys, reply, err);
}


/* a whole number from Redis; -1: it is none */

static int
number_of(text_t text, int64_t *n)
{
    char  *end;

    if (text.data == NULL || text.len == 0 || text.len > 20) {
        return -1;
    }

    errno = 0;
    *n = strtoll(text.data, &end, 10);

    return errno == 0 && end == text.data + text.len ? 0 : -1;
}


static int
fail_damaged(store_t *st, err_t *err)
{
    return vlm_db_fail(err, VLM_STORE_ECORRUPT, "store %.150s: what it has of a session or an upload"
                       " is damaged", vlm_redis_name(st->redis));
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

    rc = run(st, script, a, &reply, err);

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
    add_number(&a, vlm_db_random());

    return run_ok(st, ensure, &a, NOTFOUND, err);
}


static int
session_drop(store_t *st, text_t id, err_t *err)
{
    args_t  a;

    begin(&a, st, id, 0);

    return run_ok(st, drop, &a, NOTFOUND, err);
}


static int
session_reset(store_t *st, text_t id, err_t *err)
{
    args_t  a;

    begin(&a, st, id, 0);
    add_number(&a, vlm_db_random());

    return run_ok(st, reset, &a, NOTFOUND, err);
}


static int
session_image(store_t *st, text_t id, int64_t epoch, text_t name, err_t *err)
{
    args_t  a;

    begin(&a, st, id, 0);
    add_number(&a, epoch);
    add(&a, name);

    return run_ok(st, image, &a, GONE, err);
}


/* those that have expired in Redis leave the set of all, too */

static int
session_expire(store_t *st, int64_t before, uint64_t *n, err_t *err)
{
    int      rc;
    char     text[24];
    text_t   args[2];
    int64_t  count;
    reply_t  reply;

    (void) snprintf(text, sizeof(text), "%" PRId64, before);

    args[0] = vlm_store_string("vlm:sessions");
    args[1] = vlm_store_string(text);

    rc = run_keys(st, expire, args, 2, 1, &reply, err);

    if (rc == OK && (reply.n != 2 || number_of(reply.item[0], &count) != 0)) {
        rc = fail_damaged(st, err);
    }

    if (rc == OK) {
        *n = (uint64_t) count;
    }

    vlm_redis_reply_free(&reply);

    return rc;
}


static int
session_count(store_t *st, uint64_t *n, err_t *err)
{
    int      rc;
    char     text[24];
    text_t   args[2];
    int64_t  count;
    reply_t  reply;

    (void) snprintf(text, sizeof(text), "%" PRId64,
                    st->age > 0 ? vlm_store_now() - st->age * 1000000 : 0);

    args[0] = vlm_store_string("vlm:sessions");
    args[1] = vlm_store_string(text);

    rc = run_keys(st, expire, args, 2, 1, &reply, err);

    if (rc == OK && (reply.n != 2 || number_of(reply.item[1], &count) != 0)) {
        rc = fail_damaged(st, err);
    }

    if (rc == OK) {
        *n = (uint64_t) count;
    }

    vlm_redis_reply_free(&reply);

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

    return strcmp(state, "ok") == 0 && reply->n == 2 && number_of(reply->item[1], n) == 0
           ? OK : fail_damaged(st, err);
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

    add_number(&a, epoch);
    add(&a, turn->image);
    add(&a, bytes[0]);
    add(&a, bytes[1]);
    add(&a, turn->key);
    add_number(&a, now - VLM_STORE_REPEAT);
    add(&a, vlm_store_string(turn->lease != NULL ? turn->lease->token : ""));
    add_number(&a, turn->lease != NULL ? turn->lease->number : 0);
    add_number(&a, VLM_STORE_ENTRIES);

    rc = run(st, append, &a, &reply, err);

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

    if (reply->n < 3 || reply->n > 3 + max || number_of(reply->item[0], &loaded->epoch) != 0
        || number_of(reply->item[2], &total) != 0 || total < 0)
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

    memset(&a, 0, sizeof(args_t));

    add_key(&a, 's', id);
    add_key(&a, 't', id);
    add(&a, id);
    add_number(&a, (int64_t) max);

    rc = run(st, load, &a, &reply, err);

    if (rc == OK) {
        rc = reply.n == 0 ? fail_missing(err)
             : loaded_of(st, &reply, max, loaded) == 0 ? OK : fail_damaged(st, err);
    }

    vlm_redis_reply_free(&reply);

    return rc;
}


/* ---- uploads ------------------------------------------------------------- */


/*
 * A file is found again for REUSE seconds from its last upload.  No server evicts a file of that age
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

    rc = run_keys(st, known, args, 2, 1, &reply, err);

    if (rc == OK) {
        text = reply.n > 0 ? reply.item[0] : vlm_store_string(NULL);

        if (text.data == NULL) {
            rc = NOTFOUND;

        } else if (!vlm_disk_plain(text.data, text.len)) {
            rc = fail_damaged(st, err);

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

    rc = run_keys(st, note, args, 3, 1, &reply, err);

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

    rc = run_keys(st, shows, &arg, 1, 1, &reply, err);

    if (rc == OK
        && (reply.n == 0 || number_of(reply.item[0], &when) != 0 || when <= used))
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


/* ---- the line of a session ----------------------------------------------- */


static int
lease(store_t *st, text_t id, lease_t *l, err_t *err)
{
    int      rc;
    args_t   a;
    reply_t  reply;

    memset(&a, 0, sizeof(args_t));

    add_key(&a, 'q', id);
    add_key(&a, 'x', id);
    add(&a, vlm_store_string("vlm:ticket"));
    a.n_keys = a.n;

    add(&a, vlm_store_string(l->token));
    add_number(&a, VLM_STORE_LEASE_MS);

    rc = run(st, lease_script, &a, &reply, err);

    if (rc == OK) {

        if (reply.n != 2 || reply.item[0].data == NULL
            || number_of(reply.item[1], &l->number) != 0)
        {
            rc = fail_damaged(st, err);

        } else if (strcmp(reply.item[0].data, "first") != 0) {
            rc = vlm_db_fail(err, VLM_STORE_WAITS, "another server has a turn of this session");
        }
    }

    vlm_redis_reply_free(&reply);

    return rc;
}


static int
keep(store_t *st, const vlm_store_place_t *places, size_t n, err_t *err)
{
    int      rc;
    char     ms[24], (*key)[KEY];
    size_t   i, at, m;
    text_t   args[3 * KEPT + 1];
    args_t   a;
    reply_t  reply;

    (void) snprintf(ms, sizeof(ms), "%d", VLM_STORE_LEASE_MS);

    key = malloc(2 * KEPT * KEY);
    if (key == NULL) {
        return vlm_db_fail(err, VLM_STORE_EIO, "no memory for leases");
    }

    rc = OK;

    for (at = 0; at < n && rc == OK; at += m) {

        m = n - at < KEPT ? n - at : KEPT;
        args[2 * m] = vlm_store_string(ms);

        for (i = 0; i < m; i++) {
            memset(&a, 0, sizeof(args_t));

            add_key(&a, 'q', places[at + i].session);
            add_key(&a, 'x', places[at + i].session);

            memcpy(key[2 * i], a.key[0], 2 * KEY);

            args[2 * i].data = key[2 * i];
            args[2 * i + 1].data = key[2 * i + 1];
            args[2 * i].len = a.text[0].len;
            args[2 * i + 1].len = a.text[1].len;
            args[2 * m + 1 + i] = vlm_store_string(places[at + i].token);
        }

        rc = run_keys(st, keep_script, args, 3 * m + 1, 2 * m, &reply, err);

        vlm_redis_reply_free(&reply);
    }

    free(key);

    return rc;
}


static int
leave(store_t *st, text_t id, const char *token, err_t *err)
{
    args_t  a;

    memset(&a, 0, sizeof(args_t));

    add_key(&a, 'q', id);
    add_key(&a, 'x', id);
    add(&a, vlm_store_string(token));

    return run_ok(st, leave_script, &a, NOTFOUND, err);
}


/* ---- the table ----------------------------------------------------------- */


static int
usable(store_t *st, err_t *err)
{
    int      rc;
    text_t   arg;
    reply_t  reply;

    arg = vlm_store_string("vlm:usable");

    rc = run_keys(st, usable_script, &arg, 1, 1, &reply, err);

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
    .lease = lease,
    .keep = keep,
    .leave = leave,
    .expire = session_expire,
};


#endif /* VLM_HIREDIS */
