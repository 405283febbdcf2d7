
/*
 * The picture of an answer: draws the shapes that a visual task found over the
 * client's picture, and stores it as a result.  All of it runs in threads.
 */


#include "chat.h"
#include "robobrain/draw.h"


static int
ngx_http_vlm_draw_jpeg(ngx_http_vlm_ctx_t *ctx, const vlm_file_t *image,
    ngx_str_t *text, void **jpeg, size_t *bytes)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    int           rc;
    size_t        n;
    vlm_err_t    *err;
    vlm_view_t    view;
    vlm_shape_t  *shapes;
    vlm_canvas_t  c;

    err = &ctx->error.err;

    shapes = malloc(VLM_MAX_SHAPES * sizeof(vlm_shape_t));
    if (shapes == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for its shapes");
    }

    rc = -1;
    c.rgb = vlm_picture_decode(image->data, image->bytes, &c.width, &c.height,
                               NULL, err);

    if (c.rgb) {
        n = vlm_shapes(chat->task, (char *) text->data, text->len, shapes,
                       VLM_MAX_SHAPES);

        view = ngx_http_vlm_view(ctx);

        vlm_shapes_place(&view, shapes, n);
        vlm_draw_shapes(&c, shapes, n);

        rc = vlm_jpeg_encode(c.rgb, c.width, c.height, jpeg, bytes, err);
    }

    free(c.rgb);
    free(shapes);

    return rc;
}


static vlm_store_file_t *
ngx_http_vlm_draw_keep(ngx_http_vlm_ctx_t *ctx, const void *jpeg, size_t bytes)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    vlm_store_err_t    stored;
    vlm_store_file_t  *file;

    file = malloc(sizeof(vlm_store_file_t));
    if (file == NULL) {
        (void) vlm_fail(&ctx->error.err, VLM_EMEMORY, "no memory for its name");
        return NULL;
    }

    if (vlm_store_result_add(ctx->engine->store, jpeg, bytes,
                             vlm_store_string(chat->image),
                             vlm_task_name(chat->task), file, &stored)
        == VLM_STORE_OK)
    {
        return file;
    }

    (void) vlm_fail(&ctx->error.err, VLM_EMEMORY, "%s", stored.text);
    free(file);

    return NULL;
}


vlm_store_file_t *
ngx_http_vlm_draw(ngx_http_vlm_ctx_t *ctx, ngx_str_t *text)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    void                   *jpeg;
    size_t                  bytes;
    vlm_err_t              *err;
    vlm_file_t              map;
    vlm_store_file_t       *file;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;
    err = &ctx->error.err;

    if (chat->task == VLM_GENERAL) {
        return NULL;
    }

    if (vlm_budget_take(&eng->budget, ctx->out.seen.memory,
                        (uint32_t) eng->conf.timeout, NULL, NULL)
        != VLM_BUDGET_OK)
    {
        (void) vlm_fail(err, VLM_EMEMORY, "http_memory has no room for it");
        return NULL;
    }

    file = NULL;
    jpeg = NULL;

    if (ngx_http_vlm_map(&map, chat->image) != 0) {
        (void) vlm_fail(err, VLM_EINPUT, "no picture to draw on");

    } else if (ngx_http_vlm_draw_jpeg(ctx, &map, text, &jpeg, &bytes) == 0) {
        file = ngx_http_vlm_draw_keep(ctx, jpeg, bytes);
    }

    free(jpeg);
    vlm_file_close(&map);
    vlm_budget_give(&eng->budget, ctx->out.seen.memory);

    return file;
}
