/* Videos as clients send them: one URL of frames, or an array of pictures. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "api/frames.h"

static vlm_json_t        *document;
static vlm_frame_text_t   frames[2];
static size_t             n;


static vlm_frames_e
frames_of(const char *json)
{
    vlm_err_t  err = { VLM_OK, "" };

    vlm_json_free(document);
    document = vlm_json_parse(json, strlen(json), &err);
    assert_non_null(document);
    memset(frames, 0, sizeof(frames));

    return vlm_frames_read(document, frames, 2, &n);
}


static void
is_frame(size_t i, const char *text)
{
    assert_int_equal(frames[i].bytes, strlen(text));
    assert_memory_equal(frames[i].text, text, strlen(text));
}


static void
a_url_has_frames_between_commas(void **state)
{
    (void) state;

    assert_int_equal(frames_of("\"data:video/jpeg;base64,QUJD,REVG\""), VLM_FRAMES_READ);
    assert_int_equal(n, 2);
    is_frame(0, "QUJD");
    is_frame(1, "REVG");

    assert_int_equal(frames_of("{\"url\":\"DATA:video/JPEG;base64,QUJD\"}"), VLM_FRAMES_READ);
    assert_int_equal(n, 1);
    is_frame(0, "QUJD");

    /* an empty frame is one, which is no picture */

    assert_int_equal(frames_of("\"data:video/jpeg;base64,QUJD,\""), VLM_FRAMES_READ);
    assert_int_equal(n, 2);
    is_frame(1, "");

    assert_int_equal(frames_of("\"data:video/jpeg;base64,\""), VLM_FRAMES_READ);
    assert_int_equal(n, 1);
    is_frame(0, "");
}


static void
an_array_has_a_url_for_each_frame(void **state)
{
    (void) state;

    assert_int_equal(frames_of("[\"data:image/jpeg;base64,QQ==\",\"Data:,x\"]"), VLM_FRAMES_READ);
    assert_int_equal(n, 2);
    is_frame(0, "data:image/jpeg;base64,QQ==");
    is_frame(1, "Data:,x");

    assert_int_equal(frames_of("[]"), VLM_FRAMES_READ);
    assert_int_equal(n, 0);

    assert_int_equal(frames_of("[\"data:x\",\"http://host/a.jpg\"]"), VLM_FRAMES_WRONG);
    assert_int_equal(n, 2);
    assert_int_equal(frames_of("[1]"), VLM_FRAMES_WRONG);
    assert_int_equal(n, 1);
}


static void
frames_beyond_the_most_are_counted(void **state)
{
    (void) state;

    assert_int_equal(frames_of("\"data:video/jpeg;base64,A,B,C,D\""), VLM_FRAMES_READ);
    assert_int_equal(n, 4);
    is_frame(1, "B");

    assert_int_equal(frames_of("[\"data:a\",\"data:b\",\"data:c\"]"), VLM_FRAMES_READ);
    assert_int_equal(n, 3);
    is_frame(1, "data:b");
}


static void
other_urls_are_refused(void **state)
{
    (void) state;

    assert_int_equal(frames_of("\"http://host/a.mp4\""), VLM_FRAMES_NO_DATA);
    assert_int_equal(frames_of("\"data:video/mp4;base64,QUJD\""), VLM_FRAMES_NO_DATA);
    assert_int_equal(frames_of("\"data:video/jpeg;utf8,QUJD\""), VLM_FRAMES_NO_DATA);
    assert_int_equal(frames_of("{\"url\":1}"), VLM_FRAMES_MISSING);
    assert_int_equal(frames_of("{}"), VLM_FRAMES_MISSING);
    assert_int_equal(frames_of("7"), VLM_FRAMES_MISSING);

    vlm_json_free(document);
    document = NULL;

    assert_int_equal(vlm_frames_read(NULL, frames, 2, &n), VLM_FRAMES_MISSING);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_has_frames_between_commas),
        cmocka_unit_test(an_array_has_a_url_for_each_frame),
        cmocka_unit_test(frames_beyond_the_most_are_counted),
        cmocka_unit_test(other_urls_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
