/* The shapes of an answer as members of a JSON object. */

#include "robobrain/shapes_json.h"

#include <math.h>


/* The numbers of a shape, within brackets that are open. */
static void
put_numbers(vlm_json_out_t *w, const vlm_shape_t *s)
{
    vlm_json_put_double(w, s->x);
    vlm_json_put_double(w, s->y);

    if (s->kind == VLM_SHAPE_BOX) {
        vlm_json_put_double(w, s->x2);
        vlm_json_put_double(w, s->y2);
    }
}


/* Places shapes, to a hundredth of a pixel. */
static void
place(const vlm_view_t *view, vlm_shape_t *shapes, size_t n)
{
    size_t  i;

    vlm_shapes_place(view, shapes, n);

    for (i = 0; i < n; i++) {
        shapes[i].x = round(shapes[i].x * 100) / 100;
        shapes[i].y = round(shapes[i].y * 100) / 100;
        shapes[i].x2 = round(shapes[i].x2 * 100) / 100;
        shapes[i].y2 = round(shapes[i].y2 * 100) / 100;
    }
}


void
vlm_shapes_add(vlm_json_out_t *w, const vlm_view_t *view, vlm_task_t task, const char *text,
               size_t bytes)
{
    size_t                    i, n;
    vlm_shape_t               shapes[VLM_MAX_SHAPES];
    static const char *const  kinds[] = { "point", "box", "path" };

    n = vlm_shapes(task, text, bytes, shapes, VLM_MAX_SHAPES);
    place(view, shapes, n);
    vlm_json_add_open(w, "shapes", '[');

    for (i = 0; i < n; i++) {
        vlm_json_open(w, '{');
        vlm_json_add_open(w, "at", '[');
        put_numbers(w, &shapes[i]);
        vlm_json_shut(w, ']');

        if (!isnan(shapes[i].depth)) {
            vlm_json_add_double(w, "depth", shapes[i].depth);
        }

        vlm_json_add_string(w, "kind", kinds[shapes[i].kind]);

        if (shapes[i].label[0] != '\0') {
            vlm_json_add_string(w, "label", shapes[i].label);
        }

        vlm_json_shut(w, '}');
    }

    vlm_json_shut(w, ']');
}


void
vlm_shapes_add_coordinates(vlm_json_out_t *w, const vlm_view_t *view, vlm_task_t task,
                           const char *text, size_t bytes)
{
    size_t       i, n;
    vlm_shape_t  shapes[VLM_MAX_SHAPES];

    n = vlm_shapes(task, text, bytes, shapes, VLM_MAX_SHAPES);

    if (n == 0) {
        vlm_json_add_string(w, "coordinates", NULL);
        return;
    }

    if (view->shares) {
        place(view, shapes, n);
    }

    vlm_json_add_open(w, "coordinates", '[');

    for (i = 0; i < n; i++) {
        vlm_json_open(w, '[');
        put_numbers(w, &shapes[i]);

        if (!isnan(shapes[i].depth)) {
            vlm_json_put_double(w, shapes[i].depth);
        }

        vlm_json_shut(w, ']');
    }

    vlm_json_shut(w, ']');
}
