/*
 * Stands between poppler and cairo: see glyphs.h.
 *
 * poppler offers no page without its text.  It draws all text by two functions of cairo, and the
 * linker takes those of the program before the library's.  Invisible text (mode 3) comes to neither
 * of them.
 *
 * Nor does it say where the pictures of a page are (poppler_page_get_image_mapping() of 22.12 has
 * width and height the wrong way round).  A picture is the source of what it draws, or its mask,
 * while the unit square of the user's space is the picture's place.
 */

#define _GNU_SOURCE

#include "glyphs.h"

#include <cairo.h>
#include <dlfcn.h>
#include <glib.h>

typedef void (*draw_t)(cairo_t *, const cairo_glyph_t *, int);
typedef void (*use_t)(cairo_t *, cairo_pattern_t *);

static pdf_glyphs_t  *watched;


void
pdf_glyphs_watch(pdf_glyphs_t *glyphs)
{
    watched = glyphs;
}


/* The bits of the pixel where a glyph has its origin; NULL: it is not in the picture. */
static uint8_t *
place_of(cairo_t *cr, const cairo_glyph_t *glyph)
{
    double  x = glyph->x, y = glyph->y;

    cairo_user_to_device(cr, &x, &y);

    if (!(x >= 0 && x < watched->width && y >= 0 && y < watched->height)) {
        return NULL;
    }

    return &watched->at[(size_t) y * (size_t) watched->width + (size_t) x];
}


static void
note(cairo_t *cr, const cairo_glyph_t *glyphs, int n)
{
    int       i;
    uint8_t  *place;

    for (i = 0; i < n; i++) {
        place = place_of(cr, &glyphs[i]);

        if (place != NULL) {
            *place |= PDF_GLYPH_STANDS;
            watched->n++;
        }
    }
}


static void
draw_wanted(draw_t cairos, cairo_t *cr, const cairo_glyph_t *glyphs, int n)
{
    int       i;
    uint8_t  *place;

    for (i = 0; i < n; i++) {
        place = place_of(cr, &glyphs[i]);

        if (place != NULL && (*place & PDF_GLYPH_WANTED)) {
            cairos(cr, &glyphs[i], 1);
        }
    }
}


static void
draw(const char *name, draw_t *cairos, cairo_t *cr, const cairo_glyph_t *glyphs, int n)
{
    if (*cairos == NULL) {
        *cairos = (draw_t) dlsym(RTLD_NEXT, name);
    }

    if (*cairos == NULL) {
        return;                            /* a cairo without it draws no text */
    }

    if (watched == NULL) {
        (*cairos)(cr, glyphs, n);

    } else if (watched->drawn == PDF_GLYPHS_ALL) {
        note(cr, glyphs, n);
        (*cairos)(cr, glyphs, n);

    } else if (watched->drawn == PDF_GLYPHS_WANTED) {
        draw_wanted(*cairos, cr, glyphs, n);
    }
}


void
cairo_show_glyphs(cairo_t *cr, const cairo_glyph_t *glyphs, int n)
{
    static draw_t  cairos;

    draw("cairo_show_glyphs", &cairos, cr, glyphs, n);
}


/* Text with an outline, and text that clips what is drawn next. */
void
cairo_glyph_path(cairo_t *cr, const cairo_glyph_t *glyphs, int n)
{
    static draw_t  cairos;

    draw("cairo_glyph_path", &cairos, cr, glyphs, n);
}


/* ---- pictures ------------------------------------------------------------------------------- */

/* The pixels, of `end`, from the least of four numbers to the greatest: [*first, *last). */
static void
span(const double v[4], int end, int *first, int *last)
{
    const double  low = MIN(MIN(v[0], v[1]), MIN(v[2], v[3]));
    const double  high = MAX(MAX(v[0], v[1]), MAX(v[2], v[3])) + 1;

    *first = low > 0 ? low < end ? (int) low : end : 0;
    *last = high > 0 ? high < end ? (int) high : end : 0;
}


/* Notes the box around the unit square. */
static void
note_picture(cairo_t *cr)
{
    int       i, x, y, x0, x1, y0, y1;
    double    h[4], v[4];
    uint8_t  *row;

    for (i = 0; i < 4; i++) {
        h[i] = i % 2;
        v[i] = i / 2;
        cairo_user_to_device(cr, &h[i], &v[i]);
    }

    span(h, watched->width, &x0, &x1);
    span(v, watched->height, &y0, &y1);

    for (y = y0; y < y1; y++) {
        row = watched->at + (size_t) y * (size_t) watched->width;

        for (x = x0; x < x1; x++) {
            row[x] |= PDF_PICTURE;
        }
    }
}


static void
use(const char *name, use_t *cairos, cairo_t *cr, cairo_pattern_t *pattern)
{
    if (*cairos == NULL) {
        *cairos = (use_t) dlsym(RTLD_NEXT, name);
    }

    if (*cairos == NULL) {
        return;                            /* a cairo without it draws no picture */
    }

    if (watched != NULL && watched->drawn == PDF_GLYPHS_ALL
        && cairo_pattern_get_type(pattern) == CAIRO_PATTERN_TYPE_SURFACE)
    {
        note_picture(cr);
    }

    (*cairos)(cr, pattern);
}


void
cairo_set_source(cairo_t *cr, cairo_pattern_t *pattern)
{
    static use_t  cairos;

    use("cairo_set_source", &cairos, cr, pattern);
}


/* Pictures of one bit, as many scans are. */
void
cairo_mask(cairo_t *cr, cairo_pattern_t *pattern)
{
    static use_t  cairos;

    use("cairo_mask", &cairos, cr, pattern);
}
