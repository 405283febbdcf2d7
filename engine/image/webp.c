/*
 * WebP through libwebp.  A frame of an animation is a still picture without its container, which
 * the decoder accepts; so the first frame needs no second library.
 */

#include "image/webp.h"

#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>

#include "base/stop.h"
#include "image/bytes.h"
#include "image/exif.h"
#include "image/webp_codes.h"

#define ROWS       (64 * 4)            /* bytes for a column: the rows that libwebp works on */
#define STATE      (512u << 10)        /* its own, with the codes of a lossy stream */
#define PIECES     64                  /* of a file, between two questions whether to stop */
#define PIECE      4096                /* bytes, at least */


/* The size in a lossy or lossless bitstream, p[bytes]. */
static int
read_stream(vlm_header_t *h, const uint8_t *chunk, size_t bytes, vlm_err_t *err)
{
    uint32_t        bits;
    const uint8_t  *p;

    p = chunk + 8;

    if (chunk[3] == ' ' && bytes >= 10 && memcmp(p + 3, "\x9d\x01\x2a", 3) == 0) {
        h->width = vlm_u16le(p + 6) & 0x3fff;
        h->height = vlm_u16le(p + 8) & 0x3fff;

        return 0;
    }

    if (chunk[3] == 'L' && bytes >= 5 && p[0] == 0x2f) {
        bits = vlm_u32le(p + 1);
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
read_frame(vlm_header_t *h, const uint8_t *data, size_t at, size_t length, vlm_err_t *err)
{
    const uint8_t  *p;

    p = data + at;

    if (length < 16) {
        return vlm_fail(err, VLM_EINPUT, "WebP: frame of %zu bytes, 16 are its header", length);
    }

    h->frame_x = vlm_u24le(p) * 2;
    h->frame_y = vlm_u24le(p + 3) * 2;
    h->frame_width = vlm_u24le(p + 6) + 1;
    h->frame_height = vlm_u24le(p + 9) + 1;
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
read_extended(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    int             animated;
    size_t          at, length;
    const uint8_t  *chunk;

    if (bytes < 30) {
        return vlm_header_cut(h, bytes, "header", err);
    }

    animated = (data[20] & 0x02) != 0;
    h->alpha = animated || (data[20] & 0x10) != 0;
    h->width = vlm_u24le(data + 24) + 1;
    h->height = vlm_u24le(data + 27) + 1;

    for (at = 12; bytes - at >= 8; at += length) {
        chunk = data + at;
        length = vlm_u32le(chunk + 4);
        at += 8;

        if (length > bytes - at) {
            return vlm_header_cut(h, bytes, "chunks", err);
        }

        if (memcmp(chunk, "EXIF", 4) == 0) {
            h->orientation = vlm_exif_orientation(chunk + 8, length);

        } else if (animated && h->frame_width == 0 && memcmp(chunk, "ANMF", 4) == 0
                   && read_frame(h, data, at, length, err) != 0)
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


/*
 * libwebp's memory besides the output pixels: for the chunks in p[bytes], up to the first with
 * pixels; later ones are ignored.
 */
static int
count_memory(vlm_header_t *h, const uint8_t *p, size_t bytes, vlm_err_t *err)
{
    int       lossless;
    size_t    at, length;
    uint64_t  codes, pixels;

    pixels = (uint64_t) h->frame_width * h->frame_height;
    h->memory = (uint64_t) h->width * h->height * (h->alpha ? 4 : 3)
                + (uint64_t) h->frame_width * ROWS + STATE;

    for (at = 0; bytes - at >= 8; at += length) {
        length = vlm_u32le(p + at + 4);
        at += 8;

        if (length > bytes - at) {
            return vlm_header_cut(h, bytes, "chunks", err);
        }

        lossless = memcmp(p + at - 8, "VP8L", 4) == 0;

        /* Behind a byte that says how transparency is coded, or five with the size of pixels. */

        if ((lossless && length > 5)
            || (memcmp(p + at - 8, "ALPH", 4) == 0 && length > 1 && (p[at] & 3) == 1))
        {
            if (vlm_webp_codes(p + at + (lossless ? 5 : 1), length - (lossless ? 5 : 1),
                               h->frame_width, h->frame_height, &codes, err) != 0)
            {
                return -1;
            }

            h->memory += codes + pixels * 4;
        }

        if (memcmp(p + at - 8, "ALPH", 4) == 0) {
            h->memory += pixels * 2;               /* it has the plane twice */
        }

        if (lossless || memcmp(p + at - 8, "VP8 ", 4) == 0) {
            h->pixels_at = at;
            break;
        }

        length += length < bytes - at ? (length & 1) : 0;
    }

    return 0;
}


static int
read_chunks(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    if (memcmp(data + 12, "VP8X", 4) == 0) {
        return read_extended(h, data, bytes, err);
    }

    if (memcmp(data + 12, "VP8 ", 4) != 0 && memcmp(data + 12, "VP8L", 4) != 0) {
        return vlm_fail(err, VLM_EINPUT, "WebP: the first chunk is not VP8, VP8L or VP8X");
    }

    return read_stream(h, data + 12, bytes - 20, err);
}


int
vlm_webp_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    size_t  at, length;

    if (bytes < 20) {
        return vlm_header_cut(h, bytes, "header", err);
    }

    length = vlm_u32le(data + 4);

    if (length > bytes - 8) {
        return vlm_header_cut(h, bytes, "chunks", err);
    }

    bytes = length + 8;                            /* bytes behind the file are not read */
    h->data_at = 0;
    h->data_bytes = bytes;

    if (bytes < 20) {
        return vlm_header_cut(h, bytes, "header", err);
    }

    if (read_chunks(h, data, bytes, err) != 0 || vlm_header_size(h, err) != 0) {
        return -1;
    }

    if (h->frame_width == 0) {
        h->frame_width = h->width;
        h->frame_height = h->height;
    }

    at = h->data_at == 0 ? 12 : h->data_at;        /* past RIFF, or past a frame's header */

    if (count_memory(h, data + at, h->data_at + h->data_bytes - at, err) != 0) {
        return -1;
    }

    h->pixels_at += at - h->data_at;

    return 0;
}


/* Checks that the decoder's header agrees with our own reading of it. */
static int
check_features(const vlm_header_t *h, const uint8_t *p, size_t bytes, vlm_err_t *err)
{
    VP8StatusCode          status;
    WebPBitstreamFeatures  f;

    status = WebPGetFeatures(p, bytes, &f);

    if (status != VP8_STATUS_OK) {
        return vlm_fail(err, VLM_EINPUT, "WebP: damaged header (libwebp status %d)", status);
    }

    if ((uint32_t) f.width != h->frame_width || (uint32_t) f.height != h->frame_height) {
        return vlm_fail(err, VLM_EINPUT, "WebP: its header says %ux%u, its pixels %dx%d",
                        h->frame_width, h->frame_height, f.width, f.height);
    }

    return 0;
}


/*
 * Decodes p[bytes] in pieces, so that the work can be stopped between two of them.  libwebp begins
 * with the chunk of pixels, and up to the first row it reads its tables again with each piece: so
 * there each piece is as long as all pixels' bytes before.
 */
static VP8StatusCode
decode_pieces(WebPDecoderConfig *config, const uint8_t *p, size_t bytes, size_t pixels_at,
              const vlm_stop_t *stop, vlm_err_t *err)
{
    int            rows;
    size_t         have, piece;
    WebPIDecoder  *d;
    VP8StatusCode  status;

    d = WebPIDecode(NULL, 0, config);
    if (d == NULL) {
        return VP8_STATUS_OUT_OF_MEMORY;
    }

    have = pixels_at;
    piece = (bytes - have) / PIECES;
    piece = piece < PIECE ? PIECE : piece;

    do {
        rows = 0;
        (void) WebPIDecGetRGB(d, &rows, NULL, NULL, NULL);

        have += rows == 0 && have - pixels_at > piece ? have - pixels_at : piece;
        have = have < bytes ? have : bytes;

        status = vlm_stopped(stop, err) ? VP8_STATUS_USER_ABORT : WebPIUpdate(d, p, have);

    } while (status == VP8_STATUS_SUSPENDED && have < bytes);

    WebPIDelete(d);

    return status;
}


uint8_t *
vlm_webp_decode(const vlm_header_t *h, const uint8_t *data, size_t bytes, const vlm_stop_t *stop,
                vlm_err_t *err)
{
    size_t              channels, stride, size, at;
    uint8_t            *out;
    const uint8_t      *p;
    VP8StatusCode       status;
    WebPDecoderConfig   config;

    if (h->data_at > bytes || h->data_bytes > bytes - h->data_at) {
        (void) vlm_fail(err, VLM_EINPUT, "WebP: cut off after %zu bytes", bytes);
        return NULL;
    }

    p = data + h->data_at;

    if (check_features(h, p, h->data_bytes, err) != 0) {
        return NULL;
    }

    channels = h->alpha ? 4 : 3;
    stride = h->width * channels;
    size = stride * h->height;
    at = h->frame_y * stride + h->frame_x * channels;
    out = calloc(size, 1);
    status = VP8_STATUS_OUT_OF_MEMORY;

    if (out != NULL && WebPInitDecoderConfig(&config)) {
        config.output.colorspace = h->alpha ? MODE_RGBA : MODE_RGB;
        config.output.is_external_memory = 1;
        config.output.u.RGBA.rgba = out + at;
        config.output.u.RGBA.stride = (int) stride;
        config.output.u.RGBA.size = size - at;

        status = decode_pieces(&config, p, h->data_bytes, h->pixels_at, stop, err);
    }

    if (status == VP8_STATUS_OK) {
        return out;
    }

    free(out);

    if (status == VP8_STATUS_OUT_OF_MEMORY) {
        (void) vlm_fail(err, VLM_EMEMORY, "WebP: no memory for %ux%u pixels", h->width, h->height);
    } else {
        (void) vlm_fail(err, VLM_EINPUT, "WebP: damaged or cut off: %zu bytes for %ux%u pixels",
                        h->data_bytes, h->frame_width, h->frame_height);
    }

    return NULL;
}
