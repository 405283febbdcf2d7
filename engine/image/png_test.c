/* PNG: the chunks that libpng may read, and streams that would keep it busy. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "image/fixture.h"
#include "image/png.h"


typedef struct {
    uint8_t   *out;
    size_t     n;
    uint32_t   bits, n_bits;
} bits_t;

typedef struct {
    uint8_t  *data;
    size_t    bytes;
} file_t;


static void
put(bits_t *b, uint32_t bits, uint32_t n)
{
    b->bits |= bits << b->n_bits;

    for (b->n_bits += n; b->n_bits >= 8; b->n_bits -= 8) {
        b->out[b->n++] = (uint8_t) b->bits;
        b->bits >>= 8;
    }
}


static void
put_u32be(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) (v >> 24);
    p[1] = (uint8_t) (v >> 16);
    p[2] = (uint8_t) (v >> 8);
    p[3] = (uint8_t) v;
}


static uint32_t
crc(const uint8_t *p, size_t n)
{
    int       bit;
    uint32_t  c;

    for (c = 0xffffffff; n-- > 0; p++) {
        for (c ^= *p, bit = 0; bit < 8; bit++) {
            c = (c >> 1) ^ ((c & 1) != 0 ? 0xedb88320 : 0);
        }
    }

    return ~c;
}


static void
add_chunk(file_t *f, const char *type, const void *data, size_t n)
{
    uint8_t  *p;

    p = f->data + f->bytes;
    put_u32be(p, (uint32_t) n);
    memcpy(p + 4, type, 4);

    if (n > 0) {
        memcpy(p + 8, data, n);
    }

    put_u32be(p + 8 + n, crc(p + 4, n + 4));
    f->bytes += n + 12;
}


/* A grey PNG of side x side pixels around a deflate stream, with an empty IDAT before it. */
static void
make_png(file_t *f, uint32_t side, const uint8_t *stream, size_t n)
{
    uint8_t  head[13] = { 0 };

    f->data = malloc(n + 100);
    memcpy(f->data, "\x89PNG\r\n\x1a\n", 8);
    f->bytes = 8;
    put_u32be(head, side);
    put_u32be(head + 4, side);
    head[8] = 8;
    add_chunk(f, "IHDR", head, 13);
    add_chunk(f, "IDAT", NULL, 0);
    add_chunk(f, "IDAT", stream, n);
    add_chunk(f, "IEND", NULL, 0);
}


/* A pixel, then n matches of 258 zeros each, in 13 bits. */
static void
make_long(file_t *f, uint32_t n)
{
    bits_t  b;

    memset(&b, 0, sizeof(b));
    b.out = calloc((size_t) n * 2 + 100, 1);
    put(&b, 0x9c78, 16);                           /* zlib's header */
    put(&b, 3, 3);                                 /* the last block, of fixed codes */
    put(&b, 0x0c, 8);                              /* literals 0: 00110000, written backwards */
    put(&b, 0x0c, 8);

    for ( /* void */ ; n > 0; n--) {
        put(&b, 0xa3, 8);                          /* length 258: 11000101, backwards */
        put(&b, 0, 5);                             /* distance 1 */
    }

    put(&b, 0, 14);
    make_png(f, 1, b.out, b.n + 4);
    free(b.out);
}


/* n blocks of fixed codes with nothing in them, 10 bits each, where a pixel should be. */
static void
make_empty(file_t *f, uint32_t n)
{
    bits_t  b;

    memset(&b, 0, sizeof(b));
    b.out = calloc((size_t) n * 2 + 100, 1);
    put(&b, 0x9c78, 16);

    for ( /* void */ ; n > 0; n--) {
        put(&b, 2, 3);
        put(&b, 0, 7);
    }

    put(&b, 3, 3);
    put(&b, 0x0c, 8);
    put(&b, 0x0c, 8);
    put(&b, 0, 14);
    put_u32be(b.out + b.n, 0x20001);               /* Adler's sum of two zeros */
    make_png(f, 1, b.out, b.n + 4);
    free(b.out);
}


static uint8_t *
decode(const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    vlm_header_t  h;

    memset(err, 0, sizeof(*err));

    return vlm_header_read(&h, data, bytes, err) == 0 ? vlm_png_decode(&h, data, bytes, NULL, err)
                                                      : NULL;
}


static void
blocks_without_a_pixel_are_refused_soon(void **state)
{
    file_t      f;
    uint8_t    *p;
    vlm_err_t   err;

    (void) state;

    make_empty(&f, 8000000);                       /* 10 MB */
    assert_null(decode(f.data, f.bytes, &err));
    assert_int_equal(err.code, VLM_ELIMIT);
    assert_string_equal(err.text, "PNG of 1x1 pixels: more than 65542 compressed bytes for 0 bytes "
                        "of rows");
    free(f.data);

    make_empty(&f, 100);                           /* a few do no harm */
    p = decode(f.data, f.bytes, &err);
    assert_string_equal(err.text, "");
    assert_memory_equal(p, "\0\0\0", 3);
    free(p);
    free(f.data);
}


static void
data_after_the_last_row_is_not_unpacked_to_its_end(void **state)
{
    file_t      f;
    uint8_t    *p;
    vlm_err_t   err;

    (void) state;

    make_long(&f, 1600000);                        /* 412 MB out of 2.6 MB */
    assert_null(decode(f.data, f.bytes, &err));
    assert_int_equal(err.code, VLM_ELIMIT);
    free(f.data);

    make_long(&f, 100);
    p = decode(f.data, f.bytes, &err);
    assert_string_equal(err.text, "");
    assert_memory_equal(p, "\0\0\0", 3);
    free(p);
    free(f.data);
}


/* stb_image copied the first chunk's bytes into a room that it had not made yet. */
static void
a_first_data_chunk_may_be_empty(void **state)
{
    size_t      bytes, grown;
    uint8_t    *data, *p, *q, *more;
    vlm_err_t   err;

    (void) state;

    data = fixture_file("png-rgb8.png", &bytes);
    grown = bytes + 12;
    more = malloc(grown);
    memcpy(more, data, 33);
    memcpy(more + 33, "\0\0\0\0IDAT\x35\xaf\x06\x1e", 12);
    memcpy(more + 45, data + 33, bytes - 33);

    p = decode(data, bytes, &err);
    q = decode(more, grown, &err);
    assert_string_equal(err.text, "");
    assert_memory_equal(p, q, 19 * 13 * 3);
    free(p);
    free(q);
    free(more);
    free(data);
}


static void
damaged_files_are_refused_with_the_library_s_reason(void **state)
{
    size_t      bytes;
    uint8_t    *data;
    vlm_err_t   err;

    (void) state;

    data = fixture_file("png-photo.png", &bytes);
    data[41] ^= 0xff;                              /* the first byte of its zlib stream */
    assert_null(decode(data, bytes, &err));
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, "PNG: damaged: IDAT: invalid window size (libpng)");
    data[41] ^= 0xff;
    data[bytes - 13] ^= 1;                         /* the last byte of its check sum */
    assert_null(decode(data, bytes, &err));
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, "PNG: damaged: IDAT: CRC error");
    free(data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(blocks_without_a_pixel_are_refused_soon),
        cmocka_unit_test(data_after_the_last_row_is_not_unpacked_to_its_end),
        cmocka_unit_test(a_first_data_chunk_may_be_empty),
        cmocka_unit_test(damaged_files_are_refused_with_the_library_s_reason)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
