/* Draws the shapes of an answer over a picture's pixels. */

#ifndef VLM_DRAW_H
#define VLM_DRAW_H

#include "robobrain/draw_fill.h"
#include "robobrain/shapes.h"

/*
 * Draws shapes over a picture.
 *
 *   c       the picture, u8 [height][width][3]; changed in place
 *   shapes  [n] in pixels of it; those off the picture or not finite are left out
 *
 * Any thread; takes some milliseconds for a photograph.
 */
void vlm_draw_shapes(vlm_canvas_t *c, const vlm_shape_t *shapes, size_t n);

#endif
