
/*
 * The model's names, and the facts that its files give.  All of it is fixed by
 * the configuration, so any thread may read it.
 */


#ifndef _NGX_HTTP_VLM_MODEL_H_INCLUDED_
#define _NGX_HTTP_VLM_MODEL_H_INCLUDED_


#include "api.h"


/* at the end of vlm_engine { }: eng->conf.created, eng->conf.directory */

void ngx_http_vlm_model_init(ngx_http_vlm_engine_t *eng);

/*
 * Does this name mean this model?  Its names are the engine's, that of the
 * checkpoint's directory, and the aliases, each with or without ":latest", in
 * upper or lower case; "" is any model.  NGX_OK or NGX_DECLINED.
 */

ngx_int_t ngx_http_vlm_model_is(ngx_http_vlm_engine_t *eng, ngx_str_t *name);

/* thread: the model's name, malloc()ed, as a request's field has it; absent,
   null and "" mean this model.  NULL: the request has ended with 400 or 404 */

#define NGX_HTTP_VLM_MODEL  256                /* bytes, of a model's name */

/* an adapter's name is taken as well, into ctx->adapter */

char *ngx_http_vlm_model_take(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *field);

/* NGX_OK: the name is an adapter's, and ctx->adapter is set; NGX_ERROR: the
   adapter was left out, and ctx->error says so; NGX_DECLINED: no adapter's */

ngx_int_t ngx_http_vlm_model_adapter(ngx_http_vlm_ctx_t *ctx, ngx_str_t *name);

/* any thread: the engine of the location that a name means: by one of its own
   names, else by an adapter's, else by "alias *"; or NULL */

ngx_http_vlm_engine_t *ngx_http_vlm_model_engine(ngx_http_request_t *r,
    ngx_str_t *name);

/* a name that would mean both engines, or NULL; the directory of both may have
   the same */

ngx_str_t *ngx_http_vlm_model_shared(ngx_http_vlm_engine_t *one,
    ngx_http_vlm_engine_t *other);

/* ctx->error: there is no model of this name in the location; NGX_ERROR */

ngx_int_t ngx_http_vlm_model_missing(ngx_http_vlm_ctx_t *ctx, ngx_str_t *name);

/* writes an entry for each name: the engine's, its aliases, and those of its
   adapters, with the adapter's directory, else "" */

typedef void  ngx_http_vlm_model_put_t(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng, ngx_str_t *name, const char *dir);

void ngx_http_vlm_model_names(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_model_put_t *put);


#endif /* _NGX_HTTP_VLM_MODEL_H_INCLUDED_ */
