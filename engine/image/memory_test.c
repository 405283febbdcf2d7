/*
 * A picture's reading takes no more memory, measured, than its header says, and leaves none behind
 * when it is stopped.  This program's malloc() counts; under a sanitizer, which has its own,
 * nothing is measured.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <jpeglib.h>
#include <malloc.h>
#include <png.h>
#include <webp/encode.h>

#include "image/fixture.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define COUNTED  1
#define WIDTH    1203                  /* not of whole blocks */
#define HEIGHT   901

#pragma GCC visibility push(default)             /* the libraries shall take these, too */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

static size_t  used, peak, most = SIZE_MAX;        /* most: there is no more */


static void *
count(void *p)
{
    used += p == NULL ? 0 : malloc_usable_size(p);
    peak = used > peak ? used : peak;

    return p;
}


void *
malloc(size_t n)
{
    return n > most - used ? NULL : count(__libc_malloc(n));
}


void *
calloc(size_t n, size_t size)
{
    return n * size > most - used ? NULL : count(__libc_calloc(n, size));
}


void *
realloc(void *p, size_t n)
{
    used -= p == NULL ? 0 : malloc_usable_size(p);

    return count(__libc_realloc(p, n));
}


void
free(void *p)
{
    used -= p == NULL ? 0 : malloc_usable_size(p);
    __libc_free(p);
}

#pragma GCC visibility pop

#else

#define COUNTED  0
#define WIDTH    803                   /* decoded for the sanitizer alone */
#define HEIGHT   601

static size_t  used, peak, most;

#endif


typedef struct {
    uint8_t  *data;
    size_t    bytes;
} file_t;


/* Reads it as a model of default limits does. */
static void
measure(const char *name, const file_t *f)
{
    size_t               before;
    uint8_t              sha256[32] = { 0 };
    vlm_err_t            err = { 0 };
    vlm_picture_t       *p;
    vlm_picture_info_t   info;

    if (vlm_picture_check(f->data, f->bytes, &info, &err) != 0) {
        fail_msg("%s: %s", name, err.text);
    }

    before = peak = used;
    p = vlm_picture_make_hashed(&fixture_pixels, &fixture_vision, 1003520, f->data, f->bytes,
                                sha256, NULL, &err);

    if (p == NULL) {
        fail_msg("%s: %s", name, err.text);
    }

    vlm_picture_free(p);

    if (peak - before > info.memory) {
        fail_msg("%s takes %zu bytes, its header says %zu", name, peak - before,
                 (size_t) info.memory);
    }

    print_message("%-28s %5.2f of %5.2f bytes a pixel\n", name,
                  (double) (peak - before) / WIDTH / HEIGHT, (double) info.memory / WIDTH / HEIGHT);
}


typedef struct {
    const char  *name;
    int          components, across, down, progressive, apart, quality, turned;
} jpeg_t;


static void
make_jpeg(file_t *f, const jpeg_t *j, uint8_t *pixels)
{
    int                          i;
    JSAMPROW                     row;
    unsigned long                bytes;
    struct jpeg_error_mgr        error;
    struct jpeg_compress_struct  c;

    static const uint8_t  turned[] = "Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0";
    static const jpeg_scan_info  apart[3] = {
        { 1, { 0 }, 0, 63, 0, 0 }, { 1, { 1 }, 0, 63, 0, 0 }, { 1, { 2 }, 0, 63, 0, 0 }
    };

    c.err = jpeg_std_error(&error);
    jpeg_create_compress(&c);
    f->data = NULL;
    bytes = 0;
    jpeg_mem_dest(&c, &f->data, &bytes);
    c.image_width = WIDTH;
    c.image_height = HEIGHT;
    c.input_components = j->components;
    c.in_color_space = j->components == 1 ? JCS_GRAYSCALE : j->components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, j->quality, TRUE);
    c.comp_info[0].h_samp_factor = j->across;
    c.comp_info[0].v_samp_factor = j->down;

    if (j->progressive) {
        jpeg_simple_progression(&c);
    }

    if (j->apart) {
        c.scan_info = apart;
        c.num_scans = 3;
    }

    jpeg_start_compress(&c, TRUE);

    if (j->turned) {
        jpeg_write_marker(&c, JPEG_APP0 + 1, turned, sizeof(turned) - 1);
    }

    for (i = 0; i < HEIGHT; i++) {
        row = pixels + (size_t) i * WIDTH * (unsigned) j->components;
        (void) jpeg_write_scanlines(&c, &row, 1);
    }

    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    f->bytes = bytes;
}


static void
a_jpeg_takes_no_more_than_its_header_says(void **state)
{
    size_t    i;
    file_t    f;
    uint8_t  *pixels;

    static const jpeg_t  jpegs[] = {
        { "grey", 1, 1, 1, 0, 0, 90, 0 }, { "grey, progressive", 1, 1, 1, 1, 0, 90, 0 },
        { "4:4:4", 3, 1, 1, 0, 0, 100, 0 }, { "4:2:0", 3, 2, 2, 0, 0, 90, 0 },
        { "4:2:0 turned", 3, 2, 2, 0, 0, 90, 1 }, { "4:4:0", 3, 1, 2, 0, 0, 90, 0 },
        { "4:1:1", 3, 4, 1, 0, 0, 90, 0 }, { "4x2", 3, 4, 2, 0, 0, 90, 0 },
        { "4:4:4 in three scans", 3, 1, 1, 0, 1, 90, 0 },
        { "4:2:0 in three scans", 3, 2, 2, 0, 1, 90, 0 },
        { "4:2:0 progressive", 3, 2, 2, 1, 0, 90, 0 },
        { "4:4:4 progressive", 3, 1, 1, 1, 0, 100, 1 },
        { "1x4 progressive", 3, 1, 4, 1, 0, 90, 0 },
        { "CMYK", 4, 1, 1, 0, 0, 90, 0 }, { "CMYK progressive", 4, 1, 1, 1, 0, 90, 0 }
    };

    (void) state;

    pixels = fixture_noise(WIDTH, HEIGHT * 4 / 3 + 1, 2);

    for (i = 0; i < sizeof(jpegs) / sizeof(jpegs[0]); i++) {
        make_jpeg(&f, &jpegs[i], pixels);
        measure(jpegs[i].name, &f);
        free(f.data);
    }

    free(pixels);
}


static void
put(png_structp png, png_bytep data, size_t n)
{
    file_t  *f;

    f = png_get_io_ptr(png);
    f->data = realloc(f->data, f->bytes + n);
    memcpy(f->data + f->bytes, data, n);
    f->bytes += n;
}


static void
make_png(file_t *f, int color, int depth, int interlace, const uint8_t *pixels)
{
    int           pass, passes;
    uint32_t      y;
    png_infop     info;
    png_structp   png;

    memset(f, 0, sizeof(*f));
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    info = png_create_info_struct(png);
    png_set_write_fn(png, f, put, NULL);
    png_set_compression_level(png, 1);
    png_set_IHDR(png, info, WIDTH, HEIGHT, depth, color, interlace, 0, 0);
    png_write_info(png, info);
    passes = png_set_interlace_handling(png);

    for (pass = 0; pass < passes; pass++) {
        for (y = 0; y < HEIGHT; y++) {
            png_write_row(png, pixels + (size_t) y * 1000);
        }
    }

    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}


static void
a_png_takes_no_more_than_its_header_says(void **state)
{
    size_t    i;
    file_t    f;
    uint8_t  *pixels;

    static const struct { const char *name; int color, depth, interlace; }  pngs[] = {
        { "grey of 1 bit", 0, 1, 0 }, { "RGB", 2, 8, 0 }, { "RGBA", 6, 8, 0 },
        { "RGBA in seven passes", 6, 8, 1 }, { "16-bit RGBA", 6, 16, 0 },
        { "16-bit RGBA in seven passes", 6, 16, 1 }
    };

    (void) state;

    pixels = fixture_noise(1000, HEIGHT + 10, 2);

    for (i = 0; i < sizeof(pngs) / sizeof(pngs[0]); i++) {
        make_png(&f, pngs[i].color, pngs[i].depth, pngs[i].interlace, pixels);
        measure(pngs[i].name, &f);
        free(f.data);
    }

    free(pixels);
}


static void
make_webp(file_t *f, int lossless, int alpha, int noise, uint8_t *pixels)
{
    size_t             i;
    WebPConfig         config;
    WebPPicture        picture;
    WebPMemoryWriter   writer;

    for (i = 0; i < (size_t) WIDTH * HEIGHT; i++) {
        pixels[4 * i + 3] = !alpha ? 255 : noise ? pixels[4 * i] : (uint8_t) (i / 1000);
    }

    assert_true(WebPConfigInit(&config) && WebPPictureInit(&picture));
    config.lossless = lossless;
    config.method = 2;
    picture.use_argb = lossless;
    picture.width = WIDTH;
    picture.height = HEIGHT;
    WebPMemoryWriterInit(&writer);
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &writer;
    assert_true(WebPPictureImportRGBA(&picture, pixels, WIDTH * 4));
    assert_true(WebPEncode(&config, &picture));
    WebPPictureFree(&picture);
    f->data = writer.mem;
    f->bytes = writer.size;
}


/* Slopes with a little grain, so that there are transforms and several groups of codes. */
static void
a_webp_takes_no_more_than_its_header_says(void **state)
{
    int       lossless, alpha;
    char      name[64];
    size_t    i;
    file_t    f;
    uint8_t  *pixels;

    (void) state;

    pixels = fixture_noise(WIDTH, HEIGHT * 4 / 3 + 1, 2);

    for (i = 0; i < (size_t) WIDTH * HEIGHT * 4; i++) {
        pixels[i] = (uint8_t) (pixels[i] % (1 + i / 200000) + i / 4 % WIDTH / 8);
    }

    for (lossless = 0; lossless < 2; lossless++) {
        for (alpha = 0; alpha < 3; alpha++) {
            make_webp(&f, lossless, alpha != 0, alpha == 2, pixels);
            (void) snprintf(name, sizeof(name), "WebP, %s, %s", lossless ? "lossless" : "lossy",
                            alpha == 0 ? "opaque" : alpha == 1 ? "soft" : "noise");
            measure(name, &f);
            free(f.data);
        }
    }

    free(pixels);
}


static void
a_bmp_takes_no_more_than_its_header_says(void **state)
{
    file_t    f;

    (void) state;

    f.bytes = 14 + 108 + (size_t) WIDTH * HEIGHT * 4;
    f.data = calloc(f.bytes, 1);
    memcpy(f.data, "BM\0\0\0\0\0\0\0\0\x7a\0\0\0\x6c\0\0\0", 18);
    f.data[18] = WIDTH & 255;
    f.data[19] = WIDTH >> 8;
    f.data[22] = HEIGHT & 255;
    f.data[23] = HEIGHT >> 8;
    f.data[26] = 1;
    f.data[28] = 32;
    f.data[30] = 3;
    memset(f.data + 66, 255, 4);                   /* the mask of alpha */
    measure("BMP with alpha", &f);
    free(f.data);
}


/* The file is good: the error is not the client's, and no memory leaks. */
static void
a_lack_of_memory_is_an_error_of_its_own(void **state)
{
    size_t           i, n, before, needed, bytes;
    uint8_t         *data, sha256[32] = { 0 };
    vlm_err_t        err;
    vlm_picture_t   *p;

    static const char *const  files[] = {
        "jpeg-420.jpg", "jpeg-progressive444.jpg", "jpeg-cmyk.jpg", "png-photo.png",
        "png-rgba16-adam7.png", "gif-256.gif", "bmp-24.bmp", "webp-lossy-alpha.webp",
        "webp-lossless-alpha.webp", "turn-6.jpg"
    };

    (void) state;

    for (i = 0; COUNTED && i < sizeof(files) / sizeof(files[0]); i++) {
        data = fixture_file(files[i], &bytes);
        needed = 0;

        for (n = 0, p = NULL; p == NULL; n++) {
            memset(&err, 0, sizeof(err));
            before = used;
            most = used + needed;
            p = vlm_picture_make_hashed(&fixture_pixels, &fixture_vision, 4096, data, bytes, sha256,
                                        NULL, &err);
            most = SIZE_MAX;
            needed += 1 + needed / 64;

            if (p == NULL && (err.code != VLM_EMEMORY || used != before)) {
                fail_msg("%s with %zu bytes: %s; %zd are left behind", files[i], needed, err.text,
                         used - before);
            }
        }

        assert_true(n > 100);
        vlm_picture_free(p);
        free(data);
    }
}


typedef struct {
    uint32_t  asked, last;             /* at the last question the client has left */
} client_t;


static int
has_left(void *data)
{
    client_t  *c = data;

    return ++c->asked == c->last;
}


/* The client leaves in the middle of the decode, and again at its first question. */
static void
leave(const char *name, const file_t *f)
{
    size_t      before;
    uint8_t    *rgb;
    client_t    c = { 0, 0 };
    uint32_t    width, height, n;
    vlm_err_t   err = { 0 };
    vlm_stop_t  stop = { has_left, &c };

    rgb = vlm_picture_decode(f->data, f->bytes, &width, &height, &stop, &err);

    if (rgb == NULL || c.asked < 32) {
        fail_msg("%s: asked %u times; %s", name, c.asked, err.text);
    }

    free(rgb);
    before = used;

    for (n = c.asked / 2; n > 0; n = n == 1 ? 0 : 1) {
        memset(&err, 0, sizeof(err));
        c = (client_t) { 0, n };
        rgb = vlm_picture_decode(f->data, f->bytes, &width, &height, &stop, &err);

        if (rgb != NULL || err.code != VLM_ECANCELLED || c.asked != n || used != before) {
            fail_msg("%s: left at question %u of the decode, asked %u times; code %d, %zd bytes "
                     "left behind", name, n, c.asked, err.code, (ssize_t) (used - before));
        }
    }
}


static void
a_decode_whose_client_has_left_ends_at_the_next_question(void **state)
{
    size_t    i;
    file_t    f;
    uint8_t  *pixels;

    static const jpeg_t  jpegs[] = {
        { "JPEG", 3, 2, 2, 0, 0, 90, 0 }, { "JPEG, progressive", 3, 2, 2, 1, 0, 90, 0 },
        { "JPEG, CMYK", 4, 1, 1, 0, 0, 90, 0 }
    };

    (void) state;

    pixels = fixture_noise(WIDTH, HEIGHT * 4 / 3 + 1, 2);

    for (i = 0; i < sizeof(jpegs) / sizeof(jpegs[0]); i++) {
        make_jpeg(&f, &jpegs[i], pixels);
        leave(jpegs[i].name, &f);
        free(f.data);
    }

    for (i = 0; i < 2; i++) {
        make_png(&f, 6, 8, (int) i, pixels);
        leave(i == 0 ? "PNG" : "PNG, interlaced", &f);
        free(f.data);
    }

    for (i = 0; i < 4; i++) {
        make_webp(&f, i >= 2, i % 2, 1, pixels);
        leave(i < 2 ? "WebP, lossy" : "WebP, lossless", &f);
        free(f.data);
    }

    free(pixels);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_jpeg_takes_no_more_than_its_header_says),
        cmocka_unit_test(a_png_takes_no_more_than_its_header_says),
        cmocka_unit_test(a_webp_takes_no_more_than_its_header_says),
        cmocka_unit_test(a_bmp_takes_no_more_than_its_header_says),
        cmocka_unit_test(a_lack_of_memory_is_an_error_of_its_own),
        cmocka_unit_test(a_decode_whose_client_has_left_ends_at_the_next_question)
    };

    if (!COUNTED) {
        print_message("under a sanitizer pictures are read, but nothing is measured\n");
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
