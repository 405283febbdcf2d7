
/*
 * The connection to a Redis: one per process, guarded by a mutex, opened by the first call and
 * again after an error.  The only file that includes hiredis.
 *
 * No call takes longer than VLM_REDIS_CALL_MS: connecting, sending and each part of the answer wait
 * for the rest of that time, as hiredis' own timeouts are those of one read.  After a Redis has
 * failed to answer, callers are refused for VLM_REDIS_PAUSE_MS without a try, so that the threads
 * of the pool do not wait for it one after the other.
 *
 * Nothing that a Redis answers goes into a message but the code of an error, as an error may repeat
 * arguments: a password, or a text of a session.
 */


#define _GNU_SOURCE

#include "store/calls.h"
#include "store/redis.h"


#if (VLM_HIREDIS)

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif


#define CONNECT_MS      1000
#define MAX_REPLY       (160u << 20)       /* bytes: more than all texts of a session */
#define MAX_ITEMS       64                 /* of an answer, more than a session has entries */
#define MAX_ARGS        512
#define CODE            24                 /* bytes of an error's code */

#define OK              VLM_STORE_OK
#define EDOWN           VLM_STORE_EDOWN
#define EREADONLY       VLM_STORE_EREADONLY
#define EREFUSES        VLM_STORE_EREFUSES
#define EIO_            VLM_STORE_EIO


#if (HIREDIS_MAJOR > 0)
typedef size_t             elements_t;
#else
typedef int                elements_t;
#endif

typedef vlm_redis_t        redis_t;
typedef vlm_redis_conf_t   conf_t;
typedef vlm_redis_reply_t  reply_t;
typedef vlm_store_text_t   text_t;
typedef vlm_store_err_t    err_t;


struct vlm_redis_s {
    pthread_mutex_t               lock;
    redisContext                 *conn;        /* NULL: to be opened */
    redisReplyObjectFunctions     functions;   /* hiredis' own, but for arrays */
    conf_t                        conf;
    atomic_llong                  down_until;  /* ms: until then callers are refused */
};


static int eval(redis_t *r, const char *script, const text_t *args, size_t n_args, size_t n_keys,
    long long until, reply_t *reply, err_t *err);
static int connected(redis_t *r, long long until, err_t *err);
static int connect_to_one(redis_t *r, long long until);
static int introduce(redis_t *r, long long until, err_t *err);
static const char *command(redis_t *r, int n, const char **argv, const size_t *len,
    long long until, redisReply **reply);
static void *array_of(const redisReadTask *task, elements_t n);
static int wait_for(redis_t *r, short events, long long until);
static int items_of(redis_t *r, redisReply *from, reply_t *reply, err_t *err);
static int fail_down(redis_t *r, const char *why, err_t *err);
static int fail_reply(redis_t *r, const redisReply *reply, err_t *err);
static long long now_ms(void);


redis_t *
vlm_redis_new(const conf_t *conf)
{
    redis_t  *r;

    r = calloc(1, sizeof(redis_t));
    if (r == NULL) {
        return NULL;
    }

    if (pthread_mutex_init(&r->lock, NULL) != 0) {
        free(r);
        return NULL;
    }

    r->conf = *conf;

    return r;
}


void
vlm_redis_free(redis_t *r)
{
    if (r->conn != NULL) {
        redisFree(r->conn);
    }

    (void) pthread_mutex_destroy(&r->lock);
    free(r);
}


const char *
vlm_redis_name(const redis_t *r)
{
    return r->conf.name;
}


/* GCC 12's ThreadSanitizer does not see pthread_mutex_clocklock(), so it is told. */

static int
lock_until(pthread_mutex_t *lock, long long until)
{
    int              rc;
    struct timespec  ts;

    ts.tv_sec = (time_t) (until / 1000);
    ts.tv_nsec = (long) (until % 1000) * 1000000;

    rc = pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &ts);

#ifdef __SANITIZE_THREAD__
    __tsan_mutex_pre_lock(lock, __tsan_mutex_try_lock);
    __tsan_mutex_post_lock(lock, rc == 0 ? __tsan_mutex_try_lock
                                         : __tsan_mutex_try_lock | __tsan_mutex_try_lock_failed, 0);
#endif

    return rc;
}


int
vlm_redis_eval(redis_t *r, const char *script, const text_t *args, size_t n_args, size_t n_keys,
    reply_t *reply, err_t *err)
{
    int        rc;
    long long  until;

    memset(reply, 0, sizeof(reply_t));

    until = now_ms() + VLM_REDIS_CALL_MS;

    if (n_args + 3 > MAX_ARGS) {
        return vlm_db_fail(err, EIO_, "store %.150s: a script of %zu arguments",
                           r->conf.name, n_args);
    }

    if (now_ms() < atomic_load(&r->down_until) || lock_until(&r->lock, until) != 0) {
        return vlm_db_fail(err, EDOWN, "store %.150s does not answer", r->conf.name);
    }

    if (now_ms() < atomic_load(&r->down_until)) {
        rc = vlm_db_fail(err, EDOWN, "store %.150s does not answer", r->conf.name);

    } else {
        rc = eval(r, script, args, n_args, n_keys, until, reply, err);
    }

    (void) pthread_mutex_unlock(&r->lock);

    return rc;
}


static int
eval(redis_t *r, const char *script, const text_t *args, size_t n_args, size_t n_keys,
    long long until, reply_t *reply, err_t *err)
{
    int          rc;
    char         keys[24];
    size_t       i, len[MAX_ARGS];
    redisReply  *answer;
    const char  *argv[MAX_ARGS], *why;

    rc = connected(r, until, err);
    if (rc != OK) {
        return rc;
    }

    argv[0] = "EVAL";
    argv[1] = script;
    argv[2] = keys;

    (void) snprintf(keys, sizeof(keys), "%zu", n_keys);

    for (i = 0; i < 3; i++) {
        len[i] = strlen(argv[i]);
    }

    for (i = 0; i < n_args; i++) {
        argv[i + 3] = args[i].data != NULL ? args[i].data : "";
        len[i + 3] = args[i].data != NULL ? args[i].len : 0;
    }

    why = command(r, (int) n_args + 3, argv, len, until, &answer);
    if (why != NULL) {
        return fail_down(r, why, err);
    }

    rc = answer->type == REDIS_REPLY_ERROR ? fail_reply(r, answer, err)
                                           : items_of(r, answer, reply, err);
    freeReplyObject(answer);

    /* an address may have moved to another server: the next call looks there */

    if (rc == EREADONLY || rc == EREFUSES || rc == EDOWN) {
        redisFree(r->conn);
        r->conn = NULL;
    }

    return rc;
}


/* A connection that has something to read before a command was closed by the other end. */

static int
connected(redis_t *r, long long until, err_t *err)
{
    struct pollfd  fd;

    if (r->conn != NULL) {
        fd.fd = r->conn->fd;
        fd.events = POLLIN;

        if (poll(&fd, 1, 0) == 0) {
            return OK;
        }

        redisFree(r->conn);
        r->conn = NULL;
    }

    if (connect_to_one(r, until) != 0
        || (r->conf.socket[0] == '\0' && redisEnableKeepAlive(r->conn) != REDIS_OK)
        || fcntl(r->conn->fd, F_SETFL, O_NONBLOCK) != 0)
    {
        return fail_down(r, "cannot be reached", err);
    }

    r->functions = *r->conn->reader->fn;
    r->functions.createArray = array_of;
    r->conn->reader->fn = &r->functions;

    /* EAGAIN is no error: wait_for() waits */

    r->conn->flags &= ~REDIS_BLOCK;

    return introduce(r, until, err);
}


/* the first address of the host that answers: a name may have one of IPv6 where Redis has none */

static int
connect_to_one(redis_t *r, long long until)
{
    int             local;
    size_t          i;
    long long       ms;
    struct timeval  tv;

    local = r->conf.socket[0] != '\0';

    for (i = 0; local ? i == 0 : r->conf.address[i][0] != '\0'; i++) {

        ms = until - now_ms();
        ms = ms < CONNECT_MS ? ms : CONNECT_MS;

        if (ms <= 0) {
            break;
        }

        tv.tv_sec = (time_t) (ms / 1000);
        tv.tv_usec = (suseconds_t) (ms % 1000 * 1000);

        r->conn = local ? redisConnectUnixWithTimeout(r->conf.socket, tv)
                        : redisConnectWithTimeout(r->conf.address[i], r->conf.port, tv);

        if (r->conn != NULL && r->conn->err == 0) {
            return 0;
        }

        redisFree(r->conn);
        r->conn = NULL;
    }

    return -1;
}


static int
introduce(redis_t *r, long long until, err_t *err)
{
    int          rc, n;
    char         database[16];
    size_t       len[3], i;
    redisReply  *answer;
    const char  *argv[3], *why;

    if (r->conf.password[0] != '\0') {
        n = r->conf.user[0] != '\0' ? 3 : 2;

        argv[0] = "AUTH";
        argv[1] = n == 3 ? r->conf.user : r->conf.password;
        argv[2] = r->conf.password;

        for (i = 0; i < 3; i++) {
            len[i] = strlen(argv[i]);
        }

        why = command(r, n, argv, len, until, &answer);
        if (why != NULL) {
            return fail_down(r, why, err);
        }

        rc = answer->type == REDIS_REPLY_ERROR ? fail_reply(r, answer, err) : OK;
        freeReplyObject(answer);

        if (rc != OK) {
            goto refused;
        }
    }

    if (r->conf.database != 0) {
        (void) snprintf(database, sizeof(database), "%d", r->conf.database);

        argv[0] = "SELECT";
        argv[1] = database;
        len[0] = 6;
        len[1] = strlen(database);

        why = command(r, 2, argv, len, until, &answer);
        if (why != NULL) {
            return fail_down(r, why, err);
        }

        rc = answer->type == REDIS_REPLY_ERROR ? fail_reply(r, answer, err) : OK;
        freeReplyObject(answer);

        if (rc != OK) {
            goto refused;
        }
    }

    return OK;

refused:

    redisFree(r->conn);
    r->conn = NULL;

    return rc;
}


/* NULL and an answer to be freed; or why the connection is of no use any more */

static const char *
command(redis_t *r, int n, const char **argv, const size_t *len, long long until,
    redisReply **reply)
{
    int            done;
    void          *answer;
    size_t         bytes, before;
    redisContext  *c;

    static const char  silent[] = "does not answer", wrong[] = "answers what no Redis answers";

    c = r->conn;
    answer = NULL;

    if (redisAppendCommandArgv(c, n, argv, len) != REDIS_OK) {
        return silent;
    }

    /* the socket does not block, so that each wait is for the rest of the time */

    for (done = 0; !done; /* void */) {

        if (wait_for(r, POLLOUT, until) != 0 || redisBufferWrite(c, &done) != REDIS_OK) {
            return silent;
        }
    }

    for (bytes = 0; bytes <= MAX_REPLY; bytes += c->reader->len - before) {

        if (redisGetReplyFromReader(c, &answer) != REDIS_OK) {
            return wrong;
        }

        if (answer != NULL) {
            *reply = answer;
            return NULL;
        }

        before = c->reader->len;

        if (wait_for(r, POLLIN, until) != 0 || redisBufferRead(c) != REDIS_OK) {
            return silent;
        }
    }

    return wrong;
}


/*
 * hiredis takes memory for as many elements as an array says that it has, and arrays in arrays, as
 * deep as they go.  The answers of scripts are arrays of strings.  NULL: it is refused.
 */

static void *
array_of(const redisReadTask *task, elements_t n)
{
    redisReply  *reply;

    if (task->parent != NULL || n > MAX_ITEMS) {
        return NULL;
    }

    reply = calloc(1, sizeof(redisReply));

    if (reply == NULL) {
        return NULL;
    }

    reply->type = task->type;
    reply->element = calloc((size_t) n + 1, sizeof(redisReply *));
    reply->elements = (size_t) n;

    if (reply->element == NULL) {
        free(reply);
        return NULL;
    }

    return reply;
}


static int
wait_for(redis_t *r, short events, long long until)
{
    int            n;
    long long      ms;
    struct pollfd  fd;

    fd.fd = r->conn->fd;
    fd.events = events;

    for ( ;; ) {

        ms = until - now_ms();
        n = ms > 0 ? poll(&fd, 1, (int) ms) : 0;

        if (n == 1) {
            return 0;
        }

        if (n == 0 || errno != EINTR) {
            return -1;
        }
    }
}


static int
items_of(redis_t *r, redisReply *from, reply_t *reply, err_t *err)
{
    size_t       i;
    text_t       text;
    redisReply  *e;

    if (from->type != REDIS_REPLY_ARRAY) {
        goto bad;
    }

    reply->item = calloc(from->elements + 1, sizeof(text_t));

    if (reply->item == NULL) {
        goto no_memory;
    }

    for (i = 0; i < from->elements; i++) {
        e = from->element[i];

        if (e->type == REDIS_REPLY_NIL) {
            continue;
        }

        if (e->type != REDIS_REPLY_STRING) {
            goto bad;
        }

        reply->n = i + 1;

        text.data = e->str;
        text.len = (size_t) e->len;

        if (vlm_store_copy(&reply->item[i], text) != 0) {
            goto no_memory;
        }
    }

    reply->n = from->elements;

    return OK;

bad:

    vlm_redis_reply_free(reply);

    return vlm_db_fail(err, EIO_, "store %.150s answers what no Redis answers", r->conf.name);

no_memory:

    vlm_redis_reply_free(reply);

    return vlm_db_fail(err, EIO_, "no memory for an answer of Redis");
}


void
vlm_redis_reply_free(reply_t *reply)
{
    size_t  i;

    for (i = 0; i < reply->n; i++) {
        free((void *) reply->item[i].data);
    }

    free(reply->item);
    memset(reply, 0, sizeof(reply_t));
}


/* the connection is closed: an answer that comes late belongs to no other command */

static int
fail_down(redis_t *r, const char *why, err_t *err)
{
    if (r->conn != NULL) {
        redisFree(r->conn);
        r->conn = NULL;
    }

    atomic_store(&r->down_until, now_ms() + VLM_REDIS_PAUSE_MS);

    return vlm_db_fail(err, EDOWN, "store %.150s %s", r->conf.name, why);
}


/*
 * The code is the first word, in capitals.  In an error of a script Redis before 7 has the code of
 * the command behind other words.
 */

static int
fail_reply(redis_t *r, const redisReply *reply, err_t *err)
{
    size_t  i, len;

    static const struct {
        const char               *code;
        int                       rc;
        const char               *text;
    } known[] = {
        { "OOM", EREFUSES, "has no memory left (maxmemory)" },
        { "READONLY", EREFUSES, "is a replica, which cannot be written" },
        { "MISCONF", EREFUSES, "refuses writes, because it cannot save them" },
        { "NOREPLICAS", EREFUSES, "refuses writes, because it has too few replicas" },
        { "NOAUTH", EREADONLY, "wants a password" },
        { "WRONGPASS", EREADONLY, "does not take this user and password" },
        { "NOPERM", EREADONLY, "does not let this user run scripts on vlm:*" },
        { "LOADING", EDOWN, "is loading its data" },
        { "MASTERDOWN", EDOWN, "is a replica without its primary" },
        { "CLUSTERDOWN", EDOWN, "is part of a cluster that is down" },
        { "BUSY", EDOWN, "is busy with a script" },
    };

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {

        len = strlen(known[i].code);

        if (strncmp(reply->str, known[i].code, len) == 0
            || (strncmp(reply->str, "ERR Error running script", 24) == 0
                && strstr(reply->str, known[i].code) != NULL))
        {
            return vlm_db_fail(err, known[i].rc, "store %.150s %s", r->conf.name, known[i].text);
        }
    }

    len = strspn(reply->str, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return vlm_db_fail(err, EIO_, "store %.150s answers with the error %.*s", r->conf.name,
                       (int) (len < CODE ? len : CODE), reply->str);
}


static long long
now_ms(void)
{
    struct timespec  now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);

    return (long long) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}


#endif /* VLM_HIREDIS */
