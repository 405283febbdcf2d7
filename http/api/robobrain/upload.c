
/*
 * Pictures in and out: POST /api/upload, GET /uploads/NAME, /result/NAME.
 *
 * An upload is parsed and written to disk in a thread.  Files are sent as
 * nginx's static module sends them; they are untrusted, so the headers tell a
 * browser to believe the type and to run no script in them.
 */


#include "../api.h"
#include "base/multipart.h"


typedef struct {
    ngx_http_vlm_engine_t        *engine;
    ngx_str_t                     type;        /* Content-Type */
    ngx_http_vlm_rank_t           rank;        /* its salt */
    ngx_http_vlm_body_t           body;
    vlm_json_out_t                json;        /* freed with the request */
    ngx_uint_t                    status;
    const char                   *text;        /* of an error */
    int                           rc;          /* of the store */
    vlm_store_err_t               err;
} ngx_http_vlm_upload_t;


static void ngx_http_vlm_upload_body(ngx_http_request_t *r);
static void ngx_http_vlm_upload_run(void *data);
static void ngx_http_vlm_upload_find(ngx_http_vlm_upload_t *up);
static void ngx_http_vlm_upload_keep(ngx_http_vlm_upload_t *up,
    vlm_multipart_part_t *part);
static void ngx_http_vlm_upload_refuse(ngx_http_vlm_upload_t *up,
    ngx_uint_t status, const char *text);
static void ngx_http_vlm_upload_done(ngx_http_request_t *r, void *data);
static void ngx_http_vlm_upload_cleanup(void *data);

static ngx_int_t ngx_http_vlm_file_send(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, vlm_store_folder_t folder,
    ngx_str_t *piece);
static ngx_int_t ngx_http_vlm_file_open(ngx_http_request_t *r,
    ngx_str_t *path, size_t name, ngx_open_file_info_t *of);
static ngx_int_t ngx_http_vlm_file_headers(ngx_http_request_t *r,
    ngx_open_file_info_t *of);
static ngx_uint_t ngx_http_vlm_file_picture(ngx_http_request_t *r);


typedef struct {
    ngx_str_t                     exten;
    ngx_str_t                     type;
} ngx_http_vlm_type_t;


static ngx_http_vlm_type_t  ngx_http_vlm_types[] = {
    { ngx_string("jpg"), ngx_string("image/jpeg") },
    { ngx_string("jpeg"), ngx_string("image/jpeg") },
    { ngx_string("png"), ngx_string("image/png") },
    { ngx_string("webp"), ngx_string("image/webp") },
    { ngx_string("gif"), ngx_string("image/gif") },
    { ngx_string("bmp"), ngx_string("image/bmp") },
    { ngx_null_string, ngx_null_string }
};


/* ---- in ------------------------------------------------------------------ */


ngx_int_t
ngx_http_vlm_upload_handler(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece)
{
    ngx_pool_cleanup_t     *cln;
    ngx_http_vlm_upload_t  *up;

    if (eng->store == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_vlm_upload_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    up = cln->data;
    ngx_memzero(up, sizeof(ngx_http_vlm_upload_t));

    cln->handler = ngx_http_vlm_upload_cleanup;

    up->engine = eng;

    if (ngx_http_vlm_order_value(r, eng, &up->rank) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (r->headers_in.content_type) {
        up->type = r->headers_in.content_type->value;
    }

    vlm_json_init(&up->json, 16384);

    return ngx_http_vlm_body_read(r, ngx_http_vlm_upload_body);
}


static void
ngx_http_vlm_upload_body(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t     *cln;
    ngx_http_vlm_upload_t  *up;

    up = NULL;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_vlm_upload_cleanup) {
            up = cln->data;
            break;
        }
    }

    if (up == NULL
        || ngx_http_vlm_body_init(r, &up->body) != NGX_OK
        || ngx_http_vlm_thread(r, up->engine, ngx_http_vlm_upload_run,
                               ngx_http_vlm_upload_done, up)
           != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


/* runs in a thread */

static void
ngx_http_vlm_upload_run(void *data)
{
    ngx_http_vlm_upload_t *up = data;

    if (ngx_http_vlm_body_get(&up->body) != 0) {
        ngx_http_vlm_upload_refuse(up, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                   "The body could not be read back");
        return;
    }

    ngx_http_vlm_upload_find(up);

    ngx_http_vlm_body_free(&up->body);
}


/*
 * The first part that is called "file" and is a file.  The parts after it are
 * parsed, too: a truncated body is not an upload.
 */

static void
ngx_http_vlm_upload_find(ngx_http_vlm_upload_t *up)
{
    int                             rc;
    ngx_uint_t                      found;
    vlm_multipart_t                 mp;
    vlm_multipart_part_t            part, file;

    found = 0;

    rc = vlm_multipart_init(&mp, (char *) up->type.data,
                            up->type.len, up->body.data,
                            up->body.len);

    while (rc == 0) {

        rc = vlm_multipart_next(&mp, &part);

        if (rc != 1) {
            break;
        }

        rc = 0;

        if (!found && part.is_file && ngx_strcmp(part.name, "file") == 0) {
            file = part;
            found = 1;
        }
    }

    if (rc == -1) {
        ngx_http_vlm_upload_refuse(up, NGX_HTTP_BAD_REQUEST, mp.error);
        return;
    }

    if (!found) {
        ngx_http_vlm_upload_refuse(up, NGX_HTTP_BAD_REQUEST, "No file part");
        return;
    }

    if (file.filename_len == 0) {
        ngx_http_vlm_upload_refuse(up, NGX_HTTP_BAD_REQUEST,
                                   "No selected file");
        return;
    }

    ngx_http_vlm_upload_keep(up, &file);
}


static void
ngx_http_vlm_upload_keep(ngx_http_vlm_upload_t *up,
    vlm_multipart_part_t *part)
{
    u_char                     *last, url[VLM_STORE_NAME + 16];
    vlm_store_file_t   file;
    vlm_store_text_t   name;

    name.data = part->filename;
    name.len = part->filename_len;

    up->rc = vlm_store_upload_add(up->engine->store, part->data,
                                  part->bytes,
                                  ngx_http_vlm_order_salt(&up->rank),
                                  name, &file, &up->err);

    if (up->rc != VLM_STORE_OK) {
        return;
    }

    ngx_http_vlm_zone_store(up->engine, NULL);

    last = ngx_snprintf(url, sizeof(url), "/uploads/%s", file.name);

    vlm_json_open(&up->json, '{');
    vlm_json_add_string(&up->json, "filename", file.name);
    vlm_json_add_string(&up->json, "path", file.path);
    vlm_json_add_text(&up->json, "url", (char *) url, last - url);
    vlm_json_shut(&up->json, '}');

    (void) vlm_json_done(&up->json);
}


static void
ngx_http_vlm_upload_refuse(ngx_http_vlm_upload_t *up, ngx_uint_t status,
    const char *text)
{
    up->status = status;
    up->text = text;
}


static void
ngx_http_vlm_upload_done(ngx_http_request_t *r, void *data)
{
    ngx_http_vlm_upload_t *up = data;

    ngx_int_t  rc;

    if (up->rc != VLM_STORE_OK) {
        rc = ngx_http_vlm_refuse_store(r, up->engine, &up->err);

    } else if (up->status) {
        rc = ngx_http_vlm_send_error(r, up->status, up->text);

    } else {
        rc = ngx_http_vlm_send_json(r, NGX_HTTP_OK, &up->json);

        /* the request's pool now owns it, and frees it */

        ngx_memzero(&up->json, sizeof(vlm_json_out_t));
    }

    ngx_http_finalize_request(r, rc);
}


static void
ngx_http_vlm_upload_cleanup(void *data)
{
    ngx_http_vlm_upload_t *up = data;

    vlm_json_release(&up->json);
}


/* ---- out ----------------------------------------------------------------- */


ngx_int_t
ngx_http_vlm_file_handler(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece)
{
    return ngx_http_vlm_file_send(r, eng, VLM_STORE_UPLOADS, piece);
}


ngx_int_t
ngx_http_vlm_result_handler(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece)
{
    return ngx_http_vlm_file_send(r, eng, VLM_STORE_RESULTS, piece);
}


static ngx_int_t
ngx_http_vlm_file_send(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    vlm_store_folder_t folder, ngx_str_t *piece)
{
    ngx_int_t                   rc;
    ngx_str_t                   path;
    ngx_buf_t                  *b;
    ngx_chain_t                 out;
    ngx_open_file_info_t        of;
    vlm_store_text_t            name;

    name.data = (char *) piece->data;
    name.len = piece->len;

    path.data = ngx_pnalloc(r->pool, VLM_STORE_PATH);
    if (path.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (vlm_store_path((char *) eng->conf.store_dir.data, folder, name,
                       (char *) path.data)
        != VLM_STORE_OK)
    {
        return ngx_http_vlm_send_error(r, NGX_HTTP_NOT_FOUND, "Not found");
    }

    path.len = ngx_strlen(path.data);

    rc = ngx_http_vlm_file_open(r, &path, name.len, &of);

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

    b->file_pos = 0;
    b->file_last = of.size;

    b->in_file = b->file_last ? 1 : 0;
    b->last_buf = (r == r->main) ? 1 : 0;
    b->last_in_chain = 1;
    b->sync = (b->last_buf || b->in_file) ? 0 : 1;

    b->file->fd = of.fd;
    b->file->name = path;
    b->file->log = r->connection->log;
    b->file->directio = of.is_directio;

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


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


static ngx_int_t
ngx_http_vlm_file_headers(ngx_http_request_t *r, ngx_open_file_info_t *of)
{
    ngx_uint_t  i, n;

    /* an upload may be a page or an SVG with a script: the sandbox header
       gives it no origin and runs nothing; a file without the name of a
       picture is sent as an attachment */

    static struct {
        const char  *key;
        ngx_str_t    value;
    } headers[] = {
        { "Cache-Control", ngx_string("no-cache") },
        { "X-Content-Type-Options", ngx_string("nosniff") },
        { "Content-Security-Policy", ngx_string("sandbox") },
        { "Content-Disposition", ngx_string("attachment") }
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
        if (ngx_http_vlm_add_header(r, headers[i].key, &headers[i].value)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Many configurations have no "types" block: pictures have a type all the
   same, since a browser that must not guess would not show them. */

static ngx_uint_t
ngx_http_vlm_file_picture(ngx_http_request_t *r)
{
    ngx_http_vlm_type_t       *t;
    ngx_http_core_loc_conf_t  *clcf;

    for (t = ngx_http_vlm_types; t->exten.len; t++) {

        if (r->exten.len == t->exten.len
            && ngx_strncasecmp(r->exten.data, t->exten.data, t->exten.len)
               == 0)
        {
            break;
        }
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (t->exten.len
        && r->headers_out.content_type.data == clcf->default_type.data)
    {
        r->headers_out.content_type = t->type;
        r->headers_out.content_type_len = t->type.len;
    }

    return t->exten.len != 0;
}
