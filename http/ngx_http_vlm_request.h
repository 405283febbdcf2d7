
/*
 * A request for an answer, and the table of functions of an API.  Included by
 * ngx_http_vlm_engine.h.
 */


#ifndef _NGX_HTTP_VLM_REQUEST_H_INCLUDED_
#define _NGX_HTTP_VLM_REQUEST_H_INCLUDED_


/* ---- a chat request ------------------------------------------------------ */

/* a request's body, as nginx has read it */

typedef struct {
    ngx_http_request_body_t      *from;
    const u_char                 *data;
    size_t                        len;
    vlm_file_t                    file;
    u_char                       *copy;        /* of several buffers */
} ngx_http_vlm_body_t;


/*
 * How an API (RoboBrain's, OpenAI's, Ollama's) reads a request and writes its
 * answer.  The queue (ask.c, prepare.c, queue.c, deliver.c) is the same for
 * all; a dialect parses the body, makes the prompt and formats the answer.  A
 * request may need several prompts, one after the other; each takes a new
 * place in the queue or keeps the first.
 *
 * "thread": runs in a pool thread and may block; uses no nginx pool and no
 * log, and ends a request with ngx_http_vlm_fail().  "loop": runs on the event
 * loop.
 */

struct ngx_http_vlm_dialect_s {

    /* thread: takes the parsed body, or NULL if it is empty, and keeps in
       ctx->data the part that is needed, malloc()ed; may set ctx->streaming,
       and ctx->place.session, whose requests run in order of arrival */

    void                        (*fields)(ngx_http_vlm_ctx_t *ctx,
                                          const vlm_json_t *json);

    /* thread: makes ctx->prompt, and may change ctx->sampling, which has the
       engine's defaults; the memory that it points to lives until the job is
       submitted.  Neither a prompt nor ctx->error.status: there is nothing
       left to ask */

    void                        (*prompt)(ngx_http_vlm_ctx_t *ctx);

    /* loop, when ctx->out.text holds the whole answer, or there was nothing to
       ask: NGX_OK; NGX_AGAIN: ngx_http_vlm_finish_again() or ..._store() was
       called; NGX_ERROR: no memory; NULL is NGX_OK.  While ctx->asking is set,
       ctx->error.err may say why there is no answer */

    ngx_int_t                   (*ended)(ngx_http_vlm_ctx_t *ctx);

    /* thread, before the answer is sent or, while ctx->asking, before the
       next prompt; NULL: nothing to do */

    void                        (*store)(ngx_http_vlm_ctx_t *ctx);

    /* loop, or a thread if the answer is long: writes a whole answer */

    void                        (*answer)(ngx_http_vlm_ctx_t *ctx,
                                          vlm_json_out_t *w);

    /* loop, before ctx->error is sent as an error: may change its status;
       with NGX_OK, or the status 200, "answer" writes it, if ctx->out.json is
       empty, for ctx->out.status; NULL is NGX_DECLINED */

    ngx_int_t                   (*failed)(ngx_http_vlm_ctx_t *ctx);

    /* if ctx->streaming.  "chunk" is called as "answer" is, and appends to w
       the text that the client has not received; with "last" up to the end of
       the answer.  An error after the header is sent as an event; status is
       the status that it would have had.  "waits": NULL, or sends the position
       in the queue */

    const char                   *stream_type;
    void                        (*chunk)(ngx_http_vlm_ctx_t *ctx,
                                         vlm_json_out_t *w,
                                         ngx_uint_t last);
    void                        (*error)(ngx_http_vlm_ctx_t *ctx,
                                         vlm_json_out_t *w,
                                         ngx_uint_t status, const char *text);
    void                        (*waits)(ngx_http_vlm_ctx_t *ctx,
                                         vlm_json_out_t *w,
                                         ngx_uint_t place);

    /* loop, when no thread uses ctx: frees ctx->data; may be called twice; or
       NULL */

    void                        (*free)(ngx_http_vlm_ctx_t *ctx);
};


typedef enum {
    NGX_HTTP_VLM_RECEIVING = 0,
    NGX_HTTP_VLM_PARSING,                      /* JSON, upload; by arrival */
    NGX_HTTP_VLM_CHAINED,                      /* behind one of its session */
    NGX_HTTP_VLM_PREPARING,
    NGX_HTTP_VLM_WAITING,                      /* for a slot */
    NGX_HTTP_VLM_SUBMITTED,
    NGX_HTTP_VLM_RUNNING,
    NGX_HTTP_VLM_STORING,
    NGX_HTTP_VLM_ENDED
} ngx_http_vlm_step_of_ctx_e;


/* its place in the queue: line/ */

typedef struct {
    ngx_uint_t                    seq;         /* by arrival */
    ngx_http_cleanup_t           *cleanup;     /* NULL: out of the queue */
    ngx_queue_t                   all;         /* in line.requests */
    ngx_queue_t                   queue;       /* arrivals, preparing, ready,
                                                  leasing */
    ngx_http_vlm_rank_t           rank;        /* between them */
    vlm_store_text_t              session;     /* of its chain, or empty */
    char                          name[VLM_STORE_SESSION + 1]; /* its room */
    ngx_queue_t                   turn;        /* in chain->turns */
    ngx_http_vlm_chain_t         *chain;
    vlm_store_lease_t             lease;       /* among servers; a thread's */
    ngx_uint_t                    lease_waits; /* found in a thread */
    ngx_uint_t                    lease_left;  /* by a thread */
    ngx_msec_t                    lease_at;    /* ms, when it looks again */
    ngx_uint_t                    in_flight;   /* its index of the zone's
                                                  in_flight */
    unsigned                      in_receiving:1;  /* counted in line.n_... */
    unsigned                      in_waiting:1;
    unsigned                      in_parses:1;
    unsigned                      in_tasks:1;
    unsigned                      in_heavy:1;
    unsigned                      in_prompts:1;
    unsigned                      queued:1;    /* in one of four queues */
    unsigned                      probe:1;     /* of the breaker */
} ngx_http_vlm_place_t;


/* its answer, and what the client has received of it */

typedef struct {
    ngx_buf_t                    *text;        /* of the model, so far */
    ngx_array_t                  *tokens;      /* vlm_token_t, or NULL */
    ngx_str_t                     answer;      /* of text, or another */
    ngx_str_t                     thinking;
    vlm_picture_info_t            seen;        /* the prompt's last picture;
                                                  width 0: it has none */
    ngx_uint_t                    thinks;      /* text begins by thinking */
    ngx_uint_t                    plain;       /* all text is the answer */
    vlm_thinking_t                split;       /* how far text was split */
    u_char                       *clean;       /* text without marks */
    size_t                        clean_size;
    vlm_json_out_t                json;        /* all, or a stream's rest, by
                                                  a thread */
    ngx_uint_t                    status;      /* of a whole one; 0: 200 */

    /* of a stream: wire/stream.c */
    ngx_event_t                   position;    /* sends that of the queue */
    ngx_chain_t                  *free, *busy;
    size_t                        sent;        /* bytes of the answer */
    size_t                        sent_thinking;   /* bytes of the thinking */
    size_t                        sent_tokens; /* tokens of both */

    unsigned                      text_type:1; /* a text, not JSON */
    unsigned                      begun:1;     /* the header was sent */
    unsigned                      answered:1;  /* with a result */
} ngx_http_vlm_out_t;


/* in ms of ngx_current_msec, or 0 */

typedef struct {
    int64_t                       wall;        /* us since 1970, of arrival */
    ngx_msec_t                    headers, arrived, started, first, ended;
    ngx_msec_t                    text;        /* of its last text */
    ngx_msec_t                    prepare_ms;  /* of a prompt, in a thread */
    ngx_msec_t                    prepared_ms; /* of all prompts */
    ngx_msec_t                    wait_ms;     /* in the queue, less that */
    uint64_t                      decode_us, resize_us;    /* of pictures */
} ngx_http_vlm_request_times_t;


typedef struct {
    ngx_uint_t                    status;      /* 0: there is none */
    const char                   *code;        /* OpenAI's; constant or NULL */
    char                          param[64];   /* the field in error */
    vlm_err_t                     err;
} ngx_http_vlm_error_t;


/* an error page of nginx's own becomes JSON: wire/filter.c */

typedef struct {
    ngx_str_t                     text;
    ngx_uint_t                    status;
    ngx_uint_t                    given;       /* by another's error_page */
    unsigned                      replace:1;
    unsigned                      replaced:1;
} ngx_http_vlm_page_t;


struct ngx_http_vlm_ctx_s {
    ngx_http_request_t           *request;
    ngx_http_vlm_engine_t        *engine;
    ngx_http_vlm_step_of_ctx_e    step;
    const ngx_http_vlm_dialect_t *dialect;
    void                         *data;        /* the dialect's own */
    void                        (*run)(ngx_http_vlm_ctx_t *ctx);
    ngx_int_t                   (*send)(ngx_http_vlm_ctx_t *ctx);
                                               /* api/work.c */
    ngx_http_vlm_place_t          place;
    ngx_event_t                   timer;
    ngx_http_vlm_request_times_t  times;
    ngx_str_t                     session;     /* for variables */
    ngx_http_vlm_page_t           page;

    /* the body's progress */
    ngx_msec_t                    stall_checked;
    off_t                         received;

    /* fields shared with pool threads: whole bytes, because a bit field would
       share its byte with the event loop's fields */
    ngx_http_vlm_body_t           body;
    ngx_http_vlm_error_t          error;
    ngx_uint_t                    refusal;     /* found in a thread, or 0 */
    ngx_uint_t                    streaming;   /* the client wants events */
    ngx_uint_t                    asking;      /* hidden from the client */
    ngx_uint_t                    opened;      /* life.opened, when parsed */
    ngx_uint_t                    heavy;       /* pictures, or the store */
    ngx_atomic_t                  abandoned;   /* its thread may stop */
    uint64_t                      hash;        /* of the body */
    char                          adapter[VLM_ADAPTER_NAME];
                                               /* its name, or empty */
    double                        adapter_scale;
    vlm_prompt_t                 *prompt;      /* until submitted */
    vlm_sampling_t                sampling;
    vlm_store_err_t               stored;
    ngx_http_vlm_out_t            out;

    /* of the engine */
    vlm_job_t                    *job;
    vlm_finish_t                  finish;
    vlm_usage_t                   usage;       /* of all its jobs */

    /* an error that waits for the thread to return */
    ngx_http_vlm_error_t          late;

    unsigned                      in_task:1;
    unsigned                      parsed:1;
    unsigned                      client_left:1;
    unsigned                      logged:1;    /* the reason of its refusal */
};


/* tokens with log-probabilities that the client has not received */

#define ngx_http_vlm_unsent_tokens(ctx)                                       \
    ((ctx)->out.tokens ? (ctx)->out.tokens->nelts - (ctx)->out.sent_tokens : 0)


#endif /* _NGX_HTTP_VLM_REQUEST_H_INCLUDED_ */
