
/*
 * The pictures of a request while it waits: one unnamed file on the store's
 * disk.  All of it runs in threads, except ngx_http_vlm_picture_file_close().
 */


#ifndef _NGX_HTTP_VLM_PICTURE_FILE_H_INCLUDED_
#define _NGX_HTTP_VLM_PICTURE_FILE_H_INCLUDED_


#include "api.h"


typedef struct {
    int                           fd;          /* -1: there is no picture */
    off_t                         size;
    vlm_file_t                    map;
} ngx_http_vlm_picture_file_t;


void ngx_http_vlm_picture_file_init(ngx_http_vlm_picture_file_t *f);

/* NGX_ERROR: the request has failed */

ngx_int_t ngx_http_vlm_picture_file_add(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_picture_file_t *f, const u_char *data, size_t len,
    off_t *offset);

/* sets f->map, to be unmapped; NGX_ERROR: the request has failed */

ngx_int_t ngx_http_vlm_picture_file_map(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_picture_file_t *f);
void ngx_http_vlm_picture_file_unmap(ngx_http_vlm_picture_file_t *f);

/* empties it, too */

void ngx_http_vlm_picture_file_close(ngx_http_vlm_picture_file_t *f);


#endif /* _NGX_HTTP_VLM_PICTURE_FILE_H_INCLUDED_ */
