/* Patches of a resized picture in window order: see picture.h. */

#ifndef VLM_PATCH_H
#define VLM_PATCH_H

#include "image/picture.h"
#include "vlm.h"

/*
 * Computes all of a picture that follows from its size alone: grid, counts, row, column, border and
 * cell.  Sides are multiples of patch * merge.  -1: VLM_EMEMORY; p owns the arrays allocated so
 * far.
 */
int vlm_patch_layout(vlm_picture_t *p, uint32_t width, uint32_t height,
                     const vlm_vision_config_t *vc, vlm_err_t *err);

/* Fills p->pixels from rgb, u8 [height][width][3], after vlm_patch_layout(). */
int vlm_patch_cut(vlm_picture_t *p, const uint8_t *rgb, const vlm_vision_config_t *vc,
                  vlm_err_t *err);

#endif
