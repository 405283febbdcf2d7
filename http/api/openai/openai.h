
/*
 * The structure that the files of OpenAI's dialect share: the fields of a
 * request, kept in ctx->data until it ends.
 */


#ifndef _NGX_HTTP_VLM_OPENAI_H_INCLUDED_
#define _NGX_HTTP_VLM_OPENAI_H_INCLUDED_


#include "../fields.h"
#include "api/responses_out.h"


typedef struct {
    ngx_http_vlm_asked_t          in;
    ngx_uint_t                    chat;        /* else /v1/completions */
    char                          id[40];
    const char                   *core;        /* of it, without its kind */
    char                          fingerprint[sizeof("vlm-01234567")];
    ngx_uint_t                    include_usage;

    /* of the answer */
    ngx_uint_t                    begun;       /* the role was sent */
    size_t                        offset;      /* characters of tokens sent */
    ngx_uint_t                    n_calls;

    vlm_response_t                response;    /* of /v1/responses */
} ngx_http_vlm_openai_t;


/* ---- messages.c: thread: "messages", "prompt" ---------------------------- */

ngx_int_t ngx_http_vlm_openai_messages(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
ngx_int_t ngx_http_vlm_openai_text(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);


/* ---- openai.c: thread: a request of a chat, or of a text ----------------- */

void ngx_http_vlm_openai_prompt(ngx_http_vlm_ctx_t *ctx);
ngx_int_t ngx_http_vlm_openai_take(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_openai_t *o, const vlm_json_t *json, const char *kind);


/* ---- answer.c: of a dialect ---------------------------------------------- */

void ngx_http_vlm_openai_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w);
void ngx_http_vlm_openai_error(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t status, const char *text);
void ngx_http_vlm_openai_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last);


#endif /* _NGX_HTTP_VLM_OPENAI_H_INCLUDED_ */
