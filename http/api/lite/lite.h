
/*
 * The structure that the files of /generate-lite share: the fields of a
 * request, kept in ctx->data until it ends.
 */


#ifndef _NGX_HTTP_VLM_LITE_H_INCLUDED_
#define _NGX_HTTP_VLM_LITE_H_INCLUDED_


#include "../messages.h"
#include "../model.h"


#define NGX_HTTP_VLM_LITE_WRONG  422           /* status: fields are wrong */


/* in the order in which their errors are listed */

typedef enum {
    NGX_HTTP_VLM_LITE_PROMPT = 0,
    NGX_HTTP_VLM_LITE_MAX_NEW_TOKENS,
    NGX_HTTP_VLM_LITE_TEMPERATURE,
    NGX_HTTP_VLM_LITE_ADAPTER_PATH,
    NGX_HTTP_VLM_LITE_BASE_MODEL,
    NGX_HTTP_VLM_LITE_DO_SAMPLE,
    NGX_HTTP_VLM_LITE_TOP_P,
    NGX_HTTP_VLM_LITE_TOP_K,
    NGX_HTTP_VLM_LITE_PENALTY,
    NGX_HTTP_VLM_LITE_FIELDS
} ngx_http_vlm_lite_field_e;


typedef struct {
    ngx_http_vlm_messages_t      *messages;
    char                         *text[NGX_HTTP_VLM_LITE_FIELDS];  /* or NULL */
    double                        number[NGX_HTTP_VLM_LITE_FIELDS];
    ngx_uint_t                    raised;      /* its error is one that the
                                                  service's generation raised:
                                                  a 500 */
} ngx_http_vlm_lite_t;


/* ---- fields.c: the fields, or a 422 -------------------------------------- */

/* one of its errors */

typedef struct {
    const char                   *type;
    const char                   *message;
    const char                   *key;         /* of "ctx"; NULL: it has none */
    const char                   *text;        /* its value, "": {}; NULL: the
                                                  number */
    double                        number;
    ngx_uint_t                    whole;       /* of an int */
} ngx_http_vlm_lite_error_t;


/* thread */

ngx_int_t ngx_http_vlm_lite_fields(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_lite_t *lite, const vlm_json_t *json);

/* any thread: adds an error to the body in ctx->out.json, and the status; name
   NULL: of the whole body; value: what it is about, or NULL */

void ngx_http_vlm_lite_wrong(ngx_http_vlm_ctx_t *ctx, const char *name,
    const vlm_json_t *value, const ngx_http_vlm_lite_error_t *e);


#endif /* _NGX_HTTP_VLM_LITE_H_INCLUDED_ */
