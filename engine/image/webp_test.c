/* WebP: frames of an animation on their canvas, and headers that contradict their pixels. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "image/fixture.h"
#include "image/webp.h"
#include "image/webp_codes.h"

#define HEAD  (12 + 18 + 8 + 16)       /* RIFF, VP8X, ANMF and the frame's own header */


static void
put_u24(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) v;
    p[1] = (uint8_t) (v >> 8);
    p[2] = (uint8_t) (v >> 16);
}


/* An animation of one frame, which is the still picture data[bytes], on a canvas. */
static uint8_t *
animate(const uint8_t *data, size_t bytes, uint32_t width, uint32_t height, uint32_t x, uint32_t y,
        uint32_t canvas_width, uint32_t canvas_height, size_t *made)
{
    uint8_t  *p;

    *made = HEAD + bytes - 12;
    p = calloc(*made, 1);
    memcpy(p, "RIFF....WEBPVP8X\x0a\0\0\0\x12", 21);
    put_u24(p + 4, (uint32_t) *made - 8);
    p[7] = 0;
    put_u24(p + 24, canvas_width - 1);
    put_u24(p + 27, canvas_height - 1);
    memcpy(p + 30, "ANMF", 4);
    put_u24(p + 34, (uint32_t) (16 + bytes - 12));
    put_u24(p + 38, x / 2);
    put_u24(p + 41, y / 2);
    put_u24(p + 44, width - 1);
    put_u24(p + 47, height - 1);
    memcpy(p + HEAD, data + 12, bytes - 12);

    return p;
}


static uint8_t *
decode(const uint8_t *data, size_t bytes, vlm_header_t *h, vlm_err_t *err)
{
    memset(err, 0, sizeof(*err));

    return vlm_header_read(h, data, bytes, err) == 0
           ? vlm_webp_decode(h, data, bytes, NULL, err) : NULL;
}


static void
a_frame_lies_where_it_says_on_a_transparent_canvas(void **state)
{
    size_t         bytes, made;
    uint8_t       *still, *moving, *a, *b, *pixel;
    uint32_t       x, y;
    vlm_err_t      err;
    vlm_header_t   h;

    (void) state;

    still = fixture_file("webp-lossless.webp", &bytes);
    moving = animate(still, bytes, 53, 35, 4, 6, 60, 50, &made);
    a = decode(still, bytes, &h, &err);
    assert_non_null(a);
    assert_int_equal(h.alpha, 0);
    b = decode(moving, made, &h, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(h.width, 60);
    assert_int_equal(h.height, 50);

    for (y = 0; y < 50; y++) {
        for (x = 0; x < 60; x++) {
            pixel = b + (y * 60 + x) * 4;

            if (x >= 4 && x < 57 && y >= 6 && y < 41) {
                assert_memory_equal(pixel, a + ((y - 6) * 53 + x - 4) * 3, 3);
                assert_int_equal(pixel[3], 255);
            } else {
                assert_memory_equal(pixel, "\0\0\0\0", 4);
            }
        }
    }

    free(a);
    free(b);
    free(moving);
    free(still);
}


static void
a_frame_of_another_size_than_its_pixels_is_refused(void **state)
{
    size_t         bytes, made;
    uint8_t       *still, *moving;
    vlm_err_t      err;
    vlm_header_t   h;

    (void) state;

    still = fixture_file("webp-lossless.webp", &bytes);
    moving = animate(still, bytes, 52, 35, 0, 0, 60, 50, &made);
    assert_null(decode(moving, made, &h, &err));
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, "WebP: its header says 52x35, its pixels 53x35");
    free(moving);
    free(still);
}


static void
a_header_of_another_file_is_refused(void **state)
{
    size_t         bytes;
    uint8_t       *data;
    vlm_err_t      err;
    vlm_header_t   h;

    (void) state;

    memset(&err, 0, sizeof(err));
    data = fixture_file("webp-lossy.webp", &bytes);
    assert_int_equal(vlm_header_read(&h, data, bytes, &err), 0);
    assert_null(vlm_webp_decode(&h, data, bytes - 1, NULL, &err));
    assert_int_equal(err.code, VLM_EINPUT);
    free(data);
}


typedef struct {
    uint8_t   *out;
    size_t     n;
    uint32_t   bits, n_bits;
} bits_t;


static void
put(bits_t *b, uint32_t bits, uint32_t n)
{
    b->bits |= bits << b->n_bits;

    for (b->n_bits += n; b->n_bits >= 8; b->n_bits -= 8) {
        b->out[b->n++] = (uint8_t) b->bits;
        b->bits >>= 8;
    }
}


/* A code of 256 symbols of 8 bits each, of whichever alphabet. */
static void
put_bytes_code(bits_t *b)
{
    put(b, 0, 1);
    put(b, 8, 4);                                  /* lengths of lengths: 11 of 0, one of 1 */
    put(b, 0, 32);
    put(b, 0, 1);
    put(b, 1, 3);
    put(b, 1, 1);                                  /* each length is 8, in no bits, 256 times */
    put(b, 3, 3);
    put(b, 254, 8);
}


/* The value's bits in the order of a code: the highest comes first. */
static void
put_byte(bits_t *b, uint32_t v)
{
    int  i;

    for (i = 7; i >= 0; i--) {
        put(b, v >> i & 1, 1);
    }
}


/* A lossless picture with a group of codes for each of its tiles of 4 x 4 pixels, up to 65,536. */
static uint8_t *
make_groups(uint32_t side, size_t *bytes)
{
    bits_t    b;
    uint8_t  *p;
    uint32_t  i, n;

    n = side / 4 * (side / 4);
    p = calloc(n * 5 + 200, 1);
    memcpy(p, "RIFF....WEBPVP8L....\x2f", 21);
    memset(&b, 0, sizeof(b));
    b.out = p + 21;
    put(&b, side - 1, 14);
    put(&b, side - 1, 14);
    put(&b, 0, 4);                                 /* no alpha, version 0 */
    put(&b, 0, 2);                                 /* no transforms, no cache */
    put(&b, 1, 1);
    put(&b, 0, 3);                                 /* tiles of 4 */
    put(&b, 0, 1);
    put_bytes_code(&b);
    put_bytes_code(&b);
    put(&b, 0x111, 12);                            /* blue, alpha, distance: a single 0 each */

    for (i = 0; i < n; i++) {
        put_byte(&b, i & 255);
        put_byte(&b, i >> 8);
    }

    for (i = 0; i < n * 5; i++) {
        put(&b, 1, 4);
    }

    put(&b, 0, 8);
    b.n += b.n & 1 ? 0 : 1;                        /* chunks are even: 1 and what follows */
    *bytes = 21 + b.n;
    put_u24(p + 16, (uint32_t) (b.n + 1));
    put_u24(p + 4, (uint32_t) (*bytes - 8));
    p[19] = p[7] = 0;

    return p;
}


static void
a_group_of_codes_for_every_few_pixels_is_counted_or_refused(void **state)
{
    size_t         bytes;
    uint8_t       *data, *p;
    vlm_err_t      err;
    vlm_header_t   h;

    (void) state;

    data = make_groups(1024, &bytes);
    assert_in_range(bytes, 290000, 300000);
    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_header_read(&h, data, bytes, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);
    assert_string_equal(err.text, "WebP of 1024x1024 pixels has 65536 groups of Huffman codes, "
                        "which take 776 MiB to decode, at most 64 are given");
    assert_int_equal(vlm_header_read(&h, data, bytes - 1000, &err), -1);
    free(data);

    data = make_groups(512, &bytes);
    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_header_read(&h, data, bytes, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);
    assert_string_equal(err.text, "WebP of 512x512 pixels has 16384 groups of Huffman codes, "
                        "which take 194 MiB to decode, at most 64 are given");
    free(data);

    data = make_groups(256, &bytes);               /* 4,096 of them are 49 MiB */
    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_header_read(&h, data, bytes, &err), 0);
    free(data);

    data = make_groups(128, &bytes);
    p = decode(data, bytes, &h, &err);             /* libwebp accepts it, too */
    assert_string_equal(err.text, "");
    assert_non_null(p);
    assert_in_range(h.memory, 1024 * 12000, 1024 * 14000);
    free(p);
    free(data);
}


/* The same codes as the transparency of a lossy picture, which has no header of its own. */
static void
codes_of_transparency_are_counted_or_refused(void **state)
{
    size_t         bytes, length;
    uint8_t       *data, *p;
    vlm_err_t      err;
    vlm_header_t   h;

    (void) state;

    data = make_groups(1024, &bytes);
    length = (1 + bytes - 25) & ~(size_t) 1;
    p = calloc(38 + length + 8, 1);
    memcpy(p, "RIFF....WEBPVP8X\x0a\0\0\0\x10", 21);
    put_u24(p + 4, (uint32_t) (38 + length));
    p[7] = 0;
    put_u24(p + 24, 1023);
    put_u24(p + 27, 1023);
    memcpy(p + 30, "ALPH", 4);
    put_u24(p + 34, (uint32_t) length);
    p[38] = 1;                                     /* coded without loss, not filtered */
    memcpy(p + 39, data + 25, length - 1);
    memcpy(p + 38 + length, "VP8 ", 4);

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_header_read(&h, p, 46 + length, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);
    assert_string_equal(err.text, "WebP of 1024x1024 pixels has 65536 groups of Huffman codes, "
                        "which take 776 MiB to decode, at most 64 are given");
    free(p);
    free(data);
}


static void
a_lossless_stream_cut_within_its_codes_is_refused(void **state)
{
    size_t         bytes, n;
    uint8_t       *data;
    vlm_err_t      err;
    uint64_t       memory;

    (void) state;

    data = make_groups(64, &bytes);

    for (n = 0; n < 100; n++) {
        memset(&err, 0, sizeof(err));
        assert_int_equal(vlm_webp_codes(data + 25, n, 64, 64, &memory, &err), -1);
        assert_string_equal(err.text, "WebP: its Huffman codes are damaged or cut off");
    }

    free(data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_frame_lies_where_it_says_on_a_transparent_canvas),
        cmocka_unit_test(a_frame_of_another_size_than_its_pixels_is_refused),
        cmocka_unit_test(a_header_of_another_file_is_refused),
        cmocka_unit_test(a_group_of_codes_for_every_few_pixels_is_counted_or_refused),
        cmocka_unit_test(codes_of_transparency_are_counted_or_refused),
        cmocka_unit_test(a_lossless_stream_cut_within_its_codes_is_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
