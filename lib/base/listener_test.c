/* A unix socket is its owner's alone, and one without a listener is known. */

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
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/listener.h"

static int                 fails;      /* listen() does, with this */
static char                dir[64], path[80];
static struct sockaddr_un  address;

#define ADDRESS  (const struct sockaddr *) &address, sizeof(address)


/* In place of the C library's, whose system call does not fail on a socket that was just bound. */
int
listen(int fd, int backlog)
{
    if (fails) {
        errno = fails;
        return -1;
    }

    return (int) syscall(SYS_listen, fd, backlog);
}


static int
setup(void **state)
{
    (void) state;

    strcpy(dir, "/tmp/vlm-listener-XXXXXX");

    if (mkdtemp(dir) == NULL) {
        return -1;
    }

    (void) snprintf(path, sizeof(path), "%s/s", dir);

    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path);

    return 0;
}


static int
teardown(void **state)
{
    (void) state;

    (void) unlink(path);

    return rmdir(dir);
}


static void
only_the_owner_may_connect(void **state)
{
    int          fd;
    mode_t       mask;
    struct stat  st;

    (void) state;

    mask = umask(0);
    fd = vlm_listener_open(ADDRESS, 5);
    umask(mask);

    assert_true(fd >= 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(vlm_listener_is_dead(path, ADDRESS), 0);

    assert_int_equal(vlm_listener_open(ADDRESS, 5), -1);
    assert_int_equal(errno, EADDRINUSE);

    close(fd);
}


static void
a_socket_without_a_listener_is_dead(void **state)
{
    int    fd;
    FILE  *f;

    (void) state;

    assert_int_equal(vlm_listener_is_dead(path, ADDRESS), 0);

    fd = vlm_listener_open(ADDRESS, 5);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(vlm_listener_is_dead(path, ADDRESS), 1);

    /* another kind of file is left alone */

    assert_int_equal(unlink(path), 0);
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(vlm_listener_is_dead(path, ADDRESS), 0);
}


static void
one_that_cannot_listen_leaves_no_file(void **state)
{
    int  fd;

    (void) state;

    fails = ENOBUFS;
    assert_int_equal(vlm_listener_open(ADDRESS, 5), -1);
    assert_int_equal(errno, ENOBUFS);
    assert_int_equal(access(path, F_OK), -1);

    /* the file of another socket stays */

    fails = 0;
    fd = vlm_listener_open(ADDRESS, 5);
    assert_true(fd >= 0);

    fails = ENOBUFS;
    assert_int_equal(vlm_listener_open(ADDRESS, 5), -1);
    assert_int_equal(errno, EADDRINUSE);
    assert_int_equal(vlm_listener_is_dead(path, ADDRESS), 0);

    fails = 0;
    close(fd);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(only_the_owner_may_connect, setup, teardown),
        cmocka_unit_test_setup_teardown(a_socket_without_a_listener_is_dead, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_cannot_listen_leaves_no_file, setup, teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
