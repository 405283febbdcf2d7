/*
 * The reading of one document: vlm-pdf reads it, and the store keeps what came of that, in one
 * commit.
 */

#ifndef VLM_READING_H
#define VLM_READING_H

#include "document/read.h"
#include "document/reader.h"
#include "store/documents.h"

/* Set by the caller: the first three.  Of reader, fd, frame, denied and data are set here; data is
   the reading, for stop(). */
typedef struct {
    vlm_store_t     *store;
    vlm_reader_t     reader;
    vlm_document_t   doc;                  /* as vlm_document_take() gave it */

    int              rc;                   /* of vlm_reader_run() */
    uint64_t         us;                   /* from the start of vlm-pdf to its end */
    size_t           pages;                /* that were read */
    int              failed;               /* the document has FAILED */
    vlm_err_t        err;                  /* why it was not read */
    vlm_err_t        ocr;                  /* why it was read without OCR */
    vlm_err_t        denied;               /* files that vlm-pdf tried to open */

    vlm_read_t       read;                 /* while it is read */
    uint64_t         told;                 /* us, when its progress was committed */
} vlm_reading_t;

/*
 * Reads the document and stores its pages, or why there are none; it waits again if reader.stop()
 * asked for an end, or another process has ended vlm-pdf.  Where OCR cannot run, it is read
 * without.
 *
 *   returns  OK, also if the document was deleted meanwhile; or the store's error
 */
int vlm_reading_run(vlm_reading_t *r, vlm_store_err_t *err);

#endif
