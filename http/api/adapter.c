
/*
 * Adapters: the fields that choose one, the lists of them, and the endpoints
 * that load and unload them.  Names and paths are those of the directory
 * "lora"; its own place on the server is not shown.
 */


#include "model.h"


#define NGX_HTTP_VLM_ADAPTERS  65536           /* bytes of a list */


/* ---- fields -------------------------------------------------------------- */

static ngx_int_t
ngx_http_vlm_adapter_unknown(ngx_http_vlm_ctx_t *ctx, const char *name)
{
    return ngx_http_vlm_fail_code(ctx, NGX_HTTP_NOT_FOUND, "model_not_found",
                                  "there is no adapter \"%*s\"",
                                  vlm_utf8_whole(name, ngx_min(strlen(name),
                                                               128)),
                                  name);
}


ngx_int_t
ngx_http_vlm_adapter_use(ngx_http_vlm_ctx_t *ctx, const char *dir, int64_t id,
    double scale)
{
    ngx_uint_t            i;
    ngx_http_vlm_shm_t    shm;
    vlm_adapter_entry_t  *a;

    ngx_http_vlm_zone_texts(ctx->engine, &shm);

    for (i = 0; i < VLM_MAX_ADAPTERS; i++) {
        a = &shm.adapters[i];

        if (a->listed && (dir ? ngx_strcmp(a->dir, dir) == 0 : id-- == 0)) {
            ngx_memcpy(ctx->adapter, a->name, sizeof(ctx->adapter));
            ctx->adapter_scale = scale;

            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


/* [{id, scale}]: one entry, or none */

static ngx_int_t
ngx_http_vlm_adapter_lora(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *lora)
{
    int64_t            id;
    double             scale;
    const vlm_json_t  *one;

    if (vlm_json_is_null(lora)) {
        return NGX_OK;
    }

    ngx_http_vlm_fail_param(ctx, "lora");

    if (!vlm_json_is_array(lora) || vlm_json_count(lora) > 1) {
        return ngx_http_vlm_fail_input(ctx, "lora is not an array of at most "
                                       "one entry");
    }

    one = vlm_json_first(lora);

    if (one == NULL) {
        return NGX_OK;
    }

    scale = vlm_json_is_null(vlm_json_get(one, "scale"))
            ? 1 : vlm_json_number(vlm_json_get(one, "scale"), -1);

    if (vlm_json_int(vlm_json_get(one, "id"), 0, VLM_MAX_ADAPTERS, &id) != 0
        || !(scale >= 0 && scale <= VLM_LORA_SCALE))
    {
        return ngx_http_vlm_fail_input(ctx, "lora needs an id, and a scale "
                                       "from 0 to 4");
    }

    if (ctx->adapter[0]) {
        return ngx_http_vlm_fail_input(ctx, "lora and model name an adapter "
                                       "both");
    }

    return ngx_http_vlm_adapter_use(ctx, NULL, id, scale) == NGX_OK
           ? NGX_OK
           : ngx_http_vlm_fail_input(ctx, "lora has an id that GET "
                                     "/lora-adapters does not list");
}


ngx_int_t
ngx_http_vlm_adapter_field(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_str_t          name;
    const char        *text;
    const vlm_json_t  *field;

    field = vlm_json_get(json, "adapter");
    text = vlm_json_text(field);

    if (!vlm_json_is_null(field)) {
        ngx_http_vlm_fail_param(ctx, "adapter");

        if (text == NULL) {
            return ngx_http_vlm_fail_input(ctx, "adapter is not a string");
        }

        name.data = (u_char *) text;
        name.len = ngx_strlen(text);

        switch (ngx_http_vlm_model_adapter(ctx, &name)) {

        case NGX_OK:
            break;

        case NGX_ERROR:
            return NGX_ERROR;

        default:
            return ngx_http_vlm_adapter_unknown(ctx, text);
        }
    }

    return ngx_http_vlm_adapter_lora(ctx, vlm_json_get(json, "lora"));
}


/* ---- lists: any worker --------------------------------------------------- */

void
ngx_http_vlm_adapter_put_path(vlm_json_out_t *w, const char *key,
    ngx_http_vlm_engine_t *eng, const char *dir)
{
    size_t       len;
    const char  *lora;

    lora = vlm_file_name(eng->conf.vlm.lora, &len);

    vlm_json_add_format(w, key, "%.*s/%s", (int) ngx_min(len, 512), lora, dir);
}


static ngx_int_t
ngx_http_vlm_adapter_show(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_uint_t ids)
{
    ngx_uint_t           i, n;
    vlm_json_out_t       w;
    ngx_http_vlm_shm_t   shm;

    ngx_http_vlm_zone_texts(eng, &shm);

    vlm_json_init(&w, NGX_HTTP_VLM_ADAPTERS);

    if (ids) {
        vlm_json_open(&w, '[');

    } else {
        vlm_json_open(&w, '{');
        vlm_json_add_open(&w, "adapters", '[');
    }

    for (n = 0, i = 0; eng->conf.vlm.lora && i < VLM_MAX_ADAPTERS; i++) {

        if (!shm.adapters[i].listed) {
            continue;
        }

        vlm_json_open(&w, '{');

        if (ids) {
            vlm_json_add_int(&w, "id", n++);

        } else {
            vlm_json_add_string(&w, "name", shm.adapters[i].name);
        }

        ngx_http_vlm_adapter_put_path(&w, "path", eng, shm.adapters[i].dir);

        if (ids) {
            vlm_json_add_double(&w, "scale", 0);
        }

        vlm_json_shut(&w, '}');
    }

    vlm_json_shut(&w, ']');

    if (!ids) {
        ngx_http_vlm_health_left_out(&w, "left_out", eng, &shm);
        vlm_json_shut(&w, '}');
    }

    return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
}


/* a request without "lora" has none: the scales are 0; one that was left out
   has no id */

ngx_int_t
ngx_http_vlm_adapter_lora_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_adapter_show(r, eng, 1);
}


ngx_int_t
ngx_http_vlm_adapter_list_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_adapter_show(r, eng, 0);
}


/* ---- load and unload: a thread of the designated worker ------------------ */

/* a text of the request; NULL: it has failed */

static const char *
ngx_http_vlm_adapter_text(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    const char *field)
{
    const char  *text;

    text = vlm_json_text(vlm_json_get(json, field));

    if (text == NULL || text[0] == '\0') {
        ngx_http_vlm_fail_param(ctx, field);
        (void) ngx_http_vlm_fail_input(ctx, "%s is not a text", field);
        return NULL;
    }

    return text;
}


/* as vLLM has it; a running answer keeps its version here */

static ngx_int_t
ngx_http_vlm_adapter_replaces(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    int *replace)
{
    const vlm_json_t  *field;

    field = vlm_json_get(json, "load_inplace");
    *replace = vlm_json_is_true(field);

    if (vlm_json_is_null(field) || vlm_json_is_bool(field)) {
        return NGX_OK;
    }

    ngx_http_vlm_fail_param(ctx, "load_inplace");

    return ngx_http_vlm_fail_input(ctx, "load_inplace is neither true nor "
                                   "false");
}


static ngx_int_t
ngx_http_vlm_adapter_allowed(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    if (!ctx->engine->conf.lora_load) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_FORBIDDEN, "Adapters are those "
                                 "of the configuration: lora has no load=on");
    }

    return vlm_json_is_object(json)
           ? NGX_OK : ngx_http_vlm_fail_input(ctx, "The request is not a JSON "
                                              "object");
}


const char *
ngx_http_vlm_adapter_dir(ngx_http_vlm_engine_t *eng, const char *path)
{
    size_t       n, len;
    const char  *last, *lora, *name;

    last = strrchr(path, '/');

    if (last == NULL) {
        return path;
    }

    n = last - path;
    lora = eng->conf.vlm.lora;
    name = vlm_file_name(lora, &len);

    return (n == len && strncmp(path, name, n) == 0)
           || (n == (size_t) (name - lora) + len && strncmp(path, lora, n) == 0)
           ? last + 1 : NULL;
}


static void
ngx_http_vlm_adapter_refused(ngx_http_vlm_ctx_t *ctx, vlm_err_t *err)
{
    ngx_uint_t  status;

    status = err->code == VLM_EINPUT ? NGX_HTTP_NOT_FOUND
             : err->code == VLM_ELIMIT ? NGX_HTTP_CONFLICT
             : err->code == VLM_EDEVICE ? NGX_HTTP_SERVICE_UNAVAILABLE
             : err->code == VLM_EMEMORY ? NGX_HTTP_INTERNAL_SERVER_ERROR
             : NGX_HTTP_BAD_REQUEST;

    (void) ngx_http_vlm_fail(ctx, status, "%s", err->text);
}


/* loads the adapter of a directory, or without one unloads it */

static void
ngx_http_vlm_adapter_change(ngx_http_vlm_ctx_t *ctx, const char *name,
    const char *dir, int replace)
{
    int         rc, idle;
    vlm_t      *vlm;
    vlm_err_t   err;

    if (!ctx->engine->life.loaded) {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 "The model is not loaded");
        return;
    }

    ngx_memzero(&err, sizeof(vlm_err_t));

    vlm = ctx->engine->life.vlm;

    rc = dir ? vlm_adapter_load(vlm, name, dir, replace, &idle, &err)
             : vlm_adapter_unload(vlm, name, &err);

    if (rc != 0) {
        ngx_http_vlm_adapter_refused(ctx, &err);
        return;
    }

    ngx_cpystrn((u_char *) ctx->adapter, (u_char *) name, sizeof(ctx->adapter));

    (void) ngx_http_vlm_fail(ctx, NGX_HTTP_OK, dir ? "added" : "removed");
}


static void
ngx_http_vlm_adapter_load_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    int          replace;
    const char  *name, *path, *dir;

    if (ngx_http_vlm_adapter_allowed(ctx, json) != NGX_OK
        || (name = ngx_http_vlm_adapter_text(ctx, json, "lora_name")) == NULL
        || (path = ngx_http_vlm_adapter_text(ctx, json, "lora_path")) == NULL
        || ngx_http_vlm_adapter_replaces(ctx, json, &replace) != NGX_OK)
    {
        return;
    }

    dir = ngx_http_vlm_adapter_dir(ctx->engine, path);

    if (!vlm_adapter_named(name)) {
        (void) ngx_http_vlm_fail_input(ctx, "lora_name has letters, digits, "
                                       "'.', '_' and '-', up to 63");

    } else if (dir == NULL) {
        (void) ngx_http_vlm_fail_input(ctx, "lora_path is not a directory in "
                                       "\"lora\"");

    } else {
        ngx_http_vlm_adapter_change(ctx, name, dir, replace);
    }
}


static void
ngx_http_vlm_adapter_unload_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    const char  *name;

    if (ngx_http_vlm_adapter_allowed(ctx, json) == NGX_OK
        && (name = ngx_http_vlm_adapter_text(ctx, json, "lora_name")) != NULL)
    {
        ngx_http_vlm_adapter_change(ctx, name, NULL, 0);
    }
}


/* loop: the list has changed, and a run of the engine puts the adapter */

static ngx_int_t
ngx_http_vlm_adapter_done(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->error.status == NGX_HTTP_OK) {
        ctx->out.text_type = 1;
        ngx_http_vlm_adapter_share(ctx->engine);
        ngx_http_vlm_engine_kick(ctx->engine);
    }

    return NGX_DECLINED;
}


static void
ngx_http_vlm_adapter_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    int   n;
    char  text[128 + VLM_ADAPTER_NAME];

    n = snprintf(text, sizeof(text), "Success: LoRA adapter '%s' %s "
                 "successfully.", ctx->adapter, ctx->error.err.text);

    vlm_json_put_raw(w, text, n);
}


const ngx_http_vlm_dialect_t  ngx_http_vlm_adapter_load = {
    .fields = ngx_http_vlm_adapter_load_fields,
    .failed = ngx_http_vlm_adapter_done,
    .answer = ngx_http_vlm_adapter_answer
};


const ngx_http_vlm_dialect_t  ngx_http_vlm_adapter_unload = {
    .fields = ngx_http_vlm_adapter_unload_fields,
    .failed = ngx_http_vlm_adapter_done,
    .answer = ngx_http_vlm_adapter_answer
};
