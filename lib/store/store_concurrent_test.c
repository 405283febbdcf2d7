
/*
 * The store under concurrency: processes that are killed in the middle, processes that write at the
 * same time, threads of one process, and a lock that another process keeps.
 */


#define _GNU_SOURCE

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <sqlite3.h>

#include "store/store_fixture.h"


/*
 * A child appends as fast as it can and reports, after each call that returned OK, the number of
 * the turn; it is killed at some moment.  That turn must be the last one in the store, or the one
 * before a turn that was not reported.
 */

static void
kill_9_while_writing_loses_no_acknowledged_turn(void **state)
{
    int       i, n, used, fd[2], told, lost, last;
    pid_t     pid;
    err_t     err;
    size_t    number;
    int64_t   epoch;
    store_t  *st;
    loaded_t  l;

    lost = 0;
    last = 0;

    assert_int_equal(vlm_store_session_ensure(*state, S("s"), &err),
                     OK);
    epoch = epoch_of(*state, "s");

    for (i = 0; i < 25; i++) {

        assert_int_equal(pipe2(fd, O_CLOEXEC), 0);

        pid = fork();
        assert_true(pid != -1);

        if (pid == 0) {
            st = vlm_store_open(dir);

            for (n = last + 1; /* void */ ; n++) {
                if (append(st, "s", epoch, n, &number, &used, &err) != OK
                    || write(fd[1], &n, sizeof(n)) != sizeof(n))
                {
                    _exit(1);
                }
            }
        }

        (void) close(fd[1]);

        told = last;
        assert_int_equal(read(fd[0], &told, sizeof(told)), sizeof(told));
        (void) usleep((useconds_t) (i * 1931 % 20000));

        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);

        while (read(fd[0], &n, sizeof(n)) == sizeof(n)) {
            told = n;
        }

        (void) close(fd[0]);

        assert_int_equal(vlm_store_session_load(*state, S("s"), 2,
                                                &l, &err), OK);
        assert_int_equal(l.n, 2);
        assert_string_equal(l.entries[0].content.data,
                            l.entries[1].content.data);

        last = atoi(l.entries[1].content.data);
        vlm_store_loaded_free(&l);

        if (last != told && last != told + 1) {
            lost++;
        }
    }

    assert_int_equal(lost, 0);
    assert_true(last > 25);
}


static void
four_processes_write_at_once(void **state)
{
    int       i, n, used, status;
    char      own[16], id[37];
    pid_t     pid[4];
    err_t     err;
    size_t    number;
    int64_t   epoch, shared;
    store_t  *st;
    loaded_t  l;

    /* the database does not exist yet: the processes create it at once, too */

    for (i = 0; i < 4; i++) {

        pid[i] = fork();
        assert_true(pid[i] != -1);

        if (pid[i] != 0) {
            continue;
        }

        st = vlm_store_open(dir);
        (void) snprintf(own, sizeof(own), "own %d", i);

        if (vlm_store_session_ensure(st, S("shared"), &err) != OK
            || vlm_store_session_ensure(st, S(own), &err) != OK)
        {
            fprintf(stderr, "%s\n", err.text);
            _exit(1);
        }

        epoch = epoch_of(st, own);
        shared = epoch_of(st, "shared");

        for (n = 1; n <= 40; n++) {
            if (append(st, own, epoch, n, &number, &used, &err) != OK
                || number != (n < 10 ? 2 * (size_t) n : 20)
                || append(st, "shared", shared, n, &number, &used, &err) != OK
                || vlm_store_session_create(st, 0, id, &err) != OK)
            {
                fprintf(stderr, "%s\n", err.text);
                _exit(2);
            }
        }

        vlm_store_close(st);
        _exit(0);
    }

    for (i = 0; i < 4; i++) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }

    st = *state;

    assert_int_equal(count(st), 4 * 40 + 5);

    for (i = 0; i < 4; i++) {
        (void) snprintf(own, sizeof(own), "own %d", i);
        assert_int_equal(vlm_store_session_load(st, S(own), MAX, &l,
                                                &err), OK);
        assert_int_equal(l.n, 20);
        assert_string_equal(l.entries[19].content.data, "40");
        vlm_store_loaded_free(&l);
    }

    assert_int_equal(vlm_store_session_load(st, S("shared"), MAX, &l,
                                            &err), OK);
    assert_int_equal(l.n, 20);
    vlm_store_loaded_free(&l);
}


static void *
thread(void *data)
{
    int       i, used;
    char      id[37];
    file_t    file;
    size_t    n, failed;
    store_t  *st;

    st = data;
    failed = 0;

    for (i = 1; i <= 20; i++) {

        if (vlm_store_session_create(st, 0, id, NULL) != OK
            || append(st, id, epoch_of(st, id), 1, &n, &used, NULL) != OK
            || n != 2
            || vlm_store_upload_add(st, "same", 4, 0, S("s.png"),
                                    &file, NULL) != OK)
        {
            failed++;
        }
    }

    return (void *) failed;
}


static void
eight_threads_share_one_store(void **state)
{
    int        i;
    void      *failed;
    pthread_t  t[8];

    for (i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, thread, *state), 0);
    }

    for (i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(t[i], &failed), 0);
        assert_null(failed);
    }

    assert_int_equal(count(*state), 160);
}


static void *
wait_for_it(void *data)
{
    int       rc;
    char      id[37];
    store_t  *st;

    st = data;
    rc = vlm_store_session_create(st, 0, id, NULL);

    return (void *) (intptr_t) rc;
}


static void
calls_wait_together_for_a_locked_database(void **state)
{
    int             i;
    char            path[128], id[37];
    void           *rc;
    time_t          start;
    sqlite3        *db;
    pthread_t       t[6];

    assert_int_equal(vlm_store_session_create(*state, 0, id, NULL), OK);

    (void) snprintf(path, sizeof(path), "%s/vlm.db", dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL),
                     SQLITE_OK);

    start = time(NULL);

    for (i = 0; i < 6; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, wait_for_it, *state), 0);
    }

    for (i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(t[i], &rc), 0);
        assert_int_equal((intptr_t) rc, VLM_STORE_EBUSY);
    }

    /* one wait is enough for all calls that follow soon */

    for (i = 0; i < 20; i++) {
        assert_int_equal((intptr_t) wait_for_it(*state),
                         VLM_STORE_EBUSY);
    }

    assert_true(time(NULL) - start < 60);

    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);

    for (i = 0; i < 1000; i++) {
        if (vlm_store_session_create(*state, 0, id, NULL) == OK) {
            break;
        }

        usleep(10000);
    }

    assert_true(i < 1000);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(kill_9_while_writing_loses_no_acknowledged_turn),
        TEST(four_processes_write_at_once),
        TEST(eight_threads_share_one_store),
        TEST(calls_wait_together_for_a_locked_database),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
