
/*
 * The steps of a pipeline: each is a question of its session like those of
 * /api/chat, with a job of its own at the end of the queue, so that other
 * requests are answered in between.  All steps share the request's one
 * deadline.
 *
 * A step that the model could not answer records the error, and the next one
 * follows.
 */


#include "pipeline.h"


/* makes the next step a question of the session */

static ngx_int_t
ngx_http_vlm_steps_start(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_pipeline_t *p)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    vlm_step_t      *step;
    struct timeval   tv;

    step = &p->s.steps[p->s.at];

    step->prompt = vlm_steps_text(&p->s);

    free((char *) chat->message.data);

    chat->message = vlm_store_string(step->prompt ? strdup(step->prompt)
                                                  : NULL);

    if (chat->message.data == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the step");
    }

    ngx_http_vlm_turn_task(ctx, step->task);

    step->task = chat->task;
    ngx_http_vlm_copy(p->s.plan[p->s.at].task, chat->task_name);

    ngx_gettimeofday(&tv);

    ctx->times.wall = (int64_t) tv.tv_sec * 1000000 + tv.tv_usec;

    ngx_http_vlm_turn_prompt(ctx);

    ctx->asking = 1;

    return ctx->prompt ? NGX_OK : NGX_ERROR;
}


/*
 * The step's prompt could not be made.  A refusal of the model's side becomes
 * the step's error, as in the server that this one replaces; an error of the
 * server fails the request.
 */

static void
ngx_http_vlm_steps_failed(ngx_http_vlm_ctx_t *ctx,
    vlm_step_t *step)
{
    const char  *text;

    text = ctx->error.err.text;

    if (ctx->error.status >= NGX_HTTP_INTERNAL_SERVER_ERROR
        || vlm_steps_keep(step, "Inference error: ", text, ngx_strlen(text))
           != 0)
    {
        if (ctx->stored.code != VLM_STORE_OK) {
            text = vlm_store_text(ctx->stored.code);
        }

        ngx_http_vlm_copy(step->error, text);
    }

    ctx->stored.code = VLM_STORE_OK;

    ngx_http_vlm_fail_clear(ctx);
}


void
ngx_http_vlm_steps_prompt(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_pipeline_t  *p;

    for (p = ctx->data; p->s.at < p->s.n; p->s.at++) {

        if (ngx_http_vlm_steps_start(ctx, p) == NGX_OK) {
            p->running = 1;
            return;
        }

        ngx_http_vlm_steps_failed(ctx, &p->s.steps[p->s.at]);
    }
}


/* loop: the model has answered a step, or no step was left */

ngx_int_t
ngx_http_vlm_steps_ended(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    ngx_int_t    rc;
    vlm_step_t  *step;

    p->unsaved = 0;

    if (p->running) {
        p->running = 0;
        step = &p->s.steps[p->s.at++];

        if (ctx->error.err.code != VLM_OK) {
            rc = vlm_steps_keep(step, "Inference error: ",
                                ctx->error.err.text,
                                ngx_strlen(ctx->error.err.text));

            ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));

        } else {
            rc = ngx_http_vlm_thinking_split(ctx, 1);

            if (rc == NGX_OK) {
                rc = vlm_steps_keep(step, "", (char *) ctx->out.answer.data,
                                    ctx->out.answer.len);
            }

            step->said = 1;
            p->unsaved = 1;
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (p->s.at == p->s.n) {
        ctx->asking = 0;
        return NGX_OK;
    }

    if (p->unsaved) {
        ngx_http_vlm_finish_store(ctx);

    } else {
        ngx_http_vlm_finish_again(ctx, 1);
    }

    return NGX_AGAIN;
}


void
ngx_http_vlm_steps_store(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    vlm_step_t  *step;

    if (!p->unsaved) {
        return;
    }

    p->unsaved = 0;
    step = &p->s.steps[p->s.at - 1];

    ngx_http_vlm_turn_store(ctx);

    step->result = p->chat.result;
    p->chat.result = NULL;

    if (ctx->stored.code != VLM_STORE_OK
        && ctx->stored.code != VLM_STORE_GONE)
    {
        ngx_http_vlm_copy(step->error, "This turn was not stored");
    }
}


void
ngx_http_vlm_steps_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    vlm_view_t  view;

    view = ngx_http_vlm_view(ctx);

    vlm_json_open(w, '{');

    vlm_steps_put_final(&p->s, w);
    ngx_http_vlm_answer_put_resized(ctx, w);
    vlm_steps_put(&p->s, w, &view);

    vlm_json_shut(w, '}');
}
