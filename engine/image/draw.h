/* Shapes over pixels: vlm_draw() without its decoder and encoder, for tests and the fuzzer. */

#ifndef VLM_DRAW_H
#define VLM_DRAW_H

#include "vlm.h"
#include "image/draw_fill.h"

/* scale_x, scale_y: canvas pixels for each pixel in the shapes' coordinates. */
void vlm_draw_shapes(vlm_canvas_t *c, double scale_x, double scale_y, const vlm_shape_t *shapes,
                     size_t n);

#endif
