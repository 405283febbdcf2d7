/* stb_image behind its purse: files that would unpack to more than they say. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "image/fixture.h"
#include "image/stb.h"

#define MATCHES  1600000u              /* of 258 bytes each, in 13 bits: 412 MB out of 2.6 MB */


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


static void
put_u32be(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) (v >> 24);
    p[1] = (uint8_t) (v >> 16);
    p[2] = (uint8_t) (v >> 8);
    p[3] = (uint8_t) v;
}


/* A PNG of 1x1 grey whose deflate stream is one zero, repeated n * 258 times. */
static uint8_t *
make_bomb(uint32_t n, size_t *bytes)
{
    bits_t    b;
    uint8_t  *p;
    uint32_t  i;

    static const char  head[] = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0----"
                                "....IDAT\x78\x9c";

    p = calloc((size_t) n * 2 + 100, 1);
    memcpy(p, head, sizeof(head) - 1);
    memset(&b, 0, sizeof(b));
    b.out = p + sizeof(head) - 1;

    put(&b, 3, 3);                                 /* the last block, of fixed codes */
    put(&b, 0x0c, 8);                              /* a literal 0: 00110000, written backwards */

    for (i = 0; i < n; i++) {
        put(&b, 0xa3, 8);                          /* length 258: 11000101, backwards */
        put(&b, 0, 5);                             /* distance 1 */
    }

    put(&b, 0, 7);
    put(&b, 0, 7);
    put_u32be(p + 33, (uint32_t) (b.n + 2 + 4));
    memcpy(b.out + b.n + 8, "\0\0\0\0IEND----", 12);
    *bytes = sizeof(head) - 1 + b.n + 8 + 12;

    return p;
}


static uint8_t *
decode(const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    vlm_header_t  h;

    memset(err, 0, sizeof(*err));

    return vlm_header_read(&h, data, bytes, err) == 0 ? vlm_stb_decode(&h, data, bytes, err) : NULL;
}


static void
a_png_that_unpacks_to_more_than_its_header_says_is_refused(void **state)
{
    char        want[128];
    size_t      bytes;
    uint8_t    *data, *p;
    vlm_err_t   err;

    (void) state;

    data = make_bomb(MATCHES, &bytes);
    assert_null(decode(data, bytes, &err));
    assert_int_equal(err.code, VLM_ELIMIT);
    (void) snprintf(want, sizeof(want), "PNG of 1x1 pixels needs more than %zu kB to decode",
                    (16 + 3 * bytes + (256 << 10)) >> 10);
    assert_string_equal(err.text, want);
    free(data);

    data = make_bomb(100, &bytes);                 /* 25 KB for two bytes are let pass */
    p = decode(data, bytes, &err);
    assert_string_equal(err.text, "");
    assert_memory_equal(p, "\0\0\0", 3);
    free(p);
    free(data);
}


static void
a_refusal_leaves_the_purse_full_for_the_next(void **state)
{
    int         i;
    size_t      n_bomb, n_good;
    uint8_t    *bomb, *good, *p;
    vlm_err_t   err;

    (void) state;

    bomb = make_bomb(700000, &n_bomb);             /* 180 MB: held twice, it is too much */
    good = fixture_file("png-photo.png", &n_good);

    for (i = 0; i < 3; i++) {
        free(decode(bomb, n_bomb, &err));
        p = decode(good, n_good, &err);
        assert_non_null(p);
        free(p);
    }

    free(good);
    free(bomb);
}


static void
a_decoder_s_reason_is_in_the_sentence(void **state)
{
    size_t      bytes;
    uint8_t    *data;
    vlm_err_t   err;

    (void) state;

    data = fixture_file("png-photo.png", &bytes);
    data[41] ^= 0xff;                              /* the first byte of its zlib stream */
    assert_null(decode(data, bytes, &err));
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, "PNG: damaged: bad zlib header");
    free(data);
}


static void
a_header_that_says_other_than_the_decoder_is_refused(void **state)
{
    size_t        bytes;
    uint8_t      *data;
    vlm_err_t     err;
    vlm_header_t  h;

    (void) state;

    memset(&err, 0, sizeof(err));
    data = fixture_file("jpeg-420.jpg", &bytes);
    assert_int_equal(vlm_header_read(&h, data, bytes, &err), 0);
    h.width++;
    assert_null(vlm_stb_decode(&h, data, bytes, &err));
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, "JPEG: its header says 68x45, its pixels 67x45");
    free(data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_png_that_unpacks_to_more_than_its_header_says_is_refused),
        cmocka_unit_test(a_refusal_leaves_the_purse_full_for_the_next),
        cmocka_unit_test(a_decoder_s_reason_is_in_the_sentence),
        cmocka_unit_test(a_header_that_says_other_than_the_decoder_is_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
