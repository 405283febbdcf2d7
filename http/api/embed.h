
/*
 * Embeddings, of OpenAI's and of Ollama's clients: each input is a prompt of
 * its own, one after the other, of which the engine returns a vector.
 */


#ifndef _NGX_HTTP_VLM_EMBED_H_INCLUDED_
#define _NGX_HTTP_VLM_EMBED_H_INCLUDED_


#include "fields.h"


#define NGX_HTTP_VLM_INPUTS  256


/* ctx->data */

typedef struct {
    ngx_http_vlm_asked_t          in;          /* its messages are the only
                                                  input, if "inputs" is NULL */
    ngx_http_vlm_messages_t     **inputs;      /* [n] texts without a template;
                                                  or NULL */
    ngx_uint_t                    n;
    ngx_uint_t                    done;        /* of them */
    float                        *vectors;     /* [n][hidden] */
    ngx_uint_t                    legacy;      /* Ollama's /api/embeddings */
} ngx_http_vlm_embed_t;


/* thread: makes ctx->data, or fails with the sentence "missing", as
   ngx_http_vlm_asked_create(); reads the fields */

ngx_http_vlm_embed_t *ngx_http_vlm_embed_create(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, const char *missing, ngx_uint_t of);

/* thread: takes a string or an array of them, the field "name"; the second is
   room for the vectors of n inputs; NGX_ERROR: the request has failed */

ngx_int_t ngx_http_vlm_embed_inputs(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *value, const char *name);
ngx_int_t ngx_http_vlm_embed_room(ngx_http_vlm_ctx_t *ctx, ngx_uint_t n);

/* a vector as an array */

void ngx_http_vlm_embed_put(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t i);


/* of the dialects: "prompt", "ended", "store", "free" */

void ngx_http_vlm_embed_prompt(ngx_http_vlm_ctx_t *ctx);
ngx_int_t ngx_http_vlm_embed_ended(ngx_http_vlm_ctx_t *ctx);
void ngx_http_vlm_embed_free(ngx_http_vlm_ctx_t *ctx);


#endif /* _NGX_HTTP_VLM_EMBED_H_INCLUDED_ */
