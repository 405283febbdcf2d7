
/*
 * The error of a request: its status, its code in OpenAI's interface, the field
 * that is wrong, and a sentence.
 */


#include "wire.h"
#include "api/error.h"


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
    ngx_http_vlm_error_t  *e;

    e = ctx && ctx->error.status == status ? &ctx->error : NULL;

    vlm_error_put(w, (unsigned) status, e ? e->code : NULL,
                  e && e->param[0] ? e->param : NULL, text);
}
