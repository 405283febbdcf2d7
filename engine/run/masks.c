/* The thread of masks: see the header.  Places change hands by their state alone, without a lock,
   so that the engine thread never waits for a thread of lower priority. */

#define _GNU_SOURCE                    /* gettid(), sem_clockwait() */

#include "run/masks.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NICE  10                       /* a tenth of a busy core; all of an idle one */
#define WAIT  5000000                  /* ns */

typedef struct {
    atomic_int      state;             /* vlm_mask_state_t */
    atomic_int      quit;
    vlm_match_t    *match;             /* a copy, and a user of its grammar */
    uint32_t        n_after;
    uint32_t       *allowed;           /* [n_words] */
    uint64_t        work;              /* of the last mask, in steps */
    atomic_ullong   spent;             /* of all masks of the job so far */
} place_t;

struct vlm_masks_s {
    const vlm_tokens_t  *pieces;
    vlm_walk_t          *walk;         /* the thread's */
    pthread_t            thread;
    sem_t                asked, made;
    atomic_int           stopping;
    uint32_t             n_places;
    place_t              place[];      /* [n_places] */
};


/* The queued place with the least work so far, which is now busy; NULL: none is queued. */
static place_t *
next(vlm_masks_t *m)
{
    int        queued;
    place_t   *p, *least;
    uint32_t   i;

    do {
        for (least = NULL, i = 0; i < m->n_places; i++) {
            p = &m->place[i];

            if (atomic_load(&p->state) == VLM_MASK_QUEUED
                && (least == NULL || atomic_load(&p->spent) < atomic_load(&least->spent)))
            {
                least = p;
            }
        }

        queued = VLM_MASK_QUEUED;
    } while (least != NULL
             && !atomic_compare_exchange_strong(&least->state, &queued, VLM_MASK_BUSY));

    return least;
}


static void
release(place_t *p)
{
    vlm_grammar_free((vlm_grammar_t *) p->match->g);
}


static void
make(vlm_masks_t *m, place_t *p)
{
    int  rc, busy = VLM_MASK_BUSY;

    vlm_walk_allow(m->walk, VLM_MASK_MOST, &p->quit);
    rc = vlm_mask(m->pieces, p->match, m->walk, p->n_after, p->allowed);
    p->work = vlm_walk_work(m->walk);
    atomic_fetch_add(&p->spent, p->work);
    release(p);

    if (!atomic_compare_exchange_strong(&p->state, &busy,
                                        rc == 0 ? VLM_MASK_READY : VLM_MASK_TOO_MUCH))
    {
        atomic_store(&p->state, VLM_MASK_NONE);    /* it was left */
    }

    (void) sem_post(&m->made);
}


static void *
masks_main(void *data)
{
    place_t      *p;
    vlm_masks_t  *m = data;

    (void) setpriority(PRIO_PROCESS, (id_t) gettid(), NICE);       /* or as the others run */

    for ( ;; ) {
        while (sem_wait(&m->asked) != 0 && errno == EINTR) { /* void */ }

        if (atomic_load(&m->stopping)) {
            return NULL;
        }

        p = next(m);

        if (p != NULL) {
            make(m, p);
        }
    }
}


static void
close_places(vlm_masks_t *m)
{
    uint32_t  i;

    for (i = 0; i < m->n_places; i++) {
        free(m->place[i].match);
        free(m->place[i].allowed);
    }

    vlm_walk_close(m->walk);
    free(m);
}


vlm_masks_t *
vlm_masks_open(const vlm_tokens_t *pieces, uint32_t n_slots, vlm_err_t *err)
{
    int           ok;
    place_t      *p;
    vlm_masks_t  *m;

    m = calloc(1, sizeof(*m) + (size_t) n_slots * sizeof(*m->place));

    if (m == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for the masks of %u slots", n_slots);
        return NULL;
    }

    m->pieces = pieces;
    m->walk = vlm_walk_open(pieces);

    for (ok = m->walk != NULL; ok && m->n_places < n_slots; m->n_places++) {
        p = &m->place[m->n_places];
        p->match = malloc(sizeof(*p->match));
        p->allowed = malloc(pieces->n_words * sizeof(*p->allowed));
        ok = p->match != NULL && p->allowed != NULL;
    }

    if (!ok || sem_init(&m->asked, 0, 0) != 0 || sem_init(&m->made, 0, 0) != 0
        || pthread_create(&m->thread, NULL, masks_main, m) != 0)
    {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for the masks of %u slots", n_slots);
        close_places(m);
        return NULL;
    }

    return m;
}


void
vlm_masks_close(vlm_masks_t *m)
{
    if (m == NULL) {
        return;
    }

    atomic_store(&m->stopping, 1);
    (void) sem_post(&m->asked);
    (void) pthread_join(m->thread, NULL);
    (void) sem_destroy(&m->asked);
    (void) sem_destroy(&m->made);
    close_places(m);
}


int
vlm_masks_ask(vlm_masks_t *m, uint32_t slot, const vlm_match_t *match, uint32_t n_after)
{
    place_t  *p = &m->place[slot];

    if (atomic_load(&p->state) != VLM_MASK_NONE) {
        return 0;
    }

    vlm_match_copy(p->match, match);
    (void) vlm_grammar_share((vlm_grammar_t *) match->g);
    p->n_after = n_after;
    atomic_store(&p->quit, 0);
    atomic_store(&p->state, VLM_MASK_QUEUED);
    (void) sem_post(&m->asked);

    return 1;
}


vlm_mask_state_t
vlm_masks_take(vlm_masks_t *m, uint32_t slot, uint32_t *allowed, uint64_t *work)
{
    int       state;
    place_t  *p = &m->place[slot];

    state = atomic_load(&p->state);

    if (state == VLM_MASK_READY || state == VLM_MASK_TOO_MUCH) {
        memcpy(allowed, p->allowed, m->pieces->n_words * sizeof(*allowed));
        *work = p->work;
        atomic_store(&p->state, VLM_MASK_NONE);
    }

    return (vlm_mask_state_t) state;
}


/* Waits until the thread has made some mask, or for ns. */
static void
wait_made(vlm_masks_t *m, long ns)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (t.tv_nsec + ns) / 1000000000;
    t.tv_nsec = (t.tv_nsec + ns) % 1000000000;
    (void) sem_clockwait(&m->made, CLOCK_MONOTONIC, &t);
}


void
vlm_masks_drop(vlm_masks_t *m, uint32_t slot)
{
    int       queued = VLM_MASK_QUEUED, busy = VLM_MASK_BUSY;
    place_t  *p = &m->place[slot];

    atomic_store(&p->quit, 1);
    atomic_store(&p->spent, 0);

    if (atomic_compare_exchange_strong(&p->state, &queued, VLM_MASK_NONE)) {
        release(p);

    } else if (atomic_load(&p->state) != VLM_MASK_LEFT
               && !atomic_compare_exchange_strong(&p->state, &busy, VLM_MASK_LEFT))
    {
        atomic_store(&p->state, VLM_MASK_NONE);
    }
}


void
vlm_masks_wait(vlm_masks_t *m)
{
    int       state;
    uint32_t  i;

    while (sem_trywait(&m->made) == 0) { /* of masks that were taken or dropped */ }

    for (i = 0; i < m->n_places; i++) {
        state = atomic_load(&m->place[i].state);

        if (state == VLM_MASK_READY || state == VLM_MASK_TOO_MUCH) {
            return;                    /* it can be taken */
        }
    }

    for (i = 0; i < m->n_places; i++) {
        state = atomic_load(&m->place[i].state);

        if (state == VLM_MASK_QUEUED || state == VLM_MASK_BUSY || state == VLM_MASK_LEFT) {
            wait_made(m, WAIT);
            return;
        }
    }
}
