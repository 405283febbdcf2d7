
/*
 * The fields of Ollama's requests that control an answer.
 *
 * Options that this engine does not have are ignored, as Ollama ignores those
 * of another runner; a wrong type is refused.
 */


#include "ollama.h"


static const ngx_http_vlm_field_t  ngx_http_vlm_ollama_options[] = {
    ngx_http_vlm_real("temperature", NGX_HTTP_VLM_TEMPERATURE, 0, 100),
    ngx_http_vlm_real("top_p", NGX_HTTP_VLM_TOP_P, 0, 1),
    ngx_http_vlm_real("repeat_penalty", NGX_HTTP_VLM_REPETITION, 0.01, 10),
    ngx_http_vlm_real("frequency_penalty", NGX_HTTP_VLM_FREQUENCY, -2, 2),
    ngx_http_vlm_real("presence_penalty", NGX_HTTP_VLM_PRESENCE, -2, 2),
    ngx_http_vlm_whole("top_k", NGX_HTTP_VLM_TOP_K, -1, 2147483647),
    { "seed", .read = ngx_http_vlm_fields_seed },
    ngx_http_vlm_whole("num_predict", NGX_HTTP_VLM_MAX_TOKENS, -2, 2147483647),
    ngx_http_vlm_whole("num_ctx", NGX_HTTP_VLM_IGNORED, 0, 2147483647),
    { "stop", .read = ngx_http_vlm_fields_stops },
    { .name = NULL }
};


static ngx_int_t
ngx_http_vlm_ollama_option(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    return ngx_http_vlm_fields_read(ctx, value, ngx_http_vlm_ollama_options);
}


/* a boolean or a level */

static ngx_int_t
ngx_http_vlm_ollama_think(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    if (!vlm_json_is_bool(value) && !vlm_json_is_string(value)) {
        return ngx_http_vlm_fail_input(ctx, "think is neither a boolean nor a "
                                       "string");
    }

    if (vlm_json_is_true(value) && !ctx->engine->conf.thinking) {
        return ngx_http_vlm_fail_input(ctx, "\"%s\" does not support thinking",
                                       in->model);
    }

    in->f.number[NGX_HTTP_VLM_THINK] = vlm_json_is_true(value);

    return NGX_OK;
}


/* 0 or "0s", "0m", ... unloads; not -1, which means for ever */

static ngx_int_t
ngx_http_vlm_ollama_keep(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    ngx_http_vlm_ollama_t *o = ctx->data;

    const char  *text;

    text = vlm_json_text(value);

    if (text == NULL && !vlm_json_is_number(value)) {
        return ngx_http_vlm_fail_input(ctx, "keep_alive is neither a number "
                                       "nor a string");
    }

    o->unloads = text ? strchr(text, '0') && !strpbrk(text, "123456789")
                      : vlm_json_number(value, 1) == 0;

    return NGX_OK;
}


static const ngx_http_vlm_field_t  ngx_http_vlm_ollama_both[] = {
    { "stream", NGX_HTTP_VLM_FLAG, .which = NGX_HTTP_VLM_STREAM },
    { "truncate", NGX_HTTP_VLM_FLAG, .which = NGX_HTTP_VLM_TRUNCATE },
    { "options", NGX_HTTP_VLM_OBJECT, .read = ngx_http_vlm_ollama_option },
    { "logprobs", NGX_HTTP_VLM_FLAG, .which = NGX_HTTP_VLM_LOGPROBS },
    ngx_http_vlm_whole("top_logprobs", NGX_HTTP_VLM_TOP_LOGPROBS,
                       0, VLM_TOP_LOGPROBS),
    { "format", .read = ngx_http_vlm_fields_format },
    { "think", .read = ngx_http_vlm_ollama_think },
    { "task", .read = ngx_http_vlm_fields_task },
    { "keep_alive", .read = ngx_http_vlm_ollama_keep },
    { .name = NULL }
};


/* a thinking model thinks by default */

ngx_int_t
ngx_http_vlm_ollama_fields(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    const ngx_http_vlm_field_t *rows)
{
    double                 *n;
    ngx_http_vlm_ollama_t  *o;

    o = ngx_http_vlm_asked_create(ctx, json, sizeof(ngx_http_vlm_ollama_t),
                                  "missing request body");

    if (o == NULL
        || ngx_http_vlm_fields_read(ctx, json, ngx_http_vlm_ollama_both)
           != NGX_OK
        || ngx_http_vlm_fields_read(ctx, json, rows) != NGX_OK)
    {
        return NGX_ERROR;
    }

    n = o->in.f.number;

    o->whole = n[NGX_HTTP_VLM_TRUNCATE] == 0;

    ctx->streaming = n[NGX_HTTP_VLM_STREAM] != 0;
    ctx->out.plain = o->in.f.constraint.form || !ctx->engine->conf.thinking;
    ctx->out.thinks = !ctx->out.plain && n[NGX_HTTP_VLM_THINK] != 0;

    return NGX_OK;
}
