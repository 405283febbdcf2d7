
/*
 * The engine that a request is for, where a location has several: the one that
 * the field "model" of its body means, and without that field the first.
 *
 * The worker that accepted the request reads the whole body first, because it
 * decides to which worker the request goes, and finds the field without
 * parsing: a body counts for the memory of an engine that is not known yet, and
 * it will be parsed in another worker.
 */


#include "model.h"


#define NGX_HTTP_VLM_CHOOSE  32768             /* bytes: at worst 0.3 ms */


typedef struct {
    ngx_http_vlm_ctx_t               *ctx;
    const ngx_http_vlm_dialect_t     *dialect;
    ngx_http_client_body_handler_pt   chosen;
    char                              name[NGX_HTTP_VLM_MODEL + 1];
} ngx_http_vlm_choose_t;


#define ngx_http_vlm_choose_lite(c)                                           \
    ((c)->dialect == &ngx_http_vlm_lite_dialect)


/* in a thread if the body is large; a name that is too long is left to the
   first engine, which refuses it */

static void
ngx_http_vlm_choose_peek(void *data)
{
    ngx_http_vlm_choose_t *c = data;

    ngx_http_vlm_body_t  *body;

    body = &c->ctx->body;

    if (ngx_http_vlm_body_get(c->ctx) == NGX_OK) {

        (void) vlm_json_peek(body->data, body->len,
                             ngx_http_vlm_choose_lite(c) ? "base_model"
                                                         : "model",
                             c->name, sizeof(c->name));

        /* an older spelling of Ollama's */

        if (c->dialect == NULL && c->name[0] == '\0') {
            (void) vlm_json_peek(body->data, body->len, "name", c->name,
                                 sizeof(c->name));
        }
    }

    ngx_http_vlm_body_free(body);
}


/* an unknown name is left to the first engine where there are other words for
   it: /api/show, /api/pull, the LoRA service; NGX_ERROR: ctx->error says why
   there is none */

static ngx_int_t
ngx_http_vlm_choose_engine(ngx_http_request_t *r, ngx_http_vlm_choose_t *c)
{
    ngx_str_t            name;
    ngx_http_vlm_ctx_t  *ctx;

    ctx = c->ctx;

    name.data = (u_char *) c->name;
    name.len = ngx_strlen(name.data);

    if (ctx->error.status) {
        return NGX_ERROR;
    }

    ctx->engine = ngx_http_vlm_model_engine(r, &name);

    if (ctx->engine == NULL
        && (c->dialect == NULL || ngx_http_vlm_choose_lite(c)))
    {
        ctx->engine = ngx_http_vlm_engine_at(r, 0);
    }

    if (ctx->engine) {
        return NGX_OK;
    }

    ngx_http_vlm_fail_param(ctx, "model");
    (void) ngx_http_vlm_model_missing(ctx, &name);

    ngx_http_vlm_metrics_refused(r, ngx_http_vlm_engine_at(r, 0),
                                 NGX_HTTP_VLM_INPUT, ctx->error.err.text);

    return NGX_ERROR;
}


static void
ngx_http_vlm_choose_done(ngx_http_request_t *r, void *data)
{
    ngx_http_vlm_choose_t *c = data;

    ngx_http_vlm_ctx_t  *ctx;

    ctx = c->ctx;
    ctx->data = NULL;

    if (ngx_http_vlm_choose_engine(r, c) == NGX_OK) {
        c->chosen(r);
        return;
    }

    ngx_http_finalize_request(r, ngx_http_vlm_send_error(r, ctx->error.status,
                                                         ctx->error.err.text));
}


/* a small body in memory needs no thread, so that such requests keep their
   order */

static void
ngx_http_vlm_choose_body(ngx_http_request_t *r)
{
    ngx_chain_t            *cl;
    ngx_http_vlm_ctx_t     *ctx;
    ngx_http_vlm_choose_t  *c;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);
    c = ctx->data;

    ctx->body.from = r->request_body;
    cl = r->request_body ? r->request_body->bufs : NULL;

    if (cl == NULL
        || (cl->next == NULL && !cl->buf->in_file
            && ngx_buf_size(cl->buf) <= NGX_HTTP_VLM_CHOOSE))
    {
        ngx_http_vlm_choose_peek(c);
        ngx_http_vlm_choose_done(r, c);
        return;
    }

    if (ngx_http_vlm_thread(r, ngx_http_vlm_engine_at(r, 0),
                            ngx_http_vlm_choose_peek, NULL,
                            ngx_http_vlm_choose_done, c)
        != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


ngx_int_t
ngx_http_vlm_choose(ngx_http_request_t *r,
    const ngx_http_vlm_dialect_t *dialect,
    ngx_http_client_body_handler_pt chosen)
{
    ngx_http_vlm_ctx_t     *ctx;
    ngx_http_vlm_choose_t  *c;

    ctx = ngx_http_vlm_ctx(r);
    c = ctx ? ngx_pcalloc(r->pool, sizeof(ngx_http_vlm_choose_t)) : NULL;

    if (c == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    c->ctx = ctx;
    c->dialect = dialect;
    c->chosen = chosen;

    ctx->data = c;

    return ngx_http_vlm_body_read(r, ngx_http_vlm_choose_body);
}
