/*
 * Which pages of a session's documents a prompt has: some whole, as text and perhaps as pictures,
 * of others the pieces that the search found.
 *
 * A whole page has the same text for each question, so that a second question about the same pages
 * finds their tokens computed.
 */

#ifndef VLM_PICK_H
#define VLM_PICK_H

#include <stddef.h>
#include <stdint.h>

#define VLM_PICK_PIECES   16               /* that the search may find */
#define VLM_PICK_WHOLE    3                /* whole pages */
#define VLM_PICK_TEXT     4                /* pieces of VLM_PAGES_TEXT, as System B has them */
#define VLM_PICK_MAX      (VLM_PICK_PIECES + VLM_PICK_WHOLE)

typedef enum {
    VLM_PAGES_AUTO = 0,                    /* whole pages, pictures where they help, and pieces */
    VLM_PAGES_TEXT,                        /* pieces alone */
    VLM_PAGES_PICTURES                     /* whole pages, each with its picture */
} vlm_pages_t;

/* A piece of a page, as it was indexed. */
typedef struct {
    uint32_t  document;                    /* index of the caller's documents */
    uint32_t  page;                        /* from 1 */
    uint32_t  first, bytes;                /* of the page's text */
} vlm_piece_t;

/* A page, or a piece of one, that a prompt has. */
typedef struct {
    uint32_t  document, page;
    uint32_t  first, bytes;                /* its best piece, which is what it has unless whole; no
                                              bytes: the search found none in the page */
    double    score;                       /* of that piece; 0: not found */
    uint32_t  rank;                        /* 0: the best */
    int       whole;                       /* the page's whole text */
    int       picture;                     /* the page as a picture, before its text */
    int       textless;                    /* the picture alone */
} vlm_source_t;

/*
 * The sources for a question, the best first: at most VLM_PICK_MAX; returns their number.
 *
 *   pieces, scores  [n], of all documents in the order of document, page and place
 *   pages           [n_documents] how many pages of each were read
 *
 * Where all pages may be whole, all are.  If the search finds nothing, the first pages are taken,
 * or the first pieces.  No page has a picture yet.
 */
size_t vlm_pick(vlm_source_t sources[VLM_PICK_MAX], vlm_pages_t mode, const vlm_piece_t *pieces,
    const double *scores, size_t n, const uint32_t *pages, uint32_t n_documents);

/* The best k pieces, VLM_PICK_PIECES at most, and if too few were found the first of the others. */
size_t vlm_pick_pieces(vlm_source_t sources[VLM_PICK_MAX], size_t k, const vlm_piece_t *pieces,
    const double *scores, size_t n);

/*
 * Does a question ask for what text does not show: a chart, a signature, what a thing looks like?
 * A word that also names other things has to stand in a phrase about a page: "table 3", "in the
 * table", "what does the map show", but not "the seal of the pump", "Where do I look?".
 */
int vlm_pick_shows(const char *question, size_t bytes);

/*
 * Whether a whole page is to be shown: with VLM_PAGES_PICTURES always; with VLM_PAGES_AUTO if it is
 * a scan or has next to no text, or the question asks for what text does not show.
 */
int vlm_pick_picture(vlm_pages_t mode, int shows, int scan, size_t text_bytes);

/*
 * Makes a prompt shorter: takes the worst piece away, then the worst page, of the last page the
 * picture or, where the mode wants pictures, the text, then all but its best piece.  Returns 0 if
 * nothing can be left out.  The order is as vlm_pick() has it.
 */
int vlm_pick_drop(vlm_source_t *sources, size_t *n, vlm_pages_t mode);

/* Sorts sources for a prompt: whole pages first, then pieces, each by document, page and place. */
void vlm_pick_sort(vlm_source_t *sources, size_t n);

#endif
