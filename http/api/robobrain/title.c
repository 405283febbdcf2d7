
/*
 * POST /api/generate-title: the title of a conversation in a list.
 *
 * A page requests titles beside its questions and does not wait for them.  So
 * the model is asked only if a slot is free and the queue is empty; else, and
 * after any failure, the title is the first words of the message.
 */


#include "chat.h"
#include "ask_text.h"


#define NGX_HTTP_VLM_TITLE_MESSAGE  8192   /* bytes of a message that are
                                              read */


/* a thread, without the model: bypasses the queue, in any worker */

static void
ngx_http_vlm_title_words(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_input_parse(ctx);

    if (ctx->error.status == 0) {
        ngx_http_vlm_write_answer(ctx);
    }
}


/* a body may take long to arrive, so the free slot is checked after it */

static void
ngx_http_vlm_title_body(ngx_http_request_t *r)
{
    ngx_int_t               rc;
    ngx_http_vlm_ctx_t     *ctx;
    ngx_http_vlm_engine_t  *eng;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);
    eng = ctx->engine;

    if (ngx_http_vlm_answers(eng) && eng->life.loaded && eng->store
        && eng->line.n_waiting == 0 && eng->line.running < eng->conf.vlm.slots
        && ngx_http_vlm_breaker_state(eng) == VLM_BREAKER_CLOSED)
    {
        rc = ngx_http_vlm_ask_read(r, eng, &ngx_http_vlm_title_dialect);

        if (rc != NGX_OK && rc != NGX_BUSY) {
            ngx_http_finalize_request(r, rc);
        }

        if (rc != NGX_BUSY) {
            return;
        }
    }

    ctx->dialect = &ngx_http_vlm_title_dialect;
    ctx->run = ngx_http_vlm_title_words;

    ngx_http_vlm_work_body(r);
}


ngx_int_t
ngx_http_vlm_title_handler(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece)
{
    ngx_http_vlm_ctx_t       *ctx;
    ngx_http_vlm_shm_t       *shm;
    ngx_http_vlm_loc_conf_t  *lcf;

    shm = eng->zone;

    if (!ngx_http_vlm_answers(eng)
        && shm->state == NGX_HTTP_VLM_READY
        && shm->waiting == 0 && shm->running < eng->conf.vlm.slots)
    {
        lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

        return lcf->hop(r);
    }

    ctx = ngx_http_vlm_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->engine = eng;

    return ngx_http_vlm_body_read(r, ngx_http_vlm_title_body);
}


/* ---- the dialect --------------------------------------------------------- */


static void
ngx_http_vlm_title_fields(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    const char           *text;
    const vlm_json_t     *field;
    ngx_http_vlm_chat_t  *chat;

    field = vlm_json_get(json, "message");
    text = vlm_json_text(field);

    if (!vlm_json_is_true(field) || text == NULL) {
        (void) ngx_http_vlm_fail_input(ctx, vlm_json_is_true(field)
                                       ? "The message is not a string"
                                       : "Message is required");
        return;
    }

    chat = ngx_http_vlm_chat_create(ctx, json, sizeof(ngx_http_vlm_chat_t));

    if (chat == NULL) {
        return;
    }

    chat->message.len = ngx_strlen(text);

    if (chat->message.len > NGX_HTTP_VLM_TITLE_MESSAGE) {
        chat->message.len = vlm_utf8_whole(text, NGX_HTTP_VLM_TITLE_MESSAGE);
    }

    chat->message.data = strndup(text, chat->message.len);

    if (chat->message.data == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the message");
    }
}


static void
ngx_http_vlm_title_prompt(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    ngx_http_vlm_aside_ask(ctx, NGX_HTTP_VLM_ASK_TITLE,
                           vlm_words_cut(chat->message.data, chat->message.len,
                                         200),
                           0.3, 20);
}


/* an incomplete answer is no title */

static ngx_int_t
ngx_http_vlm_title_ended(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_aside_said(ctx, &ctx->out.answer);

    if (ctx->finish != VLM_FINISH_STOP) {
        ngx_str_set(&ctx->out.answer, "");
    }

    return NGX_OK;
}


static void
ngx_http_vlm_title_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    char    title[VLM_WORDS_TITLE];
    size_t  len;

    len = vlm_words_title((char *) ctx->out.answer.data, ctx->out.answer.len,
                          title);

    if (len == 0) {
        len = vlm_words_first(chat->message.data, chat->message.len, title);
    }

    vlm_json_open(w, '{');
    vlm_json_add_text(w, "title", title, len);
    vlm_json_shut(w, '}');
}


/* a deadline, an engine that stops: the title comes from the message */

static ngx_int_t
ngx_http_vlm_title_failed(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    if (chat == NULL || chat->message.data == NULL) {
        return NGX_DECLINED;
    }

    ngx_str_set(&ctx->out.answer, "");

    return NGX_OK;
}


const ngx_http_vlm_dialect_t  ngx_http_vlm_title_dialect = {
    .fields = ngx_http_vlm_title_fields,
    .prompt = ngx_http_vlm_title_prompt,
    .ended = ngx_http_vlm_title_ended,
    .answer = ngx_http_vlm_title_answer,
    .failed = ngx_http_vlm_title_failed,
    .free = ngx_http_vlm_chat_free
};
