
/*
 * POST /v1/embeddings: "input", or, as vLLM's clients send pictures,
 * "messages", which are one input in the chat template.
 */


#include "openai.h"
#include "../embed.h"


static void
ngx_http_vlm_openai_embed_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    const vlm_json_t      *input, *messages;
    ngx_http_vlm_embed_t  *e;

    e = ngx_http_vlm_embed_create(ctx, json, "The request has no body",
                                  VLM_OF_EMBEDDINGS);
    if (e == NULL) {
        return;
    }

    input = vlm_json_get(json, "input");
    messages = vlm_json_get(json, "messages");

    ngx_http_vlm_fail_param(ctx, "input");

    if (!vlm_json_is_null(input)) {
        if (!vlm_json_is_null(messages)) {
            (void) ngx_http_vlm_fail_input(ctx, "A request has either input or "
                                           "messages");
            return;
        }

        (void) ngx_http_vlm_embed_inputs(ctx, input, "input");
        return;
    }

    if (vlm_json_is_null(messages)) {
        (void) ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                      "missing_required_parameter",
                                      "input is missing");
        return;
    }

    if (ngx_http_vlm_embed_room(ctx, 1) == NGX_OK
        && ngx_http_vlm_openai_messages(ctx, json) == NGX_OK)
    {
        (void) ngx_http_vlm_messages_fit(e->in.messages, 1);
    }
}


static void
ngx_http_vlm_openai_embed_base64(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t i)
{
    ngx_http_vlm_embed_t *e = ctx->data;

    uint32_t   hidden;
    ngx_str_t  from, to;

    hidden = ctx->engine->conf.facts.hidden;

    from.data = (u_char *) (e->vectors + i * hidden);
    from.len = hidden * sizeof(float);

    to.data = malloc(ngx_base64_encoded_length(from.len));

    if (to.data == NULL) {
        w->failed = 1;
        return;
    }

    ngx_encode_base64(&to, &from);
    vlm_json_put_text(w, (char *) to.data, to.len);
    free(to.data);
}


static void
ngx_http_vlm_openai_embed_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_embed_t *e = ctx->data;

    ngx_uint_t  i;

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "object", "list");
    vlm_json_add_open(w, "data", '[');

    for (i = 0; i < e->n; i++) {
        vlm_json_open(w, '{');
        vlm_json_add_string(w, "object", "embedding");
        vlm_json_add_int(w, "index", i);
        vlm_json_put_key(w, "embedding");

        if (e->in.f.number[VLM_FIELD_BASE64] == 1) {
            ngx_http_vlm_openai_embed_base64(ctx, w, i);

        } else {
            ngx_http_vlm_embed_put(ctx, w, i);
        }

        vlm_json_shut(w, '}');
    }

    vlm_json_shut(w, ']');
    vlm_json_add_string(w, "model", e->in.model);
    vlm_json_add_open(w, "usage", '{');
    vlm_json_add_int(w, "prompt_tokens", ctx->usage.prompt_tokens);
    vlm_json_add_int(w, "total_tokens", ctx->usage.prompt_tokens);
    vlm_json_shut(w, '}');
    vlm_json_shut(w, '}');
}


/* "store" has the vectors written in a thread */

const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_embeddings = {
    .fields = ngx_http_vlm_openai_embed_fields,
    .prompt = ngx_http_vlm_embed_prompt,
    .ended = ngx_http_vlm_embed_ended,
    .store = ngx_http_vlm_write_answer,
    .answer = ngx_http_vlm_openai_embed_answer,
    .free = ngx_http_vlm_embed_free
};
