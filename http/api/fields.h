
/*
 * The data of OpenAI's and Ollama's requests: the fields that control an
 * answer (lib/api/fields.h), and the engine's parameters that they become.
 */


#ifndef _NGX_HTTP_VLM_FIELDS_H_INCLUDED_
#define _NGX_HTTP_VLM_FIELDS_H_INCLUDED_


#include "messages.h"
#include "model.h"
#include "api/fields.h"
#include "robobrain/shapes_json.h"


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
    vlm_fields_t                  f;           /* with a visual "task" an
                                                  answer is greedy, and has
                                                  marks */
    vlm_grammar_t                *grammar;     /* of "format" and its kin, once
                                                  it is compiled */
    ngx_http_vlm_tools_t          tools;
} ngx_http_vlm_asked_t;


/* its messages, and its fields */

#define ngx_http_vlm_asked(ctx)                                               \
    ((ngx_http_vlm_asked_t *) (ctx)->data)->messages
#define ngx_http_vlm_fields(ctx)                                              \
    (&((ngx_http_vlm_asked_t *) (ctx)->data)->f)

/* are calls looked for in the answer? */

#define ngx_http_vlm_tools_active(ctx)                                        \
    (((ngx_http_vlm_asked_t *) (ctx)->data)->tools.list != NULL)


/* the picture that the coordinates of an answer are of */

vlm_view_t ngx_http_vlm_view(ngx_http_vlm_ctx_t *ctx);

/* "marks" of an answer, if its task is a visual one and there is a picture */

void ngx_http_vlm_fields_marks(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    int task);

/* "timings", if the request asked for them: of an answer, or of its last
   event */

#define ngx_http_vlm_fields_put_timings(ctx, w)                               \
    do { if (ngx_http_vlm_fields(ctx)->number[VLM_FIELD_TIMINGS] == 1) {      \
             ngx_http_vlm_timings_put(ctx, w); } } while (0)

/* thread: makes ctx->data, of this size, for the object json, or fails with the
   sentence "missing"; NULL: the request has failed */

void *ngx_http_vlm_asked_create(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, size_t size, const char *missing);

/* "free" of a dialect */

void ngx_http_vlm_asked_free(ngx_http_vlm_ctx_t *ctx);


/* all of it in threads; NGX_ERROR: the request has failed */

/* reads the fields that objects of this kind have, VLM_OF_..., and compiles
   their constraint */

ngx_int_t ngx_http_vlm_fields_read(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, ngx_uint_t of);

/* compiles the constraint, which was read with this result, and forgets it: a
   request that waits keeps none, which may have 16 MiB, and has it made again
   with its prompt */

ngx_int_t ngx_http_vlm_fields_check(ngx_http_vlm_ctx_t *ctx, int rc);

/* the text of a member, or "" */

const char *ngx_http_vlm_fields_text(const vlm_json_t *json, const char *name);

/* may a request offer tools that answers call? */

ngx_uint_t ngx_http_vlm_tools_supported(ngx_http_vlm_engine_t *eng);

/* "tools", and the field of a choice among them, or NULL */

ngx_int_t ngx_http_vlm_tools_read(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *name, const char *choice);

/* frees what was compiled of a request */

void ngx_http_vlm_tools_forget(ngx_http_vlm_asked_t *in);

/* has the answer follow them; compiles them, if that was not done */

ngx_int_t ngx_http_vlm_tools_sampling(ngx_http_vlm_ctx_t *ctx);

/* the calls of an assistant's message, in a client's form */

ngx_int_t ngx_http_vlm_tools_calls(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *list, const char *place);

/* overrides the engine's defaults in ctx->sampling, which then refers to
   ctx->data */

ngx_int_t ngx_http_vlm_fields_sampling(ngx_http_vlm_ctx_t *ctx);


#endif /* _NGX_HTTP_VLM_FIELDS_H_INCLUDED_ */
