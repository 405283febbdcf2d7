/*
 * Draws answers over the client's picture.  Points are numbered red discs, boxes are green with a
 * tag, a path is orange from a green disc to an arrow's tip.  Every shape has a white or dark edge,
 * so that it is visible on any picture, and a size in units that grow with the picture.
 */

#include "robobrain/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "robobrain/draw_text.h"

#define MAX_AWAY  1e7                  /* pixels; a canvas has 32768 on a side */
#define MAX_TAG   sizeof(((vlm_shape_t *) 0)->label)

static const vlm_ink_t  white = { 255, 255, 255, 255 };
static const vlm_ink_t  red = { 226, 28, 44, 255 };
static const vlm_ink_t  green = { 30, 215, 96, 255 };
static const vlm_ink_t  green_light = { 30, 215, 96, 38 };
static const vlm_ink_t  orange = { 255, 140, 0, 255 };
static const vlm_ink_t  dark = { 6, 36, 18, 255 };
static const vlm_ink_t  shadow = { 0, 0, 0, 90 };

typedef struct {
    vlm_canvas_t       *c;
    const vlm_shape_t  *shapes;        /* [n] */
    size_t              n;
    double              unit;          /* pixels */
} vlm_pen_t;


/*
 * The place of a shape's first or second point on the canvas.  0: it has none.  A point so far away
 * that a double would lose the pixels is brought nearer.
 */
static int
place(double x, double y, vlm_spot_t *at)
{
    at->x = fmax(-MAX_AWAY, fmin(MAX_AWAY, x));
    at->y = fmax(-MAX_AWAY, fmin(MAX_AWAY, y));

    return isfinite(x) && isfinite(y);
}


/* ---- points -------------------------------------------------------------- */

static void
draw_point(const vlm_pen_t *pen, vlm_spot_t at, size_t number)
{
    int     n;
    char    text[24];
    double  size, width, u;

    u = pen->unit;
    vlm_draw_disc(pen->c, at, 5.4 * u, shadow);
    vlm_draw_disc(pen->c, at, 5 * u, white);
    vlm_draw_disc(pen->c, at, 4.2 * u, red);

    n = snprintf(text, sizeof(text), "%zu", number);
    size = 4.8 * u;
    width = vlm_text_width(text, (size_t) n, size);

    if (width > 6 * u) {
        size *= 6 * u / width;
        width = 6 * u;
    }

    vlm_text_draw(pen->c, text, (size_t) n, (vlm_spot_t) { at.x - width / 2, at.y - size / 2 },
                  size, white);
}


static void
draw_points(const vlm_pen_t *pen)
{
    size_t      i, number;
    vlm_spot_t  at;

    for (number = 0, i = 0; i < pen->n; i++) {
        if (pen->shapes[i].kind != VLM_SHAPE_POINT) {
            continue;
        }

        number++;

        if (place(pen->shapes[i].x, pen->shapes[i].y, &at)) {
            draw_point(pen, at, number);
        }
    }
}


/* ---- boxes --------------------------------------------------------------- */

/* The part of a box that is on the canvas.  0: none is. */
static int
place_box(const vlm_pen_t *pen, const vlm_shape_t *s, vlm_spot_t *from, vlm_spot_t *to)
{
    vlm_spot_t  a, b;

    if (!place(s->x, s->y, &a) || !place(s->x2, s->y2, &b)) {
        return 0;
    }

    *from = (vlm_spot_t) { fmin(a.x, b.x), fmin(a.y, b.y) };
    *to = (vlm_spot_t) { fmax(a.x, b.x), fmax(a.y, b.y) };

    return from->x < pen->c->width && from->y < pen->c->height && to->x > 0 && to->y > 0;
}


static void
draw_box(const vlm_pen_t *pen, vlm_spot_t from, vlm_spot_t to)
{
    double  edge, width;

    width = fmax(2, round(1.4 * pen->unit));
    edge = fmax(1, round(0.4 * pen->unit));

    /* A frame lies on its box's border: half of it to each side.  Then a shadow around it. */

    from = (vlm_spot_t) { round(from.x - width / 2), round(from.y - width / 2) };
    to = (vlm_spot_t) { round(to.x + width / 2), round(to.y + width / 2) };

    vlm_draw_box(pen->c, from, to, green_light);
    vlm_draw_frame(pen->c, (vlm_spot_t) { from.x - edge, from.y - edge },
                   (vlm_spot_t) { to.x + edge, to.y + edge }, edge, shadow);
    vlm_draw_frame(pen->c, from, to, width, green);
}


/* The text of a tag: the label, or a number if the font lacks it; shortened to a width. */
static size_t
tag_text(char text[MAX_TAG + 3], const vlm_shape_t *s, size_t number, int numbered, double size,
         double width)
{
    size_t  n, kept;

    n = strnlen(s->label, sizeof(s->label) - 1);
    memcpy(text, s->label, n);

    if (n == 0 || vlm_text_width(text, n, size) < 0) {
        n = numbered || n > 0 ? (size_t) snprintf(text, MAX_TAG, "%zu", number) : 0;
    }

    for (kept = n; n > 0 && vlm_text_width(text, n, size) > width; n = kept + 3) {
        if (kept == 0) {
            return 0;
        }

        for (kept--; kept > 0 && text[kept - 1] == ' '; kept--) { /* void */ }

        memcpy(text + kept, "...", 3);
    }

    return n;
}


/*
 * The tag is above the box if there is room, else at its upper edge, inside; never beyond the
 * sides.
 */
static void
draw_tag(const vlm_pen_t *pen, const vlm_shape_t *s, vlm_spot_t from, size_t number, int numbered)
{
    char        text[MAX_TAG + 3];
    size_t      n;
    double      u, size, pad, width, height;
    vlm_spot_t  to;

    u = pen->unit;
    size = 4.6 * u;
    pad = 2 * u;
    height = round(size + 2 * pad);

    if (3 * height > pen->c->height) {
        return;                                    /* it would hide the picture */
    }

    n = tag_text(text, s, number, numbered, size, pen->c->width - 2 * pad);

    if (n == 0) {
        return;
    }

    width = fmax(height, round(vlm_text_width(text, n, size) + 2 * pad));

    from.x = fmax(0, fmin(round(from.x - 0.7 * u), pen->c->width - width));
    from.y = from.y - height < 0 ? fmax(0, round(from.y)) : round(from.y - height);
    to = (vlm_spot_t) { from.x + width, from.y + height };

    vlm_draw_round_box(pen->c, from, to, u, green);
    vlm_text_draw(pen->c, text, n,
                  (vlm_spot_t) { (from.x + to.x - vlm_text_width(text, n, size)) / 2,
                                 from.y + (height - size) / 2 }, size, dark);
}


/* Tags after all boxes, so that no light fill lies over one. */
static void
draw_boxes(const vlm_pen_t *pen)
{
    size_t      i, number, n_boxes;
    vlm_spot_t  from, to;

    for (n_boxes = 0, i = 0; i < pen->n; i++) {
        if (pen->shapes[i].kind == VLM_SHAPE_BOX) {
            n_boxes++;

            if (place_box(pen, &pen->shapes[i], &from, &to)) {
                draw_box(pen, from, to);
            }
        }
    }

    for (number = 0, i = 0; i < pen->n; i++) {
        if (pen->shapes[i].kind == VLM_SHAPE_BOX) {
            number++;

            if (place_box(pen, &pen->shapes[i], &from, &to)) {
                draw_tag(pen, &pen->shapes[i], from, number, n_boxes > 1);
            }
        }
    }
}


/* ---- the path ------------------------------------------------------------ */

/*
 * The end of the path makes room for the arrow: points nearer to the tip than the arrow is long are
 * left out, and the line ends inside the arrow, at *neck.  Returns how many points stay; 0: no
 * arrow.
 */
static size_t
make_room(const vlm_pen_t *pen, const vlm_spot_t *p, size_t n, vlm_spot_t arrow[3],
          vlm_spot_t *neck)
{
    double  dx, dy, far, length;
    size_t  kept;

    for (kept = n - 1; kept > 0; kept--) {
        dx = p[n - 1].x - p[kept - 1].x;
        dy = p[n - 1].y - p[kept - 1].y;
        far = hypot(dx, dy);

        if (far >= 7 * pen->unit || kept == 1) {
            break;
        }
    }

    if (kept == 0 || far < pen->unit) {
        return 0;
    }

    length = fmin(7 * pen->unit, far);
    dx *= length / far;
    dy *= length / far;

    arrow[0] = p[n - 1];
    arrow[1] = (vlm_spot_t) { arrow[0].x - dx - dy * 0.5, arrow[0].y - dy + dx * 0.5 };
    arrow[2] = (vlm_spot_t) { arrow[0].x - dx + dy * 0.5, arrow[0].y - dy - dx * 0.5 };
    *neck = (vlm_spot_t) { arrow[0].x - dx * 0.6, arrow[0].y - dy * 0.6 };

    return kept;
}


/* The same triangle with its sides moved outwards. */
static void
widen(const vlm_spot_t p[3], double by, vlm_spot_t out[3])
{
    int         i;
    double      a, b, c, sum;
    vlm_spot_t  middle;

    a = hypot(p[1].x - p[2].x, p[1].y - p[2].y);
    b = hypot(p[2].x - p[0].x, p[2].y - p[0].y);
    c = hypot(p[0].x - p[1].x, p[0].y - p[1].y);
    sum = a + b + c;

    /* From the middle of the inscribed circle, whose radius is twice the area over the sum. */

    middle.x = (a * p[0].x + b * p[1].x + c * p[2].x) / sum;
    middle.y = (a * p[0].y + b * p[1].y + c * p[2].y) / sum;
    by = 1 + by * sum / fabs((p[1].x - p[0].x) * (p[2].y - p[0].y)
                             - (p[2].x - p[0].x) * (p[1].y - p[0].y));

    for (i = 0; i < 3; i++) {
        out[i].x = middle.x + (p[i].x - middle.x) * by;
        out[i].y = middle.y + (p[i].y - middle.y) * by;
    }
}


static void
draw_line(const vlm_pen_t *pen, const vlm_spot_t *p, size_t n, double width, vlm_ink_t ink)
{
    size_t  i;

    for (i = 1; i < n; i++) {
        vlm_draw_line(pen->c, p[i - 1], p[i], width, ink);
    }
}


static void
draw_path(const vlm_pen_t *pen)
{
    double      u;
    size_t      i, n, kept;
    vlm_spot_t  p[VLM_MAX_SHAPES], arrow[3], edge[3], neck;

    for (n = 0, i = 0; i < pen->n && n < VLM_MAX_SHAPES; i++) {
        n += pen->shapes[i].kind == VLM_SHAPE_PATH
             && place(pen->shapes[i].x, pen->shapes[i].y, &p[n]);
    }

    if (n == 0) {
        return;
    }

    u = pen->unit;
    kept = make_room(pen, p, n, arrow, &neck);

    if (kept > 0) {
        p[kept] = neck;
        n = kept + 1;

        draw_line(pen, p, n, 3.4 * u, white);
        widen(arrow, 0.7 * u, edge);
        vlm_draw_triangle(pen->c, edge, white);
        draw_line(pen, p, n, 2 * u, orange);
        vlm_draw_triangle(pen->c, arrow, orange);

    } else {
        draw_line(pen, p, n, 3.4 * u, white);
        draw_line(pen, p, n, 2 * u, orange);
    }

    vlm_draw_disc(pen->c, p[0], 3.7 * u, white);
    vlm_draw_disc(pen->c, p[0], 2.9 * u, green);
}


/* ------------------------------------------------------------------------------------------- */

void
vlm_draw_shapes(vlm_canvas_t *c, const vlm_shape_t *shapes, size_t n)
{
    vlm_pen_t  pen = { .c = c, .shapes = shapes, .n = n };

    pen.unit = fmax(2, (c->width > c->height ? c->width : c->height) / 300.0);

    draw_boxes(&pen);
    draw_path(&pen);
    draw_points(&pen);
}
