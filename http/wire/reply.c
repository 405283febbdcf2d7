
/*
 * Whole answers: a status and a JSON text.
 *
 * An HTTP/2 client that is answered while it still sends a body treats the
 * reset of its stream as an error, so with HTTP/2 the body is read first.
 * With HTTP/1.1 nginx lingers, and the connection is not used again.
 */


#include "wire.h"


#define NGX_HTTP_VLM_ERROR  65536          /* bytes of JSON, of an error */
#define NGX_HTTP_VLM_TEXT   (8 * VLM_STORE_TEXT)   /* of the text of an answer
                                              and of what stands beside it */
#define NGX_HTTP_VLM_TOKEN  2048           /* of a log-probability */


ngx_http_vlm_ctx_t *
ngx_http_vlm_ctx(ngx_http_request_t *r)
{
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    if (ctx == NULL) {
        ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_vlm_ctx_t));
        if (ctx == NULL) {
            return NULL;
        }

        ctx->request = r;

        ngx_http_set_ctx(r, ctx, ngx_http_vlm_module);
    }

    return ctx;
}


static ngx_int_t
ngx_http_vlm_send_now(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *json)
{
    ngx_http_vlm_ctx_t        *ctx;
    ngx_http_complex_value_t   cv;

    static ngx_str_t  json_type = ngx_string("application/json");
    static ngx_str_t  text_type = ngx_string("text/plain; charset=utf-8");

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    ngx_memzero(&cv, sizeof(ngx_http_complex_value_t));
    cv.value = *json;

    return ngx_http_send_response(r, status,
                                  ctx && ctx->out.text_type ? &text_type
                                                            : &json_type, &cv);
}


static void
ngx_http_vlm_send_late(ngx_http_request_t *r)
{
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    ngx_http_finalize_request(r, ngx_http_vlm_send_now(r, ctx->page.status,
                                                       &ctx->page.text));
}


ngx_int_t
ngx_http_vlm_send(ngx_http_request_t *r, ngx_uint_t status, ngx_str_t *json)
{
    ngx_int_t            rc;
    ngx_uint_t           unread;
    ngx_http_vlm_ctx_t  *ctx;

    unread = r->request_body == NULL
             && (r->headers_in.content_length_n > 0 || r->headers_in.chunked);

    if (!unread || status < NGX_HTTP_SPECIAL_RESPONSE) {
        return ngx_http_vlm_send_now(r, status, json);
    }

    if (r->http_version < NGX_HTTP_VERSION_20) {

        /* no "100 Continue" in front of a refusal */

        r->expect_tested = 1;
        r->keepalive = 0;

        return ngx_http_vlm_send_now(r, status, json);
    }

    ctx = ngx_http_vlm_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->page.status = status;
    ctx->page.text = *json;

    rc = ngx_http_read_client_request_body(r, ngx_http_vlm_send_late);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


ngx_int_t
ngx_http_vlm_send_json(ngx_http_request_t *r, ngx_uint_t status,
    vlm_json_out_t *w)
{
    ngx_str_t  json;

    if (vlm_json_done(w) != 0) {
        vlm_json_release(w);
        return ngx_http_vlm_send_error(r, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       "The answer is too long");
    }

    return ngx_http_vlm_keep_json(r, w, &json) == NGX_OK
           ? ngx_http_vlm_send(r, status, &json)
           : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


ngx_int_t
ngx_http_vlm_keep_json(ngx_http_request_t *r, vlm_json_out_t *w,
    ngx_str_t *json)
{
    ngx_pool_cleanup_t  *cln;

    cln = w->failed ? NULL : ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        vlm_json_release(w);
        return NGX_ERROR;
    }

    cln->handler = free;
    cln->data = w->data;

    json->data = (u_char *) w->data;
    json->len = w->len;

    ngx_memzero(w, sizeof(vlm_json_out_t));

    return NGX_OK;
}


void
ngx_http_vlm_write_answer(ngx_http_vlm_ctx_t *ctx)
{
    vlm_json_out_t  *w;

    w = &ctx->out.json;

    if (w->limit) {

        /* a thread has written it */

        return;
    }

    vlm_json_init(w, NGX_HTTP_VLM_TEXT + NGX_HTTP_VLM_TOKEN
                     * (size_t) ngx_http_vlm_unsent_tokens(ctx)
                     * (ctx->sampling.top_logprobs + 1));

    if (ctx->streaming) {
        ctx->dialect->chunk(ctx, w, 1);
        return;
    }

    ctx->dialect->answer(ctx, w);
}


ngx_int_t
ngx_http_vlm_send_answer(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_write_answer(ctx);

    return ctx->streaming ? ngx_http_vlm_stream_send(ctx, &ctx->out.json, 1)
                          : ngx_http_vlm_send_json(ctx->request,
                                                   ctx->out.status
                                                   ? ctx->out.status
                                                   : NGX_HTTP_OK,
                                                   &ctx->out.json);
}


ngx_int_t
ngx_http_vlm_send_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *text)
{
    ngx_str_t            json;
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    if (ctx && ctx->out.begun) {
        return ngx_http_vlm_stream_error(ctx, status, text);
    }

    if (ngx_http_vlm_error_body(r, status, text, &json) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_vlm_send(r, status, &json);
}


ngx_int_t
ngx_http_vlm_error_body(ngx_http_request_t *r, ngx_uint_t status,
    const char *text, ngx_str_t *body)
{
    vlm_json_out_t     w;
    vlm_error_form_t   form;

    vlm_json_init(&w, NGX_HTTP_VLM_ERROR);

    form = vlm_error_form((char *) r->uri.data, r->uri.len);

    if (form == VLM_ERROR_OPENAI) {
        ngx_http_vlm_openai_put_error(&w, ngx_http_get_module_ctx(r,
                                                         ngx_http_vlm_module),
                                      status, text, 0);

    } else {
        vlm_error_put_text(&w, form, text);
    }

    (void) vlm_json_done(&w);

    return ngx_http_vlm_keep_json(r, &w, body);
}
