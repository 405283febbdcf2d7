
/*
 * The fields of a request that control its answer, of any dialect: a table
 * gives their names and ranges, and maps them to the engine's parameters.
 */


#include "fields.h"
#include "robobrain/task.h"
#include <inttypes.h>
#include <math.h>


void
ngx_http_vlm_fields_init(ngx_http_vlm_fields_t *f)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_VLM_NUMBERS; i++) {
        f->number[i] = NAN;
    }
}


void
ngx_http_vlm_fields_free(ngx_http_vlm_fields_t *f)
{
    while (f->n_stop) {
        free(f->stop[--f->n_stop]);
    }

    vlm_constraint_free(&f->constraint);
    vlm_grammar_free(f->grammar);
    free(f->bias);
}


void *
ngx_http_vlm_asked_create(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    size_t size, const char *missing)
{
    ngx_http_vlm_asked_t  *in;

    if (!vlm_json_is_object(json)) {
        (void) ngx_http_vlm_fail_input(ctx, "%s", json
                                       ? "The request is not a JSON object"
                                       : missing);
        return NULL;
    }

    in = calloc(1, size);

    if (in == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the request");
        return NULL;
    }

    ctx->data = in;

    ngx_http_vlm_fields_init(&in->f);

    in->messages = ngx_http_vlm_messages_create(ctx);

    if (in->messages == NULL) {
        return NULL;
    }

    in->model = ngx_http_vlm_model_take(ctx, vlm_json_get(json, "model"));

    return in->model && ngx_http_vlm_adapter_field(ctx, json) == NGX_OK
           ? in : NULL;
}


void
ngx_http_vlm_asked_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    ctx->data = NULL;

    if (in == NULL) {
        return;
    }

    ngx_http_vlm_messages_free(in->messages);
    ngx_http_vlm_fields_free(&in->f);
    ngx_http_vlm_tools_free(&in->tools);
    free(in->model);
    free(in);
}


static ngx_int_t
ngx_http_vlm_fields_number(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_field_t *row, double x)
{
    char        range[64];
    ngx_uint_t  whole, limit;

    whole = row->type != NGX_HTTP_VLM_REAL;
    limit = row->type == NGX_HTTP_VLM_ENDLESS;

    if ((x >= row->low && x <= row->high && (!whole || x == floor(x)))
        || (limit && x == -1))
    {
        ngx_http_vlm_fields(ctx)->number[row->which] = x;
        return NGX_OK;
    }

    if (whole) {
        (void) snprintf(range, sizeof(range), "%" PRId64 " to %" PRId64,
                        (int64_t) row->low, (int64_t) row->high);

    } else {
        (void) snprintf(range, sizeof(range), "%g to %g", row->low, row->high);
    }

    return ngx_http_vlm_fail_input(ctx, "%s is not a %snumber from %s%s",
                                   row->name, whole ? "whole " : "", range,
                                   limit ? ", or -1 for no limit" : "");
}


static ngx_int_t
ngx_http_vlm_fields_one(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_field_t *row, const vlm_json_t *value)
{
    ngx_uint_t  i;

    static const struct {
        int        (*is)(const vlm_json_t *json);
        const char  *name;
    } types[] = {
        { vlm_json_is_bool, "a boolean" },
        { vlm_json_is_string, "a string" },
        { vlm_json_is_array, "an array" },
        { vlm_json_is_object, "an object" }
    };

    if (row->type == NGX_HTTP_VLM_UNTYPED) {
        return NGX_OK;
    }

    if (row->type < NGX_HTTP_VLM_FLAG) {
        return ngx_http_vlm_fields_number(ctx, row,
                                          vlm_json_number(value, NAN));
    }

    i = row->type - NGX_HTTP_VLM_FLAG;

    if (!types[i].is(value)) {
        return ngx_http_vlm_fail_input(ctx, "%s is not %s", row->name,
                                       types[i].name);
    }

    ngx_http_vlm_fields(ctx)->number[row->which] = vlm_json_is_true(value);

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_fields_read(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    const ngx_http_vlm_field_t *rows)
{
    const vlm_json_t  *value;

    for ( /* void */ ; rows->name; rows++) {
        value = vlm_json_get(json, rows->name);

        if (vlm_json_is_null(value)) {
            continue;
        }

        ngx_http_vlm_fail_param(ctx, "%s", rows->name);

        if (ngx_http_vlm_fields_one(ctx, rows, value) != NGX_OK
            || (rows->read && rows->read(ctx, value, rows->name) != NGX_OK))
        {
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
ngx_http_vlm_fields_stops(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
    const char *name)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    const vlm_json_t  *item;

    if (!vlm_json_is_array(value)) {
        return ngx_http_vlm_fields_stop(ctx, &in->f, value);
    }

    for (item = vlm_json_first(value); item; item = vlm_json_next(item)) {
        if (ngx_http_vlm_fields_stop(ctx, &in->f, item) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* -1 asks for a fresh seed, as 0 does in the engine, so these two change
   places: 0 is a seed like any other */

ngx_int_t
ngx_http_vlm_fields_seed(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
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


/* in the first moments of a load there is no vocabulary yet */

ngx_int_t
ngx_http_vlm_fields_constrain(ngx_http_vlm_ctx_t *ctx, int rc)
{
    ngx_http_vlm_fields_t *f = ngx_http_vlm_fields(ctx);

    vlm_constraint_t *c = &f->constraint;

    if (rc == 0 && c->form && f->grammar == NULL && ctx->opened) {
        f->grammar = vlm_grammar_make(ctx->engine->life.vlm, c->form,
                                      (vlm_form_t) c->kind,
                                      &ctx->error.err);
        rc = f->grammar ? 0 : -1;
        c->code = c->kind == VLM_CONSTRAINT_GBNF ? "invalid_grammar"
                  : "invalid_json_schema";
    }

    if (rc == 0) {
        return NGX_OK;
    }

    ngx_http_vlm_fail_param(ctx, "%s", c->name);

    return ngx_http_vlm_fail_engine(ctx, c->code, c->code);
}


ngx_int_t
ngx_http_vlm_fields_format(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
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
ngx_http_vlm_fields_task(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *value,
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


vlm_view_t
ngx_http_vlm_view(ngx_http_vlm_ctx_t *ctx, const vlm_picture_info_t *picture)
{
    return (vlm_view_t) {
        .width = picture->width,
        .height = picture->height,
        .seen_width = picture->resized_width,
        .seen_height = picture->resized_height,
        .shares = ctx->engine->conf.facts.coordinates
    };
}


/* a thinking model may state its coordinates in its thinking alone */

void
ngx_http_vlm_fields_marks(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w, int task,
    const vlm_picture_info_t *picture)
{
    ngx_str_t   *text;
    vlm_view_t   view;

    if (task <= VLM_GENERAL || picture == NULL || picture->width == 0) {
        return;
    }

    view = ngx_http_vlm_view(ctx, picture);
    text = ctx->out.answer.len ? &ctx->out.answer : &ctx->out.thinking;

    vlm_shapes_add_marks(w, &view, task, (char *) text->data, text->len);
}


void
ngx_http_vlm_fields_put_marks(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    ngx_http_vlm_fields_marks(ctx, w, in->task,
                              ngx_http_vlm_messages_seen(in->messages));
}


const char *
ngx_http_vlm_fields_text(const vlm_json_t *json, const char *name)
{
    const char  *text;

    text = vlm_json_text(vlm_json_get(json, name));

    return text ? text : "";
}


static void
ngx_http_vlm_fields_set(float *value, double x)
{
    if (!isnan(x)) {
        *value = (float) x;
    }
}


static double
ngx_http_vlm_fields_max(double x)
{
    return x <= 0 ? INFINITY : x;
}


ngx_int_t
ngx_http_vlm_fields_sampling(ngx_http_vlm_ctx_t *ctx)
{
    vlm_sampling_t        *s = &ctx->sampling;
    ngx_http_vlm_fields_t *f = ngx_http_vlm_fields(ctx);

    double  *n, x;

    n = f->number;

    /* coordinates are not drawn by lot, unless someone wants that */

    if (((ngx_http_vlm_asked_t *) ctx->data)->task > VLM_GENERAL
        && ctx->engine->conf.sampling.temperature < 0)
    {
        s->temperature = 0;
    }

    ngx_http_vlm_fields_set(&s->temperature, n[NGX_HTTP_VLM_TEMPERATURE]);
    ngx_http_vlm_fields_set(&s->frequency_penalty, n[NGX_HTTP_VLM_FREQUENCY]);
    ngx_http_vlm_fields_set(&s->presence_penalty, n[NGX_HTTP_VLM_PRESENCE]);
    ngx_http_vlm_fields_set(&s->repetition_penalty, n[NGX_HTTP_VLM_REPETITION]);

    /* the engine's 0 would disable it; so small a value keeps the first token
       alone */

    ngx_http_vlm_fields_set(&s->top_p, n[NGX_HTTP_VLM_TOP_P] < 1e-6
                                       ? 1e-6 : n[NGX_HTTP_VLM_TOP_P]);

    if (!isnan(n[NGX_HTTP_VLM_TOP_K])) {
        s->top_k = (uint32_t) ngx_max(n[NGX_HTTP_VLM_TOP_K], 0);
    }

    s->seed = f->seed;

    x = fmin(ngx_http_vlm_fields_max(n[NGX_HTTP_VLM_MAX_TOKENS]),
             ngx_http_vlm_fields_max(n[NGX_HTTP_VLM_MAX_COMPLETION]));

    if (!isnan(x)) {
        s->max_tokens = isinf(x) ? 0 : (uint32_t) x;
    }

    if (n[NGX_HTTP_VLM_MIN_TOKENS] > 0) {
        s->min_tokens = (uint32_t) n[NGX_HTTP_VLM_MIN_TOKENS];
    }

    if (n[NGX_HTTP_VLM_NGRAM] > 0) {
        s->no_repeat_ngram_size = (uint32_t) n[NGX_HTTP_VLM_NGRAM];
    }

    s->logprobs = n[NGX_HTTP_VLM_LOGPROBS] == 1;

    if (s->logprobs && !isnan(n[NGX_HTTP_VLM_TOP_LOGPROBS])) {
        s->top_logprobs = (uint32_t) n[NGX_HTTP_VLM_TOP_LOGPROBS];
    }

    s->stop = (const char *const *) f->stop;
    s->n_stop = f->n_stop;
    s->bias = f->bias;
    s->n_bias = f->n_bias;

    ctx->opened = 1;

    if (ngx_http_vlm_fields_constrain(ctx, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    s->grammar = f->grammar;

    return ngx_http_vlm_tools_sampling(ctx);
}
