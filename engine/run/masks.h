/*
 * Masks that take long, made by threads of their own, so that the steps of other sequences do not
 * wait for them: the sequence sits out steps until its mask is there.
 *
 * There is a place for each slot, and places are served in the order in which they were asked.  A
 * mask that is not made in short time begins again in a second thread, so that a heavy grammar
 * holds up no lighter one, however often it is sent again.
 */

#ifndef VLM_MASKS_H
#define VLM_MASKS_H

#include "grammar/mask.h"

typedef struct vlm_masks_s  vlm_masks_t;

typedef enum {
    VLM_MASK_NONE,
    VLM_MASK_QUEUED, VLM_MASK_BUSY,
    VLM_MASK_LEFT,                     /* still busy, for a job that has ended */
    VLM_MASK_READY,
    VLM_MASK_TOO_MUCH                  /* more than VLM_MASK_MOST steps: it is not complete */
} vlm_mask_state_t;

/* n_slots places.  NULL with err: no memory, or no thread. */
vlm_masks_t *vlm_masks_open(const vlm_tokens_t *pieces, uint32_t n_slots, vlm_err_t *err);
void vlm_masks_close(vlm_masks_t *m);  /* all places are free; takes NULL */

/* ---- the engine thread's ------------------------------------------------- */

/*
 * Asks for a slot's mask, as vlm_mask() makes it.  0: the place is not free yet, since a thread
 * is about to leave the mask of a job before.  match is copied.
 */
int vlm_masks_ask(vlm_masks_t *m, uint32_t slot, const vlm_match_t *match, uint32_t n_after);
/*
 * The state of a slot's mask.  If it is ready or too much, the place is free, and work is the steps
 * that it took; if it is ready, it is copied to allowed [n_words].
 */
vlm_mask_state_t vlm_masks_take(vlm_masks_t *m, uint32_t slot, uint32_t *allowed, uint64_t *work);
/* The slot's job has ended.  A thread leaves its mask soon; nothing waits for that. */
void vlm_masks_drop(vlm_masks_t *m, uint32_t slot);
/* Waits for some mask, a few milliseconds at most; not at all if none is being made. */
void vlm_masks_wait(vlm_masks_t *m);

#endif
