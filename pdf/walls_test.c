/* Behind the walls: each thing that a reader of PDF files must not do, tried. */

#define _GNU_SOURCE

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/landlock.h>

#include <cmocka.h>

#include "pdf.h"

/* Exit statuses of an attempt. */
enum { DENIED = 40, ALLOWED, NO_WALLS };


static int
denied(long rc)
{
    return rc < 0 ? DENIED : ALLOWED;
}


static int
try_socket(void)
{
    return denied(socket(AF_INET, SOCK_STREAM, 0));
}


static int
try_exec(void)
{
    return denied(execl("/bin/true", "true", (char *) NULL));
}


static int
try_kill(void)
{
    return denied(kill(getpid(), SIGTERM));
}


static int
try_fork(void)
{
    return denied(fork());
}


static int
try_trace(void)
{
    return denied(ptrace(PTRACE_TRACEME, 0, 0, 0));
}


static int
try_write(void)
{
    return denied(open("/tmp/vlm-pdf-was-here", O_WRONLY | O_CREAT, 0600));
}


static int
try_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
           == MAP_FAILED ? DENIED : ALLOWED;
}


static int
try_passwd(void)
{
    return open("/etc/passwd", O_RDONLY) == -1 && errno == EACCES ? DENIED : ALLOWED;
}


/* As the walls themselves open files, once they were asked. */
static int
try_passwd_as_walls(void)
{
    return denied(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY, 0, PDF_OPEN_TAG));
}


static int
try_write_as_walls(void)
{
    return denied(syscall(SYS_openat, AT_FDCWD, "/tmp/vlm-pdf-was-here", O_WRONLY | O_CREAT, 0600,
                          PDF_OPEN_TAG));
}


static int
try_proc(void)
{
    return denied(open("/proc/self/environ", O_RDONLY));
}


static int
try_many(void)
{
    int  i;

    for (i = 0; i < 1000; i++) {
        if (try_passwd() != DENIED || try_proc() != DENIED) {
            return ALLOWED;
        }
    }

    return DENIED;
}


/* Other errors than the walls' are those of the call. */
static int
try_none(void)
{
    return open("/etc/fonts/none", O_RDONLY) == -1 && errno == ENOENT
           && open((const char *) 8, O_RDONLY) == -1 && errno == EFAULT
           && open("/etc/fonts", O_RDONLY | O_NOFOLLOW | O_DIRECTORY) >= 0 ? DENIED : ALLOWED;
}


static int
try_fonts(void)
{
    return open("/etc/fonts", O_RDONLY | O_DIRECTORY) >= 0 ? ALLOWED : DENIED;
}


/* The directory that was named besides fonts, as OCR's data. */
static int
try_more(void)
{
    char       begin[2];
    const int  fd = open("/usr/include/stdio.h", O_RDONLY);

    return fd >= 0 && read(fd, begin, 2) == 2 && memcmp(begin, "/*", 2) == 0 ? ALLOWED : DENIED;
}


static int
try_memory(void)
{
    return mmap(NULL, 200u << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
           ? DENIED : ALLOWED;
}


static int
try_grow(void)
{
    return denied(write(10, "x", 1));      /* an open file, whose limit is a size of 0 */
}


static int
try_time(void)
{
    volatile int  going = 1;

    while (going) { }

    return ALLOWED;
}


static int
has_landlock(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}


static int
run(int (*attempt)(void), int *status)
{
    pid_t      child;
    char       text[200];
    pdf_job_t  job = { .memory = 128u << 20, .seconds = 1, .seccomp_alone = !has_landlock() };

    memset(pdf_hint, 0, sizeof(*pdf_hint));
    child = fork();
    assert_true(child >= 0);

    if (child == 0) {
        if (pdf_walls(&job, "/usr/include", text, sizeof(text))) {
            fprintf(stderr, "%s\n", text);
            _exit(NO_WALLS);
        }

        _exit(attempt());
    }

    assert_int_equal(waitpid(child, status, 0), child);

    return WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}


static void
forbidden_calls(void **state)
{
    size_t  i;
    int     status;
    char    name[64];
    const struct {
        int       (*attempt)(void);
        const char *name;
    } t[] = { { try_socket, "socket()" }, { try_exec, "execve()" }, { try_kill, "kill()" },
              { try_fork, "clone()" }, { try_trace, "ptrace()" }, { try_write, "openat()" },
              { try_write_as_walls, "openat()" }, { try_code, "mmap()" } };

    (void) state;

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        assert_int_equal(run(t[i].attempt, &status), 1);
        pdf_call_name(pdf_hint->call - 1, name, sizeof(name));
        assert_string_equal(name, t[i].name);
    }

    assert_int_equal(access("/tmp/vlm-pdf-was-here", F_OK), -1);
}


static void
files(void **state)
{
    int  status;

    (void) state;

    if (!has_landlock()) {
        print_message("# this kernel has no Landlock: opening files is not tested\n");
        skip();
    }

    assert_int_equal(run(try_passwd, &status), DENIED);
    assert_int_equal(run(try_passwd_as_walls, &status), DENIED);
    assert_int_equal(run(try_proc, &status), DENIED);
    assert_int_equal(run(try_fonts, &status), ALLOWED);
    assert_int_equal(run(try_more, &status), ALLOWED);
}


static void
denied_files_are_noted(void **state)
{
    int  status;

    (void) state;

    assert_int_equal(run(try_none, &status), DENIED);
    assert_int_equal(run(try_fonts, &status), ALLOWED);
    assert_int_equal(pdf_hint->n_denied, 0);

#if defined(__x86_64__) || defined(__aarch64__)
    if (has_landlock()) {
        assert_int_equal(run(try_many, &status), DENIED);
        assert_int_equal(pdf_hint->n_denied, 2000);
        assert_string_equal(pdf_hint->denied[0], "/etc/passwd");
        assert_string_equal(pdf_hint->denied[1], "/proc/self/environ");
        assert_string_equal(pdf_hint->denied[PDF_DENIED - 1], "/etc/passwd");
    }
#endif
}


static void
limits(void **state)
{
    int   status;
    char  name[] = "/tmp/walls-test-XXXXXX";

    (void) state;

#ifdef __SANITIZE_ADDRESS__
    (void) try_memory;
    print_message("# the sanitizers reserve addresses: the limit of memory is not tested\n");
#else
    assert_int_equal(run(try_memory, &status), DENIED);
#endif

    assert_int_equal(dup2(mkstemp(name), 10), 10);
    unlink(name);
    assert_int_equal(run(try_grow, &status), -1);
    assert_int_equal(WTERMSIG(status), SIGXFSZ);

    assert_int_equal(run(try_time, &status), -1);
    assert_int_equal(WTERMSIG(status), SIGKILL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(forbidden_calls),
        cmocka_unit_test(files),
        cmocka_unit_test(denied_files_are_noted),
        cmocka_unit_test(limits),
    };

    pdf_hint = mmap(NULL, sizeof(*pdf_hint), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                    -1, 0);

    if (pdf_hint == MAP_FAILED) {
        return 1;
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
