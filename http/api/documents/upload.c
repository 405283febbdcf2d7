
/*
 * The uploads of a PDF service.  POST /upload is that of its gateway: it stores
 * a file and answers once that was read.  POST /process-pdf is that of the
 * service behind the gateway: it reads a file that /api/upload has stored.
 *
 * A request that waits for the reading has no thread: a timer looks at the
 * zone's count of readings that have ended, and asks the store after a change.
 */


#include "documents.h"
#include "api/wrong.h"


#define NGX_HTTP_VLM_UPLOAD_WRONG  422     /* status: fields are wrong */
#define NGX_HTTP_VLM_UPLOAD_LOOK  50       /* ms */
#define NGX_HTTP_VLM_UPLOAD_ASK   1000     /* ms, without a change, too */


/* a request that waits; in its pool */

typedef struct {
    ngx_http_vlm_ctx_t           *ctx;
    ngx_event_t                   timer;
    ngx_msec_t                    from;        /* since when */
    ngx_msec_t                    asked;       /* the store, last */
    ngx_atomic_uint_t             ended;       /* readings, by then */
    vlm_document_t                doc;
    char                          session[VLM_STORE_ID + 1];
    ngx_uint_t                    process;     /* /process-pdf */
} ngx_http_vlm_upload_wait_t;


/* ---- threads ------------------------------------------------------------- */


/* other files than PDF fail when they are read, as they did there */

static void
ngx_http_vlm_documents_upload(ngx_http_vlm_ctx_t *ctx)
{
    vlm_store_text_t             none;
    vlm_multipart_form_t         form;
    vlm_document_upload_t        up;
    ngx_http_vlm_upload_wait_t  *p;

    p = ctx->data;

    ngx_memzero(&none, sizeof(vlm_store_text_t));

    if (ngx_http_vlm_documents_form(ctx, "No file uploaded. Use form field "
                                    "name 'file'.", &form, &up)
        == NGX_OK)
    {
        (void) ngx_http_vlm_documents_keep(ctx, none, &up, &p->doc, p->session);
    }
}


/* the bytes of an upload, which lies in the store's own folder */

static ngx_int_t
ngx_http_vlm_process_file(ngx_http_vlm_ctx_t *ctx, const char *name,
    const char *session)
{
    vlm_file_t                   file;
    vlm_store_file_t             found;
    vlm_document_upload_t        up;
    ngx_http_vlm_upload_wait_t  *p;

    p = ctx->data;

    if (vlm_store_upload_find(ctx->engine->store, vlm_store_string(name),
                              &found, &ctx->stored)
        != VLM_STORE_OK)
    {
        ctx->stored.code = VLM_STORE_OK;

        return ngx_http_vlm_fail(ctx, NGX_HTTP_NOT_FOUND, "filePath is not a "
                                 "file that was uploaded to this server");
    }

    if (vlm_file_map(&file, found.path, O_NOFOLLOW,
                     ctx->engine->conf.documents.file)
        != 0)
    {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 "The upload cannot be read");
    }

    up.data = file.data;
    up.bytes = file.bytes;
    up.salt = ngx_http_vlm_order_salt(&ctx->place.rank);
    up.name = vlm_store_string(found.name);

    (void) ngx_http_vlm_documents_keep(ctx, vlm_store_string(session), &up,
                                       &p->doc, p->session);

    vlm_file_close(&file);

    return NGX_OK;
}


/* the loop: the body was not as FastAPI wants it */

static ngx_int_t
ngx_http_vlm_process_wrong(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->out.json.failed) {

        /* the body is too long to be sent back */

        vlm_json_release(&ctx->out.json);

        return ngx_http_vlm_send_error(ctx->request, NGX_HTTP_VLM_UPLOAD_WRONG,
                                       "A field is missing, or is not a "
                                       "string");
    }

    return ngx_http_vlm_send_json(ctx->request, NGX_HTTP_VLM_UPLOAD_WRONG,
                                  &ctx->out.json);
}


static void
ngx_http_vlm_documents_process(ngx_http_vlm_ctx_t *ctx)
{
    vlm_err_t    err;
    vlm_json_t  *json;
    const char  *name, *session;

    static const vlm_wrong_field_t  fields[] = {
        { "filePath", 0 }, { "sessionId", 1 }, { NULL, 0 }
    };

    if (ngx_http_vlm_body_get(ctx) != NGX_OK) {
        return;
    }

    json = NULL;

    if (ctx->body.len) {
        err.code = VLM_OK;
        json = vlm_json_parse(ctx->body.data, ctx->body.len, &err);

        if (json == NULL) {
            vlm_wrong_json(&ctx->out.json, err.text, err.text);
            ctx->send = ngx_http_vlm_process_wrong;
            return;
        }
    }

    if (vlm_wrong_strings(json, fields, &ctx->out.json, &err) != 0) {
        ctx->send = ngx_http_vlm_process_wrong;

    } else {
        name = vlm_json_text(vlm_json_get(json, "filePath"));
        session = vlm_json_text(vlm_json_get(json, "sessionId"));

        (void) ngx_http_vlm_process_file(ctx, name, session);
    }

    vlm_json_free(json);
}


static void
ngx_http_vlm_upload_get(void *data)
{
    ngx_http_vlm_upload_wait_t *p = data;

    vlm_document_client_t  client;

    client.salt = ngx_http_vlm_order_salt(&p->ctx->place.rank);
    client.session = ngx_http_vlm_order_session(p->ctx,
                                                vlm_store_string(p->session));

    p->ctx->stored.code = vlm_document_get(p->ctx->engine->store, &client,
                                           vlm_store_string(p->doc.id),
                                           &p->doc, &p->ctx->stored);
}


/* ---- the loop ------------------------------------------------------------ */


/* an error as both services write it; one that is still being read keeps its
   session, which can be asked later */

static ngx_int_t
ngx_http_vlm_upload_failed(ngx_http_vlm_upload_wait_t *p, ngx_uint_t status,
    const char *error, const char *reason)
{
    vlm_json_out_t  *w;

    w = &p->ctx->out.json;

    vlm_json_init(w, NGX_HTTP_VLM_DOCUMENTS_JSON);
    vlm_json_open(w, '{');
    vlm_json_add_string(w, p->process ? "detail" : "details", reason);
    vlm_json_add_string(w, "error", error);

    if (status == NGX_HTTP_GATEWAY_TIME_OUT) {
        vlm_json_add_string(w, "sessionId", p->session);
    }

    vlm_json_shut(w, '}');

    return ngx_http_vlm_send_json(p->ctx->request, status, w);
}


/* the document is ready: the sentences are the service's */

static ngx_int_t
ngx_http_vlm_upload_answer(ngx_http_vlm_upload_wait_t *p)
{
    vlm_json_out_t  *w;

    w = &p->ctx->out.json;

    vlm_json_init(w, NGX_HTTP_VLM_DOCUMENTS_JSON);
    vlm_json_open(w, '{');

    if (!p->process) {
        vlm_json_add_string(w, "filename", p->doc.name);
        vlm_json_add_string(w, "message",
                            "PDF uploaded & processed successfully!");
        vlm_json_add_string(w, "sessionId", p->session);

    } else if (p->doc.n_chunks == 0) {
        vlm_json_add_string(w, "error", "No text chunks generated from the "
                            "PDF. Please check your file.");

    } else {
        vlm_json_add_string(w, "message", "PDF processed successfully");
        vlm_json_add_string(w, "sessionId", p->session);
    }

    vlm_json_shut(w, '}');

    return ngx_http_vlm_send_json(p->ctx->request, NGX_HTTP_OK, w);
}


/* ms that a document may wait for its reader, and be read on a busy machine */

static ngx_msec_t
ngx_http_vlm_upload_most(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_documents_conf_t  *conf;

    conf = &eng->conf.documents;

    return eng->conf.queue_timeout
           + 1000 * VLM_PDF_SHARE
             * ((ngx_msec_t) conf->seconds
                + (conf->languages ? conf->ocr_seconds : 0));
}


/* NGX_AGAIN: the reading goes on, and the timer was set */

static ngx_int_t
ngx_http_vlm_upload_check(ngx_http_vlm_upload_wait_t *p)
{
    ngx_http_vlm_engine_t  *eng;

    eng = p->ctx->engine;

    if (p->ctx->stored.code != VLM_STORE_OK) {
        return ngx_http_vlm_refuse_store(p->ctx->request, eng,
                                         &p->ctx->stored);
    }

    if (p->doc.state == VLM_DOCUMENT_READY) {
        return ngx_http_vlm_upload_answer(p);
    }

    if (p->doc.state == VLM_DOCUMENT_FAILED) {
        return ngx_http_vlm_upload_failed(p, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                          "PDF processing failed",
                                          p->doc.error);
    }

    if (ngx_current_msec - p->from > ngx_http_vlm_upload_most(eng)) {
        return ngx_http_vlm_upload_failed(p, NGX_HTTP_GATEWAY_TIME_OUT,
                                          "PDF processing takes longer",
                                          "it is still being read");
    }

    ngx_add_timer(&p->timer, NGX_HTTP_VLM_UPLOAD_LOOK);

    return NGX_AGAIN;
}


static void
ngx_http_vlm_upload_asked(ngx_http_request_t *r, void *data)
{
    ngx_int_t  rc;

    rc = ngx_http_vlm_upload_check(data);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


static void
ngx_http_vlm_upload_timer(ngx_event_t *ev)
{
    ngx_connection_t            *c;
    ngx_http_request_t          *r;
    ngx_http_vlm_engine_t       *eng;
    ngx_http_vlm_upload_wait_t  *p;

    p = ev->data;
    r = p->ctx->request;
    c = r->connection;
    eng = p->ctx->engine;

    if (p->ended == eng->zone->documents.ended
        && ngx_current_msec - p->asked < NGX_HTTP_VLM_UPLOAD_ASK)
    {
        ngx_add_timer(ev, NGX_HTTP_VLM_UPLOAD_LOOK);
        return;
    }

    p->ended = eng->zone->documents.ended;
    p->asked = ngx_current_msec;

    if (ngx_http_vlm_thread(r, eng, ngx_http_vlm_upload_get, NULL,
                            ngx_http_vlm_upload_asked, p)
        != NGX_OK)
    {
        ngx_http_set_log_request(c->log, r);
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        ngx_http_run_posted_requests(c);
    }
}


static void
ngx_http_vlm_upload_leave(void *data)
{
    ngx_http_vlm_upload_wait_t *p = data;

    ngx_http_vlm_timer_off(&p->timer);
}


/* the file was stored; its client may leave, and it is read all the same */

static ngx_int_t
ngx_http_vlm_upload_wait(ngx_http_vlm_ctx_t *ctx)
{
    ngx_int_t                    rc;
    ngx_http_vlm_upload_wait_t  *p;

    p = ctx->data;

    ngx_http_vlm_event_init(&p->timer, ngx_http_vlm_upload_timer, p,
                            ctx->request->connection->log);

    p->from = ngx_current_msec;
    p->asked = ngx_current_msec;

    rc = ngx_http_vlm_upload_check(p);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    rc = ngx_http_vlm_documents_hold(ctx->request, ngx_http_vlm_upload_leave,
                                     p);
    if (rc != NGX_DONE) {
        ngx_http_vlm_upload_leave(p);
    }

    return rc;
}


static ngx_int_t
ngx_http_vlm_upload_begin(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece, ngx_http_vlm_run_t *run, ngx_uint_t process)
{
    ngx_int_t                    rc;
    ngx_http_vlm_ctx_t          *ctx;
    ngx_http_vlm_upload_wait_t  *p;

    rc = ngx_http_vlm_documents_admit(r, eng);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ctx = ngx_http_vlm_ctx(r);
    p = ctx ? ngx_pcalloc(r->pool, sizeof(ngx_http_vlm_upload_wait_t)) : NULL;

    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->data = p;
    ctx->send = ngx_http_vlm_upload_wait;

    p->ctx = ctx;
    p->process = process;
    p->ended = eng->zone->documents.ended;

    return ngx_http_vlm_work(r, eng, piece, run);
}


ngx_int_t
ngx_http_vlm_documents_upload_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_upload_begin(r, eng, piece,
                                     ngx_http_vlm_documents_upload, 0);
}


ngx_int_t
ngx_http_vlm_documents_process_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_upload_begin(r, eng, piece,
                                     ngx_http_vlm_documents_process, 1);
}
