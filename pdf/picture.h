/* A page drawn, and its picture as PNG. */

#ifndef VLM_PDF_PICTURE_H
#define VLM_PDF_PICTURE_H

#include <cairo.h>
#include <glib.h>
#include <poppler.h>

/*
 * The page of width by height points on white, scale pixels a point, sides of VLM_PDF_SIDE pixels
 * at most, as CAIRO_FORMAT_RGB24.  NULL: it cannot be drawn.
 */
cairo_surface_t *pdf_draw(PopplerPage *page, double width, double height, double scale);

/* The sides of that picture, pixels. */
void pdf_draw_size(double width, double height, double scale, int *across, int *down);

/* Appends a surface of CAIRO_FORMAT_RGB24 to out, as PNG with 8 bits a channel.  -1: no memory. */
int pdf_png(cairo_surface_t *surface, GByteArray *out);

#endif
