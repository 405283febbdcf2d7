
/*
 * Requests that the model does not answer, in any worker: the body is read, a
 * thread does what may block and writes the answer's JSON, and the loop sends
 * it.
 */


#include "api.h"


ngx_int_t
ngx_http_vlm_work(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece, ngx_http_vlm_run_t *run)
{
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ngx_http_vlm_ctx(r);

    /* the request's salt */

    if (ctx == NULL
        || ngx_http_vlm_order_value(r, eng, &ctx->place.rank) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->engine = eng;
    ctx->run = run;

    ctx->place.session.data = (char *) piece->data;
    ctx->place.session.len = piece->len;

    /* a body without a meaning is read, too: HTTP/2 clients need that */

    return ngx_http_vlm_body_read(r, ngx_http_vlm_work_body);
}


static void
ngx_http_vlm_work_run(void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    ctx->run(ctx);

    ngx_http_vlm_body_free(&ctx->body);
}


/* a text without a status is a remark: the request has succeeded */

static void
ngx_http_vlm_work_done(ngx_http_request_t *r, void *data)
{
    ngx_http_vlm_ctx_t *ctx = data;

    ngx_int_t  rc;

    if (ctx->error.status == 0 && ctx->error.err.text[0]) {
        ngx_http_vlm_log(NGX_LOG_WARN, r->connection->log, 0, ctx->engine,
                         "%s", ctx->error.err.text);
    }

    if (ctx->stored.code != VLM_STORE_OK) {
        rc = ngx_http_vlm_refuse_store(r, ctx->engine, &ctx->stored);

    } else if (ctx->error.status) {
        rc = ngx_http_vlm_send_error(r, ctx->error.status, ctx->error.err.text);

    } else {
        rc = ctx->send ? ctx->send(ctx)
                       : ngx_http_vlm_send_json(r, NGX_HTTP_OK, &ctx->out.json);
    }

    ngx_http_finalize_request(r, rc);
}


void
ngx_http_vlm_work_body(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;
    ngx_http_vlm_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    ctx->body.from = r->request_body;

    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (cln) {
        cln->handler = ngx_http_vlm_queue_free;
        cln->data = ctx;
    }

    if (cln == NULL
        || ngx_http_vlm_thread(r, ctx->engine, ngx_http_vlm_work_run, NULL,
                               ngx_http_vlm_work_done, ctx)
           != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


vlm_json_t *
ngx_http_vlm_work_json(ngx_http_vlm_ctx_t *ctx, size_t most)
{
    vlm_err_t    err;
    vlm_json_t  *json;

    if (ctx->body.len > most) {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                 "The request body has %uz bytes, it may have "
                                 "%uz", ctx->body.len, most);
        return NULL;
    }

    json = vlm_json_parse(ctx->body.data, ctx->body.len, &err);

    if (json == NULL) {
        (void) ngx_http_vlm_fail_input(ctx, "%s", err.text);
    }

    return json;
}


ngx_int_t
ngx_http_vlm_work_form(ngx_http_vlm_ctx_t *ctx, const char *text,
    vlm_multipart_form_t *form)
{
    const char       *error;
    ngx_table_elt_t  *h;

    if (ngx_http_vlm_body_get(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    h = ctx->request->headers_in.content_type;

    return vlm_multipart_form(form, h ? (char *) h->value.data : NULL,
                              h ? h->value.len : 0, ctx->body.data,
                              ctx->body.len, "file", text, &error)
           == 0 ? NGX_OK : ngx_http_vlm_fail_input(ctx, "%s", error);
}
