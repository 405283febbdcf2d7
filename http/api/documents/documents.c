
/*
 * Documents in sessions: POST /api/documents stores a PDF file, which the
 * designated worker reads; GET shows how far that is; PUT and DELETE give it to
 * other sessions or remove it.
 *
 * Equal files of the same salt are one document.  Another salt's is not found,
 * and each session sees its own name for it.
 */


#include "documents.h"


#define NGX_HTTP_VLM_FORM  65536           /* bytes around a file in a form */
#define NGX_HTTP_VLM_HEAD  1024            /* bytes in which "%PDF-" stands */
#define NGX_HTTP_VLM_LINK  4096            /* bytes that name a document */


/* ---- in ------------------------------------------------------------------ */


static ngx_int_t
ngx_http_vlm_documents_large(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng)
{
    u_char  text[128];

    (void) ngx_snprintf(text, sizeof(text) - 1, "The file is larger than %uL "
                        "bytes%Z", eng->conf.documents.file);

    ngx_http_vlm_metrics_refused(r, eng, NGX_HTTP_VLM_LIMIT, (char *) text);

    return ngx_http_vlm_send_error(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                   (char *) text);
}


static ngx_int_t
ngx_http_vlm_documents_full(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng)
{
    u_char  text[128];

    (void) ngx_snprintf(text, sizeof(text) - 1, "%uA documents wait to be "
                        "read%Z",
                        eng->zone->documents.states[VLM_DOCUMENT_WAITING]);

    ngx_http_vlm_metrics_refused(r, eng, NGX_HTTP_VLM_QUEUE_FULL,
                                 (char *) text);

    if (ngx_http_vlm_retry_after(r, eng->conf.documents.seconds) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_vlm_send_error(r, NGX_HTTP_TOO_MANY_REQUESTS,
                                   (char *) text);
}


ngx_int_t
ngx_http_vlm_documents_admit(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng)
{
    if (eng->zone->documents.states[VLM_DOCUMENT_WAITING]
        >= eng->conf.queue_size)
    {
        return ngx_http_vlm_documents_full(r, eng);
    }

    if (r->headers_in.content_length_n
        > (off_t) eng->conf.documents.file + NGX_HTTP_VLM_FORM)
    {
        return ngx_http_vlm_documents_large(r, eng);
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_vlm_documents_form(ngx_http_vlm_ctx_t *ctx, const char *none,
    vlm_multipart_form_t *form, vlm_document_upload_t *up)
{
    if (ngx_http_vlm_work_form(ctx, "session_id", form) != NGX_OK) {
        return NGX_ERROR;
    }

    if (form->file.data == NULL) {
        return ngx_http_vlm_fail_input(ctx, "%s", none);
    }

    if (form->file.bytes > ctx->engine->conf.documents.file) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                 "The file is larger than %uL bytes",
                                 ctx->engine->conf.documents.file);
    }

    up->data = form->file.data;
    up->bytes = form->file.bytes;
    up->salt = ngx_http_vlm_order_salt(&ctx->place.rank);
    up->name.data = form->file.filename;
    up->name.len = form->file.filename_len;

    return NGX_OK;
}


static int
ngx_http_vlm_documents_session(ngx_http_vlm_ctx_t *ctx,
    vlm_store_text_t session, char id[VLM_STORE_ID + 1])
{
    int  rc;

    if (session.data == NULL) {
        return vlm_store_session_create(ctx->engine->store,
                                    ngx_http_vlm_order_salt(&ctx->place.rank),
                                    id, &ctx->stored);
    }

    rc = vlm_store_id(session, &ctx->stored);

    if (rc == VLM_STORE_OK) {
        ngx_memcpy(id, session.data, session.len);
        id[session.len] = '\0';

        rc = vlm_store_session_ensure(ctx->engine->store,
                                      ngx_http_vlm_order_session(ctx, session),
                                      &ctx->stored);
    }

    return rc;
}


ngx_int_t
ngx_http_vlm_documents_keep(ngx_http_vlm_ctx_t *ctx, vlm_store_text_t session,
    const vlm_document_upload_t *up, vlm_document_t *doc,
    char id[VLM_STORE_ID + 1])
{
    int                rc;
    vlm_store_t       *st;
    vlm_store_text_t   name;

    st = ctx->engine->store;

    rc = ngx_http_vlm_documents_session(ctx, session, id);

    if (rc == VLM_STORE_OK) {
        name = ngx_http_vlm_order_session(ctx, vlm_store_string(id));

        rc = vlm_document_add(st, name, up, doc, &ctx->stored);

        if (rc != VLM_STORE_OK && session.data == NULL) {
            (void) vlm_store_session_delete(st, name, NULL);
        }
    }

    ctx->stored.code = rc;

    if (rc != VLM_STORE_OK) {
        return NGX_ERROR;
    }

    ngx_http_vlm_zone_store(ctx->engine, NULL);

    (void) ngx_http_vlm_zone_sessions(ctx->engine, NULL);
    ngx_http_vlm_reading_count(ctx->engine);

    if (doc->state == VLM_DOCUMENT_WAITING) {
        ngx_http_vlm_reading_added(ctx->engine);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_documents_accepted(ngx_http_vlm_ctx_t *ctx)
{
    return ngx_http_vlm_send_json(ctx->request, NGX_HTTP_ACCEPTED,
                                  &ctx->out.json);
}


static void
ngx_http_vlm_documents_add(ngx_http_vlm_ctx_t *ctx)
{
    char                    id[VLM_STORE_ID + 1];
    vlm_document_t          doc;
    vlm_json_out_t         *w;
    vlm_store_text_t        session;
    vlm_multipart_form_t    form;
    vlm_document_upload_t   up;

    if (ngx_http_vlm_documents_form(ctx, "No file part", &form, &up) != NGX_OK)
    {
        return;
    }

    if (memmem(form.file.data, ngx_min(form.file.bytes, NGX_HTTP_VLM_HEAD),
               "%PDF-", 5)
        == NULL)
    {
        (void) ngx_http_vlm_fail_input(ctx, "Not a PDF");
        return;
    }

    session.data = form.text;
    session.len = form.text_bytes;

    if (ngx_http_vlm_documents_keep(ctx, session, &up, &doc, id) != NGX_OK) {
        return;
    }

    ctx->send = ngx_http_vlm_documents_accepted;

    w = &ctx->out.json;

    vlm_json_init(w, NGX_HTTP_VLM_DOCUMENTS_JSON);
    vlm_json_open(w, '{');
    vlm_json_add_int(w, "bytes", doc.bytes);
    vlm_json_add_string(w, "error", doc.error[0] ? doc.error : NULL);
    vlm_json_add_string(w, "id", doc.id);
    vlm_json_add_string(w, "name", doc.name);
    vlm_json_add_string(w, "session_id", id);
    vlm_json_add_string(w, "state", ngx_http_vlm_document_states[doc.state]);
    vlm_json_shut(w, '}');
}


ngx_int_t
ngx_http_vlm_documents_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    ngx_int_t  rc;

    rc = ngx_http_vlm_documents_admit(r, eng);

    return rc != NGX_DECLINED
           ? rc : ngx_http_vlm_work(r, eng, piece, ngx_http_vlm_documents_add);
}


/* ---- out ----------------------------------------------------------------- */


ngx_int_t
ngx_http_vlm_documents_hold(ngx_http_request_t *r, void (*leave)(void *data),
    void *data)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = leave;
    cln->data = data;

    r->main->count++;
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    return NGX_DONE;
}


/* the session that the argument session_id names */

static ngx_int_t
ngx_http_vlm_documents_client(ngx_http_vlm_ctx_t *ctx,
    vlm_document_client_t *client)
{
    u_char     *src, *dst, id[3 * VLM_STORE_ID];
    ngx_str_t   value;

    client->salt = ngx_http_vlm_order_salt(&ctx->place.rank);
    client->session.data = NULL;

    if (ngx_http_arg(ctx->request, (u_char *) "session_id", 10, &value)
        != NGX_OK)
    {
        return NGX_OK;
    }

    if (value.len > 3 * VLM_STORE_ID) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_NOT_FOUND, "Session not found");
    }

    src = value.data;
    dst = id;

    ngx_unescape_uri(&dst, &src, value.len, 0);

    client->session.data = (char *) id;
    client->session.len = dst - id;
    client->session = ngx_http_vlm_order_session(ctx, client->session);

    return NGX_OK;
}


void
ngx_http_vlm_documents_get(ngx_http_vlm_ctx_t *ctx)
{
    vlm_document_t         doc;
    vlm_document_client_t  client;

    if (ngx_http_vlm_documents_client(ctx, &client) != NGX_OK) {
        return;
    }

    ctx->stored.code = vlm_document_get(ctx->engine->store, &client,
                                        ctx->place.session, &doc,
                                        &ctx->stored);

    if (ctx->stored.code == VLM_STORE_OK) {
        vlm_json_init(&ctx->out.json, NGX_HTTP_VLM_DOCUMENTS_JSON);
        vlm_document_put(&ctx->out.json, &doc,
                         ngx_http_vlm_document_states[doc.state]);
    }
}


/* the piece is "SESSION" */

void
ngx_http_vlm_documents_list(ngx_http_vlm_ctx_t *ctx)
{
    size_t           i, n;
    vlm_json_out_t  *w;
    vlm_document_t  *docs;

    docs = malloc(VLM_DOCUMENT_MAX * sizeof(vlm_document_t));

    if (docs == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "a list of documents");
        return;
    }

    ctx->stored.code = vlm_document_list(ctx->engine->store,
                           ngx_http_vlm_order_session(ctx, ctx->place.session),
                           docs, &n, &ctx->stored);

    if (ctx->stored.code == VLM_STORE_OK) {
        w = &ctx->out.json;

        vlm_json_init(w, VLM_DOCUMENT_MAX * NGX_HTTP_VLM_DOCUMENTS_JSON);
        vlm_json_open(w, '{');
        vlm_json_add_open(w, "documents", '[');

        for (i = 0; i < n; i++) {
            vlm_document_put(w, &docs[i],
                             ngx_http_vlm_document_states[docs[i].state]);
        }

        vlm_json_shut(w, ']');
        vlm_json_shut(w, '}');
    }

    free(docs);
}


/* ---- in other sessions, and removed -------------------------------------- */


void
ngx_http_vlm_documents_cut(vlm_store_text_t piece, vlm_store_text_t *first,
    vlm_store_text_t *last)
{
    const char  *slash;

    slash = memchr(piece.data, '/', piece.len);

    first->data = piece.data;
    first->len = slash - piece.data;

    slash = memrchr(piece.data, '/', piece.len);

    last->data = slash + 1;
    last->len = piece.data + piece.len - last->data;
}


static void
ngx_http_vlm_documents_status(ngx_http_vlm_ctx_t *ctx, const char *status)
{
    vlm_json_out_t  *w;

    if (ctx->stored.code != VLM_STORE_OK) {
        return;
    }

    ngx_http_vlm_zone_store(ctx->engine, NULL);

    w = &ctx->out.json;

    vlm_json_init(w, NGX_HTTP_VLM_DOCUMENTS_JSON);
    vlm_json_open(w, '{');
    vlm_json_add_string(w, "status", status);
    vlm_json_shut(w, '}');
}


/* a body, which need not be there, is {"name": a string} */

static ngx_int_t
ngx_http_vlm_documents_link_body(ngx_http_vlm_ctx_t *ctx, vlm_json_t **json)
{
    const vlm_json_t  *name;

    *json = NULL;

    if (ngx_http_vlm_body_get(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->body.len == 0) {
        return NGX_OK;
    }

    *json = ngx_http_vlm_work_json(ctx, NGX_HTTP_VLM_LINK);

    if (*json == NULL) {
        return NGX_ERROR;
    }

    name = vlm_json_get(*json, "name");

    return vlm_json_is_object(*json)
           && (vlm_json_is_null(name) || vlm_json_text(name))
           ? NGX_OK
           : ngx_http_vlm_fail_input(ctx, "The body must be an object whose "
                                     "\"name\" is a string");
}


void
ngx_http_vlm_documents_link(ngx_http_vlm_ctx_t *ctx)
{
    vlm_json_t             *json;
    const char             *name;
    vlm_store_text_t        id;
    vlm_document_client_t   client;

    if (ngx_http_vlm_documents_link_body(ctx, &json) == NGX_OK) {

        client.salt = ngx_http_vlm_order_salt(&ctx->place.rank);
        ngx_http_vlm_documents_cut(ctx->place.session, &client.session, &id);
        client.session = ngx_http_vlm_order_session(ctx, client.session);

        name = json ? vlm_json_text(vlm_json_get(json, "name")) : NULL;

        ctx->stored.code = vlm_document_link(ctx->engine->store, &client, id,
                                             vlm_store_string(name ? name : ""),
                                             &ctx->stored);

        ngx_http_vlm_documents_status(ctx, "added");
    }

    vlm_json_free(json);
}


void
ngx_http_vlm_documents_unlink(ngx_http_vlm_ctx_t *ctx)
{
    vlm_store_text_t  session, id;

    ngx_http_vlm_documents_cut(ctx->place.session, &session, &id);

    ctx->stored.code = vlm_document_unlink(ctx->engine->store,
                                      ngx_http_vlm_order_session(ctx, session),
                                      id, &ctx->stored);

    ngx_http_vlm_documents_status(ctx, "removed");
}


void
ngx_http_vlm_documents_delete(ngx_http_vlm_ctx_t *ctx)
{
    vlm_document_client_t  client;

    if (ngx_http_vlm_documents_client(ctx, &client) != NGX_OK) {
        return;
    }

    ctx->stored.code = vlm_document_delete(ctx->engine->store, &client,
                                           ctx->place.session, &ctx->stored);

    ngx_http_vlm_documents_status(ctx, "deleted");

    if (ctx->stored.code == VLM_STORE_OK) {
        ngx_http_vlm_reading_count(ctx->engine);
    }
}
