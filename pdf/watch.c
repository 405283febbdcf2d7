/* The parent: the child's frames, its time, the reason of its death. */

#define _GNU_SOURCE

#include "pdf.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

pdf_hint_t  *pdf_hint;


/* The child's pipe until the deadline. */
typedef struct {
    int       fd;
    uint64_t  deadline;                    /* microseconds */
} source_t;

typedef enum {
    GOES_ON = 0,
    LAST,                                  /* an END or an ERROR was passed on */
    ENDED,                                 /* the child has closed its pipe */
    DAMAGED,                               /* a frame without sense, or too long for the memory */
    LATE,
    LEFT                                   /* the server has closed its pipe */
} outcome_t;


static outcome_t
read_all(const source_t *s, void *data, size_t bytes)
{
    char           *p = data;
    ssize_t         n;
    uint64_t        now;
    struct pollfd   fds[2] = { { .fd = s->fd, .events = POLLIN }, { .fd = 1 } };

    while (bytes > 0) {
        now = vlm_now_us();
        n = now < s->deadline ? poll(fds, 2, (int) ((s->deadline - now) / 1000 + 1)) : 0;

        if (n == 0) {
            return LATE;
        }

        if (n > 0 && fds[1].revents) {
            return LEFT;
        }

        n = n > 0 ? read(s->fd, p, bytes) : -1;

        if (n == 0 || (n < 0 && errno != EINTR)) {
            return ENDED;
        }

        p += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t) n : 0;
    }

    return GOES_ON;
}


/* One frame; its body lies in *room bytes, which grow up to VLM_FRAME_MAX. */
static outcome_t
pass_frame(const source_t *s, char **body, uint32_t *room)
{
    char       *more;
    uint32_t    kind, bytes;
    char        head[VLM_FRAME_HEAD];
    outcome_t   outcome;

    outcome = read_all(s, head, sizeof(head));

    if (outcome != GOES_ON) {
        return outcome;
    }

    if (vlm_frame_head(head, &kind, &bytes, NULL)) {
        return DAMAGED;
    }

    if (bytes > *room) {
        more = realloc(*body, bytes);

        if (more == NULL) {
            return DAMAGED;
        }

        *body = more;
        *room = bytes;
    }

    outcome = read_all(s, *body, bytes);

    if (outcome != GOES_ON) {
        return outcome;
    }

    if (pdf_write(1, head, sizeof(head)) || pdf_write(1, *body, bytes)) {
        return LEFT;
    }

    return kind == VLM_FRAME_ERROR || kind == VLM_FRAME_END ? LAST : GOES_ON;
}


static outcome_t
pass_on(const source_t *s)
{
    char       *body;
    uint32_t    room;
    outcome_t   outcome;

    body = NULL;
    room = 0;

    do {
        outcome = pass_frame(s, &body, &room);
    } while (outcome == GOES_ON);

    free(body);

    return outcome;
}


/* ---- the child's end ---------------------------------------------------------------------- */

/*
 * Waits for a child that has closed its pipe: it is about to die, and its status says why.  One
 * that lives on is killed at the deadline, or when the server leaves.
 */
static outcome_t
wait_for(const source_t *s, pid_t child, outcome_t outcome, int *status, struct rusage *used)
{
    struct pollfd  server = { .fd = 1 };

    while (outcome == ENDED) {
        if (wait4(child, status, WNOHANG, used) != 0) {
            return ENDED;
        }

        if (poll(&server, 1, 10) > 0) {
            outcome = LEFT;
        } else if (vlm_now_us() >= s->deadline) {
            outcome = LATE;
        }
    }

    kill(child, SIGKILL);

    while (wait4(child, status, 0, used) < 0 && errno == EINTR) { }

    return outcome;
}


/* The kernel ends a process at its limit of processor time, or for want of memory. */
static void
say_killed(char *text, size_t bytes, const pdf_job_t *job, const struct rusage *used)
{
    if (used->ru_utime.tv_sec + used->ru_stime.tv_sec + 1 >= job->seconds) {
        snprintf(text, bytes, "reading took longer than %u s of processor time", job->seconds);
    } else {
        snprintf(text, bytes, "the system has ended the reader (signal 9)");
    }
}


static void
write_reason(const pdf_job_t *job, outcome_t outcome, int status, const struct rusage *used)
{
    char  text[VLM_FRAME_ERROR_TEXT], name[64];

    if (outcome == LATE) {
        snprintf(text, sizeof(text), "reading took longer than %u s", job->seconds);

    } else if (outcome == DAMAGED) {
        snprintf(text, sizeof(text), "the reader's answer is damaged");

    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
        say_killed(text, sizeof(text), job, used);

    } else if (pdf_hint->call > 0) {
        pdf_call_name(pdf_hint->call - 1, name, sizeof(name));
        snprintf(text, sizeof(text), "the reader tried a forbidden system call, %s", name);

    } else if (pdf_hint->no_memory) {
        snprintf(text, sizeof(text), "reading needed more than %llu MB of memory",
                 (unsigned long long) (job->memory >> 20));

    } else if (WIFSIGNALED(status)) {
        snprintf(text, sizeof(text), "the reader died (signal %d)", WTERMSIG(status));

    } else {
        snprintf(text, sizeof(text), "the reader ended (status %d)", WEXITSTATUS(status));
    }

    (void) pdf_write_frame(1, VLM_FRAME_ERROR, text, strlen(text));
}


int
pdf_watch(const pdf_job_t *job, pid_t child, int fd)
{
    int            status;
    outcome_t      outcome;
    source_t       s = { .fd = fd, .deadline = vlm_now_us() + job->seconds * 1000000ull };
    struct rusage  used = { 0 };

    status = 0;
    outcome = wait_for(&s, child, pass_on(&s), &status, &used);

    if (outcome != LAST && outcome != LEFT) {
        write_reason(job, outcome, status, &used);
    }

    return outcome == LEFT;
}
