/*
 * The CPU device's own threads: they share the items of a range, and the caller takes part.
 *
 * Two ranges of one step are microseconds apart, so a worker spins briefly before it sleeps;
 * between two requests it sleeps.  Workers take pieces from a counter: a thread that the system
 * holds up takes fewer.
 */

#define _GNU_SOURCE

#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#define SPINS        2000              /* about 100 us: the gap between two operations is shorter */

typedef struct {
    vlm_threads_t  *pool;
    pthread_t       thread;
    uint32_t        number;
} vlm_worker_t;

struct vlm_threads_s {
    uint32_t          n;
    vlm_worker_t     *worker;          /* [n - 1] */

    vlm_range_fn      fn;
    void             *arg;
    uint32_t          n_items, grain;
    int             (*quit)(void *data);           /* the caller's alone */
    void             *quit_data;

    atomic_uint       next;            /* first item that no thread has taken */
    atomic_uint       busy;            /* workers still in this range */
    atomic_uint       round;           /* bumped to start a range */
    atomic_int        closing;

    atomic_int        sleepers;
    pthread_mutex_t   mutex;
    pthread_cond_t    wake;
};

static void pin_workers(vlm_threads_t *t);
static void *worker_main(void *data);
static void take_pieces(vlm_threads_t *t, uint32_t thread);
static void await_round(vlm_threads_t *t, unsigned seen);
static void relax(void);


vlm_threads_t *
vlm_threads_open(uint32_t n, vlm_err_t *err)
{
    uint32_t        i;
    sigset_t        all, saved;
    vlm_threads_t  *t;

    if (n < 1 || n > VLM_MAX_THREADS) {
        (void) vlm_fail(err, VLM_EINPUT, "threads is %u, expected 1 to %u", n, VLM_MAX_THREADS);
        return NULL;
    }

    t = calloc(1, sizeof(*t));
    if (t == NULL || (t->worker = calloc(n, sizeof(*t->worker))) == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for %u threads", n);
        free(t);
        return NULL;
    }

    t->n = 1;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->wake, NULL);

    /* Signals are handled by the host: a worker takes none, except for faults of its own. */

    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_BLOCK, &all, &saved);

    for (i = 1; i < n; i++) {
        t->worker[i - 1].pool = t;
        t->worker[i - 1].number = i;

        if (pthread_create(&t->worker[i - 1].thread, NULL, worker_main, &t->worker[i - 1]) != 0) {
            (void) vlm_fail(err, VLM_EMEMORY, "the system started only %u of %u threads", i, n);
            break;
        }

        t->n++;
    }

    pthread_sigmask(SIG_SETMASK, &saved, NULL);

    if (t->n != n) {
        vlm_threads_close(t);
        return NULL;
    }

    pin_workers(t);

    return t;
}


/*
 * If there is a thread for each processor that the process may use, each worker is bound to one.
 * With fewer threads, as under a quota, the system chooses, because a bound processor may be busy
 * while others are idle.  The caller belongs to the host, and moves to the processor that is left.
 */
static void
pin_workers(vlm_threads_t *t)
{
    int        cpu;
    uint32_t   i;
    cpu_set_t  all, one;

    if (sched_getaffinity(0, sizeof(all), &all) != 0 || (uint32_t) CPU_COUNT(&all) != t->n) {
        return;
    }

    for (i = 0, cpu = 0; i < t->n; cpu++) {
        if (!CPU_ISSET(cpu, &all)) {
            continue;
        }

        if (i > 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            (void) pthread_setaffinity_np(t->worker[i - 1].thread, sizeof(one), &one);
        }

        i++;
    }
}


void
vlm_threads_close(vlm_threads_t *t)
{
    uint32_t  i;

    if (t == NULL) {
        return;
    }

    pthread_mutex_lock(&t->mutex);
    atomic_store(&t->closing, 1);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->mutex);

    for (i = 1; i < t->n; i++) {
        pthread_join(t->worker[i - 1].thread, NULL);
    }

    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->mutex);
    free(t->worker);
    free(t);
}


uint32_t
vlm_threads_count(const vlm_threads_t *t)
{
    return t->n;
}


void
vlm_threads_run(vlm_threads_t *t, uint32_t n, uint32_t grain, vlm_range_fn fn, void *arg)
{
    uint32_t  i;

    if (n == 0 || (t->quit != NULL && t->quit(t->quit_data))) {
        return;
    }

    if (n <= grain || (t->n == 1 && t->quit == NULL)) {
        fn(arg, 0, n, 0);
        return;
    }

    t->fn = fn;
    t->arg = arg;
    t->n_items = n;
    t->grain = grain;

    atomic_store(&t->next, 0);
    atomic_store(&t->busy, t->n - 1);
    atomic_fetch_add(&t->round, 1);

    if (atomic_load(&t->sleepers) > 0) {
        pthread_mutex_lock(&t->mutex);
        pthread_cond_broadcast(&t->wake);
        pthread_mutex_unlock(&t->mutex);
    }

    take_pieces(t, 0);

    /*
     * The other threads are in their last piece, which is shorter than a sleep, unless the system
     * took a core.
     */

    for (i = 0; atomic_load(&t->busy) > 0; i++) {
        if (i < SPINS) {
            relax();
        } else {
            (void) sched_yield();
        }
    }
}


void
vlm_threads_ask(vlm_threads_t *t, int (*quit)(void *data), void *data)
{
    t->quit = quit;
    t->quit_data = data;
}


static void *
worker_main(void *data)
{
    unsigned       seen;
    vlm_worker_t  *w = data;

    seen = 0;

    for ( ;; ) {
        await_round(w->pool, seen);

        if (atomic_load(&w->pool->closing)) {
            return NULL;
        }

        seen++;
        take_pieces(w->pool, w->number);
        atomic_fetch_sub(&w->pool->busy, 1);
    }
}


/* Pieces are large first and small at the end, so that no thread waits long for the last piece. */
static uint32_t
piece_of(const vlm_threads_t *t, uint32_t left)
{
    uint32_t  n;

    n = left / (2 * t->n) / t->grain * t->grain;
    n = n < t->grain ? t->grain : n;

    return n < left ? n : left;
}


static void
take_pieces(vlm_threads_t *t, uint32_t thread)
{
    uint32_t  begin, end;

    for ( ;; ) {
        if (thread == 0 && t->quit != NULL && t->quit(t->quit_data)) {
            atomic_store(&t->next, t->n_items);    /* nothing is left to take */
            return;
        }

        begin = atomic_load(&t->next);

        do {
            if (begin >= t->n_items) {
                return;
            }

            end = begin + piece_of(t, t->n_items - begin);

        } while (!atomic_compare_exchange_weak(&t->next, &begin, end));

        t->fn(t->arg, begin, end, thread);
    }
}


static void
await_round(vlm_threads_t *t, unsigned seen)
{
    unsigned  i;

    for (i = 0; i < SPINS; i++) {
        if (atomic_load(&t->round) != seen || atomic_load(&t->closing)) {
            return;
        }

        relax();
    }

    /* sleepers is raised before round is looked at again, so a wake-up cannot be missed. */

    pthread_mutex_lock(&t->mutex);
    atomic_fetch_add(&t->sleepers, 1);

    while (atomic_load(&t->round) == seen && !atomic_load(&t->closing)) {
        pthread_cond_wait(&t->wake, &t->mutex);
    }

    atomic_fetch_sub(&t->sleepers, 1);
    pthread_mutex_unlock(&t->mutex);
}


static void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}
