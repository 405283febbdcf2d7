
/*
 * POST /generate-lite, the endpoint of a LoRA service: a prompt as it stands
 * goes on, with an adapter or without, and the answer's text is made fit to be
 * shown, or to be a translation (lib/api/lite.c).
 *
 * There an error of the generation is a 500 whatever its cause, and so it is
 * here for an adapter or a model that does not exist, with the same text.
 */


#include "../messages.h"
#include "../model.h"
#include "api/lite.h"


#define NGX_HTTP_VLM_LITE_WRONG   422          /* status: fields are wrong */
#define NGX_HTTP_VLM_LITE_NGRAM   2            /* tokens that stand once */
#define NGX_HTTP_VLM_LITE_LEAST   8            /* with a template */


typedef struct {
    vlm_lite_t                    in;
    ngx_http_vlm_messages_t      *messages;
    ngx_uint_t                    raised;      /* its error is one that the
                                                  service's generation raised:
                                                  a 500 */
} ngx_http_vlm_lite_t;


/* ---- the request --------------------------------------------------------- */


/* "gpt2", the service's default, means the model that there is */

static ngx_int_t
ngx_http_vlm_lite_model(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_lite_t *lite)
{
    ngx_str_t  name;

    name.data = (u_char *) lite->in.text[VLM_LITE_BASE_MODEL];
    name.len = ngx_strlen(name.data);

    if (ngx_strcmp(name.data, "gpt2") == 0
        || ngx_http_vlm_model_is(ctx->engine, &name) == NGX_OK)
    {
        return NGX_OK;
    }

    lite->raised = 1;

    return ngx_http_vlm_model_missing(ctx, &name);
}


static ngx_int_t
ngx_http_vlm_lite_adapter(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_lite_t *lite)
{
    const char  *path, *dir;

    path = lite->in.text[VLM_LITE_ADAPTER_PATH];

    if (path == NULL || path[0] == '\0'
        || strcasecmp(path, "none") == 0)
    {
        return NGX_OK;
    }

    dir = ctx->engine->conf.vlm.lora
          ? ngx_http_vlm_adapter_dir(ctx->engine, path) : NULL;

    if (dir && ngx_http_vlm_adapter_use(ctx, dir, 0, 1) == NGX_OK) {
        return NGX_OK;
    }

    lite->raised = 1;

    return ngx_http_vlm_fail(ctx, NGX_HTTP_NOT_FOUND, "404: Adapter not found "
                             "at %*s. Set adapter_path='none' to skip.",
                             vlm_utf8_whole(path, ngx_min(ngx_strlen(path),
                                                          256)),
                             path);
}


static void
ngx_http_vlm_lite_parse(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_http_vlm_lite_t  *lite;

    ctx->out.plain = 1;

    lite = calloc(1, sizeof(ngx_http_vlm_lite_t));

    if (lite == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the request");
        return;
    }

    ctx->data = lite;

    if (vlm_lite_read(json, &lite->in, &ctx->out.json, &ctx->error.err) != 0) {
        ctx->error.status = ctx->error.err.code == VLM_EINPUT
                            ? NGX_HTTP_VLM_LITE_WRONG
                            : NGX_HTTP_INTERNAL_SERVER_ERROR;
        return;
    }

    if (ngx_http_vlm_lite_model(ctx, lite) != NGX_OK
        || ngx_http_vlm_lite_adapter(ctx, lite) != NGX_OK)
    {
        return;
    }

    lite->messages = ngx_http_vlm_messages_create(ctx);

    if (lite->messages
        && ngx_http_vlm_messages_begin(lite->messages, VLM_USER) == NGX_OK
        && ngx_http_vlm_messages_text(lite->messages,
                                      lite->in.text[VLM_LITE_PROMPT])
           == NGX_OK)
    {
        (void) ngx_http_vlm_messages_fit(lite->messages, 1);
    }
}


/* a model without a template, as BLOOM, always writes as many tokens as it may,
   greedily; the service does so for models with "bloom" in their names */

static void
ngx_http_vlm_lite_prompt(ngx_http_vlm_ctx_t *ctx)
{
    vlm_sampling_t       *s = &ctx->sampling;
    ngx_http_vlm_lite_t  *lite = ctx->data;

    double      *n;
    ngx_uint_t   raw;

    n = lite->in.number;
    raw = ctx->engine->conf.facts.turn == NULL;

    s->temperature = n[VLM_LITE_DO_SAMPLE] == 0 || raw
                     ? 0 : (float) n[VLM_LITE_TEMPERATURE];
    s->top_p = (float) ngx_max(n[VLM_LITE_TOP_P], 1e-6);
    s->top_k = (uint32_t) ngx_min(n[VLM_LITE_TOP_K], UINT32_MAX);
    s->repetition_penalty = (float) n[VLM_LITE_PENALTY];
    s->no_repeat_ngram_size = NGX_HTTP_VLM_LITE_NGRAM;
    s->max_tokens = (uint32_t) n[VLM_LITE_MAX_NEW_TOKENS];
    s->min_tokens = raw ? s->max_tokens
                        : ngx_min(s->max_tokens, NGX_HTTP_VLM_LITE_LEAST);

    (void) ngx_http_vlm_messages_prompt(&lite->messages, 1, NULL);
}


/* ---- the answer ---------------------------------------------------------- */


static void
ngx_http_vlm_lite_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_lite_t *lite = ctx->data;

    if (ctx->out.status) {
        vlm_json_open(w, '{');
        vlm_json_add_format(w, "detail", "Generation failed: %s",
                            ctx->error.err.text);
        vlm_json_shut(w, '}');

    } else {
        vlm_lite_put(w, &lite->in, (char *) ctx->out.answer.data,
                     ctx->out.answer.len);
    }
}


/* a body that is not JSON has failed before its fields were read, without a
   code, unlike one that is refused for what was or is to be done with it */

static ngx_int_t
ngx_http_vlm_lite_failed(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_lite_t *lite = ctx->data;

    if (lite == NULL && ctx->error.status == NGX_HTTP_BAD_REQUEST
        && ctx->error.code == NULL && ctx->error.err.code == VLM_OK)
    {
        vlm_wrong_json(&ctx->out.json, ctx->error.err.text, NULL);
        ctx->error.status = NGX_HTTP_VLM_LITE_WRONG;
    }

    if (lite && lite->raised) {
        ctx->out.status = NGX_HTTP_INTERNAL_SERVER_ERROR;
        return NGX_OK;
    }

    if (ctx->error.status != NGX_HTTP_VLM_LITE_WRONG) {
        return NGX_DECLINED;
    }

    if (ctx->out.json.failed) {

        /* the values are too long to be sent back */

        vlm_json_release(&ctx->out.json);
        return NGX_DECLINED;
    }

    ctx->out.status = NGX_HTTP_VLM_LITE_WRONG;

    return NGX_OK;
}


static void
ngx_http_vlm_lite_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_lite_t *lite = ctx->data;

    ctx->data = NULL;

    if (lite == NULL) {
        return;
    }

    if (lite->messages) {
        ngx_http_vlm_messages_free(lite->messages);
    }

    vlm_lite_free(&lite->in);
    free(lite);
}


const ngx_http_vlm_dialect_t  ngx_http_vlm_lite_dialect = {
    .fields = ngx_http_vlm_lite_parse,
    .prompt = ngx_http_vlm_lite_prompt,
    .ended = ngx_http_vlm_thinking_ended,
    .answer = ngx_http_vlm_lite_answer,
    .failed = ngx_http_vlm_lite_failed,
    .free = ngx_http_vlm_lite_free
};
