/* GIFs made by hand: codes, tables, frames and their faults. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "image/fixture.h"
#include "image/gif.h"

/* A canvas of 4x2, four colours: black, red, green, blue. */
#define CANVAS  "GIF89a\4\0\2\0\x81\1\0" "\0\0\0\xff\0\0\0\xff\0\0\0\xff"
#define FRAME   "\x2c\0\0\0\0\4\0\2\0\0"
#define PIXELS  "\2" "\4\x8c\x8c\x2d\5" "\0;"


/* Codes of a growing width, as an encoder writes them. */
typedef struct {
    uint8_t   out[4096];
    size_t    n;
    uint32_t  bits, n_bits;
} codes_t;


static void
put_code(codes_t *c, uint32_t code, uint32_t width)
{
    c->bits |= code << c->n_bits;

    for (c->n_bits += width; c->n_bits >= 8; c->n_bits -= 8) {
        c->out[c->n++] = (uint8_t) c->bits;
        c->bits >>= 8;
    }
}


/* The file: head, then the codes in blocks, then its end. */
static size_t
put_file(uint8_t *file, const void *head, size_t n_head, codes_t *c)
{
    size_t  at, i, n;

    put_code(c, 0, 7);
    memcpy(file, head, n_head);
    at = n_head;

    for (i = 0; i < c->n; i += n) {
        n = c->n - i < 255 ? c->n - i : 255;
        file[at++] = (uint8_t) n;
        memcpy(file + at, c->out + i, n);
        at += n;
    }

    memcpy(file + at, "\0;", 2);

    return at + 2;
}


/* RGBA of a file in a block of exactly its length, or NULL and err. */
static uint8_t *
decode(const void *data, size_t bytes, vlm_err_t *err)
{
    uint8_t       *p, *rgba;
    vlm_header_t   h;

    memset(err, 0, sizeof(*err));
    p = malloc(bytes);
    memcpy(p, data, bytes);
    rgba = vlm_header_read(&h, p, bytes, err) == 0 ? vlm_gif_decode(&h, p, bytes, err) : NULL;
    free(p);

    return rgba;
}


static void
refuse(const void *data, size_t bytes, const char *text)
{
    vlm_err_t  err;

    assert_null(decode(data, bytes, &err));
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, text);
}


#define REFUSE(bytes, text)  refuse(bytes, sizeof(bytes) - 1, text)


static void
codes_become_colours(void **state)
{
    size_t      bytes;
    codes_t     c = { .n = 0 };
    uint8_t    *rgba, file[256];
    uint32_t    i;
    vlm_err_t   err;

    static const uint8_t  codes[] = { 4, 1, 1, 6, 2, 3, 3 };     /* clear, 1 1 (1 1) 2 3 3, +1 */

    (void) state;

    for (i = 0; i < sizeof(codes); i++) {
        put_code(&c, codes[i], i < 4 ? 3 : 4);
    }

    put_code(&c, 3, 4);
    put_code(&c, 5, 4);
    bytes = put_file(file, CANVAS FRAME "\2", sizeof(CANVAS FRAME "\2") - 1, &c);
    rgba = decode(file, bytes, &err);
    assert_string_equal(err.text, "");
    assert_memory_equal(rgba, "\xff\0\0\xff\xff\0\0\xff\xff\0\0\xff\xff\0\0\xff"
                        "\0\xff\0\xff\0\0\xff\xff\0\0\xff\xff\0\0\xff\xff", 32);
    free(rgba);
}


/* The code that an encoder is about to define: it repeats its own beginning. */
static void
a_code_may_name_the_string_it_defines(void **state)
{
    size_t      i, bytes;
    codes_t     c = { .n = 0 };
    uint8_t    *rgba, file[256];
    vlm_err_t   err;

    (void) state;

    put_code(&c, 4, 3);
    put_code(&c, 2, 3);
    put_code(&c, 6, 3);                            /* 2 2, defined by this very code */
    put_code(&c, 7, 3);                            /* 2 2 2 */
    put_code(&c, 8, 4);                            /* 2 2 2 2: two of them find no room */
    bytes = put_file(file, CANVAS FRAME "\2", sizeof(CANVAS FRAME "\2") - 1, &c);
    rgba = decode(file, bytes, &err);
    assert_string_equal(err.text, "");

    for (i = 0; i < 32; i++) {
        assert_int_equal(rgba[i], i % 4 == 1 || i % 4 == 3 ? 255 : 0);
    }

    free(rgba);
}


static void
a_damaged_raster_is_refused_with_what_it_gave(void **state)
{
    size_t   bytes;
    codes_t  c = { .n = 0 };
    uint8_t  file[256];

    (void) state;

    put_code(&c, 4, 3);
    put_code(&c, 1, 3);
    put_code(&c, 7, 3);                            /* not defined yet */
    bytes = put_file(file, CANVAS FRAME "\2", sizeof(CANVAS FRAME "\2") - 1, &c);
    refuse(file, bytes, "GIF: cut off or damaged after 1 of 8 pixels");

    memset(&c, 0, sizeof(c));
    put_code(&c, 4, 3);
    put_code(&c, 6, 3);                            /* a string before any colour */
    bytes = put_file(file, CANVAS FRAME "\2", sizeof(CANVAS FRAME "\2") - 1, &c);
    refuse(file, bytes, "GIF: cut off or damaged after 0 of 8 pixels");

    memset(&c, 0, sizeof(c));
    put_code(&c, 4, 3);
    put_code(&c, 1, 3);
    put_code(&c, 5, 3);                            /* the end, too early */
    bytes = put_file(file, CANVAS FRAME "\2", sizeof(CANVAS FRAME "\2") - 1, &c);
    refuse(file, bytes, "GIF: cut off or damaged after 1 of 8 pixels");

    REFUSE(CANVAS FRAME, "GIF: the frame's code length is missing or not 2 to 8");
    REFUSE(CANVAS FRAME "\1", "GIF: the frame's code length is missing or not 2 to 8");
    REFUSE(CANVAS FRAME "\x0c", "GIF: the frame's code length is missing or not 2 to 8");
    REFUSE(CANVAS FRAME "\2\4\x8c", "GIF: cut off or damaged after 1 of 8 pixels");
}


static void
a_frame_that_cannot_be_is_refused(void **state)
{
    (void) state;

    REFUSE(CANVAS "\x2c\1\0\0\0\4\0\2\0\0" PIXELS, "GIF: frame 4x2 at 1,0 on a canvas of 4x2");
    REFUSE(CANVAS "\x2c\0\0\0\0\0\0\2\0\0" PIXELS, "GIF: frame 0x2 at 0,0 on a canvas of 4x2");
    REFUSE(CANVAS "\x2c\xff\xff\xff\xff\xff\xff\xff\xff\0" PIXELS,
           "GIF: frame 65535x65535 at 65535,65535 on a canvas of 4x2");
    REFUSE("GIF87a\4\0\2\0\0\0\0" FRAME PIXELS, "GIF: a frame without a colour table");
    REFUSE("GIF87a\4\0\2\0\x87\0\0" FRAME PIXELS,
           "GIF: the file ends after 31 bytes, inside its colour table");
    REFUSE("GIF87a\4\0\2\0\0\0", "GIF: the file ends after 12 bytes, inside its header");
    REFUSE(CANVAS ";", "GIF: block 3b at byte 25, before any frame");
    REFUSE(CANVAS "!", "GIF: the file ends after 26 bytes, inside its extensions");
    REFUSE(CANVAS "!\xf9\4\1\0", "GIF: the file ends after 30 bytes, inside its extensions");
    REFUSE(CANVAS "!\xfe\xff", "GIF: the file ends after 28 bytes, inside its extensions");
    REFUSE(CANVAS "\x2c\0\0\0", "GIF: the file ends after 29 bytes, inside its frame");
}


/* Two colours of a table of four; the frame covers the canvas' right half. */
static void
pixels_outside_of_all_frames_are_transparent_for_any_background(void **state)
{
    size_t      i, bytes;
    codes_t     c = { .n = 0 };
    uint8_t    *rgba, file[256];
    vlm_err_t   err;

    static const char  head[] = CANVAS "!\xf9\4\1\0\0\3\0" "\x2c\2\0\0\0\2\0\2\0\0" "\2";

    (void) state;

    put_code(&c, 4, 3);
    put_code(&c, 3, 3);
    put_code(&c, 2, 3);
    put_code(&c, 3, 3);
    put_code(&c, 2, 4);
    bytes = put_file(file, head, sizeof(head) - 1, &c);
    rgba = decode(file, bytes, &err);
    assert_string_equal(err.text, "");

    for (i = 0; i < 8; i++) {
        assert_int_equal(rgba[4 * i + 3], i % 4 == 3 ? 255 : 0);
    }

    assert_memory_equal(rgba + 12, "\0\xff\0\xff", 4);
    free(rgba);
}


/* A megabyte of the costliest code behind a picture that is full after its first thousands. */
static void
codes_behind_a_full_picture_are_not_even_read(void **state)
{
    size_t      i, bytes;
    uint8_t    *file, *rgba;
    vlm_err_t   err;

    (void) state;

    bytes = 1 << 20;
    file = malloc(bytes);
    memcpy(file, CANVAS FRAME "\2", sizeof(CANVAS FRAME "\2") - 1);

    for (i = sizeof(CANVAS FRAME "\2") - 1; i < bytes; i++) {
        file[i] = 0x49;                            /* 1 1 1 1 ... in 3 bits, then whatever */
    }

    file[sizeof(CANVAS FRAME "\2") - 1] = 0xff;
    file[sizeof(CANVAS FRAME "\2")] = 0x0c;        /* clear, 1, ... */
    rgba = decode(file, bytes, &err);
    assert_true(rgba != NULL || err.code == VLM_EINPUT);
    free(rgba);
    free(file);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(codes_become_colours),
        cmocka_unit_test(a_code_may_name_the_string_it_defines),
        cmocka_unit_test(a_damaged_raster_is_refused_with_what_it_gave),
        cmocka_unit_test(a_frame_that_cannot_be_is_refused),
        cmocka_unit_test(pixels_outside_of_all_frames_are_transparent_for_any_background),
        cmocka_unit_test(codes_behind_a_full_picture_are_not_even_read)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
