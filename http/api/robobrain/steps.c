
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


#define NGX_HTTP_VLM_STEPS_FINAL  200          /* characters of each answer */


/* the step's text, and if the plan refers to it, the previous answer */

static char *
ngx_http_vlm_steps_text(ngx_http_vlm_pipeline_t *p)
{
    char                          *text;
    ngx_uint_t                     i;
    vlm_words_step_t              *plan;
    ngx_http_vlm_pipeline_step_t  *before;

    plan = &p->plan[p->at];
    before = NULL;

    for (i = 0; plan->use_previous && i < p->at; i++) {
        if (p->steps[i].said) {
            before = &p->steps[i];
        }
    }

    if (before == NULL) {
        return strdup(plan->prompt);
    }

    return asprintf(&text, "%s\nPrevious result: %s", plan->prompt,
                    before->answer)
           == -1 ? NULL : text;
}


/* makes the next step a question of the session */

static ngx_int_t
ngx_http_vlm_steps_start(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_pipeline_t *p)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    struct timeval                 tv;
    ngx_http_vlm_pipeline_step_t  *step;

    step = &p->steps[p->at];

    step->prompt = ngx_http_vlm_steps_text(p);

    free((char *) chat->message.data);

    chat->message = vlm_store_string(step->prompt ? strdup(step->prompt)
                                                  : NULL);

    if (chat->message.data == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the step");
    }

    ngx_http_vlm_turn_task(ctx, step->task);

    step->task = chat->task;
    ngx_http_vlm_copy(p->plan[p->at].task, chat->task_name);

    ngx_gettimeofday(&tv);

    ctx->times.wall = (int64_t) tv.tv_sec * 1000000 + tv.tv_usec;

    ngx_http_vlm_turn_prompt(ctx);

    ctx->asking = 1;

    return ctx->prompt ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_vlm_steps_set(ngx_http_vlm_pipeline_step_t *step, const char *before,
    const char *text, size_t len)
{
    char    *at;
    size_t   n;

    n = ngx_strlen(before);

    step->answer = malloc(n + len + 1);

    if (step->answer == NULL) {
        return NGX_ERROR;
    }

    at = (char *) ngx_cpymem(step->answer, before, n);

    if (len) {
        at = (char *) ngx_cpymem(at, text, len);
    }

    *at = '\0';

    step->answer_len = n + len;

    return NGX_OK;
}


/*
 * The step's prompt could not be made.  A refusal of the model's side becomes
 * the step's error, as in the server that this one replaces; an error of the
 * server fails the request.
 */

static void
ngx_http_vlm_steps_failed(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_pipeline_step_t *step)
{
    const char  *text;

    text = ctx->error.err.text;

    if (ctx->error.status >= NGX_HTTP_INTERNAL_SERVER_ERROR
        || ngx_http_vlm_steps_set(step, "Inference error: ", text,
                                  ngx_strlen(text))
           != NGX_OK)
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

    for (p = ctx->data; p->at < p->n; p->at++) {

        if (ngx_http_vlm_steps_start(ctx, p) == NGX_OK) {
            p->running = 1;
            return;
        }

        ngx_http_vlm_steps_failed(ctx, &p->steps[p->at]);
    }
}


/* loop: the model has answered a step, or no step was left */

ngx_int_t
ngx_http_vlm_steps_ended(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    ngx_int_t                      rc;
    ngx_http_vlm_pipeline_step_t  *step;

    p->unsaved = 0;

    if (p->running) {
        p->running = 0;
        step = &p->steps[p->at++];

        if (ctx->error.err.code != VLM_OK) {
            rc = ngx_http_vlm_steps_set(step, "Inference error: ",
                                        ctx->error.err.text,
                                        ngx_strlen(ctx->error.err.text));

            ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));

        } else {
            rc = ngx_http_vlm_thinking_split(ctx, 1);

            if (rc == NGX_OK) {
                rc = ngx_http_vlm_steps_set(step, "",
                                            (char *) ctx->out.answer.data,
                                            ctx->out.answer.len);
            }

            step->said = 1;
            p->unsaved = 1;
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (p->at == p->n) {
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

    ngx_http_vlm_pipeline_step_t  *step;

    if (!p->unsaved) {
        return;
    }

    p->unsaved = 0;
    step = &p->steps[p->at - 1];

    ngx_http_vlm_turn_store(ctx);

    step->result = p->chat.result;
    p->chat.result = NULL;

    if (ctx->stored.code != VLM_STORE_OK
        && ctx->stored.code != VLM_STORE_GONE)
    {
        ngx_http_vlm_copy(step->error, "This turn was not stored");
    }
}


/* ---- the answer ---------------------------------------------------------- */


static void
ngx_http_vlm_steps_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w, ngx_uint_t n)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    vlm_view_t                     view;
    vlm_words_step_t              *plan;
    ngx_http_vlm_pipeline_step_t  *step;

    plan = &p->plan[n];
    step = &p->steps[n];

    vlm_json_open(w, '{');

    if (step->answer) {
        view = ngx_http_vlm_view(ctx, &p->chat.picture);

        vlm_json_add_text(w, "answer", step->answer, step->answer_len);
        vlm_shapes_add_coordinates(w, &view, step->task, step->answer,
                                   step->answer_len);
    }

    vlm_json_add_string(w, "description", plan->description);

    if (step->error[0] || step->answer == NULL) {
        vlm_json_add_string(w, "error", step->error);
    }

    if (step->answer) {
        ngx_http_vlm_answer_put_result(w, "output_image", step->result);
        vlm_json_add_string(w, "prompt", step->prompt);
    }

    vlm_json_add_int(w, "step", plan->number);
    vlm_json_add_bool(w, "success", step->answer != NULL);
    vlm_json_add_string(w, "task", plan->task);

    vlm_json_shut(w, '}');
}


/* "Step 1 (grounding): [1, 2, 3, 4]", a blank line between two */

static void
ngx_http_vlm_steps_put_final(vlm_json_out_t *w, ngx_http_vlm_pipeline_t *p)
{
    u_char                        *text, *last, *end;
    size_t                         size;
    ngx_uint_t                     i;
    ngx_http_vlm_pipeline_step_t  *step;

    /* a character has at most four bytes */

    size = VLM_WORDS_STEPS * (4 * NGX_HTTP_VLM_STEPS_FINAL + 64);

    text = malloc(size);

    if (text == NULL) {
        w->failed = 1;
        return;
    }

    last = text;
    end = text + size;

    for (i = 0; i < p->n; i++) {
        step = &p->steps[i];

        if (step->answer == NULL) {
            continue;
        }

        last = ngx_slprintf(last, end, "%sStep %L (%s): %*s",
                            last == text ? "" : "\n\n",
                            p->plan[i].number, p->plan[i].task,
                            vlm_words_cut(step->answer,
                                          step->answer_len,
                                          NGX_HTTP_VLM_STEPS_FINAL),
                            step->answer);
    }

    if (last == text) {
        last = ngx_slprintf(last, end, "Pipeline execution failed.");
    }

    vlm_json_add_text(w, "final_answer", (char *) text, last - text);

    free(text);
}


void
ngx_http_vlm_steps_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    ngx_uint_t         i, success;
    vlm_store_file_t  *result;

    result = NULL;
    success = 1;

    for (i = 0; i < p->n; i++) {
        success &= p->steps[i].answer ? 1 : 0;
        result = p->steps[i].result ? p->steps[i].result : result;
    }

    vlm_json_open(w, '{');

    ngx_http_vlm_steps_put_final(w, p);
    ngx_http_vlm_answer_put_result(w, "final_image", result);

    ngx_http_vlm_answer_put_resized(ctx, w);

    vlm_words_put_plan(w, p->plan, p->n);

    vlm_json_add_open(w, "steps", '[');

    for (i = 0; i < p->n; i++) {
        ngx_http_vlm_steps_put(ctx, w, i);
    }

    vlm_json_shut(w, ']');

    vlm_json_add_bool(w, "success", success);

    vlm_json_shut(w, '}');
}
