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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(two_deaths_within_an_hour_are_enough),
        cmocka_unit_test(requests_with_one_body_are_one_death),
        cmocka_unit_test(an_answer_clears_the_deaths),
        cmocka_unit_test(the_oldest_entry_gives_its_place)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
