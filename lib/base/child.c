/* Work in a process of its own: see child.h. */

#include "base/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT  4096                     /* bytes, which a pipe takes at once */


static void
say(vlm_child_work_t *work, void *data, int fd)
{
    char    text[TEXT];
    size_t  bytes;

    bytes = work(data, text, sizeof(text));

    while (bytes > 0 && write(fd, text, bytes) == -1 && errno == EINTR) {
        /* void */
    }

    _exit(0);
}


static vlm_child_e
hear(pid_t pid, int fd, int ms, char *text, size_t *bytes, int *status)
{
    int            late;
    ssize_t        n;
    struct pollfd  pfd = { .fd = fd, .events = POLLIN };

    late = poll(&pfd, 1, ms) != 1;
    n = late ? 0 : read(fd, text, *bytes);
    *bytes = n > 0 ? (size_t) n : 0;

    if (late) {
        (void) kill(pid, SIGKILL);
    }

    (void) waitpid(pid, status, 0);

    return late ? VLM_CHILD_LATE
           : n > 0 ? VLM_CHILD_SAID
           : *status != 0 ? VLM_CHILD_DIED : VLM_CHILD_DONE;
}


/* A parent may have left SIGCHLD ignored over exec(), which takes the status of a child away. */
static void
stop_ignoring(struct sigaction *saved)
{
    const struct sigaction  standard = { .sa_handler = SIG_DFL };

    (void) sigaction(SIGCHLD, NULL, saved);

    if (saved->sa_handler == SIG_IGN) {
        (void) sigaction(SIGCHLD, &standard, NULL);
    }
}


vlm_child_e
vlm_child_run(vlm_child_work_t *work, void *data, int ms, char *text, size_t *bytes, int *status)
{
    int               fd[2], e;
    pid_t             pid;
    sigset_t          all, saved;
    vlm_child_e       rc;
    struct sigaction  action;

    *status = 0;

    if (pipe(fd) == -1) {
        return VLM_CHILD_NONE;
    }

    (void) sigfillset(&all);
    (void) sigprocmask(SIG_BLOCK, &all, &saved);
    stop_ignoring(&action);

    pid = fork();
    e = errno;

    if (pid == 0) {
        (void) close(fd[0]);
        say(work, data, fd[1]);
    }

    (void) close(fd[1]);

    rc = pid == -1 ? VLM_CHILD_NONE : hear(pid, fd[0], ms, text, bytes, status);

    (void) close(fd[0]);

    if (action.sa_handler == SIG_IGN) {
        (void) sigaction(SIGCHLD, &action, NULL);
    }

    (void) sigprocmask(SIG_SETMASK, &saved, NULL);

    errno = e;

    return rc;
}
