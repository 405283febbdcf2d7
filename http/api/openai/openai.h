
/*
 * The structure that the files of OpenAI's dialect share: the fields of a
 * request, kept in ctx->data until it ends.
 */


#ifndef _NGX_HTTP_VLM_OPENAI_H_INCLUDED_
#define _NGX_HTTP_VLM_OPENAI_H_INCLUDED_


#include "../fields.h"
#include "../messages.h"
#include "../model.h"


#define NGX_HTTP_VLM_OPENAI_NAME   256         /* bytes of a model's name:
                                                  every event repeats it */


typedef struct {
    ngx_uint_t                    chat;        /* else /v1/completions */
    ngx_http_vlm_messages_t      *messages;
    char                         *model;       /* as asked for, or NULL */
    char                          id[40];
    ngx_http_vlm_fields_t         f;
    ngx_uint_t                    include_usage;

    /* of the answer */
    vlm_json_out_t                body;        /* written by a thread */
    ngx_uint_t                    begun;       /* the role was sent */
    size_t                        offset;      /* characters of tokens sent */
} ngx_http_vlm_openai_t;


/* ---- messages.c: thread: "messages", "prompt" ---------------------------- */

ngx_int_t ngx_http_vlm_openai_messages(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_messages_t *m, const vlm_json_t *json);
ngx_int_t ngx_http_vlm_openai_text(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_messages_t *m, const vlm_json_t *json);


/* ---- fields.c: thread: the options of the answer ------------------------- */

ngx_int_t ngx_http_vlm_openai_fields(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const vlm_json_t *json);


/* ---- answer.c: of a dialect ---------------------------------------------- */

void ngx_http_vlm_openai_build(ngx_http_vlm_ctx_t *ctx);   /* "store" */
ngx_int_t ngx_http_vlm_openai_answer(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_openai_chunk(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t last);

/* a thread writes the last event for a client that is behind at the end */

void ngx_http_vlm_openai_build_rest(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_openai_chunk_rest(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t last);

/* tokens with log-probabilities that have not been sent */

size_t ngx_http_vlm_openai_untold(ngx_http_vlm_ctx_t *ctx);


/* ---- logprobs.c ---------------------------------------------------------- */

/* of the next n tokens, which then count as sent; null if the client did not
   ask for them */

void ngx_http_vlm_openai_logprobs(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, size_t n);


#endif /* _NGX_HTTP_VLM_OPENAI_H_INCLUDED_ */
