/* Shapes over pixels: vlm_draw() without its decoder and encoder, for tests and the fuzzer. */

#ifndef VLM_DRAW_H
#define VLM_DRAW_H

#include "vlm.h"
#include "image/draw_fill.h"

/* scale_x, scale_y: the canvas's pixels for each of those that the shapes are told in. */
void vlm_draw_shapes(vlm_canvas_t *c, double scale_x, double scale_y, const vlm_shape_t *shapes,
                     size_t n);

#endif
