/* Ranges that are shared out: every item once, whatever the threads do. */

#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/threads.h"

#define MOST  3000

typedef struct {
    uint32_t      n, grain, threads;
    uint8_t       times[MOST];         /* each item was done */
    atomic_ullong sum;
    atomic_int    wrong;
} work_t;


static void
work(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    uint64_t   sum;
    uint32_t   i;
    work_t    *w = arg;

    if (begin >= end || end > w->n || thread >= w->threads
        || (w->threads > 1 && begin % w->grain != 0)
        || (w->threads > 1 && end - begin > w->grain && end - begin > w->n / 2 / w->threads))
    {
        atomic_store(&w->wrong, 1);
    }

    for (sum = 0, i = begin; i < end; i++) {
        w->times[i]++;
        sum += i;
    }

    atomic_fetch_add(&w->sum, sum);
}


static void
share_out(vlm_threads_t *t, uint32_t n, uint32_t grain)
{
    uint32_t  i;
    work_t    w;

    memset(&w, 0, sizeof(w));
    w.n = n;
    w.grain = grain;
    w.threads = vlm_threads_count(t);

    vlm_threads_run(t, n, grain, work, &w);

    assert_int_equal(atomic_load(&w.wrong), 0);
    assert_int_equal(atomic_load(&w.sum), (uint64_t) n * (n == 0 ? 0 : n - 1) / 2);

    for (i = 0; i < n; i++) {
        assert_int_equal(w.times[i], 1);
    }
}


static vlm_threads_t *
open_threads(uint32_t n)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_threads_t  *t;

    t = vlm_threads_open(n, &err);
    assert_non_null(t);
    assert_int_equal(vlm_threads_count(t), n);

    return t;
}


static void
every_item_is_done_once_with_any_number_of_threads_and_any_grain(void **state)
{
    uint32_t                i, n, grain;
    vlm_threads_t          *t;
    static const uint32_t   threads[] = { 1, 2, 3, 8 };
    static const uint32_t   items[] = { 0, 1, 2, 7, 64, 1000 };
    static const uint32_t   grains[] = { 1, 2, 5, 63, 64, 1000, 5000 };

    (void) state;

    for (i = 0; i < 4; i++) {
        t = open_threads(threads[i]);

        for (n = 0; n < 6; n++) {
            for (grain = 0; grain < 7; grain++) {
                share_out(t, items[n], grains[grain]);
            }
        }

        vlm_threads_close(t);
    }
}


static void
thousands_of_rounds_lose_nothing(void **state)
{
    uint32_t        i;
    vlm_threads_t  *t;

    (void) state;

    t = open_threads(3);

    for (i = 0; i < 3000; i++) {
        share_out(t, i % 97, 1 + i % 3);
    }

    vlm_threads_close(t);
}


/* A worker does not spin that long: each round must wake it. */
static void
workers_that_sleep_are_woken(void **state)
{
    uint32_t         i;
    vlm_threads_t   *t;
    struct timespec  pause = { 0, 0 };

    (void) state;

    t = open_threads(4);

    for (i = 0; i < 60; i++) {
        pause.tv_nsec = (long) (i % 20) * 100000;
        nanosleep(&pause, NULL);
        share_out(t, 100, 1);
    }

    vlm_threads_close(t);
}


static void
threads_that_never_worked_are_closed_awake_or_asleep(void **state)
{
    uint32_t         i;
    struct timespec  pause = { 0, 3000000 };

    (void) state;

    for (i = 0; i < 20; i++) {
        vlm_threads_close(open_threads(4));
    }

    for (i = 0; i < 3; i++) {
        vlm_threads_t  *t = open_threads(3);

        nanosleep(&pause, NULL);
        vlm_threads_close(t);
    }

    vlm_threads_close(NULL);
}


typedef struct {
    uint32_t  asked, limit;
} quit_t;


static int
quit_after(void *data)
{
    quit_t  *q = data;

    return q->asked++ >= q->limit;
}


static void
count_items(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    (void) thread;
    atomic_fetch_add((atomic_uint *) arg, end - begin);
}


/* The caller's pieces end the range; the others finish at most the pieces that they had taken. */
static void
a_range_is_left_when_the_callers_question_says_quit(void **state)
{
    quit_t          q;
    uint32_t        i, threads;
    atomic_uint     done;
    vlm_threads_t  *t;

    /* halves of the rest of 1000, by threes; quit is asked before the range, too */

    static const uint32_t  alone[] = { 0, 0, 498, 498 + 249, 498 + 249 + 126 };

    (void) state;

    for (threads = 1; threads <= 3; threads++) {
        t = open_threads(threads);

        for (i = 0; i < 50; i++) {
            q.asked = 0;
            q.limit = i % 5;
            atomic_store(&done, 0);
            vlm_threads_ask(t, quit_after, &q);
            vlm_threads_run(t, 1000, 3, count_items, &done);
            assert_true(threads > 1 || atomic_load(&done) == alone[q.limit]);
            assert_true(q.limit > 0 || atomic_load(&done) == 0);
            assert_true(q.asked <= q.limit + 1);

            vlm_threads_ask(t, NULL, NULL);
            share_out(t, 500, 3);
        }

        vlm_threads_close(t);
    }
}


static void
two_pools_do_not_disturb_each_other(void **state)
{
    uint32_t        i;
    vlm_threads_t  *a, *b;

    (void) state;

    a = open_threads(2);
    b = open_threads(3);

    for (i = 0; i < 300; i++) {
        share_out(i % 3 == 0 ? a : b, 50 + i, 3);
    }

    vlm_threads_close(a);
    vlm_threads_close(b);
}


static void
no_threads_and_too_many_are_refused(void **state)
{
    vlm_err_t  err = { VLM_OK, "" };

    (void) state;

    assert_null(vlm_threads_open(0, &err));
    assert_int_equal(err.code, VLM_EINPUT);

    err.code = VLM_OK;
    assert_null(vlm_threads_open(VLM_MAX_THREADS + 1, &err));
    assert_int_equal(err.code, VLM_EINPUT);
    assert_non_null(strstr(err.text, "257"));
}


/* The processors that thread `thread` may use, as an item of a range sees them. */
static void
see_processors(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    cpu_set_t  *seen = arg;

    (void) begin;
    (void) end;

    (void) sched_getaffinity(0, sizeof(cpu_set_t), &seen[thread]);
    (void) usleep(1000);                      /* so that each thread has an item */
}


static void
a_worker_keeps_a_processor_where_each_thread_has_one(void **state)
{
    uint32_t        i, j, n;
    vlm_err_t       err = { VLM_OK, "" };
    cpu_set_t       all, seen[VLM_MAX_THREADS];
    vlm_threads_t  *t;

    (void) state;

    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);

    for (n = (uint32_t) CPU_COUNT(&all); n <= (uint32_t) CPU_COUNT(&all) + 1; n++) {
        if (n > VLM_MAX_THREADS) {
            continue;
        }

        memset(seen, 0, sizeof(seen));
        t = vlm_threads_open(n, &err);
        assert_non_null(t);

        for (i = 0; i < 100; i++) {
            vlm_threads_run(t, 4 * n, 1, see_processors, seen);
        }

        for (i = 1; i < n; i++) {
            if (CPU_COUNT(&seen[i]) == 0) {            /* a thread that had no item */
                continue;
            }

            assert_int_equal(CPU_COUNT(&seen[i]), n == (uint32_t) CPU_COUNT(&all) ? 1 : n - 1);

            for (j = 1; j < i; j++) {
                assert_true(n > (uint32_t) CPU_COUNT(&all) || !CPU_EQUAL(&seen[i], &seen[j]));
            }
        }

        vlm_threads_close(t);
    }

    assert_int_equal(sched_getaffinity(0, sizeof(seen[0]), &seen[0]), 0);
    assert_true(CPU_EQUAL(&seen[0], &all));            /* the caller's own are as they were */
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_item_is_done_once_with_any_number_of_threads_and_any_grain),
        cmocka_unit_test(thousands_of_rounds_lose_nothing),
        cmocka_unit_test(workers_that_sleep_are_woken),
        cmocka_unit_test(threads_that_never_worked_are_closed_awake_or_asleep),
        cmocka_unit_test(a_range_is_left_when_the_callers_question_says_quit),
        cmocka_unit_test(two_pools_do_not_disturb_each_other),
        cmocka_unit_test(no_threads_and_too_many_are_refused),
        cmocka_unit_test(a_worker_keeps_a_processor_where_each_thread_has_one)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
