
/*
 * The body of a request as one range of bytes.
 *
 * nginx keeps what exceeds client_body_buffer_size in a file, and pictures
 * always do.  The file is mapped, in a thread: the loop reads nothing of it.
 */


#include "wire.h"


ngx_int_t
ngx_http_vlm_body_read(ngx_http_request_t *r,
    ngx_http_client_body_handler_pt post)
{
    ngx_int_t  rc;

    r->request_body_in_single_buf = 1;

    /* a picture in a temporary file is normal, so nginx does not warn, as with
       WebDAV */

    r->request_body_file_log_level = 0;

    rc = ngx_http_read_client_request_body(r, post);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


/* several buffers, in memory and in the file */

static int
ngx_http_vlm_body_copy(ngx_http_vlm_body_t *body)
{
    u_char       *p;
    size_t        len, n;
    ssize_t       got;
    off_t         at;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    len = 0;

    for (cl = body->from->bufs; cl; cl = cl->next) {
        len += (size_t) ngx_buf_size(cl->buf);
    }

    body->copy = malloc(len + 1);
    if (body->copy == NULL) {
        return -1;
    }

    p = body->copy;

    for (cl = body->from->bufs; cl; cl = cl->next) {
        b = cl->buf;

        /* the end of a chunked body may be a buffer without memory */

        if (ngx_buf_size(b) == 0) {
            continue;
        }

        if (!b->in_file) {
            p = ngx_cpymem(p, b->pos, b->last - b->pos);
            continue;
        }

        at = b->file_pos;

        for (n = (size_t) (b->file_last - at); n; n -= got, at += got) {
            got = pread(b->file->fd, p, n, at);

            if (got <= 0) {
                return -1;
            }

            p += got;
        }
    }

    body->data = body->copy;
    body->len = len;

    return 0;
}


static ngx_int_t
ngx_http_vlm_body_fail(ngx_http_vlm_ctx_t *ctx)
{
    return ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                             "The request body cannot be read");
}


ngx_int_t
ngx_http_vlm_body_get(ngx_http_vlm_ctx_t *ctx)
{
    ngx_buf_t            *b;
    ngx_chain_t          *cl;
    ngx_http_vlm_body_t  *body;

    body = &ctx->body;
    body->data = (u_char *) "";
    body->len = 0;

    if (body->from == NULL || body->from->bufs == NULL) {
        return NGX_OK;
    }

    cl = body->from->bufs;
    b = cl->buf;

    /* nginx writes a file of a body from its start */

    if (cl->next || (b->in_file && b->file_pos != 0)) {
        return ngx_http_vlm_body_copy(body) == 0
               ? NGX_OK : ngx_http_vlm_body_fail(ctx);
    }

    if (!b->in_file) {
        body->data = b->pos;
        body->len = b->last - b->pos;

    } else if (b->file_last) {

        if (vlm_file_map_fd(&body->file, b->file->fd, (size_t) b->file_last)
            != 0)
        {
            return ngx_http_vlm_body_fail(ctx);
        }

        body->data = body->file.data;
        body->len = (size_t) b->file_last;
    }

    return NGX_OK;
}


void
ngx_http_vlm_body_free(ngx_http_vlm_body_t *body)
{
    vlm_file_close(&body->file);

    free(body->copy);
    body->copy = NULL;

    body->data = NULL;
    body->len = 0;
}
