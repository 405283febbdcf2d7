
/*
 * Pictures in and out: POST /api/upload, GET /uploads/NAME, /result/NAME.
 *
 * An upload is parsed and written to disk in a thread.  Files are sent as
 * nginx's static module sends them; they are untrusted, so the headers tell a
 * browser to believe the type and to run no script in them.
 */


#include "chat.h"


/* ---- in ------------------------------------------------------------------ */


static void
ngx_http_vlm_upload_keep(ngx_http_vlm_ctx_t *ctx, vlm_multipart_part_t *part)
{
    vlm_json_out_t    *w;
    vlm_store_file_t   file;
    vlm_store_text_t   name;

    name.data = part->filename;
    name.len = part->filename_len;

    ctx->stored.code = vlm_store_upload_add(ctx->engine->store, part->data,
                                     part->bytes,
                                     ngx_http_vlm_order_salt(&ctx->place.rank),
                                     name, &file, &ctx->stored);

    if (ctx->stored.code != VLM_STORE_OK) {
        return;
    }

    ngx_http_vlm_zone_store(ctx->engine, NULL);

    w = &ctx->out.json;

    vlm_json_init(w, 16384);
    vlm_json_open(w, '{');
    vlm_json_add_string(w, "filename", file.name);
    vlm_json_add_string(w, "path", file.path);
    vlm_json_add_format(w, "url", "/uploads/%s", file.name);
    vlm_json_shut(w, '}');
}


static void
ngx_http_vlm_upload(ngx_http_vlm_ctx_t *ctx)
{
    vlm_multipart_form_t  form;

    if (ngx_http_vlm_chat_sees(ctx) != NGX_OK
        || ngx_http_vlm_work_form(ctx, NULL, &form) != NGX_OK)
    {
        return;
    }

    if (form.file.data == NULL) {
        (void) ngx_http_vlm_fail_input(ctx, "No file part");

    } else if (form.file.filename_len == 0) {
        (void) ngx_http_vlm_fail_input(ctx, "No selected file");

    } else {
        ngx_http_vlm_upload_keep(ctx, &form.file);
    }
}


ngx_int_t
ngx_http_vlm_upload_handler(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece)
{
    ngx_uint_t              i;
    ngx_http_vlm_engine_t  *one;

    /* engines of a location share the store: one that sees pictures takes it */

    for (i = 0; (one = ngx_http_vlm_engine_at(r, i)) != NULL; i++) {
        if (one->conf.facts.vision_layers > 0) {
            eng = one;
            break;
        }
    }

    return ngx_http_vlm_work(r, eng, piece, ngx_http_vlm_upload);
}


/* ---- out ----------------------------------------------------------------- */


/* NGX_DECLINED: there is no such file, or it is not a regular one */

static ngx_int_t
ngx_http_vlm_file_open(ngx_http_request_t *r, ngx_str_t *path, size_t name,
    ngx_open_file_info_t *of)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    ngx_memzero(of, sizeof(ngx_open_file_info_t));

    of->read_ahead = clcf->read_ahead;
    of->directio = clcf->directio;
    of->valid = clcf->open_file_cache_valid;
    of->min_uses = clcf->open_file_cache_min_uses;
    of->errors = clcf->open_file_cache_errors;
    of->events = clcf->open_file_cache_events;

#if (NGX_HAVE_OPENAT)

    /* the path to the store may have symbolic links, the name in it may not */

    of->disable_symlinks = NGX_DISABLE_SYMLINKS_ON;
    of->disable_symlinks_from = path->len - name - 1;

#endif

    if (ngx_open_cached_file(clcf->open_file_cache, path, of, r->pool)
        == NGX_OK)
    {
        return of->is_file ? NGX_OK : NGX_DECLINED;
    }

    switch (of->err) {

    case 0:
        return NGX_HTTP_INTERNAL_SERVER_ERROR;

    case NGX_ENOENT:
    case NGX_ENOTDIR:
    case NGX_ENAMETOOLONG:
#if (NGX_HAVE_OPENAT)
    case NGX_ELOOP:
    case NGX_EMLINK:
#endif
        return NGX_DECLINED;
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, of->err,
                  "%s \"%V\" failed", of->failed, path);

    return of->err == NGX_EACCES ? NGX_HTTP_FORBIDDEN
                                 : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


/* Many configurations have no "types" block: pictures have a type all the
   same, since a browser that must not guess would not show them. */

static ngx_uint_t
ngx_http_vlm_file_picture(ngx_http_request_t *r)
{
    ngx_uint_t                 i;
    ngx_http_core_loc_conf_t  *clcf;

    static struct {
        const char  *exten;
        ngx_str_t    type;
    } types[] = {
        { "jpg", ngx_string("image/jpeg") },
        { "jpeg", ngx_string("image/jpeg") },
        { "png", ngx_string("image/png") },
        { "webp", ngx_string("image/webp") },
        { "gif", ngx_string("image/gif") },
        { "bmp", ngx_string("image/bmp") }
    };

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {

        if (r->exten.len != ngx_strlen(types[i].exten)
            || ngx_strncasecmp(r->exten.data, (u_char *) types[i].exten,
                               r->exten.len)
               != 0)
        {
            continue;
        }

        if (r->headers_out.content_type.data == clcf->default_type.data) {
            r->headers_out.content_type = types[i].type;
            r->headers_out.content_type_len = types[i].type.len;
        }

        return 1;
    }

    return 0;
}


static ngx_int_t
ngx_http_vlm_file_headers(ngx_http_request_t *r, ngx_open_file_info_t *of)
{
    ngx_uint_t  i, n;

    /* an upload may be a page or an SVG with a script: the sandbox header
       gives it no origin and runs nothing; a file without the name of a
       picture is sent as an attachment */

    static const char *const  headers[][2] = {
        { "Cache-Control", "no-cache" },
        { "X-Content-Type-Options", "nosniff" },
        { "Content-Security-Policy", "sandbox" },
        { "Content-Disposition", "attachment" }
    };

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = of->size;
    r->headers_out.last_modified_time = of->mtime;
    r->disable_not_modified = 0;
    r->allow_ranges = 1;

    if (ngx_http_set_etag(r) != NGX_OK
        || ngx_http_set_content_type(r) != NGX_OK)
    {
        return NGX_ERROR;
    }

    n = sizeof(headers) / sizeof(headers[0]);

    if (ngx_http_vlm_file_picture(r)) {
        n--;
    }

    for (i = 0; i < n; i++) {
        if (ngx_http_vlm_add_header(r, headers[i][0], headers[i][1]) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_file_send(ngx_http_request_t *r, ngx_str_t *path,
    ngx_open_file_info_t *of)
{
    ngx_buf_t    *b;
    ngx_int_t     rc;
    ngx_chain_t   out;

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->file = ngx_pcalloc(r->pool, sizeof(ngx_file_t));
    if (b->file == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b->file_last = of->size;
    b->in_file = b->file_last ? 1 : 0;
    b->last_buf = 1;
    b->last_in_chain = 1;

    b->file->fd = of->fd;
    b->file->name = *path;
    b->file->log = r->connection->log;
    b->file->directio = of->is_directio;

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


ngx_int_t
ngx_http_vlm_file_reply(ngx_http_request_t *r, ngx_str_t *path)
{
    u_char                *name;
    ngx_int_t              rc;
    ngx_open_file_info_t   of;

    name = (u_char *) strrchr((char *) path->data, '/') + 1;

    rc = ngx_http_vlm_file_open(r, path, path->data + path->len - name, &of);

    if (rc == NGX_DECLINED) {
        return ngx_http_vlm_send_error(r, NGX_HTTP_NOT_FOUND, "Not found");
    }

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_vlm_file_headers(r, &of) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_vlm_file_send(r, path, &of);
}


ngx_int_t
ngx_http_vlm_file_handler(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece)
{
    ngx_str_t           path;
    vlm_store_text_t    name;
    vlm_store_folder_t  folder;

    name.data = (char *) piece->data;
    name.len = piece->len;

    folder = ngx_strncmp(r->uri.data, "/uploads/", 9) == 0 ? VLM_STORE_UPLOADS
                                                           : VLM_STORE_RESULTS;

    path.data = ngx_pnalloc(r->pool, VLM_STORE_PATH);
    if (path.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (vlm_store_path((char *) eng->conf.files_dir.data, folder, name,
                       (char *) path.data)
        != VLM_STORE_OK)
    {
        return ngx_http_vlm_send_error(r, NGX_HTTP_NOT_FOUND, "Not found");
    }

    path.len = ngx_strlen(path.data);

    return ngx_http_vlm_file_reply(r, &path);
}
