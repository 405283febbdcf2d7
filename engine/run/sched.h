/*
 * What the parts of the state machine ask of each other; all of it is the engine thread's.
 * sched.c has the loop, read.c a prompt's reading, pass.c rows through the layers, answer.c what
 * was picked.
 */

#ifndef VLM_SCHED_H
#define VLM_SCHED_H

#include "run/engine.h"
#include "vlm.h"

/* ---- read.c -------------------------------------------------------------- */

/* One slice for one of those that still read; they take turns, but one picture is in the tower. */
void vlm_read_one(vlm_t *v);
/* Rows below n of the slot, whole pictures among them, need not be read. */
void vlm_skip_rows(vlm_job_t *j, uint32_t n);
/* The picture that the job is at, if any: the tower is free if nobody else waits for it. */
void vlm_let_go_picture(vlm_t *v, vlm_job_t *j);

/* ---- pass.c -------------------------------------------------------------- */

typedef struct {                       /* who is asked whether to leave, and what was said */
    vlm_t      *v;
    vlm_job_t  *j;                     /* whose slice it is, or NULL */
    int         quit;
} vlm_asker_t;

/*
 * sched.rows through all layers, and tokens into sched.token for those that asked.  only: whose
 * slice it is, NULL for a step; jobs: whose rows want logits, in their order.  -1: left undone,
 * cancelled or stopped or the device refused, which the loop finds.
 */
int vlm_pass(vlm_t *v, vlm_job_t *only, vlm_job_t **jobs);
void vlm_set_pick(const vlm_job_t *j, vlm_pick_t *pick);
int vlm_should_quit(void *data);       /* a vlm_quit_fn; data: a vlm_asker_t */
void vlm_tick(vlm_t *v);               /* the engine lives */

/* ---- answer.c ------------------------------------------------------------ */

/* The job's next token: it may be the last, and the job the loop's. */
void vlm_take_token(vlm_t *v, vlm_job_t *j, uint32_t token, float logprob);
/* Its slot is free.  After this the job is the loop's: not to be touched.  err: NULL if it went
   well. */
void vlm_end_job(vlm_t *v, vlm_job_t *j, vlm_finish_t finish, const vlm_err_t *err);
void vlm_enter(vlm_job_t *j, vlm_job_state_t state);       /* and time is counted for it */

#endif
