/* A breaker opens after failures in a row, lets a probe through after a pause, and closes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/breaker.h"

#define LIMIT  3
#define PAUSE  5000
#define NOW    1000000


static void
failures_in_a_row_open_it(void **state)
{
    vlm_breaker_t  b = { 0 };

    (void) state;

    assert_int_equal(vlm_breaker_failed(&b, LIMIT, NOW), 0);
    assert_int_equal(vlm_breaker_failed(&b, LIMIT, NOW), 0);
    assert_int_equal(vlm_breaker_worked(&b, LIMIT), 0);

    assert_int_equal(vlm_breaker_failed(&b, LIMIT, NOW), 0);
    assert_int_equal(vlm_breaker_failed(&b, LIMIT, NOW), 0);
    assert_int_equal(vlm_breaker_state(&b, LIMIT, PAUSE, NOW), VLM_BREAKER_CLOSED);
    assert_int_equal(vlm_breaker_failed(&b, LIMIT, NOW), 1);
    assert_int_equal(vlm_breaker_state(&b, LIMIT, PAUSE, NOW), VLM_BREAKER_OPEN);
    assert_int_equal(vlm_breaker_failed(&b, LIMIT, NOW), 0);
    assert_int_equal(b.opened, 1);
}


static void
after_the_pause_a_probe_decides(void **state)
{
    vlm_breaker_t  b = { .failures = LIMIT, .when = NOW, .opened = 1, .told = 1 };

    (void) state;

    assert_int_equal(vlm_breaker_state(&b, LIMIT, PAUSE, NOW + PAUSE - 1), VLM_BREAKER_OPEN);
    assert_int_equal(vlm_breaker_state(&b, LIMIT, PAUSE, NOW + PAUSE), VLM_BREAKER_PROBING);

    assert_int_equal(vlm_breaker_failed(&b, LIMIT, NOW + PAUSE), 0);
    assert_int_equal(vlm_breaker_state(&b, LIMIT, PAUSE, NOW + PAUSE + 1), VLM_BREAKER_OPEN);

    assert_int_equal(vlm_breaker_worked(&b, LIMIT), 1);
    assert_int_equal(vlm_breaker_state(&b, LIMIT, PAUSE, NOW + PAUSE + 1), VLM_BREAKER_CLOSED);
}


/* A reload changes the limit, and the record stays. */
static void
a_limit_that_was_lowered_or_raised_is_told_once(void **state)
{
    vlm_breaker_t  b = { 0 };

    (void) state;

    assert_int_equal(vlm_breaker_failed(&b, 5, NOW), 0);
    assert_int_equal(vlm_breaker_failed(&b, 5, NOW), 0);
    assert_int_equal(vlm_breaker_failed(&b, 5, NOW), 0);

    /* three failures, of which two would do now: it is open, and the next one says so */

    assert_int_equal(vlm_breaker_state(&b, 2, PAUSE, NOW), VLM_BREAKER_OPEN);
    assert_int_equal(vlm_breaker_failed(&b, 2, NOW), 1);
    assert_int_equal(vlm_breaker_failed(&b, 2, NOW), 0);
    assert_int_equal(b.opened, 1);

    /* five failures, and seven open it now */

    assert_int_equal(vlm_breaker_failed(&b, 7, NOW), 0);
    assert_int_equal(vlm_breaker_state(&b, 7, PAUSE, NOW), VLM_BREAKER_CLOSED);
    assert_int_equal(vlm_breaker_failed(&b, 7, NOW), 1);
    assert_int_equal(vlm_breaker_failed(&b, 7, NOW), 0);
    assert_int_equal(b.opened, 2);

    assert_int_equal(vlm_breaker_worked(&b, 7), 1);
    assert_int_equal(vlm_breaker_failed(&b, 1, NOW), 1);
    assert_int_equal(b.opened, 3);
}


/* Another worker has the time at which its event loop woke up. */
static void
a_failure_of_a_moment_to_come_begins_the_pause(void **state)
{
    char           text[128];
    vlm_breaker_t  b = { .failures = LIMIT, .when = NOW, .opened = 1 };

    (void) state;

    assert_int_equal(vlm_breaker_state(&b, LIMIT, PAUSE, NOW - 1), VLM_BREAKER_OPEN);
    assert_int_equal(vlm_breaker_reason(&b, PAUSE, NOW - 1, text, sizeof(text)), PAUSE / 1000);
}


static void
without_a_limit_it_stays_closed(void **state)
{
    int            i;
    vlm_breaker_t  b = { 0 };

    (void) state;

    for (i = 0; i < 10; i++) {
        assert_int_equal(vlm_breaker_failed(&b, 0, NOW), 0);
    }

    assert_int_equal(vlm_breaker_state(&b, 0, PAUSE, NOW), VLM_BREAKER_CLOSED);
    assert_int_equal(vlm_breaker_worked(&b, 0), 0);
    assert_int_equal(b.opened, 0);
}


static void
a_refusal_says_when_the_engine_is_tried_again(void **state)
{
    char           text[128];
    vlm_breaker_t  b = { .failures = 4, .when = NOW };

    (void) state;

    assert_int_equal(vlm_breaker_reason(&b, PAUSE, NOW + 100, text, sizeof(text)), 5);
    assert_string_equal(text, "The engine has failed 4 times in a row, it is tried again in 5 "
                              "seconds");
    assert_int_equal(vlm_breaker_reason(&b, PAUSE, NOW + PAUSE - 1, text, sizeof(text)), 1);
    assert_int_equal(vlm_breaker_reason(&b, PAUSE, NOW + PAUSE, text, sizeof(text)), 0);
    assert_string_equal(text, "The engine has failed 4 times in a row, one request tries it now");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(failures_in_a_row_open_it),
        cmocka_unit_test(after_the_pause_a_probe_decides),
        cmocka_unit_test(a_limit_that_was_lowered_or_raised_is_told_once),
        cmocka_unit_test(a_failure_of_a_moment_to_come_begins_the_pause),
        cmocka_unit_test(without_a_limit_it_stays_closed),
        cmocka_unit_test(a_refusal_says_when_the_engine_is_tried_again)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
