/* The text of a page as it grows: characters, and the words that spaces separate, with boxes. */

#ifndef VLM_PDF_PAGE_TEXT_H
#define VLM_PDF_PAGE_TEXT_H

#include <glib.h>
#include <stdint.h>

#include "document/frame.h"
#include "words.h"

typedef struct {
    double    width, height;               /* of the page, points */
    GString  *text;                        /* without control characters */
    GArray   *words;                       /* vlm_pdf_word_t */
    GArray   *chars;                       /* of the words, as words of one character each; flags
                                              are the rotation of its line, 0 to 3 */
    uint32_t  rotation;                    /* of the characters that are appended */
    int       in_word;                     /* the next character belongs to the last word */
} pdf_text_t;

/* Control characters become spaces; a text that is not UTF-8 is cut.  The bytes that are left. */
size_t pdf_text_clean(char *text, size_t bytes);

/* Appends at most *left characters of a clean text, all with one box, and takes them off. */
void pdf_text_append(pdf_text_t *t, const char *text, size_t bytes, const pdf_box_t *box,
    uint32_t *left);

/*
 * Appends one character, unless *left is 0: to the last word, or to a new one after a space.  One
 * that is a control character, or none, becomes a space.
 */
void pdf_text_character(pdf_text_t *t, gunichar c, const pdf_box_t *box, uint32_t *left);

/* Appends a character between two parts, unless the text is empty or *left is 0. */
void pdf_text_separate(pdf_text_t *t, char c, uint32_t *left);

#endif
