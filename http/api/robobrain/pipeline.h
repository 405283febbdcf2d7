
/*
 * What the files of a pipeline share: a request, its plan, and what became of
 * each step.
 */


#ifndef _NGX_HTTP_VLM_PIPELINE_H_INCLUDED_
#define _NGX_HTTP_VLM_PIPELINE_H_INCLUDED_


#include "chat.h"


typedef struct {
    int                           task;        /* vlm_task_t */
    char                         *prompt;      /* as asked: with what was
                                                  said before, if it uses it */
    char                         *answer;      /* NULL: the step has failed */
    size_t                        answer_len;
    char                          error[256];  /* why; or what to know of it */
    vlm_store_file_t    *result;      /* the drawn picture, or NULL */
    unsigned                      said:1;      /* the answer is the model's */
} ngx_http_vlm_pipeline_step_t;


/* of one request, ctx->data: malloc()ed, and so is what it points to */

typedef struct {
    char                         *query;       /* the request's own words */
    char                         *words;       /* the plan as it was said */
    char                          why[512];    /* there is no plan */
    vlm_words_step_t     plan[VLM_WORDS_STEPS];
    ngx_http_vlm_pipeline_step_t  steps[VLM_WORDS_STEPS];
    ngx_uint_t                    n;           /* steps */
    ngx_uint_t                    at;          /* the one that is next */
    unsigned                      asked:1;     /* for the plan */
    unsigned                      planned:1;
    unsigned                      fallback:1;  /* one step, for want of it */
    unsigned                      running:1;   /* the model answers a step */
    unsigned                      unsaved:1;   /* the step before "at" */
} ngx_http_vlm_pipeline_t;


/* ---- pipeline.c: requests and plans -------------------------------------- */

/* thread: the model's words to a plan, which has a step in any case; -1: no
   memory */

int ngx_http_vlm_pipeline_plan(ngx_http_vlm_pipeline_t *p,
    const char *description);


/* ---- steps.c: the steps, one after the other ----------------------------- */

/* thread: makes the next step's prompt; none if no step is left */

void ngx_http_vlm_steps_prompt(ngx_http_vlm_ctx_t *ctx);

/* of a dialect: ended, once there is a plan; store; answer */

ngx_int_t ngx_http_vlm_steps_ended(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_steps_store(ngx_http_vlm_ctx_t *ctx);
ngx_int_t ngx_http_vlm_steps_answer(ngx_http_vlm_ctx_t *ctx);

/* the plan as JSON */

void ngx_http_vlm_steps_put_plan(vlm_json_out_t *w,
    ngx_http_vlm_pipeline_t *p);


#endif /* _NGX_HTTP_VLM_PIPELINE_H_INCLUDED_ */
