
/* Names and files: see disk.h. */


#define _GNU_SOURCE

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/disk.h"


static void
secure(const char *name, const char *expected)
{
    char    got[VLM_DISK_SECURE + 1];
    size_t  len;

    len = vlm_disk_secure(got, name, strlen(name));

    assert_string_equal(got, expected);
    assert_int_equal(len, strlen(expected));
}


static void
names_become_what_werkzeug_makes_of_them(void **state)
{
    (void) state;

    secure("My cool movie.mov", "My_cool_movie.mov");
    secure("../../../etc/passwd", "etc_passwd");
    secure("i contain cool \xc3\xbcml\xc3\xa4uts.txt",
           "i_contain_cool_umlauts.txt");
    secure("\xe5\x9b\xbe\xe7\x89\x87.png", "png");
    secure("\xe5\x9b\xbe\xe7\x89\x87", "");
    secure("", "");
    secure(".", "");
    secure("..", "");
    secure("/", "");
    secure("__.png__", "png");
    secure("a/b\\c.png", "a_bc.png");
    secure("cat.tar.gz", "cat.tar.gz");
    secure("-rf", "-rf");
    secure("\xef\xac\x81le\xe2\x81\xb4.jpg", "file4.jpg");  /* fi, super 4 */
    secure("\xef\xbc\x8e\xef\xbc\x8e\xef\xbc\x8fx", "x"); /* wide ../ */
}


static void
white_space_separates_words_as_in_python(void **state)
{
    (void) state;

    secure("  a \t\n b  .png ", "a_b_.png");
    secure("a\x1c" "b", "a_b");
    secure("a ! b", "a__b");
    secure("a \xe5\x9b\xbe b", "a_b");
}


static void
bytes_that_are_not_utf_8_are_left_out(void **state)
{
    char    got[VLM_DISK_SECURE + 1];

    (void) state;

    secure("a\xff\xfe" "b.png", "ab.png");
    secure("\xc3", "");
    secure("\xed\xa0\x80x", "x");

    assert_int_equal(vlm_disk_secure(got, "a\0b.png", 7), 6);
    assert_string_equal(got, "ab.png");
}


static void
a_long_name_keeps_its_end(void **state)
{
    char    name[5000], got[VLM_DISK_SECURE + 1];
    size_t  len, n;

    (void) state;

    for (len = 170; len < 1200; len += 7) {
        memset(name, 'a', len);
        memcpy(name + len - 7, "cat.png", 7);

        n = vlm_disk_secure(got, name, len);

        assert_int_equal(n, len < VLM_DISK_SECURE
                            ? len : VLM_DISK_SECURE);
        assert_string_equal(got + n - 7, "cat.png");
    }

    memset(name, ' ', sizeof(name));
    assert_int_equal(vlm_disk_secure(got, name, sizeof(name)), 0);

    memset(name, '.', sizeof(name));
    assert_int_equal(vlm_disk_secure(got, name, sizeof(name)), 0);
}


static void
a_uuid_is_of_version_4_and_never_the_same(void **state)
{
    int   i;
    char  one[37], two[37];

    (void) state;

    assert_int_equal(vlm_disk_uuid(one), 0);

    for (i = 0; i < 1000; i++) {
        memcpy(two, one, 37);

        assert_int_equal(vlm_disk_uuid(one), 0);
        assert_string_not_equal(one, two);

        assert_int_equal(strlen(one), 36);
        assert_int_equal(strspn(one, "0123456789abcdef-"), 36);
        assert_int_equal(one[14], '4');
        assert_non_null(strchr("89ab", one[19]));
        assert_true(one[8] == '-' && one[13] == '-' && one[18] == '-'
                    && one[23] == '-');
    }
}


static void
only_one_plain_segment_is_a_name(void **state)
{
    char  name[300];

    (void) state;

    assert_true(vlm_disk_plain("a.png", 5));
    assert_true(vlm_disk_plain("a..b", 4));
    assert_false(vlm_disk_plain("", 0));
    assert_false(vlm_disk_plain(NULL, 0));
    assert_false(vlm_disk_plain(".", 1));
    assert_false(vlm_disk_plain("..", 2));
    assert_false(vlm_disk_plain(".hidden", 7));
    assert_false(vlm_disk_plain("a/b", 3));
    assert_false(vlm_disk_plain("a\0b", 3));

    memset(name, 'a', sizeof(name));
    assert_true(vlm_disk_plain(name, 255));
    assert_false(vlm_disk_plain(name, 256));
}


static void
a_file_is_written_whole_and_compared_byte_by_byte(void **state)
{
    char    *dir, path[200], *data;
    size_t   i, len;

    static const size_t  sizes[] = { 0, 1, 65535, 65536, 65537, 200003 };

    (void) state;

    dir = mkdtemp((char[]) { "/tmp/vlm-file-XXXXXX" });
    assert_non_null(dir);

    (void) snprintf(path, sizeof(path), "%s/x", dir);

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        len = sizes[i];

        data = malloc(len + 1);
        assert_non_null(data);
        memset(data, 'v', len + 1);

        assert_int_equal(vlm_disk_write(dir, "x", data, len), 0);

        assert_true(vlm_disk_same(path, data, len));
        assert_false(vlm_disk_same(path, data, len + 1));

        if (len > 0) {
            assert_false(vlm_disk_same(path, data, len - 1));
            data[len - 1] = 'w';
            assert_false(vlm_disk_same(path, data, len));
        }

        free(data);
    }

    assert_int_equal(unlink(path), 0);
    assert_false(vlm_disk_same(path, "", 0));

    assert_int_equal(symlink("/etc/hostname", path), 0);
    assert_false(vlm_disk_same(path, "", 0));
    assert_int_equal(unlink(path), 0);

    /* nothing else was left: an empty directory can be removed */

    assert_int_equal(rmdir(dir), 0);

    assert_int_equal(vlm_disk_write(dir, "x", "", 0), ENOENT);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(names_become_what_werkzeug_makes_of_them),
        cmocka_unit_test(white_space_separates_words_as_in_python),
        cmocka_unit_test(bytes_that_are_not_utf_8_are_left_out),
        cmocka_unit_test(a_long_name_keeps_its_end),
        cmocka_unit_test(a_uuid_is_of_version_4_and_never_the_same),
        cmocka_unit_test(only_one_plain_segment_is_a_name),
        cmocka_unit_test(a_file_is_written_whole_and_compared_byte_by_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
