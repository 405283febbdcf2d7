
/*
 * The bytes of a request, in a thread: its JSON and its pictures, each within
 * http_memory.
 */


#include "line.h"


static void
ngx_http_vlm_input_read(ngx_http_vlm_ctx_t *ctx)
{
    uint64_t     bytes;
    vlm_err_t    err;
    vlm_json_t  *json;

    if (ctx->body.len == 0) {
        ctx->dialect->fields(ctx, NULL);
        return;
    }

    ctx->hash = ngx_http_vlm_poison_hash(ctx->body.data, ctx->body.len);

    if (vlm_suspects_known(ctx->engine->zone->suspects, ctx->hash,
                           ngx_current_msec))
    {
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


void
ngx_http_vlm_input_parse(void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    ctx->heavy = 0;

    if (ngx_http_vlm_body_get(ctx) == NGX_OK) {
        ngx_http_vlm_input_read(ctx);
    }

    ngx_http_vlm_body_free(&ctx->body);

    if (ctx->error.status == 0 && ctx->place.session.len) {
        ngx_http_vlm_lease_enter(ctx);
    }
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


/*
 * Decoding holds at most this: one frame after the other is decoded, and a
 * video's frames stay at the size that the model sees.  A header that cannot
 * be read is refused by the decoder, whose message is better.
 */

static uint64_t
ngx_http_vlm_input_bytes(ngx_http_vlm_ctx_t *ctx, const vlm_video_t *video,
    const vlm_pixels_t *pixels)
{
    uint32_t             i;
    uint64_t             most;
    vlm_picture_info_t   info;

    most = 0;

    for (i = 0; i < video->n; i++) {

        if (vlm_picture_check(video->frame[i].data, video->frame[i].bytes,
                              &info, NULL)
            != 0)
        {
            return most;
        }

        most = ngx_max(most, info.memory);
    }

    if (video->fps > 0
        && vlm_video_measure(ctx->engine->life.vlm, video->n, video->fps,
                             pixels, &info, NULL)
           == 0)
    {
        most += (uint64_t) 3 * info.resized_width * info.resized_height
                * video->n;
    }

    return most;
}


vlm_picture_t *
ngx_http_vlm_input_picture(ngx_http_vlm_ctx_t *ctx, const vlm_video_t *video,
    const vlm_pixels_t *pixels)
{
    size_t                  len;
    uint64_t                bytes;
    vlm_err_t              *err;
    vlm_stop_t              stop;
    vlm_picture_t          *picture;
    vlm_picture_info_t      info;
    vlm_rank_t             *rank;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;
    rank = &ctx->place.rank.given;
    err = &ctx->error.err;

    stop.stop = ngx_http_vlm_input_stop;
    stop.data = ctx;

    bytes = ngx_http_vlm_input_bytes(ctx, video, pixels);

    if (ngx_http_vlm_input_memory(ctx, bytes, video->fps > 0 ? "The video"
                                                             : "The picture")
        != NGX_OK)
    {
        return NULL;
    }

    len = rank->salted ? sizeof(rank->salt) : 0;

    picture = video->fps > 0
              ? vlm_video_read(eng->life.vlm, video, rank->salt, len, pixels,
                               &stop, err)
              : vlm_picture_read_salted(eng->life.vlm, video->frame->data,
                                        video->frame->bytes, rank->salt, len,
                                        pixels, &stop, err);

    vlm_budget_give(&eng->budget, bytes);

    if (picture == NULL) {
        (void) ngx_http_vlm_fail_engine(ctx, "unsupported_image_format",
                                        "image_too_large");
        return NULL;
    }

    vlm_picture_info(picture, &info);
    ngx_http_vlm_metrics_picture(eng, &info);

    ctx->times.decode_us += info.decode_us;
    ctx->times.resize_us += info.resize_us;

    return picture;
}
