/* The threads of masks: see the header.  Places change hands by their state alone, without a lock,
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

#define NICE    10                     /* a tenth of a busy core; all of an idle one */
#define WAIT    5000000                /* ns */
#define SHORT   (1u << 18)             /* steps of a mask of the first queue */
#define QUEUES  2

typedef struct {
    atomic_int      state;             /* vlm_mask_state_t */
    atomic_int      quit;
    atomic_int      queue;             /* 0: of short masks, 1: of long ones */
    atomic_ullong   asked;             /* when, by a count of asks */
    vlm_match_t    *match;             /* a copy, and a user of its grammar */
    uint32_t        n_after;
    uint32_t       *allowed;           /* [n_words] */
    uint64_t        work;              /* of the last mask, in steps */
} place_t;

typedef struct {
    vlm_masks_t    *masks;
    vlm_walk_t     *walk;              /* the thread's */
    pthread_t       thread;
    int             started;
    sem_t           asked;
} worker_t;

struct vlm_masks_s {
    const vlm_tokens_t  *pieces;
    worker_t             worker[QUEUES];
    sem_t                made;
    atomic_int           stopping;
    uint64_t             n_asked;
    uint32_t             n_places;
    place_t              place[];      /* [n_places] */
};


/* The place of a queue that was asked first, which is now busy; NULL: none is queued. */
static place_t *
next(vlm_masks_t *m, int queue)
{
    int        queued;
    place_t   *p, *first;
    uint32_t   i;

    do {
        for (first = NULL, i = 0; i < m->n_places; i++) {
            p = &m->place[i];

            if (atomic_load(&p->state) == VLM_MASK_QUEUED && atomic_load(&p->queue) == queue
                && (first == NULL || atomic_load(&p->asked) < atomic_load(&first->asked)))
            {
                first = p;
            }
        }

        queued = VLM_MASK_QUEUED;
    } while (first != NULL
             && !atomic_compare_exchange_strong(&first->state, &queued, VLM_MASK_BUSY));

    return first;
}


static void
release(place_t *p)
{
    vlm_grammar_free((vlm_grammar_t *) p->match->g);
}


/* 1: a mask that is too long for the first queue waits in the other one now. */
static int
moves(vlm_masks_t *m, place_t *p)
{
    int  busy = VLM_MASK_BUSY;

    atomic_store(&p->queue, 1);

    if (!atomic_compare_exchange_strong(&p->state, &busy, VLM_MASK_QUEUED)) {
        return 0;                      /* it was left */
    }

    (void) sem_post(&m->worker[1].asked);

    return 1;
}


static void
make(vlm_masks_t *m, worker_t *w, place_t *p)
{
    int  rc, busy = VLM_MASK_BUSY, first = w == &m->worker[0];

    vlm_walk_allow(w->walk, first ? SHORT : VLM_MASK_MOST, &p->quit);
    rc = vlm_mask(m->pieces, p->match, w->walk, p->n_after, p->allowed);

    if (rc != 0 && first && moves(m, p)) {
        return;
    }

    p->work = vlm_walk_work(w->walk);
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
    worker_t     *w = data;
    vlm_masks_t  *m = w->masks;

    (void) setpriority(PRIO_PROCESS, (id_t) gettid(), NICE);       /* or as the others run */

    for ( ;; ) {
        while (sem_wait(&w->asked) != 0 && errno == EINTR) { /* void */ }

        if (atomic_load(&m->stopping)) {
            return NULL;
        }

        p = next(m, (int) (w - m->worker));

        if (p != NULL) {
            make(m, w, p);
        }
    }
}


static int
start(vlm_masks_t *m, worker_t *w)
{
    w->masks = m;
    w->walk = vlm_walk_open(m->pieces);

    if (w->walk == NULL || sem_init(&w->asked, 0, 0) != 0) {
        return -1;
    }

    w->started = pthread_create(&w->thread, NULL, masks_main, w) == 0;

    return w->started ? 0 : -1;
}


vlm_masks_t *
vlm_masks_open(const vlm_tokens_t *pieces, uint32_t n_slots, vlm_err_t *err)
{
    int           ok;
    place_t      *p;
    uint32_t      i;
    vlm_masks_t  *m;

    m = calloc(1, sizeof(*m) + (size_t) n_slots * sizeof(*m->place));
    ok = m != NULL && sem_init(&m->made, 0, 0) == 0;

    if (ok) {
        m->pieces = pieces;
    }

    for ( /* void */ ; ok && m->n_places < n_slots; m->n_places++) {
        p = &m->place[m->n_places];
        p->match = malloc(sizeof(*p->match));
        p->allowed = malloc(pieces->n_words * sizeof(*p->allowed));
        ok = p->match != NULL && p->allowed != NULL;
    }

    for (i = 0; ok && i < QUEUES; i++) {
        ok = start(m, &m->worker[i]) == 0;
    }

    if (ok) {
        return m;
    }

    (void) vlm_fail(err, VLM_EMEMORY, "no memory for the masks of %u slots", n_slots);
    vlm_masks_close(m);

    return NULL;
}


void
vlm_masks_close(vlm_masks_t *m)
{
    uint32_t  i;

    if (m == NULL) {
        return;
    }

    atomic_store(&m->stopping, 1);

    for (i = 0; i < QUEUES; i++) {
        if (m->worker[i].started) {
            (void) sem_post(&m->worker[i].asked);
            (void) pthread_join(m->worker[i].thread, NULL);
            (void) sem_destroy(&m->worker[i].asked);
        }

        vlm_walk_close(m->worker[i].walk);
    }

    for (i = 0; i < m->n_places; i++) {
        free(m->place[i].match);
        free(m->place[i].allowed);
    }

    (void) sem_destroy(&m->made);
    free(m);
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
    atomic_store(&p->queue, 0);
    atomic_store(&p->asked, ++m->n_asked);
    atomic_store(&p->state, VLM_MASK_QUEUED);
    (void) sem_post(&m->worker[0].asked);

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


/* Waits until a thread has made some mask, or for ns. */
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
    int       state;
    place_t  *p = &m->place[slot];

    atomic_store(&p->quit, 1);

    do {
        state = atomic_load(&p->state);
    } while (state != VLM_MASK_LEFT
             && !atomic_compare_exchange_weak(&p->state, &state, state == VLM_MASK_BUSY
                                                                 ? VLM_MASK_LEFT : VLM_MASK_NONE));

    if (state == VLM_MASK_QUEUED) {
        release(p);
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
