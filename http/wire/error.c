
/*
 * Errors in OpenAI's form.  Clients choose their exception by the status, and
 * what to do by type and code; so each status has both, and ctx may have a
 * more exact code.
 */


#include "wire.h"


typedef struct {
    ngx_uint_t                    status;
    const char                   *type;
    const char                   *code;        /* or NULL */
} ngx_http_vlm_openai_error_t;




/* the last entry of each hundred is for all its other statuses */

static const ngx_http_vlm_openai_error_t  ngx_http_vlm_openai_errors[] = {
    { 401, "invalid_request_error", "invalid_api_key" },
    { 403, "invalid_request_error", "permission_denied" },
    { 405, "invalid_request_error", "method_not_supported" },
    { 413, "invalid_request_error", "content_too_large" },
    { 415, "invalid_request_error", "unsupported_content_encoding" },
    { 429, "rate_limit_exceeded",   "rate_limit_exceeded" },
    { 499, "invalid_request_error", NULL },
    { 503, "server_error",          "engine_unavailable" },
    { 504, "server_error",          "timeout" },
    { 507, "server_error",          "storage_full" },
    { 599, "server_error",          NULL }
};


ngx_uint_t
ngx_http_vlm_openai_speaks(ngx_http_request_t *r)
{
    return r->uri.len >= sizeof("/v1/") - 1
           && ngx_strncmp(r->uri.data, "/v1/", sizeof("/v1/") - 1) == 0;
}


void
ngx_http_vlm_openai_put_error(vlm_json_out_t *w,
    ngx_http_vlm_ctx_t *ctx, ngx_uint_t status, const char *text)
{
    const char                         *code, *param;
    const ngx_http_vlm_openai_error_t  *e;

    for (e = ngx_http_vlm_openai_errors; e->status != 599; e++) {
        if (e->status == status || (e->status == 499 && status < 500)) {
            break;
        }
    }

    code = e->code;
    param = NULL;

    if (ctx && ctx->late.code) {
        code = ctx->late.code;

    } else if (ctx && ctx->error.status == status) {
        code = ctx->error.code ? ctx->error.code : code;

        /* an error of the server has no field */

        if (status < NGX_HTTP_INTERNAL_SERVER_ERROR && ctx->error.param[0]) {
            param = ctx->error.param;
        }
    }

    vlm_json_open(w, '{');
    vlm_json_add_open(w, "error", '{');

    vlm_json_add_string(w, "message", text);
    vlm_json_add_string(w, "type", e->type);
    vlm_json_add_string(w, "param", param);
    vlm_json_add_string(w, "code", code);

    vlm_json_shut(w, '}');
    vlm_json_shut(w, '}');
}
