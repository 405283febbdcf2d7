/* Glyphs and pictures that poppler draws with cairo: where they are, and pages without glyphs. */

#ifndef VLM_PDF_GLYPHS_H
#define VLM_PDF_GLYPHS_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    PDF_GLYPHS_ALL,                        /* are drawn, and noted */
    PDF_GLYPHS_NONE,
    PDF_GLYPHS_WANTED
} pdf_glyphs_kind_t;

#define PDF_GLYPH_STANDS  1                /* a glyph's origin is there */
#define PDF_GLYPH_WANTED  2                /* one there is to be drawn */
#define PDF_PICTURE       4                /* a picture covers it */

typedef struct {
    int                width, height;      /* of the picture, pixels */
    uint8_t           *at;                 /* [height][width] of these bits */
    size_t             n;                  /* origins in the picture */
    pdf_glyphs_kind_t  drawn;
} pdf_glyphs_t;

/* Has glyphs drawn as *glyphs says from now on; NULL: all are drawn, and none is noted. */
void pdf_glyphs_watch(pdf_glyphs_t *glyphs);

#endif
