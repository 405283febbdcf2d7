/*
 * The characters of a page, with the boxes of their glyphs, as poppler finds them.
 *
 * poppler's interface for C gives a page's text and its boxes apart, and the text has marks of
 * direction without boxes; its interface for C++ gives each word with its characters' boxes, and
 * has the visible annotations and fields of the page, too.  words.cpp is all that uses it.
 */

#ifndef VLM_PDF_PAGE_WORDS_H
#define VLM_PDF_PAGE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Points from the upper left corner of the shown page. */
typedef struct {
    double     x0, y0, x1, y1;
} pdf_box_t;

typedef struct {
    pdf_box_t  box;
    pdf_box_t  word;                       /* which may be more than its characters' */
    uint32_t   c;
    uint8_t    rotation;                   /* its line runs right, down, left or up: 0 to 3 */
    uint8_t    ends_word;
    uint8_t    space;                      /* after the word that it ends */
} pdf_char_t;

typedef struct pdf_words_s  pdf_words_t;

/* The bytes of a file, which stay until pdf_words_close(); NULL: poppler cannot read them. */
pdf_words_t *pdf_words_open(const char *data, size_t bytes);

/*
 * The characters of a page, from 0: lines in the order of reading, and within a line in the order
 * in which the page shows them.  Freed with free(); NULL: there are none.
 */
pdf_char_t *pdf_words_page(pdf_words_t *words, uint32_t page, size_t *n);

/* NULL is fine. */
void pdf_words_close(pdf_words_t *words);

#ifdef __cplusplus
}
#endif

#endif
