
/*
 * Asides: prompts on behalf of a request that are not the client's question.
 * An aside is a system message of ours and the client's text, without picture
 * and history.  ctx->asking is set until the model has answered.
 *
 * Every caller has a fallback, so nothing fails here.
 */


#include "chat.h"


/* a temperature that is configured and lower stays */

void
ngx_http_vlm_aside_ask(ngx_http_vlm_ctx_t *ctx, const char *system, size_t len,
    float temperature, ngx_uint_t max_tokens)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    vlm_part_t  parts[] = {
        { .text = system, .bytes = ngx_strlen(system) },
        { .text = chat->message.data, .bytes = len }
    };
    vlm_message_t  messages[] = {
        { VLM_SYSTEM, &parts[0], 1 },
        { VLM_USER, &parts[1], 1 }
    };

    ctx->prompt = vlm_prompt_make(ctx->engine->life.vlm, messages, 2,
                                  ctx->engine->conf.thinking
                                  ? NGX_HTTP_VLM_NO_THINKING : NULL,
                                  &ctx->error.err);

    if (ctx->prompt == NULL) {
        return;
    }

    ctx->sampling.temperature = ngx_min(ctx->sampling.temperature, temperature);
    ctx->sampling.max_tokens = max_tokens;

    ctx->asking = 1;
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
