
/*
 * What the topics of the nginx side share: the engine of a configuration, the
 * request on its way, and the functions of each file, in the order in which a
 * request meets them.
 *
 * Four kinds of thread: the event loop; the engine thread, which runs one
 * task at a time (_engine.c); those of nginx's "default" pool, for sessions and
 * uploads; and those of the engine's own, for requests of the queue, which may
 * wait for memory and the store.
 */


#ifndef _NGX_HTTP_VLM_H_INCLUDED_
#define _NGX_HTTP_VLM_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>
#include <ngx_thread_pool.h>

#include "../engine/vlm.h"


typedef struct ngx_http_vlm_engine_s  ngx_http_vlm_engine_t;
typedef struct ngx_http_vlm_chain_s   ngx_http_vlm_chain_t;
typedef struct ngx_http_vlm_ctx_s     ngx_http_vlm_ctx_t;
typedef struct ngx_http_vlm_dialect_s ngx_http_vlm_dialect_t;
typedef struct ngx_http_vlm_queue_calls_s ngx_http_vlm_queue_calls_t;


#include "ngx_http_vlm_store.h"
#include "ngx_http_vlm_json.h"
#include "ngx_http_vlm_budget.h"
#include "ngx_http_vlm_losses.h"
#include "ngx_http_vlm_metrics.h"
#include "ngx_http_vlm_order.h"
#include "ngx_http_vlm_breaker.h"


/* ---- the shared zone: what any worker can tell about an engine ---------- */

typedef enum {
    NGX_HTTP_VLM_LOADING = 0,
    NGX_HTTP_VLM_READY,
    NGX_HTTP_VLM_FAILED,
    NGX_HTTP_VLM_STALLED,                      /* no tick for "stall" */
    NGX_HTTP_VLM_BUSY                          /* told only: see _health.c */
} ngx_http_vlm_state_e;


typedef struct {
    ngx_atomic_t                  pid;         /* of the designated worker */
    ngx_atomic_t                  state;       /* ngx_http_vlm_state_e */
    ngx_atomic_t                  progress;    /* percent of the load */
    ngx_atomic_t                  heartbeat;   /* ngx_current_msec */
    ngx_atomic_t                  ticks;       /* of the engine thread */
    ngx_atomic_t                  ticked;      /* when it ticked, or had no
                                                  work */
    ngx_atomic_t                  waiting;
    ngx_atomic_t                  running;
    ngx_atomic_t                  kv_rows;     /* in the slots' caches */
    ngx_atomic_t                  sessions;
    ngx_atomic_t                  lost;        /* the model, by the last */
    ngx_atomic_t                  filling;     /* as in vlm_stat_t */
    ngx_atomic_t                  beside;      /* see _lock.c */
    ngx_atomic_t                  generation;  /* of configurations, */
    ngx_atomic_t                  overlap;     /* of the newest one: reload */
    ngx_atomic_t                  leaving;     /* the one that none follows */
    ngx_atomic_t                  stays;       /* pid does, at a reload */
    ngx_http_vlm_losses_t         deaths;      /* of workers, by that, and */
    ngx_http_vlm_losses_t         losses;      /* of them, of a GPU */
    ngx_http_vlm_breaker_t        breaker;

    ngx_http_vlm_metrics_t        metrics;     /* since nginx's start */

    ngx_atomic_t                  works[NGX_HTTP_VLM_WORKS];
    ngx_http_vlm_suspect_t        suspects[NGX_HTTP_VLM_SUSPECTS];

    ngx_atomic_t                  http_used;   /* of http_memory, by the */
    ngx_atomic_t                  http_peak;   /* designated worker */
    ngx_atomic_t                  http_waits;

    /* written and read under the mutex of the zone's slab pool */
    vlm_plan_t                    plan;
    uint64_t                      taken;       /* as in vlm_stat_t */
    char                          device[64];
    char                          device_reason[128];
    char                          reason[480]; /* why the load failed */
    char                          store_reason[256];   /* nothing is kept */
    char                          reload_reason[480];  /* an older one stays */

    struct ngx_http_vlm_hops_s   *hops;        /* see ngx_http_vlm_hop.h */
} ngx_http_vlm_shm_t;


/* ---- configuration ------------------------------------------------------ */

typedef struct {
    ngx_array_t                   engines;     /* ngx_http_vlm_engine_t * */
    ngx_int_t                     request_id;  /* index of the variable */
} ngx_http_vlm_main_conf_t;


/* vlm_cors; those from LIST on have headers */

#define NGX_HTTP_VLM_CORS_OFF   0
#define NGX_HTTP_VLM_CORS_SAME  1
#define NGX_HTTP_VLM_CORS_LIST  2
#define NGX_HTTP_VLM_CORS_ANY   3


typedef struct {
    ngx_http_vlm_engine_t        *engine;      /* vlm_pass, or inner server */
    ngx_http_handler_pt           hop;         /* what proxy_pass installed */
    off_t                         max_body;    /* 64m, 0: the user's counts */
    ngx_http_vlm_engine_t        *status;      /* vlm_status */
    ngx_uint_t                    cors;
    ngx_array_t                  *origins;     /* ngx_str_t, of a LIST */
    unsigned                      status_any:1;    /* from=any */
    unsigned                      inner:1;     /* the generated server */
} ngx_http_vlm_loc_conf_t;


/* inside vlm_engine { } */

typedef struct {
    ngx_http_vlm_engine_t        *engine;
    ngx_str_t                     model;       /* as it was written */
    ngx_uint_t                    seen;        /* bit of each parameter */
} ngx_http_vlm_param_t;


/* bytes as a configuration would say them */

#define ngx_http_vlm_mib(bytes)                                               \
    (((uint64_t) (bytes) + 1024 * 1024 - 1) / (1024 * 1024))


/* the thread task of the engine: one step at a time */

typedef enum {
    NGX_HTTP_VLM_STEP_OPEN = 0,                /* the lock, the tokenizer */
    NGX_HTTP_VLM_STEP_LOAD,
    NGX_HTTP_VLM_STEP_RUN,
    NGX_HTTP_VLM_STEP_CLOSE
} ngx_http_vlm_step_e;


#define NGX_HTTP_VLM_LOCKS  2                  /* models, during a reload */

struct ngx_http_vlm_engine_s {
    /* as configured */
    ngx_str_t                     name;
    ngx_cycle_t                  *cycle;       /* that it is read for */
    u_char                       *file;        /* where it is defined, or */
    ngx_uint_t                    line;        /* was first named */
    vlm_conf_t                    conf;
    vlm_plan_t                    plan;
    ngx_str_t                     store_dir;   /* with a zero */
    time_t                        store_expires;   /* 0: never */
    off_t                         store_max;   /* bytes of files, 0: off */
    ngx_str_t                     socket;
    ngx_uint_t                    socket_line; /* 0: not said */
    ngx_str_t                     locks[NGX_HTTP_VLM_LOCKS];   /* files */
    ngx_uint_t                    prepare;
    ngx_http_vlm_order_t          order;       /* priority, fair; and the tree
                                                  of who wants a prompt */
    ngx_uint_t                    queue;
    ngx_msec_t                    queue_timeout;
    ngx_msec_t                    timeout;
    ngx_msec_t                    stall;       /* 0: by the device */
    ngx_msec_t                    retry;       /* of device auto */
    ngx_uint_t                    failures;    /* breaker; 0: there is none */
    ngx_msec_t                    pause;
    uint64_t                      http_memory; /* of requests, in all */
    ngx_uint_t                    thinking;    /* the template adds its tail */
    ngx_uint_t                    tools;       /* ignored, else refused */
    ngx_array_t                  *aliases;     /* ngx_str_t; or NULL */
    ngx_uint_t                    any_name;    /* alias * */
    ngx_str_t                     directory;   /* the checkpoint's, its name */
    vlm_facts_t                   facts;
    time_t                        created;     /* of config.json */
    vlm_sampling_t                sampling;    /* where set says so */
    ngx_uint_t                    sampling_set;
    ngx_thread_pool_t            *pool;        /* of the engine thread */
    ngx_thread_pool_t            *threads;     /* nginx's "default" */
    ngx_thread_pool_t            *prepares;    /* our own, for the queue's */
    ngx_shm_zone_t               *zone;
    ngx_uint_t                    worker;      /* the designated one */
    unsigned                      cache_set:1; /* and conf.cache, or off */
    unsigned                      defined:1;   /* not only named */
    unsigned                      passed:1;    /* by a location */
    unsigned                      thinking_auto:1;
    unsigned                      overlap:1;   /* reload */
    vlm_err_t                     broken;      /* why it has failed */
    ngx_uint_t                    generation;  /* of its configuration */

    /* in every process */
    const ngx_http_vlm_queue_calls_t *calls;   /* of a higher floor */
    ngx_int_t                   (*ready_to_start)(ngx_http_vlm_engine_t *eng,
                                                  ngx_log_t *log);
    ngx_http_vlm_shm_t           *shm;
    ngx_http_vlm_budget_t         budget;      /* http_memory */
    ngx_http_vlm_store_t         *store;       /* since init_process */

    /* in the designated worker */
    vlm_t                        *vlm;         /* since the step "open" */
    vlm_t                        *handed;      /* the same, the thread's */
    int                           rc;          /* of the last step */
    vlm_err_t                     err;
    ngx_thread_task_t            *task;
    ngx_http_vlm_step_e           step;
    ngx_connection_t             *events;      /* vlm_fd() */
    ngx_event_t                   sweep;
    ngx_event_t                   beat;
    ngx_event_t                   next;        /* posted: see ..._wake() */
    ngx_event_t                   hold;        /* wakes: see _prepare.c */
    ngx_log_t                    *log;
    int                           lock_fds[NGX_HTTP_VLM_LOCKS];    /* or -1 */
    ngx_msec_t                    backoff;     /* before the lock is taken */
    ngx_msec_t                    away_until;  /* the CPU instead of a GPU: */
    char                          device_note[128];    /* see _device.c */

    ngx_queue_t                   requests;    /* ctx->all */
    ngx_queue_t                   arrivals;    /* ctx->queue, until parsed */
    ngx_uint_t                    n_parses;    /* of them, not yet begun */
    ngx_queue_t                   making;      /* ctx->queue: in threads */
    ngx_queue_t                   ready;       /* ctx->queue: submit next */
    ngx_rbtree_t                  chains;      /* by session */
    ngx_rbtree_node_t             sentinel;
    ngx_uint_t                    seq;         /* of the last arrival */
    ngx_uint_t                    n_tasks;     /* of prepare, in threads */
    ngx_uint_t                    n_heavy;     /* of them, see ctx->heavy */
    ngx_uint_t                    n_prompts;   /* being made or waiting */
    ngx_uint_t                    n_jobs;      /* submitted to the engine */
    ngx_uint_t                    waiting;     /* the line: admitted, not yet
                                                  started by the engine */
    ngx_uint_t                    running;     /* jobs in slots, until their
                                                  last event */
    ngx_uint_t                    receiving;   /* bodies */
    ngx_atomic_t                  pending;     /* requests past that; read by
                                                  the engine thread */
    ngx_msec_t                    exit_time;   /* when it was noticed, or 0 */
    ngx_msec_t                    opened_at;   /* for the time of a load */
    uint64_t                      ticks;       /* of the engine thread, and */
    ngx_msec_t                    ticked;      /* when; or it had no work */
    ngx_event_t                   die;         /* see _engine.c */
    ngx_atomic_t                  beats;       /* of the loop; read by */
    pthread_t                     watch;       /* who watches it */
    ngx_msec_t                    watch_stall;
    int                           watch_fd;    /* ends that thread, or -1 */
    ngx_connection_t             *door;        /* accepts: see _socket.c */
    ngx_atomic_t                  lingers;     /* exiting, and goes on; read by
                                                  the engine thread */
    unsigned                      here:1;      /* this is the worker, but */
    unsigned                      behind:1;    /* an older one still answers */
    unsigned                      opened:1;    /* prompts can be made */
    unsigned                      loaded:1;
    unsigned                      failed:1;
    unsigned                      stopped:1;   /* by an exit, not loaded */
    unsigned                      closed:1;    /* or about to be */
    unsigned                      released:1;  /* exiting, model given up */
    unsigned                      on_cpu:1;    /* though a GPU was planned */
    unsigned                      away:1;      /* so for a while: _device.c */
    unsigned                      again:1;     /* closes, to open again */
    unsigned                      lost:1;      /* the device */
};


/* are chats answered in this process? */

#define ngx_http_vlm_answers(eng)                                             \
    ((eng)->here && !(eng)->released && !(eng)->behind)


/* ---- a chat request ----------------------------------------------------- */

/* a request's body, wherever nginx has put it */

typedef struct {
    ngx_http_request_body_t      *from;
    const u_char                 *data;
    size_t                        len;
    void                         *map;         /* of a file */
    u_char                       *copy;        /* of several buffers */
} ngx_http_vlm_body_t;


/* what a client of RoboBrain asked for; filled in by the dialect, in a thread;
   malloc()ed, so that neither the body nor its JSON is kept while a request
   waits */

#define NGX_HTTP_VLM_TASK  64                  /* bytes, of its name */

typedef struct {
    ngx_http_vlm_store_text_t     session;
    ngx_http_vlm_store_text_t     message;
    char                          task_name[NGX_HTTP_VLM_TASK + 1];
                                               /* as given, or as found */
    char                         *image;       /* path of this turn's picture */
    int                           task;        /* vlm_task_t, or -1 */
    int64_t                       asked;       /* us since 1970 */
    char                         *key;         /* Idempotency-Key, or NULL */
    ngx_http_vlm_store_loaded_t   session_of;  /* the repeated turn, and */
    ngx_http_vlm_store_entry_t   *repeated;    /* its answer, or NULL */
    ngx_http_vlm_store_file_t    *result;      /* the drawn picture, or NULL */
    u_char                       *clean;       /* answers without marks */
    size_t                        clean_size;
    size_t                        told_thinking;   /* bytes, of a stream */
    unsigned                      task_auto:1;
    unsigned                      task_asked:1;    /* the model, for it */
    unsigned                      thinking:1;
    unsigned                      inference:1; /* an error of the model's */
    unsigned                      no_image:1;
    unsigned                      text_only:1;     /* none is wanted */
} ngx_http_vlm_chat_t;


/*
 * How a request is asked and answered: RoboBrain's way, OpenAI's, Ollama's.
 * The flow is the same for all of them (_ask, _prepare, _queue, _deliver);
 * a dialect says what a body means, what the model is asked, and what its
 * words become.  A request may ask the model more than once, one prompt after
 * the other; each takes its own place in the line, or keeps the first.
 *
 * thread: in nginx's pool, the functions may wait; no pool, no log.  They end
 *         a request with ngx_http_vlm_fail()
 * loop:   on the event loop
 */

struct ngx_http_vlm_dialect_s {

    /* thread: the parsed body, or NULL if it is empty; may set ctx->dialect
       to one that knows the request better, ctx->streaming, and
       ctx->chat.session, in whose order of arrival it is run */

    void                        (*fields)(ngx_http_vlm_ctx_t *ctx,
                                          const ngx_http_vlm_json_t *json);

    /* thread: makes ctx->prompt, and changes ctx->sampling, which has the
       engine's defaults; what it points to lives until the job is submitted.
       Without a prompt and without ctx->status: nothing is left to be asked */

    void                        (*prompt)(ngx_http_vlm_ctx_t *ctx);

    /* loop, when the model's words are whole in ctx->text, or nothing was
       asked: NGX_OK; NGX_AGAIN: ngx_http_vlm_finish_again() or ..._store()
       was called; NGX_ERROR: no memory; NULL is NGX_OK.  While ctx->asking,
       ctx->err may say why the model has said nothing */

    ngx_int_t                   (*ended)(ngx_http_vlm_ctx_t *ctx);

    /* thread, before the answer is sent or, while ctx->asking, before the
       next prompt; NULL: nothing to do */

    void                        (*store)(ngx_http_vlm_ctx_t *ctx);

    /* loop: an answer as a whole, and what becomes of a failure (ctx->status
       and ctx->err); as the return value of a content handler */

    ngx_int_t                   (*answer)(ngx_http_vlm_ctx_t *ctx);
    ngx_int_t                   (*failed)(ngx_http_vlm_ctx_t *ctx);

    /* loop, of an answer that streams: appends to w what the client has not
       been told yet; with "last" everything to the end of the answer.  An
       error after the header is an event, too; status is what it would have
       been.  "waits": NULL, or tells the place in the line */

    const char                   *stream_type;
    void                        (*chunk)(ngx_http_vlm_ctx_t *ctx,
                                         ngx_http_vlm_json_out_t *w,
                                         ngx_uint_t last);
    void                        (*error)(ngx_http_vlm_ctx_t *ctx,
                                         ngx_http_vlm_json_out_t *w,
                                         ngx_uint_t status, const char *text);
    void                        (*waits)(ngx_http_vlm_ctx_t *ctx,
                                         ngx_http_vlm_json_out_t *w,
                                         ngx_uint_t place);

    /* loop, no thread works for ctx: frees ctx->data; safe twice; or NULL */

    void                        (*free)(ngx_http_vlm_ctx_t *ctx);
};


/*
 * The queue, as the engine's task and the streams see it from below: the one
 * table of calls to a higher floor.  In the loop.
 */

struct ngx_http_vlm_queue_calls_s {
    void                        (*init)(ngx_http_vlm_engine_t *eng);

    /* an event of the engine, for its request */

    void                        (*event)(ngx_http_vlm_engine_t *eng,
                                         vlm_event_t *e);

    /* something has changed: what can be started is started */

    void                        (*next)(ngx_http_vlm_engine_t *eng);

    /* the engine has failed: all that wait are refused; it hangs: so are
       those that it has */

    void                        (*failed)(ngx_http_vlm_engine_t *eng);
    void                        (*stalled)(ngx_http_vlm_engine_t *eng);

    /* how many requests the engine will begin before this one, and one more;
       0: it has begun */

    ngx_uint_t                  (*place)(ngx_http_vlm_ctx_t *ctx);

    /* ends ctx with the return value of a content handler; the request may be
       gone after it */

    void                        (*end)(ngx_http_vlm_ctx_t *ctx,
                                       ngx_int_t rc);
};


extern const ngx_http_vlm_queue_calls_t  ngx_http_vlm_queue_calls;


typedef enum {
    NGX_HTTP_VLM_RECEIVING = 0,
    NGX_HTTP_VLM_PARSING,                      /* JSON, upload; by arrival */
    NGX_HTTP_VLM_CHAINED,                      /* behind its own session */
    NGX_HTTP_VLM_PREPARING,
    NGX_HTTP_VLM_WAITING,                      /* for a slot */
    NGX_HTTP_VLM_SUBMITTED,
    NGX_HTTP_VLM_RUNNING,
    NGX_HTTP_VLM_STORING,
    NGX_HTTP_VLM_ENDED
} ngx_http_vlm_step_of_ctx_e;


struct ngx_http_vlm_ctx_s {
    ngx_http_request_t           *request;
    ngx_http_vlm_engine_t        *engine;
    ngx_http_vlm_step_of_ctx_e    step;
    const ngx_http_vlm_dialect_t *dialect;
    void                         *data;        /* the dialect's own */
    ngx_uint_t                    seq;
    ngx_queue_t                   all;         /* in engine->requests */
    ngx_queue_t                   queue;       /* arrivals, making, ready */
    ngx_http_vlm_rank_t           rank;        /* between them */
    ngx_queue_t                   turn;        /* in chain->turns */
    ngx_http_vlm_chain_t         *chain;
    ngx_event_t                   timer;

    /* how fast the body comes */
    ngx_msec_t                    looked;
    off_t                         received;

    /* a refusal that waits for a thread */
    ngx_uint_t                    late_status;
    char                          late_text[128];
    const char                   *late_code;   /* constant, or NULL */

    /* of the prepare tasks, and written in threads: no bits, whose neighbours
       are the loop's */
    ngx_http_vlm_body_t           body;
    ngx_http_vlm_chat_t           chat;
    ngx_uint_t                    status;      /* 0, or of the answer that
                                                  ends here, with err.text */
    const char                   *code;        /* OpenAI's; constant or NULL */
    char                          param[64];   /* the field that it is about */
    vlm_err_t                     err;
    ngx_uint_t                    streaming;   /* the client wants events */
    ngx_uint_t                    asking;      /* not for the client's eyes */
    ngx_uint_t                    opened;      /* engine->opened, by then */
    ngx_uint_t                    heavy;       /* pictures, or the store */
    ngx_atomic_t                  abandoned;   /* its thread need not go on */
    int64_t                       epoch;
    vlm_prompt_t                 *prompt;      /* until submitted */
    vlm_picture_info_t            picture;
    ngx_uint_t                    n_entries;   /* in the session before */
    ngx_uint_t                    n_dropped;   /* of the history's entries */

    /* of the engine */
    vlm_sampling_t                sampling;
    vlm_job_t                    *job;
    vlm_finish_t                  finish;
    vlm_usage_t                   usage;       /* of all its jobs */
    ngx_buf_t                    *text;        /* the answer so far */
    ngx_array_t                  *tokens;      /* vlm_token_t, or NULL */

    /* of a stream: see _stream.c */
    ngx_event_t                   tell;        /* the place in the line */
    ngx_chain_t                  *free, *busy;
    size_t                        told;        /* bytes of the answer, and */
    size_t                        told_tokens; /* tokens that were sent */

    /* of the turn */
    ngx_str_t                     answer;
    ngx_str_t                     thinking;
    size_t                        turn_number;
    int                           context_used;
    ngx_http_vlm_store_err_t      stored;

    /* for variables; times of ngx_current_msec */
    ngx_str_t                     session;
    ngx_msec_t                    t_headers;
    ngx_msec_t                    t_arrived, t_started, t_first, t_ended;
    ngx_msec_t                    t_text;      /* of its last token */
    ngx_uint_t                    t_asked;     /* the last job was an aside */
    ngx_msec_t                    prepare_ms;  /* of a prompt, in a thread */
    ngx_msec_t                    prepared_ms; /* of all prompts */
    ngx_msec_t                    wait_ms;     /* in line, but for that */
    uint64_t                      decode_us, resize_us;    /* of pictures */
    uint64_t                      hash;        /* of the body, by a thread */
    ngx_uint_t                    refusal;     /* known to a thread, or 0 */
    ngx_uint_t                    works;       /* its place in the zone's */

    /* of the filter: an error page of nginx's own becomes JSON */
    ngx_str_t                     page;
    ngx_uint_t                    page_status;

    unsigned                      counted:1;   /* in engine->pending, or */
    unsigned                      receiving:1; /* in engine->receiving */
    unsigned                      in_line:1;   /* in engine->waiting */
    unsigned                      in_prompts:1;    /* in engine->n_prompts */
    unsigned                      queued:1;    /* in one of three queues */
    unsigned                      in_heavy:1;  /* in engine->n_heavy */
    unsigned                      probe:1;     /* of the breaker */
    unsigned                      to_parse:1;  /* in engine->n_parses */
    unsigned                      in_task:1;
    unsigned                      parsed:1;
    unsigned                      left:1;      /* the request is going */
    unsigned                      begun:1;     /* the header was sent */
    unsigned                      answered:1;  /* with what was asked for */
    unsigned                      logged:1;    /* why it was not */
    unsigned                      replace:1;
    unsigned                      replaced:1;
};


/* ---- ngx_http_vlm_conf.c: directives, generated text, nginx -t ---------- */

char *ngx_http_vlm_engine_block(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_vlm_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_vlm_inner(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* of that name, which vlm_engine may define later; NULL: said why not */

ngx_http_vlm_engine_t *ngx_http_vlm_named(ngx_conf_t *cf, ngx_str_t *name);

/* at the end of http { }: engines that nobody defined, or that nothing uses */

char *ngx_http_vlm_engines_check(ngx_conf_t *cf,
    ngx_http_vlm_main_conf_t *mcf);

/* a thread pool by its name; should it not be there, nginx's error says which
   line is missing */

ngx_thread_pool_t *ngx_http_vlm_param_pool(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *name);


/* ---- ngx_http_vlm_check.c: what is known before an engine starts -------- */

/* at the end of vlm_engine { }: the plan, and the model's facts */

char *ngx_http_vlm_check(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);

/* when the configuration has been read, and is not yet in force */

ngx_int_t ngx_http_vlm_check_start(ngx_http_vlm_engine_t *eng,
    ngx_log_t *log);


/* ---- ngx_http_vlm_param.c: what stands inside vlm_engine { } ------------ */

void ngx_http_vlm_param_init(ngx_http_vlm_param_t *param,
    ngx_http_vlm_engine_t *eng);
char *ngx_http_vlm_param(ngx_conf_t *cf, ngx_command_t *dummy, void *conf);
char *ngx_http_vlm_param_finish(ngx_conf_t *cf, ngx_http_vlm_param_t *param);
char *ngx_http_vlm_param_time(ngx_conf_t *cf, const char *name,
    ngx_str_t *value, ngx_msec_t *out);

/* the defaults of a request: the checkpoint's, and "sampling" over them */

void ngx_http_vlm_sampling(ngx_http_vlm_engine_t *eng, vlm_sampling_t *s);


/* ---- ngx_http_vlm_paths.c: store, socket, locks: names and mistakes ----- */

char *ngx_http_vlm_paths_store(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);
char *ngx_http_vlm_paths(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);


/* ---- ngx_http_vlm_worker.c: which worker, and what it needs ------------- */

ngx_int_t ngx_http_vlm_init_module(ngx_cycle_t *cycle);
ngx_int_t ngx_http_vlm_init_process(ngx_cycle_t *cycle);
void ngx_http_vlm_exit_process(ngx_cycle_t *cycle);

/* the configuration is read: what it needs is made, or it is refused */

ngx_int_t ngx_http_vlm_master_ready(ngx_http_vlm_engine_t *eng);


/* ---- ngx_http_vlm_socket.c: the socket of the hop ----------------------- */

/* in the master: before nginx opens sockets, and after it */

ngx_int_t ngx_http_vlm_socket_bind(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle);
ngx_int_t ngx_http_vlm_socket_own(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle, uid_t uid, gid_t gid, vlm_err_t *err);


/* in the designated worker, with "reload overlap": accepts while it should,
   after nginx has closed the listening sockets, too; open: or stops that */

ngx_int_t ngx_http_vlm_socket_keep(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle);
void ngx_http_vlm_socket_open(ngx_http_vlm_engine_t *eng, ngx_uint_t open);
void ngx_http_vlm_socket_close(ngx_http_vlm_engine_t *eng);    /* safe twice */


/* ---- ngx_http_vlm_lock.c: from one worker to the next ------------------- */

/* in the master */

ngx_int_t ngx_http_vlm_lock_make(ngx_http_vlm_engine_t *eng, uid_t uid,
    gid_t gid, ngx_cycle_t *cycle, vlm_err_t *err);

/* engine thread: waits for the lock; 0, or -1: stopped or failed */

int ngx_http_vlm_lock_take(ngx_http_vlm_engine_t *eng, vlm_err_t *err);
void ngx_http_vlm_lock_give(ngx_http_vlm_engine_t *eng);   /* safe twice */


/* ---- ngx_http_vlm_device.c: which device, after it was lost ------------- */

void ngx_http_vlm_device_choose(ngx_http_vlm_engine_t *eng);
ngx_uint_t ngx_http_vlm_device_due(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_device_return(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_device_last(void);


/* ---- ngx_http_vlm_zone.c: what all workers can read --------------------- */

ngx_int_t ngx_http_vlm_zone_add(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_zone_take(ngx_http_vlm_engine_t *eng);

/* of a configuration with "reload overlap": does an older one answer?  Why
   the newest does not is told in its place */

ngx_uint_t ngx_http_vlm_zone_behind(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_zone_reload(ngx_http_vlm_engine_t *eng, const char *reason);

void ngx_http_vlm_zone_leave(ngx_http_vlm_engine_t *eng);
ngx_uint_t ngx_http_vlm_zone_mine(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_zone_state(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_state_e state, const char *reason);
void ngx_http_vlm_zone_beat(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_zone_line(ngx_http_vlm_engine_t *eng);

/* a copy, whose texts belong together */

void ngx_http_vlm_zone_texts(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_shm_t *copy);

/* any thread of any process: what the store said to the last request that
   needed it, and how many sessions there are after one was made or deleted */

void ngx_http_vlm_zone_store(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_store_err_t *err);
void ngx_http_vlm_zone_sessions(ngx_http_vlm_engine_t *eng, uint64_t n);


/* ---- ngx_http_vlm_engine.c: the thread task and the wake fd ------------- */

void ngx_http_vlm_engine_start(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle);
void ngx_http_vlm_engine_stop(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_engine_kick(ngx_http_vlm_engine_t *eng); /* jobs are there */

/* a graceful exit has begun; 1: with a reload, and this engine goes on until
   the next one has loaded */

ngx_uint_t ngx_http_vlm_engine_exit(ngx_http_vlm_engine_t *eng);

ngx_msec_t ngx_http_vlm_watch_time(ngx_http_vlm_engine_t *eng);

/* later in this turn of the loop: start and end what can be */

void ngx_http_vlm_engine_wake(ngx_http_vlm_engine_t *eng);


/* ---- ngx_http_vlm_watch.c: an event loop that hangs --------------------- */

void ngx_http_vlm_watch_start(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_watch_stop(ngx_http_vlm_engine_t *eng);  /* safe twice */


/* ---- ngx_http_vlm_route.c: method and path to a handler ----------------- */

/* of the inner server, when its worker gave the model up */

ngx_int_t ngx_http_vlm_refuse_moved(ngx_http_request_t *r);

/* 503, counted and logged: the model is not to be had */

ngx_int_t ngx_http_vlm_refuse(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, const char *text);

/* the content handler of vlm_pass, and the phase of the inner server */

ngx_int_t ngx_http_vlm_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_vlm_inner_handler(ngx_http_request_t *r);


/* ---- ngx_http_vlm_reply.c: whole answers -------------------------------- */

/* of r, made if there is none yet; NULL: no memory */

ngx_http_vlm_ctx_t *ngx_http_vlm_ctx(ngx_http_request_t *r);

/*
 * An answer as a whole, the return value of a content handler.  json must
 * live as long as the request (its pool, or constant).  The body of the
 * request is discarded if it was not read.
 */

ngx_int_t ngx_http_vlm_send(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *json);

/* the same from a writer that is done; takes its memory over in any case */

ngx_int_t ngx_http_vlm_send_json(ngx_http_request_t *r, ngx_uint_t status,
    ngx_http_vlm_json_out_t *w);

/* {"error": text}, or what OpenAI's clients read, below /v1/; text is escaped
   and needs not live on */

ngx_int_t ngx_http_vlm_send_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *text);

/* the body of such an answer, in the request's pool */

ngx_int_t ngx_http_vlm_error_body(ngx_http_request_t *r, ngx_uint_t status,
    const char *text, ngx_str_t *body);

/* key is constant; the value lives as long as the request */

ngx_int_t ngx_http_vlm_add_header(ngx_http_request_t *r, const char *key,
    ngx_str_t *value);
ngx_int_t ngx_http_vlm_retry_after(ngx_http_request_t *r,
    ngx_uint_t seconds);

/* a header of the request, by its name in lower case, or NULL */

ngx_table_elt_t *ngx_http_vlm_header(ngx_http_request_t *r, const char *name);


/* ---- ngx_http_vlm_cors.c: pages of other origins ------------------------ */

char *ngx_http_vlm_cors_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* a request of a page that may not ask, which is logged */

ngx_uint_t ngx_http_vlm_cors_refused(ngx_http_request_t *r);

/* the headers of any answer; and of one to OPTIONS */

ngx_int_t ngx_http_vlm_cors_headers(ngx_http_request_t *r);
ngx_int_t ngx_http_vlm_cors_preflight(ngx_http_request_t *r);


/* ---- ngx_http_vlm_filter.c: nginx's own error pages as JSON ------------- */

ngx_int_t ngx_http_vlm_filter_init(ngx_conf_t *cf);


/* ---- ngx_http_vlm_body.c: the body as one range of bytes ---------------- */

/*
 * Reads the body of r, then calls post, which finalizes.  Returns as a
 * content handler does.
 */

ngx_int_t ngx_http_vlm_body_read(ngx_http_request_t *r,
    ngx_http_client_body_handler_pt post);

/* in the loop, after the body was read; frees it with the request */

ngx_int_t ngx_http_vlm_body_init(ngx_http_request_t *r,
    ngx_http_vlm_body_t *body);

/* in a thread, for nginx keeps large bodies in files: data and len; or -1 */

int ngx_http_vlm_body_get(ngx_http_vlm_body_t *body);
void ngx_http_vlm_body_free(ngx_http_vlm_body_t *body);    /* safe twice */


/* ---- ngx_http_vlm_thread.c: work of a request that has to wait ---------- */

/*
 * Runs run(data) in a thread of nginx's "default" pool (the second function:
 * of the engine's own, whose threads may sleep), then done(r, data) in
 * the loop, which finalizes the request.  If the client leaves meanwhile, the
 * request stays in memory until run() has returned, and done is not called:
 * what run() allocates is freed by a cleanup of r->pool that the caller adds
 * before.  NGX_OK, or NGX_ERROR: nothing was started.
 *
 * run() touches no pool, no log, and nothing of r but what does not change.
 */

ngx_int_t ngx_http_vlm_thread(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, void (*run)(void *data),
    void (*done)(ngx_http_request_t *r, void *data), void *data);

/* the same with always(data), in the loop, after run() in any case */

ngx_int_t ngx_http_vlm_thread_always(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, void (*run)(void *data),
    void (*always)(void *data),
    void (*done)(ngx_http_request_t *r, void *data), void *data);


/* ---- ngx_http_vlm_ask.c: a request for an answer, up to the line -------- */

/* the return value of a content handler; the dialect may change later */

ngx_int_t ngx_http_vlm_ask(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_dialect_t *dialect);

/* of a request whose body has been read; NGX_OK: nothing is left to do,
   NGX_BUSY: there is no place in line, else an error to finalize with */

ngx_int_t ngx_http_vlm_ask_read(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, const ngx_http_vlm_dialect_t *dialect);

/* thread: the body to the dialect's fields, or ctx->status and ctx->err */

void ngx_http_vlm_input_parse(ngx_http_vlm_ctx_t *ctx);

/* thread: ends the request with this status and text; NGX_ERROR */

ngx_int_t ngx_http_vlm_fail(ngx_http_vlm_ctx_t *ctx, ngx_uint_t status,
    const char *fmt, ...);

/* thread: which field the error is about that comes next */

void ngx_http_vlm_fail_param(ngx_http_vlm_ctx_t *ctx, const char *fmt, ...);
ngx_int_t ngx_http_vlm_fail_store(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_store_err_t *err);

/*
 * thread: takes bytes of http_memory for "what", waiting for them; NGX_OK, and
 * ngx_http_vlm_budget_give() follows; or the request has ended, NGX_ERROR.
 */

ngx_int_t ngx_http_vlm_input_memory(ngx_http_vlm_ctx_t *ctx, uint64_t bytes,
    const char *what);

/* thread: a picture, as vlm_picture_read() has it, within that memory; NULL:
   the request has ended, or, without ctx->status, ctx->err says why */

vlm_picture_t *ngx_http_vlm_input_picture(ngx_http_vlm_ctx_t *ctx,
    const void *data, size_t len);

/* loop: logs a failure of ours, then lets the dialect answer it */

ngx_int_t ngx_http_vlm_fail_answer(ngx_http_vlm_ctx_t *ctx);


/* ---- ngx_http_vlm_openai_error.c ---------------------------------------- */

/* does the client of r read errors of this form? */

ngx_uint_t ngx_http_vlm_openai_speaks(ngx_http_request_t *r);

/* {"error": {...}}; ctx, which may be NULL, knows a code and a field */

void ngx_http_vlm_openai_put_error(ngx_http_vlm_json_out_t *w,
    ngx_http_vlm_ctx_t *ctx, ngx_uint_t status, const char *text);


/* ---- ngx_http_vlm_queue.c: the line, its length and its deadlines ------- */

/* before the body is read; NULL, and NGX_BUSY in *rc: the line is full */

ngx_http_vlm_ctx_t *ngx_http_vlm_queue_admit(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_int_t *rc);
ngx_int_t ngx_http_vlm_refuse_full(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng);               /* the 429 */
ngx_uint_t ngx_http_vlm_zone_length(ngx_http_vlm_engine_t *eng);

/* the body was read: a place in the line with its deadline, and an eye on the
   client; or NGX_BUSY */

ngx_int_t ngx_http_vlm_queue_wait(ngx_http_vlm_ctx_t *ctx);

/* the engine has begun: out of the line, the deadline of a generation */

void ngx_http_vlm_queue_started(ngx_http_vlm_ctx_t *ctx);

/* fails ctx with this status and text as soon as no thread works for it */

void ngx_http_vlm_queue_refuse(ngx_http_vlm_ctx_t *ctx, ngx_uint_t status,
    const char *text);

/* ends ctx with the return value of a content handler; the request may be
   gone after it */

void ngx_http_vlm_queue_end(ngx_http_vlm_ctx_t *ctx, ngx_int_t rc);

/* how many requests the engine will begin before this one, and one more; 0:
   it has begun */

ngx_uint_t ngx_http_vlm_queue_place(ngx_http_vlm_ctx_t *ctx);

/* back into the line for another prompt; its deadline stays */

void ngx_http_vlm_queue_again(ngx_http_vlm_ctx_t *ctx);

/* out of everything: queues, chain, engine, counters; safe twice */

void ngx_http_vlm_queue_leave(ngx_http_vlm_ctx_t *ctx);

/* the engine has failed: so do all that wait; it hangs: so do all it has */

void ngx_http_vlm_queue_fail(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_queue_abandon(ngx_http_vlm_engine_t *eng);


/* ---- ngx_http_vlm_prepare.c: parse, chain, prompt, submit, store -------- */

void ngx_http_vlm_prepare_expect(ngx_http_vlm_ctx_t *ctx); /* at its headers */
void ngx_http_vlm_prepare_add(ngx_http_vlm_ctx_t *ctx);    /* at its body */
void ngx_http_vlm_prepare_next(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_finish_store(ngx_http_vlm_ctx_t *ctx);

/* another prompt of the same request: in its first place, or at the end */

void ngx_http_vlm_finish_again(ngx_http_vlm_ctx_t *ctx, ngx_uint_t at_end);

/* ends ctx with its answer, as a whole or as the last of a stream */

void ngx_http_vlm_finish_answer(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_queue_free(ngx_http_vlm_ctx_t *ctx);   /* safe twice */
void ngx_http_vlm_chain_leave(ngx_http_vlm_ctx_t *ctx);    /* safe twice */


/* ---- ngx_http_vlm_deliver.c: events of the engine to answers ------------ */

void ngx_http_vlm_deliver(ngx_http_vlm_engine_t *eng, vlm_event_t *e);

/* the model has said what it was asked for, or ctx->err says why it has not,
   or there was nothing to ask; the request may be gone after it */

void ngx_http_vlm_finish_said(ngx_http_vlm_ctx_t *ctx);


/* ---- ngx_http_vlm_timings.c: where the time went ------------------------ */

void ngx_http_vlm_timings_started(ngx_http_vlm_ctx_t *ctx);

/* any thread: "timings" and its object; some 600 bytes */

void ngx_http_vlm_timings_put(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w);


/* ---- ngx_http_vlm_stream.c: an answer as events ------------------------- */

/* from now on, once the line was entered: the place in it is told in time */

void ngx_http_vlm_stream_watch(ngx_http_vlm_ctx_t *ctx);

/* something new is in ctx->text: sends it, unless the client is behind;
   NGX_ERROR: the request should be finalized */

ngx_int_t ngx_http_vlm_stream_update(ngx_http_vlm_ctx_t *ctx);

/* the rest and the end, or an error as the last event; the return value of a
   content handler */

ngx_int_t ngx_http_vlm_stream_last(ngx_http_vlm_ctx_t *ctx);
ngx_int_t ngx_http_vlm_stream_error(ngx_http_vlm_ctx_t *ctx,
    ngx_uint_t status, const char *text);

void ngx_http_vlm_stream_leave(ngx_http_vlm_ctx_t *ctx);   /* safe twice */

/* for dialects: "event: NAME\ndata: " or, with NULL, "data: "; what is
   written as JSON then ends the event with ngx_http_vlm_stream_end() */

void ngx_http_vlm_stream_event(ngx_http_vlm_json_out_t *w, const char *name);
void ngx_http_vlm_stream_end(ngx_http_vlm_json_out_t *w);

/* ": place N", a comment of SSE: for "waits" */

void ngx_http_vlm_stream_waits(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w, ngx_uint_t place);


/* ---- ngx_http_vlm_health.c ---------------------------------------------- */

/* what is true now, whatever the zone's owner could still write into it */

ngx_http_vlm_state_e ngx_http_vlm_health_state(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_shm_t *shm);
const char *ngx_http_vlm_health_name(ngx_http_vlm_state_e state);

/* there is an owner, and its event loop gives no sign of life */

ngx_uint_t ngx_http_vlm_health_silent(ngx_http_vlm_shm_t *shm);


/* ---- ngx_http_vlm_metrics.c: what became of requests, counted ----------- */

extern const char *const  ngx_http_vlm_refusal_names[];
extern const char *const  ngx_http_vlm_stage_names[];
extern const ngx_msec_t   ngx_http_vlm_bounds[];   /* of buckets, in ms */

/* any thread */

void ngx_http_vlm_metrics_time(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_time_e what, ngx_msec_t ms);
void ngx_http_vlm_metrics_picture(ngx_http_vlm_engine_t *eng,
    vlm_picture_info_t *info);

/* an event that ends a job, whether its request is still there or not */

void ngx_http_vlm_metrics_job(ngx_http_vlm_engine_t *eng, vlm_usage_t *usage);

/* the end of a request, by an answer or a refusal, which is logged; or because
   its client left */

void ngx_http_vlm_metrics_ended(ngx_http_vlm_ctx_t *ctx, ngx_int_t rc);
void ngx_http_vlm_metrics_left(ngx_http_vlm_ctx_t *ctx);

/* a refusal of a request that has no place yet: counts and logs */

void ngx_http_vlm_metrics_refused(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_http_vlm_refusal_e reason,
    const char *text);

/* s, for Retry-After: how long the line that stands now will take */

ngx_uint_t ngx_http_vlm_metrics_retry(ngx_http_vlm_engine_t *eng);


/* ---- ngx_http_vlm_poison.c: requests that kill workers ------------------ */

uint64_t ngx_http_vlm_poison_hash(const u_char *data, size_t len);
ngx_uint_t ngx_http_vlm_poison_known(ngx_http_vlm_engine_t *eng,
    uint64_t hash);
void ngx_http_vlm_poison_begin(ngx_http_vlm_ctx_t *ctx);   /* safe twice */
void ngx_http_vlm_poison_end(ngx_http_vlm_ctx_t *ctx);     /* safe twice */
void ngx_http_vlm_poison_death(ngx_http_vlm_engine_t *eng);


/* ---- ngx_http_vlm_status.c: vlm_status, for Prometheus and as JSON ------ */

char *ngx_http_vlm_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


/* ---- ngx_http_vlm_session.c --------------------------------------------- */

/* logs what the store says, and answers with its status and without paths;
   the return value of a content handler */

ngx_int_t ngx_http_vlm_refuse_store(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_http_vlm_store_err_t *err);


/* ---- ngx_http_vlm_sweep.c: what leaves the store by itself -------------- */

/* in the designated worker; without bounds it does nothing */

void ngx_http_vlm_sweep_start(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle);


/* ---- ngx_http_vlm_vars.c ------------------------------------------------ */

ngx_int_t ngx_http_vlm_add_variables(ngx_conf_t *cf);

/* in the order of its rank: behind the others of its session */

ngx_int_t ngx_http_vlm_chain_enter(ngx_http_vlm_ctx_t *ctx);


/* in the loop, after a thread's work for data, a ctx, in any case */

void ngx_http_vlm_finish_task(void *data);


/* 0, or for how many ms the engine thread has not ticked though it should */

ngx_msec_t ngx_http_vlm_watch_silent(ngx_http_vlm_engine_t *eng);


void ngx_http_vlm_chain_init(ngx_http_vlm_engine_t *eng);


/* the content handler of vlm_status */

ngx_int_t ngx_http_vlm_status_handler(ngx_http_request_t *r);


/* a level's number; NGX_ERROR: the value is none */

ngx_int_t ngx_http_vlm_order_priority(ngx_str_t *value);


#include "ngx_http_vlm_route.h"


extern ngx_module_t  ngx_http_vlm_module;


#endif /* _NGX_HTTP_VLM_H_INCLUDED_ */
