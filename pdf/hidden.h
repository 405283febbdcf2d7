/* Words that a page has, but does not show. */

#ifndef VLM_PDF_HIDDEN_WORDS_H
#define VLM_PDF_HIDDEN_WORDS_H

#include <poppler.h>

#include "text.h"

/*
 * Marks the words of a page that are white, have no ink, or lie under something; one that is seen
 * in part becomes a word for each part, or is hidden where there is no room for them.  -1: the page
 * cannot be drawn, so that its words may be any of these.
 */
int pdf_hidden_find(pdf_text_t *t, PopplerPage *page);

#endif
