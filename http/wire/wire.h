
/*
 * HTTP: bodies, headers, whole answers, streams, refusals.  Its files may call
 * life/.
 */


#ifndef _NGX_HTTP_VLM_WIRE_H_INCLUDED_
#define _NGX_HTTP_VLM_WIRE_H_INCLUDED_


#include "../life/life.h"
#include "api/error.h"


/* ---- engines.c: the engines of a location -------------------------------- */

/* any thread: from 0 on, in the order of vlm_pass; or NULL */

ngx_http_vlm_engine_t *ngx_http_vlm_engine_at(ngx_http_request_t *r,
    ngx_uint_t i);

/* the engine that the request is for, the first if it is for none; NULL: the
   location has none */

ngx_http_vlm_engine_t *ngx_http_vlm_engine_of(ngx_http_request_t *r);


/* ---- body.c: the body as one range of bytes ------------------------------ */

/*
 * Reads the body of r, then calls post, which finalizes.  Returns as a
 * content handler does.
 */

ngx_int_t ngx_http_vlm_body_read(ngx_http_request_t *r,
    ngx_http_client_body_handler_pt post);

/* in a thread, for nginx keeps large bodies in files: data and len of
   ctx->body, from its "from"; NGX_ERROR: the request has failed */

ngx_int_t ngx_http_vlm_body_get(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_body_free(ngx_http_vlm_body_t *body);    /* idempotent */


/* ---- header.c: headers by name ------------------------------------------- */

/* key is constant; the value ends with a zero, and lives as long as the
   request */

ngx_int_t ngx_http_vlm_add_header(ngx_http_request_t *r, const char *key,
    const char *value);
ngx_int_t ngx_http_vlm_retry_after(ngx_http_request_t *r, ngx_uint_t seconds);

/* a header of the request, or of a list, by its name in lower case; or NULL */

#define ngx_http_vlm_header(r, name)                                          \
    ngx_http_vlm_header_in(&(r)->headers_in.headers, name)

ngx_table_elt_t *ngx_http_vlm_header_in(ngx_list_t *headers, const char *name);

/* does the Accept header of the request have this type? */

ngx_uint_t ngx_http_vlm_accepts(ngx_http_request_t *r, const char *type);


/* ---- reply.c: whole answers ---------------------------------------------- */

/* of r, made if there is none yet; NULL: no memory */

ngx_http_vlm_ctx_t *ngx_http_vlm_ctx(ngx_http_request_t *r);

/*
 * An answer as a whole, the return value of a content handler.  json must
 * live as long as the request (its pool, or constant).  The body of the
 * request is discarded if it was not read.
 */

ngx_int_t ngx_http_vlm_send(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *json);

/* the same from a writer, which it ends; takes its memory over in any case */

ngx_int_t ngx_http_vlm_send_json(ngx_http_request_t *r, ngx_uint_t status,
    vlm_json_out_t *w);

/* what a writer has written, for as long as the request lives; takes its
   memory over in any case */

ngx_int_t ngx_http_vlm_keep_json(ngx_http_request_t *r, vlm_json_out_t *w,
    ngx_str_t *json);

/* the answer by ctx->dialect, whole or as the end of a stream: any thread, its
   JSON, once; loop: sent, with the return value of a content handler */

void ngx_http_vlm_write_answer(ngx_http_vlm_ctx_t *ctx);
ngx_int_t ngx_http_vlm_send_answer(ngx_http_vlm_ctx_t *ctx);

/* {"error": text}, "detail" on the LoRA service's paths, or what OpenAI's
   clients read, below /v1/; text is escaped and needs not live on */

ngx_int_t ngx_http_vlm_send_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *text);

/* the body of such an answer, in the request's pool */

ngx_int_t ngx_http_vlm_error_body(ngx_http_request_t *r, ngx_uint_t status,
    const char *text, ngx_str_t *body);


/* ---- refuse.c: refusals common to all APIs ------------------------------- */

/* the inner server's answer after its worker released the model */

ngx_int_t ngx_http_vlm_refuse_moved(ngx_http_request_t *r);

/* 503, counted and logged: the model is not available */

ngx_int_t ngx_http_vlm_refuse(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, const char *text);

ngx_int_t ngx_http_vlm_refuse_full(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng);               /* the 429 */

/* logs the store's error, and answers with its status and a text without
   paths; the return value of a content handler */

ngx_int_t ngx_http_vlm_refuse_store(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, vlm_store_err_t *err);

/* any worker, before a body is read: NGX_DECLINED: the request is admitted; or
   the refusal was sent: its return value as of a content handler */

ngx_int_t ngx_http_vlm_refuse_failing(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng);


/* ---- error.c: the error of a request, in OpenAI's form, too -------------- */

/*
 * Any thread: each ends the request with this status and text, and returns
 * NGX_ERROR; code is for OpenAI's clients, constant or NULL.  An error of the
 * loop is then to be sent by ngx_http_vlm_fail_answer().
 */

ngx_int_t ngx_http_vlm_fail_code(ngx_http_vlm_ctx_t *ctx, ngx_uint_t status,
    const char *code, const char *fmt, ...);

#define ngx_http_vlm_fail(ctx, status, ...)                                   \
    ngx_http_vlm_fail_code(ctx, status, NULL, __VA_ARGS__)
#define ngx_http_vlm_fail_input(ctx, ...)                                     \
    ngx_http_vlm_fail(ctx, NGX_HTTP_BAD_REQUEST, __VA_ARGS__)
#define ngx_http_vlm_fail_memory(ctx, what)                                   \
    ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,                    \
                      "No memory for " what)

/* the engine has refused the request, ctx->error.err has the reason: 400 for
   the client's fault, with a code each, else 500 */

ngx_int_t ngx_http_vlm_fail_engine(ngx_http_vlm_ctx_t *ctx,
    const char *input, const char *limit);

/* names the field of the error that comes next */

void ngx_http_vlm_fail_param(ngx_http_vlm_ctx_t *ctx, const char *fmt, ...);

/* there is no error any more */

void ngx_http_vlm_fail_clear(ngx_http_vlm_ctx_t *ctx);

/* do clients of this path read errors of this form? */

ngx_uint_t ngx_http_vlm_openai_speaks(const ngx_str_t *uri);

/* {"error": {...}}; ctx, which may be NULL, has a code and a field; chunk: of
   a stream of chunks, whose choice ends with it */

void ngx_http_vlm_openai_put_error(vlm_json_out_t *w,
    ngx_http_vlm_ctx_t *ctx, ngx_uint_t status, const char *text,
    ngx_uint_t chunk);


/* ---- stream.c: an answer as events --------------------------------------- */

/* called once the request is in the queue: the queue position is sent in
   time */

void ngx_http_vlm_stream_watch(ngx_http_vlm_ctx_t *ctx);

/* ctx->out.text has grown: sends the new text, unless a chunk is in flight;
   NGX_ERROR: the request should be finalized */

ngx_int_t ngx_http_vlm_stream_update(ngx_http_vlm_ctx_t *ctx);

/* what w has, whose memory is taken over, and with "last" the end; or an error
   as the last event; the return value of a content handler */

ngx_int_t ngx_http_vlm_stream_send(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last);
ngx_int_t ngx_http_vlm_stream_error(ngx_http_vlm_ctx_t *ctx,
    ngx_uint_t status, const char *text);

/* for dialects: begins an event of SSE, by "" or "event: NAME\n"; its JSON
   follows, and ..._end() ends it */

#define ngx_http_vlm_stream_event(w, name)                                    \
    vlm_json_put_raw(w, name "data: ", sizeof(name "data: ") - 1)
#define ngx_http_vlm_stream_end(w)  vlm_json_put_raw(w, "\n\n", 2)

/* ": place N", a comment of SSE: for "waits" */

void ngx_http_vlm_stream_waits(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t place);


/* ---- filter.c: nginx's own error pages as JSON --------------------------- */

ngx_int_t ngx_http_vlm_filter_init(ngx_conf_t *cf);


/* ---- hop.c: the outcome of a request, for the log of the outer server ---- */

/* inner server, before the last bytes of a stream */

void ngx_http_vlm_hop_keep(ngx_http_request_t *r);

/* the outcome of the request's own run, as a header has it; NGX_DECLINED: it
   was not run here */

ngx_int_t ngx_http_vlm_usage(ngx_http_request_t *r, ngx_str_t *usage);

/* the outcome of a request that took the hop: from the ring, or from the inner
   server's header */

ngx_int_t ngx_http_vlm_hop_usage(ngx_http_request_t *r, ngx_str_t *usage);

/* from the inner server's header filter */

ngx_int_t ngx_http_vlm_add_usage(ngx_http_request_t *r);


/* ---- cors.c: pages of other origins -------------------------------------- */

char *ngx_http_vlm_cors_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_int_t ngx_http_vlm_cors_init(ngx_conf_t *cf);

/* logs a request of a page whose origin is not allowed, and says why; NULL: it
   is allowed */

const char *ngx_http_vlm_cors_refused(ngx_http_request_t *r);

/* the headers of any answer; and of one to OPTIONS */

ngx_int_t ngx_http_vlm_cors_headers(ngx_http_request_t *r);
ngx_int_t ngx_http_vlm_cors_preflight(ngx_http_request_t *r);


#endif /* _NGX_HTTP_VLM_WIRE_H_INCLUDED_ */
