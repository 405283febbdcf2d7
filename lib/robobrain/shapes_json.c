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


static void
swap(double *low, double *high)
{
    double  x = *low;

    if (*low > *high) {
        *low = *high;
        *high = x;
    }
}


/* One mark, of n shapes: a box, a point, or all points of the path. */
static void
put_mark(vlm_json_out_t *w, vlm_shape_t *s, size_t n)
{
    size_t                    i, depths;
    static const char *const  types[] = { "point", "box", "path" };

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "type", types[s->kind]);
    vlm_json_add_open(w, "xy", '[');

    for (depths = 0, i = 0; i < n; i++) {
        if (s[i].kind == VLM_SHAPE_BOX) {
            swap(&s[i].x, &s[i].x2);
            swap(&s[i].y, &s[i].y2);
        }

        put_numbers(w, &s[i]);
        depths += !isnan(s[i].depth);
    }

    vlm_json_shut(w, ']');
    vlm_json_add_string(w, "label", s->label[0] != '\0' ? s->label : NULL);

    if (depths > 0) {
        vlm_json_add_open(w, "depth", '[');

        for (i = 0; i < n; i++) {
            vlm_json_put_double(w, s[i].depth);
        }

        vlm_json_shut(w, ']');
    }

    vlm_json_shut(w, '}');
}


void
vlm_shapes_add_marks(vlm_json_out_t *w, const vlm_view_t *view, vlm_task_t task, const char *text,
                     size_t bytes)
{
    size_t       i, k, n;
    vlm_shape_t  shapes[VLM_MAX_SHAPES];

    n = vlm_shapes(task, text, bytes, shapes, VLM_MAX_SHAPES);
    place(view, shapes, n);
    vlm_json_add_open(w, "marks", '[');

    for (i = 0; i < n; i = k) {
        for (k = i + 1; k < n && shapes[i].kind == VLM_SHAPE_PATH
                        && shapes[k].kind == VLM_SHAPE_PATH; k++)
        {
            /* void */
        }

        put_mark(w, &shapes[i], k - i);
    }

    vlm_json_shut(w, ']');
}
