/*
 * What the rows in the slots' caches are of, so that a prompt is not read as far as it begins like
 * one that was read before, or that is being read in another slot.
 *
 * A slot keeps its rows when its job ends, until another job takes it.  Two beginnings are the same
 * if token ids and pictures are, and the salt: nothing that a client calls them.  Positions follow
 * from those.  A beginning ends before a picture or after it, never within, and leaves at least
 * the prompt's last row to be read, for that gives the first logits.  The engine thread's alone.
 */

#ifndef VLM_PREFIX_H
#define VLM_PREFIX_H

#include "run/features.h"
#include "vlm.h"

typedef struct {
    uint32_t            n;             /* rows that are in the cache */
    uint32_t            n_tokens;      /* those, and what the slot's job has yet to read */
    uint32_t           *token;         /* [context] */
    vlm_picture_key_t  *picture;       /* [n_pictures] of the tokens */
    uint32_t           *picture_at;    /* [n_pictures] its first row */
    uint32_t            n_pictures;
    uint8_t             salt[32];
    uint64_t            let_go;        /* when its last job ended, by the clock below */
} vlm_kept_t;

typedef struct {
    vlm_kept_t  *slot;                 /* [slots] */
    uint32_t     slots, context;
    uint64_t     clock;                /* one more with each end */
} vlm_prefix_t;

int vlm_prefix_open(vlm_prefix_t *x, uint32_t slots, uint32_t context, vlm_err_t *err);
void vlm_prefix_close(vlm_prefix_t *x);            /* safe on a zeroed structure */

/* Rows of a prompt that a slot will have or has; and those that it has. */
uint32_t vlm_prefix_common(const vlm_prefix_t *x, uint32_t slot, const vlm_prompt_t *p);
uint32_t vlm_prefix_match(const vlm_prefix_t *x, uint32_t slot, const vlm_prompt_t *p);

/*
 * The slot that a prompt should have, of those without a job, that is with job[i] NULL (there is
 * one): where it goes on with what is kept there; else an empty one; else where it agrees with
 * half of what is kept; else the one whose job ended first.
 */
uint32_t vlm_prefix_choose(const vlm_prefix_t *x, const vlm_prompt_t *p, vlm_job_t *const *job);

/* The prompt's job has the slot; as many rows as returned need not be read. */
uint32_t vlm_prefix_begin(vlm_prefix_t *x, uint32_t slot, const vlm_prompt_t *p);
/* Rows below n are in the cache. */
void vlm_prefix_read(vlm_prefix_t *x, uint32_t slot, uint32_t n);
/* One row more, of this token of the answer. */
void vlm_prefix_add(vlm_prefix_t *x, uint32_t slot, uint32_t token);
void vlm_prefix_end(vlm_prefix_t *x, uint32_t slot);
/* Rows in all slots' caches: of jobs, and kept. */
uint64_t vlm_prefix_rows(const vlm_prefix_t *x);
/* The slot's rows are worth nothing. */
void vlm_prefix_forget(vlm_prefix_t *x, uint32_t slot);

#endif
