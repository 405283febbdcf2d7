/* The eight orientations of EXIF. */

#ifndef VLM_ORIENT_H
#define VLM_ORIENT_H

#include "vlm.h"

/*
 * Turns a picture upright.
 *
 *   rgb          u8 [*height][*width][3], malloc()ed; freed here if another is returned, and on
 *                failure
 *   orientation  1 to 8; 5 to 8 exchange *width and *height
 *   returns      rgb itself or a new picture, or NULL: VLM_EMEMORY
 */
uint8_t *vlm_orient(uint8_t *rgb, uint32_t *width, uint32_t *height, uint32_t orientation,
                    vlm_err_t *err);

/* 1 if the orientation exchanges width and height. */
int vlm_orient_turns(uint32_t orientation);

#endif
