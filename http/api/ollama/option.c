
/*
 * The options of an answer in Ollama's form: "options", "format", "logprobs",
 * "keep_alive".
 *
 * Options that this engine does not have are ignored, as Ollama ignores those
 * of another runner; a wrong type is refused.
 */


#include "../api.h"
#include "ollama.h"


static ngx_int_t ngx_http_vlm_ollama_format(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *format);


static const ngx_http_vlm_field_t  ngx_http_vlm_ollama_numbers[] = {
    { "temperature", NGX_HTTP_VLM_TEMPERATURE, 0, 100, "0 to 100", 0, 0 },
    { "top_p", NGX_HTTP_VLM_TOP_P, 0, 1, "0 to 1", 0, 0 },
    { "repeat_penalty", NGX_HTTP_VLM_REPETITION, 0.01, 10, "0.01 to 10",
      0, 0 },
    { "frequency_penalty", NGX_HTTP_VLM_FREQUENCY, -2, 2, "-2 to 2", 0, 0 },
    { "presence_penalty", NGX_HTTP_VLM_PRESENCE, -2, 2, "-2 to 2", 0, 0 },
    { "top_k", NGX_HTTP_VLM_TOP_K, -1, 2147483647, "-1 to 2147483647",
      1, 0 },
    { "seed", NGX_HTTP_VLM_SEED, NGX_HTTP_VLM_SEED_LOW,
      NGX_HTTP_VLM_SEED_HIGH, NGX_HTTP_VLM_SEED_RANGE, 1, 0 },
    { "num_predict", NGX_HTTP_VLM_MAX_TOKENS, -2, 2147483647,
      "-2 to 2147483647", 1, 0 },
    { "num_ctx", NGX_HTTP_VLM_IGNORED, 0, 2147483647, "0 to 2147483647",
      1, 0 },
    { NULL, 0, 0, 0, NULL, 0, 0 }
};


static const ngx_http_vlm_field_t  ngx_http_vlm_ollama_logprobs[] = {
    { "top_logprobs", NGX_HTTP_VLM_TOP_LOGPROBS, 0, VLM_TOP_LOGPROBS,
      "0 to 20", 1, 0 },
    { NULL, 0, 0, 0, NULL, 0, 0 }
};


ngx_int_t
ngx_http_vlm_ollama_options(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    ngx_http_vlm_ollama_t      *o;
    const vlm_json_t           *options;

    o = ctx->data;
    options = vlm_json_get(json, "options");

    if (!vlm_json_is_null(options)
        && !vlm_json_is_object(options))
    {
        return ngx_http_vlm_fail_input(ctx, "options is not an object");
    }

    if (ngx_http_vlm_fields_numbers(ctx, &o->in.f, options,
                                    ngx_http_vlm_ollama_numbers)
        != NGX_OK
        || ngx_http_vlm_fields_stops(ctx, &o->in.f,
                                     vlm_json_get(options, "stop"))
           != NGX_OK
        || ngx_http_vlm_fields_flag(ctx, json, "logprobs", 0, &o->in.f.logprobs)
           != NGX_OK
        || ngx_http_vlm_fields_numbers(ctx, &o->in.f, json,
                                       ngx_http_vlm_ollama_logprobs)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_vlm_ollama_format(ctx,
                                      vlm_json_get(json, "format"));
}


/* "json"; a schema is refused, because it would not be obeyed */

static ngx_int_t
ngx_http_vlm_ollama_format(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *format)
{
    const char             *text;
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    if (vlm_json_is_null(format)) {
        return NGX_OK;
    }

    if (vlm_json_is_object(format)) {
        return ngx_http_vlm_fail_input(ctx, "format as a JSON schema is not "
                                       "supported yet, \"json\" is");
    }

    text = vlm_json_text(format);

    if (text && text[0] == '\0') {
        return NGX_OK;
    }

    if (text == NULL || ngx_strcmp(text, "json") != 0) {
        return ngx_http_vlm_fail_input(ctx, "invalid format, expected "
                                       "\"json\"");
    }

    if (o->in.f.number[NGX_HTTP_VLM_MAX_TOKENS] == 1) {
        return ngx_http_vlm_fail_input(ctx, "a JSON object takes 2 tokens at "
                                       "least, option \"num_predict\" is 1");
    }

    o->in.f.json = 1;

    return NGX_OK;
}


/* 0 or "0s", "0m", ...; not -1, which means for ever */

ngx_uint_t
ngx_http_vlm_ollama_unloads(const vlm_json_t *keep)
{
    const char  *text;

    if (vlm_json_is_number(keep)) {
        return vlm_json_number(keep, 1) == 0;
    }

    text = vlm_json_text(keep);

    return text && strchr(text, '0') != NULL
           && strpbrk(text, "123456789") == NULL;
}
