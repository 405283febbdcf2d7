
/*
 * Events of the engine: the text of an answer grows, and when its last event
 * has come the turn is stored.
 */


#include "ngx_http_vlm.h"


#define NGX_HTTP_VLM_ANSWER  1024          /* bytes, first piece; doubled up to
                                              what the store takes */


static void ngx_http_vlm_text(ngx_http_vlm_ctx_t *ctx, vlm_event_t *e);
static void ngx_http_vlm_ended(ngx_http_vlm_ctx_t *ctx, vlm_event_t *e);
static void ngx_http_vlm_failed(ngx_http_vlm_ctx_t *ctx, vlm_event_t *e);


void
ngx_http_vlm_deliver(ngx_http_vlm_engine_t *eng, vlm_event_t *e)
{
    ngx_connection_t    *c;
    ngx_http_vlm_ctx_t  *ctx;

    ctx = e->user;

    if (e->kind == VLM_STARTED) {
        eng->running++;

    } else if (e->kind == VLM_DONE || e->kind == VLM_FAILED) {
        eng->n_jobs--;

        if (e->started) {
            eng->running--;
        }

        (void) ngx_atomic_fetch_add(&eng->shm->prompt_tokens,
                                    e->usage.prompt_tokens);
        (void) ngx_atomic_fetch_add(&eng->shm->completion_tokens,
                                    e->usage.completion_tokens);
    }

    if (ctx == NULL) {

        /* cancelled: its request is gone */

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
        ngx_http_vlm_ended(ctx, e);
        break;

    case VLM_FAILED:
        ngx_http_vlm_failed(ctx, e);
        break;
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_vlm_text(ngx_http_vlm_ctx_t *ctx, vlm_event_t *e)
{
    size_t      size, used;
    ngx_buf_t  *b;

    if (ctx->t_first == 0) {
        ctx->t_first = ngx_current_msec;
    }

    b = ctx->text;
    used = b ? b->last - b->pos : 0;

    if (b == NULL || (size_t) (b->end - b->last) < e->bytes) {

        size = b ? 2 * (b->end - b->start) : NGX_HTTP_VLM_ANSWER;

        while (size < used + e->bytes) {
            size *= 2;
        }

        if (size > NGX_HTTP_VLM_STORE_TEXT) {
            ngx_http_vlm_queue_refuse(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                      "The answer is too long");
            return;
        }

        b = ngx_create_temp_buf(ctx->request->pool, size);
        if (b == NULL) {
            ngx_http_vlm_queue_end(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }

        if (used) {
            b->last = ngx_cpymem(b->last, ctx->text->pos, used);
            (void) ngx_pfree(ctx->request->pool, ctx->text->start);
        }

        ctx->text = b;
    }

    b->last = ngx_cpymem(b->last, e->text, e->bytes);
}


static void
ngx_http_vlm_ended(ngx_http_vlm_ctx_t *ctx, vlm_event_t *e)
{
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    ctx->job = NULL;
    ctx->usage = e->usage;
    ctx->finish = e->finish;
    ctx->t_ended = ngx_current_msec;

    if (e->finish == VLM_FINISH_CANCELLED) {
        ngx_http_vlm_queue_refuse(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                  "The model is shutting down");
        return;
    }

    (void) ngx_atomic_fetch_add(&eng->shm->served, 1);

    if (ngx_http_vlm_chat_split(ctx) != NGX_OK) {
        ngx_http_vlm_queue_end(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_http_vlm_prepare_store(ctx);
}


static void
ngx_http_vlm_failed(ngx_http_vlm_ctx_t *ctx, vlm_event_t *e)
{
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    ctx->job = NULL;
    ctx->usage = e->usage;
    ctx->err = e->err;
    ctx->t_ended = ngx_current_msec;

    (void) ngx_atomic_fetch_add(&eng->shm->failed, 1);

    switch (e->err.code) {

    case VLM_ECANCELLED:
        ngx_http_vlm_queue_refuse(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                  "The model is shutting down");
        break;

    case VLM_EDEVICE:
        ngx_http_vlm_queue_refuse(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                  "The model's device is lost, try again");
        break;

    default:
        ngx_http_vlm_queue_end(ctx, ngx_http_vlm_chat_failed(ctx));
    }
}
