/* Work in a child: what it says, and how it ends. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"

#define LONG  60000                    /* ms */

static char    text[64];
static size_t  bytes;
static int     status;


static vlm_child_e
run(vlm_child_work_t *work, void *data, int ms)
{
    bytes = sizeof(text);
    status = 0;

    return vlm_child_run(work, data, ms, text, &bytes, &status);
}


static size_t
say(void *data, char *to, size_t size)
{
    assert_true(size >= sizeof(text));
    memcpy(to, data, strlen(data));

    return strlen(data);
}


static size_t
leave(void *data, char *to, size_t size)
{
    (void) to;
    (void) size;
    _exit(*(int *) data);
}


static size_t
die(void *data, char *to, size_t size)
{
    (void) to;
    (void) size;
    (void) raise(*(int *) data);

    return 0;
}


static size_t
sleep_on(void *data, char *to, size_t size)
{
    (void) data;
    (void) to;
    (void) size;

    (void) pause();

    return 0;
}


static void
what_a_child_says_is_heard(void **state)
{
    (void) state;

    assert_int_equal(run(say, "no such file", LONG), VLM_CHILD_SAID);
    assert_int_equal(bytes, 12);
    assert_memory_equal(text, "no such file", 12);

    assert_int_equal(run(say, "", LONG), VLM_CHILD_DONE);
    assert_int_equal(bytes, 0);
}


static void
how_a_child_dies_is_known(void **state)
{
    int  code = 3, kill9 = SIGKILL;

    (void) state;

    assert_int_equal(run(leave, &code, LONG), VLM_CHILD_DIED);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);

    assert_int_equal(run(die, &kill9, LONG), VLM_CHILD_DIED);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}


static void
a_child_that_hangs_is_killed(void **state)
{
    (void) state;

    assert_int_equal(run(sleep_on, NULL, 10), VLM_CHILD_LATE);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}


static volatile sig_atomic_t  taken;


/* Takes the status of any child that has ended, as nginx's handler does. */
static void
on_child(int signo)
{
    const int  e = errno;

    (void) signo;

    while (waitpid(-1, NULL, WNOHANG) > 0) {
        taken++;
    }

    errno = e;
}


/* The caller's handler and mask are as before, and the child is no longer there for the handler. */
static void
the_callers_signals_stay(void **state)
{
    int               code = 3;
    sigset_t          mask;
    struct sigaction  saved, now;

    const struct sigaction  action = { .sa_handler = on_child };

    (void) state;

    assert_int_equal(sigaction(SIGCHLD, &action, &saved), 0);
    assert_int_equal(run(leave, &code, LONG), VLM_CHILD_DIED);
    assert_int_equal(sigaction(SIGCHLD, &saved, &now), 0);

    assert_int_equal(WEXITSTATUS(status), 3);
    assert_int_equal(taken, 0);
    assert_ptr_equal(now.sa_handler, on_child);
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    assert_int_equal(sigismember(&mask, SIGCHLD), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}


static void
where_sigchld_is_ignored_a_status_is_known_too(void **state)
{
    int               code = 3;
    struct sigaction  now;

    (void) state;

    assert_true(signal(SIGCHLD, SIG_IGN) != SIG_ERR);

    assert_int_equal(run(leave, &code, LONG), VLM_CHILD_DIED);
    assert_int_equal(WEXITSTATUS(status), 3);
    assert_int_equal(run(say, "", LONG), VLM_CHILD_DONE);

    assert_int_equal(sigaction(SIGCHLD, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, SIG_IGN);
    assert_true(signal(SIGCHLD, SIG_DFL) != SIG_ERR);
}


static void
no_descriptors_are_left_is_said(void **state)
{
    struct rlimit  most, none;

    (void) state;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &most), 0);
    none = most;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);

    assert_int_equal(run(say, "x", LONG), VLM_CHILD_NONE);
    assert_int_equal(errno, EMFILE);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &most), 0);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_child_says_is_heard),
        cmocka_unit_test(how_a_child_dies_is_known),
        cmocka_unit_test(a_child_that_hangs_is_killed),
        cmocka_unit_test(the_callers_signals_stay),
        cmocka_unit_test(where_sigchld_is_ignored_a_status_is_known_too),
        cmocka_unit_test(no_descriptors_are_left_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
