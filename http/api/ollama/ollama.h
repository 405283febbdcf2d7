
/*
 * The structures that Ollama's files share: a request as its client sent it,
 * its answer, and constants for versions and limits.
 */


#ifndef _NGX_HTTP_VLM_OLLAMA_H_INCLUDED_
#define _NGX_HTTP_VLM_OLLAMA_H_INCLUDED_


#include "../fields.h"
#include "api/ollama.h"


/* the release of Ollama whose API this is: clients compare versions */

#define NGX_HTTP_VLM_OLLAMA_VERSION   "0.12.11"


/* malloc()ed in the thread that parses; ctx->data */

typedef struct {
    ngx_http_vlm_asked_t            in;
    const char                     *empty;     /* "load" or "unload": there is
                                                  no prompt; or NULL */
    unsigned                        generate:1;
    unsigned                        raw:1;
    unsigned                        whole:1;   /* no message of the history may
                                                  be dropped */
} ngx_http_vlm_ollama_t;


/* ---- ollama.c: a request of /api/chat or /api/generate ------------------- */

/* is this body of /api/chat in Ollama's form, not RoboBrain's? */

ngx_uint_t ngx_http_vlm_ollama_speaks(const vlm_json_t *json);


/* ---- answer.c: the answer in Ollama's form ------------------------------- */

void ngx_http_vlm_ollama_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w);
void ngx_http_vlm_ollama_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last);
void ngx_http_vlm_ollama_error(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t status, const char *text);

/* a duration, at least one millisecond */

void ngx_http_vlm_ollama_put_ms(vlm_json_out_t *w, const char *key,
    uint64_t ms);


#endif /* _NGX_HTTP_VLM_OLLAMA_H_INCLUDED_ */
