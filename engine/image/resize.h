/*
 * The size at which the model sees a picture, and the resampling to it.  Both equal the family's
 * own processor (qwen-vl-utils over Pillow) byte for byte, so that the model sees pictures as in
 * its training.
 */

#ifndef VLM_RESIZE_H
#define VLM_RESIZE_H

#include "vlm.h"

#define VLM_MAX_ASPECT  200u           /* long side over short side; the family's limit */

/* 0, or -1 and VLM_ELIMIT: the sides differ by more than VLM_MAX_ASPECT. */
int vlm_aspect_check(uint32_t width, uint32_t height, vlm_err_t *err);

/*
 * The family's smart_resize: sides rounded to multiples of factor (half to even), the area brought
 * between min_pixels and max_pixels, and the proportions kept as far as that allows.  Unlike the
 * family's formula, the result never exceeds max_pixels, even for slivers under a tight limit.
 *
 *   width, height  1 to VLM_MAX_PICTURE_SIDE
 *   factor         pixels on a side of a merged cell: patch * merge
 *   returns        0; or -1: VLM_ELIMIT the aspect, or max_pixels below one cell
 */
int vlm_smart_resize(uint32_t width, uint32_t height, uint32_t factor, uint64_t min_pixels,
                     uint64_t max_pixels, uint32_t *out_width, uint32_t *out_height,
                     vlm_err_t *err);

/*
 * The size of each of n frames of a video: as above, by the bounds of video; or, if whole, with
 * these as bounds on the pixels of all frames, which are counted as a multiple of temporal, half to
 * even.  A size that is not within the bounds of frame is that of a still picture within them.
 */
int vlm_video_resize(uint32_t n, uint32_t temporal, int whole, const vlm_pixels_t *video,
                     const vlm_pixels_t *frame, uint32_t width, uint32_t height, uint32_t factor,
                     uint32_t *out_width, uint32_t *out_height, vlm_err_t *err);

/*
 * Pillow's Image.resize(BICUBIC) of RGB, byte for byte.
 *
 *   rgb       u8 [height][width][3]
 *   returns   u8 [out_height][out_width][3], free()d by the caller; NULL: VLM_EMEMORY
 */
uint8_t *vlm_resize(const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t out_width,
                    uint32_t out_height, vlm_err_t *err);

#endif
