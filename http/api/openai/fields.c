
/*
 * OpenAI's fields: the options of an answer, and features that this server
 * does not have.  Unknown fields are ignored, as clients send more of them
 * each year; a known one of the wrong type is refused by its name.
 */


#include "openai.h"
#include <math.h>


#define NGX_HTTP_VLM_LEGACY  16                /* /v1/completions: max_tokens */


/* fields that count answers, of which only one is supported */

static ngx_int_t
ngx_http_vlm_openai_one(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *value, const char *name)
{
    if (vlm_json_number(value, 0) == 1) {
        return NGX_OK;
    }

    return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                  vlm_json_is_number(value)
                                  ? "unsupported_value" : NULL,
                                  "%s can only be 1: a request has one answer",
                                  name);
}


/* an unsupported feature may be sent with a value that disables it */

static ngx_int_t
ngx_http_vlm_openai_absent(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *value, const char *name)
{
    return !vlm_json_is_true(value) ? NGX_OK
           : ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                    "unsupported_parameter",
                                    "%s is not supported by this server", name);
}


static ngx_int_t
ngx_http_vlm_openai_streams(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *value, const char *name)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    const vlm_json_t  *usage;

    if (in->f.number[NGX_HTTP_VLM_STREAM] != 1) {
        return ngx_http_vlm_fail_input(ctx, "stream_options is for requests "
                                       "with \"stream\": true");
    }

    usage = vlm_json_get(value, "include_usage");

    if (!vlm_json_is_null(usage) && !vlm_json_is_bool(usage)) {
        ngx_http_vlm_fail_param(ctx, "stream_options.include_usage");

        return ngx_http_vlm_fail_input(ctx, "include_usage is not a boolean");
    }

    in->f.number[NGX_HTTP_VLM_INCLUDE] = vlm_json_is_true(usage);

    return NGX_OK;
}


/* of equal ids the last is used */

static ngx_int_t
ngx_http_vlm_openai_bias(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_fields_t *f,
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

    for (i = 0; i < f->n_bias; i++) {
        if (f->bias[i].id == (uint32_t) id) {
            break;
        }
    }

    f->bias[i].id = (uint32_t) id;
    f->bias[i].bias = (float) x;

    if (i == f->n_bias) {
        f->n_bias++;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_openai_biases(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *value, const char *name)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    size_t             n;
    const vlm_json_t  *one;

    n = vlm_json_count(value);

    if (n > VLM_MAX_BIAS) {
        return ngx_http_vlm_fail_input(ctx, "logit_bias has %uz tokens, it may "
                                       "have %d", n, VLM_MAX_BIAS);
    }

    in->f.bias = calloc(n + 1, sizeof(vlm_bias_t));

    if (in->f.bias == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "logit_bias");
    }

    for (one = vlm_json_first(value); one; one = vlm_json_next(one)) {
        if (ngx_http_vlm_openai_bias(ctx, &in->f, one) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static const ngx_http_vlm_field_t  ngx_http_vlm_openai_both[] = {
    ngx_http_vlm_real("temperature", NGX_HTTP_VLM_TEMPERATURE, 0, 2),
    ngx_http_vlm_real("top_p", NGX_HTTP_VLM_TOP_P, 0, 1),
    ngx_http_vlm_whole("top_k", NGX_HTTP_VLM_TOP_K, -1, 1000),
    ngx_http_vlm_real("frequency_penalty", NGX_HTTP_VLM_FREQUENCY, -2, 2),
    ngx_http_vlm_real("presence_penalty", NGX_HTTP_VLM_PRESENCE, -2, 2),
    ngx_http_vlm_real("repetition_penalty", NGX_HTTP_VLM_REPETITION, 0.1, 10),
    { "seed", .read = ngx_http_vlm_fields_seed },
    { "max_tokens", NGX_HTTP_VLM_ENDLESS,
      NGX_HTTP_VLM_MAX_TOKENS, 1, 2147483647, NULL },
    ngx_http_vlm_whole("min_tokens", NGX_HTTP_VLM_MIN_TOKENS, 0, 2147483647),
    ngx_http_vlm_whole("no_repeat_ngram_size", NGX_HTTP_VLM_NGRAM, 0, 64),
    { "n", .read = ngx_http_vlm_openai_one },
    { "stream", NGX_HTTP_VLM_FLAG, .which = NGX_HTTP_VLM_STREAM },
    { "stream_options", NGX_HTTP_VLM_OBJECT,
      .read = ngx_http_vlm_openai_streams },
    { "stop", .read = ngx_http_vlm_fields_stops },
    { "logit_bias", NGX_HTTP_VLM_OBJECT, .read = ngx_http_vlm_openai_biases },
    { .name = NULL }
};


static const ngx_http_vlm_field_t  ngx_http_vlm_openai_of_chat[] = {
    { "max_completion_tokens", NGX_HTTP_VLM_ENDLESS,
      NGX_HTTP_VLM_MAX_COMPLETION, 1, 2147483647, NULL },
    ngx_http_vlm_whole("top_logprobs", NGX_HTTP_VLM_TOP_LOGPROBS,
                       0, VLM_TOP_LOGPROBS),
    { "logprobs", NGX_HTTP_VLM_FLAG, .which = NGX_HTTP_VLM_LOGPROBS },
    { "parallel_tool_calls", .type = NGX_HTTP_VLM_FLAG },
    { "task", .read = ngx_http_vlm_fields_task },
    { .name = NULL }
};


static const ngx_http_vlm_field_t  ngx_http_vlm_openai_of_text[] = {
    ngx_http_vlm_whole("logprobs", NGX_HTTP_VLM_TOP_LOGPROBS,
                       0, VLM_TOP_LOGPROBS),
    { "best_of", .read = ngx_http_vlm_openai_one },
    { "echo", .read = ngx_http_vlm_openai_absent },
    { "suffix", .read = ngx_http_vlm_openai_absent },
    { .name = NULL }
};


ngx_int_t
ngx_http_vlm_openai_fields(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const vlm_json_t *json)
{
    double  *n;

    n = o->in.f.number;

    if (ngx_http_vlm_fields_read(ctx, json, ngx_http_vlm_openai_both) != NGX_OK
        || ngx_http_vlm_fields_read(ctx, json, o->chat
                                    ? ngx_http_vlm_openai_of_chat
                                    : ngx_http_vlm_openai_of_text)
           != NGX_OK
        || ngx_http_vlm_fields_constrain(ctx,
               vlm_constraint_read(&o->in.f.constraint, json, o->chat,
                                   &ctx->error.err))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->streaming = n[NGX_HTTP_VLM_STREAM] == 1;
    o->include_usage = n[NGX_HTTP_VLM_INCLUDE] == 1;

    if (!o->chat) {
        n[NGX_HTTP_VLM_LOGPROBS] = !isnan(n[NGX_HTTP_VLM_TOP_LOGPROBS]);

        if (isnan(n[NGX_HTTP_VLM_MAX_TOKENS])) {
            n[NGX_HTTP_VLM_MAX_TOKENS] = NGX_HTTP_VLM_LEGACY;
        }

        return NGX_OK;
    }

    if (n[NGX_HTTP_VLM_LOGPROBS] != 1 && n[NGX_HTTP_VLM_TOP_LOGPROBS] > 0) {
        ngx_http_vlm_fail_param(ctx, "top_logprobs");

        return ngx_http_vlm_fail_input(ctx, "top_logprobs is for requests with "
                                       "\"logprobs\": true");
    }

    if (ngx_http_vlm_tools_read(ctx, json, "tools", "tool_choice")
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_vlm_tools_read(ctx, json, "functions", "function_call");
}
