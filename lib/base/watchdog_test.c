/* A counter that stands still is noticed, from its last beat on. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <semaphore.h>

#include "base/watchdog.h"

#define STALL  (2 * VLM_WATCHDOG_MS)

typedef struct {
    volatile uint64_t  beats;
    int                goes_on;        /* beats once at each call */
    int                calls;
    uint64_t           ms[2];
    sem_t              called;         /* twice */
} watched_t;


static void
on_stall(void *data, uint64_t ms)
{
    watched_t  *w = data;

    if (w->calls < 2) {
        w->ms[w->calls++] = ms;
        sem_post(&w->called);
    }

    w->beats += (uint64_t) w->goes_on;
}


static void
wait_for_two_calls(watched_t *w)
{
    const char      *what;
    vlm_watchdog_t   dog = { .beats = &w->beats, .stall = STALL, .stalled = on_stall, .data = w };

    sem_init(&w->called, 0, 0);

    assert_int_equal(vlm_watchdog_start(&dog, &what), 0);
    assert_int_equal(sem_wait(&w->called), 0);
    assert_int_equal(sem_wait(&w->called), 0);

    vlm_watchdog_stop(&dog);
    vlm_watchdog_stop(&dog);
}


static void
a_counter_that_stands_still_is_noticed_at_each_look(void **state)
{
    watched_t  w = { .beats = 7 };

    (void) state;

    wait_for_two_calls(&w);
    assert_int_equal(w.ms[0], STALL);
    assert_int_equal(w.ms[1], STALL + VLM_WATCHDOG_MS);
}


static void
after_a_beat_the_time_begins_again(void **state)
{
    watched_t  w = { .goes_on = 1 };

    (void) state;

    wait_for_two_calls(&w);
    assert_int_equal(w.ms[0], STALL);
    assert_int_equal(w.ms[1], STALL);
}


static void
a_watchdog_that_was_not_started_stops(void **state)
{
    vlm_watchdog_t  dog = { 0 };

    (void) state;

    vlm_watchdog_stop(&dog);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_counter_that_stands_still_is_noticed_at_each_look),
        cmocka_unit_test(after_a_beat_the_time_begins_again),
        cmocka_unit_test(a_watchdog_that_was_not_started_stops)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
