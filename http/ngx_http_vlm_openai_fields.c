
/*
 * OpenAI's fields: how an answer is to be, and what is asked for that is not
 * there.  Unknown fields are ignored, as clients send more of them each year;
 * a known one of the wrong kind is refused by its name.
 */


#include "ngx_http_vlm_openai.h"
#include <math.h>


#define NGX_HTTP_VLM_STOP    1024              /* bytes, of one stop string */
#define NGX_HTTP_VLM_LEGACY  16                /* /v1/completions: max_tokens */


typedef struct {
    const char                   *name;
    ngx_http_vlm_openai_number_e  which;
    double                        low, high;
    ngx_uint_t                    whole;
    const char                   *kind;        /* in words */
} ngx_http_vlm_openai_field_t;


static ngx_int_t ngx_http_vlm_openai_numbers(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const ngx_http_vlm_json_t *json,
    const ngx_http_vlm_openai_field_t *f);
static ngx_int_t ngx_http_vlm_openai_one(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json, const char *name);
static ngx_int_t ngx_http_vlm_openai_bool(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json, const char *name, ngx_uint_t *yes);
static ngx_int_t ngx_http_vlm_openai_streams(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const ngx_http_vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_stops(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const ngx_http_vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_stop(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const ngx_http_vlm_json_t *field);
static ngx_int_t ngx_http_vlm_openai_biases(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const ngx_http_vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_bias(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const ngx_http_vlm_json_t *field);
static ngx_int_t ngx_http_vlm_openai_chat_only(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const ngx_http_vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_text_only(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const ngx_http_vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_format(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const ngx_http_vlm_json_t *json);
static ngx_int_t ngx_http_vlm_openai_absent(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json, const char *name);


static const ngx_http_vlm_openai_field_t  ngx_http_vlm_openai_both[] = {
    { "temperature", NGX_HTTP_VLM_TEMPERATURE, 0, 2, 0,
      "a number from 0 to 2" },
    { "top_p", NGX_HTTP_VLM_TOP_P, 0, 1, 0,
      "a number from 0 to 1" },
    { "top_k", NGX_HTTP_VLM_TOP_K, -1, 1000, 1,
      "a whole number from -1 to 1000" },
    { "frequency_penalty", NGX_HTTP_VLM_FREQUENCY, -2, 2, 0,
      "a number from -2 to 2" },
    { "presence_penalty", NGX_HTTP_VLM_PRESENCE, -2, 2, 0,
      "a number from -2 to 2" },
    { "repetition_penalty", NGX_HTTP_VLM_REPETITION, 0.1, 10, 0,
      "a number from 0.1 to 10" },
    { "seed", NGX_HTTP_VLM_SEED, -9.2e18, 9.2e18, 1,
      "a whole number from -9.2e18 to 9.2e18" },
    { "max_tokens", NGX_HTTP_VLM_MAX_TOKENS, 1, 2147483647, 1,
      "a whole number from 1 to 2147483647" },
    { NULL, 0, 0, 0, 0, NULL }
};


static const ngx_http_vlm_openai_field_t  ngx_http_vlm_openai_of_chat[] = {
    { "max_completion_tokens", NGX_HTTP_VLM_MAX_COMPLETION, 1, 2147483647, 1,
      "a whole number from 1 to 2147483647" },
    { "top_logprobs", NGX_HTTP_VLM_TOP_LOGPROBS, 0, VLM_TOP_LOGPROBS, 1,
      "a whole number from 0 to 20" },
    { NULL, 0, 0, 0, 0, NULL }
};


static const ngx_http_vlm_openai_field_t  ngx_http_vlm_openai_of_text[] = {
    { "logprobs", NGX_HTTP_VLM_TOP_LOGPROBS, 0, VLM_TOP_LOGPROBS, 1,
      "a whole number from 0 to 20" },
    { NULL, 0, 0, 0, 0, NULL }
};


ngx_int_t
ngx_http_vlm_openai_fields(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const ngx_http_vlm_json_t *json)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_VLM_NUMBERS; i++) {
        o->number[i] = NAN;
    }

    if (ngx_http_vlm_openai_numbers(ctx, o, json, ngx_http_vlm_openai_both)
        != NGX_OK
        || ngx_http_vlm_openai_one(ctx, json, "n") != NGX_OK
        || ngx_http_vlm_openai_streams(ctx, o, json) != NGX_OK
        || ngx_http_vlm_openai_stops(ctx, o, json) != NGX_OK
        || ngx_http_vlm_openai_biases(ctx, o, json) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return o->chat ? ngx_http_vlm_openai_chat_only(ctx, o, json)
                   : ngx_http_vlm_openai_text_only(ctx, o, json);
}


static ngx_int_t
ngx_http_vlm_openai_numbers(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const ngx_http_vlm_json_t *json, const ngx_http_vlm_openai_field_t *f)
{
    double                      x;
    const ngx_http_vlm_json_t  *field;

    for ( /* void */ ; f->name; f++) {

        field = ngx_http_vlm_json_get(json, f->name);

        if (ngx_http_vlm_json_is_null(field)) {
            continue;
        }

        x = ngx_http_vlm_json_number(field, NAN);

        if (!(x >= f->low && x <= f->high) || (f->whole && x != floor(x))) {
            ngx_http_vlm_openai_param(ctx, "%s", f->name);

            return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                         "%s is not %s", f->name, f->kind);
        }

        o->number[f->which] = x;
    }

    return NGX_OK;
}


/* of what could be many, and is one */

static ngx_int_t
ngx_http_vlm_openai_one(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json, const char *name)
{
    const ngx_http_vlm_json_t  *field;

    field = ngx_http_vlm_json_get(json, name);

    if (ngx_http_vlm_json_is_null(field)
        || ngx_http_vlm_json_number(field, 0) == 1)
    {
        return NGX_OK;
    }

    ngx_http_vlm_openai_param(ctx, "%s", name);

    if (ngx_http_vlm_json_is_number(field)) {
        ctx->code = "unsupported_value";
    }

    return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                 "%s can only be 1: a request has one answer",
                                 name);
}


static ngx_int_t
ngx_http_vlm_openai_bool(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json, const char *name, ngx_uint_t *yes)
{
    const ngx_http_vlm_json_t  *field;

    *yes = 0;

    field = ngx_http_vlm_json_get(json, name);

    if (ngx_http_vlm_json_is_null(field)) {
        return NGX_OK;
    }

    if (!ngx_http_vlm_json_is_bool(field)) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "%s is not true or false", name);
    }

    *yes = ngx_http_vlm_json_bool(field, 0);

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_openai_streams(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const ngx_http_vlm_json_t *json)
{
    const ngx_http_vlm_json_t  *options;

    ngx_http_vlm_openai_param(ctx, "stream");

    if (ngx_http_vlm_openai_bool(ctx, json, "stream", &ctx->streaming)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    options = ngx_http_vlm_json_get(json, "stream_options");

    if (ngx_http_vlm_json_is_null(options)) {
        return NGX_OK;
    }

    ngx_http_vlm_openai_param(ctx, "stream_options");

    if (!ngx_http_vlm_json_is_object(options)) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "stream_options is not an object");
    }

    if (!ctx->streaming) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "stream_options is for requests with "
                                     "\"stream\": true");
    }

    ngx_http_vlm_openai_param(ctx, "stream_options.include_usage");

    return ngx_http_vlm_openai_bool(ctx, options, "include_usage",
                                    &o->include_usage);
}


static ngx_int_t
ngx_http_vlm_openai_stops(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const ngx_http_vlm_json_t *json)
{
    const ngx_http_vlm_json_t  *stop, *one;

    stop = ngx_http_vlm_json_get(json, "stop");

    if (ngx_http_vlm_json_is_null(stop)) {
        return NGX_OK;
    }

    ngx_http_vlm_openai_param(ctx, "stop");

    if (!ngx_http_vlm_json_is_array(stop)) {
        return ngx_http_vlm_openai_stop(ctx, o, stop);
    }

    for (one = ngx_http_vlm_json_first(stop);
         one;
         one = ngx_http_vlm_json_next(one))
    {
        if (ngx_http_vlm_openai_stop(ctx, o, one) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* an empty one stops nothing */

static ngx_int_t
ngx_http_vlm_openai_stop(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const ngx_http_vlm_json_t *field)
{
    size_t       len;
    const char  *text;

    text = ngx_http_vlm_json_text(field);

    if (text == NULL) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "stop is neither a string nor an array "
                                     "of strings");
    }

    len = ngx_strlen(text);

    if (len == 0) {
        return NGX_OK;
    }

    if (len > NGX_HTTP_VLM_STOP) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "stop has a string of %uz bytes, it may "
                                     "have %d", len, NGX_HTTP_VLM_STOP);
    }

    if (o->n_stop == NGX_HTTP_VLM_OPENAI_STOPS) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "stop has more than %d strings",
                                     NGX_HTTP_VLM_OPENAI_STOPS);
    }

    o->stop[o->n_stop] = strdup(text);

    if (o->stop[o->n_stop] == NULL) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                     "No memory for the stop strings");
    }

    o->n_stop++;

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_openai_biases(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const ngx_http_vlm_json_t *json)
{
    size_t                      n;
    const ngx_http_vlm_json_t  *bias, *one;

    bias = ngx_http_vlm_json_get(json, "logit_bias");

    if (ngx_http_vlm_json_is_null(bias)) {
        return NGX_OK;
    }

    ngx_http_vlm_openai_param(ctx, "logit_bias");

    if (!ngx_http_vlm_json_is_object(bias)) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "logit_bias is not an object");
    }

    n = ngx_http_vlm_json_count(bias);

    if (n > VLM_MAX_BIAS) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "logit_bias has %uz tokens, it may have "
                                     "%d", n, VLM_MAX_BIAS);
    }

    o->bias = calloc(n + 1, sizeof(vlm_bias_t));

    if (o->bias == NULL) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                     "No memory for logit_bias");
    }

    for (one = ngx_http_vlm_json_first(bias);
         one;
         one = ngx_http_vlm_json_next(one))
    {
        if (ngx_http_vlm_openai_bias(ctx, o, one) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* of equal ids the last counts */

static ngx_int_t
ngx_http_vlm_openai_bias(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const ngx_http_vlm_json_t *field)
{
    size_t        i;
    double        x;
    ngx_int_t     id;
    const char   *key;

    key = ngx_http_vlm_json_key(field);

    ngx_http_vlm_openai_param(ctx, "logit_bias.%s", key);

    id = ngx_atoi((u_char *) key, ngx_strlen(key));

    if (id == NGX_ERROR || (ngx_uint_t) id >= ctx->engine->facts.vocab) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "logit_bias has a key that is no token: "
                                     "they are 0 to %uD",
                                     ctx->engine->facts.vocab - 1);
    }

    x = ngx_http_vlm_json_number(field, NAN);

    if (!(x >= -100 && x <= 100)) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "logit_bias of token %i is not a number "
                                     "from -100 to 100", id);
    }

    for (i = 0; i < o->n_bias; i++) {
        if (o->bias[i].id == (uint32_t) id) {
            break;
        }
    }

    o->bias[i].id = (uint32_t) id;
    o->bias[i].bias = (float) x;

    if (i == o->n_bias) {
        o->n_bias++;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_openai_chat_only(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const ngx_http_vlm_json_t *json)
{
    if (ngx_http_vlm_openai_numbers(ctx, o, json, ngx_http_vlm_openai_of_chat)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_vlm_openai_param(ctx, "logprobs");

    if (ngx_http_vlm_openai_bool(ctx, json, "logprobs", &o->logprobs)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (!o->logprobs && o->number[NGX_HTTP_VLM_TOP_LOGPROBS] > 0) {
        ngx_http_vlm_openai_param(ctx, "top_logprobs");

        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "top_logprobs is for requests with "
                                     "\"logprobs\": true");
    }

    if (ngx_http_vlm_openai_absent(ctx, json, "tools") != NGX_OK
        || ngx_http_vlm_openai_absent(ctx, json, "functions") != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_vlm_openai_format(ctx, o, json);
}


static ngx_int_t
ngx_http_vlm_openai_text_only(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const ngx_http_vlm_json_t *json)
{
    if (ngx_http_vlm_openai_numbers(ctx, o, json, ngx_http_vlm_openai_of_text)
        != NGX_OK
        || ngx_http_vlm_openai_one(ctx, json, "best_of") != NGX_OK
        || ngx_http_vlm_openai_absent(ctx, json, "echo") != NGX_OK
        || ngx_http_vlm_openai_absent(ctx, json, "suffix") != NGX_OK)
    {
        return NGX_ERROR;
    }

    o->logprobs = !isnan(o->number[NGX_HTTP_VLM_TOP_LOGPROBS]);

    if (isnan(o->number[NGX_HTTP_VLM_MAX_TOKENS])) {
        o->number[NGX_HTTP_VLM_MAX_TOKENS] = NGX_HTTP_VLM_LEGACY;
    }

    return NGX_OK;
}


/* a feature that is not there may be sent with a value that asks for none */

static ngx_int_t
ngx_http_vlm_openai_absent(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json, const char *name)
{
    if (!ngx_http_vlm_json_is_true(ngx_http_vlm_json_get(json, name))) {
        return NGX_OK;
    }

    ngx_http_vlm_openai_param(ctx, "%s", name);
    ctx->code = "unsupported_parameter";

    return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                 "%s: this server does not have that",
                                 name);
}


static ngx_int_t
ngx_http_vlm_openai_format(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_openai_t *o,
    const ngx_http_vlm_json_t *json)
{
    const char                 *type;
    const ngx_http_vlm_json_t  *format;

    format = ngx_http_vlm_json_get(json, "response_format");

    if (ngx_http_vlm_json_is_null(format)) {
        return NGX_OK;
    }

    ngx_http_vlm_openai_param(ctx, "response_format");

    if (!ngx_http_vlm_json_is_object(format)) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "response_format is not an object");
    }

    ngx_http_vlm_openai_param(ctx, "response_format.type");

    type = ngx_http_vlm_json_text(ngx_http_vlm_json_get(format, "type"));

    if (type && ngx_strcmp(type, "text") == 0) {
        return NGX_OK;
    }

    if (type && ngx_strcmp(type, "json_object") == 0) {
        o->json = 1;
        return NGX_OK;
    }

    if (type && ngx_strcmp(type, "json_schema") == 0) {
        ctx->code = "unsupported_value";

        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "response_format json_schema is not "
                                     "there yet; json_object is");
    }

    return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                 "response_format.type is neither text nor "
                                 "json_object");
}


void
ngx_http_vlm_openai_sampling(ngx_http_vlm_openai_t *o, vlm_sampling_t *s)
{
    double  *n, x;

    n = o->number;

    if (!isnan(n[NGX_HTTP_VLM_TEMPERATURE])) {
        s->temperature = (float) n[NGX_HTTP_VLM_TEMPERATURE];
    }

    /* the engine's 0 would be none at all; so small a one leaves the first */

    if (!isnan(n[NGX_HTTP_VLM_TOP_P])) {
        s->top_p = (float) ngx_max(n[NGX_HTTP_VLM_TOP_P], 1e-6);
    }

    if (!isnan(n[NGX_HTTP_VLM_TOP_K])) {
        s->top_k = (uint32_t) ngx_max(n[NGX_HTTP_VLM_TOP_K], 0);
    }

    if (!isnan(n[NGX_HTTP_VLM_FREQUENCY])) {
        s->frequency_penalty = (float) n[NGX_HTTP_VLM_FREQUENCY];
    }

    if (!isnan(n[NGX_HTTP_VLM_PRESENCE])) {
        s->presence_penalty = (float) n[NGX_HTTP_VLM_PRESENCE];
    }

    if (!isnan(n[NGX_HTTP_VLM_REPETITION])) {
        s->repetition_penalty = (float) n[NGX_HTTP_VLM_REPETITION];
    }

    /* 0 is a seed like others for clients, and none for the engine */

    if (!isnan(n[NGX_HTTP_VLM_SEED])) {
        s->seed = (uint64_t) (int64_t) n[NGX_HTTP_VLM_SEED];
        s->seed = s->seed ? s->seed : UINT64_MAX;
    }

    x = fmin(n[NGX_HTTP_VLM_MAX_TOKENS], n[NGX_HTTP_VLM_MAX_COMPLETION]);

    if (!isnan(x)) {
        s->max_tokens = (uint32_t) x;
    }

    if (!isnan(n[NGX_HTTP_VLM_TOP_LOGPROBS])) {
        s->top_logprobs = (uint32_t) n[NGX_HTTP_VLM_TOP_LOGPROBS];
    }

    s->logprobs = o->logprobs;
    s->json = o->json;
    s->stop = (const char *const *) o->stop;
    s->n_stop = o->n_stop;
    s->bias = o->bias;
    s->n_bias = o->n_bias;
}


void
ngx_http_vlm_openai_param(ngx_http_vlm_ctx_t *ctx, const char *fmt, ...)
{
    char     *last;
    va_list   args;

    va_start(args, fmt);
    last = (char *) ngx_vslprintf((u_char *) ctx->param,
                                  (u_char *) ctx->param
                                  + sizeof(ctx->param) - 1,
                                  fmt, args);
    va_end(args);

    ctx->param[ngx_http_vlm_json_utf8(ctx->param, last - ctx->param)] = '\0';
}
