/* Mapped files: what is no regular file, too long or missing is a sentence with the path. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

#define PAGES      5
#define HUGE_PAGE  (2u << 20)          /* bytes */
#define LARGE      (5 * HUGE_PAGE)

static char  dir[] = "/tmp/vlm-file-XXXXXX";
static char  path[64];


static void
write_file(const void *data, size_t bytes)
{
    FILE  *f;

    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}


static int
set_up(void **state)
{
    (void) state;

    if (mkdtemp(dir) == NULL) {
        return -1;
    }

    snprintf(path, sizeof(path), "%s/f", dir);

    return 0;
}


static int
tear_down(void **state)
{
    (void) state;

    unlink(path);

    return rmdir(dir);
}


static void
a_file_is_its_bytes(void **state)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    write_file("seven77", 7);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    assert_int_equal(f.bytes, 7);
    assert_memory_equal(f.data, "seven77", 7);

    vlm_file_close(&f);
    assert_null(f.data);
    vlm_file_close(&f);
}


static void
an_empty_file_has_no_address(void **state)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    write_file("", 0);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    assert_null(f.data);
    assert_int_equal(f.bytes, 0);
    vlm_file_done(&f, 0, 0);
    vlm_file_close(&f);
}


static void
a_file_of_the_limit_is_taken_and_one_byte_more_is_not(void **state)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    write_file("12345678", 8);
    assert_int_equal(vlm_file_open(&f, path, 8, &err), 0);
    vlm_file_close(&f);

    assert_int_equal(vlm_file_open(&f, path, 7, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_non_null(strstr(err.text, "8 bytes, at most 7"));
    assert_non_null(strstr(err.text, path));
    assert_null(f.data);
}


/* Whether there are large pages is the system's affair; what is said of them is not. */
static void
a_file_that_is_brought_and_held_is_its_bytes(void **state)
{
    char        *data;
    size_t       i, bytes = LARGE;
    vlm_err_t    err = { 0 };
    vlm_file_t   f, other;

    (void) state;

    data = malloc(bytes);
    assert_non_null(data);

    for (i = 0; i < bytes; i++) {
        data[i] = (char) (i * 7 + (i >> 12));
    }

    write_file(data, bytes);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    assert_int_equal(vlm_file_open(&other, path, 0, &err), 0);

    vlm_file_bring(&f, 0, LARGE / 2);
    vlm_file_bring(&f, LARGE / 2, bytes - LARGE / 2);
    vlm_file_bring(&f, bytes, 1);      /* beyond its end: nothing */
    assert_memory_equal(f.data, data, bytes);

    assert_true(vlm_file_large(&f) <= bytes && vlm_file_large(&f) % HUGE_PAGE == 0);
    assert_int_equal(vlm_file_large(&other), 0);   /* nobody has read there */

    if (vlm_file_hold(&f) == 0) {      /* as far as this process may */
        vlm_file_done(&f, 0, bytes);
        assert_memory_equal(f.data, data, bytes);
        vlm_file_let_go(&f);
    }

    assert_memory_equal(f.data, data, bytes);

    vlm_file_close(&f);
    vlm_file_close(&other);
    free(data);
}


static void
what_is_no_regular_file_is_refused(void **state)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    assert_int_equal(vlm_file_open(&f, dir, 0, &err), -1);
    assert_non_null(strstr(err.text, "not a regular file"));

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_file_open(&f, "/dev/zero", 0, &err), -1);
    assert_non_null(strstr(err.text, "/dev/zero: not a regular file"));

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_file_open(&f, "/nowhere/at/all", 0, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_string_equal(err.text, "/nowhere/at/all: No such file or directory");
}


static void
a_pipe_without_a_writer_does_not_block(void **state)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(5);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), -1);
    alarm(0);
    assert_non_null(strstr(err.text, "not a regular file"));
    unlink(path);
}


static void
bytes_that_are_done_with_can_be_read_again(void **state)
{
    char       *data;
    size_t      i, page, bytes;
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    page = (size_t) sysconf(_SC_PAGESIZE);
    bytes = PAGES * page + 17;
    data = malloc(bytes);
    assert_non_null(data);

    for (i = 0; i < bytes; i++) {
        data[i] = (char) (i * 7 + i / 251);
    }

    write_file(data, bytes);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);

    vlm_file_done(&f, 1, bytes - 1);
    assert_memory_equal(f.data, data, bytes);
    vlm_file_done(&f, page - 1, 2);            /* no whole page */
    vlm_file_done(&f, 0, bytes);
    vlm_file_done(&f, bytes, 1);               /* outside: nothing happens */
    vlm_file_done(&f, UINT64_MAX, UINT64_MAX);
    vlm_file_done(&f, 5, UINT64_MAX);
    assert_memory_equal(f.data, data, bytes);

    vlm_file_close(&f);
    free(data);
}


static void
existence_is_asked_of_regular_files_only(void **state)
{
    (void) state;

    write_file("x", 1);
    assert_int_equal(vlm_file_exists(dir, "f"), 1);
    assert_int_equal(vlm_file_exists(dir, "g"), 0);
    assert_int_equal(vlm_file_exists(dir, "."), 0);
    assert_int_equal(vlm_file_exists("/nowhere", "f"), 0);
}


static void
a_path_that_does_not_fit_is_an_error(void **state)
{
    char       buf[8];
    vlm_err_t  err = { 0 };

    (void) state;

    assert_int_equal(vlm_file_path(buf, sizeof(buf), "abc", "def", &err), 0);
    assert_string_equal(buf, "abc/def");
    assert_int_equal(vlm_file_path(buf, sizeof(buf), "abc", "defg", &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_non_null(strstr(err.text, "longer than 7 bytes"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_file_is_its_bytes),
        cmocka_unit_test(an_empty_file_has_no_address),
        cmocka_unit_test(a_file_of_the_limit_is_taken_and_one_byte_more_is_not),
        cmocka_unit_test(a_file_that_is_brought_and_held_is_its_bytes),
        cmocka_unit_test(what_is_no_regular_file_is_refused),
        cmocka_unit_test(a_pipe_without_a_writer_does_not_block),
        cmocka_unit_test(bytes_that_are_done_with_can_be_read_again),
        cmocka_unit_test(existence_is_asked_of_regular_files_only),
        cmocka_unit_test(a_path_that_does_not_fit_is_an_error)
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
