
/*
 * The line of a session's requests among servers: vlm_store_lease() in store.h.
 *
 *     vlm:q:ID      a sorted set: tokens by number
 *     vlm:x:ID      a hash: until when each token keeps its place, in ms of Redis' clock
 *     vlm:ticket    the number that was given last
 *
 * The first in line holds the session's lease, and its number is the fence: see the script that
 * stores a turn, in redis_session.c.  A place that its server does not keep up goes when another
 * request looks.
 */


#define _GNU_SOURCE

#include "store/redis_call.h"


#if (VLM_HIREDIS)

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define OK              VLM_STORE_OK
#define KEPT            64                 /* places in one script */


typedef vlm_store_t        store_t;
typedef vlm_store_text_t   text_t;
typedef vlm_store_err_t    err_t;
typedef vlm_store_lease_t  lease_t;
typedef vlm_redis_args_t   args_t;
typedef vlm_redis_reply_t  reply_t;


/*
 * KEYS: 1 line, 2 its times, 3 the last number; ARGV: 1 token, 2 ms that a place lasts.  Numbers
 * are microseconds, so that they go on rising if Redis forgets the last one.
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


int
vlm_redis_lease(store_t *st, text_t id, lease_t *l, err_t *err)
{
    int      rc;
    args_t   a;
    reply_t  reply;

    memset(&a, 0, sizeof(args_t));

    vlm_redis_add_key(&a, 'q', id);
    vlm_redis_add_key(&a, 'x', id);
    vlm_redis_add(&a, vlm_store_string("vlm:ticket"));
    a.n_keys = a.n;

    vlm_redis_add(&a, vlm_store_string(l->token));
    vlm_redis_add_number(&a, VLM_STORE_LEASE_MS);

    rc = vlm_redis_run(st, lease_script, &a, &reply, err);

    if (rc == OK) {

        if (reply.n != 2 || reply.item[0].data == NULL
            || vlm_redis_number(reply.item[1], &l->number) != 0)
        {
            rc = vlm_redis_damaged(st, err);

        } else if (strcmp(reply.item[0].data, "first") != 0) {
            rc = vlm_db_fail(err, VLM_STORE_WAITS, "another server has a turn of this session");
        }
    }

    vlm_redis_reply_free(&reply);

    return rc;
}


int
vlm_redis_keep(store_t *st, const vlm_store_place_t *places, size_t n, err_t *err)
{
    int      rc;
    char     ms[24], (*key)[VLM_REDIS_KEY];
    size_t   i, at, m;
    text_t   args[3 * KEPT + 1];
    args_t   a;
    reply_t  reply;

    (void) snprintf(ms, sizeof(ms), "%d", VLM_STORE_LEASE_MS);

    key = malloc(2 * KEPT * VLM_REDIS_KEY);
    if (key == NULL) {
        return vlm_db_fail(err, VLM_STORE_EIO, "no memory for leases");
    }

    rc = OK;

    for (at = 0; at < n && rc == OK; at += m) {

        m = n - at < KEPT ? n - at : KEPT;
        args[2 * m] = vlm_store_string(ms);

        for (i = 0; i < m; i++) {
            memset(&a, 0, sizeof(args_t));

            vlm_redis_add_key(&a, 'q', places[at + i].session);
            vlm_redis_add_key(&a, 'x', places[at + i].session);

            memcpy(key[2 * i], a.key[0], 2 * VLM_REDIS_KEY);

            args[2 * i].data = key[2 * i];
            args[2 * i + 1].data = key[2 * i + 1];
            args[2 * i].len = a.text[0].len;
            args[2 * i + 1].len = a.text[1].len;
            args[2 * m + 1 + i] = vlm_store_string(places[at + i].token);
        }

        rc = vlm_redis_eval(st->redis, keep_script, args, 3 * m + 1, 2 * m, &reply, err);

        vlm_redis_reply_free(&reply);
    }

    free(key);

    return rc;
}


int
vlm_redis_leave(store_t *st, text_t id, const char *token, err_t *err)
{
    int      rc;
    args_t   a;
    reply_t  reply;

    memset(&a, 0, sizeof(args_t));

    vlm_redis_add_key(&a, 'q', id);
    vlm_redis_add_key(&a, 'x', id);
    vlm_redis_add(&a, vlm_store_string(token));

    rc = vlm_redis_run(st, leave_script, &a, &reply, err);

    vlm_redis_reply_free(&reply);

    return rc;
}


#endif /* VLM_HIREDIS */
