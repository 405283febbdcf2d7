/*
 * Anti-aliased fills.  Each shape has a function for the distance of a pixel's centre from its
 * border, negative inside; within half a pixel to either side of the border coverage falls from
 * full to none.
 */

#include "robobrain/draw_fill.h"

#include <math.h>

typedef struct shape_s  shape_t;

struct shape_s {
    double              (*distance)(const shape_t *s, double x, double y);
    vlm_spot_t            from, to;    /* a box around it */
    double                radius;
    double                side[3][3];  /* triangle: x s[0] + y s[1] + s[2] is beyond a side */
    const vlm_stroke_t   *strokes;
    const uint8_t        *active;      /* [n_active] those that reach into the row at hand */
    size_t                n_active;
};


/* The pixels of [0, size) that low to high touches. */
static void
cut(double low, double high, uint32_t size, uint32_t *from, uint32_t *to)
{
    *from = !(low > 0) ? 0 : low >= size ? size : (uint32_t) low;
    *to = !(high > 0) ? 0 : high >= size ? size : (uint32_t) ceil(high);
}


/* share of 256 */
static void
blend(uint8_t *p, vlm_ink_t ink, uint32_t share)
{
    p[0] = (uint8_t) ((p[0] * (256 - share) + ink.r * share + 128) >> 8);
    p[1] = (uint8_t) ((p[1] * (256 - share) + ink.g * share + 128) >> 8);
    p[2] = (uint8_t) ((p[2] * (256 - share) + ink.b * share + 128) >> 8);
}


static uint32_t
share_of(vlm_ink_t ink, double coverage)
{
    return (uint32_t) (coverage * ink.alpha * 256 / 255 + 0.5);
}


static void
fill_row(vlm_canvas_t *c, const shape_t *s, uint32_t y, double low, double high, vlm_ink_t ink)
{
    double     d;
    uint8_t   *p;
    uint32_t   x, from, to;

    cut(low, high, c->width, &from, &to);
    p = c->rgb + ((size_t) y * c->width + from) * 3;

    for (x = from; x < to; x++, p += 3) {
        d = s->distance(s, x + 0.5, y + 0.5);

        if (d < 0.5) {
            blend(p, ink, share_of(ink, d <= -0.5 ? 1 : 0.5 - d));
        }
    }
}


static void
fill(vlm_canvas_t *c, const shape_t *s, vlm_ink_t ink)
{
    uint32_t  y, from, to;

    cut(s->from.y - 1, s->to.y + 1, c->height, &from, &to);

    for (y = from; y < to; y++) {
        fill_row(c, s, y, s->from.x - 1, s->to.x + 1, ink);
    }
}


static double
distance_round_box(const shape_t *s, double x, double y)
{
    double  dx, dy;

    dx = fabs(x - (s->from.x + s->to.x) / 2) - (s->to.x - s->from.x) / 2 + s->radius;
    dy = fabs(y - (s->from.y + s->to.y) / 2) - (s->to.y - s->from.y) / 2 + s->radius;

    return sqrt((dx > 0 ? dx * dx : 0) + (dy > 0 ? dy * dy : 0))
           + fmin(fmax(dx, dy), 0) - s->radius;
}


void
vlm_draw_round_box(vlm_canvas_t *c, vlm_spot_t from, vlm_spot_t to, double radius, vlm_ink_t ink)
{
    shape_t  s = { .distance = distance_round_box, .from = from, .to = to, .radius = radius };

    fill(c, &s, ink);
}


void
vlm_draw_disc(vlm_canvas_t *c, vlm_spot_t at, double radius, vlm_ink_t ink)
{
    vlm_draw_round_box(c, (vlm_spot_t) { at.x - radius, at.y - radius },
                       (vlm_spot_t) { at.x + radius, at.y + radius }, radius, ink);
}


static double
distance_triangle(const shape_t *s, double x, double y)
{
    int     i;
    double  d, most;

    most = -INFINITY;

    for (i = 0; i < 3; i++) {
        d = s->side[i][0] * x + s->side[i][1] * y + s->side[i][2];
        most = d > most ? d : most;
    }

    return most;
}


void
vlm_draw_triangle(vlm_canvas_t *c, const vlm_spot_t p[3], vlm_ink_t ink)
{
    int      i;
    double   nx, ny, length, area;
    shape_t  s = { .distance = distance_triangle };

    area = (p[1].x - p[0].x) * (p[2].y - p[0].y) - (p[2].x - p[0].x) * (p[1].y - p[0].y);

    if (!(fabs(area) > 0)) {
        return;
    }

    s.from.x = fmin(p[0].x, fmin(p[1].x, p[2].x));
    s.from.y = fmin(p[0].y, fmin(p[1].y, p[2].y));
    s.to.x = fmax(p[0].x, fmax(p[1].x, p[2].x));
    s.to.y = fmax(p[0].y, fmax(p[1].y, p[2].y));

    for (i = 0; i < 3; i++) {
        nx = p[(i + 1) % 3].y - p[i].y;
        ny = p[i].x - p[(i + 1) % 3].x;
        length = copysign(sqrt(nx * nx + ny * ny), area);
        s.side[i][0] = nx / length;
        s.side[i][1] = ny / length;
        s.side[i][2] = -(nx * p[i].x + ny * p[i].y) / length;
    }

    fill(c, &s, ink);
}


/* Squared, from the nearest point between a and b. */
static double
distance_stroke(const vlm_stroke_t *s, double x, double y)
{
    double  dx, dy, along, length;

    dx = s->b.x - s->a.x;
    dy = s->b.y - s->a.y;
    x -= s->a.x;
    y -= s->a.y;

    length = dx * dx + dy * dy;
    along = x * dx + y * dy;
    along = along <= 0 ? 0 : along >= length ? 1 : along / length;

    x -= along * dx;
    y -= along * dy;

    return x * x + y * y;
}


static double
distance_strokes(const shape_t *s, double x, double y)
{
    size_t  i;
    double  d, least;

    least = INFINITY;

    for (i = 0; i < s->n_active; i++) {
        d = distance_stroke(&s->strokes[s->active[i]], x, y);
        least = d < least ? d : least;
    }

    return sqrt(least) - s->radius;
}


/* Narrows [*t0, *t1], shares of a length, to where at + t d is from low to high.  0: nowhere. */
static int
clip(double at, double d, double low, double high, double *t0, double *t1)
{
    double  a, b;

    if (d == 0) {
        return at >= low && at <= high;
    }

    a = (low - at) / d;
    b = (high - at) / d;
    *t0 = fmax(*t0, fmin(a, b));
    *t1 = fmin(*t1, fmax(a, b));

    return *t0 <= *t1;
}


static vlm_spot_t
between(const vlm_stroke_t *s, double t)
{
    return (vlm_spot_t) { s->a.x + t * (s->b.x - s->a.x), s->a.y + t * (s->b.y - s->a.y) };
}


void
vlm_draw_line(vlm_canvas_t *c, vlm_spot_t a, vlm_spot_t b, double width, vlm_ink_t ink)
{
    double        r, t0, t1, u0, u1;
    uint32_t      y, from, to;
    vlm_stroke_t  line = { a, b }, seen;
    shape_t       s = { .distance = distance_strokes, .radius = width / 2, .strokes = &seen,
                        .active = (const uint8_t *) "", .n_active = 1 };

    r = width / 2 + 1;
    t0 = 0;
    t1 = 1;

    /* Parts off the canvas are cut off first, so that numbers are small from here on. */

    if (!clip(a.x, b.x - a.x, -2 * r, c->width + 2 * r, &t0, &t1)
        || !clip(a.y, b.y - a.y, -2 * r, c->height + 2 * r, &t0, &t1))
    {
        return;
    }

    seen.a = between(&line, t0);
    seen.b = between(&line, t1);

    cut(fmin(seen.a.y, seen.b.y) - r, fmax(seen.a.y, seen.b.y) + r, c->height, &from, &to);

    for (y = from; y < to; y++) {
        u0 = 0;
        u1 = 1;

        if (clip(seen.a.y, seen.b.y - seen.a.y, y + 0.5 - r, y + 0.5 + r, &u0, &u1)) {
            a = between(&seen, u0);
            b = between(&seen, u1);
            fill_row(c, &s, y, fmin(a.x, b.x) - r, fmax(a.x, b.x) + r, ink);
        }
    }
}


void
vlm_draw_strokes(vlm_canvas_t *c, const vlm_stroke_t *strokes, size_t n, double width,
                 vlm_ink_t ink)
{
    size_t    i;
    double    low, high, r;
    uint8_t   active[VLM_MAX_STROKES];
    uint32_t  y, from, to;
    shape_t   s = { .distance = distance_strokes, .radius = width / 2, .strokes = strokes,
                    .active = active };

    n = n > VLM_MAX_STROKES ? VLM_MAX_STROKES : n;
    r = width / 2 + 1;
    low = INFINITY;
    high = -INFINITY;

    for (i = 0; i < n; i++) {
        low = fmin(low, fmin(strokes[i].a.y, strokes[i].b.y));
        high = fmax(high, fmax(strokes[i].a.y, strokes[i].b.y));
    }

    cut(low - r, high + r, c->height, &from, &to);

    for (y = from; y < to; y++) {
        low = INFINITY;
        high = -INFINITY;
        s.n_active = 0;

        for (i = 0; i < n; i++) {
            if (fmin(strokes[i].a.y, strokes[i].b.y) - r < y + 0.5
                && fmax(strokes[i].a.y, strokes[i].b.y) + r > y + 0.5)
            {
                active[s.n_active++] = (uint8_t) i;
                low = fmin(low, fmin(strokes[i].a.x, strokes[i].b.x));
                high = fmax(high, fmax(strokes[i].a.x, strokes[i].b.x));
            }
        }

        if (s.n_active > 0) {
            fill_row(c, &s, y, low - r, high + r, ink);
        }
    }
}


/* To a border between pixels, at most one beyond the canvas. */
static double
border(double v, uint32_t size)
{
    return v > size ? size : v > 0 ? floor(v + 0.5) : 0;
}


void
vlm_draw_box(vlm_canvas_t *c, vlm_spot_t from, vlm_spot_t to, vlm_ink_t ink)
{
    uint8_t   *p;
    uint32_t   x, y, x0, y0, x1, y1, share;

    x0 = (uint32_t) border(from.x, c->width);
    y0 = (uint32_t) border(from.y, c->height);
    x1 = (uint32_t) border(to.x, c->width);
    y1 = (uint32_t) border(to.y, c->height);
    share = share_of(ink, 1);

    for (y = y0; y < y1; y++) {
        p = c->rgb + ((size_t) y * c->width + x0) * 3;

        for (x = x0; x < x1; x++, p += 3) {
            blend(p, ink, share);
        }
    }
}


void
vlm_draw_frame(vlm_canvas_t *c, vlm_spot_t from, vlm_spot_t to, double width, vlm_ink_t ink)
{
    vlm_spot_t  a, b;

    if (to.x - from.x <= 2 * width || to.y - from.y <= 2 * width) {
        vlm_draw_box(c, from, to, ink);
        return;
    }

    a = (vlm_spot_t) { from.x + width, from.y + width };
    b = (vlm_spot_t) { to.x - width, to.y - width };

    vlm_draw_box(c, from, (vlm_spot_t) { to.x, a.y }, ink);
    vlm_draw_box(c, (vlm_spot_t) { from.x, b.y }, to, ink);
    vlm_draw_box(c, (vlm_spot_t) { from.x, a.y }, (vlm_spot_t) { a.x, b.y }, ink);
    vlm_draw_box(c, (vlm_spot_t) { b.x, a.y }, (vlm_spot_t) { to.x, b.y }, ink);
}
