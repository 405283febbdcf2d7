/* A directory is made where the one above it is there, and one that is there is left alone. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"

#define NOBODY  65534

static char  top[64], path[96], above[96];


static int
setup(void **state)
{
    (void) state;

    strcpy(top, "/tmp/vlm-folder-XXXXXX");

    return mkdtemp(top) != NULL && chdir(top) == 0 ? 0 : -1;
}


static int
teardown(void **state)
{
    char  command[96];

    (void) state;

    (void) snprintf(command, sizeof(command), "rm -rf %s", top);

    return chdir("/") == 0 ? system(command) : -1;
}


static const char *
at(const char *name)
{
    (void) snprintf(path, sizeof(path), "%s/%s", top, name);

    return path;
}


static void
a_new_one_is_its_user_s_alone(void **state)
{
    mode_t       mask = umask(0);
    struct stat  st;
    const uid_t  user = geteuid() == 0 ? NOBODY : getuid();
    const gid_t  group = geteuid() == 0 ? NOBODY : getgid();

    (void) state;

    assert_int_equal(vlm_folder_make(at("own"), (uid_t) -1, (gid_t) -1), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(st.st_uid, geteuid());

    assert_int_equal(vlm_folder_make(at("theirs"), user, group), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(st.st_uid, user);
    assert_int_equal(st.st_gid, group);

    (void) umask(mask);
}


static void
one_that_is_there_keeps_its_mode_and_owner(void **state)
{
    struct stat  st;

    (void) state;

    assert_int_equal(mkdir(at("there"), 0700), 0);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(vlm_folder_make(path, geteuid() == 0 ? NOBODY : getuid(), getgid()), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(st.st_uid, geteuid());
}


static void
without_the_one_above_none_is_made(void **state)
{
    (void) state;

    errno = 0;
    assert_int_equal(vlm_folder_make(at("none/none"), (uid_t) -1, (gid_t) -1), -1);
    assert_int_equal(errno, ENOENT);
}


static void
check_new(const char *name, int is_new, const char *dir)
{
    assert_int_equal(vlm_folder_is_new(name, above, sizeof(above)), is_new);
    assert_string_equal(above, dir);
}


static void
a_new_one_is_told_from_one_that_cannot_be_made(void **state)
{
    char  dir[80], tight[8];

    (void) state;

    (void) snprintf(dir, sizeof(dir), "%s/", top);

    check_new(at("n"), 1, dir);
    check_new(at("n/"), 1, dir);
    check_new(at("n//"), 1, dir);
    check_new("n", 1, ".");
    check_new("n/", 1, ".");
    check_new("/vlm-folder-none", 1, "/");

    check_new(at("n/n"), 0, "");
    check_new(top, 0, "");
    check_new("/", 0, "");
    check_new("", 0, "");

    assert_int_equal(close(mkstemp(strcpy(path, "fileXXXXXX"))), 0);
    check_new(path, 0, "");

    strcat(path, "/n");
    check_new(path, 0, "");

    assert_int_equal(vlm_folder_is_new(at("n"), tight, sizeof(tight)), 0);
    assert_string_equal(tight, "");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_new_one_is_its_user_s_alone),
        cmocka_unit_test(one_that_is_there_keeps_its_mode_and_owner),
        cmocka_unit_test(without_the_one_above_none_is_made),
        cmocka_unit_test(a_new_one_is_told_from_one_that_cannot_be_made),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
