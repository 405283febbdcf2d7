/* A request that kills its worker twice is known, until it is answered or an hour has passed. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/suspects.h"

#define NOW  5000000

static vlm_suspect_t  s[VLM_SUSPECTS];


static void
two_deaths_within_an_hour_are_enough(void **state)
{
    (void) state;

    memset(s, 0, sizeof(s));

    assert_false(vlm_suspects_known(s, 7, NOW));
    vlm_suspects_add(s, 7, NOW);
    assert_false(vlm_suspects_known(s, 7, NOW));
    vlm_suspects_add(s, 7, NOW + 10);
    assert_true(vlm_suspects_known(s, 7, NOW + 10));
    assert_false(vlm_suspects_known(s, 8, NOW + 10));

    /* another worker has the time at which its event loop woke up */

    assert_true(vlm_suspects_known(s, 7, NOW + 9));

    assert_true(vlm_suspects_known(s, 7, NOW + 10 + VLM_SUSPECTS_TIME - 1));
    assert_false(vlm_suspects_known(s, 7, NOW + 10 + VLM_SUSPECTS_TIME));
}


static void
requests_with_one_body_are_one_death(void **state)
{
    (void) state;

    memset(s, 0, sizeof(s));
    vlm_suspects_add(s, 7, NOW);
    vlm_suspects_add(s, 7, NOW);
    assert_false(vlm_suspects_known(s, 7, NOW));
}


static void
an_answer_clears_the_deaths(void **state)
{
    (void) state;

    memset(s, 0, sizeof(s));
    vlm_suspects_add(s, 7, NOW);
    vlm_suspects_clear(s, 8);
    vlm_suspects_clear(s, 7);
    vlm_suspects_add(s, 7, NOW + 10);
    assert_false(vlm_suspects_known(s, 7, NOW + 10));
    assert_int_equal(s[0].deaths, 1);
}


static void
the_oldest_entry_gives_its_place(void **state)
{
    uint64_t  i;

    (void) state;

    memset(s, 0, sizeof(s));

    for (i = 1; i <= VLM_SUSPECTS; i++) {
        vlm_suspects_add(s, i, NOW + i);
        vlm_suspects_add(s, i, NOW + 100 + (i == 3 ? 0 : i));
    }

    vlm_suspects_add(s, 99, NOW + 200);
    assert_false(vlm_suspects_known(s, 3, NOW + 200));
    assert_true(vlm_suspects_known(s, 1, NOW + 200));
    assert_true(vlm_suspects_known(s, VLM_SUSPECTS, NOW + 200));
    assert_false(vlm_suspects_known(s, 99, NOW + 200));
}


static void
a_death_counts_against_the_requests_in_flight(void **state)
{
    volatile uint64_t  flight[VLM_SUSPECTS_FLIGHT] = { 0 };

    (void) state;

    memset(s, 0, sizeof(s));

    assert_int_equal(vlm_suspects_begin(flight, 7), 1);
    assert_int_equal(vlm_suspects_begin(flight, 8), 2);
    vlm_suspects_end(flight, 1);
    vlm_suspects_death(s, flight, NOW);

    assert_int_equal(vlm_suspects_begin(flight, 8), 1);
    assert_int_equal(vlm_suspects_begin(flight, 7), 2);
    vlm_suspects_death(s, flight, NOW + 10);

    assert_true(vlm_suspects_known(s, 8, NOW + 10));
    assert_false(vlm_suspects_known(s, 7, NOW + 10));
}


static void
a_request_without_a_free_place_goes_on(void **state)
{
    size_t             i;
    volatile uint64_t  flight[VLM_SUSPECTS_FLIGHT] = { 0 };

    (void) state;

    for (i = 1; i <= VLM_SUSPECTS_FLIGHT; i++) {
        assert_int_equal(vlm_suspects_begin(flight, i), i);
    }

    assert_int_equal(vlm_suspects_begin(flight, 100), 0);
    vlm_suspects_end(flight, 3);
    assert_int_equal(vlm_suspects_begin(flight, 100), 3);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(two_deaths_within_an_hour_are_enough),
        cmocka_unit_test(requests_with_one_body_are_one_death),
        cmocka_unit_test(an_answer_clears_the_deaths),
        cmocka_unit_test(the_oldest_entry_gives_its_place),
        cmocka_unit_test(a_death_counts_against_the_requests_in_flight),
        cmocka_unit_test(a_request_without_a_free_place_goes_on)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
