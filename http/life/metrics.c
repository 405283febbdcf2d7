
/*
 * Counters and histograms of requests in the engine's zone, one line in the
 * error log for each refusal, and the estimate behind Retry-After.
 *
 * Counters change by atomic additions alone, so any thread may count, and a
 * process that dies in between leaves no lock behind.
 */


#include "life.h"


#define NGX_HTTP_VLM_MEAN       8          /* requests in the running mean */
#define NGX_HTTP_VLM_RETRY      5          /* s, before anything is known */
#define NGX_HTTP_VLM_MAX_RETRY  30         /* s */

#define ngx_http_vlm_metrics_count(counter, n)                                \
    (void) ngx_atomic_fetch_add(counter, n)


const char *const  ngx_http_vlm_refusal_names[] = {
    "none",
    "queue_full",
    "queue_timeout",
    "timeout",
    "unavailable",
    "limit",
    "input",
    "server",
    "poison",
    "breaker"
};


const char *const  ngx_http_vlm_stage_names[] = {
    "body",
    "prepare",
    "queue",
    "prompt",
    "decode",
    "store"
};


void
ngx_http_vlm_metrics_picture(ngx_http_vlm_engine_t *eng,
    vlm_picture_info_t *info)
{
    ngx_http_vlm_metrics_count(&eng->zone->metrics.pictures,
                               info->pictures);
    ngx_http_vlm_metrics_count(&eng->zone->metrics.picture_tokens,
                               info->tokens);
}


void
ngx_http_vlm_metrics_job(ngx_http_vlm_engine_t *eng, vlm_usage_t *usage)
{
    ngx_http_vlm_metrics_t  *m;

    m = &eng->zone->metrics;

    ngx_http_vlm_metrics_count(&m->prompt_tokens, usage->prompt_tokens);
    ngx_http_vlm_metrics_count(&m->completion_tokens, usage->completion_tokens);
    ngx_http_vlm_metrics_count(&m->cached_tokens, usage->cached_tokens);
    ngx_http_vlm_metrics_count(&m->prompt_pictures, usage->pictures);
    ngx_http_vlm_metrics_count(&m->cached_pictures, usage->cached_pictures);

    if (usage->completion_tokens == 0) {

        /* the job was cancelled or failed before its prompt was read */

        return;
    }

    if (usage->encode_ms) {
        ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_VISION,
                                  usage->encode_ms);
    }

    ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_PREFILL,
                              usage->prefill_ms);
    ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_FIRST_STEP,
                              usage->pick_ms);
    ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_DECODE, usage->decode_ms);
}


static ngx_http_vlm_refusal_e
ngx_http_vlm_metrics_reason(ngx_http_vlm_ctx_t *ctx, ngx_uint_t status)
{
    if (ctx->refusal) {
        return ctx->refusal;
    }

    switch (status) {

    case NGX_HTTP_TOO_MANY_REQUESTS:
        return NGX_HTTP_VLM_QUEUE_FULL;

    case NGX_HTTP_SERVICE_UNAVAILABLE:
        return ctx->error.code ? NGX_HTTP_VLM_QUEUE_TIMEOUT
                               : NGX_HTTP_VLM_UNAVAILABLE;

    case NGX_HTTP_GATEWAY_TIME_OUT:
        return NGX_HTTP_VLM_TIMEOUT;

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        return NGX_HTTP_VLM_LIMIT;
    }

    if (status >= NGX_HTTP_INTERNAL_SERVER_ERROR) {
        return NGX_HTTP_VLM_SERVER;
    }

    return ctx->error.err.code == VLM_ELIMIT ? NGX_HTTP_VLM_LIMIT
                                       : NGX_HTTP_VLM_INPUT;
}


void
ngx_http_vlm_metrics_ended(ngx_http_vlm_ctx_t *ctx, ngx_int_t rc)
{
    ngx_msec_t              ms;
    ngx_uint_t              status;
    ngx_atomic_t           *mean;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    if (ctx->times.started) {

        /* only the designated worker writes it */

        mean = &eng->zone->metrics.service;
        ms = ctx->times.ended - ctx->times.started;

        *mean = *mean == 0 ? ngx_max(ms, 1)
                           : (*mean * (NGX_HTTP_VLM_MEAN - 1) + ms
                              + NGX_HTTP_VLM_MEAN / 2) / NGX_HTTP_VLM_MEAN;
    }

    if (ctx->out.answered) {
        ngx_http_vlm_metrics_count(&eng->zone->metrics.answered[ctx->finish],
                                   1);

        ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_REQUEST,
                                  ctx->times.ended - ctx->times.arrived);

        if (ctx->times.started) {
            ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_QUEUE,
                                      ctx->times.started - ctx->times.arrived);
        }

        if (ctx->times.first) {
            ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_FIRST,
                                      ctx->times.first - ctx->times.arrived);
        }

        return;
    }

    if (rc == NGX_HTTP_REQUEST_TIME_OUT
        || (rc == NGX_ERROR && ctx->out.begun && ctx->error.status == 0))
    {
        /* the client read too slowly, or has left */

        ngx_http_vlm_metrics_left(ctx);
        return;
    }

    status = ctx->error.status;

    if (status == 0) {
        status = rc >= NGX_HTTP_SPECIAL_RESPONSE
                 ? (ngx_uint_t) rc : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_vlm_metrics_refused(ctx->logged ? NULL : ctx->request, eng,
                                 ngx_http_vlm_metrics_reason(ctx, status),
                                 ctx->error.err.text[0] ? ctx->error.err.text
                                                        : "no memory");
}


void
ngx_http_vlm_metrics_left(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_stage_e  stage;

    if (ctx->step == NGX_HTTP_VLM_RECEIVING) {
        stage = NGX_HTTP_VLM_STAGE_BODY;

    } else if (ctx->step < NGX_HTTP_VLM_RUNNING) {
        stage = ctx->step == NGX_HTTP_VLM_PARSING || ctx->in_task
                ? NGX_HTTP_VLM_STAGE_PREPARE : NGX_HTTP_VLM_STAGE_QUEUE;

    } else if (ctx->step == NGX_HTTP_VLM_RUNNING) {
        stage = ctx->times.text ? NGX_HTTP_VLM_STAGE_DECODE
                                : NGX_HTTP_VLM_STAGE_PROMPT;

    } else {
        stage = NGX_HTTP_VLM_STAGE_STORE;
    }

    ngx_http_vlm_metrics_count(&ctx->engine->zone->metrics.cancelled[stage], 1);
}


/* r NULL: the refusal was logged before */

void
ngx_http_vlm_metrics_refused(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_http_vlm_refusal_e reason,
    const char *text)
{
    ngx_uint_t           level;
    ngx_http_vlm_shm_t  *shm;

    shm = eng->zone;

    ngx_http_vlm_metrics_count(&shm->metrics.refused[reason], 1);

    if (r == NULL) {
        return;
    }

    /* an error of the client is logged at level info */

    level = (reason == NGX_HTTP_VLM_INPUT || reason == NGX_HTTP_VLM_LIMIT)
            ? NGX_LOG_INFO : NGX_LOG_WARN;

    ngx_log_error(level, r->connection->log, 0,
                  "vlm_engine \"%V\" refused, %s: %s; %uA waiting, %uA running",
                  &eng->name, ngx_http_vlm_refusal_names[reason], text,
                  shm->waiting, shm->running);
}


ngx_uint_t
ngx_http_vlm_metrics_retry(ngx_http_vlm_engine_t *eng)
{
    uint64_t             ms;
    ngx_http_vlm_shm_t  *shm;

    shm = eng->zone;

    if (shm->metrics.service == 0) {
        return NGX_HTTP_VLM_RETRY;
    }

    ms = (uint64_t) shm->metrics.service * ngx_max(shm->waiting, 1)
         / eng->conf.vlm.slots;

    if (ms > NGX_HTTP_VLM_MAX_RETRY * 1000) {
        return NGX_HTTP_VLM_MAX_RETRY;
    }

    return (ngx_uint_t) ngx_max((ms + 999) / 1000, 1);
}
