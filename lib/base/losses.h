
/*
 * The recent losses of a worker's model: when they were, how long the next worker waits before it
 * loads, and whether it avoids the device for a while.
 *
 * The record lies in the shared zone; only the worker that has the model, or is about to load it,
 * writes it.  Times are ms of one clock for all of them.  No nginx here.
 */


#ifndef _NGX_HTTP_VLM_LOSSES_H_INCLUDED_
#define _NGX_HTTP_VLM_LOSSES_H_INCLUDED_


#include <stdint.h>


#define VLM_LOSSES        8           /* that are recorded */
#define VLM_LOSSES_MANY   3           /* so many, within */
#define VLM_LOSSES_TIME   (5 * 60 * 1000)     /* ms */
#define VLM_LOSSES_PAUSE  1000        /* ms, doubled by each */
#define VLM_LOSSES_LONG   (30 * 1000) /* the longest pause */
#define VLM_LOSSES_FAR    (8 * 60 * 60 * 1000)    /* the longest time on the CPU */
#define VLM_LOSSES_GOOD   (60 * 60 * 1000)    /* ms without one:
                                                  the next time is the first */


typedef struct {
    uint64_t                  when[VLM_LOSSES];   /* ms; a ring */
    uint64_t                  total;       /* [total % LOSSES] is the next */
    uint64_t                  away;        /* ms, the last time; 0: never */
    uint64_t                  until;       /* ms, its end */
} vlm_losses_t;


void vlm_losses_add(vlm_losses_t *l, uint64_t now);

/* losses within VLM_LOSSES_TIME, as far as they are recorded */

unsigned vlm_losses_recent(const vlm_losses_t *l,
    uint64_t now);

/* ms that a worker still waits before it loads again */

uint64_t vlm_losses_pause(const vlm_losses_t *l,
    uint64_t now);

/* for a starting worker: ms for which it avoids the device, or 0; "first" is the first such time,
   doubled by each that follows soon */

uint64_t vlm_losses_fallback(vlm_losses_t *l, uint64_t now,
    uint64_t first);


#endif /* _NGX_HTTP_VLM_LOSSES_H_INCLUDED_ */
