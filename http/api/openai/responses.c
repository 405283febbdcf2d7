
/*
 * POST /v1/responses: a chat by the names of the Responses interface.  The
 * request becomes that of a chat (lib/api/responses.c); the answer is a list
 * of items, whole or as events (lib/api/responses_out.c).  Nothing is stored.
 */


#include "openai.h"
#include "api/responses.h"


static void
ngx_http_vlm_responses_parse(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    const char             *param;
    vlm_json_t             *chat;
    ngx_http_vlm_openai_t  *o;

    ctx->out.plain = 1;

    o = ngx_http_vlm_asked_create(ctx, json, sizeof(ngx_http_vlm_openai_t),
                                  "The request has no body");

    if (o == NULL) {
        return;
    }

    o->chat = 1;

    if (vlm_response_take(&o->response, json) != 0) {
        (void) ngx_http_vlm_fail_memory(ctx, "the request");
        return;
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

    o->response.id = o->id;
    o->response.core = o->core;

    vlm_json_free(chat);
}


/* whole, or as it begins */

static void
ngx_http_vlm_responses_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    vlm_response_e state)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    vlm_response_open(&o->response, w, state, o->in.model,
                      ctx->times.wall / 1000000);

    if (state == VLM_RESPONSE_BEGUN) {
        vlm_response_no_usage(w);

    } else {
        ngx_http_vlm_tools_again(ctx);

        vlm_response_items(&o->response, w, ngx_http_vlm_tools_active(ctx)
                                            ? &o->in.tools.calls : NULL,
                           (char *) ctx->out.answer.data, ctx->out.answer.len);

        vlm_response_usage(w, ctx->usage.prompt_tokens,
                           ctx->usage.cached_tokens,
                           ctx->usage.completion_tokens);

        ngx_http_vlm_fields_put_timings(ctx, w);
        ngx_http_vlm_fields_marks(ctx, w, o->in.f.task);
    }

    vlm_json_shut(w, '}');
}


#define ngx_http_vlm_responses_state(ctx)                                     \
    ((ctx)->finish == VLM_FINISH_LENGTH ? VLM_RESPONSE_CUT                    \
                                        : VLM_RESPONSE_WHOLE)


static void
ngx_http_vlm_responses_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_responses_put(ctx, w, ngx_http_vlm_responses_state(ctx));
}


/* an event that has the whole response */

static void
ngx_http_vlm_responses_event(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *type, vlm_response_e state)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    vlm_response_event(&o->response, w, type);
    vlm_json_put_key(w, "response");
    ngx_http_vlm_responses_put(ctx, w, state);
    vlm_response_end(w);
}


static void
ngx_http_vlm_responses_pieces(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last, ngx_http_vlm_unsent_t *u)
{
    vlm_calls_e         kind;
    vlm_response_t     *response;
    vlm_calls_piece_t   piece;

    response = &((ngx_http_vlm_openai_t *) ctx->data)->response;

    if (!ngx_http_vlm_tools_active(ctx)) {
        if (u->answer.len) {
            vlm_response_text(response, w, (char *) u->answer.data,
                              u->answer.len);
        }

        return;
    }

    while ((kind = ngx_http_vlm_tools_next(ctx, last, &piece))
           != VLM_CALLS_NONE)
    {
        if (kind == VLM_CALLS_TEXT) {
            vlm_response_text(response, w, piece.text, piece.bytes);

        } else {
            vlm_response_said(response, w);
            vlm_response_called(response, w, &piece);
        }

        vlm_json_free(piece.call);
    }
}


static void
ngx_http_vlm_responses_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last)
{
    ngx_http_vlm_openai_t  *o;
    ngx_http_vlm_unsent_t   u;

    o = ctx->data;

    ngx_http_vlm_unsent(ctx, w, last, &u);

    if (!o->begun) {
        ngx_http_vlm_responses_event(ctx, w, "response.created",
                                     VLM_RESPONSE_BEGUN);
        ngx_http_vlm_responses_event(ctx, w, "response.in_progress",
                                     VLM_RESPONSE_BEGUN);
    }

    o->begun = 1;

    ngx_http_vlm_responses_pieces(ctx, w, last, &u);

    if (!last) {
        return;
    }

    if (o->response.n_items == 0) {
        vlm_response_text(&o->response, w, "", 0);
    }

    vlm_response_said(&o->response, w);

    ngx_http_vlm_responses_event(ctx, w, ctx->finish == VLM_FINISH_LENGTH
                                         ? "response.incomplete"
                                         : "response.completed",
                                 ngx_http_vlm_responses_state(ctx));
}


static void
ngx_http_vlm_responses_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    if (o) {
        vlm_response_free(&o->response);
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
