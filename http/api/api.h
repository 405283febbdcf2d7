
/*
 * The APIs: a table of routes, and the requests and answers of RoboBrain's,
 * OpenAI's and Ollama's clients.
 */


#ifndef _NGX_HTTP_VLM_API_H_INCLUDED_
#define _NGX_HTTP_VLM_API_H_INCLUDED_


#include "../status/status.h"


/*
 * A content handler with a piece of the path: "abc" of /api/history/abc,
 * decoded; empty if the route has none.  Returns as content handlers do.
 */

typedef ngx_int_t (*ngx_http_vlm_handler_pt)(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);


#define NGX_HTTP_VLM_HOP_SELF  2           /* chosen by the handler */

typedef struct {
    ngx_str_t                     before;      /* the path up to the piece */
    ngx_str_t                     after;       /* and after it */
    unsigned                      piece:2;     /* has a piece; 2: with slashes,
                                                  too */
    unsigned                      hop:2;       /* needs the designated
                                                  worker */
    ngx_uint_t                    methods;     /* NGX_HTTP_GET takes HEAD */
    ngx_http_vlm_handler_pt       handler;
    const ngx_http_vlm_dialect_t *dialect;     /* of a request for an answer:
                                                  line/ask.c */
} ngx_http_vlm_route_t;


/* the endpoints that ask the model; /api/chat is Ollama's, too */

extern const ngx_http_vlm_dialect_t  ngx_http_vlm_chat_dialect;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_pipeline_dialect;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_decompose_dialect;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_title_dialect;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_ollama_chat;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_ollama_generate;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_chat;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_completion;


/* ---- route.c: method and path to a handler ------------------------------- */

/* the content handler of vlm_pass, and the phase handler of the inner
   server */

ngx_int_t ngx_http_vlm_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_vlm_inner_handler(ngx_http_request_t *r);


/* ---- thinking.c: the model's text to thinking and answer ----------------- */

/* splits the text so far into ctx->out.answer and out.thinking; with "last" the
   text is complete, otherwise both only grow with later calls; NGX_ERROR: no
   memory */

ngx_int_t ngx_http_vlm_thinking_split(ngx_http_vlm_ctx_t *ctx, ngx_uint_t last);

/* "ended" of a dialect: the same, with "last"; "chunk" finds it done */

ngx_int_t ngx_http_vlm_thinking_ended(ngx_http_vlm_ctx_t *ctx);

/* the part of a text that the client has not received, which then counts as
   sent */

ngx_str_t ngx_http_vlm_unsent(ngx_str_t *text, size_t *sent);


#define ngx_http_vlm_finish_reason(ctx)                                       \
    ((ctx)->finish == VLM_FINISH_LENGTH ? "length" : "stop")


/* ---- tokens.c: log-probabilities ----------------------------------------- */

/* the next n tokens, which then count as sent: as they are, or as an array of
   objects, each with its "top_logprobs" always, or if there are any */

vlm_token_t *ngx_http_vlm_tokens_take(ngx_http_vlm_ctx_t *ctx, size_t n);
void ngx_http_vlm_tokens_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *key, size_t n, ngx_uint_t always);

/* a token's bytes */

const char *ngx_http_vlm_tokens_piece(ngx_http_vlm_ctx_t *ctx, uint32_t id,
    size_t *len);


/* ---- robobrain/title.c --------------------------------------------------- */

ngx_int_t ngx_http_vlm_title_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);


/* ---- ollama/model.c ------------------------------------------------------ */

/* may run in any worker */

ngx_int_t ngx_http_vlm_ollama_tags_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_ollama_ps_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_ollama_version_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_ollama_show_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);

/* 501: pull, push, create, copy, delete, blobs; embeddings */

ngx_int_t ngx_http_vlm_ollama_fixed_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_ollama_embed_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);


/* ---- openai/models.c ----------------------------------------------------- */

/* may run in any worker */

ngx_int_t ngx_http_vlm_models_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_models_one_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);


/* ---- robobrain/session.c: sessions --------------------------------------- */

/* may run in any worker; POST /api/session answers 503 {"error": "Model not
   initialized"} while eng->shm->state is NGX_HTTP_VLM_FAILED */

ngx_int_t ngx_http_vlm_session_create_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_session_delete_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_session_reset_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_history_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_tasks_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);


/* ---- robobrain/upload.c -------------------------------------------------- */

ngx_int_t ngx_http_vlm_upload_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_file_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);         /* /uploads/NAME */
ngx_int_t ngx_http_vlm_result_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);         /* /result/NAME */


#endif /* _NGX_HTTP_VLM_API_H_INCLUDED_ */
