
/*
 * Documents: PDF files in sessions.  The native endpoints, and those of a PDF
 * service (a gateway on /upload, and behind it /process-pdf).
 */


#ifndef _NGX_HTTP_VLM_DOCUMENTS_API_H_INCLUDED_
#define _NGX_HTTP_VLM_DOCUMENTS_API_H_INCLUDED_


#include "../api.h"
#include "store/document_json.h"


#define NGX_HTTP_VLM_DOCUMENTS_JSON  (64 * 1024)   /* bytes, of one */


/* ---- documents.c: documents in sessions ---------------------------------- */

/* loop, before a body is read: NGX_DECLINED, or the refusal was sent */

ngx_int_t ngx_http_vlm_documents_admit(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng);

/* thread: a form with a file, which up is set to, and perhaps "session_id";
   none: the sentence if there is no file; NGX_ERROR: the request has ended */

ngx_int_t ngx_http_vlm_documents_form(ngx_http_vlm_ctx_t *ctx,
    const char *none, vlm_multipart_form_t *form, vlm_document_upload_t *up);

/*
 * thread: adds a file to a session, which is made if there is none, a new one
 * if its data is NULL; id has the session's.  NGX_ERROR: the request has ended,
 * and a new session was deleted.
 */

ngx_int_t ngx_http_vlm_documents_keep(ngx_http_vlm_ctx_t *ctx,
    vlm_store_text_t session, const vlm_document_upload_t *up,
    vlm_document_t *doc, char id[VLM_STORE_ID + 1]);

/* loop: the request goes on without its caller; leave(data) is called at its
   end; the return value of a content handler */

ngx_int_t ngx_http_vlm_documents_hold(ngx_http_request_t *r,
    void (*leave)(void *data), void *data);

/* "A/word/B" of a path: A and B */

void ngx_http_vlm_documents_cut(vlm_store_text_t piece,
    vlm_store_text_t *first, vlm_store_text_t *last);


/* ---- draw.c: pictures of pages ------------------------------------------- */

/* pixels of a page's picture at most, for the model and for people */

uint32_t ngx_http_vlm_documents_pixels(ngx_http_vlm_engine_t *eng);

typedef struct {
    ngx_http_vlm_engine_t        *engine;
    char                          id[37];      /* of the document */
    uint32_t                      number;      /* of the page, from 1 */

    /* of a page for a prompt, else 0 and NULL */
    uint64_t                      until;       /* us, of vlm_now_us() */
    const ngx_atomic_t           *abandoned;   /* nonzero: draws no more */

    /* out */
    char                          path[VLM_STORE_PATH];
    vlm_store_err_t              *stored;      /* the caller's */
    vlm_err_t                     err;
    vlm_err_t                     denied;      /* as in vlm_reader_t, also of
                                                  a page that was drawn */
} ngx_http_vlm_draw_t;

/* the time that the pages of a prompt have from now on: a value for until */

uint64_t ngx_http_vlm_documents_until(void);

/*
 * A thread that may sleep: the path of a page's picture, which is drawn if it
 * was not yet.  0; -1: stored has an error of the store, or err says why the
 * page cannot be drawn: VLM_ELIMIT if other prompts' pages are being drawn,
 * and VLM_ECANCELLED after "abandoned", or when the worker exits.  Failures
 * and pages that were too slow are remembered for a while, and not repeated.
 */

int ngx_http_vlm_documents_draw(ngx_http_vlm_draw_t *d);


#endif /* _NGX_HTTP_VLM_DOCUMENTS_API_H_INCLUDED_ */
