/*
 * Questions about two made-up texts, with vectors of all-MiniLM-L6-v2 (t/fixtures/embed, which
 * t/fidelity/encoder.py makes and checks).  The piece that answers has to be among the first 16,
 * and near the first place.
 *
 * SHARE of hybrid.c was chosen with the 48 questions about the handbook, 12 of which have its own
 * words.  The 48 about the house were written before any search for their answers and stay as they
 * are; they share hardly a word with these.
 */

#define _GNU_SOURCE                        /* memmem() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "document/hybrid.h"

#define DIM     384
#define MOST    256
#define TAKEN   16

typedef struct {                           /* a row of handbook.bin */
    int32_t  answer;                       /* a question's piece; -1 for a piece */
    float    scale;
    int8_t   values[DIM];
} row_t;

typedef struct {
    double  recall, mrr;
} result_t;


static vlm_file_t
file_of(const char *path)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f = { 0 };

    if (vlm_file_open(&f, path, 1u << 20, &err)) {
        fail_msg("%s", err.text);
    }

    return f;
}


/* The terms of the parts of a text, each of which ends at one of the ends or before `until`. */
static size_t
terms_of(const vlm_file_t *f, const char *end, const char *until, vlm_terms_t terms[MOST])
{
    size_t       n = 0, bytes, left = f->bytes;
    const char  *at = (const char *) f->data, *to, *stop;

    for ( /* void */ ; left > 0; n++) {
        to = memmem(at, left, end, strlen(end));
        bytes = to == NULL ? left : (size_t) (to - at);
        stop = until == NULL ? NULL : memmem(at, bytes, until, strlen(until));

        assert_true(n < MOST);
        assert_int_equal(vlm_terms_of(&terms[n], at, stop == NULL ? bytes : (size_t) (stop - at)),
            0);
        bytes += to == NULL ? 0 : strlen(end);
        at += bytes;
        left -= bytes;
    }

    return n;
}


static vlm_vector_t
vector_of(const row_t *row)
{
    return (vlm_vector_t) { row->values, row->scale };
}


static void
add(result_t *r, const size_t *best, size_t found, size_t answer)
{
    size_t  i;

    for (i = 0; i < found && best[i] != answer; i++) { /* void */ }

    r->recall += i < found && i < TAKEN;
    r->mrr += i < found ? 1.0 / (double) (i + 1) : 0;
}


/* The part of a file's name that its text, questions and vectors share. */
static vlm_file_t
part_of(const char *name, const char *end)
{
    char  path[64];

    snprintf(path, sizeof(path), "t/fixtures/embed/%s%s", name, end);

    return file_of(path);
}


static void
search(const char *name, result_t *words, result_t *vectors, result_t *both)
{
    size_t        i, n, m, k, found, best[MOST];
    result_t     *r[] = { words, vectors, both };
    vlm_file_t    text = part_of(name, ".txt"), asked = part_of(name, "-questions.txt");
    vlm_file_t    rows = part_of(name, ".bin");
    vlm_terms_t   piece[MOST], question[MOST], nothing = { NULL, 0, 0 };
    vlm_vector_t  vector[MOST], none = { NULL, 0 }, meaning;
    const row_t  *row = (const row_t *) rows.data;

    n = terms_of(&text, "\n\n", NULL, piece);
    m = terms_of(&asked, "\n", "\t", question);
    assert_true(n > 100 && m >= 24);
    assert_int_equal(rows.bytes, (n + m) * sizeof(row_t));

    for (i = 0; i < n; i++) {
        vector[i] = vector_of(&row[i]);
    }

    for (i = 0; i < m; i++) {
        meaning = vector_of(&row[n + i]);

        for (k = 0; k < 3; k++) {
            assert_int_equal(vlm_hybrid(best, &found, n, piece, vector, n, DIM,
                                        k == 1 ? &nothing : &question[i],
                                        k == 0 ? &none : &meaning), 0);
            add(r[k], best, found, (size_t) row[n + i].answer);
        }
    }

    for (k = 0; k < 3; k++) {
        r[k]->recall /= (double) m;
        r[k]->mrr /= (double) m;
    }

    print_message("%s, %zu questions, %zu pieces: recall@%d %.3f by words, %.3f by vectors, %.3f "
                  "by both; MRR %.3f, %.3f, %.3f\n", name, m, n, TAKEN, words->recall,
                  vectors->recall, both->recall, words->mrr, vectors->mrr, both->mrr);

    for (i = 0; i < n + m; i++) {
        free(i < n ? piece[i].terms : question[i - n].terms);
    }

    vlm_file_close(&text);
    vlm_file_close(&asked);
    vlm_file_close(&rows);
}


static void
pieces_that_answer_are_found(void **state)
{
    size_t    i;
    result_t  words, vectors, both;

    static const char *const  names[] = { "handbook", "house" };

    (void) state;

    for (i = 0; i < 2; i++) {
        words = vectors = both = (result_t) { 0, 0 };
        search(names[i], &words, &vectors, &both);

        assert_true(both.recall >= 0.75);
        assert_true(both.mrr >= 0.45);
        assert_true(both.recall > words.recall && both.mrr > words.mrr);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = { cmocka_unit_test(pieces_that_answer_are_found) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
