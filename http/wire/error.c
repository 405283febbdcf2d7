
/*
 * The error of a request, and errors in OpenAI's form.  Clients choose their
 * exception by the status, and what to do by type and code; so each status has
 * both, and ctx may have a more exact code.
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


/* the text is cut to whole characters */

ngx_int_t
ngx_http_vlm_fail_code(ngx_http_vlm_ctx_t *ctx, ngx_uint_t status,
    const char *code, const char *fmt, ...)
{
    char     *text;
    u_char   *last;
    va_list   args;

    text = ctx->error.err.text;

    va_start(args, fmt);
    last = ngx_vslprintf((u_char *) text,
                         (u_char *) text + sizeof(ctx->error.err.text) - 1,
                         fmt, args);
    va_end(args);

    text[vlm_utf8_whole(text, (char *) last - text)] = '\0';

    ctx->error.status = status;
    ctx->error.code = code;

    return NGX_ERROR;
}


ngx_int_t
ngx_http_vlm_fail_engine(ngx_http_vlm_ctx_t *ctx, const char *input,
    const char *limit)
{
    ngx_http_vlm_error_t  *e;

    e = &ctx->error;

    switch (e->err.code) {

    case VLM_EINPUT:
        e->status = NGX_HTTP_BAD_REQUEST;
        e->code = input;
        break;

    case VLM_ELIMIT:
        e->status = NGX_HTTP_BAD_REQUEST;
        e->code = limit;
        break;

    default:
        e->status = NGX_HTTP_INTERNAL_SERVER_ERROR;
        e->code = NULL;
    }

    return NGX_ERROR;
}


void
ngx_http_vlm_fail_param(ngx_http_vlm_ctx_t *ctx, const char *fmt, ...)
{
    char     *param;
    u_char   *last;
    va_list   args;

    param = ctx->error.param;

    va_start(args, fmt);
    last = ngx_vslprintf((u_char *) param,
                         (u_char *) param + sizeof(ctx->error.param) - 1,
                         fmt, args);
    va_end(args);

    param[vlm_utf8_whole(param, (char *) last - param)] = '\0';
}


void
ngx_http_vlm_fail_clear(ngx_http_vlm_ctx_t *ctx)
{
    ctx->error.status = 0;
    ctx->error.code = NULL;
    ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));
}


ngx_uint_t
ngx_http_vlm_openai_speaks(const ngx_str_t *uri)
{
    return uri->len >= sizeof("/v1/") - 1
           && ngx_strncmp(uri->data, "/v1/", sizeof("/v1/") - 1) == 0;
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

    if (ctx && ctx->error.status == status) {
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
