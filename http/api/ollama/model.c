
/*
 * The models as Ollama's clients query them before they use one: /api/tags,
 * /api/ps, /api/show, /api/version; and the endpoints that a server whose
 * models are configured does not have.  All of it is known from the
 * configuration and the zones, so any worker answers.
 */


#include "ollama.h"


#define NGX_HTTP_VLM_OLLAMA_INFO   (256 * 1024)    /* bytes, of an answer */
#define NGX_HTTP_VLM_OLLAMA_SHOW   (64 * 1024)     /* bytes, of a body */

#define NGX_HTTP_VLM_OLLAMA_FIXED                                             \
    "The model of this server is named in its configuration: it cannot be "   \
    "pulled, pushed, created, copied or deleted"


/* ---- lists --------------------------------------------------------------- */


ngx_int_t
ngx_http_vlm_ollama_version_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    static ngx_str_t  json = ngx_string("{\"version\":\""
                                        NGX_HTTP_VLM_OLLAMA_VERSION "\"}\n");

    return ngx_http_vlm_send(r, NGX_HTTP_OK, &json);
}


static void
ngx_http_vlm_ollama_model(ngx_http_vlm_engine_t *eng, vlm_ollama_model_t *m)
{
    m->facts = &eng->conf.facts;
    m->name = (char *) eng->name.data;
    m->name_bytes = eng->name.len;
    m->directory = (char *) eng->conf.directory.data;
    m->directory_bytes = eng->conf.directory.len;
    m->format = eng->conf.facts.gguf ? "gguf" : "safetensors";
    m->weights = vlm_weights_name(eng->conf.vlm.weights);
    m->bytes = eng->conf.plan.weights;
    m->created = eng->conf.created;
    m->context = eng->conf.vlm.context;
    m->max_tokens = eng->conf.vlm.max_tokens;
    m->thinks = (int) eng->conf.thinking;
    m->calls = (int) ngx_http_vlm_tools_supported(eng);
}


static void
ngx_http_vlm_ollama_put_tag(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng,
    ngx_str_t *name, const char *adapter)
{
    vlm_ollama_model_t  m;

    ngx_http_vlm_ollama_model(eng, &m);
    vlm_ollama_put_tag(w, &m, (char *) name->data, name->len, adapter);
}


static void
ngx_http_vlm_ollama_put_tags(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_model_names(w, eng, ngx_http_vlm_ollama_put_tag);
}


/* a model once it is loaded, under one name */

static void
ngx_http_vlm_ollama_put_loaded(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t          cpu;
    ngx_http_vlm_shm_t  shm;
    vlm_ollama_model_t  m;

    ngx_http_vlm_zone_texts(eng, &shm);

    cpu = ngx_strncmp(shm.device, "cpu", 3) == 0;

    if (shm.state == NGX_HTTP_VLM_READY) {
        ngx_http_vlm_ollama_model(eng, &m);
        vlm_ollama_put_loaded(w, &m, shm.plan.total, cpu ? 0 : shm.plan.total,
                              ngx_time());
    }
}


static ngx_int_t
ngx_http_vlm_ollama_list(ngx_http_request_t *r,
    void (*put)(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng))
{
    ngx_uint_t              i;
    vlm_json_out_t          w;
    ngx_http_vlm_engine_t  *eng;

    vlm_json_init(&w, NGX_HTTP_VLM_ENGINES * NGX_HTTP_VLM_OLLAMA_INFO);

    vlm_json_open(&w, '{');
    vlm_json_add_open(&w, "models", '[');

    for (i = 0; (eng = ngx_http_vlm_engine_at(r, i)) != NULL; i++) {
        put(&w, eng);
    }

    vlm_json_shut(&w, ']');
    vlm_json_shut(&w, '}');

    return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
}


ngx_int_t
ngx_http_vlm_ollama_tags_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_ollama_list(r, ngx_http_vlm_ollama_put_tags);
}


ngx_int_t
ngx_http_vlm_ollama_ps_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_ollama_list(r, ngx_http_vlm_ollama_put_loaded);
}


/* ---- one model: /api/show, and /api/pull, which finds it here ------------ */


/* "name" is an older spelling of "model" */

static void
ngx_http_vlm_ollama_find_model(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_str_t          name;
    const vlm_json_t  *field;

    field = vlm_json_get(json, "model");

    if (!vlm_json_is_true(field)) {
        field = vlm_json_get(json, "name");
    }

    name.data = (u_char *) vlm_json_text(field);

    if (name.data == NULL || name.data[0] == '\0') {
        (void) ngx_http_vlm_fail_input(ctx, "model is required");
        return;
    }

    name.len = ngx_strlen(name.data);

    ctx->streaming = vlm_json_bool(vlm_json_get(json, "stream"), 1);

    if (ngx_http_vlm_model_adapter(ctx, &name) == NGX_DECLINED
        && ngx_http_vlm_model_is(ctx->engine, &name) != NGX_OK)
    {
        (void) ngx_http_vlm_model_missing(ctx, &name);
    }
}


/* a thread: the model that the body names, or ctx->error */

static void
ngx_http_vlm_ollama_find(ngx_http_vlm_ctx_t *ctx)
{
    vlm_json_t  *json;

    if (ngx_http_vlm_body_get(ctx) != NGX_OK) {
        return;
    }

    json = ngx_http_vlm_work_json(ctx, NGX_HTTP_VLM_OLLAMA_SHOW);

    if (json) {
        ngx_http_vlm_ollama_find_model(ctx, json);
        vlm_json_free(json);
    }
}


void
ngx_http_vlm_ollama_show(ngx_http_vlm_ctx_t *ctx)
{
    vlm_ollama_model_t  m;

    ngx_http_vlm_ollama_find(ctx);

    if (ctx->error.status == 0) {
        ngx_http_vlm_ollama_model(ctx->engine, &m);
        vlm_json_init(&ctx->out.json, NGX_HTTP_VLM_OLLAMA_INFO);
        vlm_ollama_show(&ctx->out.json, &m, ctx->adapter[0] != '\0');
    }
}


static ngx_int_t
ngx_http_vlm_ollama_pulled(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_complex_value_t  cv;

    static ngx_str_t  type = ngx_string("application/x-ndjson");
    static ngx_str_t  lines = ngx_string("{\"status\":\"pulling manifest\"}\n"
                                         "{\"status\":\"success\"}\n");
    static ngx_str_t  whole = ngx_string("{\"status\":\"success\"}\n");

    if (!ctx->streaming) {
        return ngx_http_vlm_send(ctx->request, NGX_HTTP_OK, &whole);
    }

    ngx_memzero(&cv, sizeof(ngx_http_complex_value_t));
    cv.value = lines;

    return ngx_http_send_response(ctx->request, NGX_HTTP_OK, &type, &cv);
}


/* clients pull a model before they use it, whether it is here or not */

void
ngx_http_vlm_ollama_pull(ngx_http_vlm_ctx_t *ctx)
{
    ctx->send = ngx_http_vlm_ollama_pulled;

    ngx_http_vlm_ollama_find(ctx);

    if (ctx->error.status == NGX_HTTP_NOT_FOUND) {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_FORBIDDEN,
                                 NGX_HTTP_VLM_OLLAMA_FIXED);
    }
}


/* ---- endpoints that are not supported ------------------------------------ */


ngx_int_t
ngx_http_vlm_ollama_fixed_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_send_error(r, NGX_HTTP_FORBIDDEN,
                                   NGX_HTTP_VLM_OLLAMA_FIXED);
}
