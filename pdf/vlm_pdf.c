/* The command line of vlm-pdf, and its two processes. */

#define _GNU_SOURCE

#include "pdf.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ocr.h"


static const char  USAGE[] =
    "usage: vlm-pdf [pages=N] [characters=N] [picture=PAGE] [pixels=N] [memory=BYTES]\n"
    "               [time=SECONDS] [ocr=LANGUAGES] [ocr_time=SECONDS] [sandbox=seccomp]\n"
    "               <FILE.pdf | ...\n"
    "nginx's module runs this program once for each document.  It reads a PDF file from its input\n"
    "and writes frames to a pipe: lib/document/frame.h describes them.\n";

/* An allocation that fails is noted, because the libraries end the process in several ways. */

#ifndef __SANITIZE_ADDRESS__               /* which has its own malloc() */

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

#endif


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


/* Names as Tesseract has them, "eng" or "chi_sim+eng", which become parts of a path. */
static const char *
languages(const char *arg)
{
    const char  *names = arg + sizeof("ocr=") - 1;
    size_t       n = strlen(arg);

    if (strncmp(arg, "ocr=", sizeof("ocr=") - 1) != 0 || *names == '\0'
        || n - (sizeof("ocr=") - 1) >= PDF_OCR_LANGUAGES
        || names[strspn(names, VLM_PDF_LANGUAGES)] != '\0')
    {
        return NULL;
    }

    return names;
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
        } else if (number(argv[i], "time", 1, 7200, &n)) {
            job->seconds = (uint32_t) n;
        } else if (number(argv[i], "ocr_time", 1, 3600, &n)) {
            job->ocr_seconds = (uint32_t) n;
        } else if (languages(argv[i])) {
            job->languages = languages(argv[i]);
        } else if (strcmp(argv[i], "sandbox=seccomp") == 0) {
            job->seccomp_alone = 1;
        } else {
            return -1;
        }
    }

    return 0;
}


int
main(int argc, char **argv)
{
    int          fds[2];
    pid_t        parent, child;
    struct stat  out;
    pdf_job_t    job = { .pages = 200, .characters = 400000, .memory = 512u << 20, .seconds = 30,
                         .ocr_seconds = 30, .pixels = 1u << 20 };

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
        /* The server's pipe is the parent's alone. */
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        dup2(2, 1);
        close(fds[0]);

        _exit(getppid() != parent || pdf_read(&job, fds[1]) ? 1 : 0);
    }

    close(0);
    close(fds[1]);

    return pdf_watch(&job, child, fds[0]);
}
