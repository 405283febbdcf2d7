
/*
 * The inputs and vectors of embeddings: see embed.h.
 */


#include "embed.h"


ngx_http_vlm_embed_t *
ngx_http_vlm_embed_create(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    const char *missing, ngx_uint_t of)
{
    ngx_http_vlm_embed_t  *e;

    ctx->out.plain = 1;

    e = ngx_http_vlm_asked_create(ctx, json, sizeof(ngx_http_vlm_embed_t),
                                  missing);
    return e && ngx_http_vlm_fields_read(ctx, json, of) == NGX_OK ? e : NULL;
}


ngx_int_t
ngx_http_vlm_embed_room(ngx_http_vlm_ctx_t *ctx, ngx_uint_t n)
{
    ngx_http_vlm_embed_t *e = ctx->data;

    e->vectors = calloc(n, ctx->engine->conf.facts.hidden * sizeof(float));
    e->n = n;

    return e->vectors ? NGX_OK : ngx_http_vlm_fail_memory(ctx, "the vectors");
}


static ngx_int_t
ngx_http_vlm_embed_input(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    ngx_uint_t i)
{
    ngx_http_vlm_embed_t *e = ctx->data;

    const char               *text;
    ngx_http_vlm_messages_t  *m;

    text = vlm_json_text(value);

    if (text == NULL) {
        return ngx_http_vlm_fail_input(ctx, "input %ui is not a string: token "
                                       "IDs are not supported", i);
    }

    if (text[0] == '\0') {
        return ngx_http_vlm_fail_input(ctx, "input %ui is empty", i);
    }

    m = ngx_http_vlm_messages_create(ctx);
    e->inputs[i] = m;

    return m && ngx_http_vlm_messages_begin(m, VLM_USER) == NGX_OK
           && ngx_http_vlm_messages_text(m, text) == NGX_OK
           && ngx_http_vlm_messages_fit(m, 1) == NGX_OK
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_vlm_embed_inputs(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    ngx_http_vlm_embed_t *e = ctx->data;

    ngx_uint_t         i, n;
    const vlm_json_t  *one;

    ngx_http_vlm_fail_param(ctx, "%s", name);

    n = vlm_json_is_array(value) ? vlm_json_count(value) : 1;

    if (n == 0) {
        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST, "empty_array",
                                      "%s is an empty array", name);
    }

    if (n > NGX_HTTP_VLM_INPUTS) {
        return ngx_http_vlm_fail_input(ctx, "%s has %ui texts, it may have %d",
                                       name, n, NGX_HTTP_VLM_INPUTS);
    }

    e->inputs = calloc(n, sizeof(ngx_http_vlm_messages_t *));

    if (e->inputs == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the inputs");
    }

    if (ngx_http_vlm_embed_room(ctx, n) != NGX_OK) {
        return NGX_ERROR;
    }

    one = vlm_json_is_array(value) ? vlm_json_first(value) : value;

    for (i = 0; i < n; i++) {
        if (ngx_http_vlm_embed_input(ctx, one, i) != NGX_OK) {
            return NGX_ERROR;
        }

        one = vlm_json_next(one);
    }

    return NGX_OK;
}


void
ngx_http_vlm_embed_prompt(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_embed_t *e = ctx->data;

    ctx->sampling.vector = 1;

    (void) ngx_http_vlm_messages_prompt(e->inputs ? &e->inputs[e->done]
                                                  : &e->in.messages,
                                        e->inputs != NULL, NULL);
}


/* further inputs go behind other requests */

ngx_int_t
ngx_http_vlm_embed_ended(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_embed_t *e = ctx->data;

    size_t      size;
    uint32_t    hidden;
    ngx_buf_t  *b;

    if (e->n == 0) {
        return NGX_OK;
    }

    b = ctx->out.text;
    hidden = ctx->engine->conf.facts.hidden;
    size = hidden * sizeof(float);

    if (b == NULL || (size_t) (b->last - b->pos) != size) {
        return NGX_ERROR;
    }

    ngx_memcpy(e->vectors + e->done * hidden, b->pos, size);
    b->last = b->pos;

    if (++e->done == e->n) {
        return NGX_OK;
    }

    ngx_http_vlm_finish_again(ctx, 1);

    return NGX_AGAIN;
}


void
ngx_http_vlm_embed_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w, ngx_uint_t i)
{
    ngx_http_vlm_embed_t *e = ctx->data;

    uint32_t  hidden;

    hidden = ctx->engine->conf.facts.hidden;

    vlm_json_put_floats(w, e->vectors + i * hidden, hidden);
}


void
ngx_http_vlm_embed_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_embed_t *e = ctx->data;

    ngx_uint_t  i;

    if (e == NULL) {
        return;
    }

    for (i = 0; e->inputs && i < e->n; i++) {
        if (e->inputs[i]) {
            ngx_http_vlm_messages_free(e->inputs[i]);
        }
    }

    free(e->inputs);
    free(e->vectors);

    ngx_http_vlm_asked_free(ctx);
}
