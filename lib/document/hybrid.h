/*
 * A search by words and by meaning: the ranks of texts by BM25 (terms.h) and by their vectors are
 * joined by reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009).
 *
 * A text's rank in a list, from 1 on, gives it 1 / (60 + rank), and the sums of both lists are
 * compared.  So the two scores need no common scale.  A text without a vector is not in the second
 * list.  A text is not in the first one if its score is below a fifth of the weight of all words of
 * the query: a question in other words than the text's shares with it, and with many others, words
 * such as "what" and "do", and ranks by these would be as loud as those by meaning.
 */

#ifndef VLM_HYBRID_H
#define VLM_HYBRID_H

#include "document/terms.h"

typedef struct {                           /* a vector of length 1, rounded */
    const int8_t  *values;                 /* [dim]; NULL: there is none (yet) */
    float          scale;                  /* of its values */
} vlm_vector_t;

/* Rounds a vector [dim] into values [dim]; returns their scale. */
float vlm_vector_round(int8_t *values, const float *from, size_t dim);

/* The scale of rounded values [dim] of a vector of length 1; 0: all of them are 0. */
float vlm_vector_scale(const int8_t *values, size_t dim);

/* Products of n vectors with the query's, which has one: scores [n], -2 for a text without. */
void vlm_similar(float *scores, const vlm_vector_t *vectors, size_t n, size_t dim,
    const vlm_vector_t *query);

/*
 * Scores n texts for a query by the sums above, 0 for a text in neither list.  Without a vector of
 * the query the order is that of BM25.  -1: no memory (24 bytes a text are used meanwhile).  20,000
 * texts take tens of milliseconds.
 */
int vlm_hybrid_scores(double *scores, const vlm_terms_t *texts, const vlm_vector_t *vectors,
    size_t n, size_t dim, const vlm_terms_t *words, const vlm_vector_t *meaning);

/*
 * Puts the indices of the k best of n texts into best, the best first, of equal ones the first, and
 * their number into *found.  -1: no memory.
 */
int vlm_hybrid(size_t *best, size_t *found, size_t k, const vlm_terms_t *texts,
    const vlm_vector_t *vectors, size_t n, size_t dim, const vlm_terms_t *words,
    const vlm_vector_t *meaning);

#endif
