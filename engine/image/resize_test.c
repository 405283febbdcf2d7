/* smart_resize and bicubic against the family's own, over the sizes of t/fixtures/image. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "image/fixture.h"
#include "image/header.h"
#include "image/resize.h"


static void
every_size_is_resized_byte_for_byte_as_by_pillow(void **state)
{
    int        n;
    FILE      *f;
    char       sum[65];
    uint8_t   *in, *out;
    uint32_t   iw, ih, ow, oh, seed;
    vlm_err_t  err;

    (void) state;

    f = fopen(FIXTURES "/resize.txt", "r");
    assert_non_null(f);

    for (n = 0; fscanf(f, "%u %u %u %u %u %64s", &iw, &ih, &ow, &oh, &seed, sum) == 6; n++) {
        memset(&err, 0, sizeof(err));
        in = fixture_noise(iw, ih, seed);
        out = vlm_resize(in, iw, ih, ow, oh, &err);
        assert_non_null(out);

        if (strcmp(fixture_sha(out, (size_t) ow * oh * 3), sum) != 0) {
            fail_msg("%ux%u to %ux%u differs", iw, ih, ow, oh);
        }

        free(out);
        free(in);
    }

    fclose(f);
    assert_true(n >= 40);
}


static void
smart_resize_equals_the_family_s_formula(void **state)
{
    int                 n, rc;
    FILE               *f;
    uint32_t            w, h, factor, ow, oh, got_w, got_h;
    vlm_err_t           err;
    unsigned long long  low, high;

    (void) state;

    f = fopen(FIXTURES "/smart.txt", "r");
    assert_non_null(f);

    for (n = 0; fscanf(f, "%u %u %u %llu %llu %u %u", &w, &h, &factor, &low, &high, &ow, &oh) == 7;
         n++)
    {
        memset(&err, 0, sizeof(err));
        got_w = got_h = 0;
        rc = vlm_smart_resize(w, h, factor, low, high, &got_w, &got_h, &err);

        if (rc != (ow == 0 ? -1 : 0) || got_w != ow || got_h != oh) {
            fail_msg("%ux%u by %u in %llu..%llu: %d, %ux%u for %ux%u", w, h, factor, low, high, rc,
                     got_w, got_h, ow, oh);
        }

        assert_int_equal(err.code, rc == 0 ? VLM_OK : VLM_ELIMIT);
    }

    fclose(f);
    assert_true(n >= 500);
}


static void
no_size_exceeds_max_pixels_however_thin_the_picture(void **state)
{
    uint32_t   w, h, ow, oh;
    uint64_t   high;
    vlm_err_t  err;

    (void) state;

    for (high = 784; high < 400000; high = high * 3 / 2 + 1) {
        for (h = 1; h < 600; h += 7) {
            for (w = h; w <= 200 * h && w < 32768; w = w * 2 + 1) {
                memset(&err, 0, sizeof(err));
                assert_int_equal(vlm_smart_resize(w, h, 28, high < 3136 ? high : 3136, high, &ow,
                                                  &oh, &err), 0);
                assert_true((uint64_t) ow * oh <= high);
                assert_true(ow >= 28 && oh >= 28 && ow % 28 == 0 && oh % 28 == 0);
            }
        }
    }
}


/* Numbers of Qwen3-VL's smart_resize, of transformers 4.57.6. */
static void
bounds_of_a_whole_video_give_the_frames_of_the_family_s_formula(void **state)
{
    uint32_t            i, w, h;
    vlm_err_t           err = { VLM_OK, "" };
    const vlm_pixels_t  any = { 0, UINT64_MAX };

    static const struct {
        uint32_t  n, width, height, low, high, out_width, out_height;
    } cases[] = {
        { 2, 640, 480, 4096, 25165824, 640, 480 },
        { 3, 640, 480, 4096, 600000, 512, 384 },
        { 5, 640, 480, 4096, 600000, 384, 288 },
        { 6, 640, 480, 4096, 600000, 352, 256 },
        { 5, 640, 480, 4096, 1300000, 640, 480 },
        { 3, 640, 480, 4096, 1200000, 704, 544 },
        { 3, 70, 50, 131072, 786432, 256, 192 },
        { 5, 70, 50, 131072, 786432, 192, 160 },
        { 7, 70, 50, 131072, 786432, 192, 128 },
        { 32, 1920, 1080, 4096, 25165824, 1152, 640 },
        { 200, 640, 480, 131072, 786432, 64, 32 },
        { 768, 1920, 1080, 131072, 786432, 32, 32 },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const vlm_pixels_t  video = { cases[i].low, cases[i].high };

        assert_int_equal(vlm_video_resize(cases[i].n, 2, 1, &video, &any, cases[i].width,
                                          cases[i].height, 32, &w, &h, &err), 0);

        if (w != cases[i].out_width || h != cases[i].out_height) {
            fail_msg("%u frames of %ux%u in %u..%u: %ux%u, not %ux%u", cases[i].n, cases[i].width,
                     cases[i].height, cases[i].low, cases[i].high, w, h, cases[i].out_width,
                     cases[i].out_height);
        }
    }
}


static void
a_frame_stays_within_its_own_bounds_and_has_a_cell(void **state)
{
    uint32_t      n, w, h;
    vlm_err_t     err = { VLM_OK, "" };
    vlm_pixels_t  video = { 4096, 25165824 }, frame = { 0, 100000 };

    (void) state;

    for (n = 1; n <= 512; n++) {       /* a whole video's bound is the stricter one in the end */
        assert_int_equal(vlm_video_resize(n, 2, 1, &video, &frame, 640, 480, 32, &w, &h, &err), 0);
        assert_true(w * h <= 100000 && w * h * n <= 25165824 && w * h >= 1024);

        if (n <= 200) {
            assert_int_equal(w, 352);
            assert_int_equal(h, 256);
        }
    }

    video = (vlm_pixels_t) { 1, 5000 };            /* less than a cell a frame */
    assert_int_equal(vlm_video_resize(9, 2, 1, &video, &frame, 640, 480, 32, &w, &h, &err), 0);
    assert_int_equal(w * h, 1024);

    frame.min = 50000;
    assert_int_equal(vlm_video_resize(9, 2, 1, &video, &frame, 640, 480, 32, &w, &h, &err), 0);
    assert_true(w * h >= 50000 && w * h <= 100000);

    video = (vlm_pixels_t) { 100352, 602112 };     /* each frame for itself */
    frame = (vlm_pixels_t) { 0, UINT64_MAX };
    assert_int_equal(vlm_video_resize(64, 2, 0, &video, &frame, 1920, 1080, 28, &w, &h, &err), 0);
    assert_int_equal(w, 1008);
    assert_int_equal(h, 560);

    frame.max = 500;
    assert_int_equal(vlm_video_resize(2, 2, 1, &video, &frame, 64, 64, 32, &w, &h, &err), -1);
    assert_string_equal(err.text, "max_pixels 500, one cell of the model has 32x32");
}


static void
an_aspect_beyond_200_is_refused_with_its_numbers(void **state)
{
    uint32_t   ow, oh;
    vlm_err_t  err;

    (void) state;

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_aspect_check(200, 1, &err), 0);
    assert_int_equal(vlm_smart_resize(7, 1401, 28, 3136, 1003520, &ow, &oh, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);
    assert_string_equal(err.text,
                        "picture of 7x1401 pixels, one side may be at most 200 times the other");
}


static void
a_limit_below_one_cell_is_refused(void **state)
{
    uint32_t   ow, oh;
    vlm_err_t  err;

    (void) state;

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_smart_resize(10, 10, 28, 783, 783, &ow, &oh, &err), -1);
    assert_string_equal(err.text, "max_pixels 783, one cell of the model has 28x28");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_size_is_resized_byte_for_byte_as_by_pillow),
        cmocka_unit_test(smart_resize_equals_the_family_s_formula),
        cmocka_unit_test(no_size_exceeds_max_pixels_however_thin_the_picture),
        cmocka_unit_test(bounds_of_a_whole_video_give_the_frames_of_the_family_s_formula),
        cmocka_unit_test(a_frame_stays_within_its_own_bounds_and_has_a_cell),
        cmocka_unit_test(an_aspect_beyond_200_is_refused_with_its_numbers),
        cmocka_unit_test(a_limit_below_one_cell_is_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
