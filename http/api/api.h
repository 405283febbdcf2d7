
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
} ngx_http_vlm_route_t;


/* ---- route.c: method and path to a handler ------------------------------- */

/* the content handler of vlm_pass, and the phase handler of the inner
   server */

ngx_int_t ngx_http_vlm_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_vlm_inner_handler(ngx_http_request_t *r);


/* ---- robobrain/title.c --------------------------------------------------- */

ngx_int_t ngx_http_vlm_title_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);


/* ---- ollama/ollama.c ----------------------------------------------------- */

ngx_int_t ngx_http_vlm_ollama_generate_handler(ngx_http_request_t *r,
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


/* ---- openai/openai.c ----------------------------------------------------- */

ngx_int_t ngx_http_vlm_openai_chat_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_openai_completion_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);


/* ---- openai/models.c ----------------------------------------------------- */

/* may run in any worker */

ngx_int_t ngx_http_vlm_models_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_models_one_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);


/* ---- robobrain/pipeline.c ------------------------------------------------ */

ngx_int_t ngx_http_vlm_pipeline_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);
ngx_int_t ngx_http_vlm_decompose_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);


/* ---- robobrain/chat.c: the dialect of /api/chat -------------------------- */

ngx_int_t ngx_http_vlm_chat_handler(ngx_http_request_t *r,
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
