/*
 * Guessed tokens: which are found, when they rest, and that an answer with them is the answer
 * without them, bit by bit.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "run/fixture.h"
#include "run/guess.h"

#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))


static void
the_latest_place_with_the_same_three_tokens_comes_before_one_with_two(void **state)
{
    uint32_t               g[VLM_GUESSES];
    static const uint32_t  t[] = { 1, 2, 3, 40, 41, 1, 2, 3, 50, 51, 9, 2, 3, 60, 61, 7, 1, 2 };

    (void) state;

    assert_int_equal(vlm_guess_tokens(t, 18, 3, 2, g), 2);
    assert_int_equal(g[0], 50);
    assert_int_equal(g[1], 51);

    assert_int_equal(vlm_guess_tokens(t, 18, 3, 1, g), 1);
    assert_int_equal(vlm_guess_tokens(t, 18, 3, 0, g), 0);

    /* 7 1 | 2 3 stands nowhere; 2 3 does, latest before 60. */

    assert_int_equal(vlm_guess_tokens(t, 12, 3, 2, g), 2);
    assert_int_equal(g[0], 50);
    assert_int_equal(vlm_guess_tokens(t, 18, 99, 2, g), 0);
}


static void
guesses_end_with_the_last_token(void **state)
{
    uint32_t               g[VLM_GUESSES];
    static const uint32_t  same[] = { 5, 5, 5, 5 }, turns[] = { 8, 6, 7, 6 };

    (void) state;

    /* The place before the last one: behind it stands the last token alone. */

    assert_int_equal(vlm_guess_tokens(same, 4, 5, 2, g), 1);
    assert_int_equal(g[0], 5);

    assert_int_equal(vlm_guess_tokens(turns, 4, 7, 2, g), 2);
    assert_int_equal(g[0], 6);
    assert_int_equal(g[1], 7);

    assert_int_equal(vlm_guess_tokens(turns, 2, 7, 2, g), 0);
}


static void
wrong_guesses_are_followed_by_a_rest(void **state)
{
    uint32_t     i, n;
    vlm_guess_t  g = { 0, 0 };

    (void) state;

    for (n = 0; vlm_guess_pays(&g); n++) {
        assert_true(n < 100);
        vlm_guess_count(&g, 2, 0);
    }

    assert_true(n >= 3);

    for (i = 0; !vlm_guess_pays(&g); i++) {
        assert_true(i < 100);
    }

    assert_true(i >= 10);

    for (i = 0; i < 100; i++) {
        assert_true(vlm_guess_pays(&g));
        vlm_guess_count(&g, 2, i % 2 == 0 ? 2 : 0);
    }
}


/* ---- answers ------------------------------------------------------------- */



static vlm_t *
open_engine(uint32_t slots)
{
    vlm_conf_t  conf;

    vlm_tiny_conf(&conf);
    conf.weights = VLM_INT8;
    conf.slots = slots;

    return vlm_tiny_open(&conf);
}


/* Answer i: greedy or not, with and without a penalty, long enough to go round in circles. */
static vlm_sampling_t
sampling_of(uint32_t i)
{
    vlm_sampling_t  s = vlm_tiny_sampling(50 + i);

    s.temperature = i % 3 == 0 ? 0 : 0.2f * (float) (i % 3);
    s.repetition_penalty = i % 2 == 0 ? 1 : 1.1f;
    s.max_tokens = 120;

    return s;
}


static vlm_prompt_t *
prompt_of(const vlm_t *v, uint32_t i)
{
    char  text[160];

    (void) snprintf(text, sizeof(text), "one two three %u, one two three %u, one two three", i, i);

    return vlm_tiny_prompt(v, text, i % 4 == 3);
}


/* With one slot there is no room for a guess's logits. */
static void
an_answer_is_the_same_with_guesses_and_without(void **state)
{
    vlm_t           *with, *without;
    uint32_t         i;
    vlm_stat_t       stat;
    vlm_answer_t     a, b;
    vlm_sampling_t   s;

    (void) state;

    with = open_engine(4);
    without = open_engine(1);

    for (i = 0; i < 12; i++) {
        s = sampling_of(i);
        vlm_tiny_alone(with, prompt_of(with, i), &s, &a);
        vlm_tiny_alone(without, prompt_of(without, i), &s, &b);

        assert_string_equal(a.text, b.text);
        assert_int_equal(a.finish, b.finish);
        assert_int_equal(a.usage.completion_tokens, b.usage.completion_tokens);
    }

    vlm_stat(without, &stat);
    assert_int_equal(stat.guessed_tokens, 0);

    vlm_stat(with, &stat);
    print_message("%s: %u of %u guesses were picked, of %u tokens\n", stat.device,
                  (uint32_t) stat.taken_tokens, (uint32_t) stat.guessed_tokens,
                  (uint32_t) stat.completion_tokens);

    if (strstr(stat.device, "avx512") != NULL || strstr(stat.device, "amx") != NULL) {
        assert_true(stat.taken_tokens > 0);
        assert_true(stat.taken_tokens < stat.guessed_tokens);
    }

    vlm_close(with);
    vlm_close(without);
}


static void
two_answers_at_once_are_those_that_each_has_alone(void **state)
{
    vlm_t           *v, *alone;
    uint32_t         i, k;
    vlm_answer_t     a[2], want;
    vlm_sampling_t   s;

    (void) state;

    v = open_engine(4);
    alone = open_engine(1);

    for (i = 0; i < 8; i += 2) {
        for (k = 0; k < 2; k++) {
            s = sampling_of(i + k);
            (void) vlm_tiny_submit(v, prompt_of(v, i + k), &s, &a[k]);
        }

        vlm_tiny_run(v);
        vlm_tiny_drain(v, NULL);

        for (k = 0; k < 2; k++) {
            s = sampling_of(i + k);
            vlm_tiny_alone(alone, prompt_of(alone, i + k), &s, &want);
            assert_string_equal(a[k].text, want.text);
        }
    }

    vlm_close(v);
    vlm_close(alone);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_latest_place_with_the_same_three_tokens_comes_before_one_with_two),
        cmocka_unit_test(guesses_end_with_the_last_token),
        cmocka_unit_test(wrong_guesses_are_followed_by_a_rest),
        cmocka_unit_test(an_answer_is_the_same_with_guesses_and_without),
        cmocka_unit_test(two_answers_at_once_are_those_that_each_has_alone)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
