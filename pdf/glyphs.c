/*
 * Stands between poppler and cairo: see glyphs.h.
 *
 * poppler offers no page without its text.  It draws all text by two functions of cairo, and the
 * linker takes those of the program before the library's.  Invisible text (mode 3) comes to neither
 * of them.
 */

#define _GNU_SOURCE

#include "glyphs.h"

#include <cairo.h>
#include <dlfcn.h>

typedef void (*draw_t)(cairo_t *, const cairo_glyph_t *, int);

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
