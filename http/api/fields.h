
/*
 * The fields that control an answer: one structure for all dialects, which
 * differ in names and ranges, and one mapping to the engine's parameters.
 */


#ifndef _NGX_HTTP_VLM_FIELDS_H_INCLUDED_
#define _NGX_HTTP_VLM_FIELDS_H_INCLUDED_


#include "messages.h"
#include "model.h"


#define NGX_HTTP_VLM_STOPS      16
#define NGX_HTTP_VLM_STOP       1024           /* bytes, of one of them */

/* -2^63 and 2^63: the JSON number next to 2^63-1 is 2^63 */

#define NGX_HTTP_VLM_SEED_LOW   -9223372036854775808.0
#define NGX_HTTP_VLM_SEED_HIGH  9223372036854775808.0
#define NGX_HTTP_VLM_SEED_RANGE                                               \
    "-9223372036854775808 to 9223372036854775807"


/* numeric fields; an absent one is NAN */

typedef enum {
    NGX_HTTP_VLM_TEMPERATURE = 0,
    NGX_HTTP_VLM_TOP_P,
    NGX_HTTP_VLM_TOP_K,                        /* 0 and less: disabled */
    NGX_HTTP_VLM_FREQUENCY,
    NGX_HTTP_VLM_PRESENCE,
    NGX_HTTP_VLM_REPETITION,
    NGX_HTTP_VLM_SEED,                         /* -1: a fresh seed */
    NGX_HTTP_VLM_MAX_TOKENS,                   /* 0 and less: no limit */
    NGX_HTTP_VLM_MAX_COMPLETION,               /* the smaller of the two */
    NGX_HTTP_VLM_TOP_LOGPROBS,
    NGX_HTTP_VLM_IGNORED,                      /* its type is checked */
    NGX_HTTP_VLM_NUMBERS
} ngx_http_vlm_number_e;


typedef struct {
    const char                   *name;
    ngx_http_vlm_number_e         which;
    double                        low, high;
    const char                   *range;       /* in words */
    unsigned                      whole:1;
    unsigned                      endless:1;   /* -1 is valid, too */
} ngx_http_vlm_field_t;


typedef struct {
    double                        number[NGX_HTTP_VLM_NUMBERS];
    char                         *stop[NGX_HTTP_VLM_STOPS];
    size_t                        n_stop;
    vlm_bias_t                   *bias;
    size_t                        n_bias;
    ngx_uint_t                    logprobs;
    ngx_uint_t                    json;
} ngx_http_vlm_fields_t;


/* at the beginning of the data of OpenAI's and of Ollama's requests */

typedef struct {
    char                         *model;       /* as its client named it */
    ngx_http_vlm_messages_t      *messages;
    ngx_http_vlm_fields_t         f;
} ngx_http_vlm_asked_t;


/* thread: makes ctx->data, of this size; NULL: the request has failed */

void *ngx_http_vlm_asked_create(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, size_t size);

/* "free" of a dialect */

void ngx_http_vlm_asked_free(ngx_http_vlm_ctx_t *ctx);


/* all of it in threads; NGX_ERROR: the request has failed */

/* reads the numeric fields of a table, whose last row has no name */

ngx_int_t ngx_http_vlm_fields_numbers(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_fields_t *f, const vlm_json_t *json,
    const ngx_http_vlm_field_t *rows);

/* "stop": a string, or an array of them */

ngx_int_t ngx_http_vlm_fields_stops(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_fields_t *f, const vlm_json_t *stop);

/* a string, to *text; "" if it is absent or null */

ngx_int_t ngx_http_vlm_fields_text(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *name, const char **text);

ngx_int_t ngx_http_vlm_fields_flag(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *name, ngx_uint_t otherwise,
    ngx_uint_t *value);

/* "tools", and the field of a choice among them, or NULL */

ngx_int_t ngx_http_vlm_fields_tools(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *name, const char *choice);

/* overrides the engine's defaults in ctx->sampling; f must live as long as
   that */

void ngx_http_vlm_fields_sampling(ngx_http_vlm_fields_t *f,
    vlm_sampling_t *s);


#endif /* _NGX_HTTP_VLM_FIELDS_H_INCLUDED_ */
