/*
 * Walks a JPEG from marker to marker, up to the end of its picture, to learn how much memory
 * libjpeg will take for it, and how often it will go over its blocks.  A scan over forty megapixels
 * needs only a few bytes, so scans are counted before any is decoded.
 *
 * libjpeg walks the segments in the same way, so that it sees no frame and no scan that was not
 * counted.
 */

#include "image/jpeg.h"

#include <string.h>

#include "base/size.h"
#include "image/bytes.h"
#include "image/exif.h"

#define MAX_COMPONENTS  4
#define MAX_SAMPLING    4              /* samples of a component in a unit, across and down */

/*
 * Scans that a component may be in: one, or those of a progressive script.  Encoders in common use
 * write 2 to 6, and the standard's coefficients come in at most 13 steps.
 */
#define MAX_PASSES      16

#define BLOCK_BYTES     128            /* 64 coefficients */
#define ROW_BYTES       16             /* libjpeg's pointers to a row of blocks, and rounding */
#define STRIP           16             /* rows of samples that upsampling holds, times sampling */
#define TABLES          (128u << 10)   /* its state, with all Huffman tables */

typedef struct {
    vlm_header_t  *h;
    int            progressive, scanned;
    int            whole;                          /* 1: libjpeg keeps all coefficients */
    uint32_t       n;                              /* components */
    uint8_t        across[MAX_COMPONENTS], down[MAX_COMPONENTS];
    uint32_t       passes;                         /* of all components, still to come */
    uint64_t       blocks;
} walk_t;


/* A frame header: p[bytes] follows the segment's length. */
static int
read_frame(walk_t *w, const uint8_t *p, size_t bytes, vlm_err_t *err)
{
    uint32_t  i;

    if (bytes < 6) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: frame header of %zu bytes, at least 6 are needed",
                        bytes);
    }

    if (p[0] != 8) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: %u bits a sample, only 8 are supported", p[0]);
    }

    if (p[5] != 1 && p[5] != 3 && p[5] != 4) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: %u components, only 1, 3 and 4 are supported",
                        p[5]);
    }

    if (bytes < 6 + 3 * (size_t) p[5]) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: frame header of %zu bytes, at least %d are needed",
                        bytes, 6 + 3 * p[5]);
    }

    w->h->height = vlm_u16be(p + 1);
    w->h->width = vlm_u16be(p + 3);
    w->n = p[5];
    w->passes = w->n * (w->progressive ? MAX_PASSES : 1);

    for (i = 0; i < w->n; i++) {
        w->across[i] = p[6 + 3 * i + 1] >> 4;
        w->down[i] = p[6 + 3 * i + 1] & 15;

        if (w->across[i] < 1 || w->across[i] > MAX_SAMPLING || w->down[i] < 1
            || w->down[i] > MAX_SAMPLING)
        {
            return vlm_fail(err, VLM_EINPUT, "JPEG: component %u is sampled %ux%u, at most 4x4 "
                            "exist", i + 1, w->across[i], w->down[i]);
        }
    }

    return 0;
}


/* A scan header.  libjpeg keeps all coefficients unless the first scan has all there is. */
static int
read_scan(walk_t *w, const uint8_t *p, size_t bytes, vlm_err_t *err)
{
    if (w->n == 0) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: a scan before the frame header");
    }

    if (bytes < 1 || p[0] < 1 || p[0] > w->n) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: a scan of %u components, the frame has %u",
                        bytes < 1 ? 0 : p[0], w->n);
    }

    if (!w->scanned) {
        w->scanned = 1;
        w->whole = w->progressive || p[0] < w->n;
    }

    if (p[0] > w->passes) {
        return vlm_fail(err, VLM_ELIMIT, "JPEG: its components are in more than %u scans each",
                        w->progressive ? MAX_PASSES : 1);
    }

    w->passes -= p[0];

    return 0;
}


/* libjpeg's memory; the pixels are bounded, so that no number here comes near 64 bits. */
static void
measure(walk_t *w)
{
    uint32_t  i, across, down;
    uint64_t  columns, rows, memory, width, height;

    width = w->h->width;
    height = w->h->height;
    across = down = 1;

    for (i = 0; i < w->n; i++) {
        across = w->across[i] > across ? w->across[i] : across;
        down = w->down[i] > down ? w->down[i] : down;
    }

    memory = TABLES + width * 4 + vlm_round(width, 8 * MAX_SAMPLING) * w->n * down * STRIP;
    w->blocks = 0;

    for (i = 0; i < w->n; i++) {
        columns = (width * w->across[i] + 8 * across - 1) / (8 * across);
        rows = (height * w->down[i] + 8 * down - 1) / (8 * down);
        w->blocks += columns * rows;

        if (w->whole) {
            columns = (columns + w->across[i] - 1) / w->across[i] * w->across[i];
            rows = (rows + w->down[i] - 1) / w->down[i] * w->down[i];
            memory += rows * (columns * BLOCK_BYTES + ROW_BYTES);
        }
    }

    w->h->memory = memory + width * height * 3;
}


/*
 * The next marker at or after *at, which is left behind it; -1: there is none.  Bytes between two
 * segments are skipped, as in every reader; FF may be repeated.  FF 00 is a byte of entropy-coded
 * data, 01 and D0 to D7 (restarts) have no segment: they are skipped, too.
 */
static int
next_marker(const uint8_t *data, size_t bytes, size_t *at)
{
    const uint8_t  *p, *end;

    end = data + bytes;

    for (p = data + *at; p < end; p++) {
        p = memchr(p, 0xff, (size_t) (end - p));

        while (p != NULL && p < end && *p == 0xff) {
            p++;
        }

        if (p == NULL || p == end) {
            break;
        }

        if (*p > 1 && (*p < 0xd0 || *p > 0xd7)) {
            *at = (size_t) (p - data) + 1;
            return *p;
        }
    }

    return -1;
}


static int
is_frame(int marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}


/* One segment with a length of its own: p[bytes]. */
static int
read_segment(walk_t *w, int marker, const uint8_t *p, size_t bytes, vlm_err_t *err)
{
    if (is_frame(marker)) {
        if (marker > 0xc2) {
            return vlm_fail(err, VLM_EINPUT, "JPEG: coding process %02X, only C0, C1 and C2 "
                            "(baseline, extended, progressive) are supported", marker);
        }

        if (w->n != 0) {
            return vlm_fail(err, VLM_EINPUT, "JPEG: a second frame header");
        }

        w->progressive = marker == 0xc2;

        return read_frame(w, p, bytes, err);
    }

    if (marker == 0xda) {
        return read_scan(w, p, bytes, err);
    }

    if (marker == 0xe1 && bytes >= 6 && memcmp(p, "Exif\0\0", 6) == 0) {
        w->h->orientation = vlm_exif_orientation(p, bytes);
    }

    return 0;
}


/* From segment to segment up to the end of the picture; bytes behind that are not read. */
int
vlm_jpeg_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    int     marker;
    size_t  at, length;
    walk_t  w;

    memset(&w, 0, sizeof(w));
    w.h = h;
    at = 2;

    while ((marker = next_marker(data, bytes, &at)) != -1 && marker != 0xd9) {
        if (bytes - at < 2) {
            return vlm_header_cut(h, bytes, "segments", err);
        }

        length = vlm_u16be(data + at);

        if (length < 2) {
            return vlm_fail(err, VLM_EINPUT, "JPEG: segment %02X at byte %zu has length %zu",
                            marker, at, length);
        }

        if (length > bytes - at) {
            return vlm_header_cut(h, bytes, "segments", err);
        }

        if (read_segment(&w, marker, data + at + 2, length - 2, err) != 0) {
            return -1;
        }

        at += length;
    }

    if (marker == -1) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: no end in %zu bytes: cut off", bytes);
    }

    if (!w.scanned || h->width == 0) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: no frame header with a size, or no scan");
    }

    if (vlm_header_size(h, err) != 0) {
        return -1;
    }

    measure(&w);

    if (w.blocks > 8 * (uint64_t) bytes) {         /* each has a bit at least */
        return vlm_fail(err, VLM_EINPUT, "JPEG: %zu bytes for %ux%u pixels: cut off", bytes,
                        h->width, h->height);
    }

    return 0;
}
