
/*
 * Arguments of scripts and their answers.  See the header; redis.c has the connection.
 */


#define _GNU_SOURCE

#include "store/redis_call.h"


#if (VLM_HIREDIS)

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


typedef vlm_store_t        store_t;
typedef vlm_store_text_t   text_t;
typedef vlm_store_err_t    err_t;
typedef vlm_redis_reply_t  reply_t;


void
vlm_redis_add(vlm_redis_args_t *a, text_t text)
{
    a->text[a->n++] = text;
}


void
vlm_redis_add_number(vlm_redis_args_t *a, int64_t n)
{
    char  *p;

    p = a->number[a->n_numbers++];

    (void) snprintf(p, sizeof(a->number[0]), "%" PRId64, n);
    vlm_redis_add(a, vlm_store_string(p));
}


void
vlm_redis_add_key(vlm_redis_args_t *a, char kind, text_t id)
{
    text_t  key;
    char   *p;

    p = a->key[a->n_keys++];

    memcpy(p, "vlm:s:", 6);
    p[4] = kind;

    key.data = p;
    key.len = 6 + (id.len < VLM_STORE_SESSION ? id.len : VLM_STORE_SESSION);

    memcpy(p + 6, id.data, key.len - 6);
    vlm_redis_add(a, key);
}


int
vlm_redis_run(store_t *st, const char *script, const vlm_redis_args_t *a, reply_t *reply,
    err_t *err)
{
    return vlm_redis_eval(st->redis, script, a->text, a->n, a->n_keys, reply, err);
}


int
vlm_redis_number(text_t text, int64_t *n)
{
    char  *end;

    if (text.data == NULL || text.len == 0 || text.len > 20) {
        return -1;
    }

    errno = 0;
    *n = strtoll(text.data, &end, 10);

    return errno == 0 && end == text.data + text.len ? 0 : -1;
}


int
vlm_redis_damaged(store_t *st, err_t *err)
{
    return vlm_db_fail(err, VLM_STORE_ECORRUPT, "store %.150s: what it has of a session or an"
                       " upload is damaged", vlm_redis_name(st->redis));
}


#endif /* VLM_HIREDIS */
