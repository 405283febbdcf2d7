/* After its reading the store has a document's pages, or the reason that there are none. */

#define _GNU_SOURCE

#include "document/reading.h"

#include <poll.h>

#include "document/reader_fixture.h"
#include "store/documents_fixture.h"
#include "store/store_fixture.h"


/* ---- vlm-pdf ------------------------------------------------------------------------------ */

/* Pages, or another end as the part asks. */
static int
helper(int argc, char **argv)
{
    int             i;
    char            part[PART];
    uint32_t        page;
    const uint32_t  info[2] = { 2, 2 }, two = 2;

    if (read_part(part) != 0 || strcmp(part, "killed") == 0) {
        return 0;
    }

    if (strcmp(part, "locked") == 0) {
        return complain("a password is needed");
    }

    if (strcmp(part, "late") == 0) {
        return complain(VLM_PDF_LATE " 600 s");
    }

    for (i = 1; i < argc; i++) {
        if (strncmp(argv[i], "ocr=", 4) == 0) {
            return complain(VLM_PDF_OCR_ERROR "no such language");
        }
    }

    say(VLM_FRAME_INFO, info, sizeof(info));

    for (page = 1; page <= 2; page++) {
        say_page(page);

        if (strcmp(part, "late after one") == 0) {
            return complain(VLM_PDF_LATE " 600 s of processor time");
        }

        if (strcmp(part, "large after one") == 0) {
            return complain(VLM_PDF_LARGE " 512 MB of memory");
        }

        if (strcmp(part, "dead after one") == 0) {
            return complain(VLM_PDF_DIED " (signal 11)");
        }

        if (strcmp(part, "wait") == 0) {
            return poll(&(struct pollfd) { .fd = 1 }, 1, -1) != 1;
        }
    }

    say(VLM_FRAME_END, &two, sizeof(two));

    return 0;
}


/* ---- tests -------------------------------------------------------------------------------- */

static int
has_pages(void *data)
{
    return ((vlm_reading_t *) data)->read.n > 0;
}


static vlm_reading_t
reading_of(store_t *st)
{
    return (vlm_reading_t) {
        .store = st,
        .reader = { .helper = "/proc/self/exe", .pages = 200, .characters = 400000,
                    .memory = 512u << 20, .seconds = 600 }
    };
}


/* Takes the next document and reads it; doc becomes what the store has of it then. */
static void
read_next(vlm_reading_t *r, doc_t *doc)
{
    err_t  err;

    assert_int_equal(vlm_document_take(r->store, &r->doc, NULL), OK);
    assert_int_equal(vlm_reading_run(r, &err), OK);
    assert_int_equal(vlm_document_get(r->store, NULL, S(r->doc.id), doc, NULL), OK);
    wait_for_all();
}


static void
a_document_has_its_pages(void **state)
{
    doc_t          doc;
    vlm_reading_t  r = reading_of(*state);

    /* the caller sets no more than reading_of() does */

    memset(&r.read, 0xff, sizeof(r.read));

    assert_int_equal(add(*state, "s", "whole", "a.pdf", 0, &doc, NULL), OK);
    read_next(&r, &doc);

    assert_int_equal(doc.state, VLM_DOCUMENT_READY);
    assert_int_equal(doc.read, 2);
    assert_int_equal(r.pages, 2);
    assert_int_equal(r.rc, 0);
    assert_int_equal(r.failed, 0);
    assert_int_equal(r.err.code, VLM_OK);
    assert_null(r.read.page);
}


static void
a_document_fails_with_the_readers_sentence(void **state)
{
    doc_t          doc;
    vlm_reading_t  r = reading_of(*state);

    assert_int_equal(add(*state, "s", "locked", "a.pdf", 0, &doc, NULL), OK);
    read_next(&r, &doc);

    assert_int_equal(doc.state, VLM_DOCUMENT_FAILED);
    assert_string_equal(doc.error, "a password is needed");
    assert_int_equal(r.failed, 1);
    assert_int_equal(r.pages, 0);

    /* the same bytes are read again */

    assert_int_equal(add(*state, "s", "locked", "a.pdf", 0, &doc, NULL), OK);
    assert_int_equal(doc.state, VLM_DOCUMENT_WAITING);
}


static void
a_file_that_took_all_its_time_rests(void **state)
{
    doc_t          doc;
    vlm_reading_t  r = reading_of(*state);

    assert_int_equal(add(*state, "s", "late", "a.pdf", 0, &doc, NULL), OK);
    read_next(&r, &doc);
    assert_int_equal(doc.state, VLM_DOCUMENT_FAILED);

    assert_int_equal(add(*state, "s", "late", "a.pdf", 0, &doc, NULL), OK);
    assert_int_equal(doc.state, VLM_DOCUMENT_FAILED);
}


static void
pages_that_were_read_before_a_limit_are_kept(void **state)
{
    size_t         i;
    doc_t          doc;
    vlm_reading_t  r = reading_of(*state);

    static const struct { const char *part, *error; } cases[] = {
        { "late after one",
          "reading took longer than 600 s of processor time: 1 of 2 pages were read" },
        { "large after one",
          "reading needed more than 512 MB of memory: 1 of 2 pages were read" }
    };

    for (i = 0; i < 2; i++) {
        assert_int_equal(add(*state, "s", cases[i].part, "a.pdf", 0, &doc, NULL), OK);
        read_next(&r, &doc);

        assert_int_equal(doc.state, VLM_DOCUMENT_READY);
        assert_string_equal(doc.error, cases[i].error);
        assert_string_equal(r.err.text, cases[i].error);
        assert_int_equal(doc.pages, 2);
        assert_int_equal(doc.to_read, 2);
        assert_int_equal(doc.read, 1);
        assert_int_equal(r.pages, 1);
        assert_int_equal(r.failed, 0);
    }

    /* what the reader said of a file that ends it is not trusted */

    assert_int_equal(add(*state, "s", "dead after one", "a.pdf", 0, &doc, NULL), OK);
    read_next(&r, &doc);
    assert_int_equal(doc.state, VLM_DOCUMENT_FAILED);
}


static void
a_document_whose_reader_was_killed_waits_for_three_attempts(void **state)
{
    int            attempt;
    doc_t          doc;
    vlm_reading_t  r = reading_of(*state);

    assert_int_equal(add(*state, "s", "killed", "a.pdf", 0, &doc, NULL), OK);

    for (attempt = 1; attempt <= VLM_DOCUMENT_ATTEMPTS; attempt++) {
        read_next(&r, &doc);
        assert_int_equal(r.rc, VLM_READER_KILLED);
        assert_int_equal(r.failed, attempt == VLM_DOCUMENT_ATTEMPTS);
        assert_int_equal(doc.state, r.failed ? VLM_DOCUMENT_FAILED : VLM_DOCUMENT_WAITING);
    }

    assert_non_null(strstr(doc.error, "and this was attempt 3 of 3"));
}


static void
without_ocrs_language_a_document_is_read_without_ocr(void **state)
{
    doc_t          doc;
    vlm_reading_t  r = reading_of(*state);

    r.reader.languages = "xyz";
    r.reader.ocr_seconds = 7;

    assert_int_equal(add(*state, "s", "whole", "a.pdf", 0, &doc, NULL), OK);
    read_next(&r, &doc);

    assert_int_equal(doc.state, VLM_DOCUMENT_READY);
    assert_int_equal(r.pages, 2);
    assert_int_equal(r.err.code, VLM_OK);
    assert_string_equal(r.ocr.text, VLM_PDF_OCR_ERROR "no such language");
    assert_string_equal(r.reader.languages, "xyz");
}


static void
a_document_waits_again_if_its_reading_is_stopped(void **state)
{
    doc_t          doc;
    vlm_reading_t  r = reading_of(*state);

    r.reader.stop = has_pages;

    assert_int_equal(add(*state, "s", "wait", "a.pdf", 0, &doc, NULL), OK);
    read_next(&r, &doc);

    assert_int_equal(r.err.code, VLM_ECANCELLED);
    assert_int_equal(r.failed, 0);
    assert_int_equal(doc.state, VLM_DOCUMENT_WAITING);
    assert_int_equal(vlm_document_take(*state, &doc, NULL), OK);
    assert_int_equal(doc.attempt, 1);
}


static void
a_reader_that_cannot_be_run_is_not_the_files_fault(void **state)
{
    doc_t          doc;
    vlm_reading_t  r = reading_of(*state);

    r.reader.helper = "/nonexistent/vlm-pdf";

    assert_int_equal(add(*state, "s", "whole", "a.pdf", 0, &doc, NULL), OK);
    read_next(&r, &doc);

    assert_int_equal(r.err.code, VLM_EDEVICE);
    assert_int_equal(doc.state, VLM_DOCUMENT_FAILED);
    assert_string_equal(doc.error, "the reader cannot be run");
}


static void
a_document_that_is_deleted_meanwhile_is_no_error(void **state)
{
    doc_t          doc;
    err_t          err;
    vlm_reading_t  r = reading_of(*state);

    assert_int_equal(add(*state, "s", "whole", "a.pdf", 0, &doc, NULL), OK);
    assert_int_equal(vlm_document_take(*state, &r.doc, NULL), OK);
    assert_int_equal(vlm_document_delete(*state, NULL, S(doc.id), NULL), OK);

    assert_int_equal(vlm_reading_run(&r, &err), OK);
    assert_int_equal(r.err.code, VLM_EDEVICE);
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        TEST(a_document_has_its_pages),
        TEST(a_document_fails_with_the_readers_sentence),
        TEST(a_file_that_took_all_its_time_rests),
        TEST(pages_that_were_read_before_a_limit_are_kept),
        TEST(a_document_whose_reader_was_killed_waits_for_three_attempts),
        TEST(without_ocrs_language_a_document_is_read_without_ocr),
        TEST(a_document_waits_again_if_its_reading_is_stopped),
        TEST(a_reader_that_cannot_be_run_is_not_the_files_fault),
        TEST(a_document_that_is_deleted_meanwhile_is_no_error)
    };

    if (argc > 1) {
        return helper(argc, argv);
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
