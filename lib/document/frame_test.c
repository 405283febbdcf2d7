/* Frames of the PDF reader: what it may say, and each lie. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/frame.h"

#define TEXT  "Grüße an alle\n"


/* The body of a page with two words, which a test then damages. */
typedef struct {
    vlm_pdf_page_head_t  head;
    vlm_pdf_word_t       words[2];
    char                 text[sizeof(TEXT) - 1];
} page_t;


static page_t
a_page(void)
{
    page_t  p = {
        .head = { .number = 1, .width = 612, .height = 792, .words = 2,
                  .text_bytes = sizeof(TEXT) - 1 },
        .words = { { .first = 0, .bytes = 7, .x0 = 72, .y0 = 72, .x1 = 100, .y1 = 84 },
                   { .first = 8, .bytes = 2, .x0 = 103, .y0 = 72, .x1 = 612, .y1 = 84 } }
    };

    memcpy(p.text, TEXT, sizeof(p.text));

    return p;
}


/* A frame in memory of its own size, so that the sanitizers see a byte too many. */
static int
give(vlm_frames_t *frames, uint32_t kind, const void *body, uint32_t bytes, vlm_frame_t *frame,
    vlm_err_t *err)
{
    int    rc;
    void  *copy;

    copy = malloc(bytes + (bytes == 0));
    assert_non_null(copy);
    memcpy(copy, body, bytes);
    memset(err, 0, sizeof(*err));
    rc = vlm_frame_read(frames, kind, copy, bytes, frame, err);
    free(copy);

    return rc;
}


static void
refused(vlm_frames_t *frames, uint32_t kind, const void *body, uint32_t bytes, const char *why)
{
    vlm_err_t      err;
    vlm_frame_t    frame;
    vlm_frames_t   copy = *frames;

    assert_int_equal(give(&copy, kind, body, bytes, &frame, &err), -1);
    assert_non_null(strstr(err.text, why));
}


static void
begin(vlm_frames_t *frames, uint32_t picture)
{
    vlm_err_t       err;
    vlm_frame_t     frame;
    const uint32_t  info[2] = { 812, 200 };

    memset(frames, 0, sizeof(*frames));
    frames->max_pages = 200;
    frames->max_characters = 20;
    frames->picture = picture;
    assert_int_equal(give(frames, VLM_FRAME_INFO, info, sizeof(info), &frame, &err), 0);
    assert_int_equal(frame.pages, 812);
    assert_int_equal(frame.to_read, 200);
}


static void
a_document(void **state)
{
    page_t          p = a_page();
    vlm_err_t       err;
    vlm_frame_t     frame;
    vlm_frames_t    frames;
    const uint32_t  one = 1, two = 2;

    (void) state;

    begin(&frames, 0);
    assert_int_equal(vlm_frame_read(&frames, VLM_FRAME_PAGE, &p, sizeof(p), &frame, &err), 0);
    assert_int_equal(frame.page.words, 2);
    assert_int_equal(frame.words[1].first, 8);
    assert_memory_equal(frame.text, TEXT, sizeof(TEXT) - 1);

    refused(&frames, VLM_FRAME_PAGE, &p, sizeof(p), "pages out of order");
    refused(&frames, VLM_FRAME_END, &two, 4, "not that of the pages sent");
    assert_int_equal(give(&frames, VLM_FRAME_END, &one, 4, &frame, &err), 0);
    refused(&frames, VLM_FRAME_END, &one, 4, "after the last");
}


/* A second page of 14 characters is too much for 20. */
static void
limits_of_the_request(void **state)
{
    page_t          p = a_page();
    vlm_err_t       err;
    vlm_frame_t     frame;
    vlm_frames_t    frames = { .max_pages = 199 };
    const uint32_t  info[2] = { 812, 200 };

    (void) state;

    refused(&frames, VLM_FRAME_INFO, info, sizeof(info), "more pages than were asked for");

    begin(&frames, 0);
    assert_int_equal(vlm_frame_read(&frames, VLM_FRAME_PAGE, &p, sizeof(p), &frame, &err), 0);
    p.head.number = 2;
    refused(&frames, VLM_FRAME_PAGE, &p, sizeof(p), "more text than was asked for");
}


static void
a_picture(void **state)
{
    vlm_err_t      err;
    vlm_frame_t    frame;
    vlm_frames_t   frames;
    struct {
        uint32_t   n[3];
        char       png[9];
    } body = { { 3, 850, 1100 }, "\211PNG\r\n\032\n" };
    const uint32_t  none = 0;

    (void) state;

    begin(&frames, 0);
    refused(&frames, VLM_FRAME_PICTURE, &body, sizeof(body), "not asked for");

    begin(&frames, 3);
    refused(&frames, VLM_FRAME_END, &none, 4, "missing");
    refused(&frames, VLM_FRAME_PICTURE, &body, 19, "no PNG");
    body.png[1] = 'p';
    refused(&frames, VLM_FRAME_PICTURE, &body, sizeof(body), "no PNG");
    body.png[1] = 'P';
    body.n[1] = VLM_PDF_SIDE + 1;
    refused(&frames, VLM_FRAME_PICTURE, &body, sizeof(body), "impossible size");
    body.n[1] = 0;
    refused(&frames, VLM_FRAME_PICTURE, &body, sizeof(body), "impossible size");
    body.n[1] = 850;
    body.n[2] = VLM_PDF_SIDE + 1;
    refused(&frames, VLM_FRAME_PICTURE, &body, sizeof(body), "impossible size");
    body.n[2] = 0;
    refused(&frames, VLM_FRAME_PICTURE, &body, sizeof(body), "impossible size");
    body.n[2] = 1100;
    body.n[0] = 4;
    refused(&frames, VLM_FRAME_PICTURE, &body, sizeof(body), "not asked for");
    body.n[0] = 3;
    assert_int_equal(give(&frames, VLM_FRAME_PICTURE, &body, sizeof(body), &frame, &err), 0);
    assert_int_equal(frame.height, 1100);
    refused(&frames, VLM_FRAME_PICTURE, &body, sizeof(body), "not asked for");
}


static void
a_reason(void **state)
{
    vlm_err_t      err;
    vlm_frame_t    frame;
    vlm_frames_t   frames = { 0 };

    (void) state;

    refused(&frames, VLM_FRAME_ERROR, "", 0, "not a sentence");
    refused(&frames, VLM_FRAME_ERROR, "a\033[2J", 5, "not a sentence");
    refused(&frames, VLM_FRAME_KILLED, "", 0, "not a sentence");
    assert_int_equal(give(&frames, VLM_FRAME_ERROR, "a password is needed", 20, &frame, &err), 0);
    assert_true(frames.ended);
}


static void
denied_files(void **state)
{
    page_t          p = a_page();
    vlm_err_t       err;
    vlm_frame_t     frame;
    vlm_frames_t    frames;
    const uint32_t  info[2] = { 1, 1 }, none = 0;
    const char      text[VLM_FRAME_ERROR_TEXT + 1] = "the reader was not let open \"/x\"";

    (void) state;

    begin(&frames, 0);
    refused(&frames, VLM_FRAME_DENIED, text, 0, "not a sentence");
    refused(&frames, VLM_FRAME_DENIED, text, sizeof(text), "not a sentence");
    refused(&frames, VLM_FRAME_DENIED, "a\033[2J", 5, "not a sentence");
    assert_int_equal(give(&frames, VLM_FRAME_DENIED, text, 32, &frame, &err), 0);
    assert_false(frames.ended);
    refused(&frames, VLM_FRAME_DENIED, text, 32, "and no end");
    refused(&frames, VLM_FRAME_PAGE, &p, sizeof(p), "and no end");
    assert_int_equal(give(&frames, VLM_FRAME_END, &none, 4, &frame, &err), 0);
    assert_true(frames.ended);
    refused(&frames, VLM_FRAME_DENIED, text, 32, "after the last");

    /* of a file that could not be read at all */
    memset(&frames, 0, sizeof(frames));
    assert_int_equal(give(&frames, VLM_FRAME_DENIED, text, 32, &frame, &err), 0);
    refused(&frames, VLM_FRAME_INFO, info, sizeof(info), "and no end");
    assert_int_equal(give(&frames, VLM_FRAME_KILLED, "x", 1, &frame, &err), 0);
}


/* Each damage is done to a good page, so that it is the only reason for a refusal. */
#define LIE(member, value, why)                                                                    \
    do {                                                                                           \
        page_t  p = a_page();                                                                      \
                                                                                                   \
        p.member = value;                                                                          \
        refused(&frames, VLM_FRAME_PAGE, &p, sizeof(p), why);                                      \
    } while (0)


static void
lies_of_a_page(void **state)
{
    page_t        p = a_page();
    vlm_frames_t  frames;

    (void) state;

    begin(&frames, 0);

    refused(&frames, VLM_FRAME_PAGE, &p, sizeof(p.head) - 1, "too short");
    refused(&frames, VLM_FRAME_PAGE, &p, sizeof(p) - 1, "length");
    LIE(head.words, 3, "length");
    LIE(head.words, UINT32_MAX, "length");
    LIE(head.text_bytes, 0, "length");
    LIE(head.text_bytes, UINT32_MAX - 79, "length");
    LIE(head.number, 0, "out of order");
    LIE(head.number, 2, "out of order");                        /* a gap */
    LIE(head.number, 201, "out of order");
    LIE(head.width, 0, "without a size");
    LIE(head.width, -1, "without a size");
    LIE(head.width, 0 / 0.f, "without a size");
    LIE(head.width, 1 / 0.f, "without a size");
    LIE(head.height, 0, "without a size");
    LIE(head.height, -1, "without a size");
    LIE(head.height, 0 / 0.f, "without a size");
    LIE(head.height, 1 / 0.f, "without a size");
    LIE(head.flags, VLM_PDF_DAMAGED, "text of a page that cannot be read");
    LIE(head.flags, VLM_PDF_DAMAGED | VLM_PDF_SCAN, "flags of a page");
    LIE(head.flags, 8, "flags of a page");
    LIE(text[0], '\xff', "UTF-8");
    LIE(text[0], '\0', "UTF-8");
    LIE(text[13], '\xc3', "UTF-8");
}


static void
lies_of_a_word(void **state)
{
    vlm_frames_t  frames;

    (void) state;

    begin(&frames, 0);

    LIE(words[0].bytes, 0, "outside its page's text");
    LIE(words[0].bytes, 9, "outside its page's text");          /* over the next word */
    LIE(words[1].bytes, 9, "outside its page's text");
    LIE(words[1].bytes, UINT32_MAX, "outside its page's text");
    LIE(words[1].first, UINT32_MAX, "outside its page's text");
    LIE(words[0].bytes, 3, "within a character");
    LIE(words[0].x0, -1, "outside its page");
    LIE(words[0].x0, 101, "outside its page");
    LIE(words[0].x0, 0 / 0.f, "outside its page");
    LIE(words[0].x1, 0 / 0.f, "outside its page");
    LIE(words[1].x1, 613, "outside its page");
    LIE(words[0].y0, -1, "outside its page");
    LIE(words[0].y0, 0 / 0.f, "outside its page");
    LIE(words[0].y1, 0 / 0.f, "outside its page");
    LIE(words[0].y1, 793, "outside its page");
    LIE(words[0].y0, 85, "outside its page");
    LIE(words[0].flags, 2, "flags of a word");
}


static void
lies_of_numbers(void **state)
{
    uint32_t        kind, bytes;
    vlm_err_t       err = { 0 };
    vlm_frames_t    frames = { .max_pages = 1 };
    page_t          p = a_page();
    const uint32_t  n[][2] = { { 0, 0 }, { 1, 0 }, { 1, 2 }, { VLM_PDF_PAGES + 1, 1 } };
    const uint32_t  heads[][2] = { { 0, 4 }, { 8, 4 }, { 1, VLM_FRAME_MAX + 1 } };
    struct {
        uint32_t    n[2];
        char        title[VLM_FRAME_TITLE + 1];
    } info = { { 1, 1 }, "x" };
    size_t          i;

    (void) state;

    for (i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
        refused(&frames, VLM_FRAME_INFO, n[i], 8, "impossible number of pages");
    }

    for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        assert_int_equal(vlm_frame_head(heads[i], &kind, &bytes, &err), -1);
    }

    refused(&frames, VLM_FRAME_INFO, &info, 7, "wrong length");
    refused(&frames, VLM_FRAME_INFO, &info, sizeof(info.n) + VLM_FRAME_TITLE + 1, "wrong length");
    refused(&frames, VLM_FRAME_INFO, &info, 10, "not UTF-8");
    refused(&frames, VLM_FRAME_PAGE, &p, sizeof(p), "before their number");
    refused(&frames, 0, &p, sizeof(p), "before their number");

    begin(&frames, 0);
    refused(&frames, VLM_FRAME_INFO, info.n, 8, "said twice");
    refused(&frames, VLM_FRAME_END, info.n, 8, "wrong length");
    refused(&frames, 8, info.n, 8, "unknown kind");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_document),
        cmocka_unit_test(limits_of_the_request),
        cmocka_unit_test(a_picture),
        cmocka_unit_test(a_reason),
        cmocka_unit_test(denied_files),
        cmocka_unit_test(lies_of_a_page),
        cmocka_unit_test(lies_of_a_word),
        cmocka_unit_test(lies_of_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
