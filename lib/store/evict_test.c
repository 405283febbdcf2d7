
/*
 * Eviction from the store, by age and by bytes, and the files that it must keep: recent ones, and
 * the current picture of a session.
 */


#define _GNU_SOURCE

#include <fcntl.h>
#include <time.h>

#include "store/store_fixture.h"


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
    assert_int_equal(vlm_store_upload_add(st, data, bytes, 0, S(name),
                                          f, &err), OK);
    free(data);

    (void) clock_gettime(CLOCK_REALTIME, &ts[0]);
    ts[0].tv_sec -= age;
    ts[1] = ts[0];
    assert_int_equal(utimensat(AT_FDCWD, f->path, ts, 0), 0);
}


static void
sessions_and_files_that_were_not_used_for_long_are_removed(void **state)
{
    int                          used;
    char                         id[37], temp[128];
    err_t                        err;
    size_t                       n, i;
    file_t                       old, current, young;
    store_t                     *st;
    loaded_t                     l;
    struct timespec              ts[2];
    vlm_store_swept_t            swept;

    st = *state;

    old_upload(st, 100, 7200, &old);
    old_upload(st, 100, 7300, &current);
    old_upload(st, 100, 3000, &young);

    (void) snprintf(temp, sizeof(temp), "%s/uploads/.x.tmp", dir);
    (void) close(open(temp, O_WRONLY|O_CREAT, 0600));
    memset(ts, 0, sizeof(ts));
    assert_int_equal(utimensat(AT_FDCWD, temp, ts, 0), 0);

    for (i = 0; i < 150; i++) {
        assert_int_equal(vlm_store_session_create(st, 0, id, &err), OK);
        assert_int_equal(append(st, id, epoch_of(st, id), 1, &n, &used, &err),
                         OK);
    }

    age_sessions(7200);

    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);
    assert_int_equal(vlm_store_session_image(st, S("s"),
                         epoch_of(st, "s"), S(current.name), &err), OK);

    /* without bounds nothing is evicted */

    assert_int_equal(vlm_store_sweep(st, 0, 0, &swept, &err), OK);
    assert_int_equal(swept.sessions, 0);
    assert_int_equal(swept.files, 0);
    assert_int_equal(swept.left, 300);
    assert_int_equal(access(temp, F_OK), -1);

    assert_int_equal(vlm_store_sweep(st, 3600, 0, &swept, &err), OK);
    assert_int_equal(swept.sessions, 150);
    assert_int_equal(swept.files, 1);
    assert_int_equal(swept.bytes, 100);
    assert_int_equal(swept.left, 200);

    assert_int_equal(count(st), 1);
    assert_int_equal(vlm_store_session_load(st, S(id), MAX, &l, &err),
                     NOTFOUND);
    assert_int_equal(access(old.path, F_OK), -1);
    assert_int_equal(access(current.path, F_OK), 0);
    assert_int_equal(access(young.path, F_OK), 0);

    /* a deleted session's picture may be evicted */

    age_sessions(7200);
    assert_int_equal(vlm_store_sweep(st, 3600, 0, &swept, &err), OK);
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
    vlm_store_swept_t            swept;

    st = *state;

    for (i = 0; i < 80; i++) {
        old_upload(st, 1000, 100000 - i * 1000, &f[i]);
    }

    assert_int_equal(vlm_store_result_add(st, "123", 3, S("x.png"),
                                          "t", &result, &err), OK);

    /* the oldest is now the current picture of a session */

    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);
    assert_int_equal(vlm_store_session_image(st, S("s"),
                         epoch_of(st, "s"), S(f[0].name), &err), OK);

    assert_int_equal(vlm_store_sweep(st, 0, 80003, &swept, &err),
                     OK);
    assert_int_equal(swept.files, 0);

    assert_int_equal(vlm_store_sweep(st, 0, 10500, &swept, &err),
                     OK);
    assert_int_equal(swept.files, 69);
    assert_int_equal(swept.left, 11003);

    assert_int_equal(access(f[0].path, F_OK), 0);
    assert_int_equal(access(f[69].path, F_OK), -1);
    assert_int_equal(access(f[70].path, F_OK), 0);

    /* a file younger than ten minutes stays in any case */

    assert_int_equal(vlm_store_sweep(st, 0, 1, &swept, &err), OK);
    assert_int_equal(swept.left, 1003);
    assert_int_equal(access(result.path, F_OK), 0);

    /* the session was unused for more than an hour: its picture is evicted */

    age_sessions(7200);
    assert_int_equal(vlm_store_sweep(st, 0, 1, &swept, &err), OK);
    assert_int_equal(swept.left, 3);
    assert_int_equal(count(st), 1);
}


static void
a_removed_upload_can_be_uploaded_again(void **state)
{
    err_t                        err;
    file_t                       one, two;
    store_t                     *st;
    vlm_store_swept_t            swept;

    st = *state;

    old_upload(st, 10, 9999, &one);
    assert_int_equal(vlm_store_sweep(st, 3600, 0, &swept, &err), OK);
    assert_int_equal(swept.files, 1);

    old_upload(st, 10, 9999, &two);
    assert_string_not_equal(one.name, two.name);

    /* and one that is uploaded again before it is removed is kept */

    assert_int_equal(vlm_store_upload_add(st,
                         "\0\0\0\0\0\0\0\0\0\0", 10, 0, S("9999.png"), &one,
                         &err), OK);
    assert_string_equal(one.name, two.name);
    assert_int_equal(vlm_store_sweep(st, 3600, 0, &swept, &err), OK);
    assert_int_equal(swept.files, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(sessions_and_files_that_were_not_used_for_long_are_removed),
        TEST(of_too_many_bytes_the_oldest_are_removed),
        TEST(a_removed_upload_can_be_uploaded_again),
    };

    /* Redis itself removes sessions: redis_test.c */

    const struct CMUnitTest  shared[] = {
        TEST(of_too_many_bytes_the_oldest_are_removed),
        TEST(a_removed_upload_can_be_uploaded_again),
    };

    return run_over_both(tests, COUNT(tests), shared, COUNT(shared));
}
