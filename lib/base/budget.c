
/* The memory that requests may use beside the engine's plan. */


#include <string.h>
#include <time.h>

#include "base/budget.h"


#define BODY_LEAST   (64 * 1024)
#define BODY_TIMES   3                 /* its text, its strings, one decoded */
#define VALUE_BYTES  32                /* of the tree, a byte of the body */
#define TREE_MOST    (100000 * 80)     /* values that a body may have, x each */
#define NS           1000000000L
#define STOP_MS      100               /* ms between two calls of stop() */


int
vlm_budget_init(vlm_budget_t *b, uint64_t total)
{
    int                 rc;
    pthread_condattr_t  attr;

    memset(b, 0, sizeof(*b));

    b->total = total;

    if (pthread_mutex_init(&b->mutex, NULL) != 0) {
        return -1;
    }

    if (pthread_condattr_init(&attr) != 0) {
        (void) pthread_mutex_destroy(&b->mutex);
        return -1;
    }

    rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0
         && pthread_cond_init(&b->given, &attr) == 0 ? 0 : -1;

    (void) pthread_condattr_destroy(&attr);

    if (rc != 0) {
        (void) pthread_mutex_destroy(&b->mutex);
    }

    return rc;
}


void
vlm_budget_destroy(vlm_budget_t *b)
{
    (void) pthread_cond_destroy(&b->given);
    (void) pthread_mutex_destroy(&b->mutex);
}


static void
add_ms(struct timespec *t, uint32_t ms)
{
    t->tv_sec += ms / 1000;
    t->tv_nsec += (long) (ms % 1000) * 1000000;

    if (t->tv_nsec >= NS) {
        t->tv_nsec -= NS;
        t->tv_sec++;
    }
}


static int
is_past(const struct timespec *t, const struct timespec *end)
{
    return t->tv_sec > end->tv_sec
           || (t->tv_sec == end->tv_sec && t->tv_nsec >= end->tv_nsec);
}


vlm_budget_e
vlm_budget_take(vlm_budget_t *b, uint64_t bytes,
    uint32_t ms, int (*stop)(void *data), void *data)
{
    struct timespec        end, look;
    vlm_budget_e           rc;

    if (bytes > b->total) {
        return VLM_BUDGET_NEVER;
    }

    (void) clock_gettime(CLOCK_MONOTONIC, &end);

    look = end;
    add_ms(&end, ms);

    rc = VLM_BUDGET_OK;

    pthread_mutex_lock(&b->mutex);

    if (bytes > b->total - b->used) {
        b->waits++;
    }

    while (bytes > b->total - b->used) {

        if (is_past(&look, &end) || (stop && stop(data))) {
            rc = VLM_BUDGET_LATE;
            break;
        }

        add_ms(&look, STOP_MS);

        (void) pthread_cond_timedwait(&b->given, &b->mutex,
                                      is_past(&look, &end) ? &end : &look);
        (void) clock_gettime(CLOCK_MONOTONIC, &look);
    }

    if (rc == VLM_BUDGET_OK) {
        b->used += bytes;
        b->peak = b->used > b->peak ? b->used : b->peak;
    }

    pthread_mutex_unlock(&b->mutex);

    return rc;
}


void
vlm_budget_give(vlm_budget_t *b, uint64_t bytes)
{
    pthread_mutex_lock(&b->mutex);
    b->used -= bytes;
    pthread_mutex_unlock(&b->mutex);

    /* all waiting threads: a later one may need less than the first */

    (void) pthread_cond_broadcast(&b->given);
}


void
vlm_budget_look(vlm_budget_t *b,
    vlm_budget_t *copy)
{
    pthread_mutex_lock(&b->mutex);

    copy->total = b->total;
    copy->used = b->used;
    copy->peak = b->peak;
    copy->waits = b->waits;

    pthread_mutex_unlock(&b->mutex);
}


uint64_t
vlm_budget_body(uint64_t len)
{
    uint64_t  tree;

    if (len > UINT64_MAX / 64) {
        return UINT64_MAX;
    }

    tree = len * VALUE_BYTES < TREE_MOST ? len * VALUE_BYTES : TREE_MOST;

    return BODY_LEAST + len * BODY_TIMES + tree;
}
