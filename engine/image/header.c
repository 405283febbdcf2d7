/*
 * Kind, size and orientation of a picture from its file, without decoding.
 *
 * The decoders behind (stb_image above all) were not written against hostile files, so what they
 * are weak at is refused here: sizes of zero or beyond memory, files that end before their pixels
 * do, JPEGs whose thousand scans each cost a pass over the picture.
 */

#include "image/header.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "image/exif.h"
#include "image/gif.h"

/* Passes over a JPEG: one for each component, or a progressive script's (10 in common use). */
#define MAX_SCANS              4
#define MAX_PROGRESSIVE_SCANS  100


static uint32_t
u16be(const uint8_t *p)
{
    return (uint32_t) p[0] << 8 | p[1];
}


static uint32_t
u32be(const uint8_t *p)
{
    return u16be(p) << 16 | u16be(p + 2);
}


static uint32_t
u16le(const uint8_t *p)
{
    return (uint32_t) p[1] << 8 | p[0];
}


static uint32_t
u24le(const uint8_t *p)
{
    return (uint32_t) p[2] << 16 | u16le(p);
}


static uint32_t
u32le(const uint8_t *p)
{
    return u16le(p + 2) << 16 | u16le(p);
}


const char *
vlm_picture_kind_name(vlm_picture_kind_t kind)
{
    static const char *const  names[] = { "JPEG", "PNG", "GIF", "BMP", "WebP" };

    return (unsigned) kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}


static int
cut_off(const vlm_header_t *h, size_t bytes, const char *where, vlm_err_t *err)
{
    return vlm_fail(err, VLM_EINPUT, "%s: the file ends after %zu bytes, inside its %s",
                    vlm_picture_kind_name(h->kind), bytes, where);
}


/* ---- JPEG --------------------------------------------------------------------------------- */

/* A frame header: p[bytes] follows the segment's length. */
static int
read_jpeg_frame(vlm_header_t *h, const uint8_t *p, size_t bytes, vlm_err_t *err)
{
    if (bytes < 6) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: frame header of %zu bytes, at least 6 are needed",
                        bytes);
    }

    if (p[0] != 8) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: %u bits a sample, only 8 are read", p[0]);
    }

    if (p[5] != 1 && p[5] != 3 && p[5] != 4) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: %u components, only 1, 3 and 4 are read", p[5]);
    }

    h->height = u16be(p + 1);
    h->width = u16be(p + 3);

    return 0;
}


/* The next marker at or after *at within entropy-coded data, behind it; 0: there is none. */
static int
skip_scan(const uint8_t *data, size_t bytes, size_t *at)
{
    const uint8_t  *p, *end;

    end = data + bytes;

    for (p = data + *at; p < end; p++) {
        p = memchr(p, 0xff, (size_t) (end - p));

        if (p == NULL) {
            return 0;
        }

        while (p < end && *p == 0xff) {
            p++;
        }

        if (p == end) {
            return 0;
        }

        if (*p != 0 && (*p < 0xd0 || *p > 0xd7)) {     /* neither a stuffed FF nor a restart */
            *at = (size_t) (p - data) + 1;
            return *p;
        }
    }

    return 0;
}


/* The marker at *at outside of scans, behind it; 0: something else is there. */
static int
next_marker(const uint8_t *data, size_t bytes, size_t *at)
{
    size_t  i;

    i = *at;

    if (i >= bytes || data[i] != 0xff) {
        return 0;
    }

    while (i < bytes && data[i] == 0xff) {
        i++;
    }

    if (i == bytes) {
        return 0;
    }

    *at = i + 1;

    return data[i];
}


/*
 * Huffman tables: p[bytes] of them.  stb_image 2.27 writes as many values and lengths as the table
 * says into arrays of 256.
 */
static int
check_jpeg_tables(const uint8_t *p, size_t bytes, vlm_err_t *err)
{
    size_t    at;
    uint32_t  i, n;

    for (at = 0; at < bytes; at += 17 + n) {
        for (i = 1, n = 0; i <= 16 && at + i < bytes; i++) {
            n += p[at + i];
        }

        if (n > 256 || i <= 16 || n > bytes - at - 17) {
            return vlm_fail(err, VLM_EINPUT, "JPEG: Huffman table of %u values in a segment of "
                            "%zu bytes, at most 256 exist", n, bytes);
        }
    }

    return 0;
}


static int
is_jpeg_frame(int marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}


/* One segment with a length of its own: p[bytes].  *scans counts down what may still come. */
static int
read_jpeg_segment(vlm_header_t *h, int marker, const uint8_t *p, size_t bytes, uint32_t *scans,
                  vlm_err_t *err)
{
    if (is_jpeg_frame(marker)) {
        if (marker > 0xc2) {
            return vlm_fail(err, VLM_EINPUT, "JPEG: coding process %02X, only C0, C1 and C2 "
                            "(baseline, extended, progressive) are read", marker);
        }

        if (h->width != 0) {
            return vlm_fail(err, VLM_EINPUT, "JPEG: a second frame header");
        }

        *scans = marker == 0xc2 ? MAX_PROGRESSIVE_SCANS : MAX_SCANS;

        return read_jpeg_frame(h, p, bytes, err);
    }

    if (marker == 0xda) {
        if (h->width == 0) {
            return vlm_fail(err, VLM_EINPUT, "JPEG: a scan before the frame header");
        }

        if ((*scans)-- == 0) {
            return vlm_fail(err, VLM_ELIMIT, "JPEG: more than %d scans (%d if not progressive)",
                            MAX_PROGRESSIVE_SCANS, MAX_SCANS);
        }
    }

    if (marker == 0xc4) {
        return check_jpeg_tables(p, bytes, err);
    }

    if (marker == 0xe1 && bytes >= 6 && memcmp(p, "Exif\0\0", 6) == 0) {
        h->orientation = vlm_exif_orientation(p, bytes);
    }

    return 0;
}


/* From segment to segment up to the end of the picture; what is appended to it is not read. */
static int
read_jpeg(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    int       marker;
    size_t    at, length;
    uint32_t  scans;

    at = 2;
    scans = 0;
    marker = next_marker(data, bytes, &at);

    while (marker != 0 && marker != 0xd9) {
        if (bytes - at < 2) {
            return cut_off(h, bytes, "segments", err);
        }

        length = u16be(data + at);

        if (length < 2) {
            return vlm_fail(err, VLM_EINPUT, "JPEG: segment %02X at byte %zu has length %zu",
                            marker, at, length);
        }

        if (length > bytes - at) {
            return cut_off(h, bytes, "segments", err);
        }

        if (read_jpeg_segment(h, marker, data + at + 2, length - 2, &scans, err) != 0) {
            return -1;
        }

        at += length;
        marker = marker == 0xda ? skip_scan(data, bytes, &at) : next_marker(data, bytes, &at);
    }

    if (marker == 0) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: no marker at byte %zu of %zu: cut off or damaged",
                        at, bytes);
    }

    if (h->width == 0) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: no frame header with a size, or its size is zero");
    }

    return 0;
}


/* ---- PNG ---------------------------------------------------------------------------------- */

static int
read_png_ihdr(vlm_header_t *h, const uint8_t *p, vlm_err_t *err)
{
    static const uint8_t  depths[7] = { 1|2|4|8|16, 0, 8|16, 1|2|4|8, 8|16, 0, 8|16 };

    h->width = u32be(p);
    h->height = u32be(p + 4);

    if (p[9] > 6 || (p[8] & (p[8] - 1)) != 0 || (p[8] & depths[p[9]]) == 0) {
        return vlm_fail(err, VLM_EINPUT, "PNG: no colour type %u with %u bits exists", p[9], p[8]);
    }

    if (p[10] != 0 || p[11] != 0 || p[12] > 1) {
        return vlm_fail(err, VLM_EINPUT, "PNG: no compression %u, filter %u, interlace %u exists",
                        p[10], p[11], p[12]);
    }

    h->alpha = (p[9] & 4) != 0;

    return 0;
}


static int
read_png(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    size_t          at, length;
    const uint8_t  *type;

    if (bytes < 33) {
        return cut_off(h, bytes, "header", err);
    }

    if (u32be(data + 8) != 13 || memcmp(data + 12, "IHDR", 4) != 0) {
        return vlm_fail(err, VLM_EINPUT, "PNG: the first chunk is not IHDR");
    }

    if (read_png_ihdr(h, data + 16, err) != 0) {
        return -1;
    }

    for (at = 33; bytes - at >= 12; at += length + 12) {
        length = u32be(data + at);
        type = data + at + 4;

        if (length > bytes - at - 12) {
            return cut_off(h, bytes, "chunks", err);
        }

        if (memcmp(type, "IEND", 4) == 0) {
            return 0;
        }

        if (memcmp(type, "tRNS", 4) == 0) {
            h->alpha = 1;

        } else if (memcmp(type, "eXIf", 4) == 0) {
            h->orientation = vlm_exif_orientation(data + at + 8, length);
        }
    }

    return cut_off(h, bytes, "chunks", err);
}


/* ---- BMP ---------------------------------------------------------------------------------- */

/* The rows must be in the file: the decoder takes what is missing for black. */
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


static int
read_bmp(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    int32_t   height;
    uint32_t  at, size, bits, packing;

    if (bytes < 26) {
        return cut_off(h, bytes, "header", err);
    }

    at = u32le(data + 10);
    size = u32le(data + 14);

    if (size == 12) {
        h->width = u16le(data + 18);
        h->height = u16le(data + 20);

        return check_bmp_rows(h, u16le(data + 24), at, bytes, err);
    }

    if (size != 40 && size != 108 && size != 124) {
        return vlm_fail(err, VLM_EINPUT, "BMP: header of %u bytes, 12, 40, 108 and 124 are read",
                        size);
    }

    if (bytes < 14 + size) {
        return cut_off(h, bytes, "header", err);
    }

    height = (int32_t) u32le(data + 22);           /* below zero: rows from the top */
    h->width = u32le(data + 18);
    h->height = height < 0 ? 0u - (uint32_t) height : (uint32_t) height;
    bits = u16le(data + 28);
    packing = u32le(data + 30);

    if (packing != 0 && packing != 3) {
        return vlm_fail(err, VLM_EINPUT, "BMP: compression %u, only 0 and 3 (none, bit fields) "
                        "are read", packing);
    }

    h->alpha = packing == 3 && size != 40 && u32le(data + 66) != 0;

    return check_bmp_rows(h, bits, at, bytes, err);
}


/* ---- WebP --------------------------------------------------------------------------------- */

/* The size in a lossy or lossless bitstream, p[bytes]. */
static int
read_webp_stream(vlm_header_t *h, const uint8_t *chunk, size_t bytes, vlm_err_t *err)
{
    uint32_t        bits;
    const uint8_t  *p;

    p = chunk + 8;

    if (chunk[3] == ' ' && bytes >= 10 && memcmp(p + 3, "\x9d\x01\x2a", 3) == 0) {
        h->width = u16le(p + 6) & 0x3fff;
        h->height = u16le(p + 8) & 0x3fff;

        return 0;
    }

    if (chunk[3] == 'L' && bytes >= 5 && p[0] == 0x2f) {
        bits = u32le(p + 1);
        h->width = (bits & 0x3fff) + 1;
        h->height = (bits >> 14 & 0x3fff) + 1;
        h->alpha = (bits >> 28 & 1) != 0;

        return 0;
    }

    return vlm_fail(err, VLM_EINPUT, "WebP: damaged %.4s chunk of %zu bytes", (const char *) chunk,
                    bytes);
}


/* A frame of an animation: place, size, and behind them the chunks of a still picture. */
static int
read_webp_frame(vlm_header_t *h, const uint8_t *data, size_t at, size_t length, vlm_err_t *err)
{
    const uint8_t  *p;

    p = data + at;

    if (length < 16) {
        return vlm_fail(err, VLM_EINPUT, "WebP: frame of %zu bytes, 16 are its header", length);
    }

    h->frame_x = u24le(p) * 2;
    h->frame_y = u24le(p + 3) * 2;
    h->frame_width = u24le(p + 6) + 1;
    h->frame_height = u24le(p + 9) + 1;
    h->data_at = at + 16;
    h->data_bytes = length - 16;

    if (h->frame_x + h->frame_width > h->width || h->frame_y + h->frame_height > h->height) {
        return vlm_fail(err, VLM_EINPUT, "WebP: frame %ux%u at %u,%u on a canvas of %ux%u",
                        h->frame_width, h->frame_height, h->frame_x, h->frame_y, h->width,
                        h->height);
    }

    return 0;
}


/* The chunks of an extended file: VP8X first, then any of the others. */
static int
read_webp_extended(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    int             animated;
    size_t          at, length;
    const uint8_t  *chunk;

    if (bytes < 30) {
        return cut_off(h, bytes, "header", err);
    }

    animated = (data[20] & 0x02) != 0;
    h->alpha = animated || (data[20] & 0x10) != 0;
    h->width = u24le(data + 24) + 1;
    h->height = u24le(data + 27) + 1;

    for (at = 12; bytes - at >= 8; at += length) {
        chunk = data + at;
        length = u32le(chunk + 4);
        at += 8;

        if (length > bytes - at) {
            return cut_off(h, bytes, "chunks", err);
        }

        if (memcmp(chunk, "EXIF", 4) == 0) {
            h->orientation = vlm_exif_orientation(chunk + 8, length);

        } else if (animated && h->frame_width == 0 && memcmp(chunk, "ANMF", 4) == 0
                   && read_webp_frame(h, data, at, length, err) != 0)
        {
            return -1;
        }

        length += length < bytes - at ? (length & 1) : 0;
    }

    if (animated && h->frame_width == 0) {
        return vlm_fail(err, VLM_EINPUT, "WebP: an animation without frames");
    }

    return 0;
}


static int
read_webp(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    size_t  length;

    if (bytes < 20) {
        return cut_off(h, bytes, "header", err);
    }

    length = u32le(data + 4);

    if (length > bytes - 8) {
        return cut_off(h, bytes, "chunks", err);
    }

    bytes = length + 8;                            /* what is appended is not read */
    h->data_at = 0;
    h->data_bytes = bytes;

    if (bytes < 20) {
        return cut_off(h, bytes, "header", err);
    }

    if (memcmp(data + 12, "VP8X", 4) == 0) {
        return read_webp_extended(h, data, bytes, err);
    }

    if (memcmp(data + 12, "VP8 ", 4) != 0 && memcmp(data + 12, "VP8L", 4) != 0) {
        return vlm_fail(err, VLM_EINPUT, "WebP: the first chunk is none of VP8, VP8L, VP8X");
    }

    return read_webp_stream(h, data + 12, bytes - 20, err);
}


/* ---- any kind ----------------------------------------------------------------------------- */

typedef int (*reader_t)(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

/* The reader for a file's first bytes, or NULL; *kind is set. */
static reader_t
find_reader(const uint8_t *p, size_t bytes, vlm_picture_kind_t *kind)
{
    if (bytes >= 3 && memcmp(p, "\xff\xd8\xff", 3) == 0) {
        *kind = VLM_JPEG;
        return read_jpeg;
    }

    if (bytes >= 8 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0) {
        *kind = VLM_PNG;
        return read_png;
    }

    if (bytes >= 6 && (memcmp(p, "GIF87a", 6) == 0 || memcmp(p, "GIF89a", 6) == 0)) {
        *kind = VLM_GIF;
        return vlm_gif_header;
    }

    if (bytes >= 12 && memcmp(p, "RIFF", 4) == 0 && memcmp(p + 8, "WEBP", 4) == 0) {
        *kind = VLM_WEBP;
        return read_webp;
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

    return 0;
}
