
/*
 * A store in a Redis, apart from the tests that it shares with SQLite (store_test.c, files_test.c,
 * evict_test.c): addresses, the queue of a session, expiry, and a Redis that is away, hangs,
 * refuses, or has what no server has stored.
 */


#define _GNU_SOURCE

#include <arpa/inet.h>
#include <pthread.h>

#include "store/store_fixture.h"


#define EDOWN     VLM_STORE_EDOWN
#define EREFUSES  VLM_STORE_EREFUSES
#define EINPUT    VLM_STORE_EINPUT
#define WAITS     VLM_STORE_WAITS
#define EBUSY_    VLM_STORE_EBUSY


typedef vlm_store_lease_t  lease_t;


static void
an_address_is_read_or_refused_without_its_password(void **state)
{
    size_t            i;
    err_t             err;
    vlm_redis_conf_t  c;

    static const char *const  bad[] = {
        "", "redis", "redis://", "http://secret@h", "rediss://:secret@h", "redis://secret@h",
        "redis://:@h", "redis://:se%00cret@h", "redis://:secret%2@h", "redis://:secret%zz@h",
        "redis://:secret@", "redis://:secret@h:", "redis://:secret@h:0", "redis://:secret@h:65536",
        "redis://:secret@h:6379x", "redis://:secret@h/16384", "redis://:secret@h/-1",
        "redis://:secret@h/1/2", "redis://:secret@h h", "redis://:secret@[::1",
        "redis://:secret@[::1]6379", "redis://:secret@unix:", "redis://:secret@unix:relative",
        "redis://:secret@unix:/s:1", "redis://:secret@unix:/s:/x"
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err.text[0] = '\0';
        assert_int_equal(vlm_redis_parse(bad[i], &c, &err), EINPUT);
        assert_non_null(strstr(err.text, "store redis: "));
        assert_null(strstr(err.text, "secret"));
    }

    assert_int_equal(vlm_redis_parse("redis://h", &c, &err), OK);
    assert_string_equal(c.name, "redis h:6379/0");
    assert_string_equal(c.password, "");

    assert_int_equal(vlm_redis_parse("redis://me:a%40b%3a%2f@db.example:7000/3", &c, &err), OK);
    assert_string_equal(c.name, "redis db.example:7000/3");
    assert_string_equal(c.user, "me");
    assert_string_equal(c.password, "a@b:/");
    assert_int_equal(c.port, 7000);
    assert_int_equal(c.database, 3);

    assert_int_equal(vlm_redis_parse("redis://:p@q@[::1]:7000/", &c, &err), OK);
    assert_string_equal(c.host, "::1");
    assert_string_equal(c.password, "p@q");
    assert_int_equal(vlm_redis_resolve(&c, &err), OK);
    assert_string_equal(c.address[0], "::1");
    assert_string_equal(c.address[1], "");

    assert_int_equal(vlm_redis_parse("redis://:pw@unix:/run/r.sock:/2", &c, &err), OK);
    assert_string_equal(c.name, "redis unix:/run/r.sock:/2");
    assert_string_equal(c.socket, "/run/r.sock");
    assert_int_equal(c.database, 2);
    assert_int_equal(vlm_redis_resolve(&c, &err), OK);

    assert_int_equal(vlm_redis_parse("redis://no-such-host.invalid", &c, &err), OK);
    assert_int_equal(vlm_redis_resolve(&c, &err), EINPUT);
}


/* ---- the queue ----------------------------------------------------------- */


static void
new_lease(store_t *st, lease_t *l)
{
    assert_int_equal(vlm_store_lease_new(st, l, NULL), OK);
    assert_int_equal(strlen(l->token), 32);
}


static int
append_with(store_t *st, const char *id, const lease_t *l, const char *text, size_t *n)
{
    int     used;
    turn_t  t;

    memset(&t, 0, sizeof(t));
    t.message = S(text);
    t.answer = S(text);
    t.lease = l;

    return vlm_store_session_append(st, S(id), epoch_of(st, id), &t, n, &used, NULL);
}


/* the place's time has passed, as if its server had died */

static void
forget(const char *id, const lease_t *l)
{
    char  text[256];

    (void) snprintf(text, sizeof(text), "redis.call('HSET', 'vlm:x:%s', ARGV[1], 1) return {}", id);
    assert_int_equal(redis_script(text, l->token), 0);
}


static void
requests_of_a_session_are_first_in_the_order_in_which_they_came(void **state)
{
    size_t    n;
    store_t  *st, *other;
    lease_t   a, b, c, d;

    st = *state;
    other = open_store();
    assert_non_null(other);

    new_lease(st, &a);
    new_lease(other, &b);
    new_lease(st, &c);
    new_lease(st, &d);

    assert_int_equal(vlm_store_session_ensure(st, S("s"), NULL), OK);

    assert_int_equal(vlm_store_lease(st, S("s"), &a, NULL), OK);
    assert_int_equal(vlm_store_lease(other, S("s"), &b, NULL), WAITS);
    assert_int_equal(vlm_store_lease(st, S("s"), &c, NULL), WAITS);
    assert_true(a.number < b.number && b.number < c.number);

    /* asking again changes nothing, and other sessions have lines of their own */

    assert_int_equal(vlm_store_lease(st, S("s"), &c, NULL), WAITS);
    assert_int_equal(vlm_store_lease(st, S("s"), &a, NULL), OK);
    assert_int_equal(vlm_store_lease(st, S("t"), &d, NULL), OK);

    assert_int_equal(append_with(st, "s", &a, "a", &n), OK);
    assert_int_equal(append_with(st, "s", &c, "c", &n), EBUSY_);
    assert_int_equal(vlm_store_lease_leave(st, S("s"), a.token, NULL), OK);

    assert_int_equal(vlm_store_lease(st, S("s"), &c, NULL), WAITS);
    assert_int_equal(vlm_store_lease(other, S("s"), &b, NULL), OK);
    assert_int_equal(append_with(other, "s", &b, "b", &n), OK);
    assert_int_equal(n, 4);

    /* one that leaves without a turn, and one that leaves twice, or another's place */

    assert_int_equal(vlm_store_lease_leave(other, S("s"), b.token, NULL), OK);
    assert_int_equal(vlm_store_lease_leave(other, S("s"), b.token, NULL), OK);
    assert_int_equal(vlm_store_lease(st, S("s"), &c, NULL), OK);

    vlm_store_close(other);
}


static void
the_place_of_a_server_that_died_is_passed_and_its_late_turn_is_refused(void **state)
{
    size_t             n;
    store_t           *st;
    lease_t            dead, next;
    loaded_t           l;
    vlm_store_place_t  places[2];

    st = *state;

    assert_int_equal(vlm_store_session_ensure(st, S("s"), NULL), OK);

    new_lease(st, &dead);
    new_lease(st, &next);

    assert_int_equal(vlm_store_lease(st, S("s"), &dead, NULL), OK);
    assert_int_equal(vlm_store_lease(st, S("s"), &next, NULL), WAITS);

    /* as long as it is kept, it is waited for */

    forget("s", &dead);
    places[0].session = S("s");
    places[0].token = dead.token;
    places[1].session = S("s");
    places[1].token = next.token;
    assert_int_equal(vlm_store_lease_keep(st, places, 2, NULL), OK);
    assert_int_equal(vlm_store_lease(st, S("s"), &next, NULL), WAITS);

    forget("s", &dead);
    assert_int_equal(vlm_store_lease(st, S("s"), &next, NULL), OK);

    /* while the next works, and after its turn */

    assert_int_equal(append_with(st, "s", &dead, "late", &n), EBUSY_);
    assert_int_equal(append_with(st, "s", &next, "next", &n), OK);
    assert_int_equal(vlm_store_lease_leave(st, S("s"), next.token, NULL), OK);
    assert_int_equal(append_with(st, "s", &dead, "late", &n), EBUSY_);

    /* keeping a place that was lost does not bring it back; asking does, at the end */

    assert_int_equal(vlm_store_lease_keep(st, places, 1, NULL), OK);
    assert_int_equal(append_with(st, "s", &dead, "late", &n), EBUSY_);
    assert_int_equal(vlm_store_lease(st, S("s"), &dead, NULL), OK);
    assert_true(dead.number > next.number);
    assert_int_equal(append_with(st, "s", &dead, "again", &n), OK);

    assert_int_equal(vlm_store_session_load(st, S("s"), MAX, &l, NULL), OK);
    assert_int_equal(l.n, 4);
    assert_string_equal(l.entries[1].content.data, "next");
    assert_string_equal(l.entries[3].content.data, "again");
    vlm_store_loaded_free(&l);
}


static void
a_redis_that_forgot_the_line_loses_no_turn(void **state)
{
    size_t    n;
    store_t  *st;
    lease_t   a, b;

    st = *state;

    assert_int_equal(vlm_store_session_ensure(st, S("s"), NULL), OK);

    new_lease(st, &a);
    new_lease(st, &b);
    assert_int_equal(vlm_store_lease(st, S("s"), &a, NULL), OK);

    /* numbers go on rising although the last one is gone, too */

    assert_int_equal(redis_script("redis.call('DEL', 'vlm:q:s', 'vlm:x:s', 'vlm:ticket') return {}",
                                  ""), 0);
    assert_int_equal(append_with(st, "s", &a, "a", &n), OK);
    assert_int_equal(vlm_store_lease(st, S("s"), &b, NULL), OK);
    assert_true(b.number > a.number);
    assert_int_equal(append_with(st, "s", &b, "b", &n), OK);
}


static void
many_places_are_kept_at_once(void **state)
{
    size_t             i;
    store_t           *st;
    lease_t           *l;
    vlm_store_place_t *places;

    st = *state;

    l = calloc(150, sizeof(lease_t));
    places = calloc(150, sizeof(vlm_store_place_t));
    assert_true(l != NULL && places != NULL);

    for (i = 0; i < 150; i++) {
        new_lease(st, &l[i]);
        assert_int_equal(vlm_store_lease(st, S("s"), &l[i], NULL), i == 0 ? OK : WAITS);
        places[i].session = S("s");
        places[i].token = l[i].token;
    }

    for (i = 0; i < 150; i++) {
        forget("s", &l[i]);
    }

    assert_int_equal(vlm_store_lease_keep(st, places, 150, NULL), OK);
    assert_int_equal(vlm_store_lease(st, S("s"), &l[149], NULL), WAITS);
    assert_int_equal(redis_script("local n = 0 "
                                  "for _, t in ipairs(redis.call('HVALS', 'vlm:x:s')) do"
                                  "  if tonumber(t) > 1 then n = n + 1 end end "
                                  "return {tostring(n)}", ""), 150);
    free(l);
    free(places);
}


typedef struct {
    store_t                      *st;
    int                           i;
    int                           rc;
} writer_t;


/* acts as a server: takes a place, stores its turn when it is the first, leaves the queue */

static void *
writer(void *data)
{
    int              i;
    char             text[32];
    size_t           n;
    lease_t          l;
    loaded_t         loaded;
    writer_t        *w = data;
    struct timespec  pause = { 0, 1000000 };

    for (i = 0; i < 25 && w->rc == OK; i++) {

        w->rc = vlm_store_lease_new(w->st, &l, NULL);

        while (w->rc == OK && (w->rc = vlm_store_lease(w->st, S("s"), &l, NULL)) == WAITS) {
            (void) nanosleep(&pause, NULL);
            w->rc = OK;
        }

        /* it sees all turns before it */

        if (w->rc == OK) {
            w->rc = vlm_store_session_load(w->st, S("s"), 1, &loaded, NULL);
        }

        if (w->rc == OK) {
            (void) snprintf(text, sizeof(text), "%d", loaded.n == 0 ? 1
                            : atoi(loaded.entries[0].content.data) + 1);
            vlm_store_loaded_free(&loaded);
            w->rc = append_with(w->st, "s", &l, text, &n);
        }

        if (w->rc == OK) {
            w->rc = vlm_store_lease_leave(w->st, S("s"), l.token, NULL);
        }
    }

    return NULL;
}


static void
four_servers_take_turns_and_none_is_lost(void **state)
{
    int        i;
    store_t   *st;
    writer_t   w[4];
    loaded_t   l;
    pthread_t  thread[4];

    st = *state;

    assert_int_equal(vlm_store_session_ensure(st, S("s"), NULL), OK);

    for (i = 0; i < 4; i++) {
        w[i].st = open_store();
        w[i].i = i;
        w[i].rc = OK;
        assert_non_null(w[i].st);
        assert_int_equal(pthread_create(&thread[i], NULL, writer, &w[i]), 0);
    }

    for (i = 0; i < 4; i++) {
        (void) pthread_join(thread[i], NULL);
        assert_int_equal(w[i].rc, OK);
        vlm_store_close(w[i].st);
    }

    assert_int_equal(vlm_store_session_load(st, S("s"), MAX, &l, NULL), OK);
    assert_int_equal(l.n, 20);
    assert_string_equal(l.entries[19].content.data, "100");
    vlm_store_loaded_free(&l);
}


/* ---- expiry -------------------------------------------------------------- */


static void
a_session_expires_in_redis_and_each_use_begins_its_time_anew(void **state)
{
    int       used;
    size_t    n;
    store_t  *st;
    loaded_t  l;

    (void) state;

    st = vlm_store_open_redis(&redis_conf, dir, 1000);
    assert_non_null(st);

    assert_int_equal(vlm_store_session_ensure(st, S("s"), NULL), OK);
    assert_int_equal(append(st, "s", epoch_of(st, "s"), 1, &n, &used, NULL), OK);
    assert_int_equal(redis_script("redis.call('EXPIRE', 'vlm:s:s', 5) "
                                  "redis.call('PERSIST', 'vlm:t:s') return {}", ""), 0);
    assert_int_equal(append(st, "s", epoch_of(st, "s"), 2, &n, &used, NULL), OK);

    assert_in_range(redis_script("return {tostring(redis.call('TTL', 'vlm:s:s'))}", ""), 900, 1000);
    assert_in_range(redis_script("return {tostring(redis.call('TTL', 'vlm:t:s'))}", ""), 900, 1000);
    assert_in_range(redis_script("return {tostring(redis.call('TTL', 'vlm:k:s'))}", ""), 900, 1000);
    assert_int_equal(count(st), 1);

    /* its time has passed: Redis has removed it, and the count follows */

    age_sessions(1001);
    assert_int_equal(redis_script("redis.call('DEL', 'vlm:s:s') return {}", ""), 0);
    assert_int_equal(vlm_store_session_load(st, S("s"), MAX, &l, NULL), NOTFOUND);
    assert_int_equal(count(st), 0);

    /* what it left behind belongs to no session of the same name */

    assert_int_equal(vlm_store_session_ensure(st, S("s"), NULL), OK);
    assert_int_equal(vlm_store_session_load(st, S("s"), MAX, &l, NULL), OK);
    assert_int_equal(l.total, 0);
    vlm_store_loaded_free(&l);

    vlm_store_close(st);

    /* without an age a session stays */

    st = vlm_store_open_redis(&redis_conf, dir, 0);
    assert_non_null(st);
    assert_int_equal(append(st, "s", epoch_of(st, "s"), 3, &n, &used, NULL), OK);
    assert_int_equal(redis_script("return {tostring(redis.call('TTL', 'vlm:s:s'))}", ""), -1);
    vlm_store_close(st);
}


/* ---- a Redis that does not work ------------------------------------------ */


static long long
ms_since(const struct timespec *from)
{
    struct timespec  now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);

    return (now.tv_sec - from->tv_sec) * 1000LL + (now.tv_nsec - from->tv_nsec) / 1000000;
}


/* until the pause after a failure has passed, and the Redis answers */

static int
ensure_soon(store_t *st)
{
    int              i, rc;
    struct timespec  pause = { 0, 20 * 1000000 };

    for (i = 0; i < 60 * 50; i++) {

        rc = vlm_store_session_ensure(st, S("s"), NULL);

        if (rc != EDOWN) {
            return rc;
        }

        (void) nanosleep(&pause, NULL);
    }

    return EDOWN;
}


static void
a_redis_that_is_away_is_reported_and_one_that_is_back_is_used(void **state)
{
    int       used;
    size_t    n;
    err_t     err;
    store_t  *st;

    st = *state;

    assert_int_equal(vlm_store_usable(st, &err), OK);
    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);
    assert_int_equal(append(st, "s", epoch_of(st, "s"), 1, &n, &used, &err), OK);

    redis_kill();

    assert_int_equal(append(st, "s", 0, 2, &n, &used, &err), EDOWN);
    assert_non_null(strstr(err.text, "store redis unix:"));
    assert_int_equal(vlm_store_usable(st, &err), EDOWN);
    assert_string_equal(vlm_store_text(err.code), "The store does not answer, try again");

    assert_int_equal(redis_run(NULL), 0);
    assert_int_equal(ensure_soon(st), OK);
    assert_int_equal(vlm_store_usable(st, &err), OK);

    /* one that closed the connection while it was idle is no failure */

    assert_int_equal(redis_command("CLIENT KILL TYPE normal\r\n"), ':');
    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);
}


/* as "localhost", which is ::1 first, of a Redis that listens on 127.0.0.1 alone */

static void
all_addresses_of_a_host_are_tried(void **state)
{
    int                 fd;
    char                url[64], port[16];
    err_t               err;
    store_t            *one;
    socklen_t           len;
    vlm_redis_conf_t    c;
    struct sockaddr_in  sin;

    char *const  tcp[] = { "--port", port, "--bind", "127.0.0.1", NULL };

    (void) state;

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    len = sizeof(sin);

    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &sin, sizeof(sin)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &sin, &len), 0);
    (void) close(fd);

    (void) snprintf(port, sizeof(port), "%d", ntohs(sin.sin_port));
    redis_kill();
    assert_int_equal(redis_run(tcp), 0);

    (void) snprintf(url, sizeof(url), "redis://127.0.0.1:%s", port);
    assert_int_equal(vlm_redis_parse(url, &c, &err), OK);
    assert_int_equal(vlm_redis_resolve(&c, &err), OK);
    memcpy(c.address[1], c.address[0], sizeof(c.address[0]));
    strcpy(c.address[0], "127.0.0.9");

    one = vlm_store_open_redis(&c, dir, 0);
    assert_non_null(one);
    assert_int_equal(vlm_store_session_ensure(one, S("s"), &err), OK);
    vlm_store_close(one);

    redis_kill();
    assert_int_equal(redis_run(NULL), 0);
}


static void *
asker(void *data)
{
    (void) vlm_store_session_ensure(data, S("s"), NULL);

    return NULL;
}


static void
a_redis_that_hangs_holds_no_thread_for_long(void **state)
{
    int              i;
    store_t         *st;
    pthread_t        thread[8];
    struct timespec  from;

    st = *state;

    assert_int_equal(vlm_store_session_ensure(st, S("s"), NULL), OK);
    assert_int_equal(kill(redis_pid, SIGSTOP), 0);

    (void) clock_gettime(CLOCK_MONOTONIC, &from);

    for (i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, asker, st), 0);
    }

    for (i = 0; i < 8; i++) {
        (void) pthread_join(thread[i], NULL);
    }

    /* all of them wait for the same three seconds, and those that come then do not wait */

    assert_in_range(ms_since(&from), VLM_REDIS_CALL_MS - 100, 2 * VLM_REDIS_CALL_MS);

    (void) clock_gettime(CLOCK_MONOTONIC, &from);
    assert_int_equal(vlm_store_session_ensure(st, S("s"), NULL), EDOWN);
    assert_in_range(ms_since(&from), 0, VLM_REDIS_CALL_MS - 500);

    assert_int_equal(kill(redis_pid, SIGCONT), 0);
    assert_int_equal(ensure_soon(st), OK);
}


static void
a_redis_that_refuses_says_why_without_the_password(void **state)
{
    int                i, rc, used;
    char               url[160], *text;
    pid_t              old;
    size_t             n;
    err_t              err;
    turn_t             t;
    store_t           *st, *one;
    lease_t            lease;
    uint64_t           epoch;
    struct timespec    pause = { 1, 0 };
    vlm_redis_conf_t   c;

    char *const  secret[] = { "--requirepass", "se cret", NULL };

    st = *state;

    /* no memory left: what is there can be read */

    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);
    assert_int_equal(redis_command("CONFIG SET maxmemory 1\r\n"), '+');
    assert_int_equal(append(st, "s", epoch_of(st, "s"), 1, &n, &used, &err), EREFUSES);
    assert_non_null(strstr(err.text, "has no memory left"));
    assert_int_equal(redis_command("CONFIG SET maxmemory 0\r\n"), '+');

    /* a primary that has lost its replicas */

    assert_int_equal(redis_command("CONFIG SET min-replicas-to-write 1\r\n"), '+');
    assert_int_equal(append(st, "s", epoch_of(st, "s"), 1, &n, &used, &err), EREFUSES);
    assert_non_null(strstr(err.text, "has too few replicas"));
    assert_int_equal(redis_command("CONFIG SET min-replicas-to-write 0\r\n"), '+');
    assert_int_equal(append(st, "s", epoch_of(st, "s"), 1, &n, &used, &err), OK);

    /* a primary that became a replica, whose address another server has now */

    old = redis_pid;
    assert_int_equal(redis_command("REPLICAOF 127.0.0.1 1\r\n"), '+');
    assert_int_equal(vlm_store_session_ensure(st, S("new"), &err), EREFUSES);
    assert_non_null(strstr(err.text, "is a replica"));
    (void) unlink(redis_socket);
    assert_int_equal(redis_run(NULL), 0);
    assert_int_equal(vlm_store_session_ensure(st, S("new"), &err), OK);
    (void) kill(old, SIGKILL);
    (void) waitpid(old, NULL, 0);
    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);

    /* a text that is not UTF-8 would not be readable */

    memset(&t, 0, sizeof(t));
    t.message = S("\xff");
    t.answer = S("");
    assert_int_equal(vlm_store_session_append(st, S("s"), epoch_of(st, "s"), &t, &n, &used, &err),
                     EINPUT);

    redis_kill();
    assert_int_equal(redis_run(secret), 0);

    (void) vlm_store_session_ensure(st, S("s"), NULL);
    assert_int_equal(ensure_soon(st), VLM_STORE_EREADONLY);
    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), VLM_STORE_EREADONLY);
    assert_non_null(strstr(err.text, "wants a password"));

    (void) snprintf(url, sizeof(url), "redis://:wr0ng@unix:%s", redis_socket);
    assert_int_equal(vlm_redis_parse(url, &c, &err), OK);
    one = vlm_store_open_redis(&c, dir, 0);
    assert_non_null(one);
    assert_int_equal(vlm_store_session_ensure(one, S("s"), &err), VLM_STORE_EREADONLY);
    assert_non_null(strstr(err.text, "does not take this user and password"));
    assert_null(strstr(err.text, "wr0ng"));
    vlm_store_close(one);

    (void) snprintf(url, sizeof(url), "redis://:se%%20cret@unix:%s:/9999", redis_socket);
    assert_int_equal(vlm_redis_parse(url, &c, &err), OK);
    one = vlm_store_open_redis(&c, dir, 0);
    assert_non_null(one);
    assert_int_equal(vlm_store_session_ensure(one, S("s"), &err), VLM_STORE_EIO);
    assert_null(strstr(err.text, "cret"));
    vlm_store_close(one);

    (void) snprintf(url, sizeof(url), "redis://default:se%%20cret@unix:%s:/1", redis_socket);
    assert_int_equal(vlm_redis_parse(url, &c, &err), OK);
    one = vlm_store_open_redis(&c, dir, 0);
    assert_non_null(one);
    assert_int_equal(vlm_store_session_ensure(one, S("s"), &err), OK);

    /* a user with no more rights than docs/troubleshooting.md has, and one with fewer */

    redis_kill();
    assert_int_equal(redis_run(NULL), 0);
    assert_int_equal(redis_command("ACL SETUSER less on >pw ~vlm:* +@read +@write +select"
                                   " +time\r\n"), '+');
    assert_int_equal(redis_command("ACL SETUSER some on >pw ~vlm:* +eval +@read +@write +select"
                                   " +time\r\n"), '+');

    (void) snprintf(url, sizeof(url), "redis://less:pw@unix:%s:/1", redis_socket);
    assert_int_equal(vlm_redis_parse(url, &c, &err), OK);
    vlm_store_close(one);
    one = vlm_store_open_redis(&c, dir, 0);
    assert_non_null(one);
    assert_int_equal(vlm_store_session_ensure(one, S("s"), &err), VLM_STORE_EREADONLY);
    assert_non_null(strstr(err.text, "does not let this user run scripts"));
    vlm_store_close(one);

    (void) snprintf(url, sizeof(url), "redis://some:pw@unix:%s:/1", redis_socket);
    assert_int_equal(vlm_redis_parse(url, &c, &err), OK);
    one = vlm_store_open_redis(&c, dir, 1000);
    assert_non_null(one);
    assert_int_equal(vlm_store_usable(one, &err), OK);
    assert_int_equal(vlm_store_session_ensure(one, S("s"), &err), OK);
    assert_int_equal(vlm_store_lease_new(one, &lease, &err), OK);
    assert_int_equal(vlm_store_lease(one, S("s"), &lease, &err), OK);
    assert_int_equal(append_with(one, "s", &lease, "a", &n), OK);
    assert_int_equal(vlm_store_lease_leave(one, S("s"), lease.token, &err), OK);
    assert_int_equal(count(one), 1);

    /* the longest texts that a session may have: a busy machine takes longer than one call */

    text = malloc(VLM_STORE_TEXT);
    assert_non_null(text);
    memset(text, 't', VLM_STORE_TEXT);
    t.message.data = text;
    t.message.len = VLM_STORE_TEXT;
    t.answer = t.message;
    t.thinking = t.message;

    epoch = epoch_of(one, "s");

    for (i = 0; i < 60; i++) {
        rc = vlm_store_session_append(one, S("s"), epoch, &t, &n, &used, &err);

        if (rc != EDOWN) {
            break;
        }

        (void) nanosleep(&pause, NULL);
    }

    assert_int_equal(rc, OK);
    free(text);
    vlm_store_close(one);

    redis_kill();
    assert_int_equal(redis_run(NULL), 0);
}


static void
what_no_server_has_stored_is_refused(void **state)
{
    size_t    i;
    err_t     err;
    store_t  *st;
    loaded_t  l;
    char      longer[VLM_STORE_ID + 2];

    static const char *const  damage[] = {
        "redis.call('RPUSH', 'vlm:t:s', 'junk')",
        "redis.call('RPUSH', 'vlm:t:s', '')",
        "redis.call('RPUSH', 'vlm:t:s', string.rep('\\0', 60))",
        "redis.call('HSET', 'vlm:s:s', 'epoch', '1x')",
        "redis.call('HSET', 'vlm:s:s', 'epoch', '99999999999999999999')",
        "redis.call('HSET', 'vlm:s:s', 'image', '../../etc/passwd')",
    };

    st = *state;

    for (i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        char  script[160];

        (void) vlm_store_session_delete(st, S("s"), NULL);
        assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);
        (void) snprintf(script, sizeof(script), "%s return {}", damage[i]);
        assert_int_equal(redis_script(script, ""), 0);

        assert_int_equal(vlm_store_session_load(st, S("s"), MAX, &l, &err), VLM_STORE_ECORRUPT);
        assert_int_equal(l.n, 0);
    }

    /* a path's piece that is longer than any id, whose beginning is one */

    memset(longer, 'i', VLM_STORE_ID + 1);
    longer[VLM_STORE_ID] = '\0';
    assert_int_equal(vlm_store_session_ensure(st, S(longer), &err), OK);
    longer[VLM_STORE_ID] = 'i';
    longer[VLM_STORE_ID + 1] = '\0';
    assert_int_equal(vlm_store_session_load(st, S(longer), MAX, &l, &err), NOTFOUND);
    assert_int_equal(vlm_store_session_reset(st, S(longer), &err), NOTFOUND);
    assert_int_equal(vlm_store_session_delete(st, S(longer), &err), NOTFOUND);

    /* keys of another type, by another program */

    assert_int_equal(redis_script("redis.call('SET', 'vlm:s:s', 'x') return {}", ""), 0);
    assert_int_equal(vlm_store_session_load(st, S("s"), MAX, &l, &err), VLM_STORE_EIO);
    assert_non_null(strstr(err.text, "answers with the error"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(an_address_is_read_or_refused_without_its_password),
        TEST(requests_of_a_session_are_first_in_the_order_in_which_they_came),
        TEST(the_place_of_a_server_that_died_is_passed_and_its_late_turn_is_refused),
        TEST(a_redis_that_forgot_the_line_loses_no_turn),
        TEST(many_places_are_kept_at_once),
        TEST(four_servers_take_turns_and_none_is_lost),
        TEST(a_session_expires_in_redis_and_each_use_begins_its_time_anew),
        TEST(a_redis_that_is_away_is_reported_and_one_that_is_back_is_used),
        TEST(all_addresses_of_a_host_are_tried),
        TEST(a_redis_that_hangs_holds_no_thread_for_long),
        TEST(a_redis_that_refuses_says_why_without_the_password),
        TEST(what_no_server_has_stored_is_refused),
    };

    return cmocka_run_group_tests(tests, redis_start, redis_stop);
}
