
/*
 * Delivers events of the engine: appends to the text of an answer and wakes
 * its stream; after the last event the dialect asks again, stores the turn, or
 * answers.
 */


#include "line.h"


#define NGX_HTTP_VLM_ANSWER  1024          /* bytes, first allocation; doubled
                                              up to the store's limit */


/* all the jobs of a request count */

static void
ngx_http_vlm_used(ngx_http_vlm_ctx_t *ctx, vlm_event_t *e)
{
    vlm_usage_t  *u;

    u = &ctx->usage;

    u->prompt_tokens += e->usage.prompt_tokens;
    u->cached_tokens += e->usage.cached_tokens;
    u->completion_tokens += e->usage.completion_tokens;
    u->encode_ms += e->usage.encode_ms;
    u->prefill_ms += e->usage.prefill_ms;
    u->decode_ms += e->usage.decode_ms;
    u->pick_ms += e->usage.pick_ms;
    u->pictures += e->usage.pictures;
    u->cached_pictures += e->usage.cached_pictures;

    ctx->job = NULL;
    ctx->times.text = 0;
    ctx->times.ended = ngx_current_msec;
}


/* room for len more bytes; NGX_DECLINED: the text exceeds the limit of an
   answer */

static ngx_int_t
ngx_http_vlm_grow(ngx_http_vlm_ctx_t *ctx, size_t len)
{
    size_t      size, used;
    ngx_buf_t  *b;

    b = ctx->out.text;
    used = b ? b->last - b->pos : 0;

    size = b ? 2 * (b->end - b->start) : NGX_HTTP_VLM_ANSWER;

    while (size < used + len) {
        size *= 2;
    }

    if (size > VLM_STORE_TEXT) {
        return NGX_DECLINED;
    }

    b = ngx_create_temp_buf(ctx->request->pool, size);
    if (b == NULL) {
        return NGX_ERROR;
    }

    if (used) {
        b->last = ngx_cpymem(b->last, ctx->out.text->pos, used);
    }

    if (ctx->out.text) {
        (void) ngx_pfree(ctx->request->pool, ctx->out.text->start);
    }

    ctx->out.text = b;

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_tokens(ngx_http_vlm_ctx_t *ctx, vlm_event_t *e)
{
    vlm_token_t  *tokens;

    if (ctx->out.tokens == NULL) {
        ctx->out.tokens = ngx_array_create(ctx->request->pool, 64,
                                           sizeof(vlm_token_t));
        if (ctx->out.tokens == NULL) {
            return NGX_ERROR;
        }
    }

    tokens = ngx_array_push_n(ctx->out.tokens, e->n_tokens);
    if (tokens == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(tokens, e->tokens, e->n_tokens * sizeof(vlm_token_t));

    return NGX_OK;
}


static void
ngx_http_vlm_text(ngx_http_vlm_ctx_t *ctx, vlm_event_t *e)
{
    ngx_buf_t  *b;
    ngx_int_t   rc;

    if (ctx->times.first == 0 && !ctx->asking) {
        ctx->times.first = ngx_current_msec;
    }

    if (ctx->times.text) {
        ngx_http_vlm_metrics_time(ctx->engine, NGX_HTTP_VLM_TIME_TOKEN,
                                  ngx_current_msec - ctx->times.text);
    }

    ctx->times.text = ngx_current_msec;

    b = ctx->out.text;
    rc = NGX_OK;

    if (b == NULL || (size_t) (b->end - b->last) < e->bytes) {
        rc = ngx_http_vlm_grow(ctx, e->bytes);
        b = ctx->out.text;
    }

    if (rc == NGX_DECLINED) {
        ngx_http_vlm_queue_refuse(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                                  "The answer is too long");
        return;
    }

    if (rc == NGX_OK && e->bytes) {
        b->last = ngx_cpymem(b->last, e->text, e->bytes);
    }

    if (rc == NGX_OK && e->n_tokens) {
        rc = ngx_http_vlm_tokens(ctx, e);
    }

    if (rc != NGX_OK) {
        ngx_http_vlm_queue_end(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR);

    } else if (ctx->streaming && !ctx->asking
               && ngx_http_vlm_stream_update(ctx) != NGX_OK)
    {
        ngx_http_vlm_queue_end(ctx, NGX_ERROR);
    }
}


static void
ngx_http_vlm_failed(ngx_http_vlm_ctx_t *ctx, vlm_event_t *e)
{
    const char  *text;

    ctx->error.err = e->err;

    ngx_http_vlm_used(ctx, e);

    switch (e->err.code) {

    case VLM_ECANCELLED:
        text = "The model is shutting down";
        break;

    case VLM_EDEVICE:

        /* one of the requests in flight may have caused it */

        if (ngx_http_vlm_zone_owned(ctx->engine)) {
            ngx_http_vlm_poison_death(ctx->engine);
        }

        text = "The model's device is lost, try again";
        break;

    case VLM_EMEMORY:
        ngx_http_vlm_log(NGX_LOG_ERR, ctx->engine->log, 0, ctx->engine, "%s",
                         e->err.text);
        text = "The model's memory is short, try again";
        break;

    default:

        if (ctx->asking) {
            ngx_http_vlm_finish_job(ctx);
            return;
        }

        ngx_http_vlm_queue_end(ctx, ngx_http_vlm_fail_answer(ctx));
        return;
    }

    ngx_http_vlm_queue_refuse(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, NULL, text);
}


void
ngx_http_vlm_deliver(ngx_http_vlm_engine_t *eng, vlm_event_t *e)
{
    ngx_connection_t    *c;
    ngx_http_vlm_ctx_t  *ctx;

    ctx = e->user;

    if (e->kind == VLM_STARTED) {
        eng->line.running++;

    } else if (e->kind == VLM_DONE || e->kind == VLM_FAILED) {
        eng->line.n_jobs--;

        if (e->started) {
            eng->line.running--;
        }

        ngx_http_vlm_metrics_job(eng, &e->usage);

        /* the loss of a device counts once, when its worker has exited */

        if (e->kind == VLM_DONE && e->finish != VLM_FINISH_CANCELLED) {

            if (eng->zone->breaker.failures) {
                ngx_http_vlm_breaker_worked(eng);
            }

        } else if (e->kind == VLM_FAILED
                   && (e->err.code == VLM_EMEMORY
                       || e->err.code == VLM_EMODEL))
        {
            ngx_http_vlm_breaker_failed(eng);
        }
    }

    if (ctx == NULL) {

        /* the job was cancelled: its request has been freed */

        return;
    }

    c = ctx->request->connection;

    ngx_http_set_log_request(c->log, ctx->request);

    switch (e->kind) {

    case VLM_STARTED:
        ngx_http_vlm_queue_started(ctx);
        break;

    case VLM_TEXT:
        ngx_http_vlm_text(ctx, e);
        break;

    case VLM_DONE:
        ctx->finish = e->finish;

        ngx_http_vlm_used(ctx, e);

        if (e->finish != VLM_FINISH_CANCELLED) {
            ngx_http_vlm_finish_job(ctx);
            break;
        }

        ngx_http_vlm_queue_refuse(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                  "The model is shutting down");
        break;

    case VLM_FAILED:
        ngx_http_vlm_failed(ctx, e);
        break;
    }

    ngx_http_run_posted_requests(c);
}
