
/*
 * The lock that hands the model from one worker to the next.  It is a file
 * lock, so a crash releases it.  With "reload wait" one worker holds it at a
 * time.
 *
 * With "reload overlap" there are two lock files and a worker holds either, so
 * two workers may have the model during a reload, and never three.  A worker
 * with "reload wait" takes both files in their order, so a reload from one
 * setting to the other neither deadlocks nor lets two workers in by mistake.
 *
 * A lock belongs to a file, not to its path: if the file was deleted, another
 * server would make and lock a new one.  So the owner checks for the file at
 * each heartbeat and makes it again, and a worker that waits for the lock gives
 * the owner the time for that.  A thread of the engine's own pool does this: a
 * disk that hangs must not stop the event loop.
 */


#include "life.h"
#include "base/folder.h"


#define NGX_HTTP_VLM_LOCK_WAIT  10         /* ms between two tries */
#define NGX_HTTP_VLM_LOCK_LOG   1000       /* ms, after which the wait is
                                              logged */
#define NGX_HTTP_VLM_LOCK_GONE  2000       /* ms, for the owner to make a
                                              deleted file again */


/* a thread's look at the files of the locks that the loop's engine holds */

typedef struct {
    ngx_http_vlm_engine_t        *engine;
    ngx_msec_t                    opened_at;   /* of the load with these: */
    int                           held[NGX_HTTP_VLM_LOCK_FDS];
    int                           fds[NGX_HTTP_VLM_LOCK_FDS];  /* new or -1 */
    ngx_err_t                     errs[NGX_HTTP_VLM_LOCK_FDS];
    ngx_file_info_t               asked;           /* once the master is gone */
    unsigned                      orphan:1;
    unsigned                      wanted:1;
} ngx_http_vlm_lock_look_t;


static ngx_int_t
ngx_http_vlm_lock_files(ngx_http_vlm_engine_t *eng, uid_t uid, gid_t gid,
    vlm_err_t *err)
{
    vlm_err_t   why;
    ngx_uint_t  i;

    ngx_memzero(&why, sizeof(vlm_err_t));

    for (i = 0; i < (eng->conf.overlap ? NGX_HTTP_VLM_LOCKS : 1); i++) {

        if (vlm_folder_need_file((char *) eng->conf.locks[i].data, uid, gid,
                                 &why)
            != 0)
        {
            return vlm_fail(err, VLM_EDEVICE, "the lock file cannot be made: "
                            "%.440s", why.text);
        }
    }

    return NGX_OK;
}


/*
 * The lock files are in the store.  Where the store cannot be written they are
 * beside the socket.  Two places would be two locks, so they stay there until
 * the owner has locked the store's files, too: see ngx_http_vlm_lock_look().
 */

ngx_int_t
ngx_http_vlm_lock_make(ngx_http_vlm_engine_t *eng, uid_t uid, gid_t gid,
    ngx_cycle_t *cycle, vlm_err_t *err)
{
    ngx_uint_t  i;

    if (!eng->zone->lock_beside) {

        if (ngx_http_vlm_lock_files(eng, uid, gid, err) == NGX_OK) {
            return NGX_OK;
        }

        ngx_http_vlm_log(NGX_LOG_WARN, cycle->log, 0, eng, "%s: the lock is "
                         "made beside the socket", err->text);

        ngx_memzero(err, sizeof(vlm_err_t));
    }

    eng->zone->lock_beside = 1;

    for (i = 0; i < NGX_HTTP_VLM_LOCKS; i++) {

        eng->conf.locks[NGX_HTTP_VLM_LOCKS + i] = eng->conf.locks[i];

        if (ngx_http_vlm_format(cycle->pool, &eng->conf.locks[i],
                                i ? "%V.lock.2" : "%V.lock", &eng->conf.socket)
            != NGX_OK)
        {
            return vlm_fail(err, VLM_EMEMORY, "no memory for the lock's name");
        }
    }

    return ngx_http_vlm_lock_files(eng, uid, gid, err);
}


static int
ngx_http_vlm_lock_one(ngx_http_vlm_engine_t *eng, ngx_uint_t i,
    vlm_err_t *err)
{
    int    e, *fd;
    char  *path;

    fd = &eng->life.lock_fds[i];
    path = (char *) eng->conf.locks[i].data;

    if (*fd != -1) {
        return 1;
    }

    e = vlm_file_lock(path, eng->life.lock_gone >= NGX_HTTP_VLM_LOCK_GONE, fd);

    if (e == 0) {
        return 1;
    }

    if (e == EWOULDBLOCK || e == EINTR) {
        return 0;
    }

    if (e == ENOENT && eng->life.lock_gone < NGX_HTTP_VLM_LOCK_GONE) {
        eng->life.lock_gone += NGX_HTTP_VLM_LOCK_WAIT;
        return 0;
    }

    return vlm_fail(err, VLM_EDEVICE, "the lock file \"%s\" cannot be locked: "
                    "%s", path, strerror(e));
}


/* 1: the lock is held, 0: not yet, -1: it cannot be taken; with "reload
   overlap" it is any of the files, else all that there are */

static int
ngx_http_vlm_lock_try(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    int         rc;
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_VLM_LOCKS; i++) {

        if (i && !eng->conf.overlap
            && access((char *) eng->conf.locks[i].data, F_OK) == -1
            && ngx_errno == ENOENT)
        {
            return 1;
        }

        rc = ngx_http_vlm_lock_one(eng, i, err);

        if (eng->conf.overlap ? rc != 0 : rc != 1) {
            return rc;
        }
    }

    return !eng->conf.overlap;
}


/*
 * At a reload the owner is a child of our own master, and will end; an owner
 * of another server ends only when an administrator stops it.  The owner cannot
 * be named if it runs in another container, or has left the open file to a
 * child.
 */

static void
ngx_http_vlm_lock_log(ngx_http_vlm_engine_t *eng)
{
    char        text[480], owner[64];
    long        pid, parent;
    ngx_uint_t  i, ours, level;

    /* with "reload wait" the first file may be ours already */

    i = eng->life.lock_fds[0] == -1 ? 0 : 1;

    pid = vlm_file_locker((char *) eng->conf.locks[i].data, &parent);
    ours = pid && parent == getppid();

    (void) snprintf(owner, sizeof(owner), pid ? "process %ld"
                    : "a process that is not visible from here", pid);

    (void) snprintf(text, sizeof(text), "waits for \"%.200s\", which %s has "
                    "locked: %s", eng->conf.locks[i].data, owner,
                    ours ? "an older worker of this server, which has the "
                           "model until it ends"
                         : "another server with this store and this name has "
                           "the model until it stops");

    level = ours ? NGX_LOG_NOTICE : NGX_LOG_WARN;

    ngx_http_vlm_log(level, eng->log, 0, eng, "%s", text);

    ngx_http_vlm_zone_state(eng, NGX_HTTP_VLM_LOADING, text);
}


/*
 * The new master of an upgrade may die while its worker waits for the model,
 * which the old server keeps.  Requests that came to this worker would wait
 * for ever, so it leaves them to the old one's.  An owner that has lost its
 * master, too, is an older worker of this server, and ends.
 */

static ngx_uint_t
ngx_http_vlm_lock_kept(ngx_http_vlm_engine_t *eng)
{
    long  pid, parent;

    pid = vlm_file_locker((char *) eng->conf.locks[0].data, &parent);

    return pid && parent && parent != (long) getppid();
}


static int
ngx_http_vlm_lock_pause(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    if (ngx_http_vlm_zone_masterless() && !ngx_quit && !ngx_exiting
        && ngx_http_vlm_lock_kept(eng))
    {
        ngx_http_vlm_log(NGX_LOG_WARN, eng->log, 0, eng, "the master has ended "
                         "while this worker waits for the model: it ends, too");
        (void) kill(ngx_pid, SIGQUIT);
    }

    if (eng->conf.vlm.stop(eng)) {
        err->code = VLM_ECANCELLED;
        return -1;
    }

    ngx_msleep(NGX_HTTP_VLM_LOCK_WAIT);

    return 0;
}


/* changes the file's time, by which an owner without a master knows that a
   worker waits; one who has a master gives the lock back at its command */

static void
ngx_http_vlm_lock_ask(ngx_http_vlm_engine_t *eng)
{
    (void) utimensat(AT_FDCWD, (char *) eng->conf.locks[0].data, NULL,
                     AT_SYMLINK_NOFOLLOW);
}


int
ngx_http_vlm_lock_take(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    int         rc;
    ngx_msec_t  ms;

    for (ms = 0; ms < eng->life.backoff; ms += NGX_HTTP_VLM_LOCK_WAIT) {

        if (ngx_http_vlm_lock_pause(eng, err) != 0) {
            return -1;
        }
    }

    ms = 0;

    do {
        rc = ngx_http_vlm_lock_try(eng, err);

        if (rc == 0 && ms == NGX_HTTP_VLM_LOCK_LOG) {
            ngx_http_vlm_lock_log(eng);
        }

        if (rc == 0 && ms % NGX_HTTP_VLM_LOCK_LOG == 0) {
            ngx_http_vlm_lock_ask(eng);
        }

        ms += NGX_HTTP_VLM_LOCK_WAIT;

    } while (rc == 0 && ngx_http_vlm_lock_pause(eng, err) == 0);

    if (rc == 1) {

        /* also in a worker after a crash, when the zone has another value */

        if (eng->conf.locks[NGX_HTTP_VLM_LOCKS].len) {
            eng->zone->lock_beside = 1;
        }

        ngx_http_vlm_zone_state(eng, NGX_HTTP_VLM_LOADING, "");
        return 0;
    }

    ngx_http_vlm_lock_give(eng);

    return -1;
}


/*
 * In a thread.  The new master of an upgrade may die when its workers have
 * taken over.  The one with the model goes on, since it may be the only one,
 * until a worker of the old master asks for the lock: no command of a master
 * will ever end it.
 */

static void
ngx_http_vlm_lock_asked(ngx_http_vlm_lock_look_t *look)
{
    ngx_file_info_t  fi;

    if (!ngx_http_vlm_zone_masterless()
        || lstat((char *) look->engine->conf.locks[0].data, &fi) == -1)
    {
        return;
    }

    look->wanted = look->orphan && fi.st_ino == look->asked.st_ino
                   && (fi.st_mtim.tv_sec != look->asked.st_mtim.tv_sec
                       || fi.st_mtim.tv_nsec != look->asked.st_mtim.tv_nsec);
    look->asked = fi;
    look->orphan = 1;
}


/*
 * In a thread: opens and locks again each file that was deleted, and the
 * store's, while the locks are beside the socket.  The loop owns the
 * descriptors that are held; one that it has closed meanwhile counts as held
 * here, or the loop drops the new one.
 */

static void
ngx_http_vlm_lock_look(void *data, ngx_log_t *log)
{
    ngx_http_vlm_lock_look_t *look = data;

    char       *path;
    ngx_uint_t  i;

    ngx_http_vlm_lock_asked(look);

    for (i = 0; i < NGX_HTTP_VLM_LOCK_FDS; i++) {

        look->fds[i] = -1;
        look->errs[i] = 0;

        path = (char *) look->engine->conf.locks[i].data;

        if (look->held[i % NGX_HTTP_VLM_LOCKS] != -1 && path
            && (look->held[i] == -1 || vlm_file_moved(look->held[i], path)))
        {
            look->errs[i] = vlm_file_lock(path, 1, &look->fds[i]);
        }
    }
}


static void
ngx_http_vlm_lock_install(ngx_http_vlm_engine_t *eng, ngx_uint_t i, int fd)
{
    int  *held;

    held = &eng->life.lock_fds[i];

    if (*held != -1) {
        ngx_http_vlm_log(NGX_LOG_WARN, eng->log, 0, eng, "the lock file \"%V\" "
                         "was deleted, and is made again",
                         &eng->conf.locks[i]);
        (void) close(*held);

    } else {
        ngx_http_vlm_log(NGX_LOG_NOTICE, eng->log, 0, eng, "the lock file "
                         "\"%V\" can be made: it is locked, too, and from the "
                         "next reload on it is the lock", &eng->conf.locks[i]);
        eng->zone->lock_beside = 0;
    }

    *held = fd;
}


static void
ngx_http_vlm_lock_looked(ngx_event_t *ev)
{
    ngx_http_vlm_lock_look_t *look = ev->data;

    ngx_uint_t              i, same;
    ngx_http_vlm_engine_t  *eng;

    eng = look->engine;

    /* otherwise the engine thread gives the locks back, or has done so */

    same = eng->life.opened && !eng->life.closed
           && eng->life.opened_at == look->opened_at;

    if (same && look->wanted && !ngx_quit && !ngx_exiting) {
        ngx_http_vlm_log(NGX_LOG_WARN, eng->log, 0, eng, "the master has ended "
                         "and another worker waits for the model: this worker "
                         "ends, too");
        (void) kill(ngx_pid, SIGQUIT);
    }

    for (i = 0; i < NGX_HTTP_VLM_LOCK_FDS; i++) {

        if (look->fds[i] != -1) {

            if (same) {
                ngx_http_vlm_lock_install(eng, i, look->fds[i]);

            } else {
                (void) close(look->fds[i]);
            }

        } else if (same && look->errs[i] && i < NGX_HTTP_VLM_LOCKS
                   && !eng->life.lock_lost)
        {
            ngx_http_vlm_log(NGX_LOG_CRIT, eng->log, look->errs[i], eng,
                             "the lock file \"%V\" was deleted, and cannot be "
                             "locked again: another server may load the model, "
                             "too", &eng->conf.locks[i]);
            eng->life.lock_lost = 1;
        }
    }
}


void
ngx_http_vlm_lock_keep(ngx_http_vlm_engine_t *eng)
{
    ngx_thread_task_t         *task;
    ngx_http_vlm_lock_look_t  *look;

    task = eng->life.lock_task;

    if (task == NULL) {

        task = ngx_thread_task_alloc(eng->cycle->pool,
                                     sizeof(ngx_http_vlm_lock_look_t));
        if (task == NULL) {
            return;
        }

        look = task->ctx;
        look->engine = eng;

        ngx_http_vlm_task_init(task, ngx_http_vlm_lock_look,
                               ngx_http_vlm_lock_looked, look, eng->log);

        eng->life.lock_task = task;
    }

    if (task->event.active) {
        return;
    }

    look = task->ctx;
    look->opened_at = eng->life.opened_at;
    ngx_memcpy(look->held, eng->life.lock_fds, sizeof(look->held));

    (void) ngx_thread_task_post(eng->prepares, task);
}


void
ngx_http_vlm_lock_give(ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_VLM_LOCK_FDS; i++) {

        if (eng->life.lock_fds[i] != -1) {
            (void) close(eng->life.lock_fds[i]);
            eng->life.lock_fds[i] = -1;
        }
    }
}
