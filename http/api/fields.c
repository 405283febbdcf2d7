
/*
 * The data of a request as its fields were read (lib/api/fields.c), and what
 * becomes of them: the engine's parameters, and parts of the answer.
 */


#include "fields.h"
#include "robobrain/task.h"
#include <math.h>


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

    vlm_fields_init(&in->f);

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

    /* once they have become a prompt, there are none */

    if (in->messages) {
        ngx_http_vlm_messages_free(in->messages);
    }

    vlm_fields_free(&in->f);

    ngx_http_vlm_tools_forget(in);
    vlm_json_free(in->tools.list);
    free(in->model);
    free(in);
}


ngx_int_t
ngx_http_vlm_fields_read(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    ngx_uint_t of)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    int                  rc;
    vlm_fields_model_t   model;

    model.name = in->model;
    model.vocab = ctx->engine->conf.facts.vocab;
    model.hidden = ctx->engine->conf.facts.hidden;
    model.thinks = (int) ctx->engine->conf.thinking;

    ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));

    rc = vlm_fields_read(&in->f, json, of, &model, &ctx->error.err);

    ngx_http_vlm_fail_param(ctx, "%s", in->f.param);

    if (rc != 0) {
        return ngx_http_vlm_fail_engine(ctx, in->f.code, NULL);
    }

    if (in->f.task) {
        ngx_http_vlm_messages_task(in->messages, in->f.task);
    }

    return ngx_http_vlm_fields_check(ctx, 0);
}


/* in the first moments of a load there is no vocabulary yet */

static ngx_int_t
ngx_http_vlm_fields_constrain(ngx_http_vlm_ctx_t *ctx, int rc)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    vlm_constraint_t *c = &in->f.constraint;

    if (rc == 0 && c->form && in->grammar == NULL && ctx->opened) {
        in->grammar = vlm_grammar_make(ctx->engine->life.vlm, c->form,
                                       (vlm_form_t) c->kind,
                                       &ctx->error.err);
        rc = in->grammar ? 0 : -1;
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
ngx_http_vlm_fields_check(ngx_http_vlm_ctx_t *ctx, int rc)
{
    ngx_int_t  ok;

    ok = ngx_http_vlm_fields_constrain(ctx, rc);
    ngx_http_vlm_tools_forget(ctx->data);

    return ok;
}


vlm_view_t
ngx_http_vlm_view(ngx_http_vlm_ctx_t *ctx)
{
    return (vlm_view_t) {
        .width = ctx->out.seen.width,
        .height = ctx->out.seen.height,
        .seen_width = ctx->out.seen.resized_width,
        .seen_height = ctx->out.seen.resized_height,
        .shares = ctx->engine->conf.facts.coordinates
    };
}


/* a thinking model may state its coordinates in its thinking alone */

void
ngx_http_vlm_fields_marks(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w, int task)
{
    ngx_str_t   *text;
    vlm_view_t   view;

    if (task <= VLM_GENERAL || ctx->out.seen.width == 0) {
        return;
    }

    view = ngx_http_vlm_view(ctx);
    text = ctx->out.answer.len ? &ctx->out.answer : &ctx->out.thinking;

    vlm_shapes_add_marks(w, &view, task, (char *) text->data, text->len);
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
    vlm_sampling_t       *s = &ctx->sampling;
    ngx_http_vlm_asked_t *in = ctx->data;
    vlm_fields_t         *f = &in->f;

    double  *n, x;

    n = f->number;

    /* coordinates are not drawn by lot, unless someone wants that */

    if (f->task > VLM_GENERAL
        && ctx->engine->conf.sampling.temperature < 0)
    {
        s->temperature = 0;
    }

    ngx_http_vlm_fields_set(&s->temperature, n[VLM_FIELD_TEMPERATURE]);
    ngx_http_vlm_fields_set(&s->frequency_penalty, n[VLM_FIELD_FREQUENCY]);
    ngx_http_vlm_fields_set(&s->presence_penalty, n[VLM_FIELD_PRESENCE]);
    ngx_http_vlm_fields_set(&s->repetition_penalty, n[VLM_FIELD_REPETITION]);

    /* the engine's 0 would disable it; so small a value keeps the first token
       alone */

    ngx_http_vlm_fields_set(&s->top_p, n[VLM_FIELD_TOP_P] < 1e-6
                                       ? 1e-6 : n[VLM_FIELD_TOP_P]);

    if (!isnan(n[VLM_FIELD_TOP_K])) {
        s->top_k = (uint32_t) ngx_max(n[VLM_FIELD_TOP_K], 0);
    }

    s->seed = f->seed;

    x = fmin(ngx_http_vlm_fields_max(n[VLM_FIELD_MAX_TOKENS]),
             ngx_http_vlm_fields_max(n[VLM_FIELD_MAX_COMPLETION]));

    if (!isnan(x)) {
        s->max_tokens = isinf(x) ? 0 : (uint32_t) x;
    }

    if (n[VLM_FIELD_MIN_TOKENS] > 0) {
        s->min_tokens = (uint32_t) n[VLM_FIELD_MIN_TOKENS];
    }

    if (n[VLM_FIELD_NGRAM] > 0) {
        s->no_repeat_ngram_size = (uint32_t) n[VLM_FIELD_NGRAM];
    }

    s->logprobs = n[VLM_FIELD_LOGPROBS] == 1;

    if (s->logprobs && !isnan(n[VLM_FIELD_TOP_LOGPROBS])) {
        s->top_logprobs = (uint32_t) n[VLM_FIELD_TOP_LOGPROBS];
    }

    s->stop = (const char *const *) f->stop;
    s->n_stop = f->n_stop;
    s->bias = f->bias;
    s->n_bias = f->n_bias;

    ctx->opened = 1;

    if (ngx_http_vlm_fields_constrain(ctx, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    s->grammar = in->grammar;

    return ngx_http_vlm_tools_sampling(ctx);
}
