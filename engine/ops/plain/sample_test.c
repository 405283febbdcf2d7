/*
 * Sampling against transformers' logits processors (t/fixtures/sample/make.py), and the draw
 * against the probabilities that it should follow.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/kernels.h"

#define CASES    "t/fixtures/sample/cases.txt"
#define MAX_V    700
#define PADDING  37                    /* rows of the head that no token has */
#define WORDS    (MAX_V / 32 + 1)

typedef struct {
    char        name[32];
    vlm_pick_t  pick;
    uint32_t    V, n_kept;
    uint32_t    seen[WORDS], kept[MAX_V];
    float       logits[MAX_V];
    double      p[MAX_V];              /* [n_kept] */
} case_t;


static uint32_t
read_numbers(FILE *f, const char *name, double *to)
{
    int       c;
    char      word[16];
    uint32_t  n;

    assert_int_equal(fscanf(f, "%15s", word), 1);
    assert_string_equal(word, name);

    for (n = 0; (c = getc(f)) == ' '; n++) {
        assert_true(n < MAX_V);
        assert_int_equal(fscanf(f, "%lf", &to[n]), 1);
    }

    return n;
}


/* 0: no more cases. */
static int
read_case(FILE *f, case_t *c)
{
    double    x[MAX_V];
    uint32_t  i, n;

    memset(c, 0, sizeof(*c));

    if (fscanf(f, " case %31s %f %u %f %f ", c->name, &c->pick.temperature, &c->pick.top_k,
               &c->pick.top_p, &c->pick.repetition_penalty) != 5)
    {
        return 0;
    }

    n = read_numbers(f, "seen", x);

    for (i = 0; i < n; i++) {
        c->seen[(uint32_t) x[i] / 32] |= 1u << ((uint32_t) x[i] % 32);
    }

    c->V = read_numbers(f, "logits", x);

    for (i = 0; i < c->V; i++) {
        c->logits[i] = (float) (x[i] / 8);
    }

    for (i = c->V; i < c->V + PADDING; i++) {
        c->logits[i] = i % 2 == 0 ? 1e9f : NAN;
    }

    c->n_kept = read_numbers(f, "kept", x);

    for (i = 0; i < c->n_kept; i++) {
        c->kept[i] = (uint32_t) x[i];
    }

    assert_int_equal(read_numbers(f, "probs", c->p), c->n_kept);

    for (i = 0; i < c->n_kept; i++) {
        c->p[i] /= 1e8;
    }

    return 1;
}


/* Of filtered logits. */
static double
probability(const float *logits, uint32_t V, uint32_t id)
{
    double    max, sum;
    uint32_t  i;

    for (max = -INFINITY, i = 0; i < V; i++) {
        max = fmax(max, logits[i]);
    }

    for (sum = 0, i = 0; i < V; i++) {
        sum += exp(logits[i] - max);
    }

    return exp(logits[id] - max) / sum;
}


/* The input of the processors after the penalty. */
static float
penalised(const case_t *c, uint32_t i)
{
    float  x;

    x = c->logits[i];

    if ((c->seen[i / 32] >> (i % 32) & 1) == 0) {
        return x;
    }

    return x < 0 ? x * c->pick.repetition_penalty : x / c->pick.repetition_penalty;
}


/* Of the tokens whose logits equal token i's: how many there are, we keep, the reference keeps. */
static void
count_equals(const case_t *c, const float *filtered, uint32_t i, uint32_t count[3], double *p)
{
    uint32_t  j, k;

    count[0] = count[1] = count[2] = 0;
    *p = 0;

    for (k = 0, j = 0; j < c->V; j++) {
        k += k < c->n_kept && c->kept[k] < j;

        if (penalised(c, j) != penalised(c, i)) {
            continue;
        }

        count[0]++;
        count[1] += filtered[j] != -INFINITY;

        if (k < c->n_kept && c->kept[k] == j) {
            count[2]++;
            *p = c->p[k];
        }
    }
}


/*
 * The same ids, but where top p's border runs through equal logits: the reference sorts them in
 * no order, so there it is as many of them, and ours are the first.
 */
static void
the_reference_keeps_the_same_tokens_with_the_same_probabilities(void **state)
{
    FILE             *f;
    float             filtered[MAX_V];
    case_t            c;
    double            p;
    uint32_t          i, n, count[3];
    vlm_candidate_t   work[MAX_V];

    (void) state;

    f = fopen(CASES, "r");
    assert_non_null(f);

    for (n = 0; read_case(f, &c); n++) {
        memcpy(filtered, c.logits, sizeof(filtered));
        assert_int_equal(vlm_sample_filter(filtered, c.V + PADDING, c.V, c.seen, &c.pick, work), 0);

        for (i = 0; i < c.V; i++) {
            count_equals(&c, filtered, i, count, &p);

            if (count[1] != count[2]) {
                fail_msg("%s: %u of %u tokens like %u are kept, not %u", c.name, count[1],
                         count[0], i, count[2]);
            }

            if (filtered[i] != -INFINITY && !(fabs(probability(filtered, c.V, i) - p) < 1e-5)) {
                fail_msg("%s: token %u has %g, not %g", c.name, i, probability(filtered, c.V, i),
                         p);
            }
        }

        for (i = c.V; i < c.V + PADDING; i++) {
            assert_true(filtered[i] == -INFINITY);
        }
    }

    fclose(f);
    assert_true(n >= 60);
}


static void
of_equal_logits_top_p_keeps_the_first(void **state)
{
    float             logits[10];
    uint32_t          i, seen[1] = { 0 };
    vlm_pick_t        pick = { .temperature = 1, .top_p = 0.35f, .repetition_penalty = 1 };
    vlm_candidate_t   work[10];

    (void) state;

    for (i = 0; i < 10; i++) {
        logits[i] = i < 2 ? -50 : 3;
    }

    assert_int_equal(vlm_sample_filter(logits, 10, 10, seen, &pick, work), 0);

    for (i = 0; i < 10; i++) {
        assert_int_equal(logits[i] != -INFINITY, i >= 2 && i < 5);
    }
}


static void
greedy_takes_the_largest_after_the_penalty(void **state)
{
    float             logits[5] = { 1, 4, 3.9f, -1, 9 }, logprob;
    uint32_t          seen[1] = { 1u << 1 };
    vlm_pick_t        pick = { .temperature = 0, .top_p = 1, .repetition_penalty = 1.1f };
    vlm_candidate_t   work[5];

    (void) state;

    assert_int_equal(vlm_sample_filter(logits, 5, 4, seen, &pick, work), 0);
    assert_int_equal(vlm_sample_pick(logits, 5, &pick, &logprob), 2);
    assert_true(fabs((double) logprob - log(probability(logits, 5, 2))) < 1e-6);
}


static void
of_equal_logits_greedy_takes_the_first(void **state)
{
    float       logits[4] = { 1, 7, 7, 7 }, logprob;
    vlm_pick_t  pick = { .temperature = 0 };

    (void) state;

    assert_int_equal(vlm_sample_pick(logits, 4, &pick, &logprob), 1);
}


/* 100,000 draws: chi-square with 23 degrees of freedom exceeds 49.7 once in a thousand. */
static void
draws_follow_the_probabilities(void **state)
{
    float       logits[32], logprob;
    double      chi, expected;
    uint32_t    i, n, id, count[32];
    uint64_t    seed;
    vlm_pick_t  pick = { .temperature = 1 };

    (void) state;

    for (i = 0; i < 32; i++) {
        logits[i] = i % 4 == 3 ? -INFINITY : (float) (i % 7) / 3;
    }

    for (seed = 1; seed <= 3; seed++) {
        memset(count, 0, sizeof(count));

        for (n = 0; n < 100000; n++) {
            pick.seed = seed == 3 ? n : seed;      /* many steps of one seed, one step of many */
            pick.step = seed == 3 ? 0 : n;
            id = vlm_sample_pick(logits, 32, &pick, &logprob);
            count[id]++;
        }

        for (chi = 0, i = 0; i < 32; i++) {
            if (i % 4 == 3) {
                assert_int_equal(count[i], 0);
                continue;
            }

            expected = 100000 * probability(logits, 32, i);
            chi += (count[i] - expected) * (count[i] - expected) / expected;
        }

        if (chi > 49.7) {
            fail_msg("seed %u: chi-square is %g", (unsigned) seed, chi);
        }
    }
}


static void
a_draw_depends_on_seed_and_step_alone(void **state)
{
    float       logits[600], logprob;
    uint32_t    i, same, other, ids[64];
    vlm_pick_t  pick = { .temperature = 1, .seed = 99 };

    (void) state;

    for (i = 0; i < 600; i++) {
        logits[i] = (float) (i % 3);
    }

    for (i = 0; i < 64; i++) {
        pick.step = i;
        pick.seen = i % 5;
        ids[i] = vlm_sample_pick(logits, 600, &pick, &logprob);
    }

    for (same = other = 0, i = 64; i-- > 0; /* void */) {
        pick.step = i;
        pick.seed = 99;
        same += vlm_sample_pick(logits, 600, &pick, &logprob) == ids[i];
        pick.seed = 100;
        other += vlm_sample_pick(logits, 600, &pick, &logprob) == ids[i];
    }

    assert_int_equal(same, 64);
    assert_true(other < 8);
}


static void
a_token_past_the_vocabulary_is_never_picked(void **state)
{
    float             logits[64], logprob;
    uint32_t          n, i, seen[2] = { 0, 0 };
    vlm_pick_t        pick = { .temperature = 1, .top_p = 1, .repetition_penalty = 1 };
    vlm_candidate_t   work[64];

    (void) state;

    for (n = 0; n < 400; n++) {
        for (i = 0; i < 64; i++) {
            logits[i] = i < 40 ? (float) (i % 5) : 1000;
        }

        pick.step = n;
        pick.temperature = n % 2 == 0 ? 0 : 1.5f;
        pick.top_k = n % 3 * 25;
        pick.top_p = n % 5 == 0 ? 1 : 0.9f;

        assert_int_equal(vlm_sample_filter(logits, 64, 40, seen, &pick, work), 0);
        assert_true(vlm_sample_pick(logits, 64, &pick, &logprob) < 40);
        assert_true(isfinite(logprob));
    }
}


/* Logits of a broken model must end the answer, and never give a token. */
static void
logits_that_are_no_numbers_are_seen(void **state)
{
    float             logits[50], bad[] = { NAN, -NAN, INFINITY };
    uint32_t          i, j, seen[2] = { 0, 0 };
    vlm_pick_t        pick = { .top_p = 0.9f, .repetition_penalty = 1.1f, .top_k = 10 };
    vlm_candidate_t   work[50];

    (void) state;

    for (i = 0; i < 8; i++) {
        for (j = 0; j < 50; j++) {
            logits[j] = i < 6 ? (float) j : -INFINITY;
        }

        if (i < 6) {
            logits[i * 9] = bad[i % 3];
        }

        pick.temperature = i % 2 == 0 ? 0 : 0.7f;
        assert_int_equal(vlm_sample_filter(logits, 50, 50, seen, &pick, work), -1);
    }
}


/* Finite logits are numbers at any temperature and penalty that a host lets through. */
static void
extreme_settings_overflow_nothing(void **state)
{
    float             logits[50], logprob;
    uint32_t          i, j, k, id, seen[2] = { ~0u, ~0u };
    vlm_pick_t        pick = { .top_p = 0.5f };
    vlm_candidate_t   work[50];
    const float       temperatures[] = { 1e-45f, 1e-30f, 1e-6f, 100 };
    const float       penalties[] = { 0.01f, 0.1f, 1, 10 };

    (void) state;

    for (i = 0; i < 4; i++) {
        for (k = 0; k < 4; k++) {
            for (j = 0; j < 50; j++) {
                logits[j] = (float) (j * 7 % 50) - 20.5f;
            }

            pick.temperature = temperatures[i];
            pick.repetition_penalty = penalties[k];
            assert_int_equal(vlm_sample_filter(logits, 50, 50, seen, &pick, work), 0);
            id = vlm_sample_pick(logits, 50, &pick, &logprob);

            if (!isfinite(logprob)) {
                fail_msg("temperature %g, penalty %g: log-probability %g",
                         (double) pick.temperature, (double) pick.repetition_penalty,
                         (double) logprob);
            }

            if (i < 3) {
                assert_int_equal(id * 7 % 50, 49);
            }
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_reference_keeps_the_same_tokens_with_the_same_probabilities),
        cmocka_unit_test(of_equal_logits_top_p_keeps_the_first),
        cmocka_unit_test(greedy_takes_the_largest_after_the_penalty),
        cmocka_unit_test(of_equal_logits_greedy_takes_the_first),
        cmocka_unit_test(draws_follow_the_probabilities),
        cmocka_unit_test(a_draw_depends_on_seed_and_step_alone),
        cmocka_unit_test(a_token_past_the_vocabulary_is_never_picked),
        cmocka_unit_test(logits_that_are_no_numbers_are_seen),
        cmocka_unit_test(extreme_settings_overflow_nothing)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
