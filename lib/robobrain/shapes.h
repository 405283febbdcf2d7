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

/* In pixels of the picture that the model saw. */
typedef struct {
    vlm_shape_kind_t  kind;
    float             x, y;            /* finite, but possibly off the picture */
    float             x2, y2;          /* the other corner of a box, not always below and right */
    char              label[64];       /* "label" of a JSON answer, whole UTF-8 characters; or "" */
} vlm_shape_t;

/*
 * Finds the shapes in an answer, in any of the notations that the family writes.
 *
 *   text, bytes  the answer; any bytes are allowed
 *   shapes       [max]; the first of the answer's shapes are written to it
 *   returns      how many were written
 *
 * Grounding and affordance give boxes (points, if the answer has points alone), pointing gives
 * points (the centres of boxes, if it has boxes alone), trajectory gives a path of two points or
 * more; general gives none.  Any thread; microseconds.
 */
size_t vlm_shapes(vlm_task_t task, const char *text, size_t bytes, vlm_shape_t *shapes, size_t max);

#endif
