
/*
 * The structures that the files of a pipeline share: a request, its plan, and
 * the result of each step.
 */


#ifndef _NGX_HTTP_VLM_PIPELINE_H_INCLUDED_
#define _NGX_HTTP_VLM_PIPELINE_H_INCLUDED_


#include "chat.h"


typedef struct {
    int                           task;        /* vlm_task_t */
    char                         *prompt;      /* the question: with the
                                                  previous answer, if the step
                                                  uses it */
    char                         *answer;      /* NULL: the step has failed */
    size_t                        answer_len;
    char                          error[256];  /* the error; or a remark */
    vlm_store_file_t             *result;      /* the drawn picture, or NULL */
    unsigned                      said:1;      /* the model has answered */
} ngx_http_vlm_pipeline_step_t;


/* of one request, ctx->data: malloc()ed, and so is the memory it points to */

typedef struct {
    ngx_http_vlm_chat_t           chat;        /* first the request, then its
                                                  steps as they are asked */
    char                         *words;       /* the plan's text */
    char                          why[512];    /* there is no plan, but one
                                                  step; or "" */
    vlm_words_step_t              plan[VLM_WORDS_STEPS];
    ngx_http_vlm_pipeline_step_t  steps[VLM_WORDS_STEPS];
    ngx_uint_t                    n;           /* steps */
    ngx_uint_t                    at;          /* the index of the next one */
    unsigned                      asked:1;     /* for the plan */
    unsigned                      planned:1;
    unsigned                      running:1;   /* a step is being answered */
    unsigned                      unsaved:1;   /* the step before "at" */
} ngx_http_vlm_pipeline_t;


/* ---- steps.c: the steps, one after the other ----------------------------- */

/* thread: makes the next step's prompt; none if no step is left */

void ngx_http_vlm_steps_prompt(ngx_http_vlm_ctx_t *ctx);

/* of a dialect: ended, once there is a plan; store; answer */

ngx_int_t ngx_http_vlm_steps_ended(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_steps_store(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_steps_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w);


#endif /* _NGX_HTTP_VLM_PIPELINE_H_INCLUDED_ */
