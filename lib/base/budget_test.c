
/* http_memory: the bytes taken are bounded, and a waiting thread is served or refused. */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/budget.h"


#define THREADS  8
#define ROUNDS   2000


static void
more_than_there_is_is_never_given(void **state)
{
    vlm_budget_t  b;

    (void) state;

    assert_int_equal(vlm_budget_init(&b, 100), 0);
    assert_int_equal(vlm_budget_take(&b, 101, 1000, NULL, NULL),
                     VLM_BUDGET_NEVER);
    assert_int_equal(vlm_budget_take(&b, 100, 0, NULL, NULL),
                     VLM_BUDGET_OK);
    vlm_budget_give(&b, 100);
    assert_int_equal(b.used, 0);
    vlm_budget_destroy(&b);
}


static void
a_wait_that_is_too_long_takes_nothing(void **state)
{
    vlm_budget_t  b;

    (void) state;

    assert_int_equal(vlm_budget_init(&b, 100), 0);
    assert_int_equal(vlm_budget_take(&b, 60, 0, NULL, NULL),
                     VLM_BUDGET_OK);
    assert_int_equal(vlm_budget_take(&b, 41, 20, NULL, NULL),
                     VLM_BUDGET_LATE);
    assert_int_equal(b.used, 60);
    assert_int_equal(vlm_budget_take(&b, 40, 20, NULL, NULL),
                     VLM_BUDGET_OK);
    vlm_budget_destroy(&b);
}


static void *
give_later(void *data)
{
    usleep(30000);
    vlm_budget_give(data, 60);
    return NULL;
}


static void
a_waiting_thread_gets_the_memory_that_another_returns(void **state)
{
    pthread_t              thread;
    vlm_budget_t           b, look;

    (void) state;

    assert_int_equal(vlm_budget_init(&b, 100), 0);
    assert_int_equal(vlm_budget_take(&b, 60, 0, NULL, NULL),
                     VLM_BUDGET_OK);
    assert_int_equal(pthread_create(&thread, NULL, give_later, &b), 0);
    assert_int_equal(vlm_budget_take(&b, 100, 5000, NULL, NULL),
                     VLM_BUDGET_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);

    vlm_budget_look(&b, &look);
    assert_int_equal(look.used, 100);
    assert_int_equal(look.waits, 1);
    vlm_budget_destroy(&b);
}


static void *
take_and_give(void *data)
{
    uint32_t                i, bytes;
    vlm_budget_t           *b = data;

    for (i = 0; i < ROUNDS; i++) {
        bytes = 1 + i * 7919 % 63;

        if (vlm_budget_take(b, bytes, 10000, NULL, NULL)
            == VLM_BUDGET_OK)
        {
            vlm_budget_give(b, bytes);
        }
    }

    return NULL;
}


static void
eight_threads_never_hold_more_than_the_total(void **state)
{
    int                    i;
    pthread_t              threads[THREADS];
    vlm_budget_t           b;

    (void) state;

    assert_int_equal(vlm_budget_init(&b, 64), 0);

    for (i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &b),
                         0);
    }

    for (i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }

    assert_int_equal(b.used, 0);
    assert_true(b.peak > 0 && b.peak <= 64);
    vlm_budget_destroy(&b);
}


static void
no_length_of_a_body_overflows_its_estimate(void **state)
{
    uint64_t  len;

    (void) state;

    for (len = 1; len; len <<= 1) {
        assert_true(vlm_budget_body(len) > len);
    }

    assert_int_equal(vlm_budget_body(UINT64_MAX), UINT64_MAX);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(more_than_there_is_is_never_given),
        cmocka_unit_test(a_wait_that_is_too_long_takes_nothing),
        cmocka_unit_test(a_waiting_thread_gets_the_memory_that_another_returns),
        cmocka_unit_test(eight_threads_never_hold_more_than_the_total),
        cmocka_unit_test(no_length_of_a_body_overflows_its_estimate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
