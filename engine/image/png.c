/*
 * A PNG from chunk to chunk: size, transparency, orientation, and whether its palette has a colour
 * for every index.  stb_image shows what lies on its stack for an index that has none.
 */

#include "image/png.h"

#include <stdlib.h>
#include <string.h>

#include "image/bytes.h"
#include "image/exif.h"

#define HEADER   33                    /* bytes: signature and IHDR */
#define PALETTE  (256 * 3)


static int
read_ihdr(vlm_header_t *h, const uint8_t *p, vlm_err_t *err)
{
    static const uint8_t  depths[7] = { 1|2|4|8|16, 0, 8|16, 1|2|4|8, 8|16, 0, 8|16 };

    h->width = vlm_u32be(p);
    h->height = vlm_u32be(p + 4);

    if (p[9] > 6 || (p[8] & (p[8] - 1)) != 0 || (p[8] & depths[p[9]]) == 0) {
        return vlm_fail(err, VLM_EINPUT, "PNG: no colour type %u with %u bits exists", p[9], p[8]);
    }

    if (p[10] != 0 || p[11] != 0 || p[12] > 1) {
        return vlm_fail(err, VLM_EINPUT, "PNG: no compression %u, filter %u, interlace %u exists",
                        p[10], p[11], p[12]);
    }

    h->alpha = (p[9] & 4) != 0;

    /* Unpacked to two bytes a channel in a room that is doubled once, and copied out of it. */

    h->pixel_bytes = p[12] == 1 && p[8] == 16 ? 32 : 0;

    return 0;
}


/*
 * A chunk that no picture can be shown without, and that nobody knows.  The decoder would say so,
 * too, but with bytes of the file in its sentence, and in one buffer for all threads.
 */
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

    return vlm_fail(err, VLM_EINPUT, "PNG: a chunk %s is said to be critical, and not known", name);
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


/* Where the palette's chunk begins, if it has fewer colours than pixels can name; else 0. */
static size_t
find_short_palette(const uint8_t *data, size_t bytes)
{
    size_t  at, length;

    if (bytes < HEADER || data[25] != 3) {
        return 0;
    }

    for (at = HEADER; bytes - at >= 12; at += length + 12) {
        length = vlm_u32be(data + at);

        if (length > bytes - at - 12) {
            return 0;
        }

        if (memcmp(data + at + 4, "PLTE", 4) == 0) {
            return length % 3 == 0 && length / 3 < 1u << data[24] ? at : 0;
        }
    }

    return 0;
}


int
vlm_png_fill_palette(const uint8_t *data, size_t bytes, uint8_t **filled, size_t *n_filled,
                     vlm_err_t *err)
{
    size_t    at, length, end;
    uint8_t  *p;

    *filled = NULL;
    at = find_short_palette(data, bytes);

    if (at == 0) {
        return 0;
    }

    length = vlm_u32be(data + at);
    end = at + 8 + length;                         /* of its colours */
    *n_filled = bytes + PALETTE - length;
    p = malloc(*n_filled);

    if (p == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "PNG: no memory to fill a palette of %zu colours",
                        length / 3);
    }

    memcpy(p, data, end);
    p[at + 2] = PALETTE >> 8;
    p[at + 3] = PALETTE & 255;
    memset(p + end, 0, PALETTE - length);
    memcpy(p + at + 8 + PALETTE, data + end, bytes - end);
    *filled = p;

    return 0;
}
