
/*
 * Asides: prompts on behalf of a request that are not the client's question.
 * An aside is a system message of ours and the client's text, without picture
 * and history. ctx->asking is set until the model has answered.
 *
 * Every caller has a fallback, so nothing fails here.
 */


#include "../api.h"
#include "chat.h"
#include "ask_text.h"


#define NGX_HTTP_VLM_ASIDE_TASK  2000      /* bytes, of a message */


ngx_int_t
ngx_http_vlm_aside_prompt(ngx_http_vlm_ctx_t *ctx, const char *system,
    const char *text, size_t len, float temperature, ngx_uint_t max_tokens)
{
    vlm_part_t      parts[2];
    vlm_message_t   messages[2];

    ngx_memzero(parts, sizeof(parts));

    parts[0].text = system;
    parts[0].bytes = ngx_strlen(system);
    parts[1].text = text;
    parts[1].bytes = len;

    messages[0].role = VLM_SYSTEM;
    messages[0].parts = &parts[0];
    messages[0].n_parts = 1;

    messages[1].role = VLM_USER;
    messages[1].parts = &parts[1];
    messages[1].n_parts = 1;

    ctx->prompt = vlm_prompt_make(ctx->engine->life.vlm, messages, 2,
                                  ctx->engine->conf.thinking
                                  ? NGX_HTTP_VLM_NO_THINKING : NULL,
                                  &ctx->error.err);

    if (ctx->prompt == NULL) {
        return NGX_DECLINED;
    }

    /* a configured temperature that is lower stays */

    ctx->sampling.temperature = ngx_min(ctx->sampling.temperature,
                                        temperature);
    ctx->sampling.max_tokens = max_tokens;

    ctx->asking = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_aside_task(ngx_http_vlm_ctx_t *ctx)
{
    size_t                len;
    ngx_http_vlm_chat_t  *chat;

    chat = ctx->data;
    len = chat->message.len;

    if (len > NGX_HTTP_VLM_ASIDE_TASK) {
        len = vlm_utf8_whole(chat->message.data,
                             NGX_HTTP_VLM_ASIDE_TASK);
    }

    return ngx_http_vlm_aside_prompt(ctx, NGX_HTTP_VLM_ASK_TASK,
                                     chat->message.data, len, 0.1, 10);
}


void
ngx_http_vlm_aside_task_said(ngx_http_vlm_ctx_t *ctx)
{
    int        task;
    char       name[VLM_WORDS_TASK];
    ngx_str_t  words;

    ngx_http_vlm_aside_said(ctx, &words);
    vlm_words_task((char *) words.data, words.len, name);

    task = vlm_task_find(name, ngx_strlen(name));

    /* otherwise the task found by the message's keywords stays */

    if (task >= 0) {
        ngx_http_vlm_turn_task(ctx, task);
    }
}


ngx_int_t
ngx_http_vlm_aside_title(ngx_http_vlm_ctx_t *ctx)
{
    size_t                len;
    ngx_http_vlm_chat_t  *chat;

    chat = ctx->data;
    len = vlm_words_cut(chat->message.data,
                        chat->message.len, 200);

    return ngx_http_vlm_aside_prompt(ctx, NGX_HTTP_VLM_ASK_TITLE,
                                     chat->message.data, len, 0.3, 20);
}


ngx_int_t
ngx_http_vlm_aside_plan(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t  *chat;

    chat = ctx->data;

    return ngx_http_vlm_aside_prompt(ctx, NGX_HTTP_VLM_ASK_STEPS,
                                     chat->message.data,
                                     chat->message.len, 0.2, 1500);
}


void
ngx_http_vlm_aside_said(ngx_http_vlm_ctx_t *ctx, ngx_str_t *words)
{
    if (ctx->error.err.code != VLM_OK
        || ngx_http_vlm_thinking_split(ctx, 1) != NGX_OK)
    {
        ngx_str_set(words, "");
        return;
    }

    *words = ctx->out.answer;
}
