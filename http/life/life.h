
/*
 * The life of an engine: its worker, lock, task, device and shared zone, and
 * its metrics.  This is the lowest floor: it reads a request's fields and
 * calls nothing above.
 */


#ifndef _NGX_HTTP_VLM_LIFE_H_INCLUDED_
#define _NGX_HTTP_VLM_LIFE_H_INCLUDED_


#include "../ngx_http_vlm_engine.h"


/* ---- master.c: in the master --------------------------------------------- */

ngx_int_t ngx_http_vlm_init_module(ngx_cycle_t *cycle);

/* after the configuration was read: prepares the engine's files, or refuses
   the configuration */

ngx_int_t ngx_http_vlm_master_ready(ngx_http_vlm_engine_t *eng);

/* the user of the workers, which owns their files; -1: our own */

void ngx_http_vlm_master_user(ngx_cycle_t *cycle, uid_t *uid, gid_t *gid);


/* ---- worker.c: which worker, and what it needs --------------------------- */

ngx_int_t ngx_http_vlm_init_process(ngx_cycle_t *cycle);
void ngx_http_vlm_exit_process(ngx_cycle_t *cycle);


/* ---- lock.c: from one worker to the next --------------------------------- */

/* in the master process */

ngx_int_t ngx_http_vlm_lock_make(ngx_http_vlm_engine_t *eng, uid_t uid,
    gid_t gid, ngx_cycle_t *cycle, vlm_err_t *err);

/* engine thread: waits for the lock; 0, or -1: stopped or failed */

int ngx_http_vlm_lock_take(ngx_http_vlm_engine_t *eng, vlm_err_t *err);
void ngx_http_vlm_lock_give(ngx_http_vlm_engine_t *eng);   /* idempotent */

/* loop, at each heartbeat while the lock is held: has a thread make a deleted
   file again and lock it; the loop then installs its descriptor */

void ngx_http_vlm_lock_keep(ngx_http_vlm_engine_t *eng);


/* ---- task.c: the thread task and the wake fd ----------------------------- */

void ngx_http_vlm_engine_start(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle);
void ngx_http_vlm_engine_stop(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_engine_kick(ngx_http_vlm_engine_t *eng); /* jobs are
                                                              submitted */

/* a graceful exit has begun; 1: this engine goes on until the next one has
   loaded */

ngx_uint_t ngx_http_vlm_engine_exit(ngx_http_vlm_engine_t *eng);

/* schedules one pass, later in this turn of the loop, that starts and ends all
   work that is ready; by then no caller holds a request */

#define ngx_http_vlm_engine_wake(eng)                                         \
    do { ngx_post_event(&(eng)->line.next, &ngx_posted_events); } while (0)


/* ---- device.c: choice of the device after it was lost -------------------- */

void ngx_http_vlm_device_choose(ngx_http_vlm_engine_t *eng);

/* the time on the CPU is over; the GPU is tried again */

ngx_uint_t ngx_http_vlm_device_due(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_device_return(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_device_last(void);


/* ---- zone.c: state that all workers can read ----------------------------- */

/* of names and paths: a text as ngx_sprintf() writes it, in the pool and with a
   zero */

ngx_int_t ngx_http_vlm_format(ngx_pool_t *pool, ngx_str_t *text,
    const char *fmt, ...);

ngx_int_t ngx_http_vlm_zone_add(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_zone_take(ngx_http_vlm_engine_t *eng);

/* with "reload overlap": does an older configuration still answer? */

ngx_uint_t ngx_http_vlm_zone_standby(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_zone_leave(ngx_http_vlm_engine_t *eng);
ngx_uint_t ngx_http_vlm_zone_owned(ngx_http_vlm_engine_t *eng);

/* the owner has died without a notice of its exit */

ngx_uint_t ngx_http_vlm_zone_gone(ngx_http_vlm_shm_t *shm);

/* is this a worker whose master has died? */

ngx_uint_t ngx_http_vlm_zone_masterless(void);

/* ends such a worker, if the one with the model has ended, too */

void ngx_http_vlm_zone_orphan(ngx_http_vlm_engine_t *eng);

/* while an older worker answers, only FAILED counts: a reload has failed */

void ngx_http_vlm_zone_state(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_state_e state, const char *reason);
void ngx_http_vlm_zone_beat(ngx_http_vlm_engine_t *eng);

/* the queue's numbers: once in a turn of the loop in which they changed */

void ngx_http_vlm_zone_queue(ngx_http_vlm_engine_t *eng);

/* the texts of the zone are written and read under its lock: a copy of all */

#define ngx_http_vlm_zone_mutex(eng)                                          \
    (&((ngx_slab_pool_t *) (eng)->shm_zone->shm.addr)->mutex)

void ngx_http_vlm_zone_texts(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_shm_t *copy);

/* any thread of any process: records the result of the store's last call;
   counts the sessions after one was made or deleted, with the store's result */

void ngx_http_vlm_zone_store(ngx_http_vlm_engine_t *eng, vlm_store_err_t *err);
int ngx_http_vlm_zone_sessions(ngx_http_vlm_engine_t *eng,
    vlm_store_err_t *err);

ngx_uint_t ngx_http_vlm_zone_length(ngx_http_vlm_engine_t *eng);


/* ---- adapter.c: the adapters in the zone --------------------------------- */

/* loop of the designated worker: after the engine's list has changed */

void ngx_http_vlm_adapter_share(ngx_http_vlm_engine_t *eng);

/* any thread of any process: the number of adapters of that name, 0 or 1, and
   its directory into dir [VLM_ADAPTER_NAME], unless that is NULL; and one
   more request for it */

ngx_uint_t ngx_http_vlm_adapter_listed(ngx_http_vlm_engine_t *eng,
    const char *name, char *dir);
ngx_uint_t ngx_http_vlm_adapter_left_out(ngx_http_vlm_engine_t *eng,
    const char *name);
void ngx_http_vlm_adapter_count(ngx_http_vlm_engine_t *eng, const char *name);


/* ---- again.c: the adapters that were left out ---------------------------- */

/* in the designated worker; does nothing without "lora" */

void ngx_http_vlm_again_start(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle);


/* ---- watch.c: the watchdog of the event loop ----------------------------- */

void ngx_http_vlm_watch_start(ngx_http_vlm_engine_t *eng);

/* ms for which the engine thread has missed its ticks, or 0 */

ngx_msec_t ngx_http_vlm_watch_silent(ngx_http_vlm_engine_t *eng);


/* ---- breaker.c: the circuit breaker -------------------------------------- */

/* any worker */

vlm_breaker_state_t ngx_http_vlm_breaker_state(ngx_http_vlm_engine_t *eng);

/* writes the sentence of that refusal to buf, with a zero; returns s, for
   Retry-After */

ngx_uint_t ngx_http_vlm_breaker_reason(ngx_http_vlm_engine_t *eng,
    u_char *buf, size_t size);

/* the designated worker: ..._enter() as a request is admitted, perhaps as the
   probe, ..._leave() as a probe ends */

void ngx_http_vlm_breaker_enter(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_breaker_leave(ngx_http_vlm_ctx_t *ctx);

/* the engine has failed, or, after failures, answered */

void ngx_http_vlm_breaker_failed(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_breaker_worked(ngx_http_vlm_engine_t *eng);


/* ---- poison.c: requests that kill workers -------------------------------- */

/* any thread */

uint64_t ngx_http_vlm_poison_hash(const u_char *data, size_t len);
void ngx_http_vlm_poison_begin(ngx_http_vlm_ctx_t *ctx);   /* idempotent */
void ngx_http_vlm_poison_end(ngx_http_vlm_ctx_t *ctx);

/* a starting worker has found its predecessor dead */

void ngx_http_vlm_poison_death(ngx_http_vlm_engine_t *eng);


/* ---- metrics.c: counters, histograms, the log of refusals ---------------- */

extern const char *const  ngx_http_vlm_refusal_names[];
extern const char *const  ngx_http_vlm_stage_names[];

/* any thread */

#define ngx_http_vlm_metrics_time(eng, what, ms)                              \
    vlm_histogram_add(&(eng)->zone->metrics.times[what], ms)

void ngx_http_vlm_metrics_picture(ngx_http_vlm_engine_t *eng,
    vlm_picture_info_t *info);

/* counts an event that ends a job, whether its request still exists or not */

void ngx_http_vlm_metrics_job(ngx_http_vlm_engine_t *eng, vlm_usage_t *usage);

/* counts the end of a request: an answer, a refusal (which is logged), or a
   client that left */

void ngx_http_vlm_metrics_ended(ngx_http_vlm_ctx_t *ctx, ngx_int_t rc);
void ngx_http_vlm_metrics_left(ngx_http_vlm_ctx_t *ctx);

/* counts and logs the refusal of a request that has no place in the queue
   yet */

void ngx_http_vlm_metrics_refused(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_http_vlm_refusal_e reason,
    const char *text);

/* s, for Retry-After: the estimated time to drain the current queue */

ngx_uint_t ngx_http_vlm_metrics_retry(ngx_http_vlm_engine_t *eng);


/* ---- sweep.c: automatic removal from the store --------------------------- */

/* in the designated worker; does nothing unless the store has bounds */

void ngx_http_vlm_sweep_start(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle);


/* ---- reading.c: documents ------------------------------------------------ */

/* in the designated worker; does nothing without "documents on" */

void ngx_http_vlm_reading_start(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle);

/* any thread of any process: there is a document to read; and the numbers in
   the zone, after a document was added, read or removed */

void ngx_http_vlm_reading_added(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_reading_count(ngx_http_vlm_engine_t *eng);

/* any thread: a reader as configured, which stops when the worker exits; the
   caller sets fd, frame, data, and the picture */

void ngx_http_vlm_reading_prepare(ngx_http_vlm_engine_t *eng,
    vlm_reader_t *reader);
int ngx_http_vlm_reading_stops(void *data);

/* the level at which a reader's end is logged: NGX_LOG_WARN for a forbidden
   system call and a crash, which a file made to attack the reader causes */

ngx_uint_t ngx_http_vlm_reading_level(const vlm_err_t *err);

/* of vlm_document_state_t */

extern const char *const
    ngx_http_vlm_document_states[NGX_HTTP_VLM_DOCUMENT_STATES];

/* the names of the walls around the reader, for health and the log */

const char *ngx_http_vlm_reading_walls(ngx_http_vlm_engine_t *eng);


/* ---- encoding.c: vectors of documents ------------------------------------ */

/* as vlm_embedder_plan() and vlm_embedder_open(), with the server's settings */

int ngx_http_vlm_encoding_plan(const char *dir, vlm_embedder_plan_t *plan,
    vlm_err_t *err);
vlm_embedder_t *ngx_http_vlm_encoding_open(const char *dir, vlm_err_t *err);

/* in the designated worker; does nothing without "retrieval hybrid"; stop:
   no thread runs any more */

void ngx_http_vlm_encoding_start(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle);
void ngx_http_vlm_encoding_stop(ngx_http_vlm_engine_t *eng);

/* of a copy of the zone, in any worker */

ngx_http_vlm_encoder_e ngx_http_vlm_encoding_state(ngx_http_vlm_shm_t *shm);

/* any thread: the model of vectors that questions can be compared with, 0:
   there is none (yet); if there is one, the vector of a question, rounded, into
   values [dim], and its scale; 0, or -1 and err */

int64_t ngx_http_vlm_encoding_model(ngx_http_vlm_engine_t *eng);
int ngx_http_vlm_encoding_question(ngx_http_vlm_engine_t *eng, const char *text,
    size_t len, int8_t *values, size_t dim, float *scale, vlm_err_t *err);


/* ---- socket.c: the socket of the hop ------------------------------------- */

/* in the master: before and after nginx opens its sockets */

ngx_int_t ngx_http_vlm_socket_bind(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle, uid_t uid, gid_t gid);
ngx_int_t ngx_http_vlm_socket_own(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle, uid_t uid, gid_t gid, vlm_err_t *err);

/* in the designated worker, with "reload overlap": accepts connections while
   it should, even after nginx has closed its listening sockets; open 0 stops
   that */

ngx_int_t ngx_http_vlm_socket_keep(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle);
void ngx_http_vlm_socket_open(ngx_http_vlm_engine_t *eng, ngx_uint_t open);
void ngx_http_vlm_socket_close(ngx_http_vlm_engine_t *eng);    /* idempotent */

/* an idle connection for fd, without an event yet, whose handler learns of a
   graceful exit by c->close; NULL: there is no connection left */

ngx_connection_t *ngx_http_vlm_idle(int fd, ngx_log_t *log,
    ngx_event_handler_pt handler, ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_idle_free(ngx_connection_t *c);      /* fd stays open */


#endif /* _NGX_HTTP_VLM_LIFE_H_INCLUDED_ */
