
/*
 * One engine: its configuration, its state in every process and in its
 * designated worker, and its shared zone.
 */


#ifndef _NGX_HTTP_VLM_ENGINE_H_INCLUDED_
#define _NGX_HTTP_VLM_ENGINE_H_INCLUDED_


#include "ngx_http_vlm.h"
#include "../engine/embedder.h"
#include "api/adapters.h"
#include "api/constraint.h"
#include "api/metrics.h"
#include "api/thinking.h"
#include "base/breaker.h"
#include "base/budget.h"
#include "base/file.h"
#include "base/json_out.h"
#include "base/losses.h"
#include "base/rank.h"
#include "base/ring.h"
#include "base/size.h"
#include "base/suspects.h"
#include "base/utf8.h"
#include "base/watchdog.h"
#include "document/reader.h"
#include "store/redis.h"
#include "store/store.h"


/* ---- counters of requests ------------------------------------------------ */

/* why a request failed; the names are in metrics.c, in this order */

typedef enum {
    NGX_HTTP_VLM_NOT_REFUSED = 0,
    NGX_HTTP_VLM_QUEUE_FULL,
    NGX_HTTP_VLM_QUEUE_TIMEOUT,
    NGX_HTTP_VLM_TIMEOUT,                      /* its answer took too long */
    NGX_HTTP_VLM_UNAVAILABLE,                  /* no model, or no longer */
    NGX_HTTP_VLM_LIMIT,                        /* more than there is room for */
    NGX_HTTP_VLM_INPUT,
    NGX_HTTP_VLM_SERVER,                       /* the store, memory */
    NGX_HTTP_VLM_POISON,                       /* see poison.c */
    NGX_HTTP_VLM_BREAKER,                      /* see breaker.c */
    NGX_HTTP_VLM_REFUSALS
} ngx_http_vlm_refusal_e;


/* the stage of a request whose client left */

typedef enum {
    NGX_HTTP_VLM_STAGE_BODY = 0,
    NGX_HTTP_VLM_STAGE_PREPARE,
    NGX_HTTP_VLM_STAGE_QUEUE,
    NGX_HTTP_VLM_STAGE_PROMPT,                 /* picture and prompt are read */
    NGX_HTTP_VLM_STAGE_DECODE,
    NGX_HTTP_VLM_STAGE_STORE,
    NGX_HTTP_VLM_STAGES
} ngx_http_vlm_stage_e;


/* measured times */

typedef enum {
    NGX_HTTP_VLM_TIME_QUEUE = 0,
    NGX_HTTP_VLM_TIME_FIRST,
    NGX_HTTP_VLM_TIME_TOKEN,
    NGX_HTTP_VLM_TIME_REQUEST,
    NGX_HTTP_VLM_TIME_PREPARE,
    NGX_HTTP_VLM_TIME_VISION,
    NGX_HTTP_VLM_TIME_PREFILL,
    NGX_HTTP_VLM_TIME_DECODE,
    NGX_HTTP_VLM_TIME_RECEIVE,
    NGX_HTTP_VLM_TIME_IMAGE_DECODE,
    NGX_HTTP_VLM_TIME_IMAGE_RESIZE,
    NGX_HTTP_VLM_TIME_FIRST_STEP,
    NGX_HTTP_VLM_TIME_READING,
    NGX_HTTP_VLM_TIME_PAGE,
    NGX_HTTP_VLM_TIMES
} ngx_http_vlm_time_e;


typedef struct {
    ngx_atomic_t                  answered[VLM_FINISH_CANCELLED + 1];
    ngx_atomic_t                  refused[NGX_HTTP_VLM_REFUSALS];
    ngx_atomic_t                  cancelled[NGX_HTTP_VLM_STAGES];
    vlm_histogram_t               times[NGX_HTTP_VLM_TIMES];
    ngx_atomic_t                  prompt_tokens;
    ngx_atomic_t                  completion_tokens;
    ngx_atomic_t                  cached_tokens;       /* of prompts */
    ngx_atomic_t                  prompt_pictures;     /* of prompts */
    ngx_atomic_t                  cached_pictures;     /* not encoded again */
    ngx_atomic_t                  pictures;
    ngx_atomic_t                  picture_tokens;
    ngx_atomic_t                  service;     /* ms in a slot: running mean */
    ngx_atomic_t                  restarts;    /* workers that died */
    ngx_atomic_t                  load;        /* ms of the last load */
} ngx_http_vlm_metrics_t;


/* ---- the order of the queue ---------------------------------------------- */

typedef struct ngx_http_vlm_client_s  ngx_http_vlm_client_t;


/* as configured */

typedef struct {
    ngx_http_complex_value_t     *priority;    /* or NULL */
    ngx_http_complex_value_t     *fair;        /* or NULL */
    ngx_http_complex_value_t     *salt;        /* or NULL */
    ngx_msec_t                    priority_age;    /* that one level is worth */
    ngx_msec_t                    fair_age;    /* 0: queue timeout */
} ngx_http_vlm_rank_conf_t;


/* requests that need a prompt next, by rank */

typedef struct {
    ngx_rbtree_t                  waiting[2];  /* the second: heavy ones */
    ngx_rbtree_node_t             waiting_sentinel;
    ngx_rbtree_t                  clients;     /* clients with requests here */
    ngx_rbtree_node_t             clients_sentinel;
    int64_t                       clock;       /* ms, of the queue */
    ngx_msec_t                    counted_at;  /* the positions, at last */
    ngx_uint_t                    count;       /* the number of counts */
} ngx_http_vlm_order_t;


/* of a request */

typedef struct {
    vlm_rank_t                    given;       /* by the directives */
    int64_t                       start;       /* on the queue's clock */
    int64_t                       value;       /* start, less the priority's
                                                  worth */
    ngx_http_vlm_client_t        *client;
    ngx_rbtree_node_t             node;
    ngx_uint_t                    in_order;    /* in the tree */
    ngx_uint_t                    place;       /* position by this count */
    ngx_uint_t                    count;
} ngx_http_vlm_rank_t;


/* ---- documents ----------------------------------------------------------- */

typedef struct ngx_http_vlm_reading_s   ngx_http_vlm_reading_t;
typedef struct ngx_http_vlm_encoding_s  ngx_http_vlm_encoding_t;


typedef enum {
    NGX_HTTP_VLM_ENCODER_LOADING = 0,
    NGX_HTTP_VLM_ENCODER_READY,
    NGX_HTTP_VLM_ENCODER_FAILED
} ngx_http_vlm_encoder_e;


/* in the zone: life/reading.c, life/encoding.c */

#define NGX_HTTP_VLM_DOCUMENT_STATES  4        /* of vlm_document_state_t */

typedef struct {
    ngx_atomic_t                  added;       /* to be read, since the start */
    ngx_atomic_t                  ended;       /* readings, in any way */
    ngx_atomic_t                  failed;      /* those with a sentence */
    ngx_atomic_t                  pages;       /* that were read */
    ngx_atomic_t                  pictures;    /* of pages, drawn */
    ngx_atomic_t                  states[NGX_HTTP_VLM_DOCUMENT_STATES];
                                               /* documents, at last count */
    ngx_atomic_t                  encoder;     /* ngx_http_vlm_encoder_e */
    ngx_atomic_t                  model;       /* of vectors; 0: not loaded */
    ngx_atomic_t                  lacking;     /* pieces without a vector of
                                                  the model, at last count */
    ngx_atomic_t                  encoded;     /* pieces, since the start */
} ngx_http_vlm_documents_t;


/* a page whose drawing has failed: api/documents/draw.c */

#define NGX_HTTP_VLM_UNDRAWN  128

typedef struct {
    char                          id[37];      /* of its document */
    unsigned                      whole:1;     /* it had all of "time" */
    uint32_t                      number;
    uint64_t                      until;       /* us, remembered; 0: unused */
    char                          why[128];
} ngx_http_vlm_undrawn_t;


/* the requests for pictures of pages in one worker: api/documents/page.c, and
   those of prompts: draw.c */

typedef struct {
    ngx_queue_t                   waiting;     /* those that need a thread */
    ngx_uint_t                    running;     /* threads */

    ngx_atomic_t                  prompts;     /* whose page is being drawn */
    pthread_mutex_t               lock;        /* of what is below */
    ngx_uint_t                    n_undrawn;   /* noted, since the start */
    ngx_http_vlm_undrawn_t        undrawn[NGX_HTTP_VLM_UNDRAWN];
} ngx_http_vlm_drawing_t;


/* as configured: "documents" and "retrieval" */

typedef struct {
    ngx_uint_t                    on;
    ngx_uint_t                    legacy;      /* a request without a session
                                                  means the newest document */
    ngx_uint_t                    seccomp;     /* no Landlock */
    char                         *helper;      /* the path of vlm-pdf */
    uint64_t                      file;        /* bytes of one */
    uint64_t                      memory;      /* bytes of vlm-pdf */
    uint32_t                      pages;       /* of one, and characters */
    uint32_t                      characters;
    uint32_t                      seconds;     /* of its reading */
    uint32_t                      ocr_seconds; /* and of OCR, beside them */
    char                         *languages;   /* of OCR; NULL: off */
    uint32_t                      jobs;        /* read at once */
    ngx_uint_t                    hybrid;      /* the search has vectors */
    char                         *encoder;     /* its directory */
    vlm_embedder_plan_t           encoding;
} ngx_http_vlm_documents_conf_t;


/* ---- the shared zone: an engine as every worker can read it -------------- */

typedef enum {
    NGX_HTTP_VLM_LOADING = 0,
    NGX_HTTP_VLM_READY,
    NGX_HTTP_VLM_FAILED,
    NGX_HTTP_VLM_STALLED,                      /* no tick for "stall" */
    NGX_HTTP_VLM_BUSY                          /* reported only: health.c */
} ngx_http_vlm_state_e;


typedef struct {
    ngx_atomic_t                  pid;         /* of the designated worker */
    ngx_atomic_t                  state;       /* ngx_http_vlm_state_e */
    ngx_atomic_t                  progress;    /* percent of the load */
    ngx_atomic_t                  heartbeat;   /* the loop's last tick, as
                                                  ngx_current_msec */
    ngx_atomic_t                  ticked;      /* the engine thread's last
                                                  tick, the same */
    ngx_atomic_t                  waiting;
    ngx_atomic_t                  running;
    ngx_atomic_t                  kv_rows;     /* in the slots' caches */
    ngx_atomic_t                  sessions;
    ngx_atomic_t                  lost;        /* a worker lost the model */
    ngx_atomic_t                  filling;     /* as in vlm_stat_t */
    ngx_atomic_t                  lock_beside; /* the socket: see lock.c */
    ngx_atomic_t                  generation;  /* of configurations */
    ngx_atomic_t                  overlap;     /* "reload" of the newest
                                                  configuration */
    ngx_atomic_t                  draining;    /* generation of the worker
                                                  shut down last */
    ngx_atomic_t                  owner_stays; /* at a reload */
    vlm_losses_t                  deaths;      /* of workers with a model */
    vlm_losses_t                  losses;      /* the same, with a GPU */
    vlm_breaker_t                 breaker;     /* outlives workers that fail */

    ngx_http_vlm_metrics_t        metrics;     /* since nginx's start */
    ngx_http_vlm_documents_t      documents;

    volatile uint64_t             in_flight[VLM_SUSPECTS_FLIGHT];
    vlm_suspect_t                 suspects[VLM_SUSPECTS];

    ngx_atomic_t                  http_used;   /* of http_memory, in the
                                                  designated worker */
    ngx_atomic_t                  http_peak;   /* most of it so far */
    ngx_atomic_t                  http_waits;  /* threads that waited */

    /* written and read under the mutex of the zone's slab pool */
    vlm_plan_t                    plan;
    uint64_t                      taken;       /* as in vlm_stat_t */
    char                          device[64];
    char                          device_reason[480];
    char                          reason[480]; /* of a failed load */
    char                          store_reason[256];   /* its last error */
    char                          encoder_reason[480]; /* of a failed load */
    char                          reader_reason[480];  /* vlm-pdf cannot be
                                                          run */
    char                          reload_reason[480];  /* of a failed reload */
    vlm_adapter_entry_t           adapters[VLM_MAX_ADAPTERS];  /* adapter.c */

    vlm_ring_t                   *hops;        /* the usage of streams that took
                                                  the hop: wire/hop.c */
} ngx_http_vlm_shm_t;


/* ---- an engine ----------------------------------------------------------- */

/* the thread task of the engine: one step at a time */

typedef enum {
    NGX_HTTP_VLM_STEP_OPEN = 0,                /* the tokenizer, the lock */
    NGX_HTTP_VLM_STEP_LOAD,
    NGX_HTTP_VLM_STEP_RUN,
    NGX_HTTP_VLM_STEP_CLOSE
} ngx_http_vlm_step_e;


#define NGX_HTTP_VLM_TOOLS_REFUSE  0
#define NGX_HTTP_VLM_TOOLS_IGNORE  1
#define NGX_HTTP_VLM_TOOLS_CALL    2

/* of http_memory, this part is of compiled grammars */

#define NGX_HTTP_VLM_GRAMMARS  16

#define NGX_HTTP_VLM_LOCKS  2                  /* workers with a model */
#define NGX_HTTP_VLM_LOCK_FDS                                                 \
    (2 * NGX_HTTP_VLM_LOCKS)                   /* those, then the store's,
                                                  if those are elsewhere */

/* as configured; constant once the configuration has been read */

typedef struct {
    vlm_conf_t                    vlm;
    u_char                       *file;        /* of the definition, else of
                                                  the first use */
    ngx_uint_t                    line;        /* in this file */
    ngx_uint_t                    generation;  /* of the configuration */
    ngx_uint_t                    worker;      /* the designated one */

    /* of the checkpoint */
    char                         *model;       /* its path, as written */
    vlm_plan_t                    plan;
    vlm_facts_t                   facts;
    time_t                        created;     /* of config.json */
    ngx_str_t                     directory;   /* its directory's name */
    ngx_array_t                  *aliases;     /* ngx_str_t; or NULL */
    ngx_uint_t                    any_name;    /* alias * */
    ngx_uint_t                    lora_tower;  /* of vlm.lora, as words */
    ngx_uint_t                    lora_load;
    ngx_uint_t                    kv_int8;     /* the same of vlm.kv_int8 */
    vlm_sampling_t                sampling;    /* -1: the checkpoint's */
    ngx_uint_t                    thinking;    /* the template adds its tail */
    ngx_uint_t                    tools;       /* called, if the model's
                                                  template has them */

    /* files */
    ngx_str_t                     store_dir;   /* with a zero */
    ngx_str_t                     files_dir;   /* of uploads and results */
    vlm_redis_conf_t             *redis;       /* of sessions; NULL: SQLite in
                                                  store_dir */
    time_t                        store_expires;   /* 0: never */
    off_t                         store_max;   /* bytes of files, 0: off */
    ngx_str_t                     socket;
    ngx_uint_t                    socket_line; /* 0: not configured */
    ngx_str_t                     locks[NGX_HTTP_VLM_LOCK_FDS];

    /* limits */
    ngx_uint_t                    processors;  /* of the master */
    ngx_uint_t                    prepare;     /* requests in threads */
    ngx_uint_t                    queue_size;
    ngx_msec_t                    queue_timeout;
    ngx_msec_t                    timeout;
    ngx_msec_t                    stall;       /* 0: by the device */
    ngx_msec_t                    retry;       /* of device auto */
    ngx_uint_t                    failures;    /* breaker; 0: there is none */
    ngx_msec_t                    pause;       /* of the breaker */
    uint64_t                      http_memory; /* of requests and of compiled
                                                  grammars, in all */
    ngx_http_vlm_rank_conf_t      rank;
    ngx_uint_t                    overlap;     /* reload */
    ngx_http_vlm_documents_conf_t documents;

    unsigned                      cache_set:1; /* and vlm.cache, or off */
    unsigned                      defined:1;   /* not only used */
    unsigned                      passed:1;    /* used by a location */
    unsigned                      thinking_auto:1;
} ngx_http_vlm_engine_conf_t;


/* the model in the designated worker: life/ */

typedef struct {
    vlm_t                        *vlm;         /* from the step "open" on */
    vlm_t                        *new_vlm;     /* the thread's */
    ngx_thread_task_t             task;
    ngx_http_vlm_step_e           step;
    int                           step_rc;     /* of the last step */
    vlm_err_t                     step_err;
    vlm_err_t                     reason;      /* of "failed" */
    ngx_int_t                   (*ready_to_start)(ngx_http_vlm_engine_t *eng,
                                                  ngx_log_t *log);
    ngx_connection_t             *events;      /* vlm_fd() */
    ngx_connection_t             *listener;    /* of the hop: socket.c */
    ngx_http_vlm_reading_t       *reading;     /* NULL: documents are off */
    ngx_http_vlm_encoding_t      *encoding;    /* NULL: no retrieval hybrid */
    ngx_event_t                   heartbeat;
    ngx_event_t                   exit_event;  /* ends the process: task.c */

    ngx_thread_task_t            *lock_task;   /* looks at the files */
    int                           lock_fds[NGX_HTTP_VLM_LOCK_FDS]; /* or -1 */
    ngx_msec_t                    lock_gone;   /* ms, waited for its file */
    ngx_msec_t                    backoff;     /* ms, before the lock */
    ngx_msec_t                    opened_at;   /* ms, start of the load */
    ngx_msec_t                    exit_time;   /* ms of the exit, or 0 */

    /* the CPU instead of a GPU: device.c */
    ngx_msec_t                    fallback_until;
    char                          device_note[128];

    /* the watchdogs: watch.c */
    uint64_t                      ticks;       /* of the engine thread */
    ngx_msec_t                    ticked;      /* its last tick, or when it
                                                  was last idle */
    volatile uint64_t             polls;       /* of the loop, which watch
                                                  looks at */
    vlm_watchdog_t                watch;

    ngx_atomic_t                  draining;    /* exiting, but works; read by
                                                  the engine thread */
    unsigned                      owner:1;     /* the designated worker */
    unsigned                      standby:1;   /* an older one answers */
    unsigned                      opened:1;    /* prompts can be made */
    unsigned                      loaded:1;
    unsigned                      failed:1;
    unsigned                      stopped:1;   /* by an exit, not loaded */
    unsigned                      closed:1;    /* or about to be, or never
                                                  opened */
    unsigned                      released:1;  /* the model, in an exit */
    unsigned                      on_cpu:1;    /* though a GPU was planned */
    unsigned                      fallback:1;  /* so for a while */
    unsigned                      reopen:1;    /* closing, to open again */
    unsigned                      lost:1;      /* the device was lost */
    unsigned                      lock_lost:1; /* reported: see lock.c */
    unsigned                      left_out:1;  /* an adapter */
    unsigned                      adapting:1;  /* tried again: again.c */
} ngx_http_vlm_life_t;


/* the queue in the designated worker: line/ */

typedef struct {
    ngx_queue_t                   requests;    /* ctx->place.all */
    ngx_queue_t                   arrivals;    /* ctx->place.queue: new */
    ngx_queue_t                   preparing;   /* the same: in threads */
    ngx_queue_t                   ready;       /* the same: submitted next */
    ngx_queue_t                   leasing;     /* the same: not the first in
                                                  line of its session */
    ngx_event_t                   keep;        /* keeps places in those lines:
                                                  lease.c */
    ngx_http_vlm_order_t          order;
    ngx_rbtree_t                  chains;      /* by session */
    ngx_rbtree_node_t             chains_sentinel;
    ngx_event_t                   next;        /* posted by ..._wake(), or by
                                                  a timer: prepare.c */
    ngx_uint_t                    last_seq;    /* of the last arrival */
    ngx_uint_t                    n_parses;    /* of arrivals, not yet begun */
    ngx_uint_t                    n_tasks;     /* of prepare, in threads */
    ngx_uint_t                    n_heavy;     /* tasks with ctx->heavy */
    ngx_uint_t                    n_threads;   /* of any kind, ctx->in_task */
    ngx_uint_t                    n_prompts;   /* being made or waiting */
    ngx_uint_t                    n_jobs;      /* submitted to the engine */
    ngx_uint_t                    n_waiting;   /* not started by the engine */
    ngx_uint_t                    running;     /* until a job's last event */
    ngx_uint_t                    n_receiving; /* reading their bodies */
    ngx_atomic_t                  pending;     /* with their body; read by the
                                                  engine thread */
} ngx_http_vlm_line_t;


struct ngx_http_vlm_engine_s {
    ngx_str_t                     name;
    ngx_cycle_t                  *cycle;       /* that defined it */
    ngx_log_t                    *log;
    ngx_shm_zone_t               *shm_zone;
    ngx_thread_pool_t            *pool;        /* of the engine thread */
    ngx_thread_pool_t            *threads;     /* nginx's "default" */
    ngx_thread_pool_t            *prepares;    /* our own, of the queue */
    const ngx_http_vlm_queue_calls_t *calls;   /* of a higher floor */
    vlm_budget_t                  budget;      /* http_memory */
    vlm_store_t                  *store;       /* since init_process */

    ngx_http_vlm_engine_conf_t    conf;
    ngx_http_vlm_shm_t           *zone;
    ngx_http_vlm_life_t           life;
    ngx_http_vlm_line_t           line;
    ngx_http_vlm_drawing_t        drawing;
};


/* logs what concerns eng, with its name in front; fmt is a literal */

#define ngx_http_vlm_log(level, log, err, eng, fmt, ...)                      \
    ngx_log_error(level, log, err, "vlm_engine \"%V\": " fmt,                 \
                  &(eng)->name, ##__VA_ARGS__)


/* copies a string into an array of char, cut where that ends */

#define ngx_http_vlm_copy(array, text)                                        \
    (void) ngx_cpystrn((u_char *) (array), (u_char *) (text), sizeof(array))


/* an event that handler(ev) gets with ev->data = d; and a task that a thread
   runs as run(d, log), after which the loop calls done(ev) in the same way */

#define ngx_http_vlm_event_init(ev, h, d, l)                                  \
    do { (ev)->handler = h; (ev)->data = d; (ev)->log = l; } while (0)

#define ngx_http_vlm_task_init(task, run, done, d, l)                         \
    do {                                                                      \
        (task)->handler = run;                                                \
        (task)->ctx = d;                                                      \
        ngx_http_vlm_event_init(&(task)->event, done, d, l);                  \
    } while (0)


/* deletes a timer that may be set */

#define ngx_http_vlm_timer_off(ev)                                            \
    do { if ((ev)->timer_set) { ngx_del_timer(ev); } } while (0)


/* does this process answer chats? */

#define ngx_http_vlm_answers(eng)                                             \
    ((eng)->life.owner && !(eng)->life.released && !(eng)->life.standby)


/*
 * The queue, as the engine's task and the streams call it from a lower floor:
 * the one table of calls to a higher floor.  All of them run in the event
 * loop.
 */

struct ngx_http_vlm_queue_calls_s {
    void                        (*init)(ngx_http_vlm_engine_t *eng);

    /* delivers an event of the engine to its request */

    void                        (*event)(ngx_http_vlm_engine_t *eng,
                                         vlm_event_t *e);

    /* something has changed: starts all work that can start now */

    void                        (*next)(ngx_http_vlm_engine_t *eng);

    /* refuses all waiting requests after the engine has failed; if it hangs,
       and may not be called, those that it has, too */

    void                        (*failed)(ngx_http_vlm_engine_t *eng,
                                          ngx_uint_t hangs);

    /* the request's position in the order of the engine, from 1; 0: the engine
       has begun it */

    ngx_uint_t                  (*place)(ngx_http_vlm_ctx_t *ctx);

    /* ends ctx with the return value of a content handler; the request may
       have been freed afterwards */

    void                        (*end)(ngx_http_vlm_ctx_t *ctx,
                                       ngx_int_t rc);
};


extern const ngx_http_vlm_queue_calls_t  ngx_http_vlm_queue_calls;


#include "ngx_http_vlm_request.h"


#endif /* _NGX_HTTP_VLM_ENGINE_H_INCLUDED_ */
