
/*
 * A request for an answer of the model, whoever's dialect it speaks: admitted
 * at its headers, in the line once its body is there, then parsed in a thread.
 */


#include "ngx_http_vlm.h"


static ngx_int_t ngx_http_vlm_ask_admit(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, const ngx_http_vlm_dialect_t *dialect);
static void ngx_http_vlm_ask_body(ngx_http_request_t *r);
static void ngx_http_vlm_ask_json(ngx_http_vlm_ctx_t *ctx);
static int ngx_http_vlm_ask_stop(void *data);


ngx_int_t
ngx_http_vlm_ask(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_dialect_t *dialect)
{
    ngx_int_t  rc;

    if (eng->failed || eng->store == NULL) {
        return ngx_http_vlm_refuse(r, eng, "Model not initialized");
    }

    rc = ngx_http_vlm_breaker_refuse(r, eng);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_vlm_ask_admit(r, eng, dialect);

    if (rc != NGX_OK) {
        return rc == NGX_BUSY ? ngx_http_vlm_queue_full(r, eng) : rc;
    }

    return ngx_http_vlm_body_read(r, ngx_http_vlm_ask_body);
}


ngx_int_t
ngx_http_vlm_ask_read(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_dialect_t *dialect)
{
    ngx_int_t  rc;

    rc = ngx_http_vlm_ask_admit(r, eng, dialect);

    if (rc == NGX_OK) {
        ngx_http_vlm_ask_body(r);
    }

    return rc;
}


static ngx_int_t
ngx_http_vlm_ask_admit(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_dialect_t *dialect)
{
    ngx_int_t            rc;
    ngx_time_t          *tp;
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ngx_http_vlm_queue_admit(r, eng, &rc);

    if (ctx == NULL) {
        return rc;
    }

    ngx_http_vlm_breaker_enter(ctx);

    ctx->dialect = dialect;

    tp = ngx_timeofday();

    ctx->chat.asked = (int64_t) tp->sec * 1000000 + tp->msec * 1000;

    return NGX_OK;
}


static void
ngx_http_vlm_ask_body(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_vlm_ctx_t       *ctx;
    ngx_http_vlm_loc_conf_t  *lcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    if (ctx->engine->failed) {
        ngx_http_vlm_queue_refuse(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                  "Model not initialized");
        return;
    }

    if (ctx->engine->released) {

        /* the body took longer than this worker had the model */

        lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

        ngx_http_vlm_queue_leave(ctx);
        ngx_http_finalize_request(r, lcf->inner ? ngx_http_vlm_route_moved(r)
                                                : lcf->hop(r));
        return;
    }

    if (ngx_http_vlm_body_init(r, &ctx->body) != NGX_OK) {
        ngx_http_vlm_queue_end(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (ngx_http_vlm_queue_wait(ctx) != NGX_OK) {
        rc = ngx_http_vlm_queue_full(r, ctx->engine);

        ngx_http_vlm_queue_leave(ctx);
        ngx_http_finalize_request(r, rc);
        return;
    }

    ngx_http_vlm_prepare_add(ctx);
}


void
ngx_http_vlm_ask_parse(ngx_http_vlm_ctx_t *ctx)
{
    uint64_t  bytes;

    ctx->heavy = 0;

    if (ngx_http_vlm_body_get(&ctx->body) != 0) {
        (void) ngx_http_vlm_ask_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                      "The request body cannot be read");
        return;
    }

    if (ctx->body.len == 0) {
        ctx->dialect->fields(ctx, NULL);
        return;
    }

    ctx->hash = ngx_http_vlm_poison_hash(ctx->body.data, ctx->body.len);

    if (ngx_http_vlm_poison_known(ctx->engine, ctx->hash)) {
        ctx->refusal = NGX_HTTP_VLM_POISON;
        ctx->code = "request_not_repeated";

        (void) ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "The model's worker died twice while it "
                                     "worked on this request: it is not tried "
                                     "again within the hour");
        return;
    }

    bytes = ngx_http_vlm_budget_body(ctx->body.len);

    if (ngx_http_vlm_ask_memory(ctx, bytes, "The request") != NGX_OK) {
        return;
    }

    ngx_http_vlm_ask_json(ctx);

    ngx_http_vlm_budget_give(&ctx->engine->budget, bytes);
}


static void
ngx_http_vlm_ask_json(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_json_t      *json;
    ngx_http_vlm_json_err_t   err;

    json = ngx_http_vlm_json_parse(ctx->body.data, ctx->body.len, &err);

    ngx_http_vlm_body_free(&ctx->body);

    if (json == NULL) {
        (void) ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST, "%s",
                                      err.text);
        return;
    }

    ctx->dialect->fields(ctx, json);

    ngx_http_vlm_json_free(json);
}


ngx_int_t
ngx_http_vlm_ask_memory(ngx_http_vlm_ctx_t *ctx, uint64_t bytes,
    const char *what)
{
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    switch (ngx_http_vlm_budget_take(&eng->budget, bytes,
                                     (uint32_t) eng->queue_timeout,
                                     ngx_http_vlm_ask_stop, ctx))
    {
    case NGX_HTTP_VLM_BUDGET_OK:
        return NGX_OK;

    case NGX_HTTP_VLM_BUDGET_NEVER:
        ctx->err.code = VLM_ELIMIT;

        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                     "%s may take %uLm of memory, "
                                     "http_memory is %uLm", what,
                                     ngx_http_vlm_mib(bytes),
                                     ngx_http_vlm_mib(eng->http_memory));

    default:
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                     "%uLm of memory did not become free "
                                     "within %T seconds",
                                     ngx_http_vlm_mib(bytes),
                                     (time_t) (eng->queue_timeout + 999)
                                     / 1000);
    }
}


/* does its client still wait for it, and may the worker stay? */

static int
ngx_http_vlm_ask_stop(void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    return ngx_terminate
           || *(volatile ngx_atomic_t *) &ctx->abandoned;
}


/* a header that says nothing good is the decoder's to refuse, in its words */

vlm_picture_t *
ngx_http_vlm_ask_picture(ngx_http_vlm_ctx_t *ctx, const void *data, size_t len)
{
    uint64_t                bytes;
    vlm_err_t               err;
    vlm_stop_t              stop;
    vlm_picture_t          *picture;
    vlm_picture_info_t      info;
    ngx_http_vlm_rank_t    *rank;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;
    rank = &ctx->rank;
    bytes = 0;

    stop.stop = ngx_http_vlm_ask_stop;
    stop.data = ctx;

    if (vlm_picture_check(data, len, &info, &err) == 0) {

        bytes = info.memory;

        if (ngx_http_vlm_ask_memory(ctx, bytes, "The picture") != NGX_OK) {
            return NULL;
        }
    }

    picture = vlm_picture_read_salted(eng->vlm, data, len, rank->salt,
                                      rank->salted ? sizeof(rank->salt) : 0,
                                      &stop, &ctx->err);

    ngx_http_vlm_budget_give(&eng->budget, bytes);

    if (picture) {
        vlm_picture_info(picture, &info);
        ngx_http_vlm_metrics_picture(eng, &info);

        ctx->decode_us += info.decode_us;
        ctx->resize_us += info.resize_us;
    }

    return picture;
}


ngx_int_t
ngx_http_vlm_ask_store_error(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_store_err_t *err)
{
    if (err->code == NGX_HTTP_VLM_STORE_EINPUT) {
        return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST, "%s",
                                      err->text);
    }

    /* what the client is told and what the log: ngx_http_vlm_store_refuse() */

    ctx->stored = *err;

    return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, "%s",
                                  err->text);
}


/* ends the request with this status and text; whole characters of it */

ngx_int_t
ngx_http_vlm_ask_fail(ngx_http_vlm_ctx_t *ctx, ngx_uint_t status,
    const char *fmt, ...)
{
    char     *text;
    u_char   *last;
    va_list   args;

    text = ctx->err.text;

    va_start(args, fmt);
    last = ngx_vslprintf((u_char *) text,
                         (u_char *) text + sizeof(ctx->err.text) - 1,
                         fmt, args);
    va_end(args);

    text[ngx_http_vlm_json_utf8(text, (char *) last - text)] = '\0';

    ctx->status = status;

    return NGX_ERROR;
}


void
ngx_http_vlm_ask_param(ngx_http_vlm_ctx_t *ctx, const char *fmt, ...)
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


/* without a status it is the engine that refused a job */

ngx_int_t
ngx_http_vlm_ask_failed(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->status >= NGX_HTTP_INTERNAL_SERVER_ERROR) {

        if (ctx->stored.code != NGX_HTTP_VLM_STORE_OK) {
            return ngx_http_vlm_store_refuse(ctx->request, ctx->engine,
                                             &ctx->stored);
        }

        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "vlm_engine \"%V\": %s", &ctx->engine->name,
                      ctx->err.text);

        ctx->logged = 1;

        if (ctx->status == NGX_HTTP_SERVICE_UNAVAILABLE && !ctx->begun
            && ngx_http_vlm_retry_after(ctx->request,
                                      ngx_http_vlm_metrics_retry(ctx->engine))
               != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (ctx->begun) {
        return ngx_http_vlm_stream_error(ctx, ctx->status ? ctx->status
                                              : NGX_HTTP_INTERNAL_SERVER_ERROR,
                                         ctx->err.text);
    }

    return ctx->dialect->failed(ctx);
}
