
/*
 * The store: what it promises to one process, to many at once, and to one
 * that is killed in the middle.
 */


#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "ngx_http_vlm_store.h"


#define OK        NGX_HTTP_VLM_STORE_OK
#define NOTFOUND  NGX_HTTP_VLM_STORE_NOTFOUND
#define GONE      NGX_HTTP_VLM_STORE_GONE
#define MAX       NGX_HTTP_VLM_STORE_ENTRIES

#define S(text)   ((ngx_http_vlm_store_text_t) { strlen(text), (text) })


typedef ngx_http_vlm_store_t         store_t;
typedef ngx_http_vlm_store_err_t     err_t;
typedef ngx_http_vlm_store_file_t    file_t;
typedef ngx_http_vlm_store_loaded_t  loaded_t;
typedef ngx_http_vlm_store_turn_t    turn_t;


static char  dir[64];


static int
remove_one(const char *path, const struct stat *sb, int type, struct FTW *f)
{
    (void) sb;
    (void) type;
    (void) f;

    return remove(path);
}


static int
setup(void **state)
{
    strcpy(dir, "/tmp/vlm-store-XXXXXX");

    if (mkdtemp(dir) == NULL
        || ngx_http_vlm_store_prepare(dir, (uid_t) -1, (gid_t) -1, NULL)
           != OK)
    {
        return -1;
    }

    *state = ngx_http_vlm_store_open(dir);

    return *state == NULL ? -1 : 0;
}


static int
teardown(void **state)
{
    ngx_http_vlm_store_close(*state);

    return nftw(dir, remove_one, 8, FTW_DEPTH|FTW_PHYS);
}


static int
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

    return ngx_http_vlm_store_session_append(st, S(id), epoch, &t, number,
                                             used, err);
}


static int64_t
epoch_of(store_t *st, const char *id)
{
    int64_t   epoch;
    loaded_t  l;

    assert_int_equal(ngx_http_vlm_store_session_load(st, S(id), 0, &l, NULL),
                     OK);
    epoch = l.epoch;
    ngx_http_vlm_store_loaded_free(&l);

    return epoch;
}


static uint64_t
count(store_t *st)
{
    uint64_t  n;

    assert_int_equal(ngx_http_vlm_store_session_count(st, &n, NULL), OK);

    return n;
}


static void
a_session_is_made_found_reset_and_deleted(void **state)
{
    char      id[37];
    err_t     err;
    store_t  *st;
    loaded_t  l;

    st = *state;

    assert_int_equal(count(st), 0);
    assert_int_equal(ngx_http_vlm_store_session_create(st, id, &err), OK);
    assert_int_equal(strlen(id), 36);
    assert_int_equal(count(st), 1);

    assert_int_equal(ngx_http_vlm_store_session_load(st, S(id), MAX, &l, &err),
                     OK);
    assert_int_equal(l.n, 0);
    assert_int_equal(l.total, 0);
    assert_null(l.image);
    ngx_http_vlm_store_loaded_free(&l);

    assert_int_equal(ngx_http_vlm_store_session_reset(st, S(id), &err), OK);
    assert_int_equal(count(st), 1);
    assert_int_equal(ngx_http_vlm_store_session_delete(st, S(id), &err), OK);
    assert_int_equal(count(st), 0);

    assert_int_equal(ngx_http_vlm_store_session_delete(st, S(id), &err),
                     NOTFOUND);
    assert_int_equal(err.code, NOTFOUND);
    assert_string_equal(err.text, "Session not found");
    assert_int_equal(ngx_http_vlm_store_session_reset(st, S(id), &err),
                     NOTFOUND);
    assert_int_equal(ngx_http_vlm_store_session_load(st, S(id), MAX, &l, &err),
                     NOTFOUND);
}


static void
a_client_may_bring_its_own_id_within_bounds(void **state)
{
    char      id[NGX_HTTP_VLM_STORE_ID + 2];
    err_t     err;
    store_t  *st;

    st = *state;

    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("my id"), &err),
                     OK);
    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("my id"), &err),
                     OK);
    assert_int_equal(ngx_http_vlm_store_session_ensure(st,
                                            S("caf\xc3\xa9 \xf0\x9f\x90\xb1"),
                                            &err), OK);
    assert_int_equal(count(st), 2);

    memset(id, 'i', sizeof(id));
    id[NGX_HTTP_VLM_STORE_ID] = '\0';
    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S(id), &err), OK);

    id[NGX_HTTP_VLM_STORE_ID] = 'i';
    id[NGX_HTTP_VLM_STORE_ID + 1] = '\0';
    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S(id), &err),
                     NGX_HTTP_VLM_STORE_EINPUT);
    assert_string_equal(err.text, "Session id of 129 bytes, 1 to 128 are"
                        " possible");

    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S(""), &err),
                     NGX_HTTP_VLM_STORE_EINPUT);
    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("a\nb"), &err),
                     NGX_HTTP_VLM_STORE_EINPUT);
    assert_int_equal(ngx_http_vlm_store_session_ensure(st,
                         (ngx_http_vlm_store_text_t) { 3, "a\0b" }, &err),
                     NGX_HTTP_VLM_STORE_EINPUT);
    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("\xff"), &err),
                     NGX_HTTP_VLM_STORE_EINPUT);
    assert_int_equal(count(st), 3);
}


static void
turns_are_numbered_2_4_to_20_and_the_oldest_leave(void **state)
{
    int       i, used;
    char      text[32];
    size_t    n, k;
    err_t     err;
    int64_t   epoch;
    store_t  *st;
    loaded_t  l;

    st = *state;

    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("s"), &err), OK);
    epoch = epoch_of(st, "s");

    for (i = 1; i <= 13; i++) {
        assert_int_equal(append(st, "s", epoch, i, &n, &used, &err), OK);
        assert_int_equal(n, i < 10 ? 2 * i : 20);
        assert_int_equal(used, i > 1);
    }

    assert_int_equal(ngx_http_vlm_store_session_load(st, S("s"), MAX, &l,
                                                     &err), OK);
    assert_int_equal(l.n, 20);
    assert_int_equal(l.total, 20);

    for (k = 0; k < l.n; k++) {
        (void) snprintf(text, sizeof(text), "%zu", 4 + k / 2);
        assert_string_equal(l.entries[k].content.data, text);
        assert_int_equal(l.entries[k].role, k % 2);
    }

    ngx_http_vlm_store_loaded_free(&l);

    assert_int_equal(ngx_http_vlm_store_session_load(st, S("s"),
                         NGX_HTTP_VLM_STORE_CONTEXT, &l, &err), OK);
    assert_int_equal(l.n, 10);
    assert_int_equal(l.total, 20);
    assert_string_equal(l.entries[0].content.data, "9");
    assert_string_equal(l.entries[9].content.data, "13");
    ngx_http_vlm_store_loaded_free(&l);
}


static void
an_entry_comes_back_as_it_was_stored(void **state)
{
    int                          used;
    char                         path[128];
    err_t                        err;
    size_t                       n;
    turn_t                       t;
    store_t                     *st;
    loaded_t                     l;
    struct timespec              ts;
    ngx_http_vlm_store_entry_t  *e;

    st = *state;

    setenv("TZ", "UTC", 1);
    tzset();

    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("s"), &err), OK);

    memset(&t, 0, sizeof(t));
    t.message = S("where is it? \xf0\x9f\x90\xb1 '; DROP TABLE entry; --");
    t.answer = S("[1, 2, 3, 4]");
    t.thinking = S("hm");
    t.task = S("grounding");
    t.output = S("r.jpg");
    t.asked = 1764283520161117;

    (void) snprintf(path, sizeof(path), "%s/uploads/u_cat.png", dir);
    t.image = S(path);

    assert_int_equal(ngx_http_vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err), OK);

    assert_int_equal(ngx_http_vlm_store_session_load(st, S("s"), MAX, &l,
                                                     &err), OK);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.image, path);

    e = &l.entries[0];
    assert_int_equal(e->role, NGX_HTTP_VLM_STORE_USER);
    assert_string_equal(e->content.data, t.message.data);
    assert_int_equal(e->content.len, t.message.len);
    assert_string_equal(e->image.data, path);
    assert_int_equal(e->image.len, strlen(path));
    assert_string_equal(e->task.data, "grounding");
    assert_null(e->thinking.data);
    assert_null(e->output.data);
    assert_string_equal(e->time, "2025-11-27T22:45:20.161117");

    e = &l.entries[1];
    assert_int_equal(e->role, NGX_HTTP_VLM_STORE_ASSISTANT);
    assert_string_equal(e->content.data, "[1, 2, 3, 4]");
    assert_string_equal(e->image.data, path);
    assert_string_equal(e->task.data, "grounding");
    assert_string_equal(e->thinking.data, "hm");
    assert_string_equal(e->output.data, "r.jpg");

    (void) clock_gettime(CLOCK_REALTIME, &ts);
    assert_int_equal(strlen(e->time), 26);
    assert_true(strcmp(e->time, "2025-11-28") > 0);

    ngx_http_vlm_store_loaded_free(&l);

    /* a picture of the next turn becomes the current one, none leaves it */

    t.image = S("other.png");
    assert_int_equal(ngx_http_vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err), OK);
    t.image.data = NULL;
    assert_int_equal(ngx_http_vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err), OK);

    assert_int_equal(ngx_http_vlm_store_session_load(st, S("s"), MAX, &l,
                                                     &err), OK);
    (void) snprintf(path, sizeof(path), "%s/uploads/other.png", dir);
    assert_string_equal(l.image, path);
    assert_null(l.entries[4].image.data);
    ngx_http_vlm_store_loaded_free(&l);
}


static void
an_answer_to_a_question_before_a_reset_is_dropped(void **state)
{
    int       used;
    err_t     err;
    size_t    n;
    int64_t   epoch;
    store_t  *st;
    loaded_t  l;

    st = *state;

    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("s"), &err), OK);
    epoch = epoch_of(st, "s");

    assert_int_equal(append(st, "s", epoch, 1, &n, &used, &err), OK);
    assert_int_equal(ngx_http_vlm_store_session_reset(st, S("s"), &err), OK);

    assert_int_equal(append(st, "s", epoch, 2, &n, &used, &err), GONE);
    assert_int_equal(ngx_http_vlm_store_session_image(st, S("s"), epoch,
                                                      S("a.png"), &err), GONE);

    assert_int_equal(ngx_http_vlm_store_session_load(st, S("s"), MAX, &l,
                                                     &err), OK);
    assert_int_equal(l.n, 0);
    assert_null(l.image);
    assert_int_not_equal(l.epoch, epoch);
    epoch = l.epoch;
    ngx_http_vlm_store_loaded_free(&l);

    /* deleted, and made again under the same name: another session */

    assert_int_equal(ngx_http_vlm_store_session_delete(st, S("s"), &err), OK);
    assert_int_equal(append(st, "s", epoch, 3, &n, &used, &err), GONE);
    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("s"), &err), OK);
    assert_int_equal(append(st, "s", epoch, 3, &n, &used, &err), GONE);

    assert_int_equal(append(st, "s", epoch_of(st, "s"), 4, &n, &used, &err),
                     OK);
    assert_int_equal(n, 2);
}


static void
a_turn_beyond_the_bounds_is_refused(void **state)
{
    int       used;
    char     *big;
    err_t     err;
    size_t    n;
    turn_t    t;
    store_t  *st;

    st = *state;

    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("s"), &err), OK);

    big = malloc(NGX_HTTP_VLM_STORE_TEXT + 1);
    assert_non_null(big);
    memset(big, 'b', NGX_HTTP_VLM_STORE_TEXT + 1);

    memset(&t, 0, sizeof(t));
    t.message.data = big;
    t.message.len = NGX_HTTP_VLM_STORE_TEXT + 1;
    t.answer = S("");

    assert_int_equal(ngx_http_vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err),
                     NGX_HTTP_VLM_STORE_EINPUT);
    t.message.len--;
    assert_int_equal(ngx_http_vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err), OK);

    t.image = S("../x");                   /* the name of a path is kept */
    assert_int_equal(ngx_http_vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err), OK);
    t.image = S("/a/..");
    assert_int_equal(ngx_http_vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err),
                     NGX_HTTP_VLM_STORE_EINPUT);

    free(big);
}


static void
what_was_stored_outlives_the_process(void **state)
{
    int       used;
    char      id[37];
    err_t     err;
    size_t    n;
    store_t  *st;

    st = *state;

    assert_int_equal(ngx_http_vlm_store_session_create(st, id, &err), OK);
    assert_int_equal(append(st, id, epoch_of(st, id), 1, &n, &used, &err),
                     OK);

    ngx_http_vlm_store_close(st);
    *state = st = ngx_http_vlm_store_open(dir);

    assert_int_equal(append(st, id, epoch_of(st, id), 2, &n, &used, &err),
                     OK);
    assert_int_equal(n, 4);
    assert_int_equal(count(st), 1);
}


/*
 * A child appends as fast as it can and tells, after each call that returned
 * OK, which turn it was; it is killed at some moment.  That turn must be the
 * last one there is, or the one before a turn that nobody was told of.
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

    assert_int_equal(ngx_http_vlm_store_session_ensure(*state, S("s"), &err),
                     OK);
    epoch = epoch_of(*state, "s");

    for (i = 0; i < 25; i++) {

        assert_int_equal(pipe2(fd, O_CLOEXEC), 0);

        pid = fork();
        assert_true(pid != -1);

        if (pid == 0) {
            st = ngx_http_vlm_store_open(dir);

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

        assert_int_equal(ngx_http_vlm_store_session_load(*state, S("s"), 2,
                                                         &l, &err), OK);
        assert_int_equal(l.n, 2);
        assert_string_equal(l.entries[0].content.data,
                            l.entries[1].content.data);

        last = atoi(l.entries[1].content.data);
        ngx_http_vlm_store_loaded_free(&l);

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

    /* the database is not there yet: they make it at once, too */

    for (i = 0; i < 4; i++) {

        pid[i] = fork();
        assert_true(pid[i] != -1);

        if (pid[i] != 0) {
            continue;
        }

        st = ngx_http_vlm_store_open(dir);
        (void) snprintf(own, sizeof(own), "own %d", i);

        if (ngx_http_vlm_store_session_ensure(st, S("shared"), &err) != OK
            || ngx_http_vlm_store_session_ensure(st, S(own), &err) != OK)
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
                || ngx_http_vlm_store_session_create(st, id, &err) != OK)
            {
                fprintf(stderr, "%s\n", err.text);
                _exit(2);
            }
        }

        ngx_http_vlm_store_close(st);
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
        assert_int_equal(ngx_http_vlm_store_session_load(st, S(own), MAX, &l,
                                                         &err), OK);
        assert_int_equal(l.n, 20);
        assert_string_equal(l.entries[19].content.data, "40");
        ngx_http_vlm_store_loaded_free(&l);
    }

    assert_int_equal(ngx_http_vlm_store_session_load(st, S("shared"), MAX, &l,
                                                     &err), OK);
    assert_int_equal(l.n, 20);
    ngx_http_vlm_store_loaded_free(&l);
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

        if (ngx_http_vlm_store_session_create(st, id, NULL) != OK
            || append(st, id, epoch_of(st, id), 1, &n, &used, NULL) != OK
            || n != 2
            || ngx_http_vlm_store_upload_add(st, "same", 4, S("s.png"),
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
    rc = ngx_http_vlm_store_session_create(st, id, NULL);

    return (void *) (intptr_t) rc;
}


static void
a_locked_database_is_waited_for_but_not_by_one_after_another(void **state)
{
    int             i;
    char            path[128], id[37];
    void           *rc;
    time_t          start;
    sqlite3        *db;
    pthread_t       t[6];

    assert_int_equal(ngx_http_vlm_store_session_create(*state, id, NULL), OK);

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
        assert_int_equal((intptr_t) rc, NGX_HTTP_VLM_STORE_EBUSY);
    }

    assert_true(time(NULL) - start < 12);

    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);

    assert_int_equal(ngx_http_vlm_store_session_create(*state, id, NULL), OK);
}


/* runs as a user who may only read what is there; root may always write */

static int
as_nobody(int (*run)(err_t *err), err_t *err)
{
    int    fd[2], rc;
    pid_t  pid;

    assert_int_equal(pipe(fd), 0);

    pid = fork();
    assert_true(pid != -1);

    if (pid == 0) {

        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
            _exit(99);
        }

        rc = run(err);

        if (write(fd[1], err, sizeof(*err)) != sizeof(*err)) {
            _exit(98);
        }

        _exit(rc);
    }

    (void) close(fd[1]);
    assert_int_equal(read(fd[0], err, sizeof(*err)), sizeof(*err));
    (void) close(fd[0]);

    assert_int_equal(waitpid(pid, &rc, 0), pid);
    assert_true(WIFEXITED(rc));

    return WEXITSTATUS(rc);
}


static int
create_one(err_t *err)
{
    int       rc;
    char      id[37];
    store_t  *st;

    st = ngx_http_vlm_store_open(dir);
    rc = ngx_http_vlm_store_session_create(st, id, err);
    ngx_http_vlm_store_close(st);

    return rc;
}


static int
upload_one(err_t *err)
{
    int       rc;
    file_t    file;
    store_t  *st;

    st = ngx_http_vlm_store_open(dir);
    rc = ngx_http_vlm_store_result_add(st, "x", 1, S("x.png"), "pointing",
                                       &file, err);
    ngx_http_vlm_store_close(st);

    return rc;
}


static void
a_directory_that_cannot_be_written_says_so(void **state)
{
    int    i;
    char   path[128];
    err_t  err;

    (void) state;

    /* without a database, then with one that others made */

    for (i = 0; i < 2; i++) {

        (void) snprintf(path, sizeof(path), "%s/results", dir);
        assert_int_equal(chmod(path, 0555), 0);
        assert_int_equal(chmod(dir, 0555), 0);

        memset(&err, 0, sizeof(err));
        assert_int_equal(as_nobody(create_one, &err),
                         NGX_HTTP_VLM_STORE_EREADONLY);
        assert_non_null(strstr(err.text, "cannot be written"));
        assert_non_null(strstr(err.text, dir));

        assert_int_equal(as_nobody(upload_one, &err),
                         NGX_HTTP_VLM_STORE_EREADONLY);
        assert_non_null(strstr(err.text, "cannot be written"));

        assert_int_equal(chmod(dir, 0700), 0);
        assert_int_equal(chmod(path, 0700), 0);

        assert_int_equal(create_one(&err), OK);
    }
}


static void
tell(const char *path, const char *text)
{
    int  fd;

    fd = open(path, O_WRONLY);

    if (fd != -1) {
        (void) !write(fd, text, strlen(text));
        (void) close(fd);
    }
}


/* a small file system of our own at dir, where the system lets us have one */

static int
small_disk(void)
{
    char  uid[32], gid[32];

    (void) snprintf(uid, sizeof(uid), "0 %d 1", (int) geteuid());
    (void) snprintf(gid, sizeof(gid), "0 %d 1", (int) getegid());

    if (unshare(CLONE_NEWUSER|CLONE_NEWNS) != 0) {
        return -1;
    }

    tell("/proc/self/setgroups", "deny");
    tell("/proc/self/uid_map", uid);
    tell("/proc/self/gid_map", gid);

    return mount("none", dir, "tmpfs", 0, "size=512k");
}


static int
fill_up(err_t *err)
{
    int       i, rc, used;
    char     *big;
    char      id[37];
    turn_t    t;
    size_t    n;
    file_t    file;
    store_t  *st;

    if (small_disk() != 0) {
        return 77;
    }

    big = calloc(1, 100000);
    memset(big, 'b', 99999);

    memset(&t, 0, sizeof(t));
    t.message = S(big);
    t.answer = S(big);

    st = ngx_http_vlm_store_open(dir);

    if (ngx_http_vlm_store_prepare(dir, (uid_t) -1, (gid_t) -1, err) != OK
        || ngx_http_vlm_store_session_create(st, id, err) != OK)
    {
        return 78;
    }

    for (i = 0; i < 20; i++) {
        rc = ngx_http_vlm_store_session_append(st, S(id), epoch_of(st, id),
                                               &t, &n, &used, err);
        if (rc != OK) {
            break;
        }
    }

    if (rc != NGX_HTTP_VLM_STORE_EFULL || i == 0) {
        return 79;
    }

    for (i = 0; i < 20; i++) {
        rc = ngx_http_vlm_store_result_add(st, big, 99999, S("x.png"), "t",
                                           &file, err);
        if (rc != OK) {
            break;
        }
    }

    ngx_http_vlm_store_close(st);
    free(big);

    return rc;
}


static void
a_full_disk_says_so(void **state)
{
    int    rc, fd[2];
    err_t  err;
    pid_t  pid;

    (void) state;

    assert_int_equal(pipe(fd), 0);
    memset(&err, 0, sizeof(err));

    pid = fork();
    assert_true(pid != -1);

    if (pid == 0) {
        rc = fill_up(&err);
        _exit(write(fd[1], &err, sizeof(err)) == sizeof(err) ? rc : 98);
    }

    assert_int_equal(read(fd[0], &err, sizeof(err)), sizeof(err));
    (void) close(fd[0]);
    (void) close(fd[1]);
    assert_int_equal(waitpid(pid, &rc, 0), pid);
    assert_true(WIFEXITED(rc));

    if (WEXITSTATUS(rc) == 77) {
        skip();
    }

    assert_int_equal(err.code, NGX_HTTP_VLM_STORE_EFULL);
    assert_int_equal(WEXITSTATUS(rc), NGX_HTTP_VLM_STORE_EFULL);
    assert_non_null(strstr(err.text, "the disk is full"));
}


static void
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


static void
a_file_that_is_no_database_says_so_and_can_be_replaced(void **state)
{
    char      id[37], path[128];
    err_t     err;
    store_t  *st;

    st = *state;

    spoil("vlm.db", 0, 10000, 1);

    assert_int_equal(ngx_http_vlm_store_session_create(st, id, &err),
                     NGX_HTTP_VLM_STORE_ECORRUPT);
    assert_non_null(strstr(err.text, "is damaged or no database"));
    assert_non_null(strstr(err.text, "move it away"));

    (void) snprintf(path, sizeof(path), "%s/vlm.db", dir);
    assert_int_equal(unlink(path), 0);

    assert_int_equal(ngx_http_vlm_store_session_create(st, id, &err), OK);
}


/* two connections stand for two workers */

static void
a_database_that_is_moved_away_is_left_by_everybody(void **state)
{
    int       i;
    char      id[37], from[128], to[128];
    err_t     err;
    store_t  *st, *other;

    static const char *const  files[] = { "", "-wal", "-shm" };

    st = *state;
    other = ngx_http_vlm_store_open(dir);

    assert_int_equal(ngx_http_vlm_store_session_create(st, id, &err), OK);
    assert_int_equal(ngx_http_vlm_store_session_create(other, id, &err), OK);
    assert_int_equal(count(st), 2);

    for (i = 0; i < 3; i++) {
        (void) snprintf(from, sizeof(from), "%s/vlm.db%s", dir, files[i]);
        (void) snprintf(to, sizeof(to), "%s/old.db%s", dir, files[i]);
        assert_int_equal(rename(from, to), 0);
    }

    assert_int_equal(ngx_http_vlm_store_session_create(st, id, &err), OK);
    assert_int_equal(count(st), 1);
    assert_int_equal(ngx_http_vlm_store_session_create(other, id, &err), OK);
    assert_int_equal(count(other), 2);
    assert_int_equal(count(st), 2);

    ngx_http_vlm_store_close(other);
    ngx_http_vlm_store_close(st);

    *state = st = ngx_http_vlm_store_open(dir);
    assert_int_equal(count(st), 2);
}


static void
a_damaged_database_says_so(void **state)
{
    int       i, used, rc;
    char      id[37];
    err_t     err;
    size_t    n;
    store_t  *st;

    st = *state;

    for (i = 0; i < 50; i++) {
        assert_int_equal(ngx_http_vlm_store_session_create(st, id, &err), OK);
        assert_int_equal(append(st, id, epoch_of(st, id), 1, &n, &used, &err),
                         OK);
    }

    ngx_http_vlm_store_close(st);            /* the log goes into the file */
    *state = st = ngx_http_vlm_store_open(dir);

    spoil("vlm.db", 4096, 8 * 4096, 0);

    rc = OK;

    for (i = 0; i < 50 && rc == OK; i++) {
        rc = ngx_http_vlm_store_session_create(st, id, &err);
    }

    assert_int_equal(rc, NGX_HTTP_VLM_STORE_ECORRUPT);
    assert_non_null(strstr(err.text, "is damaged or no database"));
}


static void
a_database_of_a_later_version_is_left_alone(void **state)
{
    int       rc;
    char      id[37], command[256];
    err_t     err;
    store_t  *st;

    st = *state;

    assert_int_equal(ngx_http_vlm_store_session_create(st, id, &err), OK);
    ngx_http_vlm_store_close(st);

    /* user_version is at byte 60 of the file, big-endian */

    (void) snprintf(command, sizeof(command), "%s/vlm.db", dir);
    rc = open(command, O_WRONLY);
    assert_true(rc != -1);
    assert_int_equal(pwrite(rc, "\0\0\0\11", 4, 60), 4);
    (void) close(rc);

    *state = st = ngx_http_vlm_store_open(dir);

    assert_int_equal(ngx_http_vlm_store_session_create(st, id, &err),
                     NGX_HTTP_VLM_STORE_ECORRUPT);
    assert_non_null(strstr(err.text, "has schema 9, this server knows 2"));
}


static void
a_store_without_its_directory_says_so(void **state)
{
    char      id[37];
    err_t     err;
    store_t  *st;

    (void) state;

    st = ngx_http_vlm_store_open("/nonexistent/store");

    assert_int_equal(ngx_http_vlm_store_session_create(st, id, &err),
                     NGX_HTTP_VLM_STORE_EIO);
    assert_non_null(strstr(err.text, "/nonexistent/store"));
    assert_non_null(strstr(err.text, "No such file or directory"));

    ngx_http_vlm_store_close(st);

    assert_int_equal(ngx_http_vlm_store_prepare("/nonexistent/store",
                         (uid_t) -1, (gid_t) -1, &err),
                     NGX_HTTP_VLM_STORE_EIO);
}


static void
prepare_gives_the_store_to_a_user_but_follows_no_link(void **state)
{
    char         path[128];
    err_t        err;
    struct stat  sb;

    (void) state;

    if (geteuid() != 0) {
        skip();
    }

    assert_int_equal(create_one(&err), OK);

    assert_int_equal(ngx_http_vlm_store_prepare(dir, 65534, 65534, &err), OK);
    assert_int_equal(as_nobody(create_one, &err), OK);
    assert_int_equal(as_nobody(upload_one, &err), OK);

    (void) snprintf(path, sizeof(path), "%s/vlm.db", dir);
    assert_int_equal(stat(path, &sb), 0);
    assert_int_equal(sb.st_uid, 65534);

    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/hostname", path), 0);
    assert_int_equal(ngx_http_vlm_store_prepare(dir, 65534, 65534, &err),
                     NGX_HTTP_VLM_STORE_EREADONLY);
    assert_int_equal(stat("/etc/hostname", &sb), 0);
    assert_int_not_equal(sb.st_uid, 65534);
}


static void
the_same_picture_is_kept_once(void **state)
{
    char        path[512];
    err_t       err;
    file_t      one, two;
    store_t    *st;

    st = *state;

    assert_int_equal(ngx_http_vlm_store_upload_add(st, "abc", 3,
                         S("my cat.png"), &one, &err), OK);
    assert_int_equal(strlen(one.name), 36 + 1 + strlen("my_cat.png"));
    assert_string_equal(one.name + 36, "_my_cat.png");

    (void) snprintf(path, sizeof(path), "%s/uploads/%s", dir, one.name);
    assert_string_equal(one.path, path);

    assert_int_equal(ngx_http_vlm_store_upload_add(st, "abc", 3,
                         S("my cat.png"), &two, &err), OK);
    assert_string_equal(one.name, two.name);

    /* another name, other bytes, or gone from the disk: another file */

    assert_int_equal(ngx_http_vlm_store_upload_add(st, "abc", 3, S("b.png"),
                                                   &two, &err), OK);
    assert_string_equal(two.name + 36, "_b.png");

    assert_int_equal(ngx_http_vlm_store_upload_add(st, "abd", 3,
                         S("my cat.png"), &two, &err), OK);
    assert_string_not_equal(one.name, two.name);

    assert_int_equal(unlink(one.path), 0);
    assert_int_equal(ngx_http_vlm_store_upload_add(st, "abc", 3,
                         S("my cat.png"), &two, &err), OK);
    assert_string_not_equal(one.name, two.name);

    /* somebody wrote over it: what was promised are these bytes */

    spoil("x", 0, 3, 1);
    (void) snprintf(path, sizeof(path), "%s/x", dir);
    assert_int_equal(rename(path, two.path), 0);
    assert_int_equal(ngx_http_vlm_store_upload_add(st, "abc", 3,
                         S("my cat.png"), &one, &err), OK);
    assert_string_not_equal(one.name, two.name);
}


static void
a_name_may_be_empty_and_a_file_too(void **state)
{
    err_t     err;
    file_t    f;
    store_t  *st;

    st = *state;

    assert_int_equal(ngx_http_vlm_store_upload_add(st, "", 0,
                         S("\xe5\x9b\xbe"), &f, &err), OK);
    assert_int_equal(strlen(f.name), 37);
    assert_int_equal(f.name[36], '_');
    assert_int_equal(ngx_http_vlm_store_upload_find(st, S(f.name), &f, &err),
                     OK);
}


static void
an_upload_is_found_by_name_path_and_url_and_nothing_else(void **state)
{
    char      text[512], link[256];
    err_t     err;
    file_t    f, g;
    size_t    i;
    store_t  *st;

    static const char *const  bad[] = {
        "", ".", "..", "/", "//", "/etc/passwd", "../../../etc/passwd",
        "uploads", "vlm.db", "../vlm.db", "/uploads/../vlm.db",
        "/uploads/", "/uploads/..", "uploads/link", "link", "folder",
        "/uploads/link", "http://example.com/cat.png", "none.png"
    };

    st = *state;

    assert_int_equal(ngx_http_vlm_store_upload_add(st, "abc", 3, S("cat.png"),
                                                   &f, &err), OK);

    (void) snprintf(link, sizeof(link), "%s/uploads/link", dir);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    (void) snprintf(link, sizeof(link), "%s/uploads/folder", dir);
    assert_int_equal(mkdir(link, 0700), 0);

    assert_int_equal(ngx_http_vlm_store_upload_find(st, S(f.name), &g, &err),
                     OK);
    assert_string_equal(g.path, f.path);
    assert_string_equal(g.name, f.name);

    assert_int_equal(ngx_http_vlm_store_upload_find(st, S(f.path), &g, &err),
                     OK);
    assert_string_equal(g.name, f.name);

    (void) snprintf(text, sizeof(text), "/uploads/%s", f.name);
    assert_int_equal(ngx_http_vlm_store_upload_find(st, S(text), &g, &err),
                     OK);
    assert_string_equal(g.path, f.path);

    (void) snprintf(text, sizeof(text), "%s/results/../uploads//./%s", dir,
                    f.name);
    assert_int_equal(ngx_http_vlm_store_upload_find(st, S(text), &g, &err),
                     OK);

    /* the right name behind a wrong way */

    (void) snprintf(text, sizeof(text), "/etc/%s", f.name);
    assert_int_equal(ngx_http_vlm_store_upload_find(st, S(text), &g, &err),
                     NOTFOUND);
    (void) snprintf(text, sizeof(text), "uploads/%s", f.name);
    assert_int_equal(ngx_http_vlm_store_upload_find(st, S(text), &g, &err),
                     NOTFOUND);
    (void) snprintf(text, sizeof(text), "%s/uploads/folder/%s", dir, f.name);
    assert_int_equal(ngx_http_vlm_store_upload_find(st, S(text), &g, &err),
                     NOTFOUND);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(ngx_http_vlm_store_upload_find(st, S(bad[i]), &g,
                                                        &err), NOTFOUND);

        (void) snprintf(text, sizeof(text), "%s/uploads/%s", dir, bad[i]);
        assert_int_equal(ngx_http_vlm_store_upload_find(st, S(text), &g,
                                                        &err), NOTFOUND);
    }

    (void) snprintf(text, sizeof(text), "%s", f.name);
    assert_int_equal(ngx_http_vlm_store_upload_find(st,
                         (ngx_http_vlm_store_text_t) { strlen(text) + 1,
                                                       text }, &g, &err),
                     NOTFOUND);

    memset(text, 'a', sizeof(text));
    assert_int_equal(ngx_http_vlm_store_upload_find(st,
                         (ngx_http_vlm_store_text_t) { sizeof(text), text },
                         &g, &err), NOTFOUND);
}


static void
a_result_is_named_after_its_picture_and_task(void **state)
{
    char      path[NGX_HTTP_VLM_STORE_PATH];
    err_t     err;
    file_t    f;
    store_t  *st;

    st = *state;

    assert_int_equal(ngx_http_vlm_store_result_add(st, "j", 1,
            S("/x/0123abcd-0123-4123-8123-0123456789ab_my.cat.png"),
            "affordance", &f, &err), OK);
    assert_string_equal(f.name + 36, "_my.cat_with_affordance_annotated.jpg");
    assert_int_equal(access(f.path, R_OK), 0);

    assert_int_equal(ngx_http_vlm_store_path(dir, NGX_HTTP_VLM_STORE_RESULTS,
                                             S(f.name), path), OK);
    assert_string_equal(path, f.path);

    assert_int_equal(ngx_http_vlm_store_result_add(st, "j", 1,
            S("0123abcd-0123-4123-8123-0123456789ab_"), "pointing", &f,
            &err), OK);
    assert_string_equal(f.name + 36, "_with_pointing_annotated.jpg");

    assert_int_equal(ngx_http_vlm_store_path(dir, NGX_HTTP_VLM_STORE_UPLOADS,
                                             S(".."), path), NOTFOUND);
    assert_int_equal(ngx_http_vlm_store_path(dir, NGX_HTTP_VLM_STORE_UPLOADS,
                                             S("a/b"), path), NOTFOUND);
}


static void
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


/* an upload of so many bytes, made so many seconds ago */

static void
old_upload(store_t *st, size_t bytes, time_t age, file_t *f)
{
    char             *data, name[16];
    err_t             err;
    struct timespec   ts[2];

    data = calloc(1, bytes);
    assert_non_null(data);

    (void) snprintf(name, sizeof(name), "%d.png", (int) age);
    assert_int_equal(ngx_http_vlm_store_upload_add(st, data, bytes, S(name),
                                                   f, &err), OK);
    free(data);

    (void) clock_gettime(CLOCK_REALTIME, &ts[0]);
    ts[0].tv_sec -= age;
    ts[1] = ts[0];
    assert_int_equal(utimensat(AT_FDCWD, f->path, ts, 0), 0);
}


static void
what_nobody_used_for_long_is_removed(void **state)
{
    int                          used;
    char                         id[37], temp[128];
    err_t                        err;
    size_t                       n, i;
    file_t                       old, current, young;
    store_t                     *st;
    loaded_t                     l;
    struct timespec              ts[2];
    ngx_http_vlm_store_swept_t   swept;

    st = *state;

    old_upload(st, 100, 7200, &old);
    old_upload(st, 100, 7300, &current);
    old_upload(st, 100, 3000, &young);

    (void) snprintf(temp, sizeof(temp), "%s/uploads/.x.tmp", dir);
    (void) close(open(temp, O_WRONLY|O_CREAT, 0600));
    memset(ts, 0, sizeof(ts));
    assert_int_equal(utimensat(AT_FDCWD, temp, ts, 0), 0);

    for (i = 0; i < 150; i++) {
        assert_int_equal(ngx_http_vlm_store_session_create(st, id, &err), OK);
        assert_int_equal(append(st, id, epoch_of(st, id), 1, &n, &used, &err),
                         OK);
    }

    sql("UPDATE session SET used = used - 7200 * 1000000");

    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("s"), &err), OK);
    assert_int_equal(ngx_http_vlm_store_session_image(st, S("s"),
                         epoch_of(st, "s"), S(current.name), &err), OK);

    /* without bounds nothing goes */

    assert_int_equal(ngx_http_vlm_store_sweep(st, 0, 0, &swept, &err), OK);
    assert_int_equal(swept.sessions, 0);
    assert_int_equal(swept.files, 0);
    assert_int_equal(swept.left, 300);
    assert_int_equal(access(temp, F_OK), -1);

    assert_int_equal(ngx_http_vlm_store_sweep(st, 3600, 0, &swept, &err), OK);
    assert_int_equal(swept.sessions, 150);
    assert_int_equal(swept.files, 1);
    assert_int_equal(swept.bytes, 100);
    assert_int_equal(swept.left, 200);

    assert_int_equal(count(st), 1);
    assert_int_equal(ngx_http_vlm_store_session_load(st, S(id), MAX, &l, &err),
                     NOTFOUND);
    assert_int_equal(access(old.path, F_OK), -1);
    assert_int_equal(access(current.path, F_OK), 0);
    assert_int_equal(access(young.path, F_OK), 0);

    /* once the session goes, so does its picture */

    sql("UPDATE session SET used = used - 7200 * 1000000");
    assert_int_equal(ngx_http_vlm_store_sweep(st, 3600, 0, &swept, &err), OK);
    assert_int_equal(swept.sessions, 1);
    assert_int_equal(swept.files, 1);
    assert_int_equal(access(current.path, F_OK), -1);
}


static void
of_too_many_bytes_the_oldest_are_removed(void **state)
{
    int                          i;
    err_t                        err;
    file_t                       f[80], result;
    store_t                     *st;
    ngx_http_vlm_store_swept_t   swept;

    st = *state;

    for (i = 0; i < 80; i++) {
        old_upload(st, 1000, 100000 - i * 1000, &f[i]);
    }

    assert_int_equal(ngx_http_vlm_store_result_add(st, "123", 3, S("x.png"),
                                                   "t", &result, &err), OK);

    /* the oldest is what somebody looks at now */

    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("s"), &err), OK);
    assert_int_equal(ngx_http_vlm_store_session_image(st, S("s"),
                         epoch_of(st, "s"), S(f[0].name), &err), OK);

    assert_int_equal(ngx_http_vlm_store_sweep(st, 0, 80003, &swept, &err),
                     OK);
    assert_int_equal(swept.files, 0);

    assert_int_equal(ngx_http_vlm_store_sweep(st, 0, 10500, &swept, &err),
                     OK);
    assert_int_equal(swept.files, 69);
    assert_int_equal(swept.left, 11003);

    assert_int_equal(access(f[0].path, F_OK), 0);
    assert_int_equal(access(f[69].path, F_OK), -1);
    assert_int_equal(access(f[70].path, F_OK), 0);

    /* what is younger than ten minutes stays in any case */

    assert_int_equal(ngx_http_vlm_store_sweep(st, 0, 1, &swept, &err), OK);
    assert_int_equal(swept.left, 1003);
    assert_int_equal(access(result.path, F_OK), 0);

    /* the session was left alone for longer than an hour: its picture goes */

    sql("UPDATE session SET used = used - 7200 * 1000000");
    assert_int_equal(ngx_http_vlm_store_sweep(st, 0, 1, &swept, &err), OK);
    assert_int_equal(swept.left, 3);
    assert_int_equal(count(st), 1);
}


static void
a_removed_upload_can_be_uploaded_again(void **state)
{
    err_t                        err;
    file_t                       one, two;
    store_t                     *st;
    ngx_http_vlm_store_swept_t   swept;

    st = *state;

    old_upload(st, 10, 9999, &one);
    assert_int_equal(ngx_http_vlm_store_sweep(st, 3600, 0, &swept, &err), OK);
    assert_int_equal(swept.files, 1);

    old_upload(st, 10, 9999, &two);
    assert_string_not_equal(one.name, two.name);

    /* and one that is uploaded again before it is removed becomes young */

    assert_int_equal(ngx_http_vlm_store_upload_add(st,
                         "\0\0\0\0\0\0\0\0\0\0", 10, S("9999.png"), &one,
                         &err), OK);
    assert_string_equal(one.name, two.name);
    assert_int_equal(ngx_http_vlm_store_sweep(st, 3600, 0, &swept, &err), OK);
    assert_int_equal(swept.files, 0);
}


static void
a_database_of_the_first_version_is_brought_up_to_date(void **state)
{
    int       used;
    err_t     err;
    size_t    n;
    store_t  *st;

    st = *state;

    assert_int_equal(ngx_http_vlm_store_session_ensure(st, S("s"), &err), OK);
    assert_int_equal(append(st, "s", epoch_of(st, "s"), 1, &n, &used, &err),
                     OK);
    ngx_http_vlm_store_close(st);

    sql("DROP INDEX session_used; DROP INDEX session_image;"
        "DROP INDEX upload_name; PRAGMA user_version = 1;");

    *state = st = ngx_http_vlm_store_open(dir);

    assert_int_equal(append(st, "s", epoch_of(st, "s"), 2, &n, &used, &err),
                     OK);
    assert_int_equal(n, 4);

    sql("DROP INDEX session_used");        /* which is there again */
}


#define TEST(f)  cmocka_unit_test_setup_teardown(f, setup, teardown)


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(a_session_is_made_found_reset_and_deleted),
        TEST(a_client_may_bring_its_own_id_within_bounds),
        TEST(turns_are_numbered_2_4_to_20_and_the_oldest_leave),
        TEST(an_entry_comes_back_as_it_was_stored),
        TEST(an_answer_to_a_question_before_a_reset_is_dropped),
        TEST(a_turn_beyond_the_bounds_is_refused),
        TEST(what_was_stored_outlives_the_process),
        TEST(kill_9_while_writing_loses_no_acknowledged_turn),
        TEST(four_processes_write_at_once),
        TEST(eight_threads_share_one_store),
        TEST(a_locked_database_is_waited_for_but_not_by_one_after_another),
        TEST(a_directory_that_cannot_be_written_says_so),
        TEST(a_full_disk_says_so),
        TEST(a_file_that_is_no_database_says_so_and_can_be_replaced),
        TEST(a_database_that_is_moved_away_is_left_by_everybody),
        TEST(a_damaged_database_says_so),
        TEST(a_database_of_a_later_version_is_left_alone),
        TEST(a_store_without_its_directory_says_so),
        TEST(prepare_gives_the_store_to_a_user_but_follows_no_link),
        TEST(the_same_picture_is_kept_once),
        TEST(a_name_may_be_empty_and_a_file_too),
        TEST(an_upload_is_found_by_name_path_and_url_and_nothing_else),
        TEST(a_result_is_named_after_its_picture_and_task),
        TEST(what_nobody_used_for_long_is_removed),
        TEST(of_too_many_bytes_the_oldest_are_removed),
        TEST(a_removed_upload_can_be_uploaded_again),
        TEST(a_database_of_the_first_version_is_brought_up_to_date),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
