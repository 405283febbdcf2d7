
/*
 * GET /api/documents/ID/pages/N: a page's text and words, and as N.png its
 * picture.
 *
 * A page may be made to take all of the time that a document may take, so each
 * worker draws no more for these requests at once than documents may be read;
 * other requests for pictures that were not drawn yet wait in a line, without
 * a thread.
 */


#include "documents.h"


#define NGX_HTTP_VLM_UNPROCESSABLE  422    /* nginx has no name for it */
#define NGX_HTTP_VLM_PAGE_JSON  (64 * 1024 * 1024)     /* bytes */


/* a request for a page; in its pool */

typedef struct {
    ngx_http_vlm_ctx_t           *ctx;
    ngx_queue_t                   queue;       /* in eng->drawing.waiting */
    ngx_event_t                   timer;       /* its deadline there */
    ngx_http_vlm_draw_t           draw;
} ngx_http_vlm_page_request_t;


/* ---- the page ------------------------------------------------------------ */


/* the document of the path, if it is ready, and the number of its page */

static ngx_int_t
ngx_http_vlm_page_find(ngx_http_vlm_ctx_t *ctx, vlm_document_page_t *page,
    ngx_http_vlm_page_request_t *p, ngx_uint_t *picture)
{
    ngx_int_t              n;
    vlm_document_t         doc;
    vlm_store_text_t       id, name;
    vlm_document_client_t  client;

    client.salt = ngx_http_vlm_order_salt(&ctx->place.rank);
    client.session.data = NULL;

    ngx_http_vlm_documents_cut(ctx->place.session, &id, &name);

    *picture = name.len > 4
               && ngx_strncmp(name.data + name.len - 4, ".png", 4) == 0;

    n = ngx_atoi((u_char *) name.data, name.len - (*picture ? 4 : 0));

    ctx->stored.code = vlm_document_get(ctx->engine->store, &client, id,
                                        &doc, &ctx->stored);

    if (ctx->stored.code != VLM_STORE_OK) {
        return NGX_ERROR;
    }

    if (doc.state == VLM_DOCUMENT_FAILED) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_CONFLICT, "The document could "
                                 "not be read: %s", doc.error);
    }

    if (doc.state != VLM_DOCUMENT_READY) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_CONFLICT,
                                 "The document is still being read");
    }

    if (n < 1 || n > (ngx_int_t) doc.read) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_NOT_FOUND, "The document has "
                                 "%uD pages that were read: there is no page "
                                 "\"%*s\"", doc.read, ngx_min(name.len, 32),
                                 name.data);
    }

    ngx_memcpy(p->draw.id, doc.id, sizeof(p->draw.id));
    p->draw.number = (uint32_t) n;

    if (*picture) {
        return NGX_OK;
    }

    ctx->stored.code = vlm_document_page(ctx->engine->store, id,
                                         (uint32_t) n, page, &ctx->stored);

    return ctx->stored.code == VLM_STORE_OK ? NGX_OK : NGX_ERROR;
}


/* ---- the queue of requests whose pages are drawn ------------------------- */


static void ngx_http_vlm_page_next(ngx_http_vlm_engine_t *eng);


static ngx_int_t
ngx_http_vlm_page_send(ngx_http_vlm_page_request_t *p)
{
    ngx_str_t            path;
    ngx_uint_t           status;
    ngx_http_vlm_ctx_t  *ctx;

    ctx = p->ctx;

    if (p->draw.denied.code != VLM_OK) {
        ngx_http_vlm_log(NGX_LOG_WARN, ctx->request->connection->log, 0,
                         ctx->engine, "document %s, page %uD: %s", p->draw.id,
                         p->draw.number, p->draw.denied.text);
    }

    if (ctx->stored.code != VLM_STORE_OK) {
        return ngx_http_vlm_refuse_store(ctx->request, ctx->engine,
                                         &ctx->stored);
    }

    if (p->draw.err.code != VLM_OK) {
        ngx_http_vlm_log(ngx_http_vlm_reading_level(&p->draw.err),
                         ctx->request->connection->log, 0, ctx->engine,
                         "document %s, page %uD: %s", p->draw.id,
                         p->draw.number, p->draw.err.text);

        status = p->draw.err.code == VLM_EINPUT ? NGX_HTTP_VLM_UNPROCESSABLE
                                           : NGX_HTTP_INTERNAL_SERVER_ERROR;

        (void) ngx_http_vlm_fail(ctx, status, "The page cannot be drawn: %s",
                                 p->draw.err.code == VLM_EINPUT
                                 ? p->draw.err.text : "the reader has failed");

        return ngx_http_vlm_send_error(ctx->request, status,
                                       ctx->error.err.text);
    }

    path.data = (u_char *) p->draw.path;
    path.len = ngx_strlen(p->draw.path);

    return ngx_http_vlm_file_reply(ctx->request, &path);
}


static void
ngx_http_vlm_page_run(void *data)
{
    ngx_http_vlm_page_request_t *p = data;

    (void) ngx_http_vlm_documents_draw(&p->draw);
}


/* also if the client has left */

static void
ngx_http_vlm_page_ended(void *data)
{
    ngx_http_vlm_page_request_t *p = data;

    p->ctx->engine->drawing.running--;
    ngx_http_vlm_page_next(p->ctx->engine);
}


static void
ngx_http_vlm_page_done(ngx_http_request_t *r, void *data)
{
    ngx_http_finalize_request(r, ngx_http_vlm_page_send(data));
}


static void
ngx_http_vlm_page_leave(void *data)
{
    ngx_http_vlm_page_request_t *p = data;

    ngx_http_vlm_timer_off(&p->timer);

    if (p->queue.next) {
        ngx_queue_remove(&p->queue);
        p->queue.next = NULL;
    }
}


static void
ngx_http_vlm_page_late(ngx_event_t *ev)
{
    ngx_connection_t             *c;
    ngx_http_vlm_page_request_t  *p;

    p = ev->data;
    c = p->ctx->request->connection;

    ngx_http_set_log_request(c->log, p->ctx->request);

    ngx_http_vlm_page_leave(p);
    ngx_http_finalize_request(p->ctx->request,
                              ngx_http_vlm_refuse(p->ctx->request,
                                                  p->ctx->engine, "Too many "
                                                  "pages are being drawn"));
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_vlm_page_next(ngx_http_vlm_engine_t *eng)
{
    ngx_queue_t                  *q;
    ngx_connection_t             *c;
    ngx_http_vlm_page_request_t  *p;

    while (eng->drawing.running < eng->conf.documents.jobs
           && !ngx_queue_empty(&eng->drawing.waiting))
    {
        q = ngx_queue_head(&eng->drawing.waiting);
        p = ngx_queue_data(q, ngx_http_vlm_page_request_t, queue);
        c = p->ctx->request->connection;

        ngx_http_vlm_page_leave(p);

        if (ngx_http_vlm_thread(p->ctx->request, eng, ngx_http_vlm_page_run,
                                ngx_http_vlm_page_ended,
                                ngx_http_vlm_page_done, p)
            == NGX_OK)
        {
            eng->drawing.running++;
            continue;
        }

        ngx_http_set_log_request(c->log, p->ctx->request);
        ngx_http_finalize_request(p->ctx->request,
                                  NGX_HTTP_INTERNAL_SERVER_ERROR);
        ngx_http_run_posted_requests(c);
    }
}


/* takes a place in the queue, for the request goes on without its caller */

static ngx_int_t
ngx_http_vlm_page_wait(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_request_t           *r;
    ngx_http_vlm_page_request_t  *p;

    r = ctx->request;
    p = ctx->data;

    if (p->draw.path[0]) {
        return ngx_http_vlm_page_send(p);
    }

    if (ngx_http_vlm_documents_hold(r, ngx_http_vlm_page_leave, p) != NGX_DONE)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_vlm_event_init(&p->timer, ngx_http_vlm_page_late, p,
                            r->connection->log);

    ngx_queue_insert_tail(&ctx->engine->drawing.waiting, &p->queue);
    ngx_add_timer(&p->timer, ctx->engine->conf.queue_timeout);

    ngx_http_vlm_page_next(ctx->engine);

    return NGX_DONE;
}


/* a thread of nginx's pool: all but the drawing */

static void
ngx_http_vlm_page_get(ngx_http_vlm_ctx_t *ctx)
{
    ngx_uint_t                    picture;
    vlm_document_page_t           page;
    ngx_http_vlm_page_request_t  *p;

    p = ctx->data;

    if (ngx_http_vlm_page_find(ctx, &page, p, &picture) != NGX_OK) {
        return;
    }

    if (!picture) {
        vlm_json_init(&ctx->out.json, NGX_HTTP_VLM_PAGE_JSON);
        vlm_document_put_page(&ctx->out.json, &page);
        vlm_document_page_free(&page);
        return;
    }

    if (vlm_document_picture_find(ctx->engine->store, p->draw.id,
                                  p->draw.number,
                                  ngx_http_vlm_documents_pixels(ctx->engine),
                                  p->draw.path, NULL)
        != VLM_STORE_OK)
    {
        p->draw.path[0] = '\0';
    }

    ctx->send = ngx_http_vlm_page_wait;
}


ngx_int_t
ngx_http_vlm_documents_page_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    ngx_http_vlm_ctx_t           *ctx;
    ngx_http_vlm_page_request_t  *p;

    ctx = ngx_http_vlm_ctx(r);
    p = ctx ? ngx_pcalloc(r->pool, sizeof(ngx_http_vlm_page_request_t)) : NULL;

    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->data = p;

    p->ctx = ctx;
    p->draw.engine = eng;
    p->draw.stored = &ctx->stored;

    return ngx_http_vlm_work(r, eng, piece, ngx_http_vlm_page_get);
}
