/* Whole files: the patches of each kind, and the files that are refused. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "image/fixture.h"
#include "image/header.h"

/*
 * With a patch of one pixel, one channel plane of one byte and no resize, the patches of a picture
 * are its pixels: so the whole way is tested with what decoders give, row by row.
 */
static const vlm_vision_config_t  bare_vision = {
    .channels = 3, .patch = 1, .temporal = 2, .merge = 1, .window = 1u << 20,
    .order = vlm_qwen2_5_vl_order
};
static const vlm_pixel_config_t   bare_pixels = {
    .min_pixels = 1, .max_pixels = 12845056
};


/* files/name as u8 [height][width][3], or NULL and err. */
static vlm_picture_t *
show(const char *name, vlm_err_t *err)
{
    size_t          bytes;
    uint8_t        *data;
    vlm_picture_t  *p;

    memset(err, 0, sizeof(*err));
    data = fixture_file(name, &bytes);
    assert_non_null(data);
    p = vlm_picture_make(&bare_pixels, &bare_vision, UINT64_MAX, data, bytes, err);
    free(data);

    return p;
}


static void
every_file_looks_as_pillow_shows_it_over_white(void **state)
{
    int             n;
    FILE           *f;
    char            name[64], sha[65];
    uint32_t        w, h;
    vlm_err_t       err;
    vlm_picture_t  *p;

    (void) state;

    f = fopen(FIXTURES "/files.txt", "r");
    assert_non_null(f);

    for (n = 0; fscanf(f, "%63s %u %u %64s", name, &w, &h, sha) == 4; n++) {
        p = show(name, &err);

        if (strcmp(sha, "refused") == 0) {
            assert_null(p);
            assert_int_equal(err.code, VLM_EINPUT);
            continue;
        }

        if (p == NULL) {
            fail_msg("%s: %s", name, err.text);
        }

        assert_int_equal(p->info.width, w);
        assert_int_equal(p->info.height, h);

        if (strcmp(fixture_sha(p->pixels, (size_t) w * h * 3), sha) != 0) {
            fail_msg("%s differs", name);
        }

        vlm_picture_free(p);
    }

    fclose(f);
    assert_true(n >= 95);
}


static void
bytes_become_the_patches_of_the_family_s_processor(void **state)
{
    int                  n;
    FILE                *f;
    char                 name[64], sum[65], pixels[65];
    size_t               bytes;
    uint8_t             *data;
    uint32_t             w, h, ow, oh, i;
    vlm_err_t            err;
    vlm_picture_t       *p;
    vlm_pixel_config_t   pc;
    vlm_picture_info_t   info;
    unsigned long long   low, high;

    (void) state;

    f = fopen(FIXTURES "/whole.txt", "r");
    assert_non_null(f);
    pc = fixture_pixels;

    for (n = 0; fscanf(f, "%63s %llu %llu %u %u %u %u %64s %64s", name, &low, &high, &w, &h, &ow,
                       &oh, sum, pixels) == 9; n++)
    {
        memset(&err, 0, sizeof(err));
        pc.min_pixels = low;
        data = fixture_file(name, &bytes);
        p = vlm_picture_make(&pc, &fixture_vision, high, data, bytes, &err);
        assert_non_null(p);

        vlm_picture_info(p, &info);
        assert_int_equal(info.width, w);
        assert_int_equal(info.height, h);
        assert_int_equal(info.resized_width, ow);
        assert_int_equal(info.resized_height, oh);
        assert_int_equal(info.tokens, ow / 28 * (oh / 28));

        /* and so its header says, without decoding */

        assert_int_equal(vlm_picture_look(&pc, &fixture_vision, high, data, bytes, &info, &err), 0);
        assert_int_equal(info.width, w);
        assert_int_equal(info.resized_height, oh);
        assert_int_equal(info.tokens, ow / 28 * (oh / 28));
        assert_string_equal(fixture_sha(p->pixels, (size_t) ow * oh * 3), pixels);

        for (i = 0; i < 32; i++) {
            assert_int_equal(strtoul((char[3]) { sum[2 * i], sum[2 * i + 1], 0 }, NULL, 16),
                             p->sha256[i]);
        }

        vlm_picture_free(p);
        free(data);
    }

    fclose(f);
    assert_int_equal(n, 18);
}


/* The bounds are of pixels; a side is a multiple of a cell's in any case. */
static void
a_picture_is_scaled_by_a_bound_and_not_by_rounding(void **state)
{
    size_t              i, bytes;
    uint8_t            *data;
    vlm_err_t           err;
    vlm_pixel_config_t  pc;
    vlm_picture_info_t  info;

    static const struct { uint64_t low, high; uint32_t scaled; }  bounds[] = {
        { 0, 1 << 20, 0 }, { 3136, 1 << 20, 1 }, { 0, 784, 0 }
    };

    (void) state;

    data = fixture_file("turn-6.jpg", &bytes);     /* 37x23, and 28x28 in cells */
    pc = fixture_pixels;

    for (i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        memset(&err, 0, sizeof(err));
        pc.min_pixels = bounds[i].low;
        assert_int_equal(vlm_picture_look(&pc, &fixture_vision, bounds[i].high, data, bytes, &info,
                                          &err), 0);
        assert_int_equal(info.scaled, bounds[i].scaled);
    }

    free(data);
}


static void
a_check_says_the_upright_size_without_decoding(void **state)
{
    size_t              bytes;
    uint8_t            *data;
    vlm_err_t           err;
    vlm_picture_info_t  info;

    (void) state;

    memset(&err, 0, sizeof(err));
    data = fixture_file("turn-6.jpg", &bytes);
    assert_int_equal(vlm_picture_check(data, bytes, &info, &err), 0);
    assert_int_equal(info.width, 37);
    assert_int_equal(info.height, 23);
    assert_int_equal(info.tokens, 0);
    free(data);

    assert_int_equal(vlm_picture_check("%PDF-1.7", 8, &info, &err), -1);
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, "not a supported picture (JPEG, PNG, WebP, GIF, BMP): first "
                        "bytes 25 50 44 46 2d 31 2e 37");
}


/* One file of each kind, ended at each of its bytes. */
static void
a_file_cut_off_anywhere_is_refused_or_still_whole(void **state)
{
    size_t          i, n, bytes, cut;
    uint8_t        *data, *part;
    vlm_err_t       err;
    vlm_picture_t  *p;

    static const struct { const char *name; size_t spare; }  files[] = {
        { "jpeg-420.jpg", 0 }, { "jpeg-progressive.jpg", 0 }, { "jpeg-restart.jpg", 0 },
        { "jpeg-grey.jpg", 0 }, { "turn-6.jpg", 0 }, { "png-rgba8-adam7.png", 0 },
        { "png-palette4-trns.png", 0 }, { "turn-6.png", 0 }, { "gif-transparent.gif", 3 },
        { "gif-interlace1.gif", 3 }, { "bmp-24.bmp", 0 }, { "bmp-32-alpha.bmp", 0 },
        { "webp-lossy.webp", 0 }, { "webp-lossless-alpha.webp", 0 }, { "webp-lossy-alpha.webp", 0 },
        { "webp-animated.webp", 0 }, { "turn-6.webp", 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        data = fixture_file(files[i].name, &bytes);

        for (n = 0; n < bytes; n++) {
            memset(&err, 0, sizeof(err));
            part = malloc(n == 0 ? 1 : n);
            memcpy(part, data, n);
            p = vlm_picture_make(&bare_pixels, &bare_vision, 4096, part, n, &err);
            cut = bytes - n;

            if (p != NULL && cut > files[i].spare) {
                fail_msg("%s: %zu of %zu bytes were taken for the whole", files[i].name, n, bytes);
            }

            assert_int_equal(err.code, p == NULL ? VLM_EINPUT : VLM_OK);
            vlm_picture_free(p);
            free(part);
        }

        free(data);
    }
}


/* Refused or shown, but nothing else happens: run with sanitizers, too. */
static void
a_file_with_any_byte_changed_does_no_harm(void **state)
{
    size_t          i, n, bytes;
    uint8_t        *data, old;
    vlm_err_t       err;

    static const char *const  files[] = {
        "jpeg-420.jpg", "jpeg-progressive.jpg", "jpeg-cmyk.jpg", "bmp-4.bmp",
        "png-palette8-trns.png", "png-rgb16-adam7.png", "gif-interlace1.gif", "gif-canvas.gif",
        "bmp-16.bmp", "bmp-8.bmp",
        "webp-lossless-alpha.webp", "webp-lossy-alpha.webp", "webp-animated.webp"
    };
    static const uint8_t  changes[] = { 0x01, 0x80, 0xff };

    (void) state;

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        data = fixture_file(files[i], &bytes);

        for (n = 0; n < bytes * 3 && n < 1500; n++) {
            memset(&err, 0, sizeof(err));
            old = data[n / 3];
            data[n / 3] ^= changes[n % 3];

            vlm_picture_free(vlm_picture_make(&fixture_pixels, &fixture_vision, 4096, data, bytes,
                                              &err));
            assert_true(err.code == VLM_OK || err.code == VLM_EINPUT || err.code == VLM_ELIMIT);
            data[n / 3] = old;
        }

        free(data);
    }
}


static void
a_model_of_other_channels_than_three_is_refused(void **state)
{
    vlm_err_t            err;
    vlm_vision_config_t  vc;

    (void) state;

    memset(&err, 0, sizeof(err));
    vc = fixture_vision;
    vc.channels = 4;
    assert_null(vlm_picture_make(&fixture_pixels, &vc, 4096, "GIF89a", 6, &err));
    assert_int_equal(err.code, VLM_EMODEL);
}


static void
a_picture_goes_upright_and_at_its_full_size_into_a_jpeg(void **state)
{
    void                *jpeg;
    size_t               i, n, bytes, n_jpeg;
    double               apart;
    uint8_t             *file, *want, *got;
    uint32_t             width, height, width2, height2;
    vlm_err_t            err = { 0 };
    vlm_picture_info_t   info;
    static const char *const  names[] = {
        "jpeg-420.jpg", "png-photo.png", "turn-6.jpg", "turn-8.webp", "webp-lossy.webp"
    };

    (void) state;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        file = fixture_file(names[i], &bytes);
        assert_non_null(file);
        assert_int_equal(vlm_picture_check(file, bytes, &info, &err), 0);

        want = vlm_picture_decode(file, bytes, &width, &height, NULL, &err);
        assert_non_null(want);
        assert_int_equal(width, info.width);
        assert_int_equal(height, info.height);

        assert_int_equal(vlm_jpeg_encode(want, width, height, &jpeg, &n_jpeg, &err), 0);
        assert_memory_equal(jpeg, "\xff\xd8\xff", 3);

        got = vlm_picture_decode(jpeg, n_jpeg, &width2, &height2, NULL, &err);
        assert_non_null(got);
        assert_int_equal(width2, width);
        assert_int_equal(height2, height);

        for (apart = 0, n = 0; n < (size_t) width * height * 3; n++) {
            apart += abs(want[n] - got[n]);
        }

        assert_true(apart / (double) n < 6);       /* these pictures are noise, for the most */
        free(file);
        free(want);
        free(got);
        free(jpeg);
    }
}


static void
a_file_that_is_no_picture_is_not_decoded(void **state)
{
    size_t      bytes;
    uint8_t    *file;
    uint32_t    width, height;
    vlm_err_t   err;

    (void) state;

    file = fixture_file("jpeg-420.jpg", &bytes);
    assert_non_null(file);

    memset(&err, 0, sizeof(err));
    assert_null(vlm_picture_decode(file, 20, &width, &height, NULL, &err));
    assert_int_equal(err.code, VLM_EINPUT);

    memset(&err, 0, sizeof(err));
    assert_null(vlm_picture_decode("no picture", 10, &width, &height, NULL, &err));
    assert_int_equal(err.code, VLM_EINPUT);

    free(file);
}


/* Says to stop when it is asked for the n-th time. */
static int
stop_at(void *data)
{
    return --*(int *) data == 0;
}


static void
a_picture_can_be_stopped_before_during_and_after_its_decode(void **state)
{
    int              n, left;
    size_t           bytes;
    uint8_t         *data, sha256[32] = { 0 };
    vlm_err_t        err;
    vlm_stop_t       stop;
    vlm_picture_t   *p;

    (void) state;

    data = fixture_file("jpeg-progressive.jpg", &bytes);
    assert_non_null(data);
    stop.stop = stop_at;
    stop.data = &left;

    for (n = 1, p = NULL; p == NULL; n++) {
        left = n;
        memset(&err, 0, sizeof(err));
        p = vlm_picture_make_hashed(&fixture_pixels, &fixture_vision, 4096, data, bytes, sha256,
                                    &stop, &err);
        assert_int_equal(err.code, p == NULL ? VLM_ECANCELLED : VLM_OK);
        assert_true(n < 1000);
    }

    assert_true(n > 20);                           /* before, within each scan, and after */
    vlm_picture_free(p);
    free(data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_file_looks_as_pillow_shows_it_over_white),
        cmocka_unit_test(bytes_become_the_patches_of_the_family_s_processor),
        cmocka_unit_test(a_picture_is_scaled_by_a_bound_and_not_by_rounding),
        cmocka_unit_test(a_check_says_the_upright_size_without_decoding),
        cmocka_unit_test(a_file_cut_off_anywhere_is_refused_or_still_whole),
        cmocka_unit_test(a_file_with_any_byte_changed_does_no_harm),
        cmocka_unit_test(a_picture_goes_upright_and_at_its_full_size_into_a_jpeg),
        cmocka_unit_test(a_file_that_is_no_picture_is_not_decoded),
        cmocka_unit_test(a_picture_can_be_stopped_before_during_and_after_its_decode),
        cmocka_unit_test(a_model_of_other_channels_than_three_is_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
