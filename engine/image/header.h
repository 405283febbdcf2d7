/*
 * The header of a picture's file, read without decoding.  All numbers that a decoder later relies
 * on have passed the limits below.
 */

#ifndef VLM_HEADER_H
#define VLM_HEADER_H

#include "vlm.h"

#define VLM_MAX_PICTURE_FILE    (64u << 20)        /* bytes; client_max_body_size is the same */
#define VLM_MAX_PICTURE_SIDE    32768u             /* pixels */
#define VLM_MAX_PICTURE_PIXELS  40000000u          /* enough for a camera of 40 megapixels */

/*
 * The most bytes that the decoding of any picture may hold at a time.  The limit allows every kind
 * at 40 megapixels except progressive JPEG in CMYK (11 bytes a pixel, up to 36 megapixels) and
 * lossless WebP with many Huffman codes, which may take 64 MiB (webp_codes.c).
 */
#define VLM_MAX_PICTURE_MEMORY  (384u << 20)

typedef enum { VLM_JPEG, VLM_PNG, VLM_GIF, VLM_BMP, VLM_WEBP } vlm_picture_kind_t;

typedef struct {
    vlm_picture_kind_t  kind;
    uint32_t            width, height;             /* as stored: orientation is not applied */
    uint32_t            orientation;               /* EXIF's, 1 to 8; 1 if the file has none */
    int                 alpha;                     /* 1: pixels may be transparent */
    uint64_t            memory;                    /* most bytes held by decoding, then turning
                                                      and resizing */
    uint32_t            frame_x, frame_y;          /* GIF, WebP: of the first frame; else 0 */
    uint32_t            frame_width, frame_height; /* of the first frame, or the whole picture */
    size_t              data_at, data_bytes;       /* WebP: the byte range for its decoder */
    size_t              pixels_at;                 /* WebP: the chunk of pixels, in this range */
} vlm_header_t;

/*
 * Reads a header.
 *
 *   data, bytes   a whole file
 *   returns       0 and *h; or -1: VLM_EINPUT none of the five kinds, or cut off, or impossible
 *                 numbers; VLM_ELIMIT a limit above, with both numbers
 *
 * The time is linear in bytes; nothing is allocated.
 */
int vlm_header_read(vlm_header_t *h, const void *data, size_t bytes, vlm_err_t *err);

/*
 * Fails with -1 and VLM_EINPUT: the file ends after bytes, inside its where.  For the readers of
 * each kind.
 */
int vlm_header_cut(const vlm_header_t *h, size_t bytes, const char *where, vlm_err_t *err);

/* 0, or -1 and VLM_EINPUT, VLM_ELIMIT: not a possible size, or one beyond a limit above. */
int vlm_header_size(const vlm_header_t *h, vlm_err_t *err);

const char *vlm_picture_kind_name(vlm_picture_kind_t kind);    /* "JPEG", ... */

#endif
