/* The shapes of an answer as members of a JSON object. */

#ifndef VLM_SHAPES_JSON_H
#define VLM_SHAPES_JSON_H

#include "base/json_out.h"
#include "robobrain/shapes.h"

/*
 * Adds "shapes": [{"at": [...], "kind": ..., "label": ...}, ...] of an answer, in pixels of the
 * picture as sent, to a hundredth.  A path's point with a depth has "depth".  Any thread;
 * microseconds.
 */
void vlm_shapes_add(vlm_json_out_t *w, const vlm_view_t *view, vlm_task_t task, const char *text,
                    size_t bytes);

/*
 * Adds "coordinates": [[...], ...], or null without any: the numbers of each shape, a depth behind
 * those of its point.  Pixels are of the picture that the model saw, as it wrote them; shares
 * become pixels of the picture as sent.  Any thread; microseconds.
 */
void vlm_shapes_add_coordinates(vlm_json_out_t *w, const vlm_view_t *view, vlm_task_t task,
                                const char *text, size_t bytes);

#endif
