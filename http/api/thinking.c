
/*
 * The model's text as thinking and answer (lib/api/thinking.c), and the rest of
 * both that a stream has not sent.
 */


#include "api.h"


/* the room for the text without its marks, which keeps what is in it */

static ngx_int_t
ngx_http_vlm_thinking_room(ngx_http_vlm_ctx_t *ctx)
{
    size_t   size;
    u_char  *room;

    size = ctx->out.text->end - ctx->out.text->start;

    if (ctx->out.clean_size >= size) {
        return NGX_OK;
    }

    room = ngx_pnalloc(ctx->request->pool, size);
    if (room == NULL) {
        return NGX_ERROR;
    }

    if (ctx->out.clean_size) {
        ngx_memcpy(room, ctx->out.clean, ctx->out.clean_size);
        (void) ngx_pfree(ctx->request->pool, ctx->out.clean);
    }

    ctx->out.clean = room;
    ctx->out.clean_size = size;

    return NGX_OK;
}


/* The model family's rule that separates thinking from the answer. */

ngx_int_t
ngx_http_vlm_thinking_split(ngx_http_vlm_ctx_t *ctx, ngx_uint_t last)
{
    ngx_str_t            *answer, *thinking;
    vlm_thinking_part_t   parts[2];

    answer = &ctx->out.answer;
    thinking = &ctx->out.thinking;

    ngx_str_set(answer, "");
    ngx_str_set(thinking, "");

    if (ctx->out.text == NULL) {
        return NGX_OK;
    }

    answer->data = ctx->out.text->pos;
    answer->len = ctx->out.text->last - ctx->out.text->pos;

    if (ctx->out.plain || !ctx->engine->conf.thinking) {
        return NGX_OK;
    }

    if (ngx_http_vlm_thinking_room(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    vlm_thinking_split(&ctx->out.split, (char *) answer->data, answer->len,
                       (char *) ctx->out.clean, ctx->out.thinks && !ctx->asking,
                       last, &parts[0], &parts[1]);

    thinking->data = (u_char *) parts[0].data;
    thinking->len = parts[0].len;

    answer->data = (u_char *) parts[1].data;
    answer->len = parts[1].len;

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_thinking_ended(ngx_http_vlm_ctx_t *ctx)
{
    return ngx_http_vlm_thinking_split(ctx, 1);
}


static ngx_str_t
ngx_http_vlm_thinking_rest(ngx_str_t *text, size_t *sent)
{
    ngx_str_t  rest;

    rest.len = text->len - ngx_min(text->len, *sent);
    rest.data = text->data + text->len - rest.len;

    *sent += rest.len;

    return rest;
}


void
ngx_http_vlm_unsent(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last, ngx_http_vlm_unsent_t *unsent)
{
    if (!last && ngx_http_vlm_thinking_split(ctx, 0) != NGX_OK) {
        w->failed = 1;
    }

    unsent->thinking = ngx_http_vlm_thinking_rest(&ctx->out.thinking,
                                                  &ctx->out.sent_thinking);
    unsent->answer = ngx_http_vlm_thinking_rest(&ctx->out.answer,
                                                &ctx->out.sent);

    unsent->n_tokens = ngx_http_vlm_unsent_tokens(ctx);

    if (!last) {
        unsent->n_tokens = ngx_min(unsent->n_tokens, VLM_JSON_TOKENS);
    }
}
