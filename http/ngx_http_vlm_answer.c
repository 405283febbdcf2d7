
/*
 * The model's words to RoboBrain's answer: what is thinking and what is the
 * answer, as a whole or as events of a stream.
 *
 * A stream splits what there is so far, again with each new piece; held back
 * is what may still turn out to be a mark, so that what was told stays true.
 */


#include "ngx_http_vlm.h"
#include "ngx_http_vlm_robobrain.h"


#define NGX_HTTP_VLM_JSON  (8 * NGX_HTTP_VLM_STORE_TEXT)   /* bytes */


static ngx_int_t ngx_http_vlm_answer_room(ngx_http_vlm_ctx_t *ctx);
static size_t ngx_http_vlm_answer_held(u_char *p, u_char *last);
static void ngx_http_vlm_answer_without(ngx_http_vlm_ctx_t *ctx,
    ngx_str_t *text, const char *one, const char *other);
static void ngx_http_vlm_answer_strip(ngx_str_t *text);
static void ngx_http_vlm_answer_put(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w);
static void ngx_http_vlm_answer_put_failed(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w);
static void ngx_http_vlm_answer_put_usage(ngx_http_vlm_json_out_t *w,
    vlm_usage_t *usage);
static void ngx_http_vlm_answer_put_task(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w);
static void ngx_http_vlm_answer_new(ngx_http_vlm_json_out_t *w,
    const char *key, ngx_str_t *text, size_t *told);


static const char  ngx_http_vlm_end[] = "</think>";


/* The family's rule for what is thinking and what is the answer. */

ngx_int_t
ngx_http_vlm_answer_split(ngx_http_vlm_ctx_t *ctx, ngx_uint_t last)
{
    u_char     *p, *end;
    ngx_str_t  *answer, *thinking;

    answer = &ctx->answer;
    thinking = &ctx->thinking;

    ngx_str_set(answer, "");
    ngx_str_set(thinking, "");

    if (ctx->chat.repeated) {
        answer->data = (u_char *) ctx->chat.repeated->content.data;
        answer->len = ctx->chat.repeated->content.len;
        thinking->data = (u_char *) ctx->chat.repeated->thinking.data;
        thinking->len = ctx->chat.repeated->thinking.len;

        return NGX_OK;
    }

    if (ctx->text == NULL) {
        return NGX_OK;
    }

    answer->data = ctx->text->pos;
    answer->len = ctx->text->last - ctx->text->pos;

    if (!ctx->engine->thinking) {
        return NGX_OK;
    }

    if (ngx_http_vlm_answer_room(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    end = answer->data + answer->len;

    if (!last) {
        end -= ngx_http_vlm_answer_held(answer->data, end);
        answer->len = end - answer->data;
    }

    if (ctx->chat.thinking && !ctx->asking) {

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

        ngx_http_vlm_answer_without(ctx, thinking, "<think>", NULL);
        ngx_http_vlm_answer_strip(thinking);
    }

    ngx_http_vlm_answer_without(ctx, answer, "<answer>", "</answer>");
    ngx_http_vlm_answer_strip(answer);

    return NGX_OK;
}


/* as much as the text has, for what is left of it without marks */

static ngx_int_t
ngx_http_vlm_answer_room(ngx_http_vlm_ctx_t *ctx)
{
    size_t  size;

    size = ctx->text->end - ctx->text->start;

    if (ctx->chat.clean && ctx->chat.clean_size >= size) {
        return NGX_OK;
    }

    if (ctx->chat.clean) {
        (void) ngx_pfree(ctx->request->pool, ctx->chat.clean);
    }

    ctx->chat.clean_size = size;
    ctx->chat.clean = ngx_pnalloc(ctx->request->pool, size);

    return ctx->chat.clean ? NGX_OK : NGX_ERROR;
}


/* bytes at the end that a mark may begin with */

static size_t
ngx_http_vlm_answer_held(u_char *p, u_char *last)
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


/* moves the text to the same place of the room, without these words */

static void
ngx_http_vlm_answer_without(ngx_http_vlm_ctx_t *ctx, ngx_str_t *text,
    const char *one, const char *other)
{
    u_char       *p, *q, *last;
    size_t        n;
    const char   *word;

    p = text->data;
    last = p + text->len;
    q = ctx->chat.clean + (p - ctx->text->pos);

    text->data = q;

    while (p < last) {

        if (*p == '<') {
            word = one;
            n = ngx_strlen(word);

            if ((size_t) (last - p) < n || ngx_memcmp(p, word, n) != 0) {
                word = other;
                n = word ? ngx_strlen(word) : 0;
            }

            if (word && (size_t) (last - p) >= n
                && ngx_memcmp(p, word, n) == 0)
            {
                p += n;
                continue;
            }
        }

        *q++ = *p++;
    }

    text->len = q - text->data;
}


static void
ngx_http_vlm_answer_strip(ngx_str_t *text)
{
    while (text->len && ngx_strchr(" \t\n\v\f\r", *text->data)) {
        text->data++;
        text->len--;
    }

    while (text->len && ngx_strchr(" \t\n\v\f\r", text->data[text->len - 1])) {
        text->len--;
    }
}


ngx_int_t
ngx_http_vlm_answer_send(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_json_out_t  w;

    ngx_http_vlm_json_init(&w, NGX_HTTP_VLM_JSON);
    ngx_http_vlm_answer_put(ctx, &w);
    (void) ngx_http_vlm_json_done(&w);

    return ngx_http_vlm_send_json(ctx->request, NGX_HTTP_OK, &w);
}


/* keys in their order, as the server had it that this one replaces */

static void
ngx_http_vlm_answer_put(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_json_out_t *w)
{
    ngx_http_vlm_json_open(w, '{');

    ngx_http_vlm_json_put_key(w, "answer");
    ngx_http_vlm_json_put_text(w, (char *) ctx->answer.data, ctx->answer.len);

    ngx_http_vlm_json_put_key(w, "context_used");
    ngx_http_vlm_json_put_bool(w, ctx->context_used);

    if (ctx->stored.code != NGX_HTTP_VLM_STORE_OK
        && ctx->stored.code != NGX_HTTP_VLM_STORE_GONE)
    {
        ngx_http_vlm_json_put_key(w, "error");
        ngx_http_vlm_json_put_text(w, "This turn was not stored",
                                   sizeof("This turn was not stored") - 1);
    }

    if (ctx->n_dropped) {
        ngx_http_vlm_json_put_key(w, "history_dropped");
        ngx_http_vlm_json_put_int(w, ctx->n_dropped);
    }

    ngx_http_vlm_answer_put_resized(ctx, w);

    ngx_http_vlm_json_put_key(w, "output_image");
    ngx_http_vlm_answer_put_result(w, ctx->chat.result);

    ngx_http_vlm_answer_put_task(ctx, w);

    ngx_http_vlm_json_put_key(w, "thinking");
    ngx_http_vlm_json_put_text(w, (char *) ctx->thinking.data,
                               ctx->thinking.len);

    ngx_http_vlm_timings_put(ctx, w);

    ngx_http_vlm_json_put_key(w, "turn_number");
    ngx_http_vlm_json_put_int(w, ctx->turn_number);

    ngx_http_vlm_json_put_key(w, "usage");
    ngx_http_vlm_answer_put_usage(w, &ctx->usage);

    ngx_http_vlm_json_shut(w, '}');
}


void
ngx_http_vlm_answer_put_resized(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w)
{
    if (!ctx->picture.scaled) {
        return;
    }

    ngx_http_vlm_json_put_key(w, "image_resized");
    ngx_http_vlm_json_open(w, '[');
    ngx_http_vlm_json_put_int(w, ctx->picture.resized_width);
    ngx_http_vlm_json_put_int(w, ctx->picture.resized_height);
    ngx_http_vlm_json_shut(w, ']');
}


void
ngx_http_vlm_answer_put_result(ngx_http_vlm_json_out_t *w,
    ngx_http_vlm_store_file_t *result)
{
    u_char  *p, url[sizeof("/result/") + NGX_HTTP_VLM_STORE_NAME];

    if (result == NULL) {
        ngx_http_vlm_json_put_null(w);
        return;
    }

    p = ngx_snprintf(url, sizeof(url), "/result/%s", result->name);

    ngx_http_vlm_json_put_text(w, (char *) url, p - url);
}


static void
ngx_http_vlm_answer_put_usage(ngx_http_vlm_json_out_t *w, vlm_usage_t *usage)
{
    ngx_http_vlm_json_open(w, '{');

    ngx_http_vlm_json_put_key(w, "completion_tokens");
    ngx_http_vlm_json_put_int(w, usage->completion_tokens);
    ngx_http_vlm_json_put_key(w, "decode_ms");
    ngx_http_vlm_json_put_int(w, usage->decode_ms);
    ngx_http_vlm_json_put_key(w, "encode_ms");
    ngx_http_vlm_json_put_int(w, usage->encode_ms);
    ngx_http_vlm_json_put_key(w, "first_ms");
    ngx_http_vlm_json_put_int(w, usage->first_ms);
    ngx_http_vlm_json_put_key(w, "prefill_ms");
    ngx_http_vlm_json_put_int(w, usage->prefill_ms);
    ngx_http_vlm_json_put_key(w, "prompt_tokens");
    ngx_http_vlm_json_put_int(w, usage->prompt_tokens);

    ngx_http_vlm_json_shut(w, '}');
}


/* What the client sent could not be answered: its own kind of 200 for what
   the model said no to. */

ngx_int_t
ngx_http_vlm_answer_failed(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_json_out_t  w;

    if (ctx->status == 0) {
        ctx->status = NGX_HTTP_OK;
        ctx->chat.inference = 1;
    }

    if (ctx->status != NGX_HTTP_OK) {
        return ngx_http_vlm_send_error(ctx->request, ctx->status,
                                       ctx->err.text);
    }

    ngx_http_vlm_json_init(&w, 64 * 1024);
    ngx_http_vlm_answer_put_failed(ctx, &w);
    (void) ngx_http_vlm_json_done(&w);

    return ngx_http_vlm_send_json(ctx->request, NGX_HTTP_OK, &w);
}


static void
ngx_http_vlm_answer_put_failed(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w)
{
    u_char  *last, text[sizeof("Inference error: ") + sizeof(ctx->err.text)];

    last = ngx_sprintf(text, "%s%s",
                       ctx->chat.inference ? "Inference error: " : "",
                       ctx->err.text);

    ngx_http_vlm_json_open(w, '{');

    ngx_http_vlm_json_put_key(w, "answer");
    ngx_http_vlm_json_put_text(w, (char *) text, last - text);

    if (ctx->chat.inference) {
        ngx_http_vlm_json_put_key(w, "context_used");
        ngx_http_vlm_json_put_bool(w, 0);
    }

    ngx_http_vlm_json_put_key(w, "error");
    ngx_http_vlm_json_put_text(w, (char *) text, last - text);

    ngx_http_vlm_answer_put_task(ctx, w);

    if (ctx->chat.inference) {
        ngx_http_vlm_json_put_key(w, "turn_number");
        ngx_http_vlm_json_put_int(w, ctx->n_entries);
    }

    ngx_http_vlm_json_shut(w, '}');
}


static void
ngx_http_vlm_answer_put_task(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w)
{
    ngx_http_vlm_json_put_key(w, "task");
    ngx_http_vlm_json_put_text(w, ctx->chat.task_name,
                               ngx_strlen(ctx->chat.task_name));

    if (ctx->chat.task_auto) {
        ngx_http_vlm_json_put_key(w, "task_source");
        ngx_http_vlm_json_put_text(w, "auto", sizeof("auto") - 1);
    }
}


void
ngx_http_vlm_answer_chunk(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_json_out_t *w,
    ngx_uint_t last)
{
    if (ngx_http_vlm_answer_split(ctx, last) != NGX_OK) {
        w->failed = 1;
        return;
    }

    ngx_http_vlm_answer_new(w, "thinking", &ctx->thinking,
                            &ctx->chat.told_thinking);
    ngx_http_vlm_answer_new(w, "text", &ctx->answer, &ctx->told);

    if (last) {
        ngx_http_vlm_stream_event(w, "answer");
        ngx_http_vlm_answer_put(ctx, w);
        ngx_http_vlm_stream_end(w);
    }
}


static void
ngx_http_vlm_answer_new(ngx_http_vlm_json_out_t *w, const char *key,
    ngx_str_t *text, size_t *told)
{
    if (text->len <= *told) {
        return;
    }

    ngx_http_vlm_stream_event(w, "token");

    ngx_http_vlm_json_open(w, '{');
    ngx_http_vlm_json_put_key(w, key);
    ngx_http_vlm_json_put_text(w, (char *) text->data + *told,
                               text->len - *told);
    ngx_http_vlm_json_shut(w, '}');

    ngx_http_vlm_stream_end(w);

    *told = text->len;
}


void
ngx_http_vlm_answer_error(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_json_out_t *w,
    ngx_uint_t status, const char *text)
{
    if (status == NGX_HTTP_OK) {

        /* what is an answer without events, too */

        ngx_http_vlm_stream_event(w, "answer");
        ngx_http_vlm_answer_put_failed(ctx, w);
        ngx_http_vlm_stream_end(w);
        return;
    }

    ngx_http_vlm_stream_event(w, "error");

    ngx_http_vlm_json_open(w, '{');
    ngx_http_vlm_json_put_key(w, "error");
    ngx_http_vlm_json_put_text(w, text, ngx_strlen(text));
    ngx_http_vlm_json_put_key(w, "status");
    ngx_http_vlm_json_put_int(w, status);
    ngx_http_vlm_json_shut(w, '}');

    ngx_http_vlm_stream_end(w);
}
