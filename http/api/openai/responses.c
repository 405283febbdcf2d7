
/*
 * POST /v1/responses: a chat by the names of the Responses interface.  The
 * request becomes that of a chat (lib/api/responses.c); the answer is a list
 * of items, messages and calls, whole or as events.  Nothing is stored.
 */


#include "openai.h"
#include "api/responses.h"


/* fields that the answer repeats; those that are absent have these values */

static const struct {
    const char                   *name;
    const char                   *value;       /* JSON */
} ngx_http_vlm_responses_echo[] = {
    { "instructions", "null" }, { "max_output_tokens", "null" },
    { "metadata", "{}" }, { "parallel_tool_calls", "true" },
    { "temperature", "null" },
    { "text", "{\"format\":{\"type\":\"text\"}}" },
    { "tool_choice", "\"auto\"" }, { "tools", "[]" }, { "top_p", "null" },
    { "user", "null" }
};


static void
ngx_http_vlm_responses_parse(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_uint_t              i;
    const char             *param;
    vlm_json_t             *chat;
    const vlm_json_t       *value;
    ngx_http_vlm_openai_t  *o;

    ctx->out.plain = 1;

    o = ngx_http_vlm_asked_create(ctx, json, sizeof(ngx_http_vlm_openai_t),
                                  "The request has no body");

    if (o == NULL) {
        return;
    }

    o->chat = 1;
    o->asked = vlm_json_make('{');

    for (i = 0; i < sizeof(ngx_http_vlm_responses_echo)
                    / sizeof(ngx_http_vlm_responses_echo[0]); i++)
    {
        value = vlm_json_get(json, ngx_http_vlm_responses_echo[i].name);

        if (o->asked == NULL
            || (!vlm_json_is_null(value)
                && vlm_json_take(o->asked, ngx_http_vlm_responses_echo[i].name,
                                 vlm_json_copy(value)) != 0))
        {
            (void) ngx_http_vlm_fail_memory(ctx, "the request");
            return;
        }
    }

    chat = vlm_responses_chat(json, &param, &ctx->error.err);

    if (chat == NULL) {
        ngx_http_vlm_fail_param(ctx, "%s", param ? param : "");
        (void) ngx_http_vlm_fail_engine(ctx, param && ngx_strcmp(param, "input")
                                             ? "unsupported_parameter" : NULL,
                                        NULL);
        return;
    }

    (void) ngx_http_vlm_openai_take(ctx, o, chat, "resp_");

    vlm_json_free(chat);
}


/* ---- items --------------------------------------------------------------- */


static void
ngx_http_vlm_responses_part(vlm_json_out_t *w, const char *text, size_t len)
{
    vlm_json_open(w, '{');
    vlm_json_add_string(w, "type", "output_text");
    vlm_json_add_text(w, "text", text, len);
    vlm_json_add_open(w, "annotations", '[');
    vlm_json_shut(w, ']');
    vlm_json_add_open(w, "logprobs", '[');
    vlm_json_shut(w, ']');
    vlm_json_shut(w, '}');
}


/* text NULL: it has just begun */

static void
ngx_http_vlm_responses_message(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t i, const char *text, size_t len)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "type", "message");
    vlm_json_add_format(w, "id", "msg_%.22s%02u", o->core, (unsigned) i);
    vlm_json_add_string(w, "status", text ? "completed" : "in_progress");
    vlm_json_add_string(w, "role", "assistant");
    vlm_json_add_open(w, "content", '[');

    if (text) {
        ngx_http_vlm_responses_part(w, text, len);
    }

    vlm_json_shut(w, ']');
    vlm_json_shut(w, '}');
}


/* begun: without its arguments */

static void
ngx_http_vlm_responses_call(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t i, const vlm_calls_piece_t *piece, ngx_uint_t begun)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "type", "function_call");
    vlm_json_add_format(w, "id", "fc_%.22s%02u", o->core, (unsigned) i);
    vlm_json_add_format(w, "call_id", "call_%.22s%02u", o->core, (unsigned) i);
    vlm_json_add_string(w, "name", piece->name);

    if (begun) {
        vlm_json_add_string(w, "arguments", "");
    } else {
        ngx_http_vlm_tools_arguments(w, piece, 1);
    }

    vlm_json_add_string(w, "status", begun ? "in_progress" : "completed");
    vlm_json_shut(w, '}');
}


/* texts that follow each other are one message */

static void
ngx_http_vlm_responses_items(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_uint_t          i;
    vlm_calls_e         kind;
    vlm_json_out_t      text;
    vlm_calls_piece_t   piece;

    if (!ngx_http_vlm_tools_active(ctx)) {
        ngx_http_vlm_responses_message(ctx, w, 0, (char *) ctx->out.answer.data,
                                       ctx->out.answer.len);
        return;
    }

    i = 0;

    vlm_json_init(&text, VLM_STORE_TEXT);
    ngx_http_vlm_tools_again(ctx);

    do {
        kind = ngx_http_vlm_tools_next(ctx, 1, &piece);

        if (kind == VLM_CALLS_TEXT) {
            vlm_json_put_raw(&text, piece.text, piece.bytes);
            continue;
        }

        if (text.len || (kind == VLM_CALLS_NONE && i == 0)) {
            ngx_http_vlm_responses_message(ctx, w, i++,
                                           text.len ? text.data : "", text.len);
            text.len = 0;
        }

        if (kind == VLM_CALLS_CALL) {
            ngx_http_vlm_responses_call(ctx, w, i++, &piece, 0);
        }

        vlm_json_free(piece.call);

    } while (kind != VLM_CALLS_NONE);

    w->failed |= text.failed;
    vlm_json_release(&text);
}


/* ---- the response -------------------------------------------------------- */


static void
ngx_http_vlm_responses_usage(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    vlm_usage_t  *u;

    u = &ctx->usage;

    vlm_json_add_open(w, "usage", '{');
    vlm_json_add_int(w, "input_tokens", u->prompt_tokens);
    vlm_json_add_open(w, "input_tokens_details", '{');
    vlm_json_add_int(w, "cached_tokens", u->cached_tokens);
    vlm_json_shut(w, '}');
    vlm_json_add_int(w, "output_tokens", u->completion_tokens);
    vlm_json_add_open(w, "output_tokens_details", '{');
    vlm_json_add_int(w, "reasoning_tokens", 0);
    vlm_json_shut(w, '}');
    vlm_json_add_int(w, "total_tokens",
                     (int64_t) u->prompt_tokens + u->completion_tokens);
    vlm_json_shut(w, '}');
}


/* whole, or as it begins */

static void
ngx_http_vlm_responses_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t whole)
{
    ngx_uint_t              i, cut;
    const vlm_json_t       *value;
    ngx_http_vlm_openai_t  *o;

    o = ctx->data;
    cut = whole && ctx->finish == VLM_FINISH_LENGTH;

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "id", o->id);
    vlm_json_add_string(w, "object", "response");
    vlm_json_add_int(w, "created_at", ctx->times.wall / 1000000);
    vlm_json_add_string(w, "status", !whole ? "in_progress"
                                     : cut ? "incomplete" : "completed");
    vlm_json_add_string(w, "error", NULL);

    if (cut) {
        vlm_json_add_open(w, "incomplete_details", '{');
        vlm_json_add_string(w, "reason", "max_output_tokens");
        vlm_json_shut(w, '}');

    } else {
        vlm_json_add_string(w, "incomplete_details", NULL);
    }

    for (i = 0; i < sizeof(ngx_http_vlm_responses_echo)
                    / sizeof(ngx_http_vlm_responses_echo[0]); i++)
    {
        vlm_json_put_key(w, ngx_http_vlm_responses_echo[i].name);
        value = vlm_json_get(o->asked, ngx_http_vlm_responses_echo[i].name);

        if (value) {
            vlm_calls_put(w, value);
            w->comma = 1;

        } else {
            vlm_json_put_raw(w, ngx_http_vlm_responses_echo[i].value,
                             ngx_strlen(ngx_http_vlm_responses_echo[i].value));
            w->comma = 1;
        }
    }

    vlm_json_add_string(w, "model", o->in.model);
    vlm_json_add_string(w, "previous_response_id", NULL);
    vlm_json_add_bool(w, "store", 0);
    vlm_json_add_string(w, "truncation", "disabled");
    vlm_json_add_open(w, "output", '[');

    if (whole) {
        ngx_http_vlm_responses_items(ctx, w);
    }

    vlm_json_shut(w, ']');

    if (whole) {
        ngx_http_vlm_responses_usage(ctx, w);
        ngx_http_vlm_fields_put_timings(ctx, w);
        ngx_http_vlm_fields_put_marks(ctx, w);

    } else {
        vlm_json_add_string(w, "usage", NULL);
    }

    vlm_json_shut(w, '}');
}


static void
ngx_http_vlm_responses_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_responses_put(ctx, w, 1);
}


/* ---- events -------------------------------------------------------------- */


static void
ngx_http_vlm_responses_event(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *type)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    vlm_json_put_raw(w, "event: ", sizeof("event: ") - 1);
    vlm_json_put_raw(w, type, ngx_strlen(type));
    vlm_json_put_raw(w, "\n", 1);
    ngx_http_vlm_stream_event(w, "");
    vlm_json_open(w, '{');
    vlm_json_add_string(w, "type", type);
    vlm_json_add_int(w, "sequence_number", o->seq++);
}


static void
ngx_http_vlm_responses_end(vlm_json_out_t *w)
{
    vlm_json_shut(w, '}');
    ngx_http_vlm_stream_end(w);
}


/* of the last item, or a part of it */

static void
ngx_http_vlm_responses_at(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *type, const char *kind)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    ngx_http_vlm_responses_event(ctx, w, type);
    vlm_json_add_int(w, "output_index", o->n_items - 1);

    if (kind) {
        vlm_json_add_format(w, "item_id", "%s_%.22s%02u", kind, o->core,
                            (unsigned) o->n_items - 1);
    }

    if (kind && *kind == 'm') {
        vlm_json_add_int(w, "content_index", 0);
    }
}


static void
ngx_http_vlm_responses_text(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *text, size_t len)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    if (!o->in_text) {
        o->in_text = 1;
        o->n_items++;

        vlm_json_init(&o->said, VLM_STORE_TEXT);

        ngx_http_vlm_responses_at(ctx, w, "response.output_item.added", NULL);
        vlm_json_put_key(w, "item");
        ngx_http_vlm_responses_message(ctx, w, o->n_items - 1, NULL, 0);
        ngx_http_vlm_responses_end(w);

        ngx_http_vlm_responses_at(ctx, w, "response.content_part.added", "msg");
        vlm_json_put_key(w, "part");
        ngx_http_vlm_responses_part(w, "", 0);
        ngx_http_vlm_responses_end(w);
    }

    if (len == 0) {
        return;
    }

    vlm_json_put_raw(&o->said, text, len);

    ngx_http_vlm_responses_at(ctx, w, "response.output_text.delta", "msg");
    vlm_json_add_text(w, "delta", text, len);
    vlm_json_add_open(w, "logprobs", '[');
    vlm_json_shut(w, ']');
    ngx_http_vlm_responses_end(w);
}


static void
ngx_http_vlm_responses_said(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    const char             *text;
    ngx_http_vlm_openai_t  *o;

    o = ctx->data;

    if (!o->in_text) {
        return;
    }

    o->in_text = 0;
    text = o->said.len ? o->said.data : "";
    w->failed |= o->said.failed;

    ngx_http_vlm_responses_at(ctx, w, "response.output_text.done", "msg");
    vlm_json_add_text(w, "text", text, o->said.len);
    vlm_json_add_open(w, "logprobs", '[');
    vlm_json_shut(w, ']');
    ngx_http_vlm_responses_end(w);

    ngx_http_vlm_responses_at(ctx, w, "response.content_part.done", "msg");
    vlm_json_put_key(w, "part");
    ngx_http_vlm_responses_part(w, text, o->said.len);
    ngx_http_vlm_responses_end(w);

    ngx_http_vlm_responses_at(ctx, w, "response.output_item.done", NULL);
    vlm_json_put_key(w, "item");
    ngx_http_vlm_responses_message(ctx, w, o->n_items - 1, text, o->said.len);
    ngx_http_vlm_responses_end(w);

    vlm_json_release(&o->said);
}


static void
ngx_http_vlm_responses_called(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const vlm_calls_piece_t *piece)
{
    vlm_json_out_t          a;
    ngx_http_vlm_openai_t  *o;

    o = ctx->data;
    o->n_items++;

    vlm_json_init(&a, NGX_HTTP_VLM_MESSAGES_TEXT);
    vlm_calls_arguments(&a, piece->arguments);
    w->failed |= a.failed;

    ngx_http_vlm_responses_at(ctx, w, "response.output_item.added", NULL);
    vlm_json_put_key(w, "item");
    ngx_http_vlm_responses_call(ctx, w, o->n_items - 1, piece, 1);
    ngx_http_vlm_responses_end(w);

    ngx_http_vlm_responses_at(ctx, w, "response.function_call_arguments.delta",
                              "fc");
    vlm_json_add_text(w, "delta", a.data, a.len);
    ngx_http_vlm_responses_end(w);

    ngx_http_vlm_responses_at(ctx, w, "response.function_call_arguments.done",
                              "fc");
    vlm_json_add_string(w, "name", piece->name);
    vlm_json_add_text(w, "arguments", a.data, a.len);
    ngx_http_vlm_responses_end(w);

    ngx_http_vlm_responses_at(ctx, w, "response.output_item.done", NULL);
    vlm_json_put_key(w, "item");
    ngx_http_vlm_responses_call(ctx, w, o->n_items - 1, piece, 0);
    ngx_http_vlm_responses_end(w);

    vlm_json_release(&a);
}


static void
ngx_http_vlm_responses_pieces(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last, ngx_http_vlm_unsent_t *u)
{
    vlm_calls_e         kind;
    vlm_calls_piece_t   piece;

    if (!ngx_http_vlm_tools_active(ctx)) {
        if (u->answer.len) {
            ngx_http_vlm_responses_text(ctx, w, (char *) u->answer.data,
                                        u->answer.len);
        }

        return;
    }

    while ((kind = ngx_http_vlm_tools_next(ctx, last, &piece))
           != VLM_CALLS_NONE)
    {
        if (kind == VLM_CALLS_TEXT) {
            ngx_http_vlm_responses_text(ctx, w, piece.text, piece.bytes);

        } else {
            ngx_http_vlm_responses_said(ctx, w);
            ngx_http_vlm_responses_called(ctx, w, &piece);
        }

        vlm_json_free(piece.call);
    }
}


static void
ngx_http_vlm_responses_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last)
{
    ngx_uint_t              i;
    ngx_http_vlm_openai_t  *o;
    ngx_http_vlm_unsent_t   u;

    o = ctx->data;

    ngx_http_vlm_unsent(ctx, w, last, &u);

    for (i = 0; i < 2 && !o->begun; i++) {
        ngx_http_vlm_responses_event(ctx, w, i ? "response.in_progress"
                                               : "response.created");
        vlm_json_put_key(w, "response");
        ngx_http_vlm_responses_put(ctx, w, 0);
        ngx_http_vlm_responses_end(w);
    }

    o->begun = 1;

    ngx_http_vlm_responses_pieces(ctx, w, last, &u);

    if (!last) {
        return;
    }

    if (o->n_items == 0) {
        ngx_http_vlm_responses_text(ctx, w, "", 0);
    }

    ngx_http_vlm_responses_said(ctx, w);

    ngx_http_vlm_responses_event(ctx, w, ctx->finish == VLM_FINISH_LENGTH
                                         ? "response.incomplete"
                                         : "response.completed");
    vlm_json_put_key(w, "response");
    ngx_http_vlm_responses_put(ctx, w, 1);
    ngx_http_vlm_responses_end(w);
}


static void
ngx_http_vlm_responses_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    if (o) {
        vlm_json_free(o->asked);
        vlm_json_release(&o->said);
    }

    ngx_http_vlm_asked_free(ctx);
}


const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_responses = {
    .fields = ngx_http_vlm_responses_parse,
    .prompt = ngx_http_vlm_openai_prompt,
    .ended = ngx_http_vlm_thinking_ended,
    .answer = ngx_http_vlm_responses_answer,
    .stream_type = "text/event-stream; charset=utf-8",
    .chunk = ngx_http_vlm_responses_chunk,
    .error = ngx_http_vlm_openai_error,
    .waits = ngx_http_vlm_stream_waits,
    .free = ngx_http_vlm_responses_free
};
