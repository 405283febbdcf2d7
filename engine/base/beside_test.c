/* The thread handles a range piece by piece, to its end or until the caller ends it. */

#define _GNU_SOURCE                    /* sched_setaffinity(), RUSAGE_THREAD */

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/beside.h"

#define PIECES  5

typedef struct {
    uint64_t    at;                    /* where the last piece ended */
    uint32_t    most;                  /* pieces after which it is enough */
    atomic_uint n;
    atomic_int  wait;                  /* ms that every piece takes; -1: until it is 0 */
    atomic_int  ended;                 /* pieces */
    int         wrong;
} taken_t;


static int
take(void *data, uint64_t at, uint64_t n)
{
    taken_t  *t = data;

    t->wrong += at != t->at || n == 0 || n > VLM_BESIDE;
    t->at = at + n;

    atomic_fetch_add(&t->n, 1);

    while (atomic_load(&t->wait) < 0) {
        usleep(1000);
    }

    usleep((unsigned) atomic_load(&t->wait) * 1000);
    atomic_fetch_add(&t->ended, 1);

    return atomic_load(&t->n) == t->most;
}


/* One processor for two threads: this one works until the other has run, and counts how often. */
static void *
spin(void *data)
{
    atomic_int  *stop = data;

    while (!atomic_load(stop)) {
    }

    return NULL;
}


static int
work_until_preempted(void *data, uint64_t at, uint64_t n)
{
    long           before;
    atomic_int    *priority = data;
    struct rusage  u;

    (void) at;
    (void) n;

    atomic_store(priority, getpriority(PRIO_PROCESS, (id_t) gettid()));
    (void) getrusage(RUSAGE_THREAD, &u);

    for (before = u.ru_nivcsw; u.ru_nivcsw == before; /* void */) {
        (void) getrusage(RUSAGE_THREAD, &u);
    }

    return 0;
}


static void
wait_for(taken_t *t, unsigned n)
{
    while (atomic_load(&t->n) < n) {
        usleep(1000);
    }
}


static void
all_of_a_range_is_taken_in_pieces(void **state)
{
    uint64_t      bytes = (PIECES - 1) * (uint64_t) VLM_BESIDE + 1;
    taken_t       t;
    vlm_beside_t  b;

    (void) state;

    memset(&b, 0, sizeof(b));
    memset(&t, 0, sizeof(t));

    vlm_beside_start(&b, take, &t, bytes);
    wait_for(&t, PIECES);
    vlm_beside_stop(&b);

    assert_int_equal(t.at, bytes);
    assert_int_equal(t.n, PIECES);
    assert_int_equal(t.wrong, 0);

    vlm_beside_stop(&b);               /* safe twice */
}


static void
a_run_ends_early_if_a_piece_returns_an_end(void **state)
{
    taken_t       t;
    vlm_beside_t  b;

    (void) state;

    memset(&b, 0, sizeof(b));
    memset(&t, 0, sizeof(t));
    t.most = 2;

    vlm_beside_start(&b, take, &t, PIECES * (uint64_t) VLM_BESIDE);
    wait_for(&t, 2);
    usleep(20000);
    vlm_beside_stop(&b);

    assert_int_equal(t.n, 2);
}


/* stop() finishes the piece in progress, since the caller may free the memory afterwards. */
static void
stopping_waits_for_the_piece_at_hand(void **state)
{
    taken_t       t;
    vlm_beside_t  b;

    (void) state;

    memset(&b, 0, sizeof(b));
    memset(&t, 0, sizeof(t));
    t.wait = 100;

    vlm_beside_start(&b, take, &t, PIECES * (uint64_t) VLM_BESIDE);
    wait_for(&t, 1);
    vlm_beside_stop(&b);

    assert_true(t.n < PIECES);
    assert_int_equal(t.ended, t.n);
}


/*
 * A piece may hold a lock for which all threads wait, so the thread has normal priority and the
 * piece is short.
 */
static void
it_rests_between_pieces_where_its_processor_is_wanted(void **state)
{
    int           mine = getpriority(PRIO_PROCESS, 0);
    cpu_set_t     one, all;
    pthread_t     other;
    atomic_int    stop = 0, priority = 99;
    vlm_beside_t  b;

    (void) state;

    memset(&b, 0, sizeof(b));
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);

    assert_int_equal(pthread_create(&other, NULL, spin, &stop), 0);
    vlm_beside_start(&b, work_until_preempted, &priority, 3 * (uint64_t) VLM_BESIDE);

    while (vlm_beside_running(&b)) {
        usleep(1000);
    }

    assert_int_equal(b.rests, 3);
    assert_int_equal(priority, mine);

    atomic_store(&stop, 1);
    pthread_join(other, NULL);
    vlm_beside_stop(&b);
    (void) sched_setaffinity(0, sizeof(all), &all);
}


static void
it_runs_until_the_last_piece_has_ended(void **state)
{
    taken_t       t;
    vlm_beside_t  b;

    (void) state;

    memset(&b, 0, sizeof(b));
    memset(&t, 0, sizeof(t));
    t.wait = -1;
    assert_int_equal(vlm_beside_running(&b), 0);

    vlm_beside_start(&b, take, &t, 2 * (uint64_t) VLM_BESIDE);
    assert_int_equal(vlm_beside_running(&b), 1);
    wait_for(&t, 1);
    assert_int_equal(vlm_beside_running(&b), 1);
    atomic_store(&t.wait, 0);

    while (vlm_beside_running(&b)) {
        usleep(1000);
    }

    assert_int_equal(t.ended, 2);
    vlm_beside_stop(&b);
}


static void
one_that_was_never_started_can_be_stopped(void **state)
{
    vlm_beside_t  b;

    (void) state;

    memset(&b, 0, sizeof(b));
    vlm_beside_stop(&b);
    assert_int_equal(b.started, 0);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(all_of_a_range_is_taken_in_pieces),
        cmocka_unit_test(a_run_ends_early_if_a_piece_returns_an_end),
        cmocka_unit_test(stopping_waits_for_the_piece_at_hand),
        cmocka_unit_test(it_rests_between_pieces_where_its_processor_is_wanted),
        cmocka_unit_test(it_runs_until_the_last_piece_has_ended),
        cmocka_unit_test(one_that_was_never_started_can_be_stopped)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
