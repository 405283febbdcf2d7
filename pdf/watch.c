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
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

#define LOOK  100                          /* milliseconds between two looks at the time */

pdf_hint_t  *pdf_hint;


/*
 * The child's pipe.  Its time is of the processor, and the kernel ends it at that limit.  By the
 * clock it has as much time again for as long as it works: on a busy machine it gets a share of a
 * processor, and one that waits for what will not come gets nothing.
 */
typedef struct {
    int       fd;
    pid_t     child;
    uint64_t  span;                        /* microseconds */
    uint64_t  deadline;
    uint64_t  worked;                      /* of the processor, until the last deadline */
} source_t;

typedef enum {
    GOES_ON = 0,
    LAST,                                  /* an END, an ERROR or a KILLED was passed on */
    ENDED,                                 /* the child has closed its pipe */
    DAMAGED,                               /* a frame without sense, or too long for the memory */
    LATE,
    LEFT                                   /* the server has closed its pipe */
} outcome_t;


/* The child's processor time in microseconds; that of a child that is gone stands still. */
static uint64_t
worked(pid_t child)
{
    clockid_t        clock;
    struct timespec  t;

    if (clock_getcpuclockid(child, &clock) || clock_gettime(clock, &t)) {
        return 0;
    }

    return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}


/* Is the time over?  A child that has worked since the last deadline has another. */
static int
is_late(source_t *s)
{
    const uint64_t  now = vlm_now_us(), total = now < s->deadline ? 0 : worked(s->child);

    if (total > s->worked && total - s->worked >= s->span / VLM_PDF_SHARE) {
        s->worked = total;
        s->deadline = now + s->span;
    }

    return now >= s->deadline;
}


static outcome_t
read_all(source_t *s, void *data, size_t bytes)
{
    char           *p = data;
    ssize_t         n;
    struct pollfd   fds[2] = { { .fd = s->fd, .events = POLLIN }, { .fd = 1 } };

    while (bytes > 0) {
        if (is_late(s)) {
            return LATE;
        }

        n = poll(fds, 2, LOOK);

        if (n > 0 && fds[1].revents) {
            return LEFT;
        }

        if (n > 0) {
            n = read(s->fd, p, bytes);

            if (n == 0) {
                return ENDED;
            }
        }

        if (n < 0 && errno != EINTR) {
            return ENDED;
        }

        p += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t) n : 0;
    }

    return GOES_ON;
}


/* A copy, since the child may still change what it said. */
static void
write_denied(void)
{
    int         n;
    char        text[VLM_FRAME_ERROR_TEXT];
    uint32_t    i;
    pdf_hint_t  hint;

    memcpy(&hint, pdf_hint, sizeof(hint));

    if (hint.n_denied == 0) {
        return;
    }

    n = snprintf(text, sizeof(text), "the reader was not let open");

    for (i = 0; i < hint.n_denied && i < PDF_DENIED; i++) {
        n += snprintf(text + n, sizeof(text) - (size_t) n, "%s \"%s\"", i ? "," : "",
                      vlm_printable_part(hint.denied[i], PDF_DENIED_PATH));
    }

    if (hint.n_denied > PDF_DENIED) {
        n += snprintf(text + n, sizeof(text) - (size_t) n, " and %u more",
                      hint.n_denied - PDF_DENIED);
    }

    (void) pdf_write_frame(1, VLM_FRAME_DENIED, text, (size_t) n);
}


/* One frame; its body lies in *room bytes, which grow up to VLM_FRAME_MAX. */
static outcome_t
pass_frame(source_t *s, char **body, uint32_t *room)
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

    if (vlm_frame_is_last(kind)) {
        write_denied();
    }

    if (pdf_write(1, head, sizeof(head)) || pdf_write(1, *body, bytes)) {
        return LEFT;
    }

    return vlm_frame_is_last(kind) ? LAST : GOES_ON;
}


static outcome_t
pass_on(source_t *s)
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
wait_for(source_t *s, pid_t child, outcome_t outcome, int *status, struct rusage *used)
{
    struct pollfd  server = { .fd = 1 };

    while (outcome == ENDED) {
        if (wait4(child, status, WNOHANG, used) != 0) {
            return ENDED;
        }

        if (poll(&server, 1, 10) > 0) {
            outcome = LEFT;
        } else if (is_late(s)) {
            outcome = LATE;
        }
    }

    kill(child, SIGKILL);

    while (wait4(child, status, 0, used) < 0 && errno == EINTR) { }

    return outcome;
}


/*
 * Did the kernel end the child at its limit of processor time?  It counts by ticks, and wait4()
 * does not, so these times differ a little.
 */
static int
out_of_time(const pdf_job_t *job, int status, const struct rusage *used)
{
    const uint64_t  limit = job->seconds * 1000000ull;
    const uint64_t  slack = limit < 2000000 ? limit / 2 : 1000000;
    const uint64_t  took = (uint64_t) (used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000
                           + (uint64_t) (used->ru_utime.tv_usec + used->ru_stime.tv_usec);

    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && took + slack >= limit;
}


/* Has another process ended the child?  No file makes poppler send these signals. */
static int
was_killed(int status)
{
    const int  signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    return signo == SIGKILL || signo == SIGTERM || signo == SIGINT || signo == SIGHUP
           || signo == SIGQUIT;
}


static vlm_frame_kind_t
say_reason(char *text, size_t bytes, const pdf_job_t *job, outcome_t outcome, int status,
    const struct rusage *used)
{
    char  name[64];

    if (outcome == LATE) {
        snprintf(text, bytes, VLM_PDF_LATE " %u s", job->seconds);

    } else if (outcome == DAMAGED) {
        snprintf(text, bytes, "the reader's answer is damaged");

    } else if (out_of_time(job, status, used)) {
        snprintf(text, bytes, VLM_PDF_LATE " %u s of processor time", job->seconds);

    } else if (was_killed(status)) {
        snprintf(text, bytes, "the reader was killed (signal %d)", WTERMSIG(status));
        return VLM_FRAME_KILLED;

    } else if (pdf_hint->call > 0) {
        pdf_call_name(pdf_hint->call - 1, name, sizeof(name));
        snprintf(text, bytes, VLM_PDF_FORBIDDEN ", %s", name);

    } else if (pdf_hint->no_memory) {
        snprintf(text, bytes, VLM_PDF_LARGE " %llu MB of memory",
                 (unsigned long long) (job->memory >> 20));

    } else if (WIFSIGNALED(status)) {
        snprintf(text, bytes, VLM_PDF_DIED " (signal %d)", WTERMSIG(status));

    } else {
        snprintf(text, bytes, "the reader ended (status %d)", WEXITSTATUS(status));
    }

    return VLM_FRAME_ERROR;
}


/* A reason that is OCR's says so: without OCR the file may be read. */
static void
write_reason(const pdf_job_t *job, outcome_t outcome, int status, const struct rusage *used)
{
    int               n = 0;
    char              text[VLM_FRAME_ERROR_TEXT];
    vlm_frame_kind_t  kind;

    if (pdf_hint->ocr_page > 0) {
        n = snprintf(text, sizeof(text), VLM_PDF_OCR_ERROR "page %u: ", pdf_hint->ocr_page);
    }

    kind = say_reason(text + n, sizeof(text) - (size_t) n, job, outcome, status, used);
    write_denied();
    (void) pdf_write_frame(1, kind, text, strlen(text));
}


int
pdf_watch(const pdf_job_t *job, pid_t child, int fd)
{
    int            status;
    outcome_t      outcome;
    source_t       s = { .fd = fd, .child = child, .span = job->seconds * 1000000ull };
    struct rusage  used = { 0 };

    status = 0;
    s.deadline = vlm_now_us() + s.span;
    outcome = wait_for(&s, child, pass_on(&s), &status, &used);

    if (outcome != LAST && outcome != LEFT) {
        write_reason(job, outcome, status, &used);
    }

    return outcome == LEFT;
}
