
/*
 * What RoboBrain's files share: the parts of its answer.
 */


#ifndef _NGX_HTTP_VLM_ROBOBRAIN_H_INCLUDED_
#define _NGX_HTTP_VLM_ROBOBRAIN_H_INCLUDED_


#include "ngx_http_vlm.h"


/* ---- ngx_http_vlm_answer.c: the model's words to an answer -------------- */

/* the model's words so far to ctx->answer and ctx->thinking; with last they
   are whole, otherwise both only grow as more words come; NGX_ERROR: no
   memory */

ngx_int_t ngx_http_vlm_answer_split(ngx_http_vlm_ctx_t *ctx, ngx_uint_t last);

/* of a dialect: answer, failed, chunk, error */

ngx_int_t ngx_http_vlm_answer_send(ngx_http_vlm_ctx_t *ctx);
ngx_int_t ngx_http_vlm_answer_failed(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_answer_chunk(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w, ngx_uint_t last);
void ngx_http_vlm_answer_error(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w, ngx_uint_t status, const char *text);

/* "/result/NAME", or null */

void ngx_http_vlm_answer_put_result(ngx_http_vlm_json_out_t *w,
    ngx_http_vlm_store_file_t *result);


/* ---- ngx_http_vlm_turn.c: a session to a prompt, an answer to it -------- */

/* thread: session and chat to ctx->prompt, or ctx->status and ctx->err */

void ngx_http_vlm_turn_prompt(ngx_http_vlm_ctx_t *ctx);

/* thread: draws and stores the turn, before its answer is sent */

void ngx_http_vlm_turn_store(ngx_http_vlm_ctx_t *ctx);

/* thread: a picture's file; NULL, and size 0 if there is none; munmap() */

void *ngx_http_vlm_turn_map(const char *path, size_t *size);


#endif /* _NGX_HTTP_VLM_ROBOBRAIN_H_INCLUDED_ */
