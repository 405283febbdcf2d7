
/*
 * A call of a script, as redis_session.c and redis_line.c share it: its arguments, and the errors
 * in its answer.
 */


#ifndef _VLM_STORE_REDIS_CALL_H_INCLUDED_
#define _VLM_STORE_REDIS_CALL_H_INCLUDED_


#include "store/calls.h"
#include "store/redis.h"


#define VLM_REDIS_KEY   (sizeof("vlm:s:") + VLM_STORE_SESSION)
#define VLM_REDIS_ARGS  20


/* the arguments of a script, keys first; all zero at first */

typedef struct {
    vlm_store_text_t              text[VLM_REDIS_ARGS];
    size_t                        n;
    size_t                        n_keys;
    char                          key[6][VLM_REDIS_KEY];
    char                          number[8][24];
    size_t                        n_numbers;
} vlm_redis_args_t;


/* one more argument; the text stays the caller's */

void vlm_redis_add(vlm_redis_args_t *a, vlm_store_text_t text);
void vlm_redis_add_number(vlm_redis_args_t *a, int64_t n);

/* the key "vlm:KIND:ID", before all other arguments */

void vlm_redis_add_key(vlm_redis_args_t *a, char kind, vlm_store_text_t id);

/* runs a script; OK: the reply is to be freed, else it is empty */

int vlm_redis_run(vlm_store_t *st, const char *script, const vlm_redis_args_t *a,
    vlm_redis_reply_t *reply, vlm_store_err_t *err);

/* a whole number of an answer; -1: it is none */

int vlm_redis_number(vlm_store_text_t text, int64_t *n);

/* ECORRUPT: an answer that no script of ours gives */

int vlm_redis_damaged(vlm_store_t *st, vlm_store_err_t *err);


/* the scripts: redis_lua.c */

extern const char  vlm_lua_ensure[];
extern const char  vlm_lua_drop[];
extern const char  vlm_lua_reset[];
extern const char  vlm_lua_image[];
extern const char  vlm_lua_load[];
extern const char  vlm_lua_append[];
extern const char  vlm_lua_expire[];
extern const char  vlm_lua_known[];
extern const char  vlm_lua_note[];
extern const char  vlm_lua_shows[];
extern const char  vlm_lua_usable[];
extern const char  vlm_lua_lease[];
extern const char  vlm_lua_keep[];
extern const char  vlm_lua_leave[];


/* of the table of functions: redis_line.c */

int vlm_redis_lease(vlm_store_t *st, vlm_store_text_t id, vlm_store_lease_t *lease,
    vlm_store_err_t *err);
int vlm_redis_keep(vlm_store_t *st, const vlm_store_place_t *places, size_t n,
    vlm_store_err_t *err);
int vlm_redis_leave(vlm_store_t *st, vlm_store_text_t id, const char *token, vlm_store_err_t *err);


#endif /* _VLM_STORE_REDIS_CALL_H_INCLUDED_ */
