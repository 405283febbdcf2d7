/*
 * vlm-pdf-ocr.so: the words in the picture of a page, by Tesseract.
 *
 * vlm-pdf loads this library if "ocr=" asks for it.  Tesseract brings twenty further libraries,
 * which would double the start of a program that most documents need without them.
 */

#ifndef VLM_PDF_OCR_H
#define VLM_PDF_OCR_H

#include <stddef.h>
#include <stdint.h>

#include "document/frame.h"

#define PDF_OCR_VERSION    1
#define PDF_OCR_DIR        128             /* bytes of a path, with the zero */
#define PDF_OCR_LANGUAGES  (VLM_PDF_LANGUAGES_MAX + 1)

typedef struct {
    const uint8_t  *grey;                  /* [height][width], 0 is black */
    uint32_t        width, height;         /* pixels */
    uint32_t        dpi;
} pdf_ocr_picture_t;

typedef struct {
    const char     *text;                  /* UTF-8, as Tesseract gives it */
    float           x0, y0, x1, y1;        /* pixels */
    int             begins_line;
} pdf_ocr_word_t;

typedef struct {
    uint32_t  version;                     /* PDF_OCR_VERSION */

    /*
     * The directory that has the data of all languages, such as "eng" or "deu+eng", before the
     * walls; -1 and a sentence in text.
     */
    int     (*find)(const char *languages, char dir[PDF_OCR_DIR], char *text, size_t bytes);

    /* Loads the data, 0.1 s; -1 and a sentence. */
    int     (*start)(const char *dir, const char *languages, char *text, size_t bytes);

    /*
     * Gives the words of a picture to word() in the order of reading, those of an upside-down
     * picture, too.  Recognition that takes longer than ms gives none.  The number of words.
     */
    size_t  (*read)(const pdf_ocr_picture_t *picture, uint32_t ms,
                    void (*word)(void *data, const pdf_ocr_word_t *word), void *data);
} pdf_ocr_t;

/* The library's only name. */
extern const pdf_ocr_t  vlm_pdf_ocr;

#endif
