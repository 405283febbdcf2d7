/*
 * Kind, size and orientation of a picture from its file, without decoding, and the memory that its
 * decoding takes.  Each kind has a file of its own that reads the same parts as its decoder.
 */

#include "image/header.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "image/bmp.h"
#include "image/gif.h"
#include "image/jpeg.h"
#include "image/png.h"
#include "image/webp.h"

#define AFTER_BYTES  9                 /* a pixel: RGB, narrowed, and narrowed and lowered */
#define AFTER        (64u << 10)


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


int
vlm_header_size(const vlm_header_t *h, vlm_err_t *err)
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


/* ---- any kind ------------------------------------------------------------ */

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
        return vlm_bmp_header;
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
        return vlm_fail(err, VLM_EINPUT, "not a supported picture: HEIC, AVIF or a video; "
                        "send JPEG, PNG, WebP, GIF or BMP");
    }

    n = bytes < 8 ? bytes : 8;

    for (i = 0; i < n; i++) {
        text[3 * i] = digits[p[i] >> 4];
        text[3 * i + 1] = digits[p[i] & 15];
        text[3 * i + 2] = ' ';
    }

    text[3 * n - 1] = '\0';

    return vlm_fail(err, VLM_EINPUT, "not a supported picture (JPEG, PNG, WebP, GIF, BMP): first "
                    "bytes %s", text);
}


/*
 * The decoder's memory, or the memory of turning and resizing after the decoder has freed its own.
 */
static int
count_memory(vlm_header_t *h, vlm_err_t *err)
{
    uint64_t  after;

    after = vlm_mul(vlm_mul(h->width, h->height), AFTER_BYTES) + AFTER;
    h->memory = h->memory > after ? h->memory : after;

    if (h->memory > VLM_MAX_PICTURE_MEMORY) {
        return vlm_fail(err, VLM_ELIMIT, "%s of %ux%u pixels takes %" PRIu64 " MiB to decode, at "
                        "most %u are given", vlm_picture_kind_name(h->kind), h->width, h->height,
                        vlm_mib(h->memory), VLM_MAX_PICTURE_MEMORY >> 20);
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
        return vlm_fail(err, VLM_ELIMIT, "picture file of %zu bytes, at most %u are supported",
                        bytes, VLM_MAX_PICTURE_FILE);
    }

    reader = find_reader(data, bytes, &h->kind);

    if (reader == NULL) {
        return not_a_picture(data, bytes, err);
    }

    if (reader(h, data, bytes, err) != 0 || vlm_header_size(h, err) != 0) {
        return -1;
    }

    if (h->frame_width == 0) {
        h->frame_width = h->width;
        h->frame_height = h->height;
    }

    return count_memory(h, err);
}
