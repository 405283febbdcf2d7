/* Weight rows to int8. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/int8.h"


static void
a_row_comes_back_within_half_a_step(void **state)
{
    float     x[1000], scale, max;
    int8_t    q[1000];
    uint32_t  i, n;

    (void) state;

    for (n = 1; n <= 1000; n += 37) {
        for (max = 0, i = 0; i < n; i++) {
            x[i] = sinf((float) (i * n)) * (float) n;
            max = fmaxf(max, fabsf(x[i]));
        }

        scale = vlm_quant_row(x, n, q);
        assert_true(scale == max / 127);

        for (i = 0; i < n; i++) {
            assert_true(q[i] >= -127);
            assert_true(fabs((double) scale * q[i] - (double) x[i]) <= 0.50002 * (double) scale);
        }
    }
}


static void
the_largest_becomes_127_whatever_its_sign(void **state)
{
    float   x[3] = { -3e38f, 1e38f, 3e38f };
    int8_t  q[3];

    (void) state;

    assert_true(vlm_quant_row(x, 3, q) == 3e38f / 127);
    assert_int_equal(q[0], -127);
    assert_int_equal(q[1], 42);
    assert_int_equal(q[2], 127);
}


static void
halves_are_rounded_to_even(void **state)
{
    float   x[5] = { 127, 0.5f, 1.5f, -2.5f, -3.5f };
    int8_t  q[5];

    (void) state;

    assert_true(vlm_quant_row(x, 5, q) == 1);
    assert_int_equal(q[1], 0);
    assert_int_equal(q[2], 2);
    assert_int_equal(q[3], -2);
    assert_int_equal(q[4], -4);
}


static void
zeros_and_what_is_too_small_for_a_scale_are_zeros(void **state)
{
    float   x[3] = { 0, -0.0f, 0 };
    int8_t  q[3];

    (void) state;

    assert_true(vlm_quant_row(x, 3, q) == 0);
    assert_int_equal(q[0] | q[1] | q[2], 0);

    x[1] = 1e-39f;
    assert_true(isfinite(vlm_quant_row(x, 3, q)));
    assert_int_equal(q[0] | q[1] | q[2], 0);
}


static void
a_row_that_is_not_finite_has_a_scale_that_is_no_number(void **state)
{
    float     x[3], bad[] = { NAN, INFINITY, -INFINITY };
    int8_t    q[3];
    uint32_t  i;

    (void) state;

    for (i = 0; i < 9; i++) {
        x[0] = x[1] = x[2] = 1;
        x[i / 3] = bad[i % 3];
        assert_true(isnan(vlm_quant_row(x, 3, q)));
        assert_int_equal(q[0] | q[1] | q[2], 0);
    }
}


/* As bind.c does it: the row's own memory takes its int8. */
static void
a_row_may_be_quantised_in_its_own_memory(void **state)
{
    float     x[333], own[333];
    int8_t    q[333];
    uint32_t  i;

    (void) state;

    for (i = 0; i < 333; i++) {
        x[i] = own[i] = cosf((float) i);
    }

    assert_true(vlm_quant_row(x, 333, q) == vlm_quant_row(own, 333, (int8_t *) own));
    assert_memory_equal(own, q, 333);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_row_comes_back_within_half_a_step),
        cmocka_unit_test(the_largest_becomes_127_whatever_its_sign),
        cmocka_unit_test(halves_are_rounded_to_even),
        cmocka_unit_test(zeros_and_what_is_too_small_for_a_scale_are_zeros),
        cmocka_unit_test(a_row_that_is_not_finite_has_a_scale_that_is_no_number),
        cmocka_unit_test(a_row_may_be_quantised_in_its_own_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
