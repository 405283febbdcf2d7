/*
 * Anti-aliased fills.  A pixel's coverage follows from its signed distance to the shape's border,
 * which is exact for straight borders and close enough for round ones.  Coordinates are in pixels;
 * (0, 0) is the upper left corner of the first.  Any number is allowed, and parts off the canvas
 * cost nothing.
 */

#ifndef VLM_DRAW_FILL_H
#define VLM_DRAW_FILL_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint8_t  *rgb;                     /* u8 [height][width][3] */
    uint32_t  width, height;
} vlm_canvas_t;

typedef struct {
    uint8_t  r, g, b, alpha;           /* 255: opaque */
} vlm_ink_t;

typedef struct {
    double  x, y;
} vlm_spot_t;

typedef struct {
    vlm_spot_t  a, b;
} vlm_stroke_t;

void vlm_draw_disc(vlm_canvas_t *c, vlm_spot_t at, double radius, vlm_ink_t ink);
void vlm_draw_triangle(vlm_canvas_t *c, const vlm_spot_t p[3], vlm_ink_t ink);

/* The same with corners of that radius. */
void vlm_draw_round_box(vlm_canvas_t *c, vlm_spot_t from, vlm_spot_t to, double radius,
                        vlm_ink_t ink);

/* A stroke with round ends.  It takes the time of its own pixels, not of a box around it. */
void vlm_draw_line(vlm_canvas_t *c, vlm_spot_t a, vlm_spot_t b, double width, vlm_ink_t ink);

/* Fills all strokes as one shape, of at most VLM_MAX_STROKES: no overlap shows where they cross. */
#define VLM_MAX_STROKES  128
void vlm_draw_strokes(vlm_canvas_t *c, const vlm_stroke_t *strokes, size_t n, double width,
                      vlm_ink_t ink);

/*
 * Fills whole pixels: borders are rounded, so that neighbouring boxes neither overlap nor leave a
 * gap.
 */
void vlm_draw_box(vlm_canvas_t *c, vlm_spot_t from, vlm_spot_t to, vlm_ink_t ink);

/* The border of a box, width pixels to its inside and none to the outside. */
void vlm_draw_frame(vlm_canvas_t *c, vlm_spot_t from, vlm_spot_t to, double width, vlm_ink_t ink);

#endif
