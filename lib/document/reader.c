/* vlm-pdf as a child of the server: its start, its pipe, its deadline. */

#define _GNU_SOURCE

#include "document/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/landlock.h>

#include "base/clock.h"

#define GRACE   1000000                    /* microseconds that vlm-pdf may be late */
#define LOOK    100                        /* milliseconds between two calls of stop() */

typedef struct {
    const vlm_reader_t  *reader;
    pid_t                pid;
    int                  fd;               /* vlm-pdf's output */
    int                  killed;           /* it ended without an answer, or says that it was */
    uint64_t             deadline;         /* microseconds */
} pipe_t;


/* With the time that OCR may take. */
static uint32_t
seconds_of(const vlm_reader_t *r)
{
    return r->seconds + (r->languages != NULL ? r->ocr_seconds : 0);
}


/* The arguments of vlm-pdf, in room for the longest of them. */
typedef struct {
    char   text[9][VLM_PDF_LANGUAGES_MAX + sizeof("ocr=")];
    char  *argv[11];
} arguments_t;


static void
set_arguments(arguments_t *a, const vlm_reader_t *r)
{
    int  i, n = 0;

    snprintf(a->text[n++], sizeof(a->text[0]), "pages=%" PRIu32, r->pages);
    snprintf(a->text[n++], sizeof(a->text[0]), "characters=%" PRIu32, r->characters);
    snprintf(a->text[n++], sizeof(a->text[0]), "memory=%" PRIu64, r->memory);
    snprintf(a->text[n++], sizeof(a->text[0]), "time=%" PRIu32,
             seconds_of(r));

    if (r->picture) {
        snprintf(a->text[n++], sizeof(a->text[0]), "picture=%" PRIu32, r->picture);
        snprintf(a->text[n++], sizeof(a->text[0]), "pixels=%" PRIu32, r->pixels);
    }

    if (r->languages != NULL) {
        snprintf(a->text[n++], sizeof(a->text[0]), "ocr=%s", r->languages);
        snprintf(a->text[n++], sizeof(a->text[0]), "ocr_time=%" PRIu32, r->ocr_seconds);
    }

    if (r->seccomp_alone) {
        snprintf(a->text[n++], sizeof(a->text[0]), "sandbox=seccomp");
    }

    a->argv[0] = (char *) r->helper;

    for (i = 0; i < n; i++) {
        a->argv[i + 1] = a->text[i];
    }

    a->argv[n + 1] = NULL;
}


/*
 * The child has the file, the pipe and nothing else: no environment, no signal that is blocked or
 * ignored, a process group of its own.
 */
static int
spawn_with(pid_t *pid, const vlm_reader_t *r, int out, posix_spawn_file_actions_t *files,
    posix_spawnattr_t *attr)
{
    int          rc;
    sigset_t     all, none;
    arguments_t  arguments;
    char        *environment[] = { NULL };

    sigfillset(&all);
    sigemptyset(&none);
    set_arguments(&arguments, r);

    rc = posix_spawn_file_actions_adddup2(files, r->fd, 0);
    rc = rc ? rc : posix_spawn_file_actions_adddup2(files, out, 1);
    rc = rc ? rc : posix_spawn_file_actions_addopen(files, 2, "/dev/null", O_WRONLY, 0);
    rc = rc ? rc : posix_spawn_file_actions_addclosefrom_np(files, 3);
    rc = rc ? rc : posix_spawnattr_setsigdefault(attr, &all);
    rc = rc ? rc : posix_spawnattr_setsigmask(attr, &none);
    rc = rc ? rc : posix_spawnattr_setpgroup(attr, 0);
    rc = rc ? rc : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK
                                                  | POSIX_SPAWN_SETPGROUP);

    return rc ? rc : posix_spawn(pid, r->helper, files, attr, arguments.argv, environment);
}


/* 0 or an errno. */
static int
spawn(pid_t *pid, const vlm_reader_t *r, int out)
{
    int                         rc;
    posix_spawnattr_t           attr;
    posix_spawn_file_actions_t  files;

    rc = posix_spawnattr_init(&attr);

    if (rc) {
        return rc;
    }

    rc = posix_spawn_file_actions_init(&files);

    if (rc == 0) {
        rc = spawn_with(pid, r, out, &files, &attr);
        posix_spawn_file_actions_destroy(&files);
    }

    posix_spawnattr_destroy(&attr);

    return rc;
}


/* The bytes, or -1: they did not come, and err says why. */
static int
read_all(pipe_t *p, void *data, size_t bytes, vlm_err_t *err)
{
    char           *to = data;
    ssize_t         n;
    struct pollfd   poll_fd = { .fd = p->fd, .events = POLLIN };

    while (bytes > 0) {
        if (p->reader->stop != NULL && p->reader->stop(p->reader->data)) {
            return vlm_fail(err, VLM_ECANCELLED, "reading the PDF was stopped");
        }

        if (vlm_now_us() >= p->deadline) {
            return vlm_fail(err, VLM_EINPUT, VLM_PDF_LATE " %u s",
                            seconds_of(p->reader));
        }

        n = poll(&poll_fd, 1, LOOK);

        if (n > 0) {
            n = read(p->fd, to, bytes);

            if (n == 0) {
                p->killed = 1;
                return vlm_fail(err, VLM_EINPUT, "the PDF reader ended before its answer");
            }
        }

        if (n < 0 && errno != EINTR) {
            return vlm_fail(err, VLM_EDEVICE, "the PDF reader's pipe: %s", strerror(errno));
        }

        to += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t) n : 0;
    }

    return 0;
}


/* A body in *room, which grows up to VLM_FRAME_MAX. */
static int
read_body(pipe_t *p, char **body, uint32_t *room, uint32_t bytes, vlm_err_t *err)
{
    char  *more;

    if (bytes > *room) {
        more = realloc(*body, bytes);

        if (more == NULL) {
            return vlm_fail(err, VLM_EMEMORY, "no memory for a page of %u bytes", bytes);
        }

        *body = more;
        *room = bytes;
    }

    return read_all(p, *body, bytes, err);
}


static int
read_frames(pipe_t *p, char **body, vlm_err_t *err)
{
    char          head[VLM_FRAME_HEAD];
    uint32_t      kind, bytes, room;
    vlm_frame_t   frame;
    vlm_frames_t  frames = { .max_pages = p->reader->pages,
                             .max_characters = p->reader->characters,
                             .picture = p->reader->picture };

    room = 0;

    while (!frames.ended) {
        if (read_all(p, head, sizeof(head), err) || vlm_frame_head(head, &kind, &bytes, err)
            || read_body(p, body, &room, bytes, err)
            || vlm_frame_read(&frames, kind, *body, bytes, &frame, err))
        {
            return -1;
        }

        if (frame.kind == VLM_FRAME_ERROR || frame.kind == VLM_FRAME_KILLED) {
            p->killed = frame.kind == VLM_FRAME_KILLED;
            return vlm_fail(err, VLM_EINPUT, "%.*s", (int) frame.bytes, frame.text);
        }

        if (frame.kind == VLM_FRAME_DENIED) {
            (void) vlm_fail(p->reader->denied, VLM_EINPUT, "%.*s", (int) frame.bytes, frame.text);
            continue;
        }

        if (frame.kind != VLM_FRAME_END && p->reader->frame(p->reader->data, &frame)) {
            return vlm_fail(err, VLM_ECANCELLED, "reading the PDF was stopped");
        }
    }

    return 0;
}


/*
 * vlm-pdf ends when its pipe is closed.  While the pipe is open on the other side there is a
 * process in its group, so that the group's number cannot be another's.
 */
static void
finish(pipe_t *p)
{
    struct pollfd  poll_fd = { .fd = p->fd };

    if (vlm_now_us() >= p->deadline && poll(&poll_fd, 1, 0) == 0) {
        kill(-p->pid, SIGKILL);
    }

    close(p->fd);
}


int
vlm_reader_run(const vlm_reader_t *reader, vlm_err_t *err)
{
    int      rc, fds[2];
    char    *body;
    pipe_t   p = { .reader = reader };

    if (pipe2(fds, O_CLOEXEC)) {
        return vlm_fail(err, VLM_EDEVICE, "no pipe for the PDF reader: %s", strerror(errno));
    }

    /* vlm-pdf reads from where the file stands, and may not be the first to do so. */
    (void) lseek(reader->fd, 0, SEEK_SET);
    rc = spawn(&p.pid, reader, fds[1]);
    close(fds[1]);

    if (rc) {
        close(fds[0]);
        return vlm_fail(err, VLM_EDEVICE, "%s cannot be run: %s", reader->helper, strerror(rc));
    }

    p.fd = fds[0];
    p.deadline = vlm_now_us() + seconds_of(reader) * (VLM_PDF_SHARE + 1) * 1000000ull + GRACE;
    body = NULL;
    rc = read_frames(&p, &body, err);
    free(body);
    finish(&p);

    return p.killed ? VLM_READER_KILLED : rc;
}


int
vlm_reader_landlock(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 0;
}
