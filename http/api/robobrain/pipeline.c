
/*
 * POST /api/pipeline and /api/decompose: the model splits a request into
 * steps; /api/pipeline then executes them, too (steps.c).
 *
 * A plan is the model's text, which lib/robobrain/steps.c makes into steps.
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


/* loop: keeps the model's plan, as text */

static void
ngx_http_vlm_pipeline_text(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    size_t     len;
    ngx_str_t  words;

    if (ctx->error.err.code != VLM_OK) {
        ngx_http_vlm_copy(p->s.why, ctx->error.err.text);
        ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));
        return;
    }

    ngx_http_vlm_aside_said(ctx, &words);

    /* a plan without its end is no plan, so an answer cut here loses nothing;
       strndup() would do, but the sanitizers require a terminated string */

    len = ngx_min(words.len, VLM_WORDS_PLAN);

    p->s.words = malloc(len + 1);

    if (p->s.words) {
        ngx_memcpy(p->s.words, words.data, len);
        p->s.words[len] = '\0';
    }
}


/* ---- /api/pipeline ------------------------------------------------------- */


static void
ngx_http_vlm_pipeline_fields(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    const vlm_json_t     *message;
    ngx_http_vlm_chat_t  *chat;

    chat = ngx_http_vlm_chat_create(ctx, json, sizeof(ngx_http_vlm_pipeline_t));

    if (chat == NULL) {
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
        && ngx_http_vlm_chat_text(ctx, message, "The message", "The message is "
                                  "not a string", &chat->message)
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
        p->planned = 1;

        description = p->s.words && strchr(p->s.words, '[')
                      && strrchr(p->s.words, ']') > strchr(p->s.words, '[')
                      ? "Fallback to general query"
                      : "Process as general query";

        if (vlm_steps_plan(&p->s, p->chat.message.data, description) != 0) {
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
    const vlm_json_t     *query;
    ngx_http_vlm_chat_t  *chat;

    query = vlm_json_get(json, "query");

    if (!vlm_json_is_true(query)) {
        (void) ngx_http_vlm_fail_input(ctx, "Query is required");
        return;
    }

    chat = ngx_http_vlm_chat_create(ctx, json, sizeof(ngx_http_vlm_pipeline_t));

    if (chat) {
        (void) ngx_http_vlm_chat_text(ctx, query, "The message", "The query is "
                                      "not a string", &chat->message);
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
    ngx_http_vlm_pipeline_t *p = ctx->data;

    if (vlm_steps_plan(&p->s, p->chat.message.data, "Execute the query as a "
                       "general task (decomposition failed)")
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

    vlm_steps_put_why(&p->s, w);
    vlm_words_put_plan(w, p->s.plan, p->s.n);
    vlm_json_add_bool(w, "success", 1);

    vlm_json_shut(w, '}');
}


/* ---- both ---------------------------------------------------------------- */


static void
ngx_http_vlm_pipeline_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_pipeline_t *p = ctx->data;

    if (p) {
        vlm_steps_free(&p->s);
    }

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
