/*
 * The support of an answer about pages: which sources it cites, where on the page what it says
 * stands, and which of its numbers no source has.  The model need not cooperate.
 */

#ifndef VLM_CITE_H
#define VLM_CITE_H

#include <stddef.h>
#include <stdint.h>

#include "document/prompt.h"

#define VLM_CITE_BOXES    64               /* of a source, at most */
#define VLM_CITE_NUMBERS  256              /* unsupported ones, at most */

typedef struct {
    float         x0, y0, x1, y1;          /* shares of the page, from its upper left corner */
} vlm_box_t;

/* A source as the prompt had it, in the prompt's order, and what the answer has of it. */
typedef struct {
    vlm_page_t    page;
    uint32_t      first, bytes;            /* of the page's text */
    const char   *name;                    /* of its document, as the prompt's heading has it */
    uint32_t      number;                  /* of the page */

    int           agrees;                  /* within vlm_cite() */
    int           cited;
    vlm_box_t     boxes[VLM_CITE_BOXES];   /* [n_boxes] if it is cited */
    size_t        n_boxes;
} vlm_cite_t;

/* A number of the answer. */
typedef struct {
    size_t        first, bytes;
} vlm_cite_range_t;

typedef struct {
    vlm_cite_range_t  range[VLM_CITE_NUMBERS];     /* [n], in the answer's order */
    size_t            n;
} vlm_unsupported_t;

/*
 * Sets cited, boxes and n_boxes of n sources, and the unsupported numbers.
 *
 * A source is cited if the answer writes its number, from 1 to n, in a mark: [2], [1, 3]; or if the
 * source has all numbers of the answer, or at least 60 % of its terms, and one of its numbers where
 * any source has one.
 *
 * The boxes of a cited source are those of the answer's numbers in it; where it has none of them,
 * those of the answer's longer words, neighbours in a line joined.  Hidden words have no boxes.
 *
 * A number is unsupported if no source has it, in its text or in its document's name.  The numbers
 * of a mark, those of a list ("1." at the beginning of a line, counted up) and a source's page
 * behind "page" are not looked at.  Brackets with a number that is no source's are no mark: those
 * of [9] and [1,350] are looked at.  A sign, a unit and the scale of a number ("million") are not
 * compared.
 *
 *   answer    any bytes
 *   returns   0; or -1: no memory, and *unsupported is empty
 */
int vlm_cite(vlm_cite_t *sources, size_t n, const char *answer, size_t bytes,
    vlm_unsupported_t *unsupported);

#endif
