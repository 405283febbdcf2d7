
/*
 * An answer as events: SSE, or a line of JSON each.
 *
 * The header waits for the first text, so that an error before it keeps its
 * status; but for two seconds at most, because proxies and users give up on a
 * silent connection.  Then the queue position is sent.
 *
 * A client that reads slowly has one chunk in flight.  Text that is generated
 * meanwhile is collected in ctx->out.text, which is bounded, and becomes the
 * next chunk; so a slow client delays neither the engine nor other clients.
 */


#include "wire.h"


#define NGX_HTTP_VLM_SILENT  2000          /* ms of silence, then the header is
                                              sent */
#define NGX_HTTP_VLM_CHUNK   (8 * VLM_STORE_TEXT)     /* bytes */


static ngx_int_t ngx_http_vlm_stream_output(ngx_http_vlm_ctx_t *ctx,
    ngx_chain_t *out);


/* no text for a while: sends at least the header, and the queue position */

static void
ngx_http_vlm_stream_position(ngx_event_t *ev)
{
    ngx_http_vlm_ctx_t *ctx = ev->data;

    vlm_json_out_t     w;
    ngx_connection_t  *c;

    if (ctx->times.first || ctx->step >= NGX_HTTP_VLM_STORING) {
        return;
    }

    c = ctx->request->connection;

    ngx_http_set_log_request(c->log, ctx->request);

    ngx_add_timer(ev, NGX_HTTP_VLM_SILENT);

    /* while a thread works for the request, the write handler is the
       thread's */

    if (ctx->out.busy == NULL && !ctx->in_task) {
        vlm_json_init(&w, NGX_HTTP_VLM_CHUNK);

        if (ctx->dialect->waits) {
            ctx->dialect->waits(ctx, &w, ctx->engine->calls->place(ctx));
        }

        if (ngx_http_vlm_stream_send(ctx, &w, 0) == NGX_ERROR) {
            ctx->engine->calls->end(ctx, NGX_ERROR);
        }
    }

    ngx_http_run_posted_requests(c);
}


void
ngx_http_vlm_stream_watch(ngx_http_vlm_ctx_t *ctx)
{
    ngx_msec_int_t  ms;

    ngx_http_vlm_event_init(&ctx->out.position, ngx_http_vlm_stream_position,
                            ctx, ctx->request->connection->log);

    ms = ctx->times.arrived + NGX_HTTP_VLM_SILENT - ngx_current_msec;

    ngx_add_timer(&ctx->out.position, ngx_max(ms, 1));
}


ngx_int_t
ngx_http_vlm_stream_update(ngx_http_vlm_ctx_t *ctx)
{
    ngx_event_t              *wev;
    vlm_json_out_t            w;

    wev = ctx->request->connection->write;

    /* the timeout of a client that does not read goes on, whatever is
       generated */

    if (ctx->out.busy && wev->ready
        && ngx_http_vlm_stream_output(ctx, NULL) == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    if (ctx->out.busy || ctx->out.text == NULL) {
        return NGX_OK;
    }

    ngx_http_vlm_timer_off(&ctx->out.position);

    vlm_json_init(&w, NGX_HTTP_VLM_CHUNK);

    ctx->dialect->chunk(ctx, &w, 0);

    if (w.len == 0 && !w.failed) {
        vlm_json_release(&w);
        return NGX_OK;
    }

    return ngx_http_vlm_stream_send(ctx, &w, 0) == NGX_ERROR ? NGX_ERROR
                                                             : NGX_OK;
}


ngx_int_t
ngx_http_vlm_stream_error(ngx_http_vlm_ctx_t *ctx, ngx_uint_t status,
    const char *text)
{
    vlm_json_out_t  w;

    vlm_json_init(&w, NGX_HTTP_VLM_CHUNK);

    ctx->dialect->error(ctx, &w, status, text);

    return ngx_http_vlm_stream_send(ctx, &w, 1);
}


static ngx_int_t
ngx_http_vlm_stream_begin(ngx_http_vlm_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    ctx->out.begun = 1;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_type.data = (u_char *) ctx->dialect->stream_type;
    r->headers_out.content_type.len = ngx_strlen(ctx->dialect->stream_type);
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    ngx_http_clear_content_length(r);

    /* its timer would be taken for send_timeout's; nginx's proxy does not slow
       an answer that it passes on unbuffered either */

    r->limit_rate = 0;
    r->limit_rate_set = 1;

    /* the second header is for an nginx in front of this one */

    if (ngx_http_vlm_add_header(r, "Cache-Control", "no-cache") != NGX_OK
        || ngx_http_vlm_add_header(r, "X-Accel-Buffering", "no") != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_send_header(r);

    return rc == NGX_ERROR || rc > NGX_OK ? NGX_ERROR : NGX_OK;
}


ngx_int_t
ngx_http_vlm_stream_send(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last)
{
    size_t                    size;
    ngx_buf_t                *b;
    ngx_chain_t              *out;
    ngx_http_request_t       *r;
    ngx_http_vlm_loc_conf_t  *lcf;

    r = ctx->request;

    if (w->failed
        || (!ctx->out.begun && ngx_http_vlm_stream_begin(ctx) != NGX_OK))
    {
        goto failed;
    }

    /* an old buffer of this stream, if one is free and large enough */

    out = ngx_chain_get_free_buf(r->pool, &ctx->out.free);
    if (out == NULL) {
        goto failed;
    }

    b = out->buf;

    if (b->start == NULL || (size_t) (b->end - b->start) < w->len) {

        if (b->start) {
            (void) ngx_pfree(r->pool, b->start);
        }

        for (size = 512; size < w->len; size *= 2) { /* void */ }

        b->start = ngx_palloc(r->pool, size);
        if (b->start == NULL) {
            goto failed;
        }

        b->end = b->start + size;
    }

    b->pos = b->start;
    b->last = b->start;

    if (w->len) {
        b->last = ngx_cpymem(b->start, w->data, w->len);
    }

    b->tag = (ngx_buf_tag_t) &ngx_http_vlm_module;
    b->temporary = w->len ? 1 : 0;
    b->memory = 0;
    b->flush = 1;
    b->last_buf = last ? 1 : 0;
    b->last_in_chain = last ? 1 : 0;

    vlm_json_release(w);

    if (!last) {
        return ngx_http_vlm_stream_output(ctx, out);
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    if (lcf->inner) {
        ngx_http_vlm_hop_keep(r);
    }

    /* it is nginx's own writer that waits for the client now */

    return ngx_http_output_filter(r, out);

failed:

    vlm_json_release(w);

    return NGX_ERROR;
}


/* the client reads again, or has not read for send_timeout */

static void
ngx_http_vlm_stream_write(ngx_http_request_t *r)
{
    ngx_event_t         *wev;
    ngx_http_vlm_ctx_t  *ctx;

    wev = r->connection->write;
    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, NGX_ETIMEDOUT,
                      "client timed out");
        r->connection->timedout = 1;

        ctx->engine->calls->end(ctx, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (ngx_http_vlm_stream_output(ctx, NULL) == NGX_ERROR
        || ngx_http_vlm_stream_update(ctx) != NGX_OK)
    {
        ctx->engine->calls->end(ctx, NGX_ERROR);
    }
}


static ngx_int_t
ngx_http_vlm_stream_output(ngx_http_vlm_ctx_t *ctx, ngx_chain_t *out)
{
    ngx_int_t                  rc;
    ngx_event_t               *wev;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->request;
    wev = r->connection->write;

    rc = ngx_http_output_filter(r, out);

    ngx_chain_update_chains(r->pool, &ctx->out.free, &ctx->out.busy, &out,
                            (ngx_buf_tag_t) &ngx_http_vlm_module);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (ctx->out.busy == NULL) {

        ngx_http_vlm_timer_off(wev);

        r->write_event_handler = ngx_http_request_empty_handler;

        return NGX_OK;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    r->write_event_handler = ngx_http_vlm_stream_write;

    if (!wev->delayed) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    return ngx_handle_write_event(wev, clcf->send_lowat) == NGX_OK
           ? NGX_AGAIN : NGX_ERROR;
}


void
ngx_http_vlm_stream_waits(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t place)
{
    u_char  *p, line[sizeof(": place \n\n") + NGX_INT_T_LEN];

    p = ngx_sprintf(line, ": place %ui\n\n", place);

    vlm_json_put_raw(w, (char *) line, p - line);
}
