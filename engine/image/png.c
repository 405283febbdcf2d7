/*
 * PNG: from chunk to chunk for the header, through libpng for the pixels.
 *
 * libpng fails by longjmp(), which passes frames of this file only.  All memory to be freed
 * afterwards is in one structure of the function that calls the one with setjmp().
 *
 * A small file can keep an inflater busy: blocks without a byte in them, or endless zeros behind
 * the last row.  So the decoder gets compressed bytes in proportion to its rows: at most twice as
 * many.
 */

#include "image/png.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <png.h>

#include "base/stop.h"
#include "image/bytes.h"
#include "image/exif.h"

#define HEADER   33                    /* bytes: signature and IHDR */
#define SLACK    (64u << 10)           /* compressed bytes that need not give a pixel */
#define ROW      8                     /* bytes a pixel: 16-bit RGBA; three rows are held */
#define TABLES   (256u << 10)          /* bytes: zlib's window and codes, libpng's state */

typedef struct {
    const vlm_header_t  *h;
    const uint8_t       *data;         /* [bytes], of which at were read */
    size_t               bytes, at;
    size_t               packed;       /* bytes of IDAT that were read */
    size_t               allowed;      /* of them, by the rows that came out: */
    size_t               rows;         /* bytes */
    size_t               bits;         /* of a pixel in the file */
    png_structp          png;
    png_infop            info;
    uint8_t             *pixels;
    const vlm_stop_t    *stop;
    vlm_err_t           *err;
} decoder_t;


static int
read_ihdr(vlm_header_t *h, const uint8_t *p, vlm_err_t *err)
{
    static const uint8_t  depths[7] = { 1|2|4|8|16, 0, 8|16, 1|2|4|8, 8|16, 0, 8|16 };

    h->width = vlm_u32be(p);
    h->height = vlm_u32be(p + 4);

    if (p[9] > 6 || (p[8] & (p[8] - 1)) != 0 || (p[8] & depths[p[9]]) == 0) {
        return vlm_fail(err, VLM_EINPUT, "PNG: colour type %u with %u bits does not exist", p[9],
                        p[8]);
    }

    if (p[10] != 0 || p[11] != 0 || p[12] > 1) {
        return vlm_fail(err, VLM_EINPUT, "PNG: compression %u, filter %u, interlace %u does not "
                        "exist", p[10], p[11], p[12]);
    }

    h->alpha = (p[9] & 4) != 0;

    return 0;
}


/* A critical chunk that is not known.  libpng's own message would contain bytes of the file. */
static int
refuse_chunk(const uint8_t *type, vlm_err_t *err)
{
    char      name[5];
    uint32_t  i;

    if ((type[0] & 32) != 0 || memcmp(type, "PLTE", 4) == 0 || memcmp(type, "IDAT", 4) == 0) {
        return 0;
    }

    for (i = 0; i < 4; i++) {
        name[i] = (char) (type[i] > ' ' && type[i] < 0x7f ? type[i] : '?');
    }

    name[4] = '\0';

    return vlm_fail(err, VLM_EINPUT, "PNG: unknown critical chunk %s", name);
}


int
vlm_png_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    size_t          at, length;
    const uint8_t  *type;

    if (bytes < HEADER) {
        return vlm_header_cut(h, bytes, "header", err);
    }

    if (vlm_u32be(data + 8) != 13 || memcmp(data + 12, "IHDR", 4) != 0) {
        return vlm_fail(err, VLM_EINPUT, "PNG: the first chunk is not IHDR");
    }

    if (read_ihdr(h, data + 16, err) != 0) {
        return -1;
    }

    for (at = HEADER; bytes - at >= 12; at += length + 12) {
        length = vlm_u32be(data + at);
        type = data + at + 4;

        if (length > bytes - at - 12) {
            return vlm_header_cut(h, bytes, "chunks", err);
        }

        if (memcmp(type, "IEND", 4) == 0) {
            h->memory = (uint64_t) h->width * h->height * (h->alpha ? 4 : 3)
                        + (uint64_t) h->width * 3 * ROW + TABLES;
            return 0;
        }

        if (memcmp(type, "tRNS", 4) == 0) {
            h->alpha = 1;

        } else if (memcmp(type, "eXIf", 4) == 0) {
            h->orientation = vlm_exif_orientation(data + at + 8, length);

        } else if (refuse_chunk(type, err) != 0) {
            return -1;
        }
    }

    return vlm_header_cut(h, bytes, "chunks", err);
}


/* libpng's messages contain no bytes of the file but names of chunks, in letters. */
static void
on_error(png_structp png, png_const_charp text)
{
    decoder_t  *d;

    d = png_get_error_ptr(png);

    if (strstr(text, "emory") != NULL) {           /* "Out of memory", "insufficient memory" */
        (void) vlm_fail(d->err, VLM_EMEMORY, "PNG: no memory for %ux%u pixels", d->h->width,
                        d->h->height);
    }

    (void) vlm_fail(d->err, VLM_EINPUT, "PNG: damaged: %s", text);
    longjmp(png_jmpbuf(png), 1);
}


/* Faults in chunks that no pixel depends on. */
static void
on_warning(png_structp png, png_const_charp text)
{
    (void) png;
    (void) text;
}


static void
on_read(png_structp png, png_bytep to, size_t n)
{
    decoder_t  *d;

    d = png_get_io_ptr(png);

    if (n > d->bytes - d->at) {
        png_error(png, "the file ends too early");
    }

    if (png_get_io_chunk_type(png) == 0x49444154) {            /* IDAT */
        d->packed += n;
    }

    if (d->packed > d->allowed) {
        (void) vlm_fail(d->err, VLM_ELIMIT, "PNG of %ux%u pixels: more than %zu compressed bytes "
                        "for %zu bytes of rows", d->h->width, d->h->height, d->allowed, d->rows);
        longjmp(png_jmpbuf(png), 1);
    }

    memcpy(to, d->data + d->at, n);
    d->at += n;
}


/* Keeps the chunks that change pixels; text and colour profiles are skipped. */
static void
set_up(decoder_t *d)
{
    static const png_byte  ignored[] =
        "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0"
        "sRGB\0sTER\0tEXt\0tIME\0zTXt";

    png_set_read_fn(d->png, d, on_read);
    png_set_user_limits(d->png, VLM_MAX_PICTURE_SIDE, VLM_MAX_PICTURE_SIDE);
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, ignored, sizeof(ignored) / 5);
    png_set_benign_errors(d->png, 1);

#ifdef FUZZING
    png_set_crc_action(d->png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
#endif
}


/* Samples of 8 bits: RGBA if the header has found transparency, else RGB. */
static size_t
set_form(decoder_t *d)
{
    png_set_expand(d->png);
    png_set_strip_16(d->png);
    png_set_gray_to_rgb(d->png);

    if (d->h->alpha) {
        png_set_add_alpha(d->png, 255, PNG_FILLER_AFTER);      /* if no tRNS added it */
    }

    (void) png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);

    return png_get_rowbytes(d->png, d->info);
}


static void
read_rows(decoder_t *d, size_t row)
{
    int       pass, passes;
    size_t    packed_row;
    uint32_t  y;

    passes = png_get_interlace_type(d->png, d->info) == PNG_INTERLACE_NONE ? 1 : 7;
    packed_row = (size_t) d->h->width * d->bits / 8 + 2;

    for (pass = 0; pass < passes; pass++) {
        for (y = 0; y < d->h->height; y++) {
            d->allowed = 2 * (d->rows + packed_row) + SLACK;
            png_read_row(d->png, d->pixels + y * row, NULL);
            d->rows += packed_row / (passes == 1 ? 1 : 4);

            if (vlm_stopped(d->stop, d->err)) {
                longjmp(png_jmpbuf(d->png), 1);
            }
        }
    }

    d->allowed = d->packed + SLACK;
}


static int
decode(decoder_t *d)
{
    size_t  row;

    if (setjmp(png_jmpbuf(d->png)) != 0) {
        return -1;
    }

    set_up(d);
    png_read_info(d->png, d->info);

    if (png_get_image_width(d->png, d->info) != d->h->width
        || png_get_image_height(d->png, d->info) != d->h->height)
    {
        png_error(d->png, "its size is not that of its header");
    }

    d->bits = png_get_bit_depth(d->png, d->info) * png_get_channels(d->png, d->info);
    row = set_form(d);

    if (row != (size_t) d->h->width * (d->h->alpha ? 4 : 3)) {
        png_error(d->png, "its transparency is not that of its header");
    }

    d->pixels = malloc(row * d->h->height);

    if (d->pixels == NULL) {
        png_error(d->png, "no memory");
    }

    read_rows(d, row);
    png_read_end(d->png, NULL);

    return 0;
}


uint8_t *
vlm_png_decode(const vlm_header_t *h, const uint8_t *data, size_t bytes, const vlm_stop_t *stop,
               vlm_err_t *err)
{
    decoder_t  d;

    memset(&d, 0, sizeof(d));
    d.h = h;
    d.data = data;
    d.bytes = bytes;
    d.allowed = SLACK;
    d.stop = stop;
    d.err = err;

    d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
    d.info = d.png == NULL ? NULL : png_create_info_struct(d.png);

    if (d.info == NULL || decode(&d) != 0) {
        (void) vlm_fail(err, VLM_EMEMORY, "PNG: no memory for %ux%u pixels", h->width, h->height);
        free(d.pixels);
        d.pixels = NULL;
    }

    png_destroy_read_struct(&d.png, &d.info, NULL);

    return d.pixels;
}
