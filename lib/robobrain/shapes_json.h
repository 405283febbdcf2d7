/* The shapes of an answer as members of a JSON object. */

#ifndef VLM_SHAPES_JSON_H
#define VLM_SHAPES_JSON_H

#include "base/json_out.h"
#include "robobrain/shapes.h"

/*
 * Adds "marks": [{"type": "box" | "point" | "path", "xy": [...], "label": ...}, ...] of an
 * answer, in pixels of the picture as sent, to a hundredth: a box has its upper left and its lower
 * right corner, a path all its points in one mark, and the depths of these, if it has any, as
 * "depth".  A shape without a label has null.  Any thread; microseconds.
 */
void vlm_shapes_add_marks(vlm_json_out_t *w, const vlm_view_t *view, vlm_task_t task,
                          const char *text, size_t bytes);

/*
 * Adds "coordinates": [[...], ...], or null without any: the numbers of each shape, a depth behind
 * those of its point.  Pixels are of the picture that the model saw, as it wrote them; shares
 * become pixels of the picture as sent.  Any thread; microseconds.
 */
void vlm_shapes_add_coordinates(vlm_json_out_t *w, const vlm_view_t *view, vlm_task_t task,
                                const char *text, size_t bytes);

#endif
