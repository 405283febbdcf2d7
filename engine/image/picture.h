/*
 * A picture on its way from bytes to patches: the interface for the rest of the engine.  The public
 * functions are in vlm.h.
 *
 * Frames of a video that the encoder takes together are one picture, whose patches have a slice of
 * each frame.  A video is the list of its pictures, which know each other until a prompt has them.
 *
 * Patches lie in the order in which the family's vision encoder takes them (family/): merged cells
 * in that order, the merge x merge patches of a cell row-major.  So the encoder runs without
 * reordering, and features come out one per cell in the same order; cell[] maps them back to
 * row-major order.  Segments are what blocks attend in that do not attend over the whole picture.
 */

#ifndef VLM_PICTURE_H
#define VLM_PICTURE_H

#include <stdatomic.h>

#include "image/header.h"
#include "load/config.h"
#include "vlm.h"

struct vlm_picture_s {
    vlm_picture_info_t  info;
    uint32_t            grid_h, grid_w;            /* patches; merged cells are grid / merge */
    uint32_t            n_patches, n_cells;        /* P and P / merge^2 */
    uint32_t            n_segments, longest;       /* and the patches of the longest */
    uint32_t            slices;        /* 1; or the encoder's `temporal` of different frames */
    uint8_t            *pixels;        /* [P][slices][channels][patch][patch] in that order */
    uint32_t           *row, *column;  /* [P] patch coordinates, for the 2-D rotary positions */
    uint32_t           *border;        /* [n_segments + 1] first patch of each segment; last is P */
    uint32_t           *cell;          /* [n_cells] row-major cell -> its place in that order */
    uint8_t             sha256[32];    /* of the file's bytes, or of its frames' hashes */
    uint32_t            first, last;   /* frames of a video, counted from 0 */
    double              fps;           /* of that video; 0: a still picture */
    vlm_picture_t      *next;          /* the following frames of the video, owned */
    vlm_picture_t      *whole;         /* the owner of these arrays, or NULL: the picture itself */
    atomic_uint         shares;        /* of an owner: number of other pictures with its arrays */
};

/*
 * Decodes the whole picture, upright and over white: u8 [*height][*width][3], free()d by the
 * caller; or NULL.  h is vlm_header_read()'s result for the same bytes, stop is
 * vlm_picture_read_salted()'s.
 */
uint8_t *vlm_picture_pixels(const vlm_header_t *h, const void *data, size_t bytes, uint32_t *width,
                            uint32_t *height, const vlm_stop_t *stop, vlm_err_t *err);

/* vlm_picture_read() without an engine, for tests and the fuzzer. */
vlm_picture_t *vlm_picture_make(const vlm_pixel_config_t *pc, const vlm_vision_config_t *vc,
                                uint64_t max_pixels, const void *data, size_t bytes,
                                vlm_err_t *err);
/* The same for a file whose hash is known. */
vlm_picture_t *vlm_picture_make_hashed(const vlm_pixel_config_t *pc, const vlm_vision_config_t *vc,
                                       uint64_t max_pixels, const void *data, size_t bytes,
                                       const uint8_t sha256[32], const vlm_stop_t *stop,
                                       vlm_err_t *err);

/*
 * Frames [n] of a video that are encoded together, at the size that info says: all of one size as
 * sent, and n is 1 or the encoder's temporal.
 */
vlm_picture_t *vlm_picture_make_frames(const vlm_picture_info_t *info,
                                       const vlm_vision_config_t *vc, const vlm_bytes_t *frame,
                                       uint32_t n, const uint8_t sha256[32],
                                       const vlm_stop_t *stop, vlm_err_t *err);

/* vlm_picture_measure() without an engine. */
int vlm_picture_look(const vlm_pixel_config_t *pc, const vlm_vision_config_t *vc,
                     uint64_t max_pixels, const void *data, size_t bytes, vlm_picture_info_t *info,
                     vlm_err_t *err);

/*
 * Another picture with the same arrays, which are freed with the last picture that has them; or
 * NULL.
 */
vlm_picture_t *vlm_picture_share(vlm_picture_t *p);

#endif
