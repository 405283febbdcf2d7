
/*
 * The structure that the files of a pipeline share: a request, and its steps
 * (lib/robobrain/steps.h).
 */


#ifndef _NGX_HTTP_VLM_PIPELINE_H_INCLUDED_
#define _NGX_HTTP_VLM_PIPELINE_H_INCLUDED_


#include "chat.h"
#include "robobrain/steps.h"


/* of one request, ctx->data: malloc()ed, and so is the memory it points to */

typedef struct {
    ngx_http_vlm_chat_t           chat;        /* first the request, then its
                                                  steps as they are asked */
    vlm_steps_t                   s;
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
