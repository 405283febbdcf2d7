
/*
 * Sessions, turns and uploaded files: one SQLite file and three directories.
 *
 *   DIR/vlm.db      sessions and their turns; which uploads have which content
 *   DIR/uploads/    pictures as clients sent them, "<uuid4>_<secure name>"
 *   DIR/results/    pictures with answers drawn on them
 *   DIR/documents/  PDF files (documents.h)
 *
 * Several servers share a store if its sessions are in a Redis, and uploads and results in a
 * directory that all of them have.  Documents are in SQLite alone.
 *
 * Plain C without nginx's headers: every function but the ones that say
 * otherwise may wait for a disk, so they are called from thread tasks only.
 * A store is used by any number of threads and processes at once.
 */


#ifndef _NGX_HTTP_VLM_STORE_H_INCLUDED_
#define _NGX_HTTP_VLM_STORE_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>


/* bounds, in bytes unless said otherwise */

#define VLM_STORE_ID        128    /* of a session's id */
#define VLM_STORE_SESSION   (17 + VLM_STORE_ID)    /* of its name in the store */
#define VLM_STORE_NAME      255    /* of a file's name */
#define VLM_STORE_PATH      1024   /* of a path, zero included */
#define VLM_STORE_TEXT      (4u << 20)    /* of one text of a turn */
#define VLM_STORE_ENTRIES   20     /* entries kept in a session */
#define VLM_STORE_CONTEXT   10     /* entries loaded for a prompt */
#define VLM_STORE_KEY       255    /* of an Idempotency-Key */
#define VLM_STORE_REPEAT    86400000000    /* us: its lifetime */


typedef enum {
    VLM_STORE_OK = 0,
    VLM_STORE_NOTFOUND,       /* no such session or file */
    VLM_STORE_GONE,           /* reset or deleted in between */
    VLM_STORE_WAITS,          /* another server has a turn of this session */
    VLM_STORE_EINPUT,         /* an error of the client */
    VLM_STORE_ELIMIT,         /* more than a session may have, or may do */
    VLM_STORE_EFULL,          /* no space left */
    VLM_STORE_EREADONLY,      /* cannot be written */
    VLM_STORE_ECORRUPT,       /* not a database, or a damaged one */
    VLM_STORE_EBUSY,          /* locked by others for too long */
    VLM_STORE_EDOWN,          /* does not answer: try again */
    VLM_STORE_EREFUSES,       /* takes no writes at the moment: try again */
    VLM_STORE_EIO             /* anything else */
} vlm_store_code_t;


/*
 * The error, in one sentence for a log or, with EINPUT, for a client.  Functions return a code and
 * fill this in whenever the code is not OK; the pointer may be NULL.
 */

typedef struct {
    vlm_store_code_t              code;
    char                          text[256];
} vlm_store_err_t;


/* the same without paths, for a client: a constant; any thread */

const char *vlm_store_text(int code);


typedef struct vlm_store_s  vlm_store_t;


/* bytes that need no zero at the end; data NULL is SQL's NULL, JSON's null */

typedef struct {
    size_t                        len;
    const char                   *data;
} vlm_store_text_t;

/* of a string that ends with a zero, or of NULL */

vlm_store_text_t vlm_store_string(const char *text);


typedef enum {
    VLM_STORE_USER = 0,
    VLM_STORE_ASSISTANT
} vlm_store_role_t;


typedef struct {
    vlm_store_role_t              role;
    vlm_store_text_t              content;
    vlm_store_text_t              image;       /* absolute path or NULL */
    vlm_store_text_t              task;
    vlm_store_text_t              thinking;    /* assistant only */
    vlm_store_text_t              output;      /* assistant only: file name
                                                  in results/, or NULL */
    char                          time[32];    /* 2025-11-27T22:45:20.161117,
                                                  local */
    int64_t                       us;          /* the same, since 1970 */
    vlm_store_text_t     key;         /* assistant only, or NULL: the request's Idempotency-Key */
    int64_t                       body;        /* its body's hash */
    size_t                        number;      /* the turn_number it had */
} vlm_store_entry_t;


/* a session as it was at one moment; freed with ..._loaded_free() */

typedef struct {
    int64_t                       epoch;       /* for ..._append() */
    char                         *image;       /* absolute path, or NULL */
    size_t                        total;       /* entries in the session */
    size_t                        n;           /* entries here */
    vlm_store_entry_t            *entries;     /* [n], oldest first */
} vlm_store_loaded_t;


/*
 * A place in the queue of a session's requests, which several servers may have.  The first there
 * holds the session's lease; its number fences it: no turn is stored after one of a larger number.
 */

typedef struct {
    char                          token[33];   /* random; empty: no place */
    int64_t                       number;      /* by arrival; 0: none yet */
} vlm_store_lease_t;

/* a question and its answer, to be stored as a pair or not at all */

typedef struct {
    vlm_store_text_t              message;
    vlm_store_text_t              task;        /* as resolved */
    int64_t                       asked;       /* when, in microseconds since
                                                  1970; 0: now */
    vlm_store_text_t              image;       /* the picture used: file name
                                                  or path within uploads/;
                                                  NULL: none, and the current
                                                  one stays */
    vlm_store_text_t              answer;
    vlm_store_text_t              thinking;
    vlm_store_text_t              output;      /* file name in results/ */
    vlm_store_text_t              key;         /* of the request; NULL: none */
    int64_t                       body;        /* with a key */
    const vlm_store_lease_t      *lease;       /* of the request, or NULL */
} vlm_store_turn_t;


typedef struct {
    char                          name[VLM_STORE_NAME + 1];
    char                          path[VLM_STORE_PATH];
} vlm_store_file_t;


/*
 * While the configuration is read: may DIR be a store?  It may be missing if it can be created.
 * The error names the file that is in the way; nothing is changed.  A read-only disk is no error.
 */

int vlm_store_check(const char *dir, vlm_store_err_t *err);

/*
 * Master, before workers are forked: creates DIR, and with ..._prepare() what it has, too, for this
 * owner alone (uid -1: for the process's).  Existing files stay as they are.  Opens no database.
 */

int vlm_store_make(const char *dir, uid_t uid, gid_t gid,
    vlm_store_err_t *err);

int vlm_store_prepare(const char *dir, uid_t uid, gid_t gid,
    vlm_store_err_t *err);

/*
 * Any process, after fork, also on the event loop: remembers the directory
 * and does nothing else; NULL: no memory.  The database is opened by the
 * first call that needs it, and again after an error.  ..._close() takes NULL
 * and must not run beside other calls.
 */

vlm_store_t *vlm_store_open(const char *dir);
void vlm_store_close(vlm_store_t *st);

/*
 * The same for sessions in a Redis (redis.h), which is not asked yet; uploads/ and results/ are in
 * DIR.  Sessions unused for longer than "age" seconds expire, 0: never.  NULL: no memory, or this
 * build has no hiredis.
 */

struct vlm_redis_conf_s;

vlm_store_t *vlm_store_open_redis(const struct vlm_redis_conf_s *conf, const char *dir,
    int64_t age);

/* and what the master makes for it in DIR, as ..._prepare() does */

int vlm_store_prepare_files(const char *dir, uid_t uid, gid_t gid, vlm_store_err_t *err);

/* OK, or the reason why nothing can be stored; any process, may wait for a disk */

int vlm_store_usable(vlm_store_t *st,
    vlm_store_err_t *err);


/* sessions */

/* OK, or EINPUT: 1 to 128 bytes of UTF-8 without control characters; any
   thread, never waits */

int vlm_store_id(vlm_store_text_t id,
    vlm_store_err_t *err);

/*
 * The name of a session, which the calls below take as its id.  Clients of another salt never have
 * the same: it is the id, behind the salt and a "/" if there is a salt, and no id has a "/".  Any
 * bytes may be an id; of what is none the name is empty, and no session has that.  Never waits.
 *
 *   salt      of the client, 0: none
 *   returns   the name, in the room
 */

vlm_store_text_t vlm_store_session_name(uint64_t salt, vlm_store_text_t id,
    char name[VLM_STORE_SESSION + 1]);

/* the id in a name */

vlm_store_text_t vlm_store_session_id(vlm_store_text_t name);

/* a new session of a client with this salt; its id is a random uuid4 */

int vlm_store_session_create(vlm_store_t *st, uint64_t salt, char id[37],
    vlm_store_err_t *err);

/* OK if it exists or was created by this call; EINPUT: not an id */

int vlm_store_session_ensure(vlm_store_t *st,
    vlm_store_text_t id, vlm_store_err_t *err);

/* NOTFOUND if there is none; a later append to the deleted session is GONE */

int vlm_store_session_delete(vlm_store_t *st,
    vlm_store_text_t id, vlm_store_err_t *err);

/* the same, but the session stays: without turns, documents and a picture */

int vlm_store_session_reset(vlm_store_t *st,
    vlm_store_text_t id, vlm_store_err_t *err);

/*
 * The session with its newest entries, at most max of them (CONTEXT for a
 * prompt, ENTRIES for a history).  NOTFOUND, and nothing to free.
 */

int vlm_store_session_load(vlm_store_t *st,
    vlm_store_text_t id, size_t max,
    vlm_store_loaded_t *loaded, vlm_store_err_t *err);
void vlm_store_loaded_free(vlm_store_loaded_t *loaded);

/*
 * Stores a pair and the session's current picture, and keeps the newest 20
 * entries, if the session is still in the epoch that was loaded and has no
 * turn of this key; else GONE and nothing is stored.  Once this returns OK, the
 * pair outlives a crash of the process and of the machine.
 *
 *   turn_number    entries in the session now: 2, 4, ... 20
 *   context_used   1 if there are more than these two
 */

int vlm_store_session_append(vlm_store_t *st,
    vlm_store_text_t id, int64_t epoch,
    const vlm_store_turn_t *turn, size_t *turn_number,
    int *context_used, vlm_store_err_t *err);

/* EBUSY: the lease of the turn was lost, and another server's request went before it */

/* makes this picture the current one without a turn; GONE as above */

int vlm_store_session_image(vlm_store_t *st,
    vlm_store_text_t id, int64_t epoch,
    vlm_store_text_t image, vlm_store_err_t *err);

/*
 * The queue of a session, if several servers share the store; else these do nothing and return OK.
 * A place lasts VLM_STORE_LEASE_MS from the last call for it: a server that has died leaves it.
 *
 *   vlm_store_lease_new()   gives a request a random token; EIO: no random numbers
 *   vlm_store_lease()       takes a place, if the lease has none, and says if it is the first: OK,
 *                           or WAITS
 *   vlm_store_lease_keep()  keeps n places for another while, those that are still there
 *   vlm_store_lease_leave() leaves the queue
 */

#define VLM_STORE_LEASE_MS  15000

typedef struct {
    vlm_store_text_t              session;
    const char                   *token;
} vlm_store_place_t;

int vlm_store_lease_new(vlm_store_t *st, vlm_store_lease_t *lease, vlm_store_err_t *err);
int vlm_store_lease(vlm_store_t *st, vlm_store_text_t id, vlm_store_lease_t *lease,
    vlm_store_err_t *err);
int vlm_store_lease_keep(vlm_store_t *st, const vlm_store_place_t *places, size_t n,
    vlm_store_err_t *err);
int vlm_store_lease_leave(vlm_store_t *st, vlm_store_text_t id, const char *token,
    vlm_store_err_t *err);

/* the number of sessions: one row is read, whatever the number */

int vlm_store_session_count(vlm_store_t *st, uint64_t *n,
    vlm_store_err_t *err);


/* files */

/*
 * Stores an upload: on disk, whole, when this returns OK.  The same bytes under
 * the same name are kept once and get the same answer again, among clients
 * of the same salt.
 *
 *   salt   of the client, 0: none
 *   name   as the client called it: any bytes
 *   file   <uuid4>_<secure name>, and its absolute path
 */

int vlm_store_upload_add(vlm_store_t *st, const void *data,
    size_t bytes, uint64_t salt, vlm_store_text_t name,
    vlm_store_file_t *file, vlm_store_err_t *err);

/*
 * The uploaded file that a client means: by its filename, by its absolute
 * path as an upload's answer has it, or by its url ("/uploads/NAME").
 * NOTFOUND for everything else: it must be a regular file, no link, directly
 * inside uploads/.  A client's path is compared, and never looked up.
 */

int vlm_store_upload_find(vlm_store_t *st,
    vlm_store_text_t image, vlm_store_file_t *file,
    vlm_store_err_t *err);

/*
 * Stores a drawn JPEG under a fresh name, made from its picture's name and its
 * task: <uuid4>_<stem>_with_<task>_annotated.jpg
 *
 *   image   file name or path of the picture it was made from
 */

int vlm_store_result_add(vlm_store_t *st, const void *data,
    size_t bytes, vlm_store_text_t image, const char *task,
    vlm_store_file_t *file, vlm_store_err_t *err);

/*
 * Evicts sessions, files and documents by age, and the oldest files and documents by their bytes
 * in all; 0 sets no bound.
 *
 *   age    seconds: evicts sessions unused for longer, older files except
 *          the current picture of a session, and documents that no session has
 *   bytes  of all files and documents: evicts those unused longest until they fit, except those
 *          of the last minutes, the pictures of sessions in use and documents not yet read
 *
 * swept has the numbers of this call, also after an error in the middle.  Takes
 * up to some seconds; other calls go on meanwhile.
 */

typedef struct {
    uint64_t                      sessions;    /* removed */
    uint64_t                      files;       /* removed */
    uint64_t                      documents;   /* removed, whole */
    uint64_t                      bytes;       /* of those files and documents */
    uint64_t                      left;        /* bytes of those that stay */
    unsigned                      more:1;      /* to do: call again soon */
} vlm_store_swept_t;

int vlm_store_sweep(vlm_store_t *st, int64_t age,
    uint64_t bytes, vlm_store_swept_t *swept,
    vlm_store_err_t *err);

/*
 * Any thread, never waits: the path that /uploads/NAME or /result/NAME would have, if NAME is a
 * single segment that cannot lead elsewhere.  The call does not check that the file exists.
 */

typedef enum {
    VLM_STORE_UPLOADS = 0,
    VLM_STORE_RESULTS
} vlm_store_folder_t;

int vlm_store_path(const char *dir,
    vlm_store_folder_t folder, vlm_store_text_t name,
    char path[VLM_STORE_PATH]);


#endif /* _NGX_HTTP_VLM_STORE_H_INCLUDED_ */
