
/*
 * The messages of a request: built while its fields are read, kept while it
 * waits, and made into a prompt.  All of it belongs into a thread, but for
 * ngx_http_vlm_messages_free().
 *
 * A function that fails has ended the request: it returns NGX_ERROR, and
 * ctx->status, ctx->err and ctx->code say why.
 */


#ifndef _NGX_HTTP_VLM_MESSAGES_H_INCLUDED_
#define _NGX_HTTP_VLM_MESSAGES_H_INCLUDED_


#include "api.h"


#define NGX_HTTP_VLM_MESSAGES       4096
#define NGX_HTTP_VLM_PARTS          8192       /* of all messages */
#define NGX_HTTP_VLM_PICTURES       64
#define NGX_HTTP_VLM_MESSAGES_TEXT  (4 * 1024 * 1024)      /* bytes, in all */


typedef struct ngx_http_vlm_messages_s  ngx_http_vlm_messages_t;


/* NULL: no memory */

ngx_http_vlm_messages_t *ngx_http_vlm_messages_create(ngx_http_vlm_ctx_t *ctx);

/* a message begins; what is added until the next begins belongs to it */

ngx_int_t ngx_http_vlm_messages_begin(ngx_http_vlm_messages_t *m,
    vlm_role_t role);

/* text is UTF-8, and copied; a picture is base64 or a data URL, and is looked
   at as far as its header says what it is */

ngx_int_t ngx_http_vlm_messages_text(ngx_http_vlm_messages_t *m,
    const char *text, size_t len);
ngx_int_t ngx_http_vlm_messages_picture(ngx_http_vlm_messages_t *m,
    const char *text, size_t len);

/*
 * Once all is added: whether what will be in the prompt in any case can fit the
 * context.  With "whole" that is all of it, else what ..._drop() leaves.
 */

ngx_int_t ngx_http_vlm_messages_fit(ngx_http_vlm_messages_t *m,
    ngx_uint_t whole);

/*
 * To ctx->prompt: with the chat template and, behind it, tail or NULL; or raw,
 * all parts of all messages as they stand.  Then m is empty.  What does not
 * fit the context leaves m as it was, with ctx->code
 * "context_length_exceeded".
 */

ngx_int_t ngx_http_vlm_messages_prompt(ngx_http_vlm_messages_t *m,
    const char *tail);
ngx_int_t ngx_http_vlm_messages_raw(ngx_http_vlm_messages_t *m);

/*
 * Takes out the oldest message that is neither of the system nor the last,
 * and forgives the refusal; NGX_DECLINED: there is none.
 */

ngx_int_t ngx_http_vlm_messages_drop(ngx_http_vlm_messages_t *m);

size_t ngx_http_vlm_messages_count(ngx_http_vlm_messages_t *m);

void ngx_http_vlm_messages_free(ngx_http_vlm_messages_t *m);   /* takes NULL */


#endif /* _NGX_HTTP_VLM_MESSAGES_H_INCLUDED_ */
