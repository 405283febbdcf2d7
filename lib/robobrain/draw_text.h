/* Printable ASCII as strokes, at any size. */

#ifndef VLM_DRAW_TEXT_H
#define VLM_DRAW_TEXT_H

#include "robobrain/draw_fill.h"

/* The width in pixels, for capitals `size` pixels high; -1: the font lacks a character. */
double vlm_text_width(const char *text, size_t n, double size);

/* at: the upper left corner of a capital; descenders go below at.y + size. */
void vlm_text_draw(vlm_canvas_t *c, const char *text, size_t n, vlm_spot_t at, double size,
                   vlm_ink_t ink);

#endif
