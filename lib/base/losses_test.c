
/* Losses of a model: pauses grow; a bad GPU is left alone and tried again. */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/losses.h"


#define SECOND  1000
#define MINUTE  (60 * SECOND)
#define FIRST   (10 * MINUTE)
#define START   (7 * MINUTE)               /* the clock of a machine that has run so long */


static void
pauses_double_up_to_thirty_seconds(void **state)
{
    unsigned               i;
    uint64_t               now;
    vlm_losses_t           l;

    static const uint64_t  seconds[] = { 0, 1, 2, 4, 8, 16, 30, 30, 30, 30 };

    (void) state;

    memset(&l, 0, sizeof(l));
    now = START;
    assert_int_equal(vlm_losses_pause(&l, now), 0);

    for (i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
        now += SECOND;
        vlm_losses_add(&l, now);
        assert_int_equal(vlm_losses_pause(&l, now),
                         seconds[i] * SECOND);
    }

    assert_int_equal(l.total, i);
}


static void
a_pause_begins_with_the_loss(void **state)
{
    unsigned               i;
    vlm_losses_t           l;

    (void) state;

    memset(&l, 0, sizeof(l));

    for (i = 0; i < 4; i++) {
        vlm_losses_add(&l, START);
    }

    assert_int_equal(vlm_losses_pause(&l, START), 4 * SECOND);
    assert_int_equal(vlm_losses_pause(&l, START + SECOND),
                     3 * SECOND);
    assert_int_equal(vlm_losses_pause(&l, START + 4 * SECOND), 0);
    assert_int_equal(vlm_losses_pause(&l, START + MINUTE), 0);
}


static void
losses_of_more_than_five_minutes_ago_are_forgotten(void **state)
{
    uint64_t               now;
    unsigned               i;
    vlm_losses_t           l;

    (void) state;

    memset(&l, 0, sizeof(l));

    for (i = 0, now = START; i < 20; i++, now += 3 * MINUTE) {
        vlm_losses_add(&l, now);
        assert_in_range(vlm_losses_recent(&l, now), 1, 2);
        assert_int_equal(vlm_losses_fallback(&l, now, FIRST), 0);
    }

    assert_int_equal(vlm_losses_recent(&l, now + 5 * MINUTE), 0);
    assert_int_equal(vlm_losses_pause(&l, now + 5 * MINUTE), 0);
}


/* Three within a minute; the answer of the worker that starts after them. */
static uint64_t
three(vlm_losses_t *l, uint64_t *now)
{
    unsigned  i;

    for (i = 0; i < 3; i++) {
        assert_int_equal(vlm_losses_fallback(l, *now, FIRST), 0);
        *now += 20 * SECOND;
        vlm_losses_add(l, *now);
    }

    return vlm_losses_fallback(l, *now, FIRST);
}


static void
the_third_within_five_minutes_is_ten_minutes_away_from_the_device(void **state)
{
    uint64_t               now;
    vlm_losses_t           l;

    (void) state;

    memset(&l, 0, sizeof(l));
    now = START;
    assert_int_equal(three(&l, &now), 10 * MINUTE);

    /* a worker that starts meanwhile, after a reload for one, waits for the rest */

    assert_int_equal(vlm_losses_fallback(&l, now + 4 * MINUTE, FIRST),
                     6 * MINUTE);
    assert_int_equal(vlm_losses_fallback(&l, now + 10 * MINUTE, FIRST),
                     0);
}


static void
each_time_is_twice_as_long_up_to_eight_hours(void **state)
{
    unsigned               i;
    uint64_t               now, want;
    vlm_losses_t           l;

    (void) state;

    memset(&l, 0, sizeof(l));

    for (i = 0, now = START, want = 10 * MINUTE; i < 9; i++) {
        assert_int_equal(three(&l, &now), want);
        now += want;
        want = want * 2 < 8 * 60 * MINUTE ? want * 2 : 8 * 60 * MINUTE;
    }
}


static void
losses_before_a_time_away_do_not_begin_another(void **state)
{
    uint64_t               now;
    vlm_losses_t           l;

    (void) state;

    memset(&l, 0, sizeof(l));
    now = START;
    assert_int_equal(three(&l, &now), FIRST);

    /* a short time, after which the losses are still recorded */

    l.until = now + SECOND;
    assert_int_equal(vlm_losses_recent(&l, now + 2 * SECOND), 3);
    assert_int_equal(vlm_losses_fallback(&l, now + 2 * SECOND, FIRST),
                     0);
}


static void
after_a_good_hour_it_begins_again_with_ten_minutes(void **state)
{
    uint64_t               now;
    vlm_losses_t           l;

    (void) state;

    memset(&l, 0, sizeof(l));
    now = START;
    assert_int_equal(three(&l, &now), 10 * MINUTE);
    now += 10 * MINUTE;
    assert_int_equal(three(&l, &now), 20 * MINUTE);
    now += 20 * MINUTE + 60 * MINUTE;
    assert_int_equal(three(&l, &now), 10 * MINUTE);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(pauses_double_up_to_thirty_seconds),
        cmocka_unit_test(a_pause_begins_with_the_loss),
        cmocka_unit_test(losses_of_more_than_five_minutes_ago_are_forgotten),
        cmocka_unit_test(
            the_third_within_five_minutes_is_ten_minutes_away_from_the_device),
        cmocka_unit_test(each_time_is_twice_as_long_up_to_eight_hours),
        cmocka_unit_test(losses_before_a_time_away_do_not_begin_another),
        cmocka_unit_test(after_a_good_hour_it_begins_again_with_ten_minutes)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
