
/*
 * Splits the model's text into thinking and answer.
 *
 * A stream splits the whole text so far, again with each new piece; an end
 * that may be the beginning of a mark is held back, so that text already sent
 * stays valid.
 */


#include "api.h"


static void ngx_http_vlm_thinking_without(ngx_http_vlm_ctx_t *ctx,
    ngx_str_t *text, const char *one, const char *other);


static const char  ngx_http_vlm_end[] = "</think>";


/* as large as the text: the room for the text without its marks */

static ngx_int_t
ngx_http_vlm_thinking_room(ngx_http_vlm_ctx_t *ctx)
{
    size_t  size;

    size = ctx->out.text->end - ctx->out.text->start;

    if (ctx->out.clean && ctx->out.clean_size >= size) {
        return NGX_OK;
    }

    if (ctx->out.clean) {
        (void) ngx_pfree(ctx->request->pool, ctx->out.clean);
    }

    ctx->out.clean_size = size;
    ctx->out.clean = ngx_pnalloc(ctx->request->pool, size);

    return ctx->out.clean ? NGX_OK : NGX_ERROR;
}


/* bytes at the end that may begin a mark */

static size_t
ngx_http_vlm_thinking_held(u_char *p, u_char *last)
{
    size_t       n, len;
    ngx_uint_t   i;

    static const char  *marks[] = {
        "</think>", "<think>", "<answer>", "</answer>"
    };

    for (n = ngx_min((size_t) (last - p), sizeof("</answer>") - 2); n; n--) {

        for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
            len = ngx_strlen(marks[i]);

            if (n < len && ngx_strncmp(last - n, marks[i], n) == 0) {
                return n;
            }
        }
    }

    return 0;
}


static void
ngx_http_vlm_thinking_strip(ngx_str_t *text)
{
    while (text->len && ngx_strchr(" \t\n\v\f\r", *text->data)) {
        text->data++;
        text->len--;
    }

    while (text->len && ngx_strchr(" \t\n\v\f\r", text->data[text->len - 1])) {
        text->len--;
    }
}


/* The model family's rule that separates thinking from the answer. */

ngx_int_t
ngx_http_vlm_thinking_split(ngx_http_vlm_ctx_t *ctx, ngx_uint_t last)
{
    u_char     *p, *end;
    ngx_str_t  *answer, *thinking;

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

    end = answer->data + answer->len;

    if (!last) {
        end -= ngx_http_vlm_thinking_held(answer->data, end);
        answer->len = end - answer->data;
    }

    if (ctx->out.thinks && !ctx->asking) {

        *thinking = *answer;

        p = memmem(answer->data, answer->len, ngx_http_vlm_end,
                   sizeof(ngx_http_vlm_end) - 1);

        if (p == NULL) {
            answer->len = 0;

        } else {
            thinking->len = p - thinking->data;

            answer->data = p + sizeof(ngx_http_vlm_end) - 1;
            answer->len = end - answer->data;

            p = memmem(answer->data, answer->len, ngx_http_vlm_end,
                       sizeof(ngx_http_vlm_end) - 1);

            if (p) {
                answer->len = p - answer->data;
            }
        }

        ngx_http_vlm_thinking_without(ctx, thinking, "<think>", "");
        ngx_http_vlm_thinking_strip(thinking);
    }

    ngx_http_vlm_thinking_without(ctx, answer, "<answer>", "</answer>");
    ngx_http_vlm_thinking_strip(answer);

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


/* the length of this mark if it is at p, else 0 */

static size_t
ngx_http_vlm_thinking_mark(u_char *p, u_char *last, const char *mark)
{
    size_t  n;

    if (*p != '<') {
        return 0;
    }

    n = ngx_strlen(mark);

    return (size_t) (last - p) >= n && ngx_memcmp(p, mark, n) == 0 ? n : 0;
}


/* copies the text to the same place of the room, without these marks */

static void
ngx_http_vlm_thinking_without(ngx_http_vlm_ctx_t *ctx, ngx_str_t *text,
    const char *one, const char *other)
{
    u_char  *p, *q, *last;
    size_t   n;

    p = text->data;
    last = p + text->len;
    q = ctx->out.clean + (p - ctx->out.text->pos);

    text->data = q;

    while (p < last) {
        n = ngx_http_vlm_thinking_mark(p, last, one)
            + ngx_http_vlm_thinking_mark(p, last, other);

        if (n == 0) {
            *q++ = *p++;
        }

        p += n;
    }

    text->len = q - text->data;
}
