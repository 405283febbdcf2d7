/*
 * Pages without text, read by OCR: the page is drawn, vlm-pdf-ocr.so finds the words, and they get
 * boxes in points as the words of a text have.
 */

#ifndef VLM_PDF_SCAN_H
#define VLM_PDF_SCAN_H

#include <poppler.h>
#include <stddef.h>
#include <stdint.h>

#include "ocr.h"
#include "pdf.h"
#include "text.h"

typedef struct {
    const pdf_ocr_t  *ocr;                 /* NULL: pages without text stay so */
    const char       *languages;
    char              dir[PDF_OCR_DIR];    /* of their data, to be read behind the walls */
    int               started;
    uint64_t          left;                /* microseconds for all pages of the document */
} pdf_scan_t;

/* Loads the library that lies beside vlm-pdf, before the walls.  -1 and a sentence in text. */
int pdf_scan_open(pdf_scan_t *scan, const pdf_job_t *job, char *text, size_t bytes);

/*
 * Appends the words of a page, at most *left characters, which are taken off.  Nothing is appended
 * to a blank page, or once the time is over.  -1 and a sentence: OCR does not start.
 */
int pdf_scan_read(pdf_scan_t *scan, PopplerPage *page, uint32_t number, pdf_text_t *t,
    uint32_t *left, char *text, size_t bytes);

#endif
