
/*
 * Values of parameters of vlm_engine { }: a function for each kind of value,
 * and for the parameters that need one of their own.
 */


#include "param.h"
#include "base/folder.h"


/* the member of eng->conf that a row is for */

#define ngx_http_vlm_param_at(ctx, type)                                      \
    (*(type *) ((u_char *) &(ctx)->engine->conf + (ctx)->row->offset))


char *
ngx_http_vlm_param_refuse(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    return ngx_http_vlm_conf_error(ctx->cf, ctx->row->error, value);
}


/* a number, size or time has the bounds of its row, which says where it is
   kept */

static char *
ngx_http_vlm_param_keep(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value,
    off_t n)
{
    if (n == NGX_ERROR || n < ctx->row->low || n > ctx->row->high) {
        return ngx_http_vlm_param_refuse(ctx, value);
    }

    /* the members of an engine have 32 or 64 bits */

    if (ctx->row->size == sizeof(uint32_t)) {
        ngx_http_vlm_param_at(ctx, uint32_t) = (uint32_t) n;

    } else {
        ngx_http_vlm_param_at(ctx, uint64_t) = (uint64_t) n;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_vlm_param_num(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(ctx, value,
                                   ngx_atoi(value->data, value->len));
}


char *
ngx_http_vlm_param_size(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(ctx, value,
                                   ngx_parse_offset(value));
}


char *
ngx_http_vlm_param_msec(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(ctx, value,
                                   ngx_parse_time(value, 0));
}


char *
ngx_http_vlm_param_sec(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(ctx, value,
                                   ngx_parse_time(value, 1));
}


/* a fraction: its bounds are in millionths */

char *
ngx_http_vlm_param_float(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    char       *rv;
    ngx_int_t   n;

    n = ngx_atofp(value->data, value->len, 6);

    rv = ngx_http_vlm_param_keep(ctx, value, n);

    ngx_http_vlm_param_at(ctx, float) = (float) (n / 1e6);

    return rv;
}


/* one of the words in the row's post */

char *
ngx_http_vlm_param_word(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_conf_enum_t  *e;

    for (e = ctx->row->post; e->name.len; e++) {

        if (ngx_strcmp(e->name.data, value->data) == 0) {

            if (ctx->row->size) {
                ngx_http_vlm_param_at(ctx, ngx_uint_t) = e->value;
            }

            return NGX_CONF_OK;
        }
    }

    return ngx_http_vlm_param_refuse(ctx, value);
}


char *
ngx_http_vlm_param_path(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_str_t  path;

    path = *value;

    if (ngx_conf_full_name(ctx->cf->cycle, &path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    ngx_http_vlm_param_at(ctx, char *) = (char *) path.data;

    return NGX_CONF_OK;
}


/* a word that the engine looks up */

char *
ngx_http_vlm_param_name(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_http_vlm_param_at(ctx, char *) = (char *) value->data;

    return NGX_CONF_OK;
}


/* text with variables; only for the first value of a parameter */

char *
ngx_http_vlm_param_text(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_command_t  cmd;

    ngx_memzero(&cmd, sizeof(ngx_command_t));
    cmd.offset = ctx->row->offset;

    return ngx_http_set_complex_value_slot(ctx->cf, &cmd, &ctx->engine->conf);
}


/*
 * A thread pool by its name.  nginx reports "unknown thread pool "vlm" in
 * FILE:LINE" when it has read all: the text in place of the file's name adds
 * the remedy.
 */

char *
ngx_http_vlm_param_pool(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_conf_t       *cf;
    ngx_conf_file_t  *saved, file;

    if (ngx_strcmp(value->data, "default") == 0) {
        return ngx_http_vlm_param_refuse(ctx, value);
    }

    cf = ctx->cf;
    saved = cf->conf_file;
    file = *saved;

    if (ngx_http_vlm_format(cf->pool, &file.file.name, "vlm_engine \"%V\", add "
                            "\"thread_pool %V threads=1;\" in front of http "
                            "{ }: %V", &ctx->engine->name, value,
                            &saved->file.name)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    cf->conf_file = &file;
    ctx->engine->pool = ngx_thread_pool_add(cf, value);
    cf->conf_file = saved;

    return ctx->engine->pool ? NGX_CONF_OK : NGX_CONF_ERROR;
}


char *
ngx_http_vlm_param_alias(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_str_t                   *name;
    ngx_http_vlm_engine_conf_t  *conf;

    conf = &ctx->engine->conf;

    if (value->len == 0
        || (value->len > 1 && ngx_strchr(value->data, '*') != NULL))
    {
        return ngx_http_vlm_conf_error(ctx->cf, "alias \"%V\" in vlm_engine "
                                       "\"%V\" is neither \"*\" nor a name "
                                       "without it", value, &ctx->engine->name);
    }

    if (value->len == 1 && value->data[0] == '*') {
        conf->any_name = 1;
        return NGX_CONF_OK;
    }

    if (conf->aliases == NULL) {
        conf->aliases = ngx_array_create(ctx->cf->pool, 4, sizeof(ngx_str_t));
    }

    name = conf->aliases ? ngx_array_push(conf->aliases) : NULL;
    if (name == NULL) {
        return NGX_CONF_ERROR;
    }

    *name = *value;

    return NGX_CONF_OK;
}


char *
ngx_http_vlm_param_weights(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    vlm_err_t  err;

    ngx_memzero(&err, sizeof(vlm_err_t));

    return vlm_weights_find((char *) value->data,
                            &ctx->engine->conf.vlm.weights, &err)
           == 0 ? NGX_CONF_OK
                : ngx_http_vlm_conf_error(ctx->cf, "%s", err.text);
}


char *
ngx_http_vlm_param_device(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "cpu") != 0
        && ngx_strcmp(value->data, "auto") != 0
        && ngx_strcmp(value->data, "cuda") != 0
        && (ngx_strncmp(value->data, "cuda:", 5) != 0
            || ngx_atoi(value->data + 5, value->len - 5) == NGX_ERROR))
    {
        return ngx_http_vlm_param_refuse(ctx, value);
    }

    ctx->engine->conf.vlm.device = (char *) value->data;

    return NGX_CONF_OK;
}


/* the second value: "retry=" or "ops=", each for one device */

char *
ngx_http_vlm_param_device_value(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    char        *rv;
    ngx_str_t   *values;
    const char  *device;

    if (ctx->row->name.len) {
        rv = ngx_http_vlm_param_msec(ctx, value);
        device = "auto";

    } else {
        rv = ngx_http_vlm_param_word(ctx, value);
        device = "cpu";
        ctx->engine->conf.vlm.ops = (char *) value->data + sizeof("ops=") - 1;
    }

    values = ctx->cf->args->elts;

    return rv != NGX_CONF_OK || ngx_strcmp(values[1].data, device) == 0
           ? rv : ngx_http_vlm_conf_error(ctx->cf, "\"%V\" is for device %s, "
                                          "not \"%V\"", &values[2], device,
                                          &values[1]);
}


/* "on" is English, the one language that Tesseract always has; the names are
   parts of a path */

char *
ngx_http_vlm_param_ocr(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    char  *names;

    names = (char *) value->data;

    if (value->len == 0 || value->len > VLM_PDF_LANGUAGES_MAX
        || strspn(names, VLM_PDF_LANGUAGES) != value->len)
    {
        return ngx_http_vlm_param_refuse(ctx, value);
    }

    ctx->engine->conf.documents.languages = ngx_strcmp(names, "on") == 0 ? "eng"
                                           : ngx_strcmp(names, "off") == 0
                                             ? NULL : names;
    return NGX_CONF_OK;
}


char *
ngx_http_vlm_param_priority(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_http_complex_value_t  *cv;

    if (ngx_http_vlm_param_text(ctx, value) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    cv = ctx->engine->conf.rank.priority;

    if (cv->lengths == NULL && ngx_strcmp(value->data, "0") != 0
        && ngx_strcmp(value->data, "normal") != 0
        && vlm_rank_priority((char *) cv->value.data, cv->value.len) == 0)
    {
        ngx_conf_log_error(NGX_LOG_WARN, ctx->cf, 0, ctx->row->error,
                           &cv->value);
    }

    return NGX_CONF_OK;
}


char *
ngx_http_vlm_param_breaker_off(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    return ctx->cf->args->nelts > 2
           ? ngx_http_vlm_param_refuse(ctx, value)
           : ngx_http_vlm_param_word(ctx, value);
}


/* a directory that may be missing */

static char *
ngx_http_vlm_param_folder(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    vlm_err_t  err;

    ngx_memzero(&err, sizeof(vlm_err_t));

    if (ngx_http_vlm_param_path(ctx, value) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    return ngx_process == NGX_PROCESS_SIGNALLER
           || vlm_folder_check(ngx_http_vlm_param_at(ctx, char *), &err) == 0
           ? NGX_CONF_OK
           : ngx_http_vlm_conf_error(ctx->cf, "vlm_engine \"%V\": %s",
                                     &ctx->engine->name, err.text);
}


char *
ngx_http_vlm_param_cache(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ctx->engine->conf.cache_set = 1;

    return ngx_strcmp(value->data, "off") == 0
           ? NGX_CONF_OK : ngx_http_vlm_param_folder(ctx, value);
}


char *
ngx_http_vlm_param_lora(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "off") != 0) {
        return ngx_http_vlm_param_folder(ctx, value);
    }

    return ctx->cf->args->nelts > 2
           ? ngx_http_vlm_conf_error(ctx->cf, "lora off takes no other value")
           : NGX_CONF_OK;
}


char *
ngx_http_vlm_param_store(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    /* of another scheme, too: a directory's name would be in messages */

    if (ngx_strstr(value->data, "://") != NULL) {
        return ngx_http_vlm_paths_redis(ctx->cf, ctx->engine, value);
    }

    ctx->engine->conf.store_dir = *value;

    return ngx_http_vlm_paths_store(ctx->cf, ctx->engine,
                                    &ctx->engine->conf.store_dir);
}


/* a directory, in two places with a Redis */

char *
ngx_http_vlm_param_store_files(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_str_t  *dir;

    if (ctx->engine->conf.redis == NULL) {
        return ngx_http_vlm_conf_error(ctx->cf, "uploads= and directory= are "
                                       "for \"store redis://host\"");
    }

    dir = &ngx_http_vlm_param_at(ctx, ngx_str_t);
    *dir = *value;

    return ngx_http_vlm_paths_store(ctx->cf, ctx->engine, dir);
}


/* an address may have a password, which is in no message */

char *
ngx_http_vlm_param_store_other(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    if (ngx_strstr(value->data, "://") == NULL) {
        return ngx_http_vlm_param_refuse(ctx, value);
    }

    return ngx_http_vlm_conf_error(ctx->cf, "the address of a Redis is the "
                                   "first value of store");
}


char *
ngx_http_vlm_param_store_max(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "off") != 0) {
        return ngx_http_vlm_param_size(ctx, value);
    }

    ctx->engine->conf.store_max = 0;

    return NGX_CONF_OK;
}


char *
ngx_http_vlm_param_socket(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_str_t  *path;

    path = &ctx->engine->conf.socket;

    *path = *value;
    ctx->engine->conf.socket_line = ctx->cf->conf_file->line;

    if (ngx_strncmp(path->data, "unix:", 5) == 0) {
        path->data += 5;
        path->len -= 5;
    }

    return ngx_conf_full_name(ctx->cf->cycle, path, 0) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


char *
ngx_http_vlm_param_retrieval(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_uint_t  hybrid, more;

    if (ngx_http_vlm_param_word(ctx, value) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    hybrid = ctx->engine->conf.documents.hybrid;
    more = ctx->cf->args->nelts > 2;

    return hybrid == more
           ? NGX_CONF_OK
           : ngx_http_vlm_conf_error(ctx->cf, hybrid
                                     ? "retrieval hybrid needs model=path"
                                     : "retrieval bm25 takes no other value");
}


char *
ngx_http_vlm_param_encoder(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    vlm_err_t                       err;
    ngx_http_vlm_engine_t          *eng;
    ngx_http_vlm_documents_conf_t  *documents;

    eng = ctx->engine;
    documents = &eng->conf.documents;
    ngx_memzero(&err, sizeof(vlm_err_t));

    if (ngx_http_vlm_param_path(ctx, value) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_process == NGX_PROCESS_SIGNALLER) {
        return NGX_CONF_OK;
    }

    /* the model serves without it, and a worker tries again */

    if (ngx_http_vlm_encoding_plan(documents->encoder, &documents->encoding,
                                   &err)
        != 0)
    {
        ngx_conf_log_error(NGX_LOG_WARN, ctx->cf, 0, "vlm_engine \"%V\": left "
                           "out until it can be loaded: retrieval: %s",
                           &eng->name, err.text);
        ngx_memzero(&documents->encoding, sizeof(vlm_embedder_plan_t));
    }

    return NGX_CONF_OK;
}
