/*
 * The words of a text as a search compares them, and Okapi BM25 over texts.
 *
 * A term is a run of letters and digits after case folding and compatibility decomposition, without
 * accents (U+0300 to U+036F).  Scripts without spaces between words give overlapping pairs of
 * characters.  A term is kept as a hash of 32 bits: two of 30,000 words collide with a probability
 * of one in ten, and then only their two weights are wrong.
 */

#ifndef VLM_TERMS_H
#define VLM_TERMS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t     hash;
    uint32_t     count;                    /* how often the text has the term */
} vlm_term_t;

typedef struct {
    vlm_term_t  *terms;                    /* ascending by hash; the caller frees it */
    size_t       n;
    size_t       length;                   /* of the text, in terms: the sum of the counts */
} vlm_terms_t;

/* The terms of a text in UTF-8, up to its first byte that is not.  -1: no memory. */
int vlm_terms_of(vlm_terms_t *terms, const char *text, size_t bytes);

/*
 * The same terms as they follow each other: *hashes [*n], which the caller frees.  All words that
 * begin with a digit have one hash, so that "table 3" is found by "table 0".  -1: no memory.
 */
int vlm_terms_list(uint32_t **hashes, size_t *n, const char *text, size_t bytes);

/*
 * Scores n texts for a query by Okapi BM25 (Robertson and Zaragoza, 2009) with k1 = 1.2, b = 0.75,
 * the weight ln(1 + (n - df + 0.5) / (df + 0.5)) of a term that df of the texts have, and a query's
 * term as often as the query has it.  scores has n places; a text without any term of the query
 * has 0.  Returns the sum of all weights, also of terms that no text has: what a text of average
 * length scores that has each term once.
 */
double vlm_bm25(double *scores, const vlm_terms_t *texts, size_t n, const vlm_terms_t *query);

/*
 * The indices of the k best scores above 0, the best first, of equal ones the first; returns how
 * many there are.
 */
size_t vlm_best(size_t *best, size_t k, const double *scores, size_t n);

#endif
