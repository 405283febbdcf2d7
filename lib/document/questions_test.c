/*
 * Questions about a made-up handbook, most of them in other words than its own, with vectors of
 * all-MiniLM-L6-v2 (t/fixtures/embed; t/fidelity/encoder.py makes and checks the vectors).  The
 * piece that answers has to be among the first 16, and near the first place.
 */

#define _GNU_SOURCE                        /* memmem() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "document/hybrid.h"

#define FOLDER  "t/fixtures/embed/"
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


static void
pieces_that_answer_are_found(void **state)
{
    size_t        i, n, m, found, best[MOST];
    result_t      words = { 0 }, both = { 0 };
    vlm_file_t    text = file_of(FOLDER "handbook.txt"), asked = file_of(FOLDER "questions.txt");
    vlm_file_t    vectors = file_of(FOLDER "handbook.bin");
    vlm_terms_t   piece[MOST], question[MOST];
    vlm_vector_t  vector[MOST], none = { NULL, 0 }, meaning;
    const row_t  *row = (const row_t *) vectors.data;

    (void) state;

    n = terms_of(&text, "\n\n", NULL, piece);
    m = terms_of(&asked, "\n", "\t", question);
    assert_true(n > 100 && m >= 24);
    assert_int_equal(vectors.bytes, (n + m) * sizeof(row_t));

    for (i = 0; i < n; i++) {
        vector[i] = vector_of(&row[i]);
    }

    for (i = 0; i < m; i++) {
        meaning = vector_of(&row[n + i]);
        assert_int_equal(vlm_hybrid(best, &found, n, piece, vector, n, DIM, &question[i],
            &none), 0);
        add(&words, best, found, (size_t) row[n + i].answer);
        assert_int_equal(vlm_hybrid(best, &found, n, piece, vector, n, DIM, &question[i],
            &meaning), 0);
        add(&both, best, found, (size_t) row[n + i].answer);
    }

    print_message("%zu questions, %zu pieces: words alone: recall@%d %.3f, MRR %.3f; with vectors "
                  "%.3f, %.3f\n", m, n, TAKEN, words.recall / (double) m, words.mrr / (double) m,
                  both.recall / (double) m, both.mrr / (double) m);

    assert_true(both.recall / (double) m >= 0.75);
    assert_true(both.mrr / (double) m >= 0.45);
    assert_true(both.recall > words.recall && both.mrr > words.mrr);

    for (i = 0; i < n + m; i++) {
        free(i < n ? piece[i].terms : question[i - n].terms);
    }

    vlm_file_close(&text);
    vlm_file_close(&asked);
    vlm_file_close(&vectors);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = { cmocka_unit_test(pieces_that_answer_are_found) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
