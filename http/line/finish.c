
/*
 * The work after the last event of a job: the dialect submits another prompt,
 * stores the turn, or answers.
 */


#include "line.h"


#define NGX_HTTP_VLM_LONG  65536           /* bytes of text that the event loop
                                              writes as JSON */


static void
ngx_http_vlm_finish_answer(ngx_http_vlm_ctx_t *ctx)
{
    ctx->out.answered = 1;

    ngx_http_vlm_queue_end(ctx, ngx_http_vlm_send_answer(ctx));
}


void
ngx_http_vlm_finish_job(ngx_http_vlm_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_vlm_out_t  *out;

    rc = ctx->dialect->ended ? ctx->dialect->ended(ctx) : NGX_OK;

    if (rc == NGX_AGAIN) {
        return;
    }

    if (rc != NGX_OK) {
        ngx_http_vlm_queue_end(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    out = &ctx->out;

    /* log-probabilities of a long answer are megabytes */

    if (ctx->dialect->store
        || ngx_http_vlm_unsent_tokens(ctx) > VLM_JSON_TOKENS
        || (out->text && (size_t) (out->text->last - out->text->pos)
                         > NGX_HTTP_VLM_LONG + out->sent + out->sent_thinking))
    {
        ngx_http_vlm_finish_store(ctx);

    } else {
        ngx_http_vlm_finish_answer(ctx);
    }
}


static void
ngx_http_vlm_finish_run(void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    if (ctx->dialect->store) {
        ctx->dialect->store(ctx);
    }

    if (!ctx->asking && ctx->error.status == 0) {
        ngx_http_vlm_write_answer(ctx);
    }

    if (!ctx->asking) {
        ngx_http_vlm_lease_end(ctx);
    }
}


static void
ngx_http_vlm_finish_stored(ngx_http_request_t *r, void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    if (ctx->stored.code != VLM_STORE_OK
        && ctx->stored.code != VLM_STORE_GONE)
    {
        ngx_http_vlm_log(NGX_LOG_ERR, r->connection->log, 0, ctx->engine,
                         "a turn was not stored: %s", ctx->stored.text);
    }

    ngx_http_vlm_zone_store(ctx->engine, &ctx->stored);

    if (ctx->error.err.code != VLM_OK) {
        ngx_http_vlm_log(NGX_LOG_WARN, r->connection->log, 0, ctx->engine,
                         "an answer was not drawn: %s", ctx->error.err.text);
    }

    if (ctx->error.status) {
        ngx_http_vlm_queue_end(ctx, ngx_http_vlm_fail_answer(ctx));
        return;
    }

    if (ctx->asking) {
        ngx_http_vlm_finish_again(ctx, 1);
        return;
    }

    ngx_http_vlm_finish_answer(ctx);
}


void
ngx_http_vlm_finish_store(ngx_http_vlm_ctx_t *ctx)
{
    ctx->step = NGX_HTTP_VLM_STORING;

    if (ngx_http_vlm_finish_start(ctx, ngx_http_vlm_finish_run,
                                  ngx_http_vlm_finish_task,
                                  ngx_http_vlm_finish_stored)
        != NGX_OK)
    {
        ngx_http_vlm_queue_end(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


ngx_int_t
ngx_http_vlm_finish_start(ngx_http_vlm_ctx_t *ctx, void (*run)(void *data),
    void (*always)(void *data),
    void (*done)(ngx_http_request_t *r, void *data))
{
    if (ngx_http_vlm_thread(ctx->request, ctx->engine, run, always, done, ctx)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->in_task = 1;
    ctx->engine->line.n_threads++;

    return NGX_OK;
}


void
ngx_http_vlm_finish_task(void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    ctx->in_task = 0;
    ctx->engine->line.n_threads--;

    ngx_http_vlm_engine_wake(ctx->engine);

    if (ctx->client_left) {
        ngx_http_vlm_queue_leave(ctx);
    }
}


void
ngx_http_vlm_finish_again(ngx_http_vlm_ctx_t *ctx, ngx_uint_t at_end)
{
    if (at_end) {
        ctx->place.seq = ++ctx->engine->line.last_seq;
        (void) ngx_http_vlm_order_rank(ctx);
    }

    ctx->step = NGX_HTTP_VLM_PREPARING;

    if (ctx->out.text) {
        ctx->out.text->last = ctx->out.text->pos;
    }

    /* back into the queue; the deadline stays */

    ngx_http_vlm_count(ctx, waiting, 1);
    ngx_http_vlm_order_insert(ctx);
    ngx_http_vlm_engine_wake(ctx->engine);
}
