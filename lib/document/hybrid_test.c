/* Ranks by words and by vectors, joined; and the products of rounded vectors. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/hybrid.h"

#define TEXTS  5
#define DIM    67


static vlm_terms_t
terms_of(const char *text)
{
    vlm_terms_t  t;

    assert_int_equal(vlm_terms_of(&t, text, strlen(text)), 0);

    return t;
}


/* Numbers of a linear congruence, between -1 and 1. */
static float
next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;

    return (float) (*state >> 8) / (float) (1u << 23) - 1;
}


/* The scale of the rounded values follows from the vector's length. */
static void
check_scale(const vlm_vector_t *rounded, const float *from)
{
    size_t  i;
    double  squares;

    for (squares = 0, i = 0; i < DIM; i++) {
        squares += (double) from[i] * from[i];
    }

    assert_true(fabs(vlm_vector_scale(rounded->values, DIM) * sqrt(squares) / rounded->scale - 1)
                < 0.01);
}


static void
products_of_rounded_vectors_are_near(void **state)
{
    float         a[DIM], b[DIM], score;
    size_t        i, round;
    int8_t        qa[DIM], qb[DIM];
    double        sum;
    uint32_t      seed = 5;
    vlm_vector_t  x = { .values = qa }, y = { .values = qb };

    (void) state;

    for (round = 0; round < 100; round++) {
        for (sum = 0, i = 0; i < DIM; i++) {
            a[i] = next(&seed);
            b[i] = next(&seed);
            sum += (double) a[i] * b[i];
        }

        x.scale = vlm_vector_round(qa, a, DIM);
        check_scale(&x, a);
        y.scale = vlm_vector_round(qb, b, DIM);
        vlm_similar(&score, &x, 1, DIM, &y);
        assert_true(fabs(score - sum) < DIM * 0.002);
    }

    memset(a, 0, sizeof(a));
    assert_true(vlm_vector_round(qa, a, DIM) == 0);
    assert_int_equal(qa[DIM - 1], 0);
    assert_true(vlm_vector_scale(qa, DIM) == 0);
}


/* Five texts, of which the vectors say the angle to the query: 0 is the nearest. */
typedef struct {
    vlm_terms_t   texts[TEXTS];
    vlm_vector_t  vectors[TEXTS], asked;
    int8_t        values[TEXTS + 1][2];
} set_t;


static void
open_set(set_t *s, const char *const text[TEXTS], const double angle[TEXTS])
{
    size_t  i;
    float   v[2];

    for (i = 0; i <= TEXTS; i++) {
        v[0] = i == TEXTS ? 1 : (float) cos(angle[i]);
        v[1] = i == TEXTS ? 0 : (float) sin(angle[i]);

        if (i < TEXTS) {
            s->texts[i] = terms_of(text[i]);
            s->vectors[i].values = angle[i] < 0 ? NULL : s->values[i];
            s->vectors[i].scale = vlm_vector_round(s->values[i], v, 2);
        }
    }

    s->asked.values = s->values[TEXTS];
    s->asked.scale = vlm_vector_round(s->values[TEXTS], v, 2);
}


/* The order of the texts for a question, as digits. */
static void
expect(const set_t *s, const char *question, const vlm_vector_t *asked, size_t k,
    const char *order)
{
    size_t       i, found, best[TEXTS];
    vlm_terms_t  words = terms_of(question);

    assert_int_equal(vlm_hybrid(best, &found, k, s->texts, s->vectors, TEXTS, 2, &words, asked), 0);
    assert_int_equal(found, strlen(order));

    for (i = 0; i < found; i++) {
        assert_int_equal(best[i], order[i] - '0');
    }

    free(words.terms);
}


static void
ranks_are_joined(void **state)
{
    set_t         s;
    size_t        i, found;
    vlm_vector_t  none = { NULL, 0 };

    static const char *const  text[TEXTS] = {
        "pump seal", "a red door", "pump pump seal seal", "a valve", "seal"
    };
    static const double  angle[TEXTS] = { 0.3, 0.1, 1.5, 0.8, -1 };

    (void) state;

    open_set(&s, text, angle);

    /* words alone: 2 and 0 have both terms, 4 one of them */

    expect(&s, "pump seal", &none, TEXTS, "204");

    /* vectors alone: 1, 0, 3, 2; text 4 has none */

    expect(&s, "window", &s.asked, TEXTS, "1032");

    /* 0 is second in both: 2 / 62.  2: 1 / 61 + 1 / 64, 1: 1 / 61, 3 and 4: 1 / 63 each */

    expect(&s, "pump seal", &s.asked, TEXTS, "02134");
    expect(&s, "pump seal", &s.asked, 2, "02");
    expect(&s, "window", &none, TEXTS, "");

    /* one word of twelve does not make a rank beside vectors, but does alone */

    expect(&s, "seal b c d e f g h i j k l", &s.asked, TEXTS, "1032");
    expect(&s, "seal b c d e f g h i j k l", &none, TEXTS, "420");

    assert_int_equal(vlm_hybrid(&i, &found, 1, NULL, NULL, 0, 2, &s.texts[0], &s.asked), 0);
    assert_int_equal(found, 0);

    for (i = 0; i < TEXTS; i++) {
        free(s.texts[i].terms);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(products_of_rounded_vectors_are_near),
        cmocka_unit_test(ranks_are_joined)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
