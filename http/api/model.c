
/*
 * The names of an engine's model: those that clients may use for it, and the
 * error for any other name.
 */


#include "model.h"


void
ngx_http_vlm_model_init(ngx_http_vlm_engine_t *eng)
{
    u_char            path[NGX_MAX_PATH];
    const char       *model;
    ngx_file_info_t   fi;

    model = eng->conf.vlm.model;

    *ngx_snprintf(path, sizeof(path) - 1, "%s%s", model,
                  eng->conf.facts.gguf ? "" : "/config.json") = '\0';

    eng->conf.created = ngx_file_info(path, &fi) == NGX_FILE_ERROR
                        ? ngx_time() : ngx_file_mtime(&fi);

    eng->conf.directory.data = (u_char *)
                               vlm_file_name(model, &eng->conf.directory.len);
}


/* the names to list, from 0 on: the engine's, then its aliases; or NULL */

static ngx_str_t *
ngx_http_vlm_model_name(ngx_http_vlm_engine_t *eng, ngx_uint_t i)
{
    ngx_str_t  *names;

    if (i == 0) {
        return &eng->name;
    }

    if (eng->conf.aliases == NULL || i > eng->conf.aliases->nelts) {
        return NULL;
    }

    names = eng->conf.aliases->elts;

    return &names[i - 1];
}


/* Ollama's clients add a tag to a name without one: the bytes before it */

static size_t
ngx_http_vlm_model_untagged(ngx_str_t *name)
{
    size_t  tag;

    tag = sizeof(":latest") - 1;

    return name->len > tag
           && ngx_strncasecmp(name->data + name->len - tag,
                              (u_char *) ":latest", tag)
              == 0 ? name->len - tag : name->len;
}


static ngx_uint_t
ngx_http_vlm_model_same(ngx_str_t *one, ngx_str_t *other)
{
    return ngx_http_vlm_model_untagged(other)
           == ngx_http_vlm_model_untagged(one)
           && ngx_strncasecmp(other->data, one->data,
                              ngx_min(other->len, one->len)) == 0;
}


/* by one of its own names */

static ngx_int_t
ngx_http_vlm_model_named(ngx_http_vlm_engine_t *eng, ngx_str_t *name)
{
    ngx_str_t   *known;
    ngx_uint_t   i;

    if (name->len == 0
        || ngx_http_vlm_model_same(&eng->conf.directory, name))
    {
        return NGX_OK;
    }

    for (i = 0; (known = ngx_http_vlm_model_name(eng, i)) != NULL; i++) {
        if (ngx_http_vlm_model_same(known, name)) {
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_vlm_model_is(ngx_http_vlm_engine_t *eng, ngx_str_t *name)
{
    return eng->conf.any_name ? NGX_OK : ngx_http_vlm_model_named(eng, name);
}


/* copy: the name without a tag */

static ngx_int_t
ngx_http_vlm_model_adapted(ngx_http_vlm_engine_t *eng, ngx_str_t *name,
    char copy[VLM_ADAPTER_NAME])
{
    size_t  len;

    len = ngx_http_vlm_model_untagged(name);

    if (eng->conf.vlm.lora == NULL || len >= VLM_ADAPTER_NAME) {
        return NGX_DECLINED;
    }

    ngx_memcpy(copy, name->data, len);
    copy[len] = '\0';

    return vlm_adapter_named(copy)
           && (ngx_http_vlm_adapter_listed(eng, copy, NULL)
               || ngx_http_vlm_adapter_left_out(eng, copy)) ? NGX_OK
                                                            : NGX_DECLINED;
}


ngx_int_t
ngx_http_vlm_model_adapter(ngx_http_vlm_ctx_t *ctx, ngx_str_t *name)
{
    char  copy[VLM_ADAPTER_NAME];

    if (ngx_http_vlm_model_adapted(ctx->engine, name, copy) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (ngx_http_vlm_adapter_left_out(ctx->engine, copy)) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 "Adapter \"%s\" cannot be loaded at the "
                                 "moment: GET /api/health says why", copy);
    }

    ngx_memcpy(ctx->adapter, copy, sizeof(copy));
    ctx->adapter_scale = 1;

    return NGX_OK;
}


ngx_http_vlm_engine_t *
ngx_http_vlm_model_engine(ngx_http_request_t *r, ngx_str_t *name)
{
    char                    copy[VLM_ADAPTER_NAME];
    ngx_uint_t              i;
    ngx_http_vlm_engine_t  *eng, *adapted, *any;

    adapted = NULL;
    any = NULL;

    for (i = 0; (eng = ngx_http_vlm_engine_at(r, i)) != NULL; i++) {

        if (ngx_http_vlm_model_named(eng, name) == NGX_OK) {
            return eng;
        }

        if (ngx_http_vlm_model_adapted(eng, name, copy) == NGX_OK
            && (adapted == NULL
                || ngx_http_vlm_adapter_left_out(adapted, copy)))
        {
            adapted = eng;
        }

        if (eng->conf.any_name) {
            any = eng;
        }
    }

    return adapted ? adapted : any;
}


ngx_str_t *
ngx_http_vlm_model_shared(ngx_http_vlm_engine_t *one,
    ngx_http_vlm_engine_t *other)
{
    ngx_str_t   *name;
    ngx_uint_t   i;

    static ngx_str_t  any = ngx_string("*");

    for (i = 0; (name = ngx_http_vlm_model_name(one, i)) != NULL; i++) {
        if (ngx_http_vlm_model_named(other, name) == NGX_OK) {
            return name;
        }
    }

    for (i = 0; (name = ngx_http_vlm_model_name(other, i)) != NULL; i++) {
        if (ngx_http_vlm_model_named(one, name) == NGX_OK) {
            return name;
        }
    }

    return one->conf.any_name && other->conf.any_name ? &any : NULL;
}


/* kept as the client wrote it, because every event of the answer repeats it */

char *
ngx_http_vlm_model_take(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *field)
{
    char        *copy;
    ngx_int_t    rc;
    ngx_str_t    name;
    const char  *text;

    ngx_http_vlm_fail_param(ctx, "model");

    text = vlm_json_is_null(field) ? "" : vlm_json_text(field);

    if (text == NULL) {
        (void) ngx_http_vlm_fail_input(ctx, "model is not a string");
        return NULL;
    }

    name.data = (u_char *) text;
    name.len = ngx_strlen(text);

    rc = ngx_http_vlm_model_named(ctx->engine, &name);

    if (rc != NGX_OK) {
        rc = ngx_http_vlm_model_adapter(ctx, &name);
    }

    if (rc == NGX_DECLINED && !ctx->engine->conf.any_name) {
        rc = ngx_http_vlm_model_missing(ctx, &name);
    }

    if (rc == NGX_ERROR) {
        return NULL;
    }

    if (name.len > NGX_HTTP_VLM_MODEL) {
        (void) ngx_http_vlm_fail_input(ctx, "model has %uz bytes, it may have "
                                       "%d", name.len, NGX_HTTP_VLM_MODEL);
        return NULL;
    }

    if (name.len == 0) {
        name = ctx->engine->name;
    }

    copy = strndup((char *) name.data, name.len);

    if (copy == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the model's name");
    }

    return copy;
}


ngx_int_t
ngx_http_vlm_model_missing(ngx_http_vlm_ctx_t *ctx, ngx_str_t *name)
{
    size_t                  len;
    u_char                  names[512], *p;
    ngx_uint_t              i;
    ngx_http_vlm_engine_t  *eng;

    len = vlm_utf8_whole((char *) name->data, ngx_min(name->len, 128));

    eng = ngx_http_vlm_engine_at(ctx->request, 0);

    if (ngx_http_vlm_engine_at(ctx->request, 1) == NULL) {
        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_NOT_FOUND,
                                      "model_not_found",
                                      "model \"%*s\" not found, the model here "
                                      "is \"%V\"", len, name->data,
                                      &eng->name);
    }

    p = names;

    for (i = 0; (eng = ngx_http_vlm_engine_at(ctx->request, i)) != NULL; i++) {
        p = ngx_slprintf(p, names + sizeof(names), "%s\"%V\"", i ? ", " : "",
                         &eng->name);
    }

    return ngx_http_vlm_fail_code(ctx, NGX_HTTP_NOT_FOUND, "model_not_found",
                                  "model \"%*s\" not found, the models here "
                                  "are %*s", len, name->data,
                                  (size_t) (p - names), names);
}


void
ngx_http_vlm_model_names(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_model_put_t *put)
{
    ngx_str_t           *name, adapter;
    ngx_uint_t           i;
    ngx_http_vlm_shm_t   shm;

    for (i = 0; (name = ngx_http_vlm_model_name(eng, i)) != NULL; i++) {
        put(w, eng, name, "");
    }

    ngx_http_vlm_zone_texts(eng, &shm);

    for (i = 0; eng->conf.vlm.lora && i < VLM_MAX_ADAPTERS; i++) {

        if (shm.adapters[i].listed) {
            adapter.data = (u_char *) shm.adapters[i].name;
            adapter.len = ngx_strlen(adapter.data);
            put(w, eng, &adapter, shm.adapters[i].dir);
        }
    }
}
