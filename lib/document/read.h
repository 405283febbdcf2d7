/*
 * The frames of vlm-pdf about a document, collected for the store: its title and pages, and their
 * chunks and terms.
 *
 * A page keeps all of its text, and each word its flags.  The search does not see hidden words:
 * for chunks and terms they count as spaces.  A scan is the exception, where all words are hidden
 * behind the picture that they were read from.
 */

#ifndef VLM_DOCUMENT_READ_H
#define VLM_DOCUMENT_READ_H

#include "document/frame.h"
#include "store/documents.h"

typedef struct {
    uint32_t              pages, to_read;          /* as INFO says them */
    char                  title[VLM_FRAME_TITLE + 1];
    vlm_document_page_t  *page;                    /* [n], for vlm_document_done() */
    size_t                n, room;
    size_t                n_chunks;                /* of all pages */
} vlm_read_t;

/* Adds an INFO or PAGE frame that was checked, to what is zero before the first.  -1: no memory. */
int vlm_read_frame(vlm_read_t *read, const vlm_frame_t *frame);

/* Idempotent. */
void vlm_read_free(vlm_read_t *read);

#endif
