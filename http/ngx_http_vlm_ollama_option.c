
/*
 * How an answer is to be made, as Ollama's clients say it: "options",
 * "format", "logprobs", "keep_alive".
 *
 * Options that this engine has no counterpart for are ignored, as Ollama
 * ignores those of another runner; a wrong type is told.
 */


#include "ngx_http_vlm_ollama.h"

#include <math.h>


#define NGX_HTTP_VLM_OLLAMA_FAR  9.2e18    /* within an int64_t */


typedef struct {
    const char                   *name;
    double                        low;
    double                        high;
    const char                   *range;       /* in words; or whole: any */
    unsigned                      whole:1;
} ngx_http_vlm_ollama_option_t;


static ngx_int_t ngx_http_vlm_ollama_number(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *options, ngx_uint_t i);
static ngx_int_t ngx_http_vlm_ollama_stop(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *stop);
static ngx_int_t ngx_http_vlm_ollama_stop_add(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *item);
static ngx_int_t ngx_http_vlm_ollama_format(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *format);
static ngx_int_t ngx_http_vlm_ollama_logprobs(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json);
static uint64_t ngx_http_vlm_ollama_seed(int64_t seed);


/* in the order of ngx_http_vlm_ollama_option_e */

static const ngx_http_vlm_ollama_option_t  ngx_http_vlm_ollama_numbers[] = {
    { "temperature", 0, 100, "0 to 100", 0 },
    { "top_p", 0, 1, "0 to 1", 0 },
    { "repeat_penalty", 0.01, 10, "0.01 to 10", 0 },
    { "frequency_penalty", -2, 2, "-2 to 2", 0 },
    { "presence_penalty", -2, 2, "-2 to 2", 0 },
    { "top_k", -1, 2147483647, "-1 to 2147483647", 1 },
    { "seed", -NGX_HTTP_VLM_OLLAMA_FAR, NGX_HTTP_VLM_OLLAMA_FAR,
      "-9.2e18 to 9.2e18", 1 },
    { "num_predict", -2, 2147483647, "-2 to 2147483647", 1 },
    { "num_ctx", 0, 2147483647, "0 to 2147483647", 1 }
};


ngx_int_t
ngx_http_vlm_ollama_options(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json)
{
    ngx_uint_t                  i;
    const ngx_http_vlm_json_t  *options;

    options = ngx_http_vlm_json_get(json, "options");

    if (options && !ngx_http_vlm_json_is_null(options)
        && !ngx_http_vlm_json_is_object(options))
    {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "options is not an object");
    }

    for (i = 0; i < NGX_HTTP_VLM_OLLAMA_OPTIONS; i++) {

        if (ngx_http_vlm_ollama_number(ctx, options, i) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ngx_http_vlm_ollama_stop(ctx, ngx_http_vlm_json_get(options, "stop"))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_vlm_ollama_logprobs(ctx, json) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_vlm_ollama_format(ctx,
                                      ngx_http_vlm_json_get(json, "format"));
}


static ngx_int_t
ngx_http_vlm_ollama_number(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *options, ngx_uint_t i)
{
    double                               x;
    ngx_http_vlm_ollama_t               *o;
    const ngx_http_vlm_json_t           *value;
    const ngx_http_vlm_ollama_option_t  *option;

    o = ctx->data;
    option = &ngx_http_vlm_ollama_numbers[i];
    value = ngx_http_vlm_json_get(options, option->name);

    if (value == NULL || ngx_http_vlm_json_is_null(value)) {
        return NGX_OK;
    }

    x = ngx_http_vlm_json_number(value, 0);

    if (!ngx_http_vlm_json_is_number(value)
        || (option->whole && x != floor(x)))
    {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "option \"%s\" must be of type %s",
                                     option->name,
                                     option->whole ? "integer" : "float32");
    }

    if (!(x >= option->low && x <= option->high)) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "option \"%s\" is out of its range, %s",
                                     option->name, option->range);
    }

    o->options[i] = x;
    o->set |= (ngx_uint_t) 1 << i;

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_ollama_stop(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *stop)
{
    const ngx_http_vlm_json_t  *item;

    if (stop == NULL || ngx_http_vlm_json_is_null(stop)) {
        return NGX_OK;
    }

    if (ngx_http_vlm_json_is_string(stop)) {
        return ngx_http_vlm_ollama_stop_add(ctx, stop);
    }

    if (!ngx_http_vlm_json_is_array(stop)) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "option \"stop\" must be of type array");
    }

    for (item = ngx_http_vlm_json_first(stop);
         item;
         item = ngx_http_vlm_json_next(item))
    {
        if (ngx_http_vlm_ollama_stop_add(ctx, item) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_ollama_stop_add(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *item)
{
    const char             *text;
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;
    text = ngx_http_vlm_json_text(item);

    if (text == NULL) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "option \"stop\" must be of an array of "
                                     "strings");
    }

    if (text[0] == '\0') {
        return NGX_OK;
    }

    if (ngx_strlen(text) > NGX_HTTP_VLM_OLLAMA_STOP) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "a stop string of %uz bytes, it may have "
                                     "%d", ngx_strlen(text),
                                     NGX_HTTP_VLM_OLLAMA_STOP);
    }

    if (o->n_stop == NGX_HTTP_VLM_OLLAMA_STOPS) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "more than %d stop strings",
                                     NGX_HTTP_VLM_OLLAMA_STOPS);
    }

    o->stop[o->n_stop] = strdup(text);

    if (o->stop[o->n_stop] == NULL) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                     "No memory for a stop string");
    }

    o->n_stop++;

    return NGX_OK;
}


/* "json"; a schema is said to be beyond us, rather than not obeyed */

static ngx_int_t
ngx_http_vlm_ollama_format(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *format)
{
    const char             *text;
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;

    if (format == NULL || ngx_http_vlm_json_is_null(format)) {
        return NGX_OK;
    }

    if (ngx_http_vlm_json_is_object(format)) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "a JSON schema as format is not there "
                                     "yet, \"json\" is");
    }

    text = ngx_http_vlm_json_text(format);

    if (text && text[0] == '\0') {
        return NGX_OK;
    }

    if (text == NULL || ngx_strcmp(text, "json") != 0) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "invalid format, expected \"json\"");
    }

    if ((o->set & (ngx_uint_t) 1 << NGX_HTTP_VLM_OLLAMA_PREDICT)
        && o->options[NGX_HTTP_VLM_OLLAMA_PREDICT] == 1)
    {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "a JSON object takes 2 tokens at least, "
                                     "option \"num_predict\" is 1");
    }

    o->format = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_ollama_logprobs(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json)
{
    int64_t                     n;
    ngx_http_vlm_ollama_t      *o;
    const ngx_http_vlm_json_t  *field;

    o = ctx->data;
    field = ngx_http_vlm_json_get(json, "logprobs");

    if (field && !ngx_http_vlm_json_is_null(field)
        && !ngx_http_vlm_json_is_bool(field))
    {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "logprobs is not a boolean");
    }

    o->logprobs = ngx_http_vlm_json_bool(field, 0);

    field = ngx_http_vlm_json_get(json, "top_logprobs");

    if (field == NULL || ngx_http_vlm_json_is_null(field)) {
        return NGX_OK;
    }

    if (ngx_http_vlm_json_int(field, 0, VLM_TOP_LOGPROBS, &n) != 0) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "top_logprobs must be between 0 and %d",
                                     VLM_TOP_LOGPROBS);
    }

    o->top_logprobs = n;

    return NGX_OK;
}


/* a top_p of 0 leaves the likeliest token, and the engine wants more than 0 */

void
ngx_http_vlm_ollama_sampling(ngx_http_vlm_ctx_t *ctx)
{
    ngx_uint_t              i;
    vlm_sampling_t         *s;
    ngx_http_vlm_ollama_t  *o;

    o = ctx->data;
    s = &ctx->sampling;

    for (i = 0; i < NGX_HTTP_VLM_OLLAMA_OPTIONS; i++) {

        if (!(o->set & (ngx_uint_t) 1 << i)) {
            continue;
        }

        switch (i) {

        case NGX_HTTP_VLM_OLLAMA_TEMPERATURE:
            s->temperature = o->options[i];
            break;

        case NGX_HTTP_VLM_OLLAMA_TOP_P:
            s->top_p = ngx_max(o->options[i], 1e-6);
            break;

        case NGX_HTTP_VLM_OLLAMA_REPEAT:
            s->repetition_penalty = o->options[i];
            break;

        case NGX_HTTP_VLM_OLLAMA_FREQUENCY:
            s->frequency_penalty = o->options[i];
            break;

        case NGX_HTTP_VLM_OLLAMA_PRESENCE:
            s->presence_penalty = o->options[i];
            break;

        case NGX_HTTP_VLM_OLLAMA_TOP_K:
            s->top_k = ngx_max(o->options[i], 0);
            break;

        case NGX_HTTP_VLM_OLLAMA_SEED:
            s->seed = ngx_http_vlm_ollama_seed((int64_t) o->options[i]);
            break;

        case NGX_HTTP_VLM_OLLAMA_PREDICT:
            s->max_tokens = ngx_max(o->options[i], 0);
            break;

        default: /* num_ctx: the context is the configuration's */
            break;
        }
    }

    s->stop = (const char *const *) o->stop;
    s->n_stop = o->n_stop;
    s->logprobs = o->logprobs;
    s->top_logprobs = o->logprobs ? o->top_logprobs : 0;
    s->json = o->format;
}


/* -1 is a fresh one, and 0 one like any other: the engine's 0 is fresh */

static uint64_t
ngx_http_vlm_ollama_seed(int64_t seed)
{
    if (seed == -1) {
        return 0;
    }

    return seed == 0 ? (uint64_t) 1 << 63 : (uint64_t) seed;
}


/* 0 or "0s", "0m", ...; not -1, which is for ever */

ngx_uint_t
ngx_http_vlm_ollama_unloads(const ngx_http_vlm_json_t *keep)
{
    const char  *text;

    if (ngx_http_vlm_json_is_number(keep)) {
        return ngx_http_vlm_json_number(keep, 1) == 0;
    }

    text = ngx_http_vlm_json_text(keep);

    return text && strchr(text, '0') != NULL
           && strpbrk(text, "123456789") == NULL;
}
