
/*
 * Pictures and videos of messages: their headers are checked when they arrive,
 * and they wait in a file.  They are decoded when the prompt is made, which is
 * for few requests at a time, and only as far as the context has room for them.
 */


#include "message_parts.h"
#include "base/base64.h"


static ngx_int_t
ngx_http_vlm_messages_keep(ngx_http_vlm_messages_t *m, u_char *data,
    size_t len, uint32_t tokens)
{
    int                            e;
    ngx_http_vlm_messages_part_t  *part;

    part = ngx_http_vlm_messages_part(m);
    if (part == NULL) {
        return NGX_ERROR;
    }

    if (m->fd == -1) {
        m->fd = vlm_file_unnamed((char *) m->ctx->engine->conf.store_dir.data);
    }

    e = m->fd == -1 ? ngx_errno : vlm_file_write(m->fd, data, len, m->size);

    if (e) {
        return ngx_http_vlm_fail(m->ctx, e == ENOSPC || e == EDQUOT
                                         ? NGX_HTTP_INSUFFICIENT_STORAGE
                                         : NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 "The image cannot be kept while it waits: %s",
                                 strerror(e));
    }

    part->offset = m->size;
    m->size += len;

    part->len = len;
    part->tokens = tokens;

    m->n_pictures++;
    m->ctx->heavy = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_messages_pixels(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *fields,
    vlm_pixels_t *pixels)
{
    vlm_err_t  err;

    ngx_memzero(&err, sizeof(vlm_err_t));

    return vlm_pixels_read(pixels, fields, ctx->engine->conf.vlm.max_pixels,
                           &err)
           == 0 ? NGX_OK : ngx_http_vlm_fail_input(ctx, "%s", err.text);
}


ngx_int_t
ngx_http_vlm_messages_picture(ngx_http_vlm_messages_t *m, const char *text,
    const vlm_json_t *fields)
{
    int                  bad;
    size_t               n;
    u_char              *data;
    ngx_int_t            rc;
    vlm_err_t           *err;
    vlm_pixels_t         pixels;
    vlm_picture_info_t   info;

    if (m->n_pictures - m->n_frames >= NGX_HTTP_VLM_PICTURES) {
        return ngx_http_vlm_fail_code(m->ctx, NGX_HTTP_BAD_REQUEST,
                                      "too_many_images", "There are more than "
                                      "%d images", NGX_HTTP_VLM_PICTURES);
    }

    if (ngx_http_vlm_messages_pixels(m->ctx, fields, &pixels) != NGX_OK) {
        return NGX_ERROR;
    }

    data = ngx_http_vlm_messages_bytes(m->ctx, text, ngx_strlen(text), &n);

    if (data == NULL) {
        return NGX_ERROR;
    }

    err = &m->ctx->error.err;

    ngx_memzero(err, sizeof(vlm_err_t));

    bad = m->ctx->opened
          ? vlm_picture_measure(m->ctx->engine->life.vlm, data, n, &pixels,
                                &info, err)
          : vlm_picture_check(data, n, &info, err);

    rc = bad ? ngx_http_vlm_fail_engine(m->ctx, "unsupported_image_format",
                                        "image_too_large")
             : ngx_http_vlm_messages_keep(m, data, n, info.tokens);

    if (rc == NGX_OK) {
        m->parts[m->n_parts - 1].pixels = pixels;
        m->parts[m->n_parts - 1].n = 1;
    }

    free(data);

    return rc;
}


/* its header is checked here, and that it has the size of the first */

static ngx_int_t
ngx_http_vlm_messages_frame(ngx_http_vlm_messages_t *m,
    const vlm_frame_text_t *frame, size_t i, vlm_picture_info_t *first)
{
    size_t               n;
    u_char              *data;
    ngx_int_t            rc;
    vlm_err_t            err;
    vlm_picture_info_t   info;

    data = ngx_http_vlm_messages_bytes(m->ctx, frame->text, frame->bytes, &n);

    if (data == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&err, sizeof(vlm_err_t));

    if (vlm_picture_check(data, n, &info, &err) != 0) {
        rc = ngx_http_vlm_fail_code(m->ctx, NGX_HTTP_BAD_REQUEST,
                                    err.code == VLM_ELIMIT
                                    ? "image_too_large"
                                    : "unsupported_image_format",
                                    "Frame %uz: %s", i + 1, err.text);

    } else if (i && (info.width != first->width
                     || info.height != first->height))
    {
        rc = ngx_http_vlm_fail_input(m->ctx, "Frame %uz has %uDx%uD pixels, "
                                     "the first one %uDx%uD: the frames of a "
                                     "video have one size", i + 1, info.width,
                                     info.height, first->width, first->height);

    } else {
        rc = ngx_http_vlm_messages_keep(m, data, n, 0);
    }

    if (i == 0) {
        *first = info;
    }

    free(data);

    return rc;
}


/* a video that is too long is refused after its first frame */

static ngx_int_t
ngx_http_vlm_messages_length(ngx_http_vlm_messages_t *m, size_t n, double fps,
    const vlm_pixels_t *pixels, vlm_picture_info_t *info)
{
    uint32_t  context;

    if (!m->ctx->opened) {
        return NGX_OK;
    }

    ngx_memzero(&m->ctx->error.err, sizeof(vlm_err_t));

    if (vlm_video_measure(m->ctx->engine->life.vlm, n, fps, pixels, info,
                          &m->ctx->error.err)
        != 0)
    {
        return ngx_http_vlm_fail_engine(m->ctx, NULL, "image_too_large");
    }

    context = m->ctx->engine->conf.vlm.context;

    if (info->tokens < context) {
        return NGX_OK;
    }

    return ngx_http_vlm_fail_code(m->ctx, NGX_HTTP_BAD_REQUEST,
                                  "context_length_exceeded", "This model's "
                                  "maximum context length is %uD tokens. "
                                  "%uz frames need %uD, at %uDx%uD pixels: "
                                  "send fewer, or a lower max_pixels.",
                                  context, n, info->tokens,
                                  info->resized_width, info->resized_height);
}


/* each frame is a part; the first has what is known of all */

ngx_int_t
ngx_http_vlm_messages_video(ngx_http_vlm_messages_t *m,
    const vlm_frame_text_t *frames, size_t n, double fps,
    const vlm_json_t *fields)
{
    size_t                         i, at;
    vlm_pixels_t                   pixels;
    vlm_picture_info_t             info;
    ngx_http_vlm_messages_part_t  *part;

    if (n == 0 || n > NGX_HTTP_VLM_FRAMES - m->n_frames) {
        return ngx_http_vlm_fail_code(m->ctx, NGX_HTTP_BAD_REQUEST,
                                      "too_many_frames", "The request has %uz "
                                      "frames, it may have 1 to %d",
                                      m->n_frames + n, NGX_HTTP_VLM_FRAMES);
    }

    if (!(fps >= VLM_MIN_FPS && fps <= VLM_MAX_FPS)) {
        return ngx_http_vlm_fail_input(m->ctx, "fps is no number from 0.01 to "
                                       "1000");
    }

    if (ngx_http_vlm_messages_pixels(m->ctx, fields, &pixels) != NGX_OK) {
        return NGX_ERROR;
    }

    at = m->n_parts;

    for (i = 0; i < n; i++) {

        if (ngx_http_vlm_messages_frame(m, &frames[i], i, &info) != NGX_OK
            || (i == 0
                && ngx_http_vlm_messages_length(m, n, fps, &pixels, &info)
                   != NGX_OK))
        {
            return NGX_ERROR;
        }
    }

    part = &m->parts[at];

    part->n = n;
    part->fps = fps;
    part->pixels = pixels;
    part->tokens = info.tokens;

    m->n_frames += n;

    return NGX_OK;
}


u_char *
ngx_http_vlm_messages_bytes(ngx_http_vlm_ctx_t *ctx, const char *text,
    size_t len, size_t *n)
{
    u_char  *data;

    if (len >= 5 && strncasecmp(text, "data:", 5) == 0) {
        text = vlm_base64_url(text, len, &len);

        if (text == NULL) {
            (void) ngx_http_vlm_fail_input(ctx, "The image is a data URL "
                                           "without \";base64,\"");
            return NULL;
        }
    }

    data = malloc(vlm_base64_room(len));

    if (data == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the image");
        return NULL;
    }

    if (vlm_base64_decode(data, n, text, len) != 0) {
        (void) ngx_http_vlm_fail_input(ctx, "The image is not base64");
        free(data);
        return NULL;
    }

    return data;
}


/* part i, or the video of which it is the first frame */

static vlm_picture_t *
ngx_http_vlm_messages_open(ngx_http_vlm_messages_t *m, size_t i)
{
    uint32_t                       k;
    vlm_video_t                    video;
    vlm_bytes_t                    frames[NGX_HTTP_VLM_FRAMES];
    ngx_http_vlm_messages_part_t  *part;

    part = &m->parts[i];

    for (k = 0; k < part->n; k++) {
        frames[k].data = m->map.data + part[k].offset;
        frames[k].bytes = part[k].len;
    }

    video.frame = frames;
    video.n = part->n;
    video.fps = part->fps;

    return ngx_http_vlm_input_picture(m->ctx, &video, &part->pixels);
}


static ngx_int_t
ngx_http_vlm_messages_decode(ngx_http_vlm_messages_t *m)
{
    size_t                         i;
    uint64_t                       n_tokens;
    ngx_http_vlm_ctx_t            *ctx;
    vlm_picture_info_t             info;
    ngx_http_vlm_messages_part_t  *part;

    ctx = m->ctx;
    n_tokens = 0;

    for (i = 0; i < m->n_parts; i++) {
        part = &m->parts[i];

        if (part->text || part->n == 0) {
            continue;
        }

        if (n_tokens > ctx->engine->conf.vlm.context) {
            return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                          "context_length_exceeded",
                                          "This model's maximum context length "
                                          "is %uD tokens. The first images "
                                          "alone have %uL.",
                                          ctx->engine->conf.vlm.context,
                                          n_tokens);
        }

        if (part->picture == NULL) {

            part->picture = ngx_http_vlm_messages_open(m, i);

            if (part->picture == NULL) {
                return NGX_ERROR;
            }
        }

        vlm_picture_info(part->picture, &info);
        n_tokens += info.tokens;
        ctx->out.seen = info;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_messages_read(ngx_http_vlm_messages_t *m)
{
    ngx_int_t  rc;

    ngx_memzero(&m->ctx->error.err, sizeof(vlm_err_t));

    if (m->n_pictures == 0) {
        return NGX_OK;
    }

    if (vlm_file_map_fd(&m->map, m->fd, m->size) != 0) {
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    rc = ngx_http_vlm_messages_decode(m);

    vlm_file_close(&m->map);

    return rc;
}
