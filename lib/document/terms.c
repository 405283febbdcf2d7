/* Terms of texts, and BM25 by walking through all texts of a session: 20,000 take milliseconds. */

#include "document/terms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/unicode.h"
#include "base/utf8.h"

#define K1  1.2
#define B   0.75

#define NONE    0
#define WORD    1
#define SINGLE  2                          /* a first character of a script without spaces */
#define PAIR    3

#define NUMBER  0                          /* the one hash of words that begin with a digit */

/* Terms as they are found; a run is what the latest characters belong to. */
typedef struct {
    uint32_t  *hashes;
    size_t     n, room;
    int        run;
    int        numbers;                    /* 1: they have one hash */
    int        number;                     /* the word begins with a digit */
    uint32_t   hash;                       /* of a word so far */
    uint32_t   last;                       /* the character before this, of an unspaced script */
} found_t;


/* FNV-1a over the bytes of a character's code. */
static uint32_t
add_to_hash(uint32_t hash, uint32_t code)
{
    int  i;

    for (i = 0; i < 4; i++) {
        hash = (hash ^ ((code >> 8 * i) & 0xff)) * 16777619u;
    }

    return hash;
}


static uint32_t
hash_of(uint32_t code)
{
    return add_to_hash(2166136261u, code);
}


static int
add(found_t *f, uint32_t hash)
{
    size_t     room;
    uint32_t  *more;

    if (f->n == f->room) {
        room = f->room ? 2 * f->room : 256;
        more = realloc(f->hashes, room * sizeof(*more));

        if (more == NULL) {
            return -1;
        }

        f->hashes = more;
        f->room = room;
    }

    f->hashes[f->n++] = hash;

    return 0;
}


static int
end_run(found_t *f)
{
    const int  run = f->run;

    f->run = NONE;

    if (run == WORD) {
        return add(f, f->numbers && f->number ? NUMBER : f->hash);
    }

    return run == SINGLE ? add(f, hash_of(f->last)) : 0;
}


/* A character of an unspaced script makes a pair with the one before it; alone it is a term. */
static int
add_unspaced(found_t *f, uint32_t code)
{
    int  rc = 0;

    if (f->run == WORD) {
        rc = end_run(f);
    }

    if (f->run == NONE) {
        f->run = SINGLE;
    } else {
        f->run = PAIR;
        rc = add(f, add_to_hash(hash_of(f->last), code));
    }

    f->last = code;

    return rc;
}


/* One folded character. */
static int
add_code(found_t *f, uint32_t code)
{
    if (code >= 0x300 && code <= 0x36f) {
        return 0;
    }

    if (vlm_unicode_invisible(code)) {
        return 0;
    }

    if (!vlm_unicode_in_word(code)) {
        return end_run(f);
    }

    if (vlm_unicode_unspaced(code)) {
        return add_unspaced(f, code);
    }

    if (f->run != WORD) {
        if (end_run(f)) {
            return -1;
        }

        f->run = WORD;
        f->number = code >= '0' && code <= '9';
        f->hash = hash_of(code);

        return 0;
    }

    f->hash = add_to_hash(f->hash, code);

    return 0;
}


static int
find(found_t *f, const char *text, size_t bytes)
{
    size_t    at, len, i, n;
    uint32_t  code, folded[VLM_UNICODE_DECOMPOSED];

    for (at = 0; at < bytes; at += len) {
        len = vlm_utf8((const unsigned char *) text + at, bytes - at, &code);

        if (len == 0) {
            break;
        }

        n = vlm_unicode_fold(code, folded);

        for (i = 0; i < n; i++) {
            if (add_code(f, folded[i])) {
                return -1;
            }
        }
    }

    return end_run(f);
}


static int
by_value(const void *a, const void *b)
{
    const uint32_t  x = *(const uint32_t *) a, y = *(const uint32_t *) b;

    return (x > y) - (x < y);
}


int
vlm_terms_of(vlm_terms_t *terms, const char *text, size_t bytes)
{
    size_t   i;
    found_t  f = { 0 };

    memset(terms, 0, sizeof(*terms));

    if (find(&f, text, bytes)) {
        free(f.hashes);
        return -1;
    }

    terms->terms = malloc((f.n + !f.n) * sizeof(*terms->terms));

    if (terms->terms == NULL) {
        free(f.hashes);
        return -1;
    }

    if (f.n > 0) {
        qsort(f.hashes, f.n, sizeof(*f.hashes), by_value);
    }

    for (i = 0; i < f.n; i++) {
        if (terms->n == 0 || terms->terms[terms->n - 1].hash != f.hashes[i]) {
            terms->terms[terms->n++] = (vlm_term_t) { .hash = f.hashes[i] };
        }

        terms->terms[terms->n - 1].count++;
    }

    terms->length = f.n;
    free(f.hashes);

    return 0;
}


int
vlm_terms_list(uint32_t **hashes, size_t *n, const char *text, size_t bytes)
{
    found_t  f = { .numbers = 1 };

    if (find(&f, text, bytes)) {
        free(f.hashes);
        return -1;
    }

    *hashes = f.hashes;
    *n = f.n;

    return 0;
}


static uint32_t
count_of(const vlm_terms_t *text, uint32_t hash)
{
    size_t  low = 0, high = text->n, middle;

    while (low < high) {
        middle = low + (high - low) / 2;

        if (text->terms[middle].hash < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }

    return low < text->n && text->terms[low].hash == hash ? text->terms[low].count : 0;
}


/* Adds the part of one term of the query to each score; returns the term's weight. */
static double
add_term(double *scores, const vlm_terms_t *texts, size_t n, const vlm_term_t *term,
    double mean_length)
{
    size_t  i, df;
    double  weight, count;

    for (i = df = 0; i < n; i++) {
        df += count_of(&texts[i], term->hash) > 0;
    }

    weight = term->count * log(1 + ((double) n - (double) df + 0.5) / ((double) df + 0.5));

    for (i = 0; i < n && df > 0; i++) {
        count = count_of(&texts[i], term->hash);
        scores[i] += weight * count * (K1 + 1)
                     / (count + K1 * (1 - B + B * (double) texts[i].length / mean_length));
    }

    return weight;
}


double
vlm_bm25(double *scores, const vlm_terms_t *texts, size_t n, const vlm_terms_t *query)
{
    size_t  i;
    double  length, weight;

    for (i = 0, length = 0; i < n; i++) {
        scores[i] = 0;
        length += (double) texts[i].length;
    }

    for (i = 0, weight = 0; i < query->n && length > 0; i++) {
        weight += add_term(scores, texts, n, &query->terms[i], length / (double) n);
    }

    return weight;
}


size_t
vlm_best(size_t *best, size_t k, const double *scores, size_t n)
{
    size_t  i, at, found;

    for (i = found = 0; i < n && k > 0; i++) {
        if (!(scores[i] > 0) || (found == k && scores[i] <= scores[best[k - 1]])) {
            continue;
        }

        found += found < k;

        for (at = found - 1; at > 0 && scores[best[at - 1]] < scores[i]; at--) {
            best[at] = best[at - 1];
        }

        best[at] = i;
    }

    return found;
}
