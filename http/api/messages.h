
/*
 * The messages of a request: built while its fields are read, kept while it
 * waits, and made into a prompt.  All of it runs in threads, except
 * ngx_http_vlm_messages_free().
 *
 * A function that fails has ended the request: it returns NGX_ERROR, and sets
 * ctx->error.
 */


#ifndef _NGX_HTTP_VLM_MESSAGES_H_INCLUDED_
#define _NGX_HTTP_VLM_MESSAGES_H_INCLUDED_


#include "api.h"
#include "api/frames.h"


#define NGX_HTTP_VLM_MESSAGES       4096
#define NGX_HTTP_VLM_PARTS          8192       /* of all messages */
#define NGX_HTTP_VLM_PICTURES       64
#define NGX_HTTP_VLM_FRAMES         VLM_MAX_FRAMES     /* of all videos */
#define NGX_HTTP_VLM_MESSAGES_TEXT  (4 * 1024 * 1024)      /* bytes, in all */


typedef struct ngx_http_vlm_messages_s  ngx_http_vlm_messages_t;


/* NULL: no memory */

ngx_http_vlm_messages_t *ngx_http_vlm_messages_create(ngx_http_vlm_ctx_t *ctx);

/* of a role's name, or NULL; NGX_DECLINED: there is no such role */

ngx_int_t ngx_http_vlm_messages_role(const char *text, vlm_role_t *role);

/* begins a message; parts added until the next one belong to it */

ngx_int_t ngx_http_vlm_messages_begin(ngx_http_vlm_messages_t *m,
    vlm_role_t role);

/* a call that an assistant made earlier, behind its content, with the name and
   the arguments of a client's object */

ngx_int_t ngx_http_vlm_messages_call(ngx_http_vlm_messages_t *m,
    const char *name, const vlm_json_t *arguments);

/* the tools that the template lists, as text that m takes over */

void ngx_http_vlm_messages_tools(ngx_http_vlm_messages_t *m, char *tools);

/* the last message is worded as this visual task */

void ngx_http_vlm_messages_task(ngx_http_vlm_messages_t *m, int task);

/* text is UTF-8, and copied; a picture is base64 or a data URL, and its header
   is checked; fields, or NULL, may have bounds on its pixels */

ngx_int_t ngx_http_vlm_messages_text(ngx_http_vlm_messages_t *m,
    const char *text);
ngx_int_t ngx_http_vlm_messages_picture(ngx_http_vlm_messages_t *m,
    const char *text, const vlm_json_t *fields);

/* such pictures, which are not read if n is more than there may be; fields has
   the bounds of a frame */

ngx_int_t ngx_http_vlm_messages_video(ngx_http_vlm_messages_t *m,
    const vlm_frame_text_t *frames, size_t n, double fps,
    const vlm_json_t *fields);

/* the bounds that fields have; NGX_ERROR: the request has failed */

ngx_int_t ngx_http_vlm_messages_pixels(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *fields, vlm_pixels_t *pixels);

/* the bytes of such a picture, malloc()ed, or NULL */

u_char *ngx_http_vlm_messages_bytes(ngx_http_vlm_ctx_t *ctx, const char *text,
    size_t len, size_t *n);

/*
 * After the last part was added: can the parts that every prompt will have fit
 * the context?  With "whole" these are all parts, else those that ..._drop()
 * leaves.
 */

ngx_int_t ngx_http_vlm_messages_fit(ngx_http_vlm_messages_t *m,
    ngx_uint_t whole);

/*
 * Sets ctx->prompt: with the chat template and, behind it, tail or NULL; or
 * raw, all parts of all messages as they are.  ctx->out.seen is the last
 * picture.  Then *m is freed, and NULL.  If the prompt does not fit the
 * context, *m is as it was, and ctx->error.code is "context_length_exceeded".
 */

ngx_int_t ngx_http_vlm_messages_prompt(ngx_http_vlm_messages_t **m,
    ngx_uint_t raw, const char *tail);

/*
 * Removes the oldest eighth of the messages, but neither a system message nor
 * the last, and clears the refusal; NGX_DECLINED: there is none.
 */

ngx_int_t ngx_http_vlm_messages_drop(ngx_http_vlm_messages_t *m);

void ngx_http_vlm_messages_free(ngx_http_vlm_messages_t *m);


#endif /* _NGX_HTTP_VLM_MESSAGES_H_INCLUDED_ */
