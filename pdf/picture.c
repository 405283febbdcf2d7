/*
 * A page drawn, and its picture as PNG.
 *
 * Cairo's own writer tries five filters for each row and compresses thoroughly; this one takes a
 * quarter of its time for a page of text, and a few percent more bytes.
 */

#include "picture.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

#include "document/frame.h"

#define LEVEL  3                           /* of zlib */


void
pdf_draw_size(double width, double height, double scale, int *across, int *down)
{
    *across = (int) CLAMP(ceil(width * scale - 0.001), 1, VLM_PDF_SIDE);
    *down = (int) CLAMP(ceil(height * scale - 0.001), 1, VLM_PDF_SIDE);
}


cairo_surface_t *
pdf_draw(PopplerPage *page, double width, double height, double scale)
{
    int               across, down;
    cairo_t          *cr;
    cairo_status_t    status;
    cairo_surface_t  *surface;

    pdf_draw_size(width, height, scale, &across, &down);
    surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, across, down);
    cr = cairo_create(surface);
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_paint(cr);
    cairo_scale(cr, scale, scale);
    poppler_page_render(page, cr);
    status = cairo_status(cr);
    cairo_destroy(cr);
    cairo_surface_flush(surface);

    if (status != CAIRO_STATUS_SUCCESS || cairo_surface_status(surface) != CAIRO_STATUS_SUCCESS) {
        cairo_surface_destroy(surface);
        return NULL;
    }

    return surface;
}


static void
append(png_structp png, png_bytep data, size_t n)
{
    g_byte_array_append(png_get_io_ptr(png), data, (guint) n);
}


static void
flush(png_structp png)
{
    (void) png;
}


static void
warn(png_structp png, png_const_charp text)
{
    (void) png;
    (void) text;
}


static void
put_row(png_structp png, const uint32_t *pixel, png_bytep row, uint32_t width)
{
    uint32_t  x;

    for (x = 0; x < width; x++) {
        row[3 * x] = (png_byte) (pixel[x] >> 16);
        row[3 * x + 1] = (png_byte) (pixel[x] >> 8);
        row[3 * x + 2] = (png_byte) pixel[x];
    }

    png_write_row(png, row);
}


/* libpng reports an error by longjmp(): what is freed after it is not changed after setjmp(). */
static int
put_all(png_structp png, png_infop info, cairo_surface_t *surface, png_bytep row)
{
    uint32_t              y;
    const uint32_t        width = (uint32_t) cairo_image_surface_get_width(surface);
    const uint32_t        height = (uint32_t) cairo_image_surface_get_height(surface);
    const size_t          stride = (size_t) cairo_image_surface_get_stride(surface);
    const unsigned char  *data = cairo_image_surface_get_data(surface);

    if (setjmp(png_jmpbuf(png))) {
        return -1;
    }

    png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, LEVEL);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
    png_write_info(png, info);

    for (y = 0; y < height; y++) {
        put_row(png, (const uint32_t *) (const void *) (data + y * stride), row, width);
    }

    png_write_end(png, info);

    return 0;
}


int
pdf_png(cairo_surface_t *surface, GByteArray *out)
{
    int          rc = -1;
    png_bytep    row = malloc(3 * (size_t) cairo_image_surface_get_width(surface));
    png_infop    info = NULL;
    png_structp  png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, warn);

    if (png != NULL) {
        info = png_create_info_struct(png);
    }

    cairo_surface_flush(surface);

    if (row != NULL && info != NULL && cairo_image_surface_get_data(surface) != NULL) {
        png_set_write_fn(png, out, append, flush);
        rc = put_all(png, info, surface, row);
    }

    png_destroy_write_struct(&png, &info);
    free(row);

    return rc;
}
