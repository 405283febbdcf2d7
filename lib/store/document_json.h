/* Documents and their pages as clients read them. */

#ifndef VLM_DOCUMENT_JSON_H
#define VLM_DOCUMENT_JSON_H

#include "base/json_out.h"
#include "store/documents.h"

/* Writes an object; state: the name of the document's. */
void vlm_document_put(vlm_json_out_t *w, const vlm_document_t *doc, const char *state);

/* Writes a page with its text and words. */
void vlm_document_put_page(vlm_json_out_t *w, const vlm_document_page_t *page);

#endif
