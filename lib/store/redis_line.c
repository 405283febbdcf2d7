
/*
 * The queue of a session's requests among servers: vlm_store_lease() in store.h.
 *
 *     vlm:q:ID      a sorted set: tokens by number
 *     vlm:x:ID      a hash: until when each token keeps its place, in ms of Redis' clock
 *     vlm:ticket    the number that was given last
 *
 * The first request of the queue has the session's lease, and its number is the fence: see the
 * script that stores a turn, in redis_session.c.  A place that its server has not renewed in time
 * is removed when another request looks.
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

    rc = vlm_redis_run(st, vlm_lua_lease, &a, &reply, err);

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

        rc = vlm_redis_eval(st->redis, vlm_lua_keep, args, 3 * m + 1, 2 * m, &reply, err);

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

    rc = vlm_redis_run(st, vlm_lua_leave, &a, &reply, err);

    vlm_redis_reply_free(&reply);

    return rc;
}


#endif /* VLM_HIREDIS */
