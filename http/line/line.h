
/*
 * The queue: from a request's headers to its last event, whatever interface it
 * uses.  Its files may call wire/ and life/.
 */


#ifndef _NGX_HTTP_VLM_LINE_H_INCLUDED_
#define _NGX_HTTP_VLM_LINE_H_INCLUDED_


#include "../wire/wire.h"


/* counts ctx in line.n_<number>, or not any more; idempotent */

#define ngx_http_vlm_count(ctx, number, on)                                   \
    do {                                                                      \
        (ctx)->engine->line.n_##number -= (ctx)->place.in_##number;           \
        (ctx)->place.in_##number = (on);                                      \
        (ctx)->engine->line.n_##number += (ctx)->place.in_##number;           \
    } while (0)


/* ---- ask.c: a request for an answer, up to the queue --------------------- */

/* the return value of a content handler; the dialect may change later */

ngx_int_t ngx_http_vlm_ask(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_dialect_t *dialect);

/* a request whose body has been read; NGX_OK: nothing is left to do, NGX_BUSY:
   the queue is full, else an error to finalize with */

ngx_int_t ngx_http_vlm_ask_read(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, const ngx_http_vlm_dialect_t *dialect);


/* ---- input.c: its bytes, in a thread ------------------------------------- */

/* thread: the body of data, a ctx, to the dialect's fields, or ctx->error */

void ngx_http_vlm_input_parse(void *data);

/*
 * thread: takes bytes of http_memory for "what", waiting for them; NGX_OK: the
 * caller gives them back by vlm_budget_give(); NGX_ERROR: the request has
 * ended.
 */

ngx_int_t ngx_http_vlm_input_memory(ngx_http_vlm_ctx_t *ctx, uint64_t bytes,
    const char *what);

/* thread: a video, or the picture of one without fps, decoded within that
   memory; NULL: the request has ended */

vlm_picture_t *ngx_http_vlm_input_picture(ngx_http_vlm_ctx_t *ctx,
    const vlm_video_t *video, const vlm_pixels_t *pixels);


/* ---- fit.c: a request that can never fit the context --------------------- */

/* thread: texts, and pictures by their tokens, that a prompt will have in any
   case; NGX_OK, or more than fit: the request has ended */

typedef struct {
    const char                   *text;        /* or NULL and tokens */
    size_t                        len;
    uint32_t                      tokens;
} ngx_http_vlm_fit_t;

ngx_int_t ngx_http_vlm_fit(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_fit_t *parts, size_t n);


/* ---- fail.c: a request that fails ---------------------------------------- */

/* thread: ends the request with the store's error; NGX_ERROR */

ngx_int_t ngx_http_vlm_fail_store(ngx_http_vlm_ctx_t *ctx,
    vlm_store_err_t *err);

/* loop: logs a server error, then sends ctx->error; the second only sends it;
   return values of a content handler */

ngx_int_t ngx_http_vlm_fail_answer(ngx_http_vlm_ctx_t *ctx);
ngx_int_t ngx_http_vlm_fail_send(ngx_http_vlm_ctx_t *ctx);


/* ---- queue.c: limits and deadlines of the queue, how a request leaves it - */

/* before the body is read; NGX_BUSY: the queue is full, else an error to
   finalize with */

ngx_int_t ngx_http_vlm_queue_admit(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng);

/* the body was read: takes a place in the queue, sets its deadline, and
   watches the client's connection; or NGX_BUSY */

ngx_int_t ngx_http_vlm_queue_wait(ngx_http_vlm_ctx_t *ctx);

/* the engine has begun: leaves the queue, sets the deadline of the
   generation */

void ngx_http_vlm_queue_started(ngx_http_vlm_ctx_t *ctx);

/* fails ctx with this status, code (of OpenAI's, or NULL) and text as soon as
   no thread uses it */

void ngx_http_vlm_queue_refuse(ngx_http_vlm_ctx_t *ctx, ngx_uint_t status,
    const char *code, const char *text);

/* as in ngx_http_vlm_queue_calls_t */

void ngx_http_vlm_queue_end(ngx_http_vlm_ctx_t *ctx, ngx_int_t rc);
ngx_uint_t ngx_http_vlm_queue_place(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_queue_fail(ngx_http_vlm_engine_t *eng, ngx_uint_t hangs);

/* removes ctx from queues, chain, engine and counters; idempotent */

void ngx_http_vlm_queue_leave(ngx_http_vlm_ctx_t *ctx);

/* frees what threads left in a ctx that no thread uses; idempotent */

void ngx_http_vlm_queue_free(void *data);


/* ---- order.c: choice of the next prompt ---------------------------------- */

void ngx_http_vlm_order_init(ngx_http_vlm_engine_t *eng);

/* may a request's rank still change after it was set? */

ngx_uint_t ngx_http_vlm_order_set(ngx_http_vlm_engine_t *eng);

/* $vlm_line: the request's order, as the hop sends it */

ngx_int_t ngx_http_vlm_order_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* at a request's headers; and its rank, in the order of arrival; NGX_ERROR; its
   client has one request fewer */

ngx_int_t ngx_http_vlm_order_read(ngx_http_vlm_ctx_t *ctx);
ngx_int_t ngx_http_vlm_order_rank(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_order_leave(ngx_http_vlm_ctx_t *ctx);
ngx_uint_t ngx_http_vlm_order_before(ngx_http_vlm_ctx_t *one,
    ngx_http_vlm_ctx_t *two);

/* loop: evaluates the variables of the directives for r; the second gives the
   salt as a number for the store, 0: none; the third the name of this client's
   session, in ctx->place.name: vlm_store_session_name() */

ngx_int_t ngx_http_vlm_order_value(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_http_vlm_rank_t *rank);
uint64_t ngx_http_vlm_order_salt(ngx_http_vlm_rank_t *rank);

#define ngx_http_vlm_order_session(ctx, id)                                   \
    vlm_store_session_name(ngx_http_vlm_order_salt(&(ctx)->place.rank), id,   \
                           (ctx)->place.name)

/* would a request without a rank go before one that has a rank? */

ngx_uint_t ngx_http_vlm_order_would(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_ctx_t *other);

/* the trees of requests that need a prompt, and the first of them, a heavy one
   only if heavy is set; NULL: there is none */

void ngx_http_vlm_order_insert(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_order_remove(ngx_http_vlm_ctx_t *ctx);
ngx_http_vlm_ctx_t *ngx_http_vlm_order_first(ngx_http_vlm_engine_t *eng,
    ngx_uint_t heavy);

/* the engine has begun the request, whose start advances the clock */

void ngx_http_vlm_order_begun(ngx_http_vlm_ctx_t *ctx);

/* its position in the tree, from 1; 0: not in it, or too far behind */

ngx_uint_t ngx_http_vlm_order_place(ngx_http_vlm_ctx_t *ctx);


/* ---- lease.c: the same among servers that share a Redis ------------------ */

void ngx_http_vlm_lease_init(ngx_http_vlm_engine_t *eng);

/* thread: takes a place in the queue of the request's session, by its arrival;
   the request has ended if the store fails */

void ngx_http_vlm_lease_enter(ngx_http_vlm_ctx_t *ctx);

/* thread: NGX_OK: it is the first, NGX_AGAIN: it waits, NGX_ERROR: the request
   has ended */

ngx_int_t ngx_http_vlm_lease_first(ngx_http_vlm_ctx_t *ctx);

/* leaves the queue: in a thread, when its turn is stored; in the loop, if it
   has not left */

void ngx_http_vlm_lease_end(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_lease_leave(ngx_http_vlm_ctx_t *ctx);


/* ---- chain.c: one session, one turn at a time ---------------------------- */

/* the first of a chain has the first place of all of them among servers: their
   threads may have taken the places in another order */

void ngx_http_vlm_chain_lease(ngx_http_vlm_ctx_t *ctx);

void ngx_http_vlm_chain_leave(ngx_http_vlm_ctx_t *ctx);

/* in the order of its rank: behind earlier requests of its session */

ngx_int_t ngx_http_vlm_chain_enter(ngx_http_vlm_ctx_t *ctx);

void ngx_http_vlm_chain_init(ngx_http_vlm_engine_t *eng);


/* ---- prepare.c: parse, chain, prompt, submit, store ---------------------- */

void ngx_http_vlm_prepare_expect(ngx_http_vlm_ctx_t *ctx); /* at its headers */
void ngx_http_vlm_prepare_add(ngx_http_vlm_ctx_t *ctx);    /* at its body */
void ngx_http_vlm_prepare_next(ngx_http_vlm_engine_t *eng);


/* ---- deliver.c: events of the engine to answers -------------------------- */

void ngx_http_vlm_deliver(ngx_http_vlm_engine_t *eng, vlm_event_t *e);


/* ---- finish.c: after the last event of a job ----------------------------- */

void ngx_http_vlm_finish_store(ngx_http_vlm_ctx_t *ctx);

/* another prompt of the same request: it keeps its place, or goes to the end
   of the queue */

void ngx_http_vlm_finish_again(ngx_http_vlm_ctx_t *ctx, ngx_uint_t at_end);

/* the model's answer is complete, or ctx->error.err says why there is none, or
   there was nothing to ask; the request may have been freed afterwards */

void ngx_http_vlm_finish_job(ngx_http_vlm_ctx_t *ctx);

/* work for ctx in a thread, as by ngx_http_vlm_thread(); "always" calls
   the second, if it isn't that */

ngx_int_t ngx_http_vlm_finish_start(ngx_http_vlm_ctx_t *ctx,
    void (*run)(void *data), void (*always)(void *data),
    void (*done)(ngx_http_request_t *r, void *data));
void ngx_http_vlm_finish_task(void *data);


/* ---- thread.c: work of a request that may block -------------------------- */

/*
 * Runs run(data) in a thread, then done(r, data) in the loop, which finalizes
 * the request.  If the client leaves meanwhile, the request stays in memory
 * until run() has returned, and done is not called: the caller adds a cleanup
 * to r->pool that frees what run() allocates.  Without "always" the thread is
 * of nginx's "default" pool; else of the engine's own, whose threads may sleep,
 * and always(data) is called in the loop, after run() in any case.  NGX_OK, or
 * NGX_ERROR: nothing was started.
 *
 * run() uses no pool and no log, and reads only those fields of r that do not
 * change.
 */

ngx_int_t ngx_http_vlm_thread(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, void (*run)(void *data),
    void (*always)(void *data),
    void (*done)(ngx_http_request_t *r, void *data), void *data);


/* ---- timings.c: the times of an answer ----------------------------------- */

void ngx_http_vlm_timings_started(ngx_http_vlm_ctx_t *ctx);

/* any thread: "timings" and its object; some 600 bytes */

void ngx_http_vlm_timings_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w);


#endif /* _NGX_HTTP_VLM_LINE_H_INCLUDED_ */
