/*
 * Log-probabilities are sent with their token's text: not before, not without, and never those of a
 * stop string.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "run/logprobs.h"

#define ROOM  16

static float        raw[4] = { 1, 2, 3, 4 };
static vlm_token_t  tokens[ROOM];
static size_t       token_end[ROOM];


static vlm_job_t
make_job(void)
{
    vlm_job_t  j;

    memset(&j, 0, sizeof(j));
    j.raw = raw;
    j.tokens = tokens;
    j.token_end = token_end;
    j.log_sum = 5;

    return j;
}


/* A token of so many bytes came, and so many bytes at the end are no character yet. */
static void
add(vlm_job_t *j, size_t fed, size_t appended, size_t held)
{
    j->bytes += appended;
    vlm_logprobs_add(j, 1);
    vlm_logprobs_place(j, held, fed);
}


static uint32_t
clear_to(vlm_job_t *j, size_t clear)
{
    j->clear = clear;

    return vlm_logprobs_clear(j);
}


static void
a_token_is_sent_once_all_of_its_text_is_clear(void **state)
{
    vlm_job_t  j = make_job();

    (void) state;

    add(&j, 3, 3, 0);
    add(&j, 4, 4, 0);
    assert_int_equal(clear_to(&j, 0), 0);
    assert_int_equal(clear_to(&j, 2), 0);
    assert_int_equal(clear_to(&j, 3), 1);
    assert_int_equal(clear_to(&j, 6), 1);
    assert_int_equal(clear_to(&j, 7), 2);
}


static void
its_log_probability_is_of_the_logits_as_they_were(void **state)
{
    vlm_job_t  j = make_job();

    (void) state;

    vlm_logprobs_add(&j, 3);
    assert_int_equal(tokens[0].picked.id, 3);
    assert_true(tokens[0].picked.logprob == -1);
}


static void
half_a_character_is_sent_with_the_other_half(void **state)
{
    vlm_job_t  j = make_job();

    (void) state;

    add(&j, 1, 1, 0);
    add(&j, 2, 0, 2);                  /* two bytes of three */
    assert_int_equal(clear_to(&j, 1), 1);
    add(&j, 1, 3, 0);
    assert_int_equal(clear_to(&j, 1), 1);
    assert_int_equal(clear_to(&j, 4), 3);
}


static void
a_character_in_three_tokens_holds_all_three(void **state)
{
    vlm_job_t  j = make_job();

    (void) state;

    add(&j, 3, 2, 1);                  /* two letters, and a first byte */
    assert_int_equal(clear_to(&j, 2), 0);
    add(&j, 1, 0, 2);
    assert_int_equal(clear_to(&j, 2), 0);
    add(&j, 2, 3, 1);                  /* the last byte, and the next character's first */
    assert_int_equal(clear_to(&j, 5), 2);
    add(&j, 0, 0, 1);                  /* a control token has no text */
    assert_int_equal(clear_to(&j, 5), 2);
    j.bytes += 3;                      /* the end: held bytes become U+FFFD */
    vlm_logprobs_place(&j, 0, 0);
    assert_int_equal(clear_to(&j, 7), 2);
    assert_int_equal(clear_to(&j, 8), 4);
}


static void
a_token_without_text_is_sent_with_the_one_before(void **state)
{
    vlm_job_t  j = make_job();

    (void) state;

    add(&j, 2, 2, 0);
    add(&j, 0, 0, 0);
    assert_int_equal(clear_to(&j, 1), 0);
    assert_int_equal(clear_to(&j, 2), 2);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_token_is_sent_once_all_of_its_text_is_clear),
        cmocka_unit_test(its_log_probability_is_of_the_logits_as_they_were),
        cmocka_unit_test(half_a_character_is_sent_with_the_other_half),
        cmocka_unit_test(a_character_in_three_tokens_holds_all_three),
        cmocka_unit_test(a_token_without_text_is_sent_with_the_one_before)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
