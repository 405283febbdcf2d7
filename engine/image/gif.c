/*
 * GIF, the first frame only.
 *
 * giflib would replace the LZW codes alone, a third of this file: frame, colours and canvas have to
 * be known before anything is allocated.  The pixels of the frame and the bytes of the file bound
 * the work.
 */

#include "image/gif.h"

#include <stdlib.h>
#include <string.h>

#include "image/bytes.h"

#define MAX_CODES  4096                /* 12 bits */

typedef struct {
    const uint8_t  *data;              /* [bytes] the whole file */
    size_t          bytes, at;
    const uint8_t  *palette;           /* [n_colors][3] */
    uint32_t        n_colors;
    int             transparent;       /* index, or -1 */
    int             interlaced;
} gif_t;

typedef struct {                       /* bits of the raster, across its blocks of 1 to 255 bytes */
    const uint8_t  *data;
    size_t          bytes, at, left;   /* left: bytes of the block at hand */
    uint32_t        bits, n_bits;
} bits_t;

typedef struct {
    uint16_t  prefix[MAX_CODES];       /* the string without its last index */
    uint16_t  length[MAX_CODES];
    uint8_t   first[MAX_CODES], last[MAX_CODES];
} table_t;


static int
cut_off(const gif_t *g, const char *where, vlm_err_t *err)
{
    return vlm_fail(err, VLM_EINPUT, "GIF: the file ends after %zu bytes, inside its %s", g->bytes,
                    where);
}


/* A colour table of 2 << (flags & 7) entries at g->at, if flags say that there is one. */
static int
read_palette(gif_t *g, uint32_t flags, vlm_err_t *err)
{
    uint32_t  n;

    if ((flags & 0x80) == 0) {
        return 0;
    }

    n = 2u << (flags & 7);

    if (g->bytes - g->at < 3 * n) {
        return cut_off(g, "colour table", err);
    }

    g->palette = g->data + g->at;
    g->n_colors = n;
    g->at += 3 * n;

    return 0;
}


/* An extension at g->at, behind its 0x21: one of them names the transparent index. */
static int
read_extension(gif_t *g, vlm_err_t *err)
{
    int       control;
    uint32_t  length;

    if (g->bytes - g->at < 2) {
        return cut_off(g, "extensions", err);
    }

    control = g->data[g->at++] == 0xf9;

    while ((length = g->data[g->at++]) != 0) {
        if (g->bytes - g->at <= length) {          /* the next length is needed, too */
            return cut_off(g, "extensions", err);
        }

        if (control && length >= 4) {
            g->transparent = (g->data[g->at] & 1) ? g->data[g->at + 3] : -1;
        }

        g->at += length;
    }

    return 0;
}


/* The first frame's descriptor at g->at, behind its 0x2c, and the colours it uses. */
static int
read_descriptor(gif_t *g, vlm_header_t *h, vlm_err_t *err)
{
    const uint8_t  *p;

    if (g->bytes - g->at < 9) {
        return cut_off(g, "frame", err);
    }

    p = g->data + g->at;
    g->at += 9;
    h->frame_x = vlm_u16le(p);
    h->frame_y = vlm_u16le(p + 2);
    h->frame_width = vlm_u16le(p + 4);
    h->frame_height = vlm_u16le(p + 6);
    g->interlaced = (p[8] & 0x40) != 0;

    if (h->frame_width == 0 || h->frame_height == 0
        || h->frame_x + h->frame_width > h->width || h->frame_y + h->frame_height > h->height)
    {
        return vlm_fail(err, VLM_EINPUT, "GIF: frame %ux%u at %u,%u on a canvas of %ux%u",
                        h->frame_width, h->frame_height, h->frame_x, h->frame_y, h->width,
                        h->height);
    }

    if (read_palette(g, p[8], err) != 0) {
        return -1;
    }

    if (g->palette == NULL) {
        return vlm_fail(err, VLM_EINPUT, "GIF: a frame without a colour table");
    }

    h->alpha = g->transparent >= 0 || h->frame_width < h->width || h->frame_height < h->height;

    return 0;
}


/* From the file's start to the raster of its first frame. */
static int
find_frame(gif_t *g, vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    int  block;

    memset(g, 0, sizeof(*g));
    g->data = data;
    g->bytes = bytes;
    g->transparent = -1;

    if (bytes < 13) {
        return cut_off(g, "header", err);
    }

    h->width = vlm_u16le(data + 6);
    h->height = vlm_u16le(data + 8);
    g->at = 13;

    if (read_palette(g, data[10], err) != 0) {
        return -1;
    }

    while (g->at < bytes) {
        block = data[g->at++];

        if (block == 0x2c) {
            return read_descriptor(g, h, err);
        }

        if (block != 0x21) {
            return vlm_fail(err, VLM_EINPUT, "GIF: block %02x at byte %zu, before any frame",
                            block, g->at - 1);
        }

        if (read_extension(g, err) != 0) {
            return -1;
        }
    }

    return cut_off(g, "extensions", err);
}


int
vlm_gif_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    gif_t  g;

    return find_frame(&g, h, data, bytes, err);
}


/* The next code of n bits, or -1 where the raster's blocks end. */
static int
next_code(bits_t *b, uint32_t n)
{
    int  code;

    while (b->n_bits < n) {
        if (b->left == 0) {
            if (b->at >= b->bytes || b->data[b->at] == 0) {
                return -1;
            }

            b->left = b->data[b->at++];
        }

        if (b->at >= b->bytes) {
            return -1;
        }

        b->bits |= (uint32_t) b->data[b->at++] << b->n_bits;
        b->n_bits += 8;
        b->left--;
    }

    code = (int) (b->bits & ((1u << n) - 1));
    b->bits >>= n;
    b->n_bits -= n;

    return code;
}


/* Writes the string of a code to out, no more than room of it from its front; its length. */
static size_t
write_string(const table_t *t, uint32_t code, uint8_t *out, size_t room)
{
    size_t  i, length;

    length = t->length[code];

    for (i = length; i-- > 0; code = t->prefix[code]) {
        if (i < room) {
            out[i] = t->last[code];
        }
    }

    return length < room ? length : room;
}


static void
add_string(table_t *t, uint32_t code, uint32_t prefix, uint8_t last)
{
    t->prefix[code] = (uint16_t) prefix;
    t->length[code] = (uint16_t) (t->length[prefix] + 1);
    t->first[code] = t->first[prefix];
    t->last[code] = last;
}


/* Indices of n pixels out of LZW codes; returns how many there were. */
static size_t
unpack(bits_t *b, table_t *t, uint32_t root, uint8_t *out, size_t n)
{
    int       code, old;
    size_t    done;
    uint32_t  i, next, width, clear;

    clear = 1u << root;
    next = clear + 2;
    width = root + 1;
    old = -1;

    for (i = 0; i < clear; i++) {
        t->length[i] = 1;
        t->first[i] = t->last[i] = (uint8_t) i;
        t->prefix[i] = 0;
    }

    for (done = 0; done < n; /* void */ ) {
        code = next_code(b, width);

        if (code == (int) clear) {
            next = clear + 2;
            width = root + 1;
            old = -1;
            continue;
        }

        if (code < 0 || code == (int) clear + 1 || code > (int) next
            || (code == (int) next && (old < 0 || next == MAX_CODES)))
        {
            return done;
        }

        if (old >= 0 && next < MAX_CODES) {
            add_string(t, next, (uint32_t) old,
                       code == (int) next ? t->first[old] : t->first[code]);
            next++;
            width += next == 1u << width && width < 12;
        }

        done += write_string(t, (uint32_t) code, out + done, n - done);
        old = code;
    }

    return done;
}


/* The row of the frame that the n-th row of the raster is: every 8th, the 4ths between, ... */
static uint32_t
interlaced_row(uint32_t n, uint32_t height)
{
    int       pass;
    uint32_t  rows;

    static const uint32_t  first[4] = { 0, 4, 2, 1 }, step[4] = { 8, 8, 4, 2 };

    for (pass = 0; pass < 3; pass++) {
        rows = height > first[pass] ? (height - first[pass] - 1) / step[pass] + 1 : 0;

        if (n < rows) {
            break;
        }

        n -= rows;
    }

    return first[pass] + n * step[pass];
}


static void
paint(const gif_t *g, const vlm_header_t *h, const uint8_t *index, uint8_t *rgba)
{
    uint8_t  *out, colors[256][4];
    uint32_t  i, x, y, row;

    memset(colors, 0, sizeof(colors));

    for (i = 0; i < 256; i++) {
        colors[i][3] = (int) i == g->transparent ? 0 : 255;

        if (i < g->n_colors) {
            memcpy(colors[i], g->palette + 3 * i, 3);
        }
    }

    for (y = 0; y < h->frame_height; y++) {
        row = g->interlaced ? interlaced_row(y, h->frame_height) : y;
        out = rgba + ((size_t) (h->frame_y + row) * h->width + h->frame_x) * 4;

        for (x = 0; x < h->frame_width; x++) {
            memcpy(out + 4 * (size_t) x, colors[*index++], 4);
        }
    }
}


/* The frame's indices, u8 [h->frame_height][h->frame_width] in the order of the raster. */
static uint8_t *
read_raster(const gif_t *g, const vlm_header_t *h, vlm_err_t *err)
{
    size_t    n, done;
    bits_t    b;
    uint8_t  *index;
    table_t  *t;
    uint32_t  root;

    if (g->at >= g->bytes || (root = g->data[g->at]) < 2 || root > 8) {
        (void) vlm_fail(err, VLM_EINPUT, "GIF: the frame's code length is missing or not 2 to 8");
        return NULL;
    }

    memset(&b, 0, sizeof(b));
    b.data = g->data;
    b.bytes = g->bytes;
    b.at = g->at + 1;

    n = (size_t) h->frame_width * h->frame_height;
    index = malloc(n);
    t = malloc(sizeof(*t));

    if (index == NULL || t == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "GIF: no memory for %ux%u pixels", h->frame_width,
                        h->frame_height);
        goto failed;
    }

    done = unpack(&b, t, root, index, n);

    if (done != n) {
        (void) vlm_fail(err, VLM_EINPUT, "GIF: cut off or damaged after %zu of %zu pixels", done,
                        n);
        goto failed;
    }

    free(t);

    return index;

failed:

    free(t);
    free(index);

    return NULL;
}


uint8_t *
vlm_gif_decode(const vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    gif_t         g;
    uint8_t      *index, *rgba;
    vlm_header_t  same;

    same = *h;

    if (find_frame(&g, &same, data, bytes, err) != 0
        || (index = read_raster(&g, h, err)) == NULL)
    {
        return NULL;
    }

    rgba = calloc((size_t) h->width * h->height, 4);

    if (rgba == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "GIF: no memory for %ux%u pixels", h->width, h->height);

    } else {
        paint(&g, h, index, rgba);
    }

    free(index);

    return rgba;
}
