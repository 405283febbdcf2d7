/* Children that lie, hang or die: the parent ends in time, with a last frame. */

#define _GNU_SOURCE

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pdf.h"

/* ---- the child's parts -------------------------------------------------------------------- */

static void
info(int out)
{
    const uint32_t  pages[2] = { 1, 1 };

    (void) pdf_write_frame(out, VLM_FRAME_INFO, pages, sizeof(pages));
}


static void
hang(int out)
{
    info(out);

    for ( ;; ) {
        pause();
    }
}


static void
close_and_hang(int out)
{
    close(out);
    hang(out);
}


static void
lie_and_hang(int out)
{
    (void) pdf_write(out, "\377\377\377\377\377\377\377\377", 8);
    hang(out);
}


static void
die(int out)
{
    info(out);
    signal(SIGSEGV, SIG_DFL);           /* cmocka has a handler */
    raise(SIGSEGV);
}


static void
be_killed(int out)
{
    info(out);
    raise(SIGKILL);
}


static void
be_ended(int out)
{
    info(out);
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
}


static void
work(long us)
{
    struct rusage  used;

    do {
        getrusage(RUSAGE_SELF, &used);
    } while (1000000 * (used.ru_utime.tv_sec + used.ru_stime.tv_sec)
             + used.ru_utime.tv_usec + used.ru_stime.tv_usec < us);
}


/* The kernel's end at the limit of processor time, which pdf_walls() sets. */
static void
work_and_be_killed(int out)
{
    info(out);
    work(700000);
    raise(SIGKILL);
}


/* As on a machine whose processors others have: half a second of work in more than one. */
static void
work_slowly(int out)
{
    long  us;

    for (us = 20000; us <= 500000; us += 20000) {
        work(us);
        poll(NULL, 0, 40);
    }

    (void) pdf_write_frame(out, VLM_FRAME_ERROR, "a password is needed", 20);
}


static void
leave(int out)
{
    (void) pdf_write(out, "\1\0\0\0\10\0\0\0half", 12);
    _exit(3);
}


static void
use_no_memory(int out)
{
    (void) out;
    pdf_hint->no_memory = 1;
    abort();
}


/* OCR that hangs, and OCR without memory, on page 3. */
static void
ocr_and_hang(int out)
{
    pdf_hint->ocr_page = 3;
    hang(out);
}


static void
ocr_without_memory(int out)
{
    pdf_hint->ocr_page = 3;
    use_no_memory(out);
}


/* Files that were denied; the hint is the child's, which may write into it what it likes. */
static void
be_denied(int out)
{
    strcpy(pdf_hint->denied[0], "/etc/\"pass\nwd");
    memset(pdf_hint->denied[1], '\377', sizeof(pdf_hint->denied[1]));
    strcpy(pdf_hint->denied[2], "/etc/shadow");
    pdf_hint->n_denied = UINT32_MAX;
    (void) pdf_write_frame(out, VLM_FRAME_ERROR, "a password is needed", 20);
}


static void
be_denied_and_die(int out)
{
    strcpy(pdf_hint->denied[0], "/etc/passwd");
    pdf_hint->n_denied = 1;
    die(out);
}


static void
end_and_hang(int out)
{
    (void) pdf_write_frame(out, VLM_FRAME_ERROR, "a password is needed", 20);
    hang(out);
}


/* ---- tests -------------------------------------------------------------------------------- */

/* All that the server reads while part() is the child, and the parent's exit status. */
static int
run(void (*part)(int out), char *said, size_t room)
{
    int        server[2], frames[2], status;
    size_t     n;
    ssize_t    got;
    pid_t      parent, child;
    pdf_job_t  job = { .memory = 512u << 20, .seconds = 1 };

    memset(pdf_hint, 0, sizeof(*pdf_hint));
    assert_int_equal(pipe2(server, O_CLOEXEC), 0);
    parent = fork();
    assert_true(parent >= 0);

    if (parent == 0) {
        dup2(server[1], 1);
        close(server[0]);
        close(server[1]);
        signal(SIGPIPE, SIG_IGN);
        child = pipe2(frames, O_CLOEXEC) == 0 ? fork() : -1;

        if (child == 0) {
            close(1);
            close(frames[0]);
            part(frames[1]);
            _exit(0);
        }

        close(frames[1]);
        _exit(child < 0 ? 9 : pdf_watch(&job, child, frames[0]));
    }

    close(server[1]);

    for (n = 0; n < room && (got = read(server[0], said + n, room - n)) > 0; n += (size_t) got) { }

    close(server[0]);
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_true(WIFEXITED(status));

    if (room > 0) {
        assert_true(n < room);
        said[n] = '\0';
    }

    return WEXITSTATUS(status);
}


/* The last frame is of this kind, with a sentence that begins so; returns the sentence's bytes. */
static size_t
begins(void (*part)(int out), size_t frames_before, vlm_frame_kind_t kind, const char *sentence)
{
    char      said[1000];
    uint32_t  head[2];

    assert_int_equal(run(part, said, sizeof(said)), 0);
    memcpy(head, said + frames_before, sizeof(head));
    assert_int_equal(head[0], kind);
    assert_memory_equal(said + frames_before + sizeof(head), sentence, strlen(sentence));

    return head[1];
}


static void
says(void (*part)(int out), size_t frames_before, const char *sentence)
{
    assert_int_equal(begins(part, frames_before, VLM_FRAME_ERROR, sentence), strlen(sentence));
}


static void
children_that_hang_are_ended(void **state)
{
    (void) state;

    says(hang, 16, "reading took longer than 1 s");
    says(close_and_hang, 0, "reading took longer than 1 s");
    says(lie_and_hang, 0, "the reader's answer is damaged");
    says(end_and_hang, 0, "a password is needed");
}


/* By the clock they take longer than their second, of which they have used a part. */
static void
children_that_wait_for_a_processor_have_their_time(void **state)
{
    (void) state;

    says(work_slowly, 0, "a password is needed");
}


static void
a_death_has_its_reason(void **state)
{
    (void) state;

    says(die, 16, "the reader died (signal 11)");
    says(leave, 0, "the reader ended (status 3)");
    says(use_no_memory, 0, "reading needed more than 512 MB of memory");
    says(ocr_and_hang, 16, VLM_PDF_OCR_ERROR "page 3: reading took longer than 1 s");
    says(ocr_without_memory, 0,
         VLM_PDF_OCR_ERROR "page 3: reading needed more than 512 MB of memory");
}


/* A child that another process has killed did not die of its file, which can be read again. */
static void
a_kill_is_told_from_a_limit(void **state)
{
    (void) state;

    begins(be_killed, 16, VLM_FRAME_KILLED, "the reader was killed (signal 9)");
    begins(be_ended, 16, VLM_FRAME_KILLED, "the reader was killed (signal 15)");

    /* On a busy machine a second by the clock is over before. */
    begins(work_and_be_killed, 16, VLM_FRAME_ERROR, "reading took longer than 1 s");
}


#define FF  "\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff"

static void
files_that_were_denied_come_before_the_last_frame(void **state)
{
    size_t  n;

    (void) state;

    n = begins(be_denied, 0, VLM_FRAME_DENIED,
               "the reader was not let open \"/etc/\\\"pass\\x0awd\", \"" FF FF "\\xff...\", "
               "\"/etc/shadow\" and 4294967292 more");
    says(be_denied, 8 + n, "a password is needed");

    n = begins(be_denied_and_die, 16, VLM_FRAME_DENIED,
               "the reader was not let open \"/etc/passwd\"");
    says(be_denied_and_die, 16 + 8 + n, "the reader died (signal 11)");
}


static void
the_parent_ends_when_the_server_leaves(void **state)
{
    (void) state;

    assert_int_equal(run(hang, NULL, 0), 1);
    assert_int_equal(run(close_and_hang, NULL, 0), 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(children_that_hang_are_ended),
        cmocka_unit_test(children_that_wait_for_a_processor_have_their_time),
        cmocka_unit_test(a_death_has_its_reason),
        cmocka_unit_test(a_kill_is_told_from_a_limit),
        cmocka_unit_test(files_that_were_denied_come_before_the_last_frame),
        cmocka_unit_test(the_parent_ends_when_the_server_leaves),
    };

    pdf_hint = mmap(NULL, sizeof(*pdf_hint), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                    -1, 0);

    if (pdf_hint == MAP_FAILED) {
        return 1;
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
