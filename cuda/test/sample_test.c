/*
 * Sampling on the device against its definition: the same tokens, the same log-probabilities.
 *
 * The definition adds in double and the device in units of 2^-43, so only a draw within some 1e-8
 * of a border could differ: none of these does.
 */

#include "pair.h"

#define MAX_V  2003
#define ROWS   4

typedef struct {
    uint32_t    V, n_vocab;
    float       logits[ROWS * MAX_V];
    uint32_t    seen[ROWS * (MAX_V / 32 + 1)];
    vlm_pick_t  pick[ROWS];
} case_t;

typedef struct {
    uint32_t  token[ROWS];
    float     logprob[ROWS];
    uint32_t  seen[ROWS * (MAX_V / 32 + 1)];
} picked_t;

static case_t  c;


static int
open_pair(void **state)
{
    vlm_need_t  need = { VLM_INT8, 64, 64, 1, 64, 64, MAX_V, ROWS, 0 };

    (void) state;

    return pair_open(VLM_INT8, &need, &need);
}


static void
make_case(uint32_t V, uint32_t n_vocab, uint64_t seed)
{
    uint32_t  i, r;
    uint64_t  state = seed;

    memset(&c, 0, sizeof(c));
    c.V = V;
    c.n_vocab = n_vocab;

    for (i = 0; i < ROWS * V; i++) {
        c.logits[i] = i % V < n_vocab ? 8 * vlm_random_float(&state) : i % 2 ? NAN : 1e9f;
    }

    for (i = 0; i < COUNT(c.seen); i++) {
        c.seen[i] = vlm_random(&state) & vlm_random(&state);
    }

    for (r = 0; r < ROWS; r++) {
        c.pick[r] = (vlm_pick_t) { r == 0 ? 0 : 0.4f * (float) r, 1, 1.2f, 0, seed * 7 + r,
                                   (uint32_t) seed, ROWS - 1 - r };
    }
}


static void
sample_on(side_t *s, picked_t *p)
{
    void         *token, *logprob, *seen, *logits;
    uint32_t      words;
    vlm_batch_t   b;

    pair_reset();
    memset(&b, 0, sizeof(b));
    memset(p, 0, sizeof(*p));
    words = (c.V + 31) / 32;
    b.R = ROWS;
    b.pick = put_bytes(s, c.pick, sizeof(c.pick));
    logits = put_bytes(s, c.logits, ROWS * c.V * sizeof(float));
    seen = put_bytes(s, c.seen, ROWS * words * sizeof(uint32_t));
    token = take_bytes(s, sizeof(p->token));
    logprob = take_bytes(s, sizeof(p->logprob));

    s->ops->sample(s->d, logits, c.V, c.n_vocab, &b, seen, words, token, logprob);

    s->ops->basic->get(s->d, p->token, token, sizeof(p->token));
    s->ops->basic->get(s->d, p->logprob, logprob, sizeof(p->logprob));
    s->ops->basic->get(s->d, p->seen, seen, ROWS * words * sizeof(uint32_t));
    settle(s);
}


static void
compare(const char *what)
{
    uint32_t  i, r;
    picked_t  want, got, again;

    sample_on(&host, &want);

    for (i = 0; i < SEEDS; i++) {
        use_seed(i);
        sample_on(&card, i == 0 ? &got : &again);

        if (i > 0) {
            assert_memory_equal(&again, &got, sizeof(got));
        }
    }

    for (r = 0; r < ROWS; r++) {
        if (got.token[r] != want.token[r]
            || !(fabsf(got.logprob[r] - want.logprob[r]) <= 2e-5f + 1e-6f * fabsf(want.logprob[r])))
        {
            fail_msg("%s, V %u, row %u: token %u (%g), not %u (%g)", what, c.V, r, got.token[r],
                     (double) got.logprob[r], want.token[r], (double) want.logprob[r]);
        }
    }

    assert_memory_equal(got.seen, want.seen, sizeof(want.seen));
}


static const uint32_t  sizes[][2] = {
    { 1, 1 }, { 2, 2 }, { 33, 31 }, { 64, 64 }, { 600, 569 }, { 1025, 1025 }, { MAX_V, MAX_V - 7 }
};


static void
greedy_and_drawn_tokens_are_those_of_the_definition(void **state)
{
    uint32_t  i;

    (void) state;

    for (i = 0; i < COUNT(sizes) * 3; i++) {
        make_case(sizes[i / 3][0], sizes[i / 3][1], i + 1);
        compare("all tokens");
    }
}


static void
top_k_and_top_p_leave_what_the_definition_leaves(void **state)
{
    uint32_t        i, r;
    const uint32_t  k[] = { 0, 1, 2, 40, 400 };
    const float     p[] = { 1, 0.9f, 0.5f, 0.1f, 0 };

    (void) state;

    for (i = 0; i < COUNT(sizes) * 25; i += 2 + i % 3) {
        make_case(sizes[i / 25][0], sizes[i / 25][1], i + 100);

        for (r = 0; r < ROWS; r++) {
            c.pick[r].top_k = k[i % 5];
            c.pick[r].top_p = p[i / 5 % 5];
        }

        compare("filtered");
    }
}


/* Few different logits: borders fall among equal ones. */
static void
of_equal_logits_the_same_ones_stay(void **state)
{
    uint32_t  i, j, r;

    (void) state;

    for (i = 0; i < 24; i++) {
        make_case(300, 300, i + 900);

        for (j = 0; j < ROWS * 300; j++) {
            c.logits[j] = (float) (j * 7 % (2 + i % 4));
        }

        for (r = 0; r < ROWS; r++) {
            c.pick[r].repetition_penalty = i % 2 ? 1 : 1.1f;
            c.pick[r].top_k = i % 3 * 37;
            c.pick[r].top_p = 0.33f * (float) (r % 3 + 1) - 0.05f;
        }

        compare("equals");
    }
}


/* Logits of a broken model end the answer. */
static void
logits_that_are_no_numbers_are_reported_and_mark_nothing(void **state)
{
    uint32_t     i;
    picked_t     p;
    const float  bad[] = { NAN, -NAN, INFINITY };

    (void) state;

    for (i = 0; i < 6; i++) {
        make_case(600, 590, i);
        c.logits[600 + i * 117] = bad[i % 3];

        if (i == 5) {
            for (uint32_t j = 0; j < 600; j++) {
                c.logits[600 + j] = -INFINITY;
            }
        }

        use_seed(i);
        sample_on(&card, &p);
        assert_int_equal(p.token[1], 0);
        assert_true(isnan(p.logprob[1]));
        assert_true(isfinite(p.logprob[0]) && isfinite(p.logprob[2]) && isfinite(p.logprob[3]));
        assert_memory_equal(p.seen + 2 * 19, c.seen + 2 * 19, 19 * sizeof(uint32_t));
    }
}


static void
extreme_settings_are_those_of_the_definition(void **state)
{
    uint32_t     i, r;
    const float  temperatures[] = { 1e-45f, 1e-30f, 1e-6f, 100 };
    const float  penalties[] = { 0.01f, 0.1f, 1, 10 };

    (void) state;

    for (i = 0; i < 4; i++) {
        make_case(600, 600, i + 40);

        for (r = 0; r < ROWS; r++) {
            c.pick[r].temperature = temperatures[i];
            c.pick[r].repetition_penalty = penalties[r];
            c.pick[r].top_p = 0.5f;
        }

        compare("extreme");
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(greedy_and_drawn_tokens_are_those_of_the_definition),
        cmocka_unit_test(top_k_and_top_p_leave_what_the_definition_leaves),
        cmocka_unit_test(of_equal_logits_the_same_ones_stay),
        cmocka_unit_test(logits_that_are_no_numbers_are_reported_and_mark_nothing),
        cmocka_unit_test(extreme_settings_are_those_of_the_definition)
    };

    return cmocka_run_group_tests(tests, open_pair, pair_close);
}
