/* The slopes of ALiBi, for every number of heads. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "model/model.h"


/* As published: of a power of two a series; of others that one, and every second of twice. */
static double
slope_of(uint32_t heads, uint32_t h)
{
    double    start;
    uint32_t  c;

    for (c = 1; c * 2 <= heads; c *= 2) { /* void */ }

    if (c != heads) {
        return h < c ? slope_of(c, h) : slope_of(2 * c, 2 * (h - c));
    }

    start = pow(2, -pow(2, -(log2(heads) - 3)));

    return start * pow(start, h);
}


static void
slopes_of_1_to_128_heads_are_the_published_ones(void **state)
{
    float     slope[128];
    uint32_t  n, h;

    (void) state;

    for (n = 1; n <= 128; n++) {
        vlm_alibi_slopes(n, slope);

        for (h = 0; h < n; h++) {
            assert_true(fabs((double) slope[h] / slope_of(n, h) - 1) < 1e-6);
        }
    }
}


static void
heads_beyond_a_power_of_two_lie_between_the_others_and_come_last(void **state)
{
    uint32_t            h;
    float               slope[6];
    static const float  want[] = { 0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f };

    (void) state;
    vlm_alibi_slopes(6, slope);

    for (h = 0; h < 6; h++) {
        assert_true(slope[h] == want[h]);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(slopes_of_1_to_128_heads_are_the_published_ones),
        cmocka_unit_test(heads_beyond_a_power_of_two_lie_between_the_others_and_come_last)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
