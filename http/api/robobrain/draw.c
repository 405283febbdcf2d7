
/*
 * The picture of an answer: draws the shapes that a visual task found over the
 * client's picture, and stores it as a result.  All of it runs in threads.
 */


#include "../api.h"
#include "chat.h"
#include <sys/mman.h>


static vlm_store_file_t *ngx_http_vlm_draw_keep(
    ngx_http_vlm_engine_t *eng, int task, const char *image, const void *jpeg,
    size_t bytes, vlm_err_t *err);


vlm_store_file_t *
ngx_http_vlm_draw(ngx_http_vlm_engine_t *eng, int task, const char *image,
    const vlm_picture_info_t *seen, ngx_str_t *text, vlm_err_t *err)
{
    int                         rc;
    void                       *map, *jpeg;
    size_t                      n, size, bytes;
    uint64_t                    room;
    vlm_shape_t                *shapes;
    vlm_store_file_t           *file;

    if (task == VLM_GENERAL) {
        return NULL;
    }

    room = seen->memory;

    if (vlm_budget_take(&eng->budget, room, (uint32_t) eng->timeout,
                        NULL, NULL)
        != VLM_BUDGET_OK)
    {
        err->code = VLM_EMEMORY;
        ngx_cpystrn((u_char *) err->text,
                    (u_char *) "http_memory has no room for it",
                    sizeof(err->text));
        return NULL;
    }

    map = ngx_http_vlm_map(image, &size);
    shapes = malloc(VLM_MAX_SHAPES * sizeof(vlm_shape_t));
    file = NULL;
    jpeg = NULL;

    if (map == NULL || shapes == NULL) {
        err->code = VLM_EINPUT;
        ngx_cpystrn((u_char *) err->text,
                    (u_char *) "no picture to draw on, or no memory",
                    sizeof(err->text));

    } else {
        n = vlm_shapes(task, (char *) text->data, text->len, shapes,
                       VLM_MAX_SHAPES);

        rc = vlm_draw(map, size, seen, shapes, n, &jpeg, &bytes, err);

        if (rc == 0) {
            file = ngx_http_vlm_draw_keep(eng, task, image, jpeg, bytes, err);
        }
    }

    free(jpeg);
    free(shapes);

    if (map) {
        (void) munmap(map, size);
    }

    vlm_budget_give(&eng->budget, room);

    return file;
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
        err->code = VLM_EMEMORY;
        ngx_cpystrn((u_char *) err->text, (u_char *) "no memory for its name",
                    sizeof(err->text));
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

    err->code = VLM_EMEMORY;
    ngx_cpystrn((u_char *) err->text, (u_char *) stored.text,
                sizeof(err->text));

    free(file);

    return NULL;
}
