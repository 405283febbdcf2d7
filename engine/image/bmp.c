/*
 * BMP: palettes of 1, 4 and 8 bits, and colours of 16, 24 and 32 by masks, equal to Pillow's byte
 * for byte.  Rows are uncompressed in the file, so a library would save little code.
 */

#include "image/bmp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "image/bytes.h"

#define FILE_HEAD  14                  /* bytes */
#define MASKS_AT   (FILE_HEAD + 40)    /* behind the oldest header, or within a newer one */

typedef struct {
    int             from_top;
    uint32_t        bits, n_colors;
    size_t          row;               /* bytes, padding included */
    uint32_t        mask[4];           /* of red, green, blue, alpha; 0: has none */
    const uint8_t  *palette, *rows;    /* palette: [n_colors][4], blue first */
} bmp_t;


/* The place of its colours, for which the header must have room. */
static int
read_masks(bmp_t *b, const uint8_t *data, uint32_t at, uint32_t size, vlm_err_t *err)
{
    uint32_t  i, n;

    static const uint32_t  usual[2][3] = { { 0x7c00, 0x3e0, 0x1f }, { 0xff0000, 0xff00, 0xff } };

    memcpy(b->mask, usual[b->bits != 16], sizeof(usual[0]));

    if (vlm_u32le(data + 30) == 0) {
        return 0;
    }

    if (b->bits != 16 && b->bits != 32) {
        return vlm_fail(err, VLM_EINPUT, "BMP: bit fields with %u bits a pixel, only 16 and 32 "
                        "have them", b->bits);
    }

    if (at < MASKS_AT + 12) {
        return vlm_fail(err, VLM_EINPUT, "BMP: pixels at byte %u, its bit fields end at %u", at,
                        MASKS_AT + 12);
    }

    n = size > 40 ? 4 : 3;

    for (i = 0; i < n; i++) {
        b->mask[i] = vlm_u32le(data + MASKS_AT + 4 * i);
    }

    return 0;
}


static int
read_head(bmp_t *b, vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    int32_t   height;
    uint32_t  at, size, packing;
    uint64_t  need;

    memset(b, 0, sizeof(*b));

    if (bytes < FILE_HEAD + 4) {
        return vlm_header_cut(h, bytes, "header", err);
    }

    at = vlm_u32le(data + 10);
    size = vlm_u32le(data + FILE_HEAD);

    if (size != 40 && size != 108 && size != 124) {
        return vlm_fail(err, VLM_EINPUT, "BMP: header of %u bytes, 40, 108 and 124 are supported",
                        size);
    }

    if (bytes < FILE_HEAD + size) {
        return vlm_header_cut(h, bytes, "header", err);
    }

    height = (int32_t) vlm_u32le(data + 22);       /* below zero: rows from the top */
    b->from_top = height < 0;
    b->bits = vlm_u16le(data + 28);
    packing = vlm_u32le(data + 30);
    h->width = vlm_u32le(data + 18);
    h->height = height < 0 ? 0u - (uint32_t) height : (uint32_t) height;

    if (packing != 0 && packing != 3) {
        return vlm_fail(err, VLM_EINPUT, "BMP: compression %u, only 0 and 3 (none, bit fields) "
                        "are supported", packing);
    }

    if (b->bits != 1 && b->bits != 4 && b->bits != 8 && b->bits != 16 && b->bits != 24
        && b->bits != 32)
    {
        return vlm_fail(err, VLM_EINPUT, "BMP: %u bits a pixel do not exist", b->bits);
    }

    if (at < FILE_HEAD + size) {
        return vlm_fail(err, VLM_EINPUT, "BMP: pixels at byte %u, the header has %u", at,
                        FILE_HEAD + size);
    }

    if (vlm_header_size(h, err) != 0) {
        return -1;
    }

    b->row = ((size_t) h->width * b->bits + 31) / 32 * 4;
    need = vlm_add(at, vlm_mul(b->row, h->height));

    if (need > bytes) {
        return vlm_fail(err, VLM_EINPUT, "BMP: %ux%u at %u bits needs %" PRIu64 " bytes, the file "
                        "has %zu", h->width, h->height, b->bits, need, bytes);
    }

    b->rows = data + at;
    b->palette = data + FILE_HEAD + size;
    b->n_colors = (at - FILE_HEAD - size) / 4;

    return b->bits <= 8 ? 0 : read_masks(b, data, at, size, err);
}


int
vlm_bmp_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    bmp_t  b;

    if (read_head(&b, h, data, bytes, err) != 0) {
        return -1;
    }

    h->alpha = b.mask[3] != 0;
    h->memory = (uint64_t) h->width * h->height * (h->alpha ? 4 : 3);

    return 0;
}


static void
paint_indices(uint8_t *out, const bmp_t *b, const uint8_t *row, uint32_t width)
{
    uint32_t        x, i, index;
    const uint8_t  *color;

    static const uint8_t  none[4] = { 0, 0, 0, 0 };

    for (x = 0; x < width; x++, out += 3) {
        index = row[(size_t) x * b->bits / 8] >> (8 - b->bits - (size_t) x * b->bits % 8);
        index &= (1u << b->bits) - 1;
        color = index < b->n_colors ? b->palette + 4 * index : none;

        for (i = 0; i < 3; i++) {
            out[i] = color[2 - i];
        }
    }
}


static void
paint_masks(uint8_t *out, const bmp_t *b, const uint8_t *row, uint32_t width, uint32_t channels)
{
    uint32_t  x, c, i, pixel, value, shift[4], most[4];

    for (c = 0; c < 4; c++) {
        shift[c] = b->mask[c] == 0 ? 0 : (uint32_t) __builtin_ctz(b->mask[c]);
        most[c] = b->mask[c] >> shift[c];
    }

    for (x = 0; x < width; x++, out += channels) {
        for (i = 0, pixel = 0; i < b->bits / 8; i++) {
            pixel |= (uint32_t) *row++ << (8 * i);
        }

        for (c = 0; c < channels; c++) {
            value = (pixel & b->mask[c]) >> shift[c];

            if (most[c] != 0 && most[c] != 255) {
                value = (uint32_t) ((uint64_t) value * 255 / most[c]);
            }

            out[c] = (uint8_t) value;
        }
    }
}


/* Programs that know no alpha leave zeros there. */
static void
show_if_all_clear(uint8_t *rgba, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (rgba[4 * i + 3] != 0) {
            return;
        }
    }

    for (i = 0; i < n; i++) {
        rgba[4 * i + 3] = 255;
    }
}


uint8_t *
vlm_bmp_decode(const vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    bmp_t           b;
    uint8_t        *p, *out;
    uint32_t        y, channels;
    vlm_header_t    same;
    const uint8_t  *row;

    same = *h;

    if (read_head(&b, &same, data, bytes, err) != 0) {
        return NULL;
    }

    channels = h->alpha ? 4 : 3;
    p = calloc((size_t) h->width * h->height, channels);

    if (p == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "BMP: no memory for %ux%u pixels", h->width, h->height);
        return NULL;
    }

    for (y = 0; y < h->height; y++) {
        row = b.rows + b.row * (b.from_top ? y : h->height - 1 - y);
        out = p + (size_t) y * h->width * channels;

        if (b.bits <= 8) {
            paint_indices(out, &b, row, h->width);
        } else {
            paint_masks(out, &b, row, h->width, channels);
        }
    }

    if (h->alpha) {
        show_if_all_clear(p, (size_t) h->width * h->height);
    }

    return p;
}
