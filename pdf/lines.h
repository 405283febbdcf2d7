/* A page's characters as text: lines, and the characters of each in the order of reading. */

#ifndef VLM_PDF_LINES_H
#define VLM_PDF_LINES_H

#include "text.h"
#include "words.h"

/*
 * Appends at most *left characters of a page, and takes them off.  Lines end with a line feed, and
 * a tab is between those of one row, such as the cells of a table.
 *
 * The order within a line is that of pdftotext: runs from right to left are turned around, and on
 * a page that is mostly written so, the runs of a line as well.
 */
void pdf_lines_append(pdf_text_t *t, const pdf_char_t *chars, size_t n, uint32_t *left);

#endif
