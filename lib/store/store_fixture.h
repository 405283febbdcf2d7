
/*
 * Helpers that the tests of the store share: a store in a directory of its own for each test,
 * turns, counts, and damage to its files.  Inline, since no test needs all of them.
 *
 * Tests have their sessions in SQLite until redis_start(), then in a Redis: run_over_both() runs a
 * test over both.
 */


#ifndef _NGX_HTTP_VLM_STORE_FIXTURE_H_INCLUDED_
#define _NGX_HTTP_VLM_STORE_FIXTURE_H_INCLUDED_


#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store/redis_fixture.h"
#include "store/store.h"


#define OK        VLM_STORE_OK
#define NOTFOUND  VLM_STORE_NOTFOUND
#define ELIMIT    VLM_STORE_ELIMIT
#define GONE      VLM_STORE_GONE
#define MAX       VLM_STORE_ENTRIES

#define S         vlm_store_string

#define TEST(f)   cmocka_unit_test_setup_teardown(f, setup, teardown)

#define OVER_BOTH   32                     /* tests of a group */
#define NAME_BYTES  96
#define COUNT(a)    (sizeof(a) / sizeof((a)[0]))

#ifndef VLM_HIREDIS
#define VLM_HIREDIS  0
#endif


typedef vlm_store_t         store_t;
typedef vlm_store_err_t     err_t;
typedef vlm_store_file_t    file_t;
typedef vlm_store_loaded_t  loaded_t;
typedef vlm_store_turn_t    turn_t;


static char  dir[64];


static inline int
remove_one(const char *path, const struct stat *sb, int type, struct FTW *f)
{
    (void) sb;
    (void) type;
    (void) f;

    return remove(path);
}


static inline store_t *
open_store(void)
{
    return redis_pid == -1 ? vlm_store_open(dir) : vlm_store_open_redis(&redis_conf, dir, 0);
}


static inline int
setup(void **state)
{
    strcpy(dir, "/tmp/vlm-store-XXXXXX");

    if (mkdtemp(dir) == NULL
        || vlm_store_prepare(dir, (uid_t) -1, (gid_t) -1, NULL)
           != OK)
    {
        return -1;
    }

    if (redis_pid != -1 && redis_script("redis.call('FLUSHALL') return {}", "") != 0) {
        return -1;
    }

    *state = open_store();

    return *state == NULL ? -1 : 0;
}


static inline int
teardown(void **state)
{
    vlm_store_close(*state);

    return nftw(dir, remove_one, 8, FTW_DEPTH|FTW_PHYS);
}


static inline int
setup_redis(void **state)
{
    return redis_pid == -1 && redis_start(NULL) != 0 ? -1 : setup(state);
}


/* one group, since its TAP has one plan: tests over SQLite, then the shared ones over a Redis, if
   the library has it */

static inline int
run_over_both(const struct CMUnitTest *tests, size_t n, const struct CMUnitTest *shared,
    size_t n_shared)
{
    static char        name[OVER_BOTH][NAME_BYTES];
    size_t             i;
    struct CMUnitTest  all[OVER_BOTH];

    if (n + n_shared > OVER_BOTH) {
        return -1;
    }

    memset(all, 0, sizeof(all));
    memcpy(all, tests, n * sizeof(*all));

    for (i = 0; VLM_HIREDIS && i < n_shared; i++) {
        (void) snprintf(name[i], sizeof(name[i]), "%s_over_redis", shared[i].name);

        all[n + i] = shared[i];
        all[n + i].name = name[i];
        all[n + i].setup_func = setup_redis;
    }

    /* cmocka skips what has no name */

    return cmocka_run_group_tests(all, NULL, redis_stop);
}


/* a turn whose question and answer are the number n */

static inline int
append(store_t *st, const char *id, int64_t epoch, int n, size_t *number,
    int *used, err_t *err)
{
    char    text[64];
    turn_t  t;

    (void) snprintf(text, sizeof(text), "%d", n);

    memset(&t, 0, sizeof(t));
    t.message = S(text);
    t.answer = S(text);
    t.thinking = S("");
    t.task = S("general");
    t.image = S("x_cat.png");

    return vlm_store_session_append(st, S(id), epoch, &t, number,
                                    used, err);
}


static inline int64_t
epoch_of(store_t *st, const char *id)
{
    int64_t   epoch;
    loaded_t  l;

    assert_int_equal(vlm_store_session_load(st, S(id), 0, &l, NULL),
                     OK);
    epoch = l.epoch;
    vlm_store_loaded_free(&l);

    return epoch;
}


static inline uint64_t
count(store_t *st)
{
    uint64_t  n;

    assert_int_equal(vlm_store_session_count(st, &n, NULL), OK);

    return n;
}


/* bytes of a file below dir become junk */

static inline void
spoil(const char *name, off_t from, size_t bytes, int truncate)
{
    int   fd;
    char  path[128], *junk;

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);

    fd = open(path, O_WRONLY|O_CREAT|(truncate ? O_TRUNC : 0), 0600);
    assert_true(fd != -1);

    junk = malloc(bytes);
    assert_non_null(junk);
    memset(junk, 'j', bytes);

    assert_int_equal(pwrite(fd, junk, bytes, from), bytes);

    free(junk);
    (void) close(fd);
}


/* runs a statement on a connection of its own */

static inline void
sql(const char *text)
{
    char      path[128];
    sqlite3  *db;

    (void) snprintf(path, sizeof(path), "%s/vlm.db", dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    (void) sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}


/* each session was last used so many seconds earlier */

static inline void
age_sessions(long seconds)
{
    char  text[96];

    if (redis_pid == -1) {
        (void) snprintf(text, sizeof(text), "UPDATE session SET used = used - %ld * 1000000",
                        seconds);
        sql(text);
        return;
    }

    (void) snprintf(text, sizeof(text), "%ld000000", seconds);

    assert_int_equal(redis_script("for _, k in ipairs(redis.call('KEYS', 'vlm:i:*')) do"
                                  "  redis.call('DECRBY', k, ARGV[1]) end "
                                  "for _, id in ipairs(redis.call('ZRANGE', 'vlm:sessions', 0, -1))"
                                  " do redis.call('ZINCRBY', 'vlm:sessions', -ARGV[1], id) end "
                                  "return {}", text), 0);
}


#endif /* _NGX_HTTP_VLM_STORE_FIXTURE_H_INCLUDED_ */
