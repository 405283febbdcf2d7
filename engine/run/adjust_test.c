/* One row of logits: its log-probabilities and its adjustments, against the formulas. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/grammar.h"
#include "run/hold.h"
#include "text/sample.h"

#define N_IDS  302                     /* of the sample vocabulary */
#define ROOM   32                      /* tokens of an answer */

static vlm_tokenizer_t    *tokenizer;
static vlm_tokens_t       *pieces;
static vlm_grammar_t      *object;
static vlm_match_t         match;
static uint32_t            allowed[(N_IDS + 31) / 32];
static vlm_adjust_t        a;
static float               row[N_IDS], raw[N_IDS];
static vlm_token_t         tokens[ROOM];
static vlm_count_t         counts[ROOM];


static int
open_all(void **state)
{
    char       *text;
    vlm_err_t   err = { VLM_OK, "" };

    (void) state;

    text = vlm_sample("", "", VLM_SAMPLE_REST);
    tokenizer = vlm_sample_read(text, &err);
    free(text);
    assert_non_null(tokenizer);
    assert_int_equal(vlm_vocab_size(tokenizer), N_IDS);

    pieces = vlm_tokens_open(tokenizer, N_IDS, NULL, 0, &err);
    assert_non_null(pieces);
    object = vlm_object_make(pieces, &err);
    assert_non_null(object);

    assert_int_equal(vlm_adjust_open(&a, N_IDS, tokenizer, pieces, &err), 0);

    return 0;
}


static int
close_all(void **state)
{
    (void) state;

    vlm_adjust_close(&a);
    vlm_grammar_free(object);
    vlm_tokens_close(pieces);
    vlm_tokenizer_close(tokenizer);

    return 0;
}


/* Logits from -9 to 9, some of them equal; the same each time. */
static int
fill_row(void **state)
{
    uint32_t  i, x;

    (void) state;

    for (x = 7, i = 0; i < N_IDS; i++) {
        x = x * 1664525 + 1013904223;
        row[i] = (float) ((int) (x >> 24) % 145) / 8 - 9;
    }

    return 0;
}


static vlm_job_t
make_job(void)
{
    vlm_job_t  j;

    memset(&j, 0, sizeof(j));
    j.sampling.max_tokens = ROOM;

    return j;
}


static void
hold_to_object(vlm_job_t *j)
{
    j->sampling.grammar = object;
    j->match = &match;
    j->allowed = allowed;
    j->hold = VLM_HOLD_VALUE;
    vlm_match_start(&match, object);
}


static vlm_adjusted_t
adjust(vlm_job_t *j)
{
    assert_true(vlm_adjust_wanted(j));
    assert_int_equal(vlm_hold_mask(&a, NULL, j, NULL), 1);
    memcpy(vlm_adjust_raw(&a, j), row, sizeof(row));

    return vlm_adjust(&a, j);
}


static double
log_sum(void)
{
    double    sum;
    uint32_t  i;

    for (sum = 0, i = 0; i < N_IDS; i++) {
        sum += exp(row[i]);
    }

    return log(sum);
}


static void
a_job_without_options_is_left_alone(void **state)
{
    vlm_job_t  j = make_job();

    (void) state;

    j.sampling.temperature = 0.7f;
    j.sampling.top_k = 50;
    j.sampling.top_p = 0.9f;
    j.sampling.repetition_penalty = 1.05f;
    assert_false(vlm_adjust_wanted(&j));
}


static void
the_likeliest_come_in_order_and_the_first_of_equal_ones_first(void **state)
{
    uint32_t   i, k, better, room;
    vlm_job_t  j;

    (void) state;

    for (room = 0; room <= VLM_TOP_LOGPROBS; room++) {
        j = make_job();
        j.sampling.logprobs = 1;
        j.sampling.top_logprobs = room;
        j.raw = raw;
        j.tokens = tokens;

        assert_int_equal(adjust(&j), VLM_ADJUST_KEEP);
        assert_memory_equal(raw, row, sizeof(row));
        assert_true(fabs(j.log_sum - log_sum()) < 1e-5);
        assert_int_equal(tokens[0].n_top, room);

        for (i = 0; i < room; i++) {
            for (better = 0, k = 0; k < N_IDS; k++) {
                better += row[k] > row[tokens[0].top[i].id]
                          || (row[k] == row[tokens[0].top[i].id] && k < tokens[0].top[i].id);
            }

            assert_int_equal(better, i);
            assert_true(fabs(tokens[0].top[i].logprob - (row[tokens[0].top[i].id] - log_sum()))
                        < 1e-5);
        }
    }
}


static void
fewer_than_requested_come_if_there_are_fewer(void **state)
{
    uint32_t   i;
    vlm_job_t  j = make_job();

    (void) state;

    j.sampling.logprobs = 1;
    j.sampling.top_logprobs = 5;
    j.raw = raw;
    j.tokens = tokens;

    for (i = 0; i < N_IDS; i++) {
        row[i] = i == 7 || i == 300 ? 1 : -INFINITY;
    }

    assert_int_equal(adjust(&j), VLM_ADJUST_KEEP);
    assert_int_equal(tokens[0].n_top, 2);
    assert_int_equal(tokens[0].top[0].id, 7);
    assert_int_equal(tokens[0].top[1].id, 300);
    assert_true(fabs(tokens[0].top[0].logprob - log(0.5)) < 1e-6);
}


/* logit - count * frequency - (count > 0) * presence, as OpenAI's reference writes it. */
static void
penalties_count_the_answers_own_tokens(void **state)
{
    float      want;
    uint32_t   i, n;
    vlm_job_t  j = make_job();

    (void) state;

    j.sampling.frequency_penalty = 0.5f;
    j.sampling.presence_penalty = -1.25f;
    j.counts = counts;

    for (i = 0; i < 6; i++) {
        assert_int_equal(vlm_adjust_picked(&a, &j, tokenizer, 10, NULL), 0);
    }

    assert_int_equal(vlm_adjust_picked(&a, &j, tokenizer, 200, NULL), 0);
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);

    for (i = 0; i < N_IDS; i++) {
        n = i == 10 ? 6 : i == 200;
        want = row[i] - (float) n * 0.5f + (n > 0 ? 1.25f : 0);
        assert_true(a.row[i] == want);
    }
}


static void
a_bias_is_added_and_one_of_minus_100_forbids(void **state)
{
    uint32_t          i;
    vlm_job_t         j = make_job();
    const vlm_bias_t  bias[] = { { 0, 2.5f }, { 301, -100 }, { 9, 100 }, { 10, -99 } };

    (void) state;

    j.sampling.bias = bias;
    j.sampling.n_bias = 4;
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);

    assert_true(a.row[0] == row[0] + 2.5f);
    assert_true(a.row[9] == row[9] + 100);
    assert_true(a.row[10] == row[10] - 99);
    assert_true(a.row[301] == -INFINITY);

    for (i = 11; i < 301; i++) {
        assert_true(a.row[i] == row[i]);
    }
}


static void
a_bias_that_forbids_all_leaves_nothing(void **state)
{
    uint32_t    i;
    vlm_job_t   j = make_job();
    vlm_bias_t  bias[N_IDS];

    (void) state;

    for (i = 0; i < N_IDS; i++) {
        bias[i].id = i;
        bias[i].bias = -100;
    }

    j.sampling.bias = bias;
    j.sampling.n_bias = N_IDS;
    assert_int_equal(adjust(&j), VLM_ADJUST_NOTHING_LEFT);

    j.sampling.n_bias--;
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);

    /* An object can be ended whatever the bias says. */

    j.sampling.n_bias = N_IDS;
    hold_to_object(&j);
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
    assert_true(isfinite(a.row['{']));
}


static void
json_leaves_what_may_come_and_fits(void **state)
{
    uint32_t   i;
    vlm_job_t  j = make_job();

    (void) state;

    hold_to_object(&j);
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);

    for (i = 0; i < N_IDS; i++) {
        assert_true(i == '{' ? a.row[i] == row[i] : a.row[i] == -INFINITY);
    }

    assert_int_equal(vlm_adjust_picked(&a, &j, tokenizer, '{', NULL), 0);
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
    assert_true(a.row['"'] == row['"'] && a.row['}'] == row['}'] && a.row[' '] == row[' ']);
    assert_true(a.row['a'] == -INFINITY && a.row[300] == -INFINITY);

    /* After a blank there is one token of room: only the brace. */

    j.usage.completion_tokens = ROOM - 1;
    j.masked = VLM_UNMASKED;
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
    assert_true(a.row['}'] == row['}'] && a.row['"'] == -INFINITY && a.row[' '] == -INFINITY);

    assert_int_equal(vlm_adjust_picked(&a, &j, tokenizer, 'x', NULL), -1);
    assert_int_equal(vlm_adjust_picked(&a, &j, tokenizer, '}', NULL), 0);
    assert_true(vlm_match_done(&match));
}


static void
log_probabilities_are_those_of_the_raw_logits(void **state)
{
    vlm_job_t         j = make_job();
    const vlm_bias_t  bias[] = { { 5, 50 } };

    (void) state;

    j.sampling.bias = bias;
    j.sampling.n_bias = 1;
    j.sampling.logprobs = 1;
    j.raw = raw;
    j.tokens = tokens;

    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
    assert_memory_equal(raw, row, sizeof(row));
    assert_true(a.row[5] == row[5] + 50);
}


static void
a_row_that_is_not_finite_is_left_for_the_sampler_to_report(void **state)
{
    vlm_job_t  j = make_job();

    (void) state;

    hold_to_object(&j);
    row[17] = NAN;
    assert_int_equal(adjust(&j), VLM_ADJUST_KEEP);
    row[17] = INFINITY;
    assert_int_equal(adjust(&j), VLM_ADJUST_KEEP);
    row[17] = -INFINITY;
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
}


/* The job of a prompt, whose answer is empty yet. */
static vlm_job_t
make_continued(vlm_prompt_t *p, uint32_t *token, uint32_t n, uint32_t *picked)
{
    vlm_job_t  j = make_job();

    memset(p, 0, sizeof(*p));
    p->token = token;
    p->n = n;
    j.prompt = p;
    j.picked = picked;

    return j;
}


static void
assert_forbidden(const uint32_t *ids, uint32_t n)
{
    uint32_t  i, k;

    for (i = 0; i < N_IDS; i++) {
        for (k = 0; k < n && ids[k] != i; k++) { /* void */ }

        assert_true(k < n ? a.row[i] == -INFINITY : a.row[i] == row[i]);
    }
}


/* As transformers does: after 5 6 7 5 the pair 5 6 is there already; after one more 6, 6 7 is. */
static void
no_ngram_of_prompt_and_answer_stands_twice(void **state)
{
    uint32_t      token[] = { 5, 6, 7, 5 }, picked[ROOM], after[] = { 6 }, later[] = { 7 };
    uint32_t      all[] = { 5, 6, 7 };
    vlm_job_t     j;
    vlm_prompt_t  p;

    (void) state;

    j = make_continued(&p, token, 4, picked);
    j.sampling.no_repeat_ngram_size = 2;
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
    assert_forbidden(after, 1);

    assert_int_equal(vlm_adjust_picked(&a, &j, tokenizer, 6, NULL), 0);
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
    assert_forbidden(later, 1);

    j.sampling.no_repeat_ngram_size = 3;           /* 7 would end 5 6 7 */
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
    assert_forbidden(later, 1);

    j.sampling.no_repeat_ngram_size = 4;           /* nothing stands before 7 5 6 twice */
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
    assert_forbidden(NULL, 0);

    j.sampling.no_repeat_ngram_size = 60;          /* more than there are tokens */
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
    assert_forbidden(NULL, 0);

    j.sampling.no_repeat_ngram_size = 1;
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
    assert_forbidden(all, 3);
}


static void
an_answer_does_not_end_before_it_has_min_tokens(void **state)
{
    uint32_t   eos[] = { 3, 250 };
    vlm_job_t  j = make_job();

    (void) state;

    a.eos = eos;
    a.n_eos = 2;
    j.sampling.min_tokens = 2;
    j.usage.completion_tokens = 1;
    assert_int_equal(adjust(&j), VLM_ADJUST_PUT);
    assert_forbidden(eos, 2);

    j.usage.completion_tokens = 2;
    assert_false(vlm_adjust_wanted(&j));
    a.n_eos = 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup(a_job_without_options_is_left_alone, fill_row),
        cmocka_unit_test_setup(the_likeliest_come_in_order_and_the_first_of_equal_ones_first,
                               fill_row),
        cmocka_unit_test_setup(fewer_than_requested_come_if_there_are_fewer, fill_row),
        cmocka_unit_test_setup(penalties_count_the_answers_own_tokens, fill_row),
        cmocka_unit_test_setup(a_bias_is_added_and_one_of_minus_100_forbids, fill_row),
        cmocka_unit_test_setup(a_bias_that_forbids_all_leaves_nothing, fill_row),
        cmocka_unit_test_setup(no_ngram_of_prompt_and_answer_stands_twice, fill_row),
        cmocka_unit_test_setup(an_answer_does_not_end_before_it_has_min_tokens, fill_row),
        cmocka_unit_test_setup(json_leaves_what_may_come_and_fits, fill_row),
        cmocka_unit_test_setup(log_probabilities_are_those_of_the_raw_logits, fill_row),
        cmocka_unit_test_setup(a_row_that_is_not_finite_is_left_for_the_sampler_to_report, fill_row)
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
