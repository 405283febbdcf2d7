/* Draws the shapes of an answer over a picture's pixels. */

#ifndef VLM_DRAW_H
#define VLM_DRAW_H

#include "robobrain/draw_fill.h"
#include "robobrain/shapes.h"

/*
 * Draws shapes over a picture.
 *
 *   c                 the picture, u8 [height][width][3]; changed in place
 *   scale_x, scale_y  pixels of the picture for each pixel of the one that the model saw
 *   shapes            [n]; those off the picture or not finite are left out.  Coordinates from 0
 *                     to 1 that are not all whole are fractions of the picture
 *
 * Any thread; takes some milliseconds for a photograph.
 */
void vlm_draw_shapes(vlm_canvas_t *c, double scale_x, double scale_y, const vlm_shape_t *shapes,
                     size_t n);

#endif
