/* The shapes that an answer points at: points, boxes and the points of a path. */

#ifndef VLM_SHAPES_H
#define VLM_SHAPES_H

#include <stdint.h>

#include "robobrain/task.h"

#define VLM_MAX_SHAPES  256            /* an answer of 768 tokens has room for fewer */

typedef enum {
    VLM_SHAPE_POINT,
    VLM_SHAPE_BOX,
    VLM_SHAPE_PATH                     /* a point of the one path, in order */
} vlm_shape_kind_t;

typedef struct {
    vlm_shape_kind_t  kind;
    double            x, y;            /* finite, but possibly off the picture */
    double            x2, y2;          /* the other corner of a box, not always below and right */
    double            depth;           /* of a path's point, as the model wrote it; NAN: none */
    char              label[64];       /* "label" of a JSON answer, whole UTF-8 characters; or "" */
} vlm_shape_t;

/* The picture that coordinates are of. */
typedef struct {
    uint32_t  width, height;           /* as sent: pixels */
    uint32_t  seen_width, seen_height; /* as the model saw it */
    uint32_t  shares;                  /* 0: the model writes pixels of what it saw; N: it writes
                                          shares of the sides, 0 to N */
} vlm_view_t;

/*
 * Finds the shapes in an answer, in any of the notations that the families write.
 *
 *   text, bytes  the answer; any bytes are allowed
 *   shapes       [max]; the first of the answer's shapes are written to it, with the coordinates
 *                that the answer has
 *   returns      how many were written
 *
 * Grounding and affordance give boxes (points, if the answer has points alone), pointing gives
 * points (the centres of boxes, if it has boxes alone), trajectory gives a path of two points or
 * more, with their depths if the answer has triples; general gives none.  Any thread; microseconds.
 */
size_t vlm_shapes(vlm_task_t task, const char *text, size_t bytes, vlm_shape_t *shapes, size_t max);

/*
 * Turns the coordinates of an answer's shapes, [n], into pixels of the picture as sent.
 * Coordinates from 0 to 1 that are not all whole are fractions of the picture in any family.
 */
void vlm_shapes_place(const vlm_view_t *view, vlm_shape_t *shapes, size_t n);

#endif
