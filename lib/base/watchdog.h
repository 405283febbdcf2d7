/*
 * A thread that watches whether another one goes on, by a counter that the other increments.  It
 * counts its own looks, so a process that was stopped and resumed is not taken for one that hangs.
 */

#ifndef VLM_WATCHDOG_H
#define VLM_WATCHDOG_H

#include <pthread.h>
#include <stdint.h>

#define VLM_WATCHDOG_MS  250           /* between two looks */

/* Zero before the start; the first four are the caller's. */
typedef struct {
    const volatile uint64_t  *beats;
    uint64_t                  stall;   /* ms without a beat, after which */
    void                    (*stalled)(void *data, uint64_t ms);   /* is called at each look, in
                                          the watchdog's thread */
    void                     *data;

    int                       fd;      /* ends the thread */
    int                       runs;
    pthread_t                 thread;  /* takes no signals */
} vlm_watchdog_t;

/* 0; or the system's error, and what has failed. */
int vlm_watchdog_start(vlm_watchdog_t *w, const char **what);
void vlm_watchdog_stop(vlm_watchdog_t *w);     /* idempotent, also without a start */

#endif
