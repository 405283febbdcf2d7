
/*
 * A Redis, or Valkey, as the database of a store: its address, and one connection per process on
 * which scripts are run.  redis.c is the only file that includes hiredis; without that library
 * (VLM_HIREDIS) no address is accepted.
 */


#ifndef _VLM_STORE_REDIS_H_INCLUDED_
#define _VLM_STORE_REDIS_H_INCLUDED_


#include "store/store.h"


#define VLM_REDIS_HOST      255   /* bytes of a host's name */
#define VLM_REDIS_ADDRESSES 4     /* of a host that are tried, and an empty one */
#define VLM_REDIS_SOCKET    107   /* of a unix socket's path */
#define VLM_REDIS_PASSWORD  511   /* of a password, and of a user's name */


/* The password is in no message. */

typedef struct vlm_redis_conf_s {
    char                          host[VLM_REDIS_HOST + 1];        /* as written */
    char                          address[VLM_REDIS_ADDRESSES][64];    /* of that host, in numbers,
                                                                      the last of them empty */
    char                          socket[VLM_REDIS_SOCKET + 1];    /* in place of a host */
    char                          user[VLM_REDIS_PASSWORD + 1];
    char                          password[VLM_REDIS_PASSWORD + 1];
    char                          name[VLM_REDIS_HOST + 32];       /* what messages call it */
    int                           port;
    int                           database;
} vlm_redis_conf_t;


/*
 * Reads an address; EINPUT with a sentence if it is none, or if this build has no hiredis:
 *
 *     redis://[[user]:password@]host[:port][/database]
 *     redis://[[user]:password@]unix:/path/of/socket[:/database]
 *
 * User and password are percent-encoded.
 */

int vlm_redis_parse(const char *url, vlm_redis_conf_t *conf, vlm_store_err_t *err);

/* Fills in the addresses of a host by the system's resolver, which may take seconds; EINPUT. */

int vlm_redis_resolve(vlm_redis_conf_t *conf, vlm_store_err_t *err);


/* ---- the connection: for redis_session.c and the tests ------------------- */

typedef struct vlm_redis_s  vlm_redis_t;


/* a script's answer: an array of strings; an item without data is null */

typedef struct {
    size_t                        n;
    vlm_store_text_t             *item;        /* [n], each with a zero behind it */
} vlm_redis_reply_t;


/* connects to nothing yet; NULL: no memory */

vlm_redis_t *vlm_redis_new(const vlm_redis_conf_t *conf);
void vlm_redis_free(vlm_redis_t *r);

/* what messages call it */

const char *vlm_redis_name(const vlm_redis_t *r);

/*
 * Runs a script with these arguments, of which the first n_keys are keys; any thread.  It takes at
 * most VLM_REDIS_CALL_MS, and for VLM_REDIS_PAUSE_MS after a Redis has failed to answer, callers
 * are refused at once (EDOWN).  OK: the reply is to be freed; else it is empty.
 */

#define VLM_REDIS_CALL_MS   3000
#define VLM_REDIS_PAUSE_MS  1000

int vlm_redis_eval(vlm_redis_t *r, const char *script, const vlm_store_text_t *args, size_t n_args,
    size_t n_keys, vlm_redis_reply_t *reply, vlm_store_err_t *err);
void vlm_redis_reply_free(vlm_redis_reply_t *reply);


/* ---- a stored entry as bytes: redis_entry.c ------------------------------ */

/*
 * An entry of a turn as it lies in a list of Redis, malloc()ed; bytes without data: no memory.  The
 * script that stores it puts the turn's number in front, as one byte.
 */

vlm_store_text_t vlm_redis_entry_write(const vlm_store_entry_t *e);

/*
 * Reads such bytes, with the number in front, into an entry whose texts are copies; the picture is
 * the name of a file, and e->time is left alone.  0, or -1: these are not the bytes of an entry, or
 * there is no memory; what was copied is in e, and is to be freed in either case.
 */

int vlm_redis_entry_read(vlm_store_text_t bytes, vlm_store_entry_t *e);


#endif /* _VLM_STORE_REDIS_H_INCLUDED_ */
