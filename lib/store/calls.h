
/*
 * The calls of a store to the database behind it, as a table of functions: SQLite's is in
 * session.c, Redis' in redis_session.c.  store.c, files.c and evict.c check the values of callers,
 * work with files, and call it.  Only the files of the store include this header.
 */


#ifndef _VLM_STORE_CALLS_H_INCLUDED_
#define _VLM_STORE_CALLS_H_INCLUDED_


#include "store/db.h"


#define VLM_STORE_GRACE  600      /* s, minimum age of a file that is evicted: the time between
                                     upload and chat */
#define VLM_STORE_IN_USE 3600     /* s, since the last turn of a session whose picture stays */


/* the key by which an equal upload is found */

typedef struct {
    int64_t                       hash;
    const void                   *data;
    size_t                        bytes;
    vlm_store_text_t              secure;
} vlm_store_upload_t;


/*
 * Each returns a code, with err filled in unless the code is OK.  Ids, turns and names have been
 * checked by the caller, as store.h has their bounds; a picture is a file's name.
 */

struct vlm_store_calls_s {
    void                        (*close)(vlm_store_t *st);

    /* OK, or why nothing can be stored */

    int                         (*usable)(vlm_store_t *st, vlm_store_err_t *err);

    /* sessions, as in store.h; "append" gives the entries that the session has then */

    int                         (*ensure)(vlm_store_t *st, vlm_store_text_t id,
                                          vlm_store_err_t *err);
    int                         (*drop)(vlm_store_t *st, vlm_store_text_t id,
                                        vlm_store_err_t *err);
    int                         (*reset)(vlm_store_t *st, vlm_store_text_t id,
                                         vlm_store_err_t *err);
    int                         (*load)(vlm_store_t *st, vlm_store_text_t id, size_t max,
                                        vlm_store_loaded_t *loaded, vlm_store_err_t *err);
    int                         (*append)(vlm_store_t *st, vlm_store_text_t id, int64_t epoch,
                                          const vlm_store_turn_t *turn, int64_t *n,
                                          vlm_store_err_t *err);
    int                         (*image)(vlm_store_t *st, vlm_store_text_t id, int64_t epoch,
                                         vlm_store_text_t image, vlm_store_err_t *err);
    int                         (*count)(vlm_store_t *st, uint64_t *n, vlm_store_err_t *err);

    /* the name of an upload with this key, or NOTFOUND; and remembers one */

    int                         (*known)(vlm_store_t *st, const vlm_store_upload_t *up,
                                         char name[VLM_STORE_NAME + 1], vlm_store_err_t *err);
    int                         (*note)(vlm_store_t *st, const vlm_store_upload_t *up,
                                        vlm_store_text_t name, vlm_store_err_t *err);

    /* around the change of a file's age, and around an eviction of files: no other begins
       meanwhile; "end" returns rc, or why what was done is undone */

    int                         (*begin)(vlm_store_t *st, vlm_store_err_t *err);
    int                         (*end)(vlm_store_t *st, int rc, vlm_store_err_t *err);

    /* within these: OK if name is the current picture of a session used after this time, in us, or
       NOTFOUND; and forgets an upload of this name */

    int                         (*shows)(vlm_store_t *st, vlm_store_text_t name, int64_t used,
                                         vlm_store_err_t *err);
    int                         (*forget)(vlm_store_t *st, vlm_store_text_t name,
                                          vlm_store_err_t *err);

    /* the queue of a session, as in store.h; NULL: one server has all requests */

    int                         (*lease)(vlm_store_t *st, vlm_store_text_t id,
                                         vlm_store_lease_t *lease, vlm_store_err_t *err);
    int                         (*keep)(vlm_store_t *st, const vlm_store_place_t *places, size_t n,
                                        vlm_store_err_t *err);
    int                         (*leave)(vlm_store_t *st, vlm_store_text_t id, const char *token,
                                         vlm_store_err_t *err);

    /* evicts sessions that were last used before this time, in us: a batch; their number */

    int                         (*expire)(vlm_store_t *st, int64_t before, uint64_t *n,
                                          vlm_store_err_t *err);
};


extern const vlm_store_calls_t  vlm_store_sqlite;
extern const vlm_store_calls_t  vlm_store_redis;


/* as Python's datetime.isoformat() of a local time: no zone */

void vlm_store_iso_time(char *buf, size_t size, int64_t us);

/* a copy with a zero behind it; NULL stays NULL; -1: no memory */

int vlm_store_copy(vlm_store_text_t *dst, vlm_store_text_t src);

/* the path of an upload; NULL: no memory */

char *vlm_store_upload_path(vlm_store_t *st, const char *name);


#endif /* _VLM_STORE_CALLS_H_INCLUDED_ */
