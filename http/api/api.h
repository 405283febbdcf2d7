
/*
 * The APIs: a table of routes, and the requests and answers of RoboBrain's,
 * OpenAI's and Ollama's clients, and of a LoRA service's.
 */


#ifndef _NGX_HTTP_VLM_API_H_INCLUDED_
#define _NGX_HTTP_VLM_API_H_INCLUDED_


#include "../status/status.h"
#include "api/calls.h"
#include "api/logprobs.h"
#include "base/multipart.h"


/*
 * A content handler with a piece of the path: "abc" of /api/history/abc,
 * decoded; empty if the route has none.  Returns as content handlers do.
 */

typedef ngx_int_t  ngx_http_vlm_handler_t(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece);

/* a thread's part of a request: ctx->out.json, ctx->error or ctx->stored */

typedef void  ngx_http_vlm_run_t(ngx_http_vlm_ctx_t *ctx);


/* the endpoints that ask the model; /api/chat is Ollama's, too */

extern const ngx_http_vlm_dialect_t  ngx_http_vlm_chat_dialect;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_pipeline_dialect;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_decompose_dialect;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_title_dialect;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_ollama_chat;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_ollama_generate;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_chat;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_completion;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_responses;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_openai_embeddings;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_ollama_embed;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_ollama_embeddings;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_lite_dialect;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_question_dialect;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_service_ask;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_service_summarize;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_service_compare;


/* ---- route.c: method and path to a handler ------------------------------- */

/* the content handler of vlm_pass, and the phase handler of the inner
   server */

ngx_int_t ngx_http_vlm_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_vlm_inner_handler(ngx_http_request_t *r);


/* ---- choose.c: the engine of a request, among several -------------------- */

/* reads the body, sets ctx->engine, and calls chosen, which finalizes; or
   refuses an unknown model.  dialect NULL: of Ollama's endpoints about a
   model */

ngx_int_t ngx_http_vlm_choose(ngx_http_request_t *r,
    const ngx_http_vlm_dialect_t *dialect,
    ngx_http_client_body_handler_pt chosen);


/* ---- work.c: requests that the model does not answer --------------------- */

/* any worker: reads the body and calls run in a thread, with the piece as
   ctx->place.session; then the loop calls ctx->send, which run may have set, or
   sends ctx->out.json.  ..._body() does so once the body was read, with
   ctx->engine and ctx->run */

ngx_int_t ngx_http_vlm_work(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece, ngx_http_vlm_run_t *run);
void ngx_http_vlm_work_body(ngx_http_request_t *r);

/* thread: the body as JSON of at most so many bytes, which the caller frees; or
   as a form, its "file" and a text of this name, unless that is NULL; NULL,
   NGX_ERROR: the request has failed */

vlm_json_t *ngx_http_vlm_work_json(ngx_http_vlm_ctx_t *ctx, size_t most);
ngx_int_t ngx_http_vlm_work_form(ngx_http_vlm_ctx_t *ctx, const char *text,
    vlm_multipart_form_t *form);


/* ---- thinking.c: the model's text to thinking and answer ----------------- */

/* splits the text so far into ctx->out.answer and out.thinking; with "last" the
   text is complete, otherwise both only grow with later calls; NGX_ERROR: no
   memory */

ngx_int_t ngx_http_vlm_thinking_split(ngx_http_vlm_ctx_t *ctx, ngx_uint_t last);

/* "ended" of a dialect: the same, with "last"; "chunk" finds it done */

ngx_int_t ngx_http_vlm_thinking_ended(ngx_http_vlm_ctx_t *ctx);

/* for "chunk": the rest of both texts, which then counts as sent, and the
   number of tokens to send with it; without memory w has failed */

typedef struct {
    ngx_str_t                     thinking;
    ngx_str_t                     answer;
    size_t                        n_tokens;
} ngx_http_vlm_unsent_t;

void ngx_http_vlm_unsent(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last, ngx_http_vlm_unsent_t *unsent);


/* the beginning of an answer, given to a thinking model to stop its thinking */

#define NGX_HTTP_VLM_NO_THINKING  "<think></think><answer>"

/* the beginning for this request, behind its prompt; or NULL */

#define ngx_http_vlm_thinking_tail(ctx)                                       \
    ((ctx)->out.plain || !(ctx)->engine->conf.thinking ? NULL                 \
     : (ctx)->out.thinks ? "<think>"                                          \
     : (ctx)->engine->conf.facts.quiet ? NULL : NGX_HTTP_VLM_NO_THINKING)


/* tools.c: the next piece of the answer so far */

vlm_calls_e ngx_http_vlm_tools_next(ngx_http_vlm_ctx_t *ctx, ngx_uint_t last,
    vlm_calls_piece_t *piece);

/* the pieces of the answer come from its beginning again */

void ngx_http_vlm_tools_again(ngx_http_vlm_ctx_t *ctx);

/* splits a whole answer: the content is added to one writer, and calls by "put"
   to w, as an array; the number of them */

typedef void  ngx_http_vlm_tools_put_t(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, const vlm_calls_piece_t *piece, ngx_uint_t i);

ngx_uint_t ngx_http_vlm_tools_whole(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_http_vlm_tools_put_t *put);
void ngx_http_vlm_tools_content(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *text);


#define ngx_http_vlm_finish_reason(ctx)                                       \
    ((ctx)->finish == VLM_FINISH_LENGTH ? "length" : "stop")


/* ---- tokens.c: log-probabilities ----------------------------------------- */

/* the next n tokens, which then count as sent: see lib/api/logprobs.h */

void ngx_http_vlm_tokens_objects(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    const char *key, size_t n, ngx_uint_t always);
void ngx_http_vlm_tokens_arrays(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    size_t n, size_t *offset);


/* ---- handlers and threads of routes -------------------------------------- */

/* robobrain/: the title is asked of the model if that is idle */

ngx_http_vlm_handler_t  ngx_http_vlm_title_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_tasks_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_upload_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_file_handler;

/* robobrain/upload.c: sends a file of the store, whose path ends with a zero
   and lives as long as the request; the return value of a content handler */

ngx_int_t ngx_http_vlm_file_reply(ngx_http_request_t *r, ngx_str_t *path);

ngx_http_vlm_run_t  ngx_http_vlm_session_create;
ngx_http_vlm_run_t  ngx_http_vlm_session_delete;
ngx_http_vlm_run_t  ngx_http_vlm_session_reset;
ngx_http_vlm_run_t  ngx_http_vlm_session_history;

/* ollama/model.c; "fixed" refuses push, create, copy, delete and blobs */

ngx_http_vlm_handler_t  ngx_http_vlm_ollama_tags_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_ollama_ps_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_ollama_version_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_ollama_fixed_handler;
ngx_http_vlm_run_t  ngx_http_vlm_ollama_show;
ngx_http_vlm_run_t  ngx_http_vlm_ollama_pull;

/* adapter.c: "adapter", a name, and "lora", as llama-server has it, of a
   request; the lists; vLLM's endpoints */

ngx_int_t ngx_http_vlm_adapter_field(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);

/* the request uses the listed adapter of a directory, or without one the entry
   "id", as GET /lora-adapters counts them; NGX_DECLINED: there is none */

ngx_int_t ngx_http_vlm_adapter_use(ngx_http_vlm_ctx_t *ctx, const char *dir,
    int64_t id, double scale);

ngx_http_vlm_handler_t  ngx_http_vlm_adapter_lora_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_adapter_list_handler;

extern const ngx_http_vlm_dialect_t  ngx_http_vlm_adapter_load;
extern const ngx_http_vlm_dialect_t  ngx_http_vlm_adapter_unload;

/* the directory that a path means: one in "lora", by its name, behind the name
   of "lora", or behind its whole path; NULL: none */

const char *ngx_http_vlm_adapter_dir(ngx_http_vlm_engine_t *eng,
    const char *path);

/* a directory in "lora" as lists show it: the last names of its path */

void ngx_http_vlm_adapter_put_path(vlm_json_out_t *w, const char *key,
    ngx_http_vlm_engine_t *eng, const char *dir);

/* lite/service.c: the service's health, memory, and what trains */

ngx_http_vlm_handler_t  ngx_http_vlm_lite_health_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_lite_cleanup_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_lite_trains_handler;

/* documents/; "page" is a page's text or picture, the last two a PDF
   service's */

ngx_http_vlm_handler_t  ngx_http_vlm_documents_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_documents_page_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_documents_upload_handler;
ngx_http_vlm_handler_t  ngx_http_vlm_documents_process_handler;

ngx_http_vlm_run_t  ngx_http_vlm_documents_get;
ngx_http_vlm_run_t  ngx_http_vlm_documents_list;
ngx_http_vlm_run_t  ngx_http_vlm_documents_link;
ngx_http_vlm_run_t  ngx_http_vlm_documents_unlink;
ngx_http_vlm_run_t  ngx_http_vlm_documents_delete;

/* openai/models.c */

ngx_http_vlm_handler_t  ngx_http_vlm_models_handler;


#endif /* _NGX_HTTP_VLM_API_H_INCLUDED_ */
