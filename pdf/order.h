/*
 * The order in which a page's pieces of text are read.
 *
 * poppler gives text row by row, so that the columns of a newspaper alternate.  A piece is a row's
 * text up to a wide gap.  Rows of a table stay rows; columns of prose are read one after the other.
 */

#ifndef VLM_PDF_ORDER_H
#define VLM_PDF_ORDER_H

#include <stddef.h>

typedef struct {
    float   x0, x1;                        /* points */
    size_t  characters;
} pdf_piece_t;

/*
 * Writes the n indices of pieces in their order to order; room is for as many more.  width is the
 * page's.
 */
void pdf_order(const pdf_piece_t *pieces, size_t n, float width, size_t *order, size_t *room);

#endif
