/* The text of a page as it grows: characters, and the words that spaces separate, with boxes. */

#ifndef VLM_PDF_PAGE_TEXT_H
#define VLM_PDF_PAGE_TEXT_H

#include <glib.h>
#include <poppler.h>
#include <stdint.h>

#include "document/frame.h"

typedef struct {
    double    width, height;               /* of the page, points */
    GString  *text;                        /* without control characters */
    GArray   *words;                       /* vlm_pdf_word_t */
} pdf_text_t;

/*
 * Control characters become spaces, and so do line feeds unless they are kept; a text that is not
 * UTF-8 is cut.  The bytes that are left.
 */
size_t pdf_text_clean(char *text, size_t bytes, int keep_lines);

/*
 * Appends at most *left characters of a clean text, and takes them off.  boxes has one for each
 * character, step apart: with a step of 0 all have the first.
 */
void pdf_text_append(pdf_text_t *t, const char *text, size_t bytes, const PopplerRectangle *boxes,
    size_t step, uint32_t *left);

/* Appends a character between two parts, unless the text is empty or *left is 0. */
void pdf_text_separate(pdf_text_t *t, char c, uint32_t *left);

#endif
