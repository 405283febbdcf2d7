/*
 * Points, boxes and paths in an answer, in every form that the family writes: bracketed tuples,
 * JSON with keys and labels, XML with attributes, bare numbers.
 *
 * One walk over the text collects the pieces of one kind of shape.  There is no JSON parser,
 * because an answer may be cut off or have prose around it, and its boxes are still good.  Braces
 * and quotes only decide which label belongs to which numbers, and what a key calls them.
 */

#include <math.h>
#include <string.h>
#include <strings.h>

#include "robobrain/shapes_read.h"

#define MAX_DEPTH  16                  /* of braces; deeper ones have no labels of their own */

/* The meaning that a key or a tag gives to the numbers after it. */
typedef enum {
    BY_COUNT,                          /* two are a point, four a box, more are points */
    AS_POINTS,
    AS_BOX                             /* four numbers, or two corners */
} vlm_reading_t;

typedef struct {
    size_t    first;                   /* of the shapes that the label belongs to */
    double    v[4];                    /* "x1", "y1", "x2", "y2" */
    uint32_t  known;                   /* bit i: v[i] was there */
    char      label[64];
} vlm_scope_t;

typedef struct {
    vlm_shape_kind_t  want;            /* VLM_SHAPE_PATH: all numbers are pairs */
    int               deep;            /* or each bracket is x, y and depth; others are dropped */
    vlm_shape_t      *shapes;          /* [n] of max */
    size_t            n, max;
    vlm_reading_t     reading;
    int               label_next;      /* the next string is one */
    int               n_corners;       /* of a box given as two points: 0 or 1 */
    double            corner[2];
    uint32_t          depth;
    vlm_scope_t       scope[MAX_DEPTH];
    vlm_tag_t         tag;
    vlm_tuple_t       tuple;
} vlm_walk_t;


static void
add(vlm_walk_t *w, const double *v, const double *v2)
{
    vlm_shape_t  *s;

    if (w->n == w->max) {
        return;
    }

    s = &w->shapes[w->n++];
    memset(s, 0, sizeof(*s));

    s->kind = w->want;
    s->x = v[0];
    s->y = v[1];
    s->x2 = v2 == NULL ? 0 : v2[0];
    s->y2 = v2 == NULL ? 0 : v2[1];
    s->depth = w->deep ? v[2] : NAN;
}


/* Two points that are the corners of a box. */
static void
take_corner(vlm_walk_t *w, const double *v)
{
    if (w->n_corners == 0) {
        memcpy(w->corner, v, sizeof(w->corner));
        w->n_corners = 1;
        return;
    }

    w->n_corners = 0;

    if (w->want == VLM_SHAPE_BOX) {
        add(w, w->corner, v);
    }
}


/* Reads the numbers of one bracket by their meaning; unwanted ones are dropped. */
static void
take(vlm_walk_t *w, const double *v, uint32_t n)
{
    uint32_t  i;

    if (w->deep) {
        if (n == 3) {
            add(w, v, NULL);
        }

        return;
    }

    if (n == 0 || n % 2 != 0) {
        return;
    }

    if (w->want != VLM_SHAPE_PATH) {
        if (w->reading == AS_BOX && n == 2) {
            take_corner(w, v);
            return;
        }

        if (w->reading == AS_BOX || (w->reading == BY_COUNT && n == 4)) {
            if (w->want == VLM_SHAPE_BOX && n == 4) {
                add(w, v, v + 2);
            }

            return;
        }

        if (w->want == VLM_SHAPE_BOX) {
            return;
        }
    }

    for (i = 0; i < n; i += 2) {
        add(w, v + i, NULL);
    }
}


static void
set_reading(vlm_walk_t *w, vlm_reading_t reading)
{
    w->reading = reading;
    w->n_corners = 0;
}


static int
has(const char *name, size_t bytes, const char *part)
{
    size_t  n;

    for (n = strlen(part); bytes >= n; name++, bytes--) {
        if (strncasecmp(name, part, n) == 0) {
            return 1;
        }
    }

    return 0;
}


static vlm_reading_t
name_reading(const char *name, size_t bytes)
{
    if (has(name, bytes, "box")) {
        return AS_BOX;
    }

    if (has(name, bytes, "point") || has(name, bytes, "path") || has(name, bytes, "trajectory")) {
        return AS_POINTS;
    }

    return BY_COUNT;
}


static void
enter(vlm_walk_t *w)
{
    vlm_scope_t  *s;

    set_reading(w, BY_COUNT);
    w->label_next = 0;

    if (w->depth < MAX_DEPTH) {
        s = &w->scope[w->depth++];
        s->first = w->n;
        s->known = 0;
        s->label[0] = '\0';
    }
}


static void
leave(vlm_walk_t *w)
{
    size_t        i;
    vlm_scope_t  *s;

    set_reading(w, BY_COUNT);
    w->label_next = 0;

    if (w->depth == 0) {
        return;
    }

    s = &w->scope[--w->depth];

    if (s->known == 15 || s->known == 3) {
        take(w, s->v, s->known == 15 ? 4 : 2);
    }

    for (i = s->first; i < w->n; i++) {
        if (w->shapes[i].label[0] == '\0') {
            memcpy(w->shapes[i].label, s->label, sizeof(s->label));
        }
    }
}


/* Reads "key" : and its meaning for the value, or the value itself. */
static const char *
take_key(vlm_walk_t *w, const char *key, size_t bytes, const char *p, const char *end)
{
    int           axis;
    double        v;
    vlm_scope_t  *s;

    w->label_next = bytes == 5 && memcmp(key, "label", 5) == 0;
    set_reading(w, name_reading(key, bytes));

    axis = vlm_scan_axis(key, bytes);

    if (axis >= 0 && axis < 4 && vlm_scan_number(&v, vlm_skip_blanks(p, end), end) != NULL) {
        s = &w->scope[w->depth - 1];
        s->v[axis] = v;
        s->known |= 1u << axis;
    }

    return p;
}


/* Handles a quote between braces.  A string that is neither key nor label is searched as well. */
static const char *
take_string(vlm_walk_t *w, const char *p, const char *end)
{
    int          mark;
    size_t       n;
    const char  *last, *next;

    last = vlm_scan_string(p, end);

    if (last == NULL) {
        return p + 1;
    }

    next = vlm_skip_blanks(last + 1, end);
    mark = next < end ? vlm_scan_mark(next, end, &n) : 0;

    if (mark == ':') {
        return take_key(w, p + 1, (size_t) (last - p - 1), next + n, end);
    }

    if (w->label_next) {
        w->label_next = 0;
        vlm_scan_label(w->scope[w->depth - 1].label, p + 1, last);
        return last + 1;
    }

    return p + 1;
}


/* <point x="1" y="2">, <points>1 2, 3 4</points>, <box>(1, 2), (3, 4)</box>, <|box_start|>... */
static const char *
take_tag(vlm_walk_t *w, const char *p, const char *end)
{
    size_t       i, first;
    const char  *inside, *last;

    inside = vlm_scan_tag(&w->tag, p, end);

    if (inside == NULL) {
        return p + 1;
    }

    set_reading(w, BY_COUNT);

    if (w->tag.closes || name_reading(w->tag.name, w->tag.name_bytes) == BY_COUNT) {
        return inside;
    }

    set_reading(w, name_reading(w->tag.name, w->tag.name_bytes));
    first = w->n;
    last = inside;

    if (w->tag.places.n > 0) {
        take(w, w->tag.places.v, w->tag.places.n);

    } else {
        last = vlm_skip_blanks(vlm_scan_numbers(&w->tuple, inside, end), end);

        if (last < end && *last == '<') {
            take(w, w->tuple.v, w->tuple.n);
        }
    }

    for (i = first; w->tag.label != NULL && i < w->n; i++) {
        vlm_scan_label(w->shapes[i].label, w->tag.label, w->tag.label + w->tag.label_bytes);
    }

    return last < end && *last == '<' ? last : inside;
}


/* One step of the walk: the piece that begins at p, or one character. */
static const char *
step(vlm_walk_t *w, const char *p, const char *end)
{
    int          mark;
    size_t       n;
    const char  *last;

    mark = vlm_scan_mark(p, end, &n);

    if (mark == '(' || mark == '[') {
        last = vlm_scan_tuple(&w->tuple, p, end);

        if (last == NULL) {
            return p + n;
        }

        take(w, w->tuple.v, w->tuple.n);
        return last;
    }

    switch (*p) {

    case '{':
        enter(w);
        return p + 1;

    case '}':
        leave(w);
        return p + 1;

    case '<':
        return take_tag(w, p, end);

    case '"': case '\'':
        return w->depth > 0 ? take_string(w, p, end) : p + 1;

    case '\\':                         /* a quote within a string ends nothing */
        return w->depth > 0 && end - p >= 2 && strchr("\"'\\", p[1]) != NULL ? p + 2 : p + 1;

    default:
        return p + n;
    }
}


/* The shapes of one kind: at most max. */
static size_t
walk(vlm_shape_kind_t want, int deep, const char *text, size_t bytes, vlm_shape_t *shapes,
     size_t max)
{
    const char  *p, *end;
    vlm_walk_t   w;

    end = text + bytes;

    w.want = want;
    w.deep = deep;
    w.shapes = shapes;
    w.n = 0;
    w.max = max;
    w.label_next = 0;
    w.depth = 0;
    set_reading(&w, BY_COUNT);

    /* A text of numbers alone counts as one bracket. */

    p = vlm_skip_blanks(vlm_scan_numbers(&w.tuple, text, end), end);

    if (p == end) {
        take(&w, w.tuple.v, w.tuple.n);
        return w.n;
    }

    for (p = text; p < end; p = step(&w, p, end)) { /* void */ }

    while (w.depth > 0) {                          /* an answer that was cut off */
        leave(&w);
    }

    return w.n;
}


/* Boxes, where points were asked for. */
static void
make_points(vlm_shape_t *shapes, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        shapes[i].kind = VLM_SHAPE_POINT;
        shapes[i].x = (shapes[i].x + shapes[i].x2) / 2;
        shapes[i].y = (shapes[i].y + shapes[i].y2) / 2;
        shapes[i].x2 = 0;
        shapes[i].y2 = 0;
    }
}


size_t
vlm_shapes(vlm_task_t task, const char *text, size_t bytes, vlm_shape_t *shapes, size_t max)
{
    size_t  n;

    switch (task) {

    case VLM_GROUNDING:
    case VLM_AFFORDANCE:
        n = walk(VLM_SHAPE_BOX, 0, text, bytes, shapes, max);
        return n > 0 ? n : walk(VLM_SHAPE_POINT, 0, text, bytes, shapes, max);

    case VLM_POINTING:
        n = walk(VLM_SHAPE_POINT, 0, text, bytes, shapes, max);

        if (n == 0) {
            n = walk(VLM_SHAPE_BOX, 0, text, bytes, shapes, max);
            make_points(shapes, n);
        }

        return n;

    case VLM_TRAJECTORY:
        n = walk(VLM_SHAPE_PATH, 1, text, bytes, shapes, max);
        n = n >= 2 ? n : walk(VLM_SHAPE_PATH, 0, text, bytes, shapes, max);
        return n >= 2 ? n : 0;

    default:
        return 0;
    }
}


/* Coordinates from 0 to 1 that are not all whole are fractions of the picture. */
static int
are_fractions(const vlm_shape_t *shapes, size_t n)
{
    int     i, fraction;
    size_t  at;

    for (fraction = 0, at = 0; at < n; at++) {
        const double  v[] = { shapes[at].x, shapes[at].y, shapes[at].x2, shapes[at].y2 };

        for (i = 0; i < (shapes[at].kind == VLM_SHAPE_BOX ? 4 : 2); i++) {
            if (!(v[i] >= 0 && v[i] <= 1)) {
                return 0;
            }

            fraction |= v[i] > 0 && v[i] < 1;
        }
    }

    return fraction;
}


void
vlm_shapes_place(const vlm_view_t *view, vlm_shape_t *shapes, size_t n)
{
    size_t  i;
    double  x, y;

    x = view->width;
    y = view->height;

    if (!are_fractions(shapes, n)) {
        x /= view->shares ? view->shares : fmax(1, view->seen_width);
        y /= view->shares ? view->shares : fmax(1, view->seen_height);
    }

    for (i = 0; i < n; i++) {
        shapes[i].x *= x;
        shapes[i].y *= y;
        shapes[i].x2 *= x;
        shapes[i].y2 *= y;
    }
}
