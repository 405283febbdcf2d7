/*
 * A JPEG from marker to marker, up to the end of its picture.
 *
 * stb_image decodes it later and is not written against hostile files: what it would write past
 * its arrays for, or spend minutes on, is refused here.  Both walk the segments by their lengths,
 * so it sees no table and no scan that was not seen here.
 */

#include "image/jpeg.h"

#include <string.h>

#include "image/bytes.h"
#include "image/exif.h"

/* Passes over a picture: one for each component, or a progressive script's (10 in common use). */
#define MAX_SCANS              4
#define MAX_PROGRESSIVE_SCANS  100


/* A frame header: p[bytes] follows the segment's length. */
static int
read_frame(vlm_header_t *h, const uint8_t *p, size_t bytes, vlm_err_t *err)
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

    h->height = vlm_u16be(p + 1);
    h->width = vlm_u16be(p + 3);

    return 0;
}


/*
 * The next marker at or after *at, which is left behind it; -1: there is none.  Bytes between two
 * segments are passed over, as every reader does; FF may be repeated.
 */
static int
next_marker(const uint8_t *data, size_t bytes, size_t *at)
{
    const uint8_t  *p, *end;

    end = data + bytes;
    p = *at < bytes ? memchr(data + *at, 0xff, bytes - *at) : NULL;

    while (p != NULL && p < end && *p == 0xff) {
        p++;
    }

    if (p == NULL || p == end) {
        return -1;
    }

    *at = (size_t) (p - data) + 1;

    return *p;
}


/* The same within entropy-coded data: FF 00 is a byte of it, D0 to D7 are its restarts. */
static int
skip_scan(const uint8_t *data, size_t bytes, size_t *at)
{
    int  marker;

    do {
        marker = next_marker(data, bytes, at);
    } while (marker == 0 || (marker >= 0xd0 && marker <= 0xd7));

    return marker;
}


/*
 * Huffman tables: p[bytes] of them.  stb_image 2.27 writes as many values and lengths as the table
 * says into arrays of 256.
 */
static int
check_tables(const uint8_t *p, size_t bytes, vlm_err_t *err)
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
is_frame(int marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}


/* One segment with a length of its own: p[bytes].  *scans counts down what may still come. */
static int
read_segment(vlm_header_t *h, int marker, const uint8_t *p, size_t bytes, uint32_t *scans,
                  vlm_err_t *err)
{
    if (is_frame(marker)) {
        if (marker > 0xc2) {
            return vlm_fail(err, VLM_EINPUT, "JPEG: coding process %02X, only C0, C1 and C2 "
                            "(baseline, extended, progressive) are read", marker);
        }

        if (h->width != 0) {
            return vlm_fail(err, VLM_EINPUT, "JPEG: a second frame header");
        }

        *scans = marker == 0xc2 ? MAX_PROGRESSIVE_SCANS : MAX_SCANS;

        return read_frame(h, p, bytes, err);
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
        return check_tables(p, bytes, err);
    }

    if (marker == 0xe1 && bytes >= 6 && memcmp(p, "Exif\0\0", 6) == 0) {
        h->orientation = vlm_exif_orientation(p, bytes);
    }

    return 0;
}


/* From segment to segment up to the end of the picture; what is appended to it is not read. */
int
vlm_jpeg_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    int       marker;
    size_t    at, length;
    uint32_t  scans;

    at = 2;
    scans = 0;
    marker = next_marker(data, bytes, &at);

    while (marker != -1 && marker != 0xd9) {
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

        if (read_segment(h, marker, data + at + 2, length - 2, &scans, err) != 0) {
            return -1;
        }

        at += length;
        marker = marker == 0xda ? skip_scan(data, bytes, &at) : next_marker(data, bytes, &at);
    }

    if (marker == -1) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: no end behind byte %zu of %zu: cut off", at, bytes);
    }

    if (h->width == 0) {
        return vlm_fail(err, VLM_EINPUT, "JPEG: no frame header with a size, or its size is zero");
    }

    return 0;
}
