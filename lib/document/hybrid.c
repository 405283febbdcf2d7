/* Reciprocal rank fusion over all texts of a session: see hybrid.h. */

#include "document/hybrid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RANK   60.0                        /* how little the first ranks differ */
#define SHARE  0.2                         /* of the weight of a query's words */
#define NONE   (-2.0f)                     /* below every product of two vectors of length 1 */
#define MOST   127
#define DIM    (1u << 16)                  /* of a vector: its products' sum is below 2^31 */

typedef struct {
    double    score;
    uint32_t  index;
} place_t;


float
vlm_vector_round(int8_t *values, const float *from, size_t dim)
{
    float   most;
    size_t  i;

    for (most = 0, i = 0; i < dim; i++) {
        most = fabsf(from[i]) > most ? fabsf(from[i]) : most;
    }

    for (i = 0; i < dim; i++) {
        values[i] = most > 0 ? (int8_t) lrintf(from[i] / most * MOST) : 0;
    }

    return most / MOST;
}


/* 64 values at a time, for which compilers have vectors. */
static int32_t
product(const int8_t *a, const int8_t *b, size_t dim)
{
    size_t   i, j;
    int32_t  sum, part;

    for (sum = 0, i = 0; i + 64 <= dim; i += 64) {
        for (part = 0, j = 0; j < 64; j++) {
            part += a[i + j] * b[i + j];
        }

        sum += part;
    }

    for ( /* void */ ; i < dim; i++) {
        sum += a[i] * b[i];
    }

    return sum;
}


float
vlm_vector_scale(const int8_t *values, size_t dim)
{
    int32_t  squares = product(values, values, dim);

    return squares > 0 ? (float) (1 / sqrt(squares)) : 0;
}


void
vlm_similar(float *scores, const vlm_vector_t *vectors, size_t n, size_t dim,
    const vlm_vector_t *query)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        scores[i] = vectors[i].values == NULL
                    ? NONE
                    : (float) product(vectors[i].values, query->values, dim)
                      * vectors[i].scale * query->scale;
    }
}


static int
by_score(const void *a, const void *b)
{
    const place_t  *x = a, *y = b;

    if (x->score != y->score) {
        return x->score < y->score ? 1 : -1;
    }

    return (x->index > y->index) - (x->index < y->index);
}


/* Adds to fused what each of m places has by its rank. */
static void
add_ranks(double *fused, place_t *places, size_t m)
{
    size_t  i;

    qsort(places, m, sizeof(*places), by_score);

    for (i = 0; i < m; i++) {
        fused[places[i].index] += 1 / (RANK + 1 + (double) i);
    }
}


static void
add_words(double *fused, double *scores, place_t *places, const vlm_terms_t *texts, size_t n,
    const vlm_terms_t *words, double share)
{
    double  least;
    size_t  i, m;

    least = share * vlm_bm25(scores, texts, n, words);

    for (i = m = 0; i < n; i++) {
        if (scores[i] > least) {
            places[m++] = (place_t) { scores[i], (uint32_t) i };
        }
    }

    add_ranks(fused, places, m);
}


static void
add_meaning(double *fused, float *scores, place_t *places, const vlm_vector_t *vectors, size_t n,
    size_t dim, const vlm_vector_t *meaning)
{
    size_t  i, m;

    vlm_similar(scores, vectors, n, dim, meaning);

    for (i = m = 0; i < n; i++) {
        if (scores[i] > NONE) {
            places[m++] = (place_t) { scores[i], (uint32_t) i };
        }
    }

    add_ranks(fused, places, m);
}


int
vlm_hybrid_scores(double *scores, const vlm_terms_t *texts, const vlm_vector_t *vectors, size_t n,
    size_t dim, const vlm_terms_t *words, const vlm_vector_t *meaning)
{
    double   *own;
    place_t  *places;

    if (n == 0) {
        return 0;
    }

    if (n > UINT32_MAX || dim > DIM) {
        return -1;
    }

    own = malloc(n * sizeof(*own));
    places = malloc(n * sizeof(*places));

    if (own == NULL || places == NULL) {
        free(own);
        free(places);
        return -1;
    }

    memset(scores, 0, n * sizeof(*scores));
    add_words(scores, own, places, texts, n, words, meaning->values == NULL ? 0 : SHARE);

    if (meaning->values != NULL) {
        add_meaning(scores, (float *) own, places, vectors, n, dim, meaning);
    }

    free(own);
    free(places);

    return 0;
}


int
vlm_hybrid(size_t *best, size_t *found, size_t k, const vlm_terms_t *texts,
    const vlm_vector_t *vectors, size_t n, size_t dim, const vlm_terms_t *words,
    const vlm_vector_t *meaning)
{
    int      rc;
    double  *scores;

    *found = 0;
    scores = malloc((n + !n) * sizeof(*scores));

    if (scores == NULL) {
        return -1;
    }

    rc = vlm_hybrid_scores(scores, texts, vectors, n, dim, words, meaning);

    if (rc == 0) {
        *found = vlm_best(best, k, scores, n);
    }

    free(scores);

    return rc;
}
