
/*
 * The functions that RoboBrain's files share: the parts of its answer.
 */


#ifndef _NGX_HTTP_VLM_ROBOBRAIN_H_INCLUDED_
#define _NGX_HTTP_VLM_ROBOBRAIN_H_INCLUDED_


#include "../fields.h"
#include "robobrain/history.h"
#include "robobrain/task.h"
#include "robobrain/words.h"


#define NGX_HTTP_VLM_MESSAGE  (1024 * 1024)        /* bytes, of a message */


/* a RoboBrain request, ctx->data; malloc()ed, so that neither the body nor its
   JSON is kept while the request waits */

#define NGX_HTTP_VLM_TASK  64                  /* bytes, of its name */

typedef struct {
    ngx_http_vlm_asked_t          in;          /* its sampling fields alone */
    vlm_store_text_t              message;
    char                          task_name[NGX_HTTP_VLM_TASK + 1];
                                               /* as given, or as found */
    char                         *image;       /* path of this turn's picture */
    vlm_pixels_t                  pixels;      /* its bounds */
    int                           task;        /* vlm_task_t, or -1 */
    int64_t                       epoch;       /* of the session, as loaded */
    char                         *key;         /* Idempotency-Key, or NULL */
    vlm_store_loaded_t            session_of;  /* the repeated turn */
    vlm_store_entry_t            *repeated;    /* that turn's answer, or NULL */
    vlm_store_file_t             *result;      /* the drawn picture, or NULL */
    ngx_uint_t                    n_entries;   /* in the session before */
    ngx_uint_t                    n_dropped;   /* of the history's entries */
    size_t                        turn_number;
    int                           context_used;
    unsigned                      task_auto:1;
    unsigned                      task_asked:1;    /* an aside asks for it */
    unsigned                      inference:1; /* an error of the model's */
    unsigned                      text_only:1;     /* no picture is wanted */
} ngx_http_vlm_chat_t;


/* ---- chat.c: fields that several requests have --------------------------- */

/* thread: makes ctx->data, of a structure that begins with ngx_http_vlm_chat_t,
   for the object json; NULL: the request has failed */

void *ngx_http_vlm_chat_create(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    size_t size);

/* thread: of a dialect's fields; NGX_ERROR: the request has failed */

ngx_int_t ngx_http_vlm_chat_session(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
ngx_int_t ngx_http_vlm_chat_sees(ngx_http_vlm_ctx_t *ctx);
ngx_int_t ngx_http_vlm_chat_image(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);

/* a copy of a text that is not empty, else the error "missing"; what it is:
   "The message" */

ngx_int_t ngx_http_vlm_chat_text(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *field, const char *what, const char *missing,
    vlm_store_text_t *text);

/* sets ctx->streaming, by a field or by the client's Accept header; and whether
   the answer begins by thinking, unless a constraint leaves no room for that */

void ngx_http_vlm_chat_form(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    ngx_uint_t thinks);

/* "free" of a dialect */

void ngx_http_vlm_chat_free(ngx_http_vlm_ctx_t *ctx);


/* ---- aside.c: prompts on behalf of a request ----------------------------- */

/* thread: makes ctx->prompt of this system message and the first len bytes of
   the client's, and sets ctx->asking; or ctx->error.err has the reason */

void ngx_http_vlm_aside_ask(ngx_http_vlm_ctx_t *ctx, const char *system,
    size_t len, float temperature, ngx_uint_t max_tokens);

/* loop: the aside's answer without marks of thinking; "" if there is none */

void ngx_http_vlm_aside_said(ngx_http_vlm_ctx_t *ctx, ngx_str_t *words);


/* ---- answer.c: RoboBrain's answer from the model's text ------------------ */

/* of a dialect: answer, failed, chunk, error */

void ngx_http_vlm_answer_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w);
ngx_int_t ngx_http_vlm_answer_failed(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_answer_chunk(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t last);
void ngx_http_vlm_answer_error(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t status, const char *text);

/* parts of it: events of new text, an error without a turn, "usage" */

void ngx_http_vlm_answer_put_unsent(vlm_json_out_t *w,
    ngx_http_vlm_unsent_t *u);
void ngx_http_vlm_answer_put_error(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t status, const char *text);
void ngx_http_vlm_answer_put_usage(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, ngx_uint_t cached);

/* "image_resized", if the picture was shrunk or enlarged, and coordinates in an
   answer refer to that size */

void ngx_http_vlm_answer_put_resized(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w);


/* ---- turn.c: a session to a prompt, and the turn back to the store ------- */

/* sets the task, or the one that the model does for it; -1: keeps the name */

void ngx_http_vlm_turn_task(ngx_http_vlm_ctx_t *ctx, int task);

/* thread: session and chat to ctx->prompt, or ctx->error */

void ngx_http_vlm_turn_prompt(ngx_http_vlm_ctx_t *ctx);

/* thread: looks for a stored turn with this request's key, which becomes the
   answer; NGX_DECLINED: there is none; else the request may have failed */

ngx_int_t ngx_http_vlm_turn_repeated(ngx_http_vlm_ctx_t *ctx);

/* thread: checks the header of the picture; NGX_DECLINED: no file; NGX_ERROR:
   not a picture, and err has the reason */

ngx_int_t ngx_http_vlm_turn_check(ngx_http_vlm_ctx_t *ctx, vlm_err_t *err);

/* thread: the picture in a mapped file, which is closed, within these bounds;
   or NULL: the request has ended */

vlm_picture_t *ngx_http_vlm_turn_decode(ngx_http_vlm_ctx_t *ctx,
    vlm_file_t *file, const vlm_pixels_t *pixels);

/* thread: whether question and picture can fit the context, or NGX_ERROR */

ngx_int_t ngx_http_vlm_turn_fit(ngx_http_vlm_ctx_t *ctx, ngx_uint_t apart);

/* thread: draws and stores the turn, before its answer is sent */

void ngx_http_vlm_turn_store(ngx_http_vlm_ctx_t *ctx);


/* ---- the bytes of a stored picture --------------------------------------- */

#define NGX_HTTP_VLM_MAP_MAX  (64 * 1024 * 1024)   /* bytes */

/* thread, since the first access to a page may wait for the disk: 0, or the
   system's error, as of vlm_file_map() */

#define ngx_http_vlm_map(file, path)                                          \
    vlm_file_map(file, path, O_NOFOLLOW, NGX_HTTP_VLM_MAP_MAX)


/* ---- draw.c: the picture of an answer ------------------------------------ */

/* thread: draws the shapes in an answer's text over its picture, and stores it
   as a result, malloc()ed.  NULL for task general, and after an error, which
   ctx->error.err describes */

vlm_store_file_t *ngx_http_vlm_draw(ngx_http_vlm_ctx_t *ctx, ngx_str_t *text);


#endif /* _NGX_HTTP_VLM_ROBOBRAIN_H_INCLUDED_ */
