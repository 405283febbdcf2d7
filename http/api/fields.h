
/*
 * The fields of requests: one table has the names, types and ranges of all
 * interfaces, and one mapping gives the engine's parameters.
 */


#ifndef _NGX_HTTP_VLM_FIELDS_H_INCLUDED_
#define _NGX_HTTP_VLM_FIELDS_H_INCLUDED_


#include "messages.h"
#include "model.h"
#include "robobrain/shapes_json.h"


#define NGX_HTTP_VLM_STOPS      16
#define NGX_HTTP_VLM_STOP       1024           /* bytes, of one of them */


/* numbers and booleans; an absent one is NAN */

typedef enum {
    NGX_HTTP_VLM_IGNORED = 0,                  /* its type is checked */
    NGX_HTTP_VLM_TEMPERATURE,
    NGX_HTTP_VLM_TOP_P,
    NGX_HTTP_VLM_TOP_K,                        /* 0 and less: disabled */
    NGX_HTTP_VLM_FREQUENCY,
    NGX_HTTP_VLM_PRESENCE,
    NGX_HTTP_VLM_REPETITION,
    NGX_HTTP_VLM_MAX_TOKENS,                   /* 0 and less: no limit */
    NGX_HTTP_VLM_MAX_COMPLETION,               /* the smaller of the two */
    NGX_HTTP_VLM_MIN_TOKENS,
    NGX_HTTP_VLM_NGRAM,
    NGX_HTTP_VLM_TOP_LOGPROBS,
    NGX_HTTP_VLM_STREAM,
    NGX_HTTP_VLM_INCLUDE,                      /* OpenAI's include_usage */
    NGX_HTTP_VLM_LOGPROBS,
    NGX_HTTP_VLM_TRUNCATE,
    NGX_HTTP_VLM_RAW,
    NGX_HTTP_VLM_THINK,
    NGX_HTTP_VLM_TIMINGS,
    NGX_HTTP_VLM_UNLOADS,                      /* Ollama's keep_alive is 0 */
    NGX_HTTP_VLM_BASE64,                       /* the form of vectors */
    NGX_HTTP_VLM_NUMBERS
} ngx_http_vlm_number_e;


/* the objects that have fields, as bits */

enum {
    NGX_HTTP_VLM_OF_BRAIN = 0x01,              /* RoboBrain's /api/chat */
    NGX_HTTP_VLM_OF_CHAT = 0x02,               /* /v1/chat/completions */
    NGX_HTTP_VLM_OF_TEXT = 0x04,               /* /v1/completions */
    NGX_HTTP_VLM_OF_STREAM = 0x08,             /* their "stream_options" */
    NGX_HTTP_VLM_OF_OLLAMA = 0x10,             /* Ollama's /api/chat */
    NGX_HTTP_VLM_OF_GENERATE = 0x20,           /* /api/generate */
    NGX_HTTP_VLM_OF_OPTIONS = 0x40,            /* their "options" */
    NGX_HTTP_VLM_OF_EMBEDDINGS = 0x80,         /* /v1/embeddings */
    NGX_HTTP_VLM_OF_EMBED = 0x100              /* /api/embed */
};


typedef struct {
    double                        number[NGX_HTTP_VLM_NUMBERS];
    char                         *stop[NGX_HTTP_VLM_STOPS];
    size_t                        n_stop;
    vlm_bias_t                   *bias;
    size_t                        n_bias;
    uint64_t                      seed;        /* 0: a fresh one */
    vlm_constraint_t              constraint;
    vlm_grammar_t                *grammar;     /* of it, once it is compiled */
} ngx_http_vlm_fields_t;


/* tools.c */

typedef struct {
    vlm_json_t                   *list;        /* that may be called; or NULL */
    vlm_grammar_t                *grammar;     /* of a call */
    vlm_grammar_t                *between;     /* of the text between two */
    char                          tail[64];    /* a call is demanded: its mark,
                                                  at the prompt's end */
    unsigned                      demanded:1;
    unsigned                      single:1;    /* one call at most */
    vlm_calls_t                   calls;       /* of the answer so far */
} ngx_http_vlm_tools_t;


/* at the beginning of the data of OpenAI's and of Ollama's requests */

typedef struct {
    char                         *model;       /* as its client named it */
    ngx_http_vlm_messages_t      *messages;
    ngx_http_vlm_fields_t         f;
    ngx_http_vlm_tools_t          tools;
    int                           task;        /* vlm_task_t: a visual one is
                                                  greedy, and has marks */
} ngx_http_vlm_asked_t;


/* its messages, and its fields */

#define ngx_http_vlm_asked(ctx)                                               \
    ((ngx_http_vlm_asked_t *) (ctx)->data)->messages
#define ngx_http_vlm_fields(ctx)                                              \
    (&((ngx_http_vlm_asked_t *) (ctx)->data)->f)


/* no field was given yet; frees what they have */

void ngx_http_vlm_fields_init(ngx_http_vlm_fields_t *f);
void ngx_http_vlm_fields_free(ngx_http_vlm_fields_t *f);

/* the picture that the coordinates of an answer are of */

vlm_view_t ngx_http_vlm_view(ngx_http_vlm_ctx_t *ctx,
    const vlm_picture_info_t *picture);

/* "marks" of an answer to a visual task about this picture */

void ngx_http_vlm_fields_marks(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    int task, const vlm_picture_info_t *picture);

/* the same, where messages have a picture and "task" a visual one */

void ngx_http_vlm_fields_put_marks(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w);

/* "timings", if the request asked for them: of an answer, or of its last
   event */

void ngx_http_vlm_fields_put_timings(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w);

/* thread: makes ctx->data, of this size, for the object json, or fails with the
   sentence "missing"; NULL: the request has failed */

void *ngx_http_vlm_asked_create(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, size_t size, const char *missing);

/* "free" of a dialect */

void ngx_http_vlm_asked_free(ngx_http_vlm_ctx_t *ctx);


/* all of it in threads; NGX_ERROR: the request has failed */

/* table.c: reads the fields that objects of this kind have */

ngx_int_t ngx_http_vlm_fields_read(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, ngx_uint_t of);

/* value.c: called by the table for a field that is not null, with its path as
   ctx->error.param */

typedef ngx_int_t  ngx_http_vlm_reader_t(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *value, const char *name);

ngx_http_vlm_reader_t  ngx_http_vlm_value_seed;        /* of 64 bits */
ngx_http_vlm_reader_t  ngx_http_vlm_value_stops;       /* a string, or some */
ngx_http_vlm_reader_t  ngx_http_vlm_value_biases;
ngx_http_vlm_reader_t  ngx_http_vlm_value_streams;
ngx_http_vlm_reader_t  ngx_http_vlm_value_format;      /* json, or a schema */
ngx_http_vlm_reader_t  ngx_http_vlm_value_task;
ngx_http_vlm_reader_t  ngx_http_vlm_value_think;
ngx_http_vlm_reader_t  ngx_http_vlm_value_keep;
ngx_http_vlm_reader_t  ngx_http_vlm_value_encoding;
ngx_http_vlm_reader_t  ngx_http_vlm_value_dimensions;

/* compiles the constraint, which was read with this result */

ngx_int_t ngx_http_vlm_fields_constrain(ngx_http_vlm_ctx_t *ctx, int rc);

/* the text of a member, or "" */

const char *ngx_http_vlm_fields_text(const vlm_json_t *json, const char *name);

/* "tools", and the field of a choice among them, or NULL */

ngx_int_t ngx_http_vlm_tools_read(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *name, const char *choice);

/* has the answer follow them; compiles them, if that was not done */

ngx_int_t ngx_http_vlm_tools_sampling(ngx_http_vlm_ctx_t *ctx);

void ngx_http_vlm_tools_free(ngx_http_vlm_tools_t *t);

/* the calls of an assistant's message, in a client's form */

ngx_int_t ngx_http_vlm_tools_calls(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *list, const char *place);

/* what the prompt ends with, or NULL */

#define ngx_http_vlm_tools_tail(ctx)                                          \
    (((ngx_http_vlm_asked_t *) (ctx)->data)->tools.demanded                   \
     ? ((ngx_http_vlm_asked_t *) (ctx)->data)->tools.tail : NULL)

/* overrides the engine's defaults in ctx->sampling, which then refers to
   ctx->data */

ngx_int_t ngx_http_vlm_fields_sampling(ngx_http_vlm_ctx_t *ctx);


#endif /* _NGX_HTTP_VLM_FIELDS_H_INCLUDED_ */
