/*
 * The prefix cache: a record of the tokens behind the rows in the slots' caches.  A prompt's rows
 * are not computed again as far as another prompt with the same beginning was read, or is being
 * read in another slot.
 *
 * A slot keeps its rows when its job ends, until another job takes it.  Two beginnings are equal if
 * their token ids, the content and times of their pictures, their salts and adapters are; names
 * given by clients do not count, and positions follow.  A beginning ends before a picture or after
 * it, never within, and leaves at least the prompt's last row to be read, which gives the first
 * logits.  Only the engine thread uses it.
 */

#ifndef VLM_PREFIX_H
#define VLM_PREFIX_H

#include "run/features.h"
#include "vlm.h"

typedef struct {
    uint32_t            n;             /* rows that are in the cache */
    uint32_t            n_tokens;      /* those, and the rows that the slot's job has yet to read */
    uint32_t           *token;         /* [context] */
    vlm_picture_key_t  *picture;       /* [n_pictures] of the tokens */
    uint32_t           *picture_at;    /* [n_pictures] its first row */
    uint32_t           *time;          /* [n_pictures] as in the prompt */
    uint32_t            n_pictures;
    uint8_t             salt[32];
    uint8_t             adapted[32];   /* as in the prompt */
    uint64_t            released;      /* when its last job ended, by the clock below */
} vlm_kept_t;

typedef struct {
    vlm_kept_t  *slot;                 /* [slots] */
    uint32_t     slots, context;
    uint64_t     clock;                /* one more with each job's end */
} vlm_prefix_t;

int vlm_prefix_open(vlm_prefix_t *x, uint32_t slots, uint32_t context, vlm_err_t *err);
void vlm_prefix_close(vlm_prefix_t *x);            /* safe on a zeroed structure */

/* Rows of a prompt that a slot has, or will have; and rows that it has. */
uint32_t vlm_prefix_common(const vlm_prefix_t *x, uint32_t slot, const vlm_prompt_t *p);
uint32_t vlm_prefix_match(const vlm_prefix_t *x, uint32_t slot, const vlm_prompt_t *p);

/*
 * Chooses the slot for a prompt, of those without a job, which have job[i] NULL (there is one): a
 * slot whose kept rows the prompt continues; else an empty one; else one that agrees with half of
 * its kept rows; else the one whose job ended first.
 */
uint32_t vlm_prefix_choose(const vlm_prefix_t *x, const vlm_prompt_t *p, vlm_job_t *const *job);

/* Gives the slot to the prompt's job; the rows returned need not be read. */
uint32_t vlm_prefix_begin(vlm_prefix_t *x, uint32_t slot, const vlm_prompt_t *p);
/* Marks rows below n as computed. */
void vlm_prefix_read(vlm_prefix_t *x, uint32_t slot, uint32_t n);
/* Adds one row, of this token of the answer. */
void vlm_prefix_add(vlm_prefix_t *x, uint32_t slot, uint32_t token);
void vlm_prefix_end(vlm_prefix_t *x, uint32_t slot);
/* Rows in all slots' caches: of jobs, and kept. */
uint64_t vlm_prefix_rows(const vlm_prefix_t *x);
/* Forgets the slot's rows. */
void vlm_prefix_forget(vlm_prefix_t *x, uint32_t slot);

#endif
