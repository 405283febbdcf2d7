/* Paths of unix sockets that may be bound, and others. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/socket.h"

static char       dir[] = "/tmp/vlm-socket-XXXXXX";
static vlm_err_t  err;


static int
check(const char *path)
{
    err.code = VLM_OK;
    err.text[0] = '\0';

    return vlm_socket_check(path, "/nowhere/store", &err);
}


static void
a_directory_that_is_there_or_will_be_is_taken(void **state)
{
    char  path[64];

    (void) state;

    (void) snprintf(path, sizeof(path), "%s/a.sock", dir);
    assert_int_equal(check(path), 0);
    assert_int_equal(check("/nowhere/store/a.sock"), 0);

    assert_int_equal(check("/nowhere/a.sock"), -1);
    assert_string_equal(err.text, "socket \"/nowhere/a.sock\" cannot be made in \"/nowhere\": "
                                  "No such file or directory");
    assert_int_equal(check("/nowhere/store/b/a.sock"), -1);
}


static void
a_socket_may_be_there_and_another_file_not(void **state)
{
    int                 fd;
    char                path[64];
    FILE               *f;
    struct sockaddr_un  sun = { .sun_family = AF_UNIX };

    (void) state;

    (void) snprintf(path, sizeof(path), "%s/b.sock", dir);
    memcpy(sun.sun_path, path, sizeof(path));

    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &sun, sizeof(sun)), 0);
    (void) close(fd);

    assert_int_equal(check(path), 0);
    (void) unlink(path);

    f = fopen(path, "w");
    assert_non_null(f);
    (void) fclose(f);

    assert_int_equal(check(path), -1);
    assert_non_null(strstr(err.text, "b.sock\" is no socket: move it away"));
    (void) unlink(path);
}


static void
a_path_has_a_longest(void **state)
{
    char  path[VLM_SOCKET_PATH + 2];

    (void) state;

    memset(path, 's', sizeof(path));
    memcpy(path, "/tmp/", 5);
    path[VLM_SOCKET_PATH] = '\0';
    assert_int_equal(check(path), 0);

    path[VLM_SOCKET_PATH] = 's';
    path[VLM_SOCKET_PATH + 1] = '\0';
    assert_int_equal(check(path), -1);
    assert_non_null(strstr(err.text, "has 108 bytes, a unix socket's path may have 107: set"));
}


static void
the_root_is_a_directory_too(void **state)
{
    (void) state;

    assert_int_equal(check("/vlm-no-such.sock"), geteuid() == 0 ? 0 : -1);

    if (geteuid() != 0) {
        assert_non_null(strstr(err.text, "cannot be made in \"/\": "));
    }
}


int
main(void)
{
    int  rc;

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_that_is_there_or_will_be_is_taken),
        cmocka_unit_test(a_socket_may_be_there_and_another_file_not),
        cmocka_unit_test(a_path_has_a_longest),
        cmocka_unit_test(the_root_is_a_directory_too),
    };

    if (mkdtemp(dir) == NULL) {
        return 1;
    }

    rc = cmocka_run_group_tests(tests, NULL, NULL);

    (void) rmdir(dir);

    return rc;
}
