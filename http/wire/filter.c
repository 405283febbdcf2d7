
/*
 * A header filter and a body filter for locations with vlm_pass.
 *
 * The headers of vlm_cors are added to every answer.  An error page of nginx's
 * own (413 before our handler ran, 502 of the hop, 403 of access rules)
 * becomes JSON, because clients of an API read nothing else, and refusals of
 * limit_req and limit_conn get a Retry-After.
 */


#include "wire.h"


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;
static ngx_http_output_body_filter_pt    ngx_http_next_body_filter;


static const char *
ngx_http_vlm_page_text(ngx_http_request_t *r, u_char *buf, size_t size)
{
    const char                *text;
    ngx_http_core_loc_conf_t  *clcf;

    if (r->err_status == NGX_HTTP_REQUEST_ENTITY_TOO_LARGE) {
        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

        (void) ngx_snprintf(buf, size - 1,
                            "The request body is larger than %O bytes%Z",
                            clcf->client_max_body_size);
        return (char *) buf;
    }

    if (r->err_status == NGX_HTTP_SERVICE_UNAVAILABLE && r->upstream) {
        return "The model's worker has ended, try again";
    }

    text = vlm_error_text((unsigned) r->err_status);

    if (text) {
        return text;
    }

    (void) ngx_snprintf(buf, size - 1, "HTTP status %ui%Z", r->err_status);

    return (char *) buf;
}


static ngx_int_t
ngx_http_vlm_page(ngx_http_request_t *r)
{
    u_char               buf[256];
    const char          *text;
    ngx_uint_t           died;
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ngx_http_vlm_ctx(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    /* the hop found no listener, or the worker died with the request: nginx
       does not retry it, the client may */

    died = r->err_status == NGX_HTTP_BAD_GATEWAY && r->upstream;

    if (died) {
        r->err_status = NGX_HTTP_SERVICE_UNAVAILABLE;
        r->headers_out.status = NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    if ((r->err_status == NGX_HTTP_SERVICE_UNAVAILABLE
         || r->err_status == NGX_HTTP_TOO_MANY_REQUESTS)
        && ngx_http_vlm_retry_after(r, died ? 5 : 1) != NGX_OK)
    {
        return NGX_ERROR;
    }

    text = ngx_http_vlm_page_text(r, buf, sizeof(buf));

    if (died) {
        ngx_http_vlm_metrics_refused(r, ngx_http_vlm_engine_of(r),
                                     NGX_HTTP_VLM_UNAVAILABLE, text);
    }

    if (ngx_http_vlm_error_body(r, r->err_status, text, &ctx->page.text)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->page.replace = 1;

    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
    ngx_str_null(&r->headers_out.charset);

    ngx_http_clear_content_length(r);
    r->headers_out.content_length_n = ctx->page.text.len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_header_filter(ngx_http_request_t *r)
{
    ngx_http_vlm_ctx_t       *ctx;
    ngx_http_vlm_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    if (lcf->engine == NULL || r != r->main) {
        return ngx_http_next_header_filter(r);
    }

    /* the inner server's headers are sent by the outer one with its own */

    if ((lcf->inner ? ngx_http_vlm_add_usage(r)
                    : ngx_http_vlm_cors_headers(r))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    if (r->err_status >= NGX_HTTP_BAD_REQUEST
        && (ctx == NULL || r->err_status != ctx->page.given)
        && ngx_http_vlm_page(r) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_next_header_filter(r);
}


static ngx_int_t
ngx_http_vlm_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_buf_t           *b;
    ngx_chain_t          out, *cl;
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    if (ctx == NULL || !ctx->page.replace || in == NULL) {
        return ngx_http_next_body_filter(r, in);
    }

    for (cl = in; cl; cl = cl->next) {
        cl->buf->pos = cl->buf->last;
        cl->buf->file_pos = cl->buf->file_last;
    }

    if (ctx->page.replaced) {
        return ngx_http_next_body_filter(r, NULL);
    }

    ctx->page.replaced = 1;

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->pos = ctx->page.text.data;
    b->last = ctx->page.text.data + ctx->page.text.len;
    b->memory = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ngx_http_next_body_filter(r, &out);
}


ngx_int_t
ngx_http_vlm_filter_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_vlm_header_filter;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_vlm_body_filter;

    return NGX_OK;
}
