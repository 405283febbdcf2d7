
/*
 * The error of a request: its status, its code in OpenAI's interface, the field
 * that is wrong, and a sentence.
 */


#include "wire.h"


/* the text is cut to whole characters */

static void
ngx_http_vlm_fail_text(char *text, size_t size, const char *fmt, va_list args)
{
    u_char  *last;

    last = ngx_vslprintf((u_char *) text, (u_char *) text + size - 1, fmt,
                         args);

    text[vlm_utf8_whole(text, (char *) last - text)] = '\0';
}


ngx_int_t
ngx_http_vlm_fail_code(ngx_http_vlm_ctx_t *ctx, ngx_uint_t status,
    const char *code, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    ngx_http_vlm_fail_text(ctx->error.err.text, sizeof(ctx->error.err.text),
                           fmt, args);
    va_end(args);

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
    va_list  args;

    va_start(args, fmt);
    ngx_http_vlm_fail_text(ctx->error.param, sizeof(ctx->error.param), fmt,
                           args);
    va_end(args);
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
    return vlm_error_form((char *) uri->data, uri->len) == VLM_ERROR_OPENAI;
}


void
ngx_http_vlm_openai_put_error(vlm_json_out_t *w,
    ngx_http_vlm_ctx_t *ctx, ngx_uint_t status, const char *text,
    ngx_uint_t chunk)
{
    ngx_http_vlm_error_t  *e;

    e = ctx && ctx->error.status == status ? &ctx->error : NULL;

    vlm_error_put(w, (unsigned) status, e ? e->code : NULL,
                  e && e->param[0] ? e->param : NULL, text, (int) chunk);
}
