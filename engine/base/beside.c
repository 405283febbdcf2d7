/* A range of bytes, a piece after the other, by a thread behind all others. */

#include "base/beside.h"

#include <signal.h>
#include <sys/resource.h>


static void *
beside_main(void *data)
{
    uint64_t       at, n;
    vlm_beside_t  *b = data;

    (void) setpriority(PRIO_PROCESS, 0, 19);       /* of this thread */

    for (at = 0; at < b->bytes && !atomic_load(&b->stopping); at += n) {
        n = b->bytes - at < VLM_BESIDE ? b->bytes - at : VLM_BESIDE;

        if (b->fn(b->data, at, n) != 0) {
            break;
        }
    }

    atomic_store(&b->running, 0);

    return NULL;
}


void
vlm_beside_start(vlm_beside_t *b, vlm_beside_fn fn, void *data, uint64_t bytes)
{
    sigset_t  all, saved;

    b->fn = fn;
    b->data = data;
    b->bytes = bytes;
    atomic_store(&b->stopping, 0);
    atomic_store(&b->running, 1);

    sigfillset(&all);                  /* signals are the host's */
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    b->started = pthread_create(&b->thread, NULL, beside_main, b) == 0;
    pthread_sigmask(SIG_SETMASK, &saved, NULL);

    if (!b->started) {
        atomic_store(&b->running, 0);
    }
}


void
vlm_beside_stop(vlm_beside_t *b)
{
    atomic_store(&b->stopping, 1);

    if (b->started) {
        pthread_join(b->thread, NULL);
        b->started = 0;
    }
}


int
vlm_beside_running(const vlm_beside_t *b)
{
    return atomic_load(&b->running);
}
