/* A range of bytes, piece by piece, by a thread that yields to all others. */

#define _GNU_SOURCE                    /* RUSAGE_THREAD */

#include "base/beside.h"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#define REST  100000000                /* ns, to the 3 ms that a busy core gives in one go */


/* Number of times that the system took the processor from this thread for another one. */
static long
count_preemptions(void)
{
    struct rusage  u;

    return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nivcsw : 0;
}


/* Sleeps until the end of a rest, or until the work is stopped: 1. */
static int
rest(vlm_beside_t *b, long ns)
{
    int              stopping;
    struct timespec  end;

    (void) clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += ns;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;

    pthread_mutex_lock(&b->mutex);

    while (!b->stopping && ns != 0
           && pthread_cond_timedwait(&b->wake, &b->mutex, &end) == 0)
    {
        /* in a loop: wake-ups may be spurious */
    }

    stopping = b->stopping;
    pthread_mutex_unlock(&b->mutex);

    return stopping;
}


static void *
beside_main(void *data)
{
    long           before, after;
    uint64_t       at, n;
    vlm_beside_t  *b = data;

    before = after = count_preemptions();

    for (at = 0; at < b->bytes && !rest(b, after == before ? 0 : REST); at += n) {
        n = b->bytes - at < VLM_BESIDE ? b->bytes - at : VLM_BESIDE;
        before = after;

        if (b->fn(b->data, at, n) != 0) {
            break;
        }

        after = count_preemptions();
        atomic_fetch_add(&b->rests, after != before);
    }

    atomic_store(&b->running, 0);

    return NULL;
}


static int
make_wake(vlm_beside_t *b)
{
    int                 rc;
    pthread_condattr_t  attr;

    if (pthread_condattr_init(&attr) != 0) {
        return -1;
    }

    rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0
         && pthread_cond_init(&b->wake, &attr) == 0 ? 0 : -1;
    (void) pthread_condattr_destroy(&attr);

    return rc;
}


void
vlm_beside_start(vlm_beside_t *b, vlm_beside_fn fn, void *data, uint64_t bytes)
{
    sigset_t  all, saved;

    b->fn = fn;
    b->data = data;
    b->bytes = bytes;
    b->stopping = 0;
    atomic_store(&b->rests, 0);

    if (make_wake(b) != 0) {
        return;
    }

    if (pthread_mutex_init(&b->mutex, NULL) != 0) {
        (void) pthread_cond_destroy(&b->wake);
        return;
    }

    atomic_store(&b->running, 1);

    sigfillset(&all);                  /* signals are handled by the host */
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    b->started = pthread_create(&b->thread, NULL, beside_main, b) == 0;
    pthread_sigmask(SIG_SETMASK, &saved, NULL);

    if (!b->started) {
        atomic_store(&b->running, 0);
        (void) pthread_mutex_destroy(&b->mutex);
        (void) pthread_cond_destroy(&b->wake);
    }
}


void
vlm_beside_stop(vlm_beside_t *b)
{
    if (!b->started) {
        return;
    }

    pthread_mutex_lock(&b->mutex);
    b->stopping = 1;
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->mutex);

    pthread_join(b->thread, NULL);
    b->started = 0;

    (void) pthread_mutex_destroy(&b->mutex);
    (void) pthread_cond_destroy(&b->wake);
}


int
vlm_beside_running(const vlm_beside_t *b)
{
    return atomic_load(&b->running);
}
