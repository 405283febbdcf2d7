/*
 * A pipeline of RoboBrain: the model's plan, its steps as they are asked one after the other, and
 * the answer of all.
 *
 * The plan is the model's text.  A missing field of it has a default, and without any plan the
 * request itself is the only step.
 */

#ifndef VLM_STEPS_H
#define VLM_STEPS_H

#include "robobrain/shapes_json.h"
#include "robobrain/words.h"
#include "store/store.h"

typedef struct {
    int                task;           /* vlm_task_t */
    char              *prompt;         /* the question: with the previous answer, if it uses that */
    char              *answer;         /* NULL: the step has failed */
    size_t             answer_len;
    char               error[256];     /* the error; or a remark */
    vlm_store_file_t  *result;         /* the drawn picture, or NULL */
    int                said;           /* the model has answered */
} vlm_step_t;

/* Zeroed by the caller; the memory that it points to is its own. */
typedef struct {
    char              *words;          /* the plan's text, or NULL */
    char               why[512];       /* there is no plan, but one step; or "" */
    vlm_words_step_t   plan[VLM_WORDS_STEPS];
    vlm_step_t         steps[VLM_WORDS_STEPS];
    size_t             n;              /* steps */
    size_t             at;             /* the index of the next one */
} vlm_steps_t;

/*
 * Makes the steps of s->words: whatever its type, each gets a task and a question.
 *
 *   message      the request
 *   description  of the step that it is without a plan
 *   returns      0; or -1: no memory, and there are no steps
 */
int vlm_steps_plan(vlm_steps_t *s, const char *message, const char *description);

/* The next step's question, malloc()ed, with the last answer if the plan refers to it; NULL: no
   memory. */
char *vlm_steps_text(const vlm_steps_t *s);

/* Keeps a step's answer, [bytes] behind the text "before"; -1: no memory. */
int vlm_steps_keep(vlm_step_t *step, const char *before, const char *text, size_t bytes);

void vlm_steps_free(vlm_steps_t *s);


/* ---- members of an answer ------------------------------------------------------------------- */

/* "error", "fallback" and "message" if there was no plan. */
void vlm_steps_put_why(const vlm_steps_t *s, vlm_json_out_t *w);

/* "final_answer", with the beginning of each answer, and "final_image". */
void vlm_steps_put_final(const vlm_steps_t *s, vlm_json_out_t *w);

/* "pipeline", "steps" with what each has brought, and "success"; view: the picture that the
   coordinates are of. */
void vlm_steps_put(const vlm_steps_t *s, vlm_json_out_t *w, const vlm_view_t *view);

/* The path of a drawn picture, or null. */
void vlm_steps_put_result(vlm_json_out_t *w, const char *key, const vlm_store_file_t *result);

#endif
