
/*
 * The picture of an answer: draws the shapes that a visual task found over the
 * client's picture, and stores it as a result.  All of it runs in threads.
 */


#include "../api.h"
#include "chat.h"
#include "robobrain/draw.h"


static int ngx_http_vlm_draw_jpeg(ngx_http_vlm_engine_t *eng,
    const vlm_file_t *image, int task, const vlm_picture_info_t *seen,
    ngx_str_t *text, void **jpeg, size_t *bytes, vlm_err_t *err);
static vlm_store_file_t *ngx_http_vlm_draw_keep(
    ngx_http_vlm_engine_t *eng, int task, const char *image, const void *jpeg,
    size_t bytes, vlm_err_t *err);


vlm_store_file_t *
ngx_http_vlm_draw(ngx_http_vlm_engine_t *eng, int task, const char *image,
    const vlm_picture_info_t *seen, ngx_str_t *text, vlm_err_t *err)
{
    void                       *jpeg;
    size_t                      bytes;
    uint64_t                    room;
    vlm_file_t                  map;
    vlm_store_file_t           *file;

    if (task == VLM_GENERAL) {
        return NULL;
    }

    room = seen->memory;

    if (vlm_budget_take(&eng->budget, room, (uint32_t) eng->conf.timeout,
                        NULL, NULL)
        != VLM_BUDGET_OK)
    {
        (void) vlm_fail(err, VLM_EMEMORY, "http_memory has no room for it");
        return NULL;
    }

    file = NULL;
    jpeg = NULL;

    if (ngx_http_vlm_map(&map, image) != 0) {
        (void) vlm_fail(err, VLM_EINPUT, "no picture to draw on");

    } else if (ngx_http_vlm_draw_jpeg(eng, &map, task, seen, text, &jpeg,
                                      &bytes, err)
               == 0)
    {
        file = ngx_http_vlm_draw_keep(eng, task, image, jpeg, bytes, err);
    }

    free(jpeg);
    vlm_file_close(&map);
    vlm_budget_give(&eng->budget, room);

    return file;
}


static int
ngx_http_vlm_draw_jpeg(ngx_http_vlm_engine_t *eng, const vlm_file_t *image,
    int task, const vlm_picture_info_t *seen, ngx_str_t *text, void **jpeg,
    size_t *bytes, vlm_err_t *err)
{
    int            rc;
    size_t         n;
    vlm_view_t     view;
    vlm_shape_t   *shapes;
    vlm_canvas_t   c;

    shapes = malloc(VLM_MAX_SHAPES * sizeof(vlm_shape_t));
    if (shapes == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for its shapes");
    }

    rc = -1;
    c.rgb = vlm_picture_decode(image->data, image->bytes, &c.width, &c.height,
                               NULL, err);

    if (c.rgb) {
        n = vlm_shapes(task, (char *) text->data, text->len, shapes,
                       VLM_MAX_SHAPES);

        view = ngx_http_vlm_view(eng, seen);

        vlm_shapes_place(&view, shapes, n);
        vlm_draw_shapes(&c, shapes, n);

        rc = vlm_jpeg_encode(c.rgb, c.width, c.height, jpeg, bytes, err);
    }

    free(c.rgb);
    free(shapes);

    return rc;
}


static vlm_store_file_t *
ngx_http_vlm_draw_keep(ngx_http_vlm_engine_t *eng, int task,
    const char *image, const void *jpeg, size_t bytes, vlm_err_t *err)
{
    vlm_store_err_t    stored;
    vlm_store_text_t   name;
    vlm_store_file_t  *file;

    file = malloc(sizeof(vlm_store_file_t));
    if (file == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for its name");
        return NULL;
    }

    name.data = image;
    name.len = ngx_strlen(image);

    if (vlm_store_result_add(eng->store, jpeg, bytes, name,
                             vlm_task_name(task), file, &stored)
        == VLM_STORE_OK)
    {
        return file;
    }

    (void) vlm_fail(err, VLM_EMEMORY, "%s", stored.text);
    free(file);

    return NULL;
}
