/* The places on a page that an answer speaks of; for cite.c. */

#ifndef VLM_CITE_BOX_H
#define VLM_CITE_BOX_H

#include "document/cite.h"
#include "document/terms.h"

/* Adds the boxes of the source's numbers that are among the values [n], which ascend. */
void vlm_cite_number_boxes(vlm_cite_t *source, const uint64_t *values, size_t n);

/* Adds the boxes of the source's words that have these terms.  -1: no memory. */
int vlm_cite_word_boxes(vlm_cite_t *source, const vlm_terms_t *terms);

#endif
