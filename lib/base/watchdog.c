/* Watches a counter: see watchdog.h. */

#include "base/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>


static void *
watch(void *data)
{
    uint64_t         beats = 0, still = 0;
    vlm_watchdog_t  *w = data;
    struct pollfd    pfd = { .fd = w->fd, .events = POLLIN };

    while (poll(&pfd, 1, VLM_WATCHDOG_MS) <= 0) {

        if (beats != *w->beats) {
            beats = *w->beats;
            still = 0;
            continue;
        }

        still += VLM_WATCHDOG_MS;

        if (still >= w->stall) {
            w->stalled(w->data, still);
        }
    }

    return NULL;
}


int
vlm_watchdog_start(vlm_watchdog_t *w, const char **what)
{
    int       e;
    sigset_t  all, old;

    *what = "eventfd";
    w->fd = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    if (w->fd == -1) {
        return errno;
    }

    *what = "pthread_create";

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &old);

    e = pthread_create(&w->thread, NULL, watch, w);

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    w->runs = e == 0;

    if (e != 0) {
        (void) close(w->fd);
    }

    return e;
}


void
vlm_watchdog_stop(vlm_watchdog_t *w)
{
    if (w->runs) {
        w->runs = 0;

        (void) eventfd_write(w->fd, 1);
        (void) pthread_join(w->thread, NULL);
        (void) close(w->fd);
    }
}
