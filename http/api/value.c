
/*
 * Readers of fields that are more than a number or a boolean: see table.c.
 */


#include "fields.h"
#include "robobrain/task.h"
#include <math.h>


/* an empty string stops nothing */

static ngx_int_t
ngx_http_vlm_value_stop(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_fields_t *f,
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
ngx_http_vlm_value_stops(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    const vlm_json_t  *item;

    if (!vlm_json_is_array(value)) {
        return ngx_http_vlm_value_stop(ctx, &in->f, value);
    }

    for (item = vlm_json_first(value); item; item = vlm_json_next(item)) {
        if (ngx_http_vlm_value_stop(ctx, &in->f, item) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* -1 asks for a fresh seed, as 0 does in the engine, so these two change
   places: 0 is a seed like any other */

ngx_int_t
ngx_http_vlm_value_seed(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    int64_t                n;
    ngx_http_vlm_asked_t  *in;

    if (vlm_json_int(value, INT64_MIN, INT64_MAX, &n) != 0) {
        return ngx_http_vlm_fail_input(ctx, "%s is not a whole number from "
                                       "-9223372036854775808 to "
                                       "9223372036854775807", name);
    }

    in = ctx->data;
    in->f.seed = n == -1 ? 0 : n == 0 ? UINT64_MAX : (uint64_t) n;

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_value_format(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    const char        *text;
    vlm_constraint_t  *c;

    text = vlm_json_text(value);

    if (text && text[0] == '\0') {
        return NGX_OK;
    }

    if (!vlm_json_is_object(value)
        && (text == NULL || ngx_strcmp(text, "json") != 0))
    {
        return ngx_http_vlm_fail_input(ctx, "invalid format, expected "
                                       "\"json\" or a JSON schema");
    }

    c = &ngx_http_vlm_fields(ctx)->constraint;

    return ngx_http_vlm_fields_constrain(ctx,
        vlm_constraint_set(c, text ? NULL : value, name,
                           VLM_CONSTRAINT_SCHEMA, &ctx->error.err));
}


ngx_int_t
ngx_http_vlm_value_task(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    const char            *text;
    ngx_http_vlm_asked_t  *in;

    in = ctx->data;
    text = vlm_json_text(value);
    in->task = text ? vlm_task_find(text, ngx_strlen(text)) : -1;

    if (in->task >= 0) {
        ngx_http_vlm_messages_task(in->messages, in->task);
        return NGX_OK;
    }

    return ngx_http_vlm_fail_input(ctx, "%s is neither general, grounding, "
                                   "affordance, trajectory nor pointing", name);
}


ngx_int_t
ngx_http_vlm_value_streams(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    return in->f.number[NGX_HTTP_VLM_STREAM] == 1 ? NGX_OK
           : ngx_http_vlm_fail_input(ctx, "%s is for requests with "
                                     "\"stream\": true", name);
}


/* of equal ids the last is used */

static ngx_int_t
ngx_http_vlm_value_bias(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_fields_t *f,
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


ngx_int_t
ngx_http_vlm_value_biases(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
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
        if (ngx_http_vlm_value_bias(ctx, &in->f, one) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* a boolean or a level */

ngx_int_t
ngx_http_vlm_value_think(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
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

ngx_int_t
ngx_http_vlm_value_keep(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    const char  *text;

    text = vlm_json_text(value);

    if (text == NULL && !vlm_json_is_number(value)) {
        return ngx_http_vlm_fail_input(ctx, "keep_alive is neither a number "
                                       "nor a string");
    }

    in->f.number[NGX_HTTP_VLM_UNLOADS] =
        text ? strchr(text, '0') && !strpbrk(text, "123456789")
             : vlm_json_number(value, 1) == 0;

    return NGX_OK;
}


/* of vectors */

ngx_int_t
ngx_http_vlm_value_encoding(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    ngx_uint_t   base64;
    const char  *text;

    text = vlm_json_text(value);
    base64 = text && ngx_strcmp(text, "base64") == 0;

    ngx_http_vlm_fields(ctx)->number[NGX_HTTP_VLM_BASE64] = base64;

    return base64 || (text && ngx_strcmp(text, "float") == 0) ? NGX_OK
           : ngx_http_vlm_fail_input(ctx, "%s is neither \"float\" nor "
                                     "\"base64\"", name);
}


/* only those that there are */

ngx_int_t
ngx_http_vlm_value_dimensions(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    if (vlm_json_number(value, 0) == ctx->engine->conf.facts.hidden) {
        return NGX_OK;
    }

    return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                  vlm_json_is_number(value)
                                  ? "unsupported_value" : NULL,
                                  "%s can only be %uD: this model's vectors "
                                  "are not shortened", name,
                                  ctx->engine->conf.facts.hidden);
}
