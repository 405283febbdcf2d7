
/* The pictures of a request while it waits: see picture_file.h. */


#include "picture_file.h"


void
ngx_http_vlm_picture_file_init(ngx_http_vlm_picture_file_t *f)
{
    ngx_memzero(f, sizeof(ngx_http_vlm_picture_file_t));
    f->fd = -1;
}


static ngx_int_t
ngx_http_vlm_picture_file_fail(ngx_http_vlm_ctx_t *ctx, ngx_err_t e)
{
    return ngx_http_vlm_fail(ctx, e == ENOSPC || e == EDQUOT
                                  ? NGX_HTTP_INSUFFICIENT_STORAGE
                                  : NGX_HTTP_INTERNAL_SERVER_ERROR,
                             "The image cannot be kept while it waits: %s",
                             strerror(e));
}


static ngx_int_t
ngx_http_vlm_picture_file_open(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_picture_file_t *f)
{
    char       *path;
    ngx_err_t   e;

    if (f->fd != -1) {
        return NGX_OK;
    }

    if (asprintf(&path, "%s/waiting-XXXXXX", ctx->engine->conf.store_dir.data)
        == -1)
    {
        return ngx_http_vlm_fail_memory(ctx, "the messages");
    }

    f->fd = mkostemp(path, O_CLOEXEC);
    e = ngx_errno;

    if (f->fd != -1) {
        (void) unlink(path);
    }

    free(path);

    if (f->fd == -1) {
        return ngx_http_vlm_picture_file_fail(ctx, e);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_picture_file_add(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_picture_file_t *f, const u_char *data, size_t len,
    off_t *offset)
{
    size_t   done;
    ssize_t  n;

    if (ngx_http_vlm_picture_file_open(ctx, f) != NGX_OK) {
        return NGX_ERROR;
    }

    for (done = 0; done < len; done += n) {

        n = pwrite(f->fd, data + done, len - done, f->size + done);

        if (n <= 0) {
            return ngx_http_vlm_picture_file_fail(ctx, n ? ngx_errno : ENOSPC);
        }
    }

    *offset = f->size;
    f->size += len;

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_picture_file_map(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_picture_file_t *f)
{
    return vlm_file_map_fd(&f->map, f->fd, f->size) == 0 ? NGX_OK
           : ngx_http_vlm_fail_memory(ctx, "the messages");
}


void
ngx_http_vlm_picture_file_unmap(ngx_http_vlm_picture_file_t *f)
{
    vlm_file_close(&f->map);
}


void
ngx_http_vlm_picture_file_close(ngx_http_vlm_picture_file_t *f)
{
    if (f->fd != -1) {
        (void) close(f->fd);
    }

    ngx_http_vlm_picture_file_init(f);
}
