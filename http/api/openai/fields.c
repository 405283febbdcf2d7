
/*
 * OpenAI's fields: the options of an answer, and features that this server
 * does not have.  Unknown fields are ignored, as clients send more of them
 * each year; a known one of the wrong type is refused by its name.
 */


#include "../api.h"
#include "openai.h"
#include <math.h>


#define NGX_HTTP_VLM_LEGACY  16                /* /v1/completions: max_tokens */


static ngx_int_t ngx_http_vlm_openai_one(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *name);
static ngx_int_t ngx_http_vlm_openai_streams(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_biases(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_bias(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const vlm_json_t *field);
static ngx_int_t ngx_http_vlm_openai_chat_only(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_text_only(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_format(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_absent(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *name);
static ngx_int_t ngx_http_vlm_openai_refuse(ngx_http_vlm_ctx_t *ctx,
    const char *name);


static const ngx_http_vlm_field_t  ngx_http_vlm_openai_both[] = {
    { "temperature", NGX_HTTP_VLM_TEMPERATURE, 0, 2, "0 to 2", 0, 0 },
    { "top_p", NGX_HTTP_VLM_TOP_P, 0, 1, "0 to 1", 0, 0 },
    { "top_k", NGX_HTTP_VLM_TOP_K, -1, 1000, "-1 to 1000", 1, 0 },
    { "frequency_penalty", NGX_HTTP_VLM_FREQUENCY, -2, 2, "-2 to 2", 0, 0 },
    { "presence_penalty", NGX_HTTP_VLM_PRESENCE, -2, 2, "-2 to 2", 0, 0 },
    { "repetition_penalty", NGX_HTTP_VLM_REPETITION, 0.1, 10, "0.1 to 10",
      0, 0 },
    { "seed", NGX_HTTP_VLM_SEED, NGX_HTTP_VLM_SEED_LOW,
      NGX_HTTP_VLM_SEED_HIGH, NGX_HTTP_VLM_SEED_RANGE, 1, 0 },
    { "max_tokens", NGX_HTTP_VLM_MAX_TOKENS, 1, 2147483647,
      "1 to 2147483647", 1, 1 },
    { NULL, 0, 0, 0, NULL, 0, 0 }
};


static const ngx_http_vlm_field_t  ngx_http_vlm_openai_of_chat[] = {
    { "max_completion_tokens", NGX_HTTP_VLM_MAX_COMPLETION, 1, 2147483647,
      "1 to 2147483647", 1, 1 },
    { "top_logprobs", NGX_HTTP_VLM_TOP_LOGPROBS, 0, VLM_TOP_LOGPROBS,
      "0 to 20", 1, 0 },
    { NULL, 0, 0, 0, NULL, 0, 0 }
};


static const ngx_http_vlm_field_t  ngx_http_vlm_openai_of_text[] = {
    { "logprobs", NGX_HTTP_VLM_TOP_LOGPROBS, 0, VLM_TOP_LOGPROBS,
      "0 to 20", 1, 0 },
    { NULL, 0, 0, 0, NULL, 0, 0 }
};


/* fields by which other servers constrain an answer: to ignore one would give
   an answer that its client misreads */

static const char  *ngx_http_vlm_openai_constraints[] = {
    "guided_choice", "guided_json", "guided_regex", "guided_grammar",
    "structured_outputs", "grammar", "json_schema", NULL
};


ngx_int_t
ngx_http_vlm_openai_fields(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const vlm_json_t *json)
{
    ngx_uint_t  i;

    if (ngx_http_vlm_fields_numbers(ctx, &o->in.f, json,
                                    ngx_http_vlm_openai_both)
        != NGX_OK
        || ngx_http_vlm_openai_one(ctx, json, "n") != NGX_OK
        || ngx_http_vlm_openai_streams(ctx, o, json) != NGX_OK
        || ngx_http_vlm_fields_stops(ctx, &o->in.f,
                                     vlm_json_get(json, "stop"))
           != NGX_OK
        || ngx_http_vlm_openai_biases(ctx, o, json) != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; ngx_http_vlm_openai_constraints[i]; i++) {

        if (ngx_http_vlm_openai_absent(ctx, json,
                                       ngx_http_vlm_openai_constraints[i])
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return o->chat ? ngx_http_vlm_openai_chat_only(ctx, o, json)
                   : ngx_http_vlm_openai_text_only(ctx, o, json);
}


/* fields that count answers, of which only one is supported */

static ngx_int_t
ngx_http_vlm_openai_one(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *name)
{
    const vlm_json_t  *field;

    field = vlm_json_get(json, name);

    if (vlm_json_is_null(field)
        || vlm_json_number(field, 0) == 1)
    {
        return NGX_OK;
    }

    ngx_http_vlm_fail_param(ctx, "%s", name);

    return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                  vlm_json_is_number(field)
                                  ? "unsupported_value" : NULL,
                                  "%s can only be 1: a request has one answer",
                                  name);
}


static ngx_int_t
ngx_http_vlm_openai_streams(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const vlm_json_t *json)
{
    const vlm_json_t  *options;

    ngx_http_vlm_fail_param(ctx, "stream");

    if (ngx_http_vlm_fields_flag(ctx, json, "stream", 0, &ctx->streaming)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    options = vlm_json_get(json, "stream_options");

    if (vlm_json_is_null(options)) {
        return NGX_OK;
    }

    ngx_http_vlm_fail_param(ctx, "stream_options");

    if (!vlm_json_is_object(options)) {
        return ngx_http_vlm_fail_input(ctx, "stream_options is not an object");
    }

    if (!ctx->streaming) {
        return ngx_http_vlm_fail_input(ctx, "stream_options is for requests "
                                       "with \"stream\": true");
    }

    ngx_http_vlm_fail_param(ctx, "stream_options.include_usage");

    return ngx_http_vlm_fields_flag(ctx, options, "include_usage", 0,
                                    &o->include_usage);
}


static ngx_int_t
ngx_http_vlm_openai_biases(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const vlm_json_t *json)
{
    size_t                      n;
    const vlm_json_t           *bias, *one;

    bias = vlm_json_get(json, "logit_bias");

    if (vlm_json_is_null(bias)) {
        return NGX_OK;
    }

    ngx_http_vlm_fail_param(ctx, "logit_bias");

    if (!vlm_json_is_object(bias)) {
        return ngx_http_vlm_fail_input(ctx, "logit_bias is not an object");
    }

    n = vlm_json_count(bias);

    if (n > VLM_MAX_BIAS) {
        return ngx_http_vlm_fail_input(ctx, "logit_bias has %uz tokens, it may "
                                       "have %d", n, VLM_MAX_BIAS);
    }

    o->in.f.bias = calloc(n + 1, sizeof(vlm_bias_t));

    if (o->in.f.bias == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "logit_bias");
    }

    for (one = vlm_json_first(bias);
         one;
         one = vlm_json_next(one))
    {
        if (ngx_http_vlm_openai_bias(ctx, o, one) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* of equal ids the last is used */

static ngx_int_t
ngx_http_vlm_openai_bias(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const vlm_json_t *field)
{
    size_t        i;
    double        x;
    ngx_int_t     id;
    const char   *key;

    key = vlm_json_key(field);

    ngx_http_vlm_fail_param(ctx, "logit_bias.%s", key);

    id = ngx_atoi((u_char *) key, ngx_strlen(key));

    if (id == NGX_ERROR || (ngx_uint_t) id >= ctx->engine->conf.facts.vocab) {
        return ngx_http_vlm_fail_input(ctx, "logit_bias has a key that is no "
                                       "token: they are 0 to %uD",
                                       ctx->engine->conf.facts.vocab - 1);
    }

    x = vlm_json_number(field, NAN);

    if (!(x >= -100 && x <= 100)) {
        return ngx_http_vlm_fail_input(ctx, "logit_bias of token %i is not a "
                                       "number from -100 to 100", id);
    }

    for (i = 0; i < o->in.f.n_bias; i++) {
        if (o->in.f.bias[i].id == (uint32_t) id) {
            break;
        }
    }

    o->in.f.bias[i].id = (uint32_t) id;
    o->in.f.bias[i].bias = (float) x;

    if (i == o->in.f.n_bias) {
        o->in.f.n_bias++;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_openai_chat_only(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const vlm_json_t *json)
{
    if (ngx_http_vlm_fields_numbers(ctx, &o->in.f, json,
                                    ngx_http_vlm_openai_of_chat)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_vlm_fail_param(ctx, "logprobs");

    if (ngx_http_vlm_fields_flag(ctx, json, "logprobs", 0, &o->in.f.logprobs)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (!o->in.f.logprobs && o->in.f.number[NGX_HTTP_VLM_TOP_LOGPROBS] > 0) {
        ngx_http_vlm_fail_param(ctx, "top_logprobs");

        return ngx_http_vlm_fail_input(ctx, "top_logprobs is for requests with "
                                       "\"logprobs\": true");
    }

    if (ngx_http_vlm_fields_tools(ctx, json, "tools", "tool_choice") != NGX_OK
        || ngx_http_vlm_fields_tools(ctx, json, "functions", "function_call")
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_vlm_openai_format(ctx, o, json);
}


static ngx_int_t
ngx_http_vlm_openai_text_only(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const vlm_json_t *json)
{
    if (ngx_http_vlm_fields_numbers(ctx, &o->in.f, json,
                                    ngx_http_vlm_openai_of_text)
        != NGX_OK
        || ngx_http_vlm_openai_one(ctx, json, "best_of") != NGX_OK
        || ngx_http_vlm_openai_absent(ctx, json, "echo") != NGX_OK
        || ngx_http_vlm_openai_absent(ctx, json, "suffix") != NGX_OK)
    {
        return NGX_ERROR;
    }

    o->in.f.logprobs = !isnan(o->in.f.number[NGX_HTTP_VLM_TOP_LOGPROBS]);

    if (isnan(o->in.f.number[NGX_HTTP_VLM_MAX_TOKENS])) {
        o->in.f.number[NGX_HTTP_VLM_MAX_TOKENS] = NGX_HTTP_VLM_LEGACY;
    }

    return NGX_OK;
}


/* an unsupported feature may be sent with a value that disables it */

static ngx_int_t
ngx_http_vlm_openai_absent(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *name)
{
    if (!vlm_json_is_true(vlm_json_get(json, name))) {
        return NGX_OK;
    }

    return ngx_http_vlm_openai_refuse(ctx, name);
}


static ngx_int_t
ngx_http_vlm_openai_refuse(ngx_http_vlm_ctx_t *ctx, const char *name)
{
    ngx_http_vlm_fail_param(ctx, "%s", name);

    return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                  "unsupported_parameter",
                                  "%s is not supported by this server", name);
}


static ngx_int_t
ngx_http_vlm_openai_format(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const vlm_json_t *json)
{
    const char                 *type;
    const vlm_json_t           *format;

    format = vlm_json_get(json, "response_format");

    if (vlm_json_is_null(format)) {
        return NGX_OK;
    }

    ngx_http_vlm_fail_param(ctx, "response_format");

    if (!vlm_json_is_object(format)) {
        return ngx_http_vlm_fail_input(ctx, "response_format is not an object");
    }

    ngx_http_vlm_fail_param(ctx, "response_format.type");

    type = vlm_json_text(vlm_json_get(format, "type"));

    if (type && ngx_strcmp(type, "text") == 0) {
        return NGX_OK;
    }

    if (type && ngx_strcmp(type, "json_object") == 0) {

        if (vlm_json_is_true(vlm_json_get(format, "schema")))
        {
            return ngx_http_vlm_openai_refuse(ctx, "response_format.schema");
        }

        o->in.f.json = 1;
        return NGX_OK;
    }

    if (type && ngx_strcmp(type, "json_schema") == 0) {
        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                      "unsupported_value", "response_format "
                                      "json_schema is not supported yet; "
                                      "json_object is");
    }

    return ngx_http_vlm_fail_input(ctx, "response_format.type is neither text "
                                   "nor json_object");
}
