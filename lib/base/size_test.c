/* Sizes that do not fit become the largest there is, never a small one. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/size.h"


static void
a_sum_that_does_not_fit_is_the_largest(void **state)
{
    (void) state;

    assert_true(vlm_add(2, 3) == 5);
    assert_true(vlm_add(UINT64_MAX, 0) == UINT64_MAX);
    assert_true(vlm_add(UINT64_MAX - 1, 1) == UINT64_MAX);
    assert_true(vlm_add(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(vlm_add(1, UINT64_MAX) == UINT64_MAX);
    assert_true(vlm_add(UINT64_MAX, UINT64_MAX) == UINT64_MAX);
}


static void
a_product_that_does_not_fit_is_the_largest(void **state)
{
    (void) state;

    assert_true(vlm_mul(6, 7) == 42);
    assert_true(vlm_mul(0, UINT64_MAX) == 0);
    assert_true(vlm_mul(UINT64_MAX, 0) == 0);
    assert_true(vlm_mul(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(vlm_mul((uint64_t) 1 << 32, (uint64_t) 1 << 32) == UINT64_MAX);
    assert_true(vlm_mul((uint64_t) 1 << 32, ((uint64_t) 1 << 32) - 1) == UINT64_MAX - UINT32_MAX);
    assert_true(vlm_mul(UINT64_MAX, UINT64_MAX) == UINT64_MAX);
}


static void
rounding_up_stops_at_the_largest(void **state)
{
    (void) state;

    assert_true(vlm_round(0, 64) == 0);
    assert_true(vlm_round(1, 64) == 64);
    assert_true(vlm_round(64, 64) == 64);
    assert_true(vlm_round(65, 64) == 128);
    assert_true(vlm_round(UINT64_MAX - 63, 64) == UINT64_MAX - 63);
    assert_true(vlm_round(UINT64_MAX - 62, 64) == UINT64_MAX);
    assert_true(vlm_round(UINT64_MAX, 64) == UINT64_MAX);
}


static void
mebibytes_are_rounded_up_and_do_not_overflow(void **state)
{
    (void) state;

    assert_true(vlm_mib(0) == 0);
    assert_true(vlm_mib(1) == 1);
    assert_true(vlm_mib(1048576) == 1);
    assert_true(vlm_mib(1048577) == 2);
    assert_true(vlm_mib(UINT64_MAX) == (uint64_t) 1 << 44);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_sum_that_does_not_fit_is_the_largest),
        cmocka_unit_test(a_product_that_does_not_fit_is_the_largest),
        cmocka_unit_test(rounding_up_stops_at_the_largest),
        cmocka_unit_test(mebibytes_are_rounded_up_and_do_not_overflow)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
