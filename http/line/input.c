
/*
 * The bytes of a request, in a thread: its JSON and its pictures, each within
 * http_memory.
 */


#include "line.h"


void
ngx_http_vlm_input_parse(void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    uint64_t     bytes;
    vlm_err_t    err;
    vlm_json_t  *json;

    ctx->heavy = 0;

    if (ngx_http_vlm_body_get(&ctx->body) != 0) {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
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
        (void) ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                      "request_not_repeated", "The model's "
                                      "worker died twice while it worked on "
                                      "this request: it is not tried again "
                                      "within the hour");
        return;
    }

    bytes = vlm_budget_body(ctx->body.len);

    if (ngx_http_vlm_input_memory(ctx, bytes, "The request") != NGX_OK) {
        return;
    }

    json = vlm_json_parse(ctx->body.data, ctx->body.len, &err);

    ngx_http_vlm_body_free(&ctx->body);

    if (json) {
        ctx->dialect->fields(ctx, json);
        vlm_json_free(json);

    } else {
        (void) ngx_http_vlm_fail_input(ctx, "%s", err.text);
    }

    vlm_budget_give(&ctx->engine->budget, bytes);
}


/* is the client still connected, and may the worker go on? */

static int
ngx_http_vlm_input_stop(void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    return ngx_terminate
           || *(volatile ngx_atomic_t *) &ctx->abandoned;
}


ngx_int_t
ngx_http_vlm_input_memory(ngx_http_vlm_ctx_t *ctx, uint64_t bytes,
    const char *what)
{
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    switch (vlm_budget_take(&eng->budget, bytes,
                            (uint32_t) eng->conf.queue_timeout,
                            ngx_http_vlm_input_stop, ctx))
    {
    case VLM_BUDGET_OK:
        return NGX_OK;

    case VLM_BUDGET_NEVER:
        ctx->error.err.code = VLM_ELIMIT;

        return ngx_http_vlm_fail_input(ctx, "%s may take %uLm of memory, "
                                       "http_memory is %uLm", what,
                                       vlm_mib(bytes),
                                       vlm_mib(eng->conf.http_memory));

    default:
        return ngx_http_vlm_fail(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 "%uLm of memory did not become free "
                                 "within %T seconds",
                                 vlm_mib(bytes),
                                 (time_t) (eng->conf.queue_timeout + 999)
                                 / 1000);
    }
}


/* a header that cannot be read is refused by the decoder, whose message is
   better */

vlm_picture_t *
ngx_http_vlm_input_picture(ngx_http_vlm_ctx_t *ctx, const void *data,
    size_t len, const vlm_pixels_t *pixels)
{
    uint64_t                bytes;
    vlm_stop_t              stop;
    vlm_picture_t          *picture;
    vlm_picture_info_t      info;
    ngx_http_vlm_rank_t    *rank;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;
    rank = &ctx->place.rank;
    bytes = 0;

    stop.stop = ngx_http_vlm_input_stop;
    stop.data = ctx;

    if (vlm_picture_check(data, len, &info, NULL) == 0) {

        bytes = info.memory;

        if (ngx_http_vlm_input_memory(ctx, bytes, "The picture") != NGX_OK) {
            return NULL;
        }
    }

    picture = vlm_picture_read_salted(eng->life.vlm, data, len, rank->salt,
                                      rank->salted ? sizeof(rank->salt) : 0,
                                      pixels, &stop, &ctx->error.err);

    vlm_budget_give(&eng->budget, bytes);

    if (picture) {
        vlm_picture_info(picture, &info);
        ngx_http_vlm_metrics_picture(eng, &info);

        ctx->times.decode_us += info.decode_us;
        ctx->times.resize_us += info.resize_us;
    }

    return picture;
}
