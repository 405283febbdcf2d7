
/*
 * POST /api/pipeline and /api/decompose: the model splits a request into
 * steps; /api/pipeline then executes them, too (steps.c).
 *
 * A plan is the model's text.  A missing field of it has a default, and
 * without any plan the request itself is the only step.
 */


#include "pipeline.h"
#include "ask_text.h"


/* ---- the plan, for both -------------------------------------------------- */


static void
ngx_http_vlm_pipeline_ask(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    ngx_http_vlm_aside_ask(ctx, NGX_HTTP_VLM_ASK_STEPS, chat->message.len, 0.2,
                           1500);
}


/* loop: keeps the model's plan, as text, in p->words */

static void
ngx_http_vlm_pipeline_text(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    size_t     len;
    ngx_str_t  words;

    if (ctx->error.err.code != VLM_OK) {
        ngx_http_vlm_copy(p->why, ctx->error.err.text);
        ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));
        return;
    }

    ngx_http_vlm_aside_said(ctx, &words);

    /* a plan without its end is no plan, so an answer cut here loses nothing;
       strndup() would do, but the sanitizers require a terminated string */

    len = ngx_min(words.len, VLM_WORDS_PLAN);

    p->words = malloc(len + 1);

    if (p->words) {
        ngx_memcpy(p->words, words.data, len);
        p->words[len] = '\0';
    }
}


/* whatever the step's type, it gets a task and a question */

static int
ngx_http_vlm_pipeline_complete(ngx_http_vlm_pipeline_t *p)
{
    int                         task;
    ngx_uint_t                  i;
    vlm_words_step_t           *plan;

    for (i = 0; i < p->n; i++) {
        plan = &p->plan[i];

        if (plan->prompt && plan->prompt[0] == '\0') {
            free(plan->prompt);
            plan->prompt = strdup(p->chat.message.data);
        }

        if (plan->prompt == NULL || plan->description == NULL) {
            p->n = 0;
            return -1;
        }

        task = vlm_task_find(plan->task, ngx_strlen(plan->task));

        p->steps[i].task = task < 0 ? VLM_GENERAL : task;

        ngx_http_vlm_copy(plan->task, vlm_task_name(p->steps[i].task));
    }

    return 0;
}


static int
ngx_http_vlm_pipeline_plan(ngx_http_vlm_pipeline_t *p, const char *description)
{
    int     n;
    size_t  len;
    u_char  *last;

    p->planned = 1;

    len = p->words ? ngx_strlen(p->words) : 0;
    n = vlm_words_plan(p->words, len, p->plan);

    if (n < 0) {
        return -1;
    }

    if (n == 0) {
        if (p->why[0] == '\0') {
            last = ngx_snprintf((u_char *) p->why, sizeof(p->why) - 1,
                                "Could not parse JSON from response: %*s",
                                vlm_words_cut(p->words, len, 200),
                                p->words ? p->words : "");
            p->why[vlm_utf8_whole(p->why, (char *) last - p->why)] = '\0';
        }

        p->plan[0].number = 1;
        p->plan[0].prompt = strdup(p->chat.message.data);
        p->plan[0].description = strdup(description);
        n = 1;
    }

    p->n = n;

    return ngx_http_vlm_pipeline_complete(p);
}


/* ---- /api/pipeline ------------------------------------------------------- */


static void
ngx_http_vlm_pipeline_fields(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    const vlm_json_t  *message;

    if (ngx_http_vlm_chat_create(ctx, json, sizeof(ngx_http_vlm_pipeline_t))
        == NULL)
    {
        return;
    }

    message = vlm_json_get(json, "message");

    if (!vlm_json_is_true(message)
        || (!vlm_json_is_true(vlm_json_get(json, "session_id"))
            && !vlm_json_is_true(vlm_json_get(json, "sessionId"))))
    {
        (void) ngx_http_vlm_fail_input(ctx, "Missing session ID or message");
        return;
    }

    if (ngx_http_vlm_chat_session(ctx, json) == NGX_OK
        && ngx_http_vlm_chat_message(ctx, message,
                                     "The message is not a string")
           == NGX_OK
        && ngx_http_vlm_chat_image(ctx, json) == NGX_OK)
    {
        (void) ngx_http_vlm_turn_fit(ctx, 1);
    }
}


/* for the plan, and then for each step: all are about one picture, which is
   checked before the model is asked */

static void
ngx_http_vlm_pipeline_prompt(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    ngx_int_t    rc;
    vlm_err_t    err;
    const char  *description;

    if (!p->asked) {
        p->asked = 1;

        rc = ngx_http_vlm_turn_check(ctx, &err);

        if (rc != NGX_OK) {
            (void) ngx_http_vlm_fail_input(ctx, "%s", rc == NGX_ERROR
                                           ? err.text : "No image provided for "
                                             "pipeline execution");
            return;
        }

        ngx_http_vlm_pipeline_ask(ctx);

        if (ctx->prompt) {
            return;
        }

        ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));
    }

    if (!p->planned) {
        description = p->words && strchr(p->words, '[')
                      && strrchr(p->words, ']') > strchr(p->words, '[')
                      ? "Fallback to general query"
                      : "Process as general query";

        if (ngx_http_vlm_pipeline_plan(p, description) != 0) {
            (void) ngx_http_vlm_fail_memory(ctx, "the plan");
            return;
        }
    }

    ngx_http_vlm_steps_prompt(ctx);
}


static ngx_int_t
ngx_http_vlm_pipeline_ended(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    if (p->planned) {
        return ngx_http_vlm_steps_ended(ctx);
    }

    ngx_http_vlm_pipeline_text(ctx);
    ngx_http_vlm_finish_again(ctx, 1);

    return NGX_AGAIN;
}


/* ---- /api/decompose ------------------------------------------------------ */


static void
ngx_http_vlm_decompose_fields(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    const vlm_json_t  *query;

    query = vlm_json_get(json, "query");

    if (!vlm_json_is_true(query)) {
        (void) ngx_http_vlm_fail_input(ctx, "Query is required");
        return;
    }

    if (ngx_http_vlm_chat_create(ctx, json, sizeof(ngx_http_vlm_pipeline_t))) {
        (void) ngx_http_vlm_chat_message(ctx, query,
                                         "The query is not a string");
    }
}


static ngx_int_t
ngx_http_vlm_decompose_ended(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_pipeline_text(ctx);

    ctx->asking = 0;

    return NGX_OK;
}


/* stores nothing, but the hook runs in a thread, where the plan is parsed */

static void
ngx_http_vlm_decompose_store(ngx_http_vlm_ctx_t *ctx)
{
    if (ngx_http_vlm_pipeline_plan(ctx->data,
                                   "Execute the query as a general task "
                                   "(decomposition failed)")
        != 0)
    {
        (void) ngx_http_vlm_fail_memory(ctx, "the plan");
    }
}


static void
ngx_http_vlm_decompose_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    vlm_json_open(w, '{');

    if (p->why[0]) {
        vlm_json_add_string(w, "error", p->why);
        vlm_json_add_bool(w, "fallback", 1);
        vlm_json_add_format(w, "message", "Could not decompose query: %s",
                            p->why);
    }

    vlm_words_put_plan(w, p->plan, p->n);
    vlm_json_add_bool(w, "success", 1);

    vlm_json_shut(w, '}');
}


/* ---- both ---------------------------------------------------------------- */


static void
ngx_http_vlm_pipeline_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    ngx_uint_t  i;

    if (p == NULL) {
        return;
    }

    vlm_words_plan_free(p->plan, VLM_WORDS_STEPS);

    for (i = 0; i < VLM_WORDS_STEPS; i++) {
        free(p->steps[i].prompt);
        free(p->steps[i].answer);
        free(p->steps[i].result);
    }

    free(p->words);

    ngx_http_vlm_chat_free(ctx);
}


const ngx_http_vlm_dialect_t  ngx_http_vlm_pipeline_dialect = {
    .fields = ngx_http_vlm_pipeline_fields,
    .prompt = ngx_http_vlm_pipeline_prompt,
    .ended = ngx_http_vlm_pipeline_ended,
    .store = ngx_http_vlm_steps_store,
    .answer = ngx_http_vlm_steps_answer,
    .free = ngx_http_vlm_pipeline_free
};


const ngx_http_vlm_dialect_t  ngx_http_vlm_decompose_dialect = {
    .fields = ngx_http_vlm_decompose_fields,
    .prompt = ngx_http_vlm_pipeline_ask,
    .ended = ngx_http_vlm_decompose_ended,
    .store = ngx_http_vlm_decompose_store,
    .answer = ngx_http_vlm_decompose_answer,
    .free = ngx_http_vlm_pipeline_free
};
