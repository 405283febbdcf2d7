/* Headers of every kind: their values, and which of them are refused with which sentence. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "image/fixture.h"
#include "image/header.h"

#define PNG(width, height, depth, color)  "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" width height depth \
                                          color "\0\0\0----\0\0\0\0IEND----"
#define SOI   "\xff\xd8"
#define SOF   "\xff\xc0\0\x0b\x08\0\x10\0\x20\x01\x01\x11\0"       /* 32x16, grey */
#define SOF2  "\xff\xc2\0\x0b\x08\0\x10\0\x20\x01\x01\x11\0"
#define SOS   "\xff\xda\0\x08\x01\x01\0\0\x3f\0-"
#define EOI   "\xff\xd9"


static void
put_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) v;
    p[1] = (uint8_t) (v >> 8);
    p[2] = (uint8_t) (v >> 16);
    p[3] = (uint8_t) (v >> 24);
}


static void
refuse(const void *data, size_t bytes, vlm_code_t code, const char *text)
{
    uint8_t       *p;
    vlm_err_t      err;
    vlm_header_t   h;

    memset(&err, 0, sizeof(err));
    p = malloc(bytes == 0 ? 1 : bytes);
    memcpy(p, data, bytes);

    assert_int_equal(vlm_header_read(&h, p, bytes, &err), -1);
    assert_string_equal(err.text, text);
    assert_int_equal(err.code, code);

    free(p);
}


#define REFUSE(bytes, code, text)  refuse(bytes, sizeof(bytes) - 1, code, text)


static void
each_kind_is_known_by_its_first_bytes(void **state)
{
    size_t         i, bytes;
    uint8_t       *data;
    vlm_err_t      err;
    vlm_header_t   h;

    static const struct {
        const char          *name;
        vlm_picture_kind_t   kind;
        uint32_t             width, height, orientation;
        int                  alpha;
    } files[] = {
        { "jpeg-420.jpg", VLM_JPEG, 67, 45, 1, 0 },
        { "jpeg-cmyk.jpg", VLM_JPEG, 67, 45, 1, 0 },
        { "turn-7.jpg", VLM_JPEG, 23, 37, 7, 0 },
        { "turn-4.png", VLM_PNG, 37, 23, 4, 0 },
        { "png-la8.png", VLM_PNG, 19, 13, 1, 1 },
        { "png-palette4-trns.png", VLM_PNG, 19, 13, 1, 1 },
        { "gif-transparent.gif", VLM_GIF, 41, 29, 1, 1 },
        { "gif-256.gif", VLM_GIF, 41, 29, 1, 0 },
        { "bmp-topdown.bmp", VLM_BMP, 19, 13, 1, 0 },
        { "bmp-32-alpha.bmp", VLM_BMP, 19, 13, 1, 1 },
        { "webp-lossy.webp", VLM_WEBP, 53, 35, 1, 0 },
        { "webp-lossless-alpha.webp", VLM_WEBP, 53, 35, 1, 1 },
        { "webp-animated.webp", VLM_WEBP, 53, 35, 1, 1 },
        { "turn-8.webp", VLM_WEBP, 23, 37, 8, 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        memset(&err, 0, sizeof(err));
        data = fixture_file(files[i].name, &bytes);
        assert_int_equal(vlm_header_read(&h, data, bytes, &err), 0);
        assert_int_equal(h.kind, files[i].kind);
        assert_int_equal(h.width, files[i].width);
        assert_int_equal(h.height, files[i].height);
        assert_int_equal(h.orientation, files[i].orientation);
        assert_int_equal(h.alpha, files[i].alpha);
        free(data);
    }
}


static void
bytes_of_no_known_format_are_refused_with_the_first_of_them(void **state)
{
    (void) state;

    REFUSE("", VLM_EINPUT, "not a picture: no bytes");
    REFUSE("G", VLM_EINPUT,
           "not a supported picture (JPEG, PNG, WebP, GIF, BMP): first bytes 47");
    REFUSE("<svg xmlns=", VLM_EINPUT,
           "not a supported picture (JPEG, PNG, WebP, GIF, BMP): first bytes "
           "3c 73 76 67 20 78 6d 6c");
    REFUSE("\0\0\0\x18" "ftypavif----", VLM_EINPUT,
           "not a supported picture: HEIC, AVIF or a video; send JPEG, PNG, WebP, GIF or BMP");
}


static void
sizes_beyond_a_limit_are_refused_with_both_numbers(void **state)
{
    vlm_err_t     err;
    vlm_header_t  h;

    (void) state;

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_header_read(&h, "", VLM_MAX_PICTURE_FILE + 1, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);
    assert_string_equal(err.text, "picture file of 67108865 bytes, at most 67108864 are supported");

    REFUSE(PNG("\0\0\x80\x01", "\0\0\0\1", "\x08", "\x02"), VLM_ELIMIT,
           "PNG of 32769x1 pixels, a side may have at most 32768");
    REFUSE(PNG("\xff\xff\xff\xff", "\xff\xff\xff\xff", "\x08", "\x02"), VLM_ELIMIT,
           "PNG of 4294967295x4294967295 pixels, a side may have at most 32768");
    REFUSE(PNG("\0\0\x80\0", "\0\0\x04\xc5", "\x08", "\x02"), VLM_ELIMIT,
           "PNG of 32768x1221 pixels are 40009728, at most 40000000 are decoded");
    REFUSE(PNG("\0\0\0\0", "\0\0\0\1", "\x08", "\x02"), VLM_EINPUT, "PNG: its size is 0x1");
}


static void
a_png_that_cannot_be_is_refused(void **state)
{
    (void) state;

    REFUSE(PNG("\0\0\0\1", "\0\0\0\1", "\x04", "\x02"), VLM_EINPUT,
           "PNG: colour type 2 with 4 bits does not exist");
    REFUSE(PNG("\0\0\0\1", "\0\0\0\1", "\x03", "\0"), VLM_EINPUT,
           "PNG: colour type 0 with 3 bits does not exist");
    REFUSE(PNG("\0\0\0\1", "\0\0\0\1", "\x08", "\x07"), VLM_EINPUT,
           "PNG: colour type 7 with 8 bits does not exist");
    REFUSE("\x89PNG\r\n\x1a\n\0\0\0\x04" "CgBI\x50\0\x20\x06----\0\0\0\x0dIHDR----", VLM_EINPUT,
           "PNG: the first chunk is not IHDR");
    REFUSE("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", VLM_EINPUT,
           "PNG: the file ends after 16 bytes, inside its header");
    REFUSE("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0----"
           "\xff\xff\xff\xffIDAT----", VLM_EINPUT,
           "PNG: the file ends after 45 bytes, inside its chunks");
}


static void
a_jpeg_that_cannot_be_is_refused(void **state)
{
    (void) state;

    REFUSE(SOI "\xff", VLM_EINPUT, "JPEG: no end in 3 bytes: cut off");
    REFUSE(SOI EOI, VLM_EINPUT, "JPEG: no frame header with a size, or no scan");
    REFUSE(SOI SOS EOI, VLM_EINPUT, "JPEG: a scan before the frame header");
    REFUSE(SOI SOF SOF EOI, VLM_EINPUT, "JPEG: a second frame header");
    REFUSE(SOI SOF SOS "\xff\0\xff\xd3\xff", VLM_EINPUT,
           "JPEG: no end in 31 bytes: cut off");
    REFUSE(SOI "\xff\xe0\0\1", VLM_EINPUT, "JPEG: segment E0 at byte 4 has length 1");
    REFUSE(SOI "\xff\xe0\xff\xff-", VLM_EINPUT,
           "JPEG: the file ends after 7 bytes, inside its segments");
    REFUSE(SOI "\xff\xc9\0\x0b\x08\0\1\0\1\1\1\x11\0", VLM_EINPUT,
           "JPEG: coding process C9, only C0, C1 and C2 (baseline, extended, progressive) are "
           "supported");
    REFUSE(SOI "\xff\xc1\0\x0b\x0c\0\1\0\1\1\1\x11\0", VLM_EINPUT,
           "JPEG: 12 bits a sample, only 8 are supported");
    REFUSE(SOI "\xff\xc0\0\x0b\x08\0\1\0\1\2\1\x11\0", VLM_EINPUT,
           "JPEG: 2 components, only 1, 3 and 4 are supported");
    REFUSE(SOI "\xff\xc0\0\x04\x08\0", VLM_EINPUT,
           "JPEG: frame header of 2 bytes, at least 6 are needed");
    REFUSE(SOI "\xff\xc0\0\x0b\x08\0\1\0\1\3\1\x11\0", VLM_EINPUT,
           "JPEG: frame header of 9 bytes, at least 15 are needed");
    REFUSE(SOI "\xff\xc0\0\x0b\x08\0\1\0\1\1\1\x15\0", VLM_EINPUT,
           "JPEG: component 1 is sampled 1x5, at most 4x4 exist");
    REFUSE(SOI SOF "\xff\xda\0\x08\2\1\0\0\x3f\0-" EOI, VLM_EINPUT,
           "JPEG: a scan of 2 components, the frame has 1");
    REFUSE(SOI "\xff\xc0\0\x0b\x08\x18\0\x18\0\1\1\x11\0" SOS EOI, VLM_EINPUT,
           "JPEG: 28 bytes for 6144x6144 pixels: cut off");
}


static void
bytes_between_the_segments_of_a_jpeg_are_passed_over(void **state)
{
    vlm_err_t     err;
    vlm_header_t  h;

    static const char  jpeg[] = SOI "\xff\xfe\0\x04--" "\0\0\0" "\xff" SOF SOS EOI;

    (void) state;

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_header_read(&h, jpeg, sizeof(jpeg) - 1, &err), 0);
    assert_int_equal(h.width, 32);
    assert_int_equal(h.height, 16);
}


static void
append(uint8_t *p, size_t *at, const void *data, size_t bytes)
{
    memcpy(p + *at, data, bytes);
    *at += bytes;
}


/* n scans of nothing behind a frame header, each behind what libjpeg passes over as well. */
static int
read_scans(const char *frame, int n, const char *between, size_t n_between, vlm_err_t *err)
{
    int            rc;
    size_t         at;
    uint8_t       *p;
    vlm_header_t   h;

    memset(err, 0, sizeof(*err));
    p = malloc(64 + (size_t) n * (sizeof(SOS) + n_between));
    at = 0;
    append(p, &at, SOI, 2);
    append(p, &at, frame, sizeof(SOF) - 1);

    while (n-- > 0) {
        append(p, &at, between, n_between);
        append(p, &at, SOS, sizeof(SOS) - 1);
    }

    append(p, &at, EOI "trailing bytes \xff\xda", 19);
    rc = vlm_header_read(&h, p, at, err);
    free(p);

    return rc;
}


static void
a_jpeg_of_many_scans_is_refused(void **state)
{
    vlm_err_t  err;

    (void) state;

    assert_int_equal(read_scans(SOF, 1, "", 0, &err), 0);
    assert_int_equal(read_scans(SOF2, 16, "", 0, &err), 0);

    assert_int_equal(read_scans(SOF, 2, "", 0, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);
    assert_string_equal(err.text, "JPEG: its components are in more than 1 scans each");
    assert_int_equal(read_scans(SOF2, 17, "", 0, &err), -1);
    assert_string_equal(err.text, "JPEG: its components are in more than 16 scans each");
}


/* A marker without a segment, were it taken for one with a length, would hide the next scan. */
static void
no_scan_hides_behind_a_marker_without_a_segment(void **state)
{
    vlm_err_t  err;

    (void) state;

    assert_int_equal(read_scans(SOF2, 17, "\xff\x01", 2, &err), -1);
    assert_int_equal(read_scans(SOF2, 17, "\xff\xd5", 2, &err), -1);
    assert_int_equal(read_scans(SOF2, 17, "\xff\0", 2, &err), -1);
    assert_string_equal(err.text, "JPEG: its components are in more than 16 scans each");
}


static void
an_unknown_critical_chunk_is_named_in_ascii(void **state)
{
    uint8_t  png[12 + 33 + 12];

    (void) state;

    memcpy(png, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0crc!", 33);
    memcpy(png + 33, "\0\0\0\0De\xd9Qcrc!\0\0\0\0IENDcrc!", 24);
    refuse(png, sizeof(png), VLM_EINPUT,
           "PNG: unknown critical chunk De?Q");

    memcpy(png + 37, "deBG", 4);
    assert_int_equal(vlm_header_read(&(vlm_header_t) { 0 }, png, sizeof(png), NULL), 0);
}


/* A BMP of 66 bytes: headers, and room for 12 of pixels. */
static void
make_bmp(uint8_t bmp[66], uint32_t at, uint32_t width, uint32_t height, uint32_t bits)
{
    memset(bmp, 0, 66);
    memcpy(bmp, "BM", 2);
    put_u32(bmp + 10, at);
    put_u32(bmp + 14, 40);
    put_u32(bmp + 18, width);
    put_u32(bmp + 22, height);
    put_u32(bmp + 26, 1 | bits << 16);
}


static void
a_bmp_whose_rows_are_not_in_the_file_is_refused(void **state)
{
    uint8_t  bmp[66];

    (void) state;

    make_bmp(bmp, 54, 3, 2, 24);
    refuse(bmp, 66, VLM_EINPUT, "BMP: 3x2 at 24 bits needs 78 bytes, the file has 66");
    make_bmp(bmp, 54, 3, 0x80000000, 24);          /* -2^31: its negative is itself */
    refuse(bmp, 66, VLM_ELIMIT, "BMP of 3x2147483648 pixels, a side may have at most 32768");
    make_bmp(bmp, 0xffffffff, 3, 0xffffffff, 24);
    refuse(bmp, 66, VLM_EINPUT, "BMP: 3x1 at 24 bits needs 4294967307 bytes, the file has 66");
    make_bmp(bmp, 53, 3, 1, 24);
    refuse(bmp, 66, VLM_EINPUT, "BMP: pixels at byte 53, the header has 54");
    make_bmp(bmp, 54, 3, 1, 2);
    refuse(bmp, 66, VLM_EINPUT, "BMP: 2 bits a pixel do not exist");
    put_u32(bmp + 30, 3);
    put_u32(bmp + 26, 1 | 24 << 16);
    refuse(bmp, 66, VLM_EINPUT, "BMP: bit fields with 24 bits a pixel, only 16 and 32 have them");
    put_u32(bmp + 26, 1 | 16 << 16);
    refuse(bmp, 66, VLM_EINPUT, "BMP: pixels at byte 54, its bit fields end at 66");
    put_u32(bmp + 30, 1);
    refuse(bmp, 66, VLM_EINPUT,
           "BMP: compression 1, only 0 and 3 (none, bit fields) are supported");
    put_u32(bmp + 14, 12);
    refuse(bmp, 66, VLM_EINPUT, "BMP: header of 12 bytes, 40, 108 and 124 are supported");
}


static void
a_webp_that_cannot_be_is_refused(void **state)
{
    (void) state;

    REFUSE("RIFF\x20\0\0\0WEBPVP8 ----", VLM_EINPUT,
           "WebP: the file ends after 20 bytes, inside its chunks");
    REFUSE("RIFF\x0c\0\0\0WEBPVP8A----", VLM_EINPUT,
           "WebP: the first chunk is not VP8, VP8L or VP8X");
    REFUSE("RIFF\0\0\0\0WEBPVP8 --------", VLM_EINPUT,
           "WebP: the file ends after 8 bytes, inside its header");
    REFUSE("RIFF\x11\0\0\0WEBPVP8L\5\0\0\0\x2e----", VLM_EINPUT,
           "WebP: damaged VP8L chunk of 5 bytes");
    REFUSE("RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x09\0\0\x09\0\0", VLM_EINPUT,
           "WebP: an animation without frames");
    REFUSE("RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x09\0\0\x09\0\0ANMF\xff\xff\xff\x7f",
           VLM_EINPUT, "WebP: the file ends after 38 bytes, inside its chunks");
    REFUSE("RIFF\x2e\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x09\0\0\x09\0\0ANMF\x10\0\0\0"
           "\1\0\0\0\0\0\x08\0\0\x09\0\0----", VLM_EINPUT,
           "WebP: frame 9x10 at 2,0 on a canvas of 10x10");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_kind_is_known_by_its_first_bytes),
        cmocka_unit_test(bytes_of_no_known_format_are_refused_with_the_first_of_them),
        cmocka_unit_test(sizes_beyond_a_limit_are_refused_with_both_numbers),
        cmocka_unit_test(a_png_that_cannot_be_is_refused),
        cmocka_unit_test(a_jpeg_that_cannot_be_is_refused),
        cmocka_unit_test(bytes_between_the_segments_of_a_jpeg_are_passed_over),
        cmocka_unit_test(a_jpeg_of_many_scans_is_refused),
        cmocka_unit_test(no_scan_hides_behind_a_marker_without_a_segment),
        cmocka_unit_test(an_unknown_critical_chunk_is_named_in_ascii),
        cmocka_unit_test(a_bmp_whose_rows_are_not_in_the_file_is_refused),
        cmocka_unit_test(a_webp_that_cannot_be_is_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
