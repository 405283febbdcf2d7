/*
 * The interface between the parts of the state machine, for the engine thread alone.  sched.c has
 * the loop, read.c a prompt's prefill, step.c a step of the answers, pass.c rows through the
 * layers, answer.c the picked tokens.
 */

#ifndef VLM_SCHED_H
#define VLM_SCHED_H

#include "run/engine.h"
#include "vlm.h"

/* ---- read.c -------------------------------------------------------------- */

/*
 * Runs one slice for one of the jobs that still read.  Jobs take turns, but the vision encoder
 * finishes one picture before the next.  0: there was no slice to run.
 */
int vlm_sched_read(vlm_t *v);
/* Marks rows below n of the slot, whole pictures among them, as present. */
void vlm_skip_rows(vlm_job_t *j, uint32_t n);
/* Releases the job's picture, if any; the vision encoder is free if no other job waits for it. */
void vlm_release_picture(vlm_t *v, vlm_job_t *j);

/* ---- step.c -------------------------------------------------------------- */

/*
 * Steps all decoding jobs that have their masks: one token each, and more where tokens were
 * guessed.  0: there was none.
 */
int vlm_sched_step(vlm_t *v);

/* ---- pass.c -------------------------------------------------------------- */

typedef struct {                       /* the jobs that are asked whether to stop, and the answer */
    vlm_t      *v;
    vlm_job_t  *j;                     /* the job of the slice, or NULL */
    int         quit;
} vlm_asker_t;

/*
 * Runs sched.rows through all layers, and puts picked tokens into sched.token.  only: the job of
 * the slice, NULL for a step; jobs: the jobs whose rows want logits, in their order.  -1: left
 * undone because of a cancellation, a stop or a refusal by the device, which the loop handles.
 */
int vlm_pass(vlm_t *v, vlm_job_t *only, vlm_job_t **jobs);
/* The adapter of the rows of the last sequence. */
void vlm_adapt_rows(vlm_rows_t *rows, const vlm_prompt_t *p);
/* Of the calls that follow: that of the rows, or of a prompt's pictures. */
void vlm_adapt_text(vlm_model_t *m, const vlm_rows_t *rows);
void vlm_adapt_vision(vlm_model_t *m, const vlm_prompt_t *p);
void vlm_set_pick(const vlm_job_t *j, vlm_pick_t *pick);
int vlm_should_quit(void *data);       /* a vlm_quit_fn; data: a vlm_asker_t */
void vlm_tick(vlm_t *v);               /* counts one more tick of vlm_stat() */

/* ---- answer.c ------------------------------------------------------------ */

/* 1: the mask of the job's next token is there.  A job whose mask is too much work has ended. */
int vlm_has_mask(vlm_t *v, vlm_job_t *j);

/* Handles the job's next token: it may be the last, after which the loop owns the job. */
void vlm_take_token(vlm_t *v, vlm_job_t *j, uint32_t token, float logprob);
/* vector.c: ends a job that wants a vector, of this row of the pass before. */
void vlm_take_vector(vlm_t *v, vlm_job_t *j, uint32_t row);
/*
 * Frees the job's slot.  From then on the loop owns the job, and the engine must not touch it.
 * err: NULL on success.
 */
void vlm_end_job(vlm_t *v, vlm_job_t *j, vlm_finish_t finish, const vlm_err_t *err);
void vlm_enter(vlm_job_t *j, vlm_job_state_t state);       /* counts the time of the state before */

#endif
