/* The start of the PDF reader, its pipe and its deadline, with helpers that lie, hang or die. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>

#include "document/reader.h"
#include "document/reader_fixture.h"


/* ---- the helper's parts ------------------------------------------------------------------- */

/* Frames of two pages, then an end as the part asks. */
static int
play(const char *part)
{
    const uint32_t  info[2] = { 2, 2 }, two = 2;

    if (strcmp(part, "nothing") == 0) {
        return 0;
    }

    if (strcmp(part, "killed") == 0) {
        say_text(VLM_FRAME_KILLED, "the reader was killed (signal 9)");
        return 0;
    }

    if (strcmp(part, "trial") == 0) {
        return complain(VLM_PDF_OCR_ERROR "OCR is not here");
    }

    if (strcmp(part, "locked") == 0) {
        return complain("a password is needed");
    }

    say(VLM_FRAME_INFO, info, sizeof(info));
    say_page(1);

    if (strcmp(part, "die") == 0) {
        raise(SIGSEGV);
    }

    while (strcmp(part, "hang") == 0) {
        pause();
    }

    while (strcmp(part, "flood") == 0) {
        say_page(2);
    }

    if (strcmp(part, "wait") == 0) {
        return poll(&(struct pollfd) { .fd = 1 }, 1, -1) != 1;
    }

    if (strcmp(part, "half") == 0) {
        return write(1, "\2\0\0\0\377", 5) == 5;
    }

    say_page(2);

    if (strcmp(part, "denied") == 0) {
        say_text(VLM_FRAME_DENIED, "the reader was not let open \"/x\"");
    }

    say(VLM_FRAME_END, &two, sizeof(two));

    return 0;
}


/* The server promises this to a helper: the file, a pipe, and nothing else of the server's. */
static int
is_clean(char **environment)
{
    sigset_t  blocked;

    sigprocmask(SIG_SETMASK, NULL, &blocked);

    return environment[0] == NULL && sigismember(&blocked, SIGUSR1) == 0
           && signal(SIGPIPE, SIG_DFL) == SIG_DFL && getpgid(0) == getpid()
           && fcntl(3, F_GETFD) == -1 && fcntl(17, F_GETFD) == -1;
}


/* The part, if the arguments of OCR are right. */
static int
play_ocr(const char *part, const char *ocr_time, const char *time, int argc, char **argv)
{
    int  i, found = 0;

    for (i = 1; i < argc; i++) {
        found += strcmp(argv[i], "ocr=deu+eng") == 0 || strcmp(argv[i], ocr_time) == 0
                 || strcmp(argv[i], time) == 0;
    }

    return play(found == 3 ? part : "nothing");
}


static int
helper(int argc, char **argv, char **environment)
{
    char  part[PART];

    if (read_part(part) != 0 || (strcmp(part, "clean") == 0 && !is_clean(environment))) {
        return 1;
    }

    if (strcmp(part, "ocr") == 0) {
        return play_ocr("whole", "ocr_time=7", "time=607", argc, argv);
    }

    return strncmp(part, "%PDF", 4) == 0
           ? play_ocr("trial", "ocr_time=60", "time=120", argc, argv) : play(part);
}


/* ---- tests -------------------------------------------------------------------------------- */

typedef struct {
    uint32_t  pages;
    int       stop_at;                     /* the page at which frame() stops; 0: none */
    int       left;                        /* what stop() answers */
    vlm_err_t denied;
} seen_t;


static int
on_frame(void *data, const vlm_frame_t *frame)
{
    seen_t  *seen = data;

    if (frame->kind == VLM_FRAME_PAGE) {
        seen->pages = frame->page.number;
    }

    return seen->stop_at != 0 && seen->pages == (uint32_t) seen->stop_at;
}


static int
on_stop(void *data)
{
    const seen_t  *seen = data;

    return seen->left && seen->pages == 1;
}


static int
run(const char *part, seen_t *seen, vlm_err_t *err)
{
    int           fd, rc;
    vlm_reader_t  reader = { .helper = "/proc/self/exe", .pages = 200, .characters = 400000,
                             .memory = 512u << 20, .frame = on_frame,
                             .stop = on_stop, .denied = &seen->denied, .data = seen };

    memset(err, 0, sizeof(*err));
    fd = memfd_create("part", 0);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, part, strlen(part)), strlen(part));
    reader.fd = fd;
    reader.seconds = strcmp(part, "hang") == 0 ? 1 : 600;

    if (strcmp(part, "ocr") == 0) {
        reader.languages = "deu+eng";
        reader.ocr_seconds = 7;
    }

    rc = vlm_reader_run(&reader, err);
    close(fd);

    return rc;
}


static void
whole(void **state)
{
    seen_t     seen = { 0 };
    vlm_err_t  err;

    (void) state;

    assert_int_equal(run("whole", &seen, &err), 0);
    assert_int_equal(seen.pages, 2);
    assert_int_equal(seen.denied.code, VLM_OK);
    wait_for_all();
}


/* A reader that was denied files may have read the pages all the same. */
static void
denied(void **state)
{
    seen_t     seen = { 0 };
    vlm_err_t  err;

    (void) state;

    assert_int_equal(run("denied", &seen, &err), 0);
    assert_int_equal(seen.pages, 2);
    assert_string_equal(seen.denied.text, "the reader was not let open \"/x\"");
    wait_for_all();
}


/* Signals that are blocked or ignored and files that are open here do not reach the helper. */
static void
clean(void **state)
{
    int        rc;
    seen_t     seen = { 0 };
    sigset_t   usr1;
    vlm_err_t  err;

    (void) state;

    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(dup2(2, 17), 17);

    rc = run("clean", &seen, &err);

    close(17);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &usr1, NULL);
    assert_int_equal(rc, 0);
    wait_for_all();
}


/* The time of OCR is beside that of reading. */
static void
ocr(void **state)
{
    seen_t     seen = { 0 };
    vlm_err_t  err;

    (void) state;

    assert_int_equal(run("ocr", &seen, &err), 0);
    assert_int_equal(seen.pages, 2);
    wait_for_all();
}


/* The sentence is for the person who has written the line, without the frame's mark; a minute for
   each of the two limits is not the line's one second. */
static void
a_trial_of_ocr_names_its_languages(void **state)
{
    vlm_err_t     err = { 0 };
    vlm_reader_t  reader = { .helper = "/proc/self/exe", .pages = 1, .characters = 1000,
                             .memory = 512u << 20, .seconds = 1, .languages = "deu+eng",
                             .ocr_seconds = 1 };

    (void) state;

    assert_int_equal(vlm_reader_ocr(&reader, &err), -1);
    assert_string_equal(err.text, "documents ocr=deu+eng: OCR is not here");
    wait_for_all();
}


static void
fails(const char *part, int rc, vlm_code_t code, const char *why)
{
    seen_t     seen = { 0 };
    vlm_err_t  err;

    assert_int_equal(run(part, &seen, &err), rc);
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.text, why));
    wait_for_all();
}


static void
bad_helpers(void **state)
{
    (void) state;

    fails("flood", -1, VLM_EINPUT, "pages out of order");
    fails("locked", -1, VLM_EINPUT, "a password is needed");
    fails("hang", -1, VLM_EINPUT, "longer than 1 s");
}


/* vlm-pdf always ends with a frame: without one something has killed it. */
static void
killed(void **state)
{
    (void) state;

    fails("nothing", VLM_READER_KILLED, VLM_EINPUT, "ended before its answer");
    fails("die", VLM_READER_KILLED, VLM_EINPUT, "ended before its answer");
    fails("half", VLM_READER_KILLED, VLM_EINPUT, "ended before its answer");
    fails("killed", VLM_READER_KILLED, VLM_EINPUT, "the reader was killed (signal 9)");
}


static void
stopped(void **state)
{
    seen_t     seen = { .stop_at = 1 };
    vlm_err_t  err;

    (void) state;

    assert_int_equal(run("whole", &seen, &err), -1);
    assert_int_equal(err.code, VLM_ECANCELLED);
    assert_int_equal(seen.pages, 1);
    wait_for_all();

    /* A helper that takes long is left while it says nothing: its pipe is closed. */
    seen = (seen_t) { .left = 1 };
    assert_int_equal(run("wait", &seen, &err), -1);
    assert_int_equal(err.code, VLM_ECANCELLED);
    assert_int_equal(seen.pages, 1);
    wait_for_all();
}


int
main(int argc, char **argv, char **environment)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(denied),
        cmocka_unit_test(clean),
        cmocka_unit_test(ocr),
        cmocka_unit_test(a_trial_of_ocr_names_its_languages),
        cmocka_unit_test(bad_helpers),
        cmocka_unit_test(killed),
        cmocka_unit_test(stopped),
    };

    if (argc > 1) {
        return helper(argc, argv, environment);
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
