
/*
 * The fields of a request that control its answer, of any dialect: a table
 * gives their names and ranges, and maps them to the engine's parameters.
 */


#include "api.h"
#include "fields.h"
#include <math.h>


static ngx_int_t ngx_http_vlm_fields_stop(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_fields_t *f, const vlm_json_t *item);
static double ngx_http_vlm_fields_limit(double x);
static uint64_t ngx_http_vlm_fields_seed(double x);


void *
ngx_http_vlm_asked_create(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    size_t size)
{
    ngx_uint_t             i;
    ngx_http_vlm_asked_t  *in;

    in = calloc(1, size);

    if (in == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the request");
        return NULL;
    }

    ctx->data = in;

    for (i = 0; i < NGX_HTTP_VLM_NUMBERS; i++) {
        in->f.number[i] = NAN;
    }

    in->messages = ngx_http_vlm_messages_create(ctx);

    if (in->messages == NULL) {
        return NULL;
    }

    in->model = ngx_http_vlm_model_take(ctx, vlm_json_get(json, "model"));

    return in->model ? in : NULL;
}


void
ngx_http_vlm_asked_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_asked_t  *in;

    in = ctx->data;
    ctx->data = NULL;

    if (in == NULL) {
        return;
    }

    while (in->f.n_stop) {
        free(in->f.stop[--in->f.n_stop]);
    }

    ngx_http_vlm_messages_free(in->messages);
    free(in->f.bias);
    free(in->model);
    free(in);
}


ngx_int_t
ngx_http_vlm_fields_numbers(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_fields_t *f,
    const vlm_json_t *json, const ngx_http_vlm_field_t *rows)
{
    double                      x;
    const vlm_json_t           *value;

    for ( /* void */ ; rows->name; rows++) {

        value = vlm_json_get(json, rows->name);

        if (vlm_json_is_null(value)) {
            continue;
        }

        x = vlm_json_number(value, NAN);

        if ((x >= rows->low && x <= rows->high
             && (!rows->whole || x == floor(x)))
            || (rows->endless && x == -1))
        {
            f->number[rows->which] = x;
            continue;
        }

        ngx_http_vlm_fail_param(ctx, "%s", rows->name);

        return ngx_http_vlm_fail_input(ctx, "%s is not a %snumber from %s%s",
                                       rows->name, rows->whole ? "whole " : "",
                                       rows->range, rows->endless
                                       ? ", or -1 for no limit" : "");
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_fields_stops(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_fields_t *f,
    const vlm_json_t *stop)
{
    const vlm_json_t  *item;

    if (vlm_json_is_null(stop)) {
        return NGX_OK;
    }

    ngx_http_vlm_fail_param(ctx, "stop");

    if (!vlm_json_is_array(stop)) {
        return ngx_http_vlm_fields_stop(ctx, f, stop);
    }

    for (item = vlm_json_first(stop);
         item;
         item = vlm_json_next(item))
    {
        if (ngx_http_vlm_fields_stop(ctx, f, item) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* an empty string stops nothing */

static ngx_int_t
ngx_http_vlm_fields_stop(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_fields_t *f,
    const vlm_json_t *item)
{
    size_t       len;
    const char  *text;

    text = vlm_json_text(item);

    if (text == NULL) {
        return ngx_http_vlm_fail_input(ctx, "stop is neither a string nor an "
                                       "array of strings");
    }

    len = ngx_strlen(text);

    if (len == 0) {
        return NGX_OK;
    }

    if (len > NGX_HTTP_VLM_STOP) {
        return ngx_http_vlm_fail_input(ctx, "stop has a string of %uz bytes, "
                                       "it may have %d", len,
                                       NGX_HTTP_VLM_STOP);
    }

    if (f->n_stop == NGX_HTTP_VLM_STOPS) {
        return ngx_http_vlm_fail_input(ctx, "stop has more than %d strings",
                                       NGX_HTTP_VLM_STOPS);
    }

    f->stop[f->n_stop] = strdup(text);

    if (f->stop[f->n_stop] == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the stop strings");
    }

    f->n_stop++;

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_fields_text(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    const char *name, const char **text)
{
    const vlm_json_t  *field;

    field = vlm_json_get(json, name);

    *text = vlm_json_is_null(field) ? "" : vlm_json_text(field);

    return *text ? NGX_OK
                 : ngx_http_vlm_fail_input(ctx, "%s is not a string", name);
}


ngx_int_t
ngx_http_vlm_fields_flag(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *name, ngx_uint_t otherwise,
    ngx_uint_t *value)
{
    const vlm_json_t  *field;

    field = vlm_json_get(json, name);

    if (!vlm_json_is_null(field)
        && !vlm_json_is_bool(field))
    {
        return ngx_http_vlm_fail_input(ctx, "%s is not a boolean", name);
    }

    *value = vlm_json_bool(field, otherwise);

    return NGX_OK;
}


/*
 * Where the client leaves the choice to the model, an answer without a call is
 * valid, so tools may be ignored; a call that is demanded is refused in any
 * case.
 */

ngx_int_t
ngx_http_vlm_fields_tools(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *name, const char *choice)
{
    const char                 *text;
    const vlm_json_t           *field;

    if (!vlm_json_is_true(vlm_json_get(json, name))) {
        return NGX_OK;
    }

    field = choice ? vlm_json_get(json, choice) : NULL;
    text = vlm_json_text(field);

    if (text && ngx_strcmp(text, "none") == 0) {
        return NGX_OK;
    }

    if (!vlm_json_is_null(field)
        && (text == NULL || ngx_strcmp(text, "auto") != 0))
    {
        name = choice;

    } else if (ctx->engine->conf.tools) {
        return NGX_OK;
    }

    ngx_http_vlm_fail_param(ctx, "%s", name);

    return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                  "unsupported_parameter", name == choice
                                  ? "%V does not support tools: %s can be "
                                    "\"none\" or \"auto\""
                                  : "%V does not support tools: leave %s out, "
                                    "or have \"tools ignore\" in vlm_engine",
                                  &ctx->engine->name, name);
}


void
ngx_http_vlm_fields_sampling(ngx_http_vlm_fields_t *f, vlm_sampling_t *s)
{
    double  *n, x;

    n = f->number;

    if (!isnan(n[NGX_HTTP_VLM_TEMPERATURE])) {
        s->temperature = (float) n[NGX_HTTP_VLM_TEMPERATURE];
    }

    /* the engine's 0 would disable it; so small a value keeps the first token
       alone */

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

    if (!isnan(n[NGX_HTTP_VLM_SEED])) {
        s->seed = ngx_http_vlm_fields_seed(n[NGX_HTTP_VLM_SEED]);
    }

    x = fmin(ngx_http_vlm_fields_limit(n[NGX_HTTP_VLM_MAX_TOKENS]),
             ngx_http_vlm_fields_limit(n[NGX_HTTP_VLM_MAX_COMPLETION]));

    if (!isnan(x)) {
        s->max_tokens = isinf(x) ? 0 : (uint32_t) x;
    }

    if (f->logprobs && !isnan(n[NGX_HTTP_VLM_TOP_LOGPROBS])) {
        s->top_logprobs = (uint32_t) n[NGX_HTTP_VLM_TOP_LOGPROBS];
    }

    s->logprobs = f->logprobs;
    s->json = f->json;
    s->stop = (const char *const *) f->stop;
    s->n_stop = f->n_stop;
    s->bias = f->bias;
    s->n_bias = f->n_bias;
}


static double
ngx_http_vlm_fields_limit(double x)
{
    return x <= 0 ? INFINITY : x;
}


/* -1 asks for a fresh seed, and 0 is a seed like any other; the engine's 0
   asks for a fresh one */

static uint64_t
ngx_http_vlm_fields_seed(double x)
{
    if (x == -1) {
        return 0;
    }

    if (x == 0) {
        return (uint64_t) 1 << 63;
    }

    return x >= NGX_HTTP_VLM_SEED_HIGH ? INT64_MAX : (uint64_t) (int64_t) x;
}
