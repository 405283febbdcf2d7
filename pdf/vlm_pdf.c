/* The parent: the command line, the child's frames, the reason of its death. */

#define _GNU_SOURCE

#include "pdf.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "document/frame.h"

static const char  USAGE[] =
    "usage: vlm-pdf [pages=N] [characters=N] [picture=PAGE] [pixels=N] [memory=BYTES] [time=SECONDS]\n"
    "               [sandbox=seccomp] <FILE.pdf | ...\n"
    "nginx's module runs this program once for each document.  It reads a PDF file from its input\n"
    "and writes frames to a pipe: lib/document/frame.h describes them.\n";

pdf_hint_t  *pdf_hint;


/* An allocation that fails is noted, because the libraries end the process in several ways. */

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);


static void *
noted(void *p, size_t bytes)
{
    if (p == NULL && bytes > 0 && pdf_hint != NULL) {
        pdf_hint->no_memory = 1;
    }

    return p;
}


void *
malloc(size_t bytes)
{
    return noted(__libc_malloc(bytes), bytes);
}


void *
calloc(size_t n, size_t bytes)
{
    return noted(__libc_calloc(n, bytes), n && bytes);
}


void *
realloc(void *p, size_t bytes)
{
    return noted(__libc_realloc(p, bytes), bytes);
}


/* ---- the command line --------------------------------------------------------------------- */

static int
number(const char *arg, const char *name, uint64_t low, uint64_t high, uint64_t *n)
{
    char    *end;
    size_t   len = strlen(name);

    if (strncmp(arg, name, len) != 0 || arg[len] != '=' || arg[len + 1] < '0'
        || arg[len + 1] > '9')
    {
        return 0;
    }

    errno = 0;
    *n = strtoull(arg + len + 1, &end, 10);

    return *end == '\0' && errno == 0 && *n >= low && *n <= high;
}


static int
parse(pdf_job_t *job, int argc, char **argv)
{
    int       i;
    uint64_t  n;

    for (i = 1; i < argc; i++) {
        if (number(argv[i], "pages", 1, VLM_PDF_PAGES, &n)) {
            job->pages = (uint32_t) n;
        } else if (number(argv[i], "characters", 1, 1u << 30, &n)) {
            job->characters = (uint32_t) n;
        } else if (number(argv[i], "picture", 1, VLM_PDF_PAGES, &n)) {
            job->picture = (uint32_t) n;
        } else if (number(argv[i], "pixels", 1, 16u << 20, &n)) {
            job->pixels = (uint32_t) n;
        } else if (number(argv[i], "memory", 64u << 20, 64ull << 30, &n)) {
            job->memory = n;
        } else if (number(argv[i], "time", 1, 3600, &n)) {
            job->seconds = (uint32_t) n;
        } else if (strcmp(argv[i], "sandbox=seccomp") == 0) {
            job->seccomp_alone = 1;
        } else {
            return -1;
        }
    }

    return 0;
}


/* ---- the child's frames ------------------------------------------------------------------- */

/* The child's pipe until the deadline. */
typedef struct {
    int       fd;
    uint64_t  deadline;                    /* microseconds */
    int       late;
    int       left;                        /* the output is read no more */
} source_t;


/* 1: all bytes are read; 0: the pipe has ended, the time is over, or the server has left. */
static int
read_all(source_t *s, void *data, size_t bytes)
{
    char           *p = data;
    ssize_t         n;
    uint64_t        now;
    struct pollfd   fds[2] = { { .fd = s->fd, .events = POLLIN }, { .fd = 1 } };

    while (bytes > 0) {
        now = vlm_now_us();
        n = now < s->deadline ? poll(fds, 2, (int) ((s->deadline - now) / 1000 + 1)) : 0;

        if (n == 0) {
            s->late = 1;
            return 0;
        }

        if (n > 0 && fds[1].revents) {
            s->left = 1;
            return 0;
        }

        n = n > 0 ? read(s->fd, p, bytes) : -1;

        if (n < 0 && errno == EINTR) {
            continue;
        }

        if (n <= 0) {
            return 0;
        }

        p += n;
        bytes -= (size_t) n;
    }

    return 1;
}


static int
write_all(const void *data, size_t bytes)
{
    ssize_t      n;
    const char  *p = data;

    while (bytes > 0) {
        n = write(1, p, bytes);

        if (n < 0 && errno != EINTR) {
            return -1;
        }

        p += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t) n : 0;
    }

    return 0;
}


/* Passes on whole frames.  1: the last one was among them; 0: it was not; -1: the reader left. */
static int
pass_on(source_t *s)
{
    char      *body, *more;
    uint32_t   kind, bytes, room;
    char       head[VLM_FRAME_HEAD];
    int        rc;

    body = NULL;
    room = 0;
    rc = 0;

    while (rc == 0 && read_all(s, head, sizeof(head))
           && vlm_frame_head(head, &kind, &bytes, NULL) == 0)
    {
        if (bytes > room) {
            more = realloc(body, bytes);

            if (more == NULL) {
                break;
            }

            body = more;
            room = bytes;
        }

        if (!read_all(s, body, bytes)) {
            break;
        }

        if (write_all(head, sizeof(head)) || write_all(body, bytes)) {
            rc = -1;
        } else if (kind == VLM_FRAME_ERROR || kind == VLM_FRAME_END) {
            rc = 1;
        }
    }

    free(body);

    return rc;
}


/* ---- the reason --------------------------------------------------------------------------- */

static void
write_reason(const pdf_job_t *job, const source_t *s, int status)
{
    char    text[VLM_FRAME_ERROR_TEXT], name[64], head[VLM_FRAME_HEAD];

    if (s->late) {
        snprintf(text, sizeof(text), "reading took longer than %u s", job->seconds);

    } else if (WIFSIGNALED(status)
               && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
    {
        snprintf(text, sizeof(text), "reading took longer than %u s of processor time",
                 job->seconds);

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

    vlm_frame_write_head(head, VLM_FRAME_ERROR, (uint32_t) strlen(text));

    if (write_all(head, sizeof(head)) == 0) {
        (void) write_all(text, strlen(text));
    }
}


static int
watch(const pdf_job_t *job, pid_t child, int fd)
{
    int       rc, status;
    source_t  s = { .fd = fd, .deadline = vlm_now_us() + job->seconds * 1000000ull };

    rc = pass_on(&s);

    /* A child that closed its pipe is about to end, by itself or by its limit of processor time. */
    if (rc != 0 || s.late || s.left) {
        kill(child, SIGKILL);
    }

    while (waitpid(child, &status, 0) < 0 && errno == EINTR) { }

    if (rc == 0 && !s.left) {
        write_reason(job, &s, status);
    }

    return rc < 0 || s.left;
}


int
main(int argc, char **argv)
{
    int          fds[2];
    pid_t        parent, child;
    struct stat  out;
    pdf_job_t    job = { .pages = 200, .characters = 400000, .memory = 512u << 20, .seconds = 30,
                         .pixels = 1u << 20 };

    if (parse(&job, argc, argv) || fstat(1, &out) || !S_ISFIFO(out.st_mode)) {
        fputs(USAGE, stderr);
        return 1;
    }

    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    pdf_hint = mmap(NULL, sizeof(*pdf_hint), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                    -1, 0);

    if (pdf_hint == MAP_FAILED || pipe2(fds, O_CLOEXEC)) {
        return 1;
    }

    parent = getpid();
    child = fork();

    if (child < 0) {
        return 1;
    }

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        close(fds[0]);

        _exit(getppid() != parent || pdf_read(&job, fds[1]) ? 1 : 0);
    }

    close(0);
    close(fds[1]);

    return watch(&job, child, fds[0]);
}
