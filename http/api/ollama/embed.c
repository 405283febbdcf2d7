
/*
 * Ollama's POST /api/embed, and /api/embeddings, which preceded it: that takes
 * one "prompt", and its answer has another form.
 */


#include "ollama.h"
#include "../embed.h"


/* a request without an input asks to load the model, which is loaded already */

static void
ngx_http_vlm_ollama_embed_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    ngx_uint_t             legacy;
    const char            *name, *text;
    const vlm_json_t      *input;
    ngx_http_vlm_embed_t  *e;

    legacy = ctx->dialect == &ngx_http_vlm_ollama_embeddings;

    ctx->dialect = &ngx_http_vlm_ollama_embed;

    e = ngx_http_vlm_embed_create(ctx, json, "missing request body",
                                  VLM_OF_EMBED);
    if (e == NULL) {
        return;
    }

    e->legacy = legacy;

    name = legacy ? "prompt" : "input";
    input = vlm_json_get(json, name);
    text = vlm_json_text(input);

    if (vlm_json_is_null(input) || (text && text[0] == '\0')
        || (!legacy && vlm_json_is_array(input)
            && vlm_json_count(input) == 0))
    {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_OK, "nothing to ask");
        return;
    }

    if (legacy && text == NULL) {
        ngx_http_vlm_fail_param(ctx, "prompt");
        (void) ngx_http_vlm_fail_input(ctx, "prompt is not a string");
        return;
    }

    (void) ngx_http_vlm_embed_inputs(ctx, input, name);
}


static void
ngx_http_vlm_ollama_embed_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_embed_t *e = ctx->data;

    ngx_uint_t  i;

    vlm_json_open(w, '{');

    if (e->legacy) {
        vlm_json_put_key(w, "embedding");

        if (e->n) {
            ngx_http_vlm_embed_put(ctx, w, 0);

        } else {
            vlm_json_open(w, '[');
            vlm_json_shut(w, ']');
        }

        vlm_json_shut(w, '}');
        return;
    }

    vlm_json_add_string(w, "model", e->in.model);
    vlm_json_add_open(w, "embeddings", '[');

    for (i = 0; i < e->n; i++) {
        ngx_http_vlm_embed_put(ctx, w, i);
    }

    vlm_json_shut(w, ']');

    if (e->n) {
        ngx_http_vlm_ollama_put_ms(w, "total_duration",
                                   ctx->times.ended - ctx->times.arrived);
        ngx_http_vlm_ollama_put_ms(w, "load_duration",
                                   ctx->times.started - ctx->times.arrived);
        vlm_json_add_int(w, "prompt_eval_count", ctx->usage.prompt_tokens);
    }

    vlm_json_shut(w, '}');
}


/* .store writes the vectors, in a thread */

const ngx_http_vlm_dialect_t  ngx_http_vlm_ollama_embed = {
    .fields = ngx_http_vlm_ollama_embed_fields,
    .prompt = ngx_http_vlm_embed_prompt,
    .ended = ngx_http_vlm_embed_ended,
    .store = ngx_http_vlm_write_answer,
    .answer = ngx_http_vlm_ollama_embed_answer,
    .free = ngx_http_vlm_embed_free
};


/* the dialect above takes its place when the fields are read */

const ngx_http_vlm_dialect_t  ngx_http_vlm_ollama_embeddings = {
    .fields = ngx_http_vlm_ollama_embed_fields
};
