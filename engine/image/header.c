/*
 * Kind, size and orientation of a picture from its file, without decoding.
 *
 * The decoders behind (stb_image above all) were not written against hostile files, so what they
 * are weak at is refused here, in jpeg.c and in png.c: sizes of zero or beyond memory, files that
 * end before their pixels do, pixels of colours that do not exist.
 */

#include "image/header.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "image/bytes.h"
#include "image/gif.h"
#include "image/jpeg.h"
#include "image/png.h"
#include "image/webp.h"

#define UNIT         32                /* pixels of JPEG's largest unit, a side */
#define PIXEL_BYTES  16                /* 16-bit RGBA as it is unpacked, and as it is shown */
#define TABLES       (256u << 10)      /* bytes: of Huffman codes, palettes, a JPEG's state */


const char *
vlm_picture_kind_name(vlm_picture_kind_t kind)
{
    static const char *const  names[] = { "JPEG", "PNG", "GIF", "BMP", "WebP" };

    return (unsigned) kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}


int
vlm_header_cut(const vlm_header_t *h, size_t bytes, const char *where, vlm_err_t *err)
{
    return vlm_fail(err, VLM_EINPUT, "%s: the file ends after %zu bytes, inside its %s",
                    vlm_picture_kind_name(h->kind), bytes, where);
}


static int
check_size(const vlm_header_t *h, vlm_err_t *err)
{
    const char  *name;

    name = vlm_picture_kind_name(h->kind);

    if (h->width == 0 || h->height == 0) {
        return vlm_fail(err, VLM_EINPUT, "%s: its size is %ux%u", name, h->width, h->height);
    }

    if (h->width > VLM_MAX_PICTURE_SIDE || h->height > VLM_MAX_PICTURE_SIDE) {
        return vlm_fail(err, VLM_ELIMIT, "%s of %ux%u pixels, a side may have at most %u", name,
                        h->width, h->height, VLM_MAX_PICTURE_SIDE);
    }

    if (vlm_mul(h->width, h->height) > VLM_MAX_PICTURE_PIXELS) {
        return vlm_fail(err, VLM_ELIMIT, "%s of %ux%u pixels are %" PRIu64 ", at most %u are "
                        "decoded", name, h->width, h->height, vlm_mul(h->width, h->height),
                        VLM_MAX_PICTURE_PIXELS);
    }

    return 0;
}


/* ---- BMP ---------------------------------------------------------------------------------- */

/* The rows must be in the file: stb_image takes what is missing for black. */
static int
check_bmp_rows(const vlm_header_t *h, uint32_t bits, uint32_t at, size_t bytes, vlm_err_t *err)
{
    uint64_t  row, need;

    row = (vlm_mul(h->width, bits) + 31) / 32 * 4;
    need = vlm_add(at, vlm_mul(row, h->height));

    if (need > bytes) {
        return vlm_fail(err, VLM_EINPUT, "BMP: %ux%u at %u bits needs %" PRIu64 " bytes, the file "
                        "has %zu", h->width, h->height, bits, need, bytes);
    }

    return 0;
}


/*
 * Every index must name one of the n_colors: for others stb_image shows what lies on its stack.
 * The rows of indices begin at p and are in the file.
 */
static int
check_bmp_indices(const vlm_header_t *h, uint32_t bits, uint32_t n_colors, const uint8_t *p,
                  vlm_err_t *err)
{
    size_t    row, x;
    uint32_t  y, index;

    if (n_colors >= 1u << bits) {
        return 0;
    }

    row = ((size_t) h->width * bits + 31) / 32 * 4;

    for (y = 0; y < h->height; y++, p += row) {
        for (x = 0; x < h->width; x++) {
            index = (p[x * bits / 8] >> (8 - bits - x * bits % 8)) & ((1u << bits) - 1);

            if (index >= n_colors) {
                return vlm_fail(err, VLM_EINPUT, "BMP: a pixel has colour %u of %u", index,
                                n_colors);
            }
        }
    }

    return 0;
}


static int
read_bmp(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    int32_t   height;
    uint32_t  at, size, bits, packing;

    if (bytes < 18) {
        return vlm_header_cut(h, bytes, "header", err);
    }

    at = vlm_u32le(data + 10);
    size = vlm_u32le(data + 14);

    if (size != 40 && size != 108 && size != 124) {
        return vlm_fail(err, VLM_EINPUT, "BMP: header of %u bytes, 40, 108 and 124 are read", size);
    }

    if (bytes < 14 + size) {
        return vlm_header_cut(h, bytes, "header", err);
    }

    height = (int32_t) vlm_u32le(data + 22);       /* below zero: rows from the top */
    h->width = vlm_u32le(data + 18);
    h->height = height < 0 ? 0u - (uint32_t) height : (uint32_t) height;
    bits = vlm_u16le(data + 28);
    packing = vlm_u32le(data + 30);

    if (packing != 0 && packing != 3) {
        return vlm_fail(err, VLM_EINPUT, "BMP: compression %u, only 0 and 3 (none, bit fields) "
                        "are read", packing);
    }

    if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) {
        return vlm_fail(err, VLM_EINPUT, "BMP: no %u bits a pixel exist", bits);
    }

    if (at < 14 + size) {
        return vlm_fail(err, VLM_EINPUT, "BMP: pixels at byte %u, the header has %u", at,
                        14 + size);
    }

    if (check_size(h, err) != 0 || check_bmp_rows(h, bits, at, bytes, err) != 0) {
        return -1;
    }

    h->alpha = packing == 3 && size != 40 && vlm_u32le(data + 66) != 0;

    return bits > 8 ? 0 : check_bmp_indices(h, bits, (at - 14 - size) / 4, data + at, err);
}


/* ---- any kind ----------------------------------------------------------------------------- */

typedef int (*reader_t)(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

/* The reader for a file's first bytes, or NULL; *kind is set. */
static reader_t
find_reader(const uint8_t *p, size_t bytes, vlm_picture_kind_t *kind)
{
    if (bytes >= 3 && memcmp(p, "\xff\xd8\xff", 3) == 0) {
        *kind = VLM_JPEG;
        return vlm_jpeg_header;
    }

    if (bytes >= 8 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0) {
        *kind = VLM_PNG;
        return vlm_png_header;
    }

    if (bytes >= 6 && (memcmp(p, "GIF87a", 6) == 0 || memcmp(p, "GIF89a", 6) == 0)) {
        *kind = VLM_GIF;
        return vlm_gif_header;
    }

    if (bytes >= 12 && memcmp(p, "RIFF", 4) == 0 && memcmp(p + 8, "WEBP", 4) == 0) {
        *kind = VLM_WEBP;
        return vlm_webp_header;
    }

    if (bytes >= 2 && memcmp(p, "BM", 2) == 0) {
        *kind = VLM_BMP;
        return read_bmp;
    }

    return NULL;
}


static int
not_a_picture(const uint8_t *p, size_t bytes, vlm_err_t *err)
{
    size_t       i, n;
    char         text[3 * 8 + 1];
    static const char  digits[] = "0123456789abcdef";

    if (bytes == 0) {
        return vlm_fail(err, VLM_EINPUT, "not a picture: no bytes");
    }

    if (bytes >= 12 && memcmp(p + 4, "ftyp", 4) == 0) {
        return vlm_fail(err, VLM_EINPUT, "not a picture we read: HEIC, AVIF or a film; send JPEG, "
                        "PNG, WebP, GIF or BMP");
    }

    n = bytes < 8 ? bytes : 8;

    for (i = 0; i < n; i++) {
        text[3 * i] = digits[p[i] >> 4];
        text[3 * i + 1] = digits[p[i] & 15];
        text[3 * i + 2] = ' ';
    }

    text[3 * n - 1] = '\0';

    return vlm_fail(err, VLM_EINPUT, "not a picture we read (JPEG, PNG, WebP, GIF, BMP): first "
                    "bytes %s", text);
}


/*
 * What a decoder may hold at a time: pixels, JPEG's in whole units of up to 32 x 32; PNG's packed
 * bytes as they are gathered, in rooms of doubled size; and tables.
 */
static uint64_t
memory_of(const vlm_header_t *h, size_t bytes)
{
    uint64_t  unit, most;

    unit = h->kind == VLM_JPEG ? UNIT : 1;

    most = vlm_round(h->width, unit) * vlm_round(h->height, unit)
           * (h->pixel_bytes == 0 ? PIXEL_BYTES : h->pixel_bytes) + TABLES;

    most += h->kind == VLM_PNG ? 3 * (uint64_t) bytes : 0;

    return most < VLM_MAX_PICTURE_MEMORY ? most : VLM_MAX_PICTURE_MEMORY;
}


int
vlm_header_read(vlm_header_t *h, const void *data, size_t bytes, vlm_err_t *err)
{
    reader_t  reader;

    memset(h, 0, sizeof(*h));
    h->orientation = 1;

    if (bytes > VLM_MAX_PICTURE_FILE) {
        return vlm_fail(err, VLM_ELIMIT, "picture file of %zu bytes, at most %u are read", bytes,
                        VLM_MAX_PICTURE_FILE);
    }

    reader = find_reader(data, bytes, &h->kind);

    if (reader == NULL) {
        return not_a_picture(data, bytes, err);
    }

    if (reader(h, data, bytes, err) != 0 || check_size(h, err) != 0) {
        return -1;
    }

    if (h->frame_width == 0) {
        h->frame_width = h->width;
        h->frame_height = h->height;
    }

    h->memory = memory_of(h, bytes);

    return 0;
}
