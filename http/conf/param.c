
/*
 * The parameters of vlm_engine { }: a function for each kind of value, and for
 * the parameters that need one of their own; the table, which has the bounds
 * and the error message of each value; the reading of a line.
 */


#include "conf.h"


#define NGX_HTTP_VLM_DAY  (24 * 3600 * 1000)       /* ms */
#define NGX_HTTP_VLM_ANY  NGX_MAX_OFF_T_VALUE      /* no upper bound */


/* the block that is read */

typedef struct ngx_http_vlm_param_s  ngx_http_vlm_param_t;

typedef struct {
    ngx_conf_t                   *cf;
    ngx_http_vlm_engine_t        *engine;
    const ngx_http_vlm_param_t   *row;         /* of the value at hand */
    u_char                       *seen;        /* [rows] */
} ngx_http_vlm_param_ctx_t;

typedef char *ngx_http_vlm_param_set_t(ngx_http_vlm_param_ctx_t *ctx,
    ngx_str_t *value);


/* a row of the table: a parameter, or another value of the one above it */

struct ngx_http_vlm_param_s {
    ngx_str_t                     name;        /* or "timeout=" of a value */
    ngx_uint_t                    max;         /* values of a parameter, 1 to
                                                  max; 0: a value */
    ngx_http_vlm_param_set_t     *set;
    off_t                         low;         /* the least value, */
    off_t                         high;        /* and the largest */
    size_t                        offset;      /* of a member of eng->conf, */
    size_t                        size;        /* and its bytes */
    void                         *post;        /* the words to choose from */
    const char                   *error;       /* with "%V", the value */
};


/* the member of eng->conf that a row is for */

#define ngx_http_vlm_param_at(ctx, type)                                      \
    (*(type *) ((u_char *) &(ctx)->engine->conf + (ctx)->row->offset))


static char *
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


static char *
ngx_http_vlm_param_num(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(ctx, value,
                                   ngx_atoi(value->data, value->len));
}


static char *
ngx_http_vlm_param_size(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(ctx, value,
                                   ngx_parse_offset(value));
}


static char *
ngx_http_vlm_param_msec(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(ctx, value,
                                   ngx_parse_time(value, 0));
}


static char *
ngx_http_vlm_param_sec(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(ctx, value,
                                   ngx_parse_time(value, 1));
}


/* a fraction: its bounds are in millionths */

static char *
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

static char *
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


static char *
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


/* text with variables; only for the first value of a parameter */

static char *
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

static char *
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


static char *
ngx_http_vlm_param_alias(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_str_t                   *name;
    ngx_http_vlm_engine_conf_t  *conf;

    conf = &ctx->engine->conf;

    if (value->len == 0) {
        return ngx_http_vlm_conf_error(ctx->cf, "alias \"\" in vlm_engine "
                                       "\"%V\": a name has 1 character or "
                                       "more", &ctx->engine->name);
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


static char *
ngx_http_vlm_param_weights(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    vlm_err_t  err;

    ngx_memzero(&err, sizeof(vlm_err_t));

    return vlm_weights_find((char *) value->data,
                            &ctx->engine->conf.vlm.weights, &err)
           == 0 ? NGX_CONF_OK
                : ngx_http_vlm_conf_error(ctx->cf, "%s", err.text);
}


static char *
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

static char *
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


static char *
ngx_http_vlm_param_priority(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ngx_http_complex_value_t  *cv;

    if (ngx_http_vlm_param_text(ctx, value) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    cv = ctx->engine->conf.rank.priority;

    if (cv->lengths == NULL && ngx_strcmp(value->data, "0") != 0
        && ngx_strcmp(value->data, "normal") != 0
        && ngx_http_vlm_order_priority(&cv->value) == 0)
    {
        ngx_conf_log_error(NGX_LOG_WARN, ctx->cf, 0, ctx->row->error,
                           &cv->value);
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_breaker_off(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    return ctx->cf->args->nelts > 2
           ? ngx_http_vlm_param_refuse(ctx, value)
           : ngx_http_vlm_param_word(ctx, value);
}


static char *
ngx_http_vlm_param_cache(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ctx->engine->conf.cache_set = 1;

    return ngx_strcmp(value->data, "off") == 0
           ? NGX_CONF_OK : ngx_http_vlm_param_path(ctx, value);
}


static char *
ngx_http_vlm_param_lora(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "off") != 0) {
        return ngx_http_vlm_param_path(ctx, value);
    }

    return ctx->cf->args->nelts > 2
           ? ngx_http_vlm_conf_error(ctx->cf, "lora off takes no other value")
           : NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_store(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    ctx->engine->conf.store_dir = *value;

    return ngx_http_vlm_paths_store(ctx->cf, ctx->engine);
}


static char *
ngx_http_vlm_param_store_max(ngx_http_vlm_param_ctx_t *ctx, ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "off") != 0) {
        return ngx_http_vlm_param_size(ctx, value);
    }

    ctx->engine->conf.store_max = 0;

    return NGX_CONF_OK;
}


static char *
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


static ngx_conf_enum_t  ngx_http_vlm_ops[] = {
    { ngx_string("ops=plain"), 0 },
    { ngx_string("ops=avx2"), 0 },
    { ngx_string("ops=avxvnni"), 0 },
    { ngx_string("ops=avx512"), 0 },
    { ngx_string("ops=amx"), 0 },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_vlm_on_off[] = {
    { ngx_string("on"), 1 },
    { ngx_string("off"), 0 },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_vlm_kv[] = {
    { ngx_string("auto"), 0 },
    { ngx_string("int8"), 1 },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_vlm_thinking[] = {
    { ngx_string("on"), 1 },
    { ngx_string("off"), 0 },
    { ngx_string("auto"), NGX_CONF_UNSET_UINT },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_vlm_tools[] = {
    { ngx_string("call"), NGX_HTTP_VLM_TOOLS_CALL },
    { ngx_string("ignore"), NGX_HTTP_VLM_TOOLS_IGNORE },
    { ngx_string("refuse"), NGX_HTTP_VLM_TOOLS_REFUSE },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_vlm_reload[] = {
    { ngx_string("wait"), 0 },
    { ngx_string("overlap"), 1 },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_vlm_off[] = {
    { ngx_string("off"), 0 },
    { ngx_null_string, 0 }
};


#define ngx_http_vlm_at(member)                                               \
    .offset = offsetof(ngx_http_vlm_engine_conf_t, member),                   \
    .size = sizeof(((ngx_http_vlm_engine_conf_t *) NULL)->member)

#define ngx_http_vlm_number(text, member, from, to)                           \
    { ngx_string(text), 1, ngx_http_vlm_param_num, from, to,                  \
      ngx_http_vlm_at(member),                                                \
      .error = text " \"%V\" is not a number from " #from " to " #to }


/*
 * A row with a number of values is a parameter, and reads its first value.
 * The rows behind it, up to the next parameter, are for the other values:
 * those that begin with "name=", and any other value for a row without a
 * name.  The message names the value, and what is possible.
 */

static const ngx_http_vlm_param_t  ngx_http_vlm_params[] = {

    { ngx_string("model"), 2, .set = ngx_http_vlm_param_path,
      ngx_http_vlm_at(vlm.model) },
    { ngx_string("mmproj="), 0, .set = ngx_http_vlm_param_path,
      ngx_http_vlm_at(vlm.mmproj) },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_refuse,
      .error = "unknown value \"%V\" in model, which takes mmproj=" },

    { ngx_string("alias"), 32, .set = ngx_http_vlm_param_alias },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_alias },

    { ngx_string("device"), 2, .set = ngx_http_vlm_param_device,
      .error = "device \"%V\" is not auto, cpu, cuda or cuda:N" },
    { ngx_string("retry="), 0, ngx_http_vlm_param_device_value, 1,
      NGX_HTTP_VLM_DAY, ngx_http_vlm_at(retry),
      .error = "device auto retry \"%V\" is not a time from 1ms to 1d" },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_device_value,
      .post = ngx_http_vlm_ops,
      .error = "\"%V\" is not ops=plain, ops=avx2, ops=avxvnni, ops=avx512 or "
               "ops=amx" },

    { ngx_string("weights"), 1, .set = ngx_http_vlm_param_weights },

    { ngx_string("kv"), 1, .set = ngx_http_vlm_param_word,
      ngx_http_vlm_at(kv_int8), .post = ngx_http_vlm_kv,
      .error = "kv \"%V\" is not auto or int8" },

    { ngx_string("memory"), 1, ngx_http_vlm_param_size, 1024 * 1024,
      NGX_HTTP_VLM_ANY, ngx_http_vlm_at(vlm.memory),
      .error = "memory \"%V\" is not a size of at least 1m, such as 600m or "
               "6g" },

    { ngx_string("context"), 1, ngx_http_vlm_param_size, 64, 1024 * 1024,
      ngx_http_vlm_at(vlm.context),
      .error = "context \"%V\" is not a number of tokens from 64 to 1m" },

    ngx_http_vlm_number("slots", vlm.slots, 1, 256),
    ngx_http_vlm_number("max_pixels", vlm.max_pixels, 784, 67108864),
    ngx_http_vlm_number("min_pixels", vlm.min_pixels, 0, 67108864),
    ngx_http_vlm_number("features", vlm.features, 1, 1024),
    ngx_http_vlm_number("max_tokens", vlm.max_tokens, 1, 1048575),

    { ngx_string("lora"), 5, .set = ngx_http_vlm_param_lora,
      ngx_http_vlm_at(vlm.lora) },
    { ngx_string("max="), 0, ngx_http_vlm_param_num, 1, 64,
      ngx_http_vlm_at(vlm.lora_max),
      .error = "lora max=%V is not a number from 1 to 64" },
    { ngx_string("rank="), 0, ngx_http_vlm_param_num, 1, 256,
      ngx_http_vlm_at(vlm.lora_rank),
      .error = "lora rank=%V is not a number from 1 to 256" },
    { ngx_string("tower="), 0, .set = ngx_http_vlm_param_word,
      ngx_http_vlm_at(lora_tower), .post = ngx_http_vlm_on_off,
      .error = "lora tower=%V is not on or off" },
    { ngx_string("load="), 0, .set = ngx_http_vlm_param_word,
      ngx_http_vlm_at(lora_load), .post = ngx_http_vlm_on_off,
      .error = "lora load=%V is not on or off" },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_refuse,
      .error = "unknown value \"%V\" in lora, which takes a directory, max=, "
               "rank=, tower= and load=" },

    { ngx_string("sampling"), 4, .set = NULL },
    { ngx_string("temperature="), 0, ngx_http_vlm_param_float, 0, 5000000,
      ngx_http_vlm_at(sampling.temperature),
      .error = "sampling temperature=%V is not from 0 to 5" },
    { ngx_string("top_k="), 0, ngx_http_vlm_param_num, 0, 1000,
      ngx_http_vlm_at(sampling.top_k),
      .error = "sampling top_k=%V is not a whole number from 0 to 1000" },
    { ngx_string("top_p="), 0, ngx_http_vlm_param_float, 10000, 1000000,
      ngx_http_vlm_at(sampling.top_p),
      .error = "sampling top_p=%V is not from 0.01 to 1" },
    { ngx_string("repetition_penalty="), 0, ngx_http_vlm_param_float, 100000,
      10000000, ngx_http_vlm_at(sampling.repetition_penalty),
      .error = "sampling repetition_penalty=%V is not from 0.1 to 10" },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_refuse,
      .error = "unknown value \"%V\" in sampling, which takes temperature=, "
               "top_k=, top_p= and repetition_penalty=, each with a number" },

    { ngx_string("thinking"), 1, .set = ngx_http_vlm_param_word,
      ngx_http_vlm_at(thinking), .post = ngx_http_vlm_thinking,
      .error = "thinking \"%V\" is not on, off or auto" },

    { ngx_string("tools"), 1, .set = ngx_http_vlm_param_word,
      ngx_http_vlm_at(tools), .post = ngx_http_vlm_tools,
      .error = "tools \"%V\" is not call, ignore or refuse" },

    ngx_http_vlm_number("threads", vlm.threads, 1, 256),

    { ngx_string("thread_pool"), 1, .set = ngx_http_vlm_param_pool,
      .error = "thread_pool \"%V\" is for files and pictures: the engine needs "
               "one of its own" },

    { ngx_string("queue"), 2, ngx_http_vlm_param_num, 1, 100000,
      ngx_http_vlm_at(queue_size),
      .error = "queue \"%V\" is not a number from 1 to 100000" },
    { ngx_string("timeout="), 0, ngx_http_vlm_param_msec, 1, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(queue_timeout),
      .error = "queue timeout \"%V\" is not a time from 1ms to 1d" },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_refuse,
      .error = "unknown value \"%V\" in queue, which takes a number and "
               "timeout=time" },

    { ngx_string("priority"), 2, .set = ngx_http_vlm_param_priority,
      ngx_http_vlm_at(rank.priority),
      .error = "priority \"%V\" is not a variable, low, normal, high or a "
               "number from -10 to 10: every request has 0" },
    { ngx_string("age="), 0, ngx_http_vlm_param_msec, 1, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(rank.priority_age),
      .error = "priority age \"%V\" is not a time from 1ms to 1d" },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_refuse,
      .error = "unknown value \"%V\" in priority, which takes age=time" },

    { ngx_string("fair"), 2, .set = ngx_http_vlm_param_text,
      ngx_http_vlm_at(rank.fair) },
    { ngx_string("age="), 0, ngx_http_vlm_param_msec, 1, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(rank.fair_age),
      .error = "fair age \"%V\" is not a time from 1ms to 1d" },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_refuse,
      .error = "unknown value \"%V\" in fair, which takes age=time" },

    { ngx_string("cache_salt"), 1, .set = ngx_http_vlm_param_text,
      ngx_http_vlm_at(rank.salt) },

    { ngx_string("timeout"), 1, ngx_http_vlm_param_msec, 1, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(timeout),
      .error = "timeout \"%V\" is not a time from 1ms to 1d" },

    { ngx_string("stall"), 1, ngx_http_vlm_param_msec, 2000, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(stall),
      .error = "stall \"%V\" is not a time from 2s to 1d" },

    { ngx_string("reload"), 1, .set = ngx_http_vlm_param_word,
      ngx_http_vlm_at(overlap), .post = ngx_http_vlm_reload,
      .error = "reload \"%V\" is not wait or overlap" },

    { ngx_string("breaker"), 2, .set = NULL },
    { ngx_string("failures="), 0, ngx_http_vlm_param_num, 1, 1000,
      ngx_http_vlm_at(failures),
      .error = "breaker failures=%V is not a number from 1 to 1000" },
    { ngx_string("pause="), 0, ngx_http_vlm_param_msec, 1, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(pause),
      .error = "breaker pause \"%V\" is not a time from 1ms to 1d" },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_breaker_off,
      ngx_http_vlm_at(failures), .post = ngx_http_vlm_off,
      .error = "unknown value \"%V\" in breaker, which is off or takes "
               "failures=number and pause=time" },

    { ngx_string("http_memory"), 1, ngx_http_vlm_param_size, 16 * 1024 * 1024,
      NGX_HTTP_VLM_ANY, ngx_http_vlm_at(http_memory),
      .error = "http_memory \"%V\" is not a size of at least 16m, such as 600m "
               "or 6g" },

    { ngx_string("cache"), 1, .set = ngx_http_vlm_param_cache,
      ngx_http_vlm_at(vlm.cache) },

    { ngx_string("store"), 3, .set = ngx_http_vlm_param_store },
    { ngx_string("expires="), 0, ngx_http_vlm_param_sec, 60, NGX_HTTP_VLM_ANY,
      ngx_http_vlm_at(store_expires),
      .error = "store expires \"%V\" is not a time of at least 1m" },
    { ngx_string("max="), 0, ngx_http_vlm_param_store_max, 1024 * 1024,
      NGX_HTTP_VLM_ANY, ngx_http_vlm_at(store_max),
      .error = "store max \"%V\" is not \"off\" or a size of at least 1m, such "
               "as 6g" },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_refuse,
      .error = "unknown value \"%V\" in store, which takes a directory, "
               "expires=time and max=size" },

    { ngx_string("socket"), 1, .set = ngx_http_vlm_param_socket },

    { ngx_string("prepare"), 1, .set = ngx_http_vlm_param_refuse,
      .error = "the parameter \"prepare\" was removed: the number is computed "
               "from the processors; delete this line" },

    { ngx_null_string, 0, .set = NULL }
};


/* NULL: there is no such parameter */

static const ngx_http_vlm_param_t *
ngx_http_vlm_param_find(ngx_str_t *name)
{
    const ngx_http_vlm_param_t  *param;

    for (param = ngx_http_vlm_params; param->name.data || param->set; param++)
    {
        if (param->max && param->name.len == name->len
            && ngx_strncmp(param->name.data, name->data, name->len) == 0)
        {
            return param;
        }
    }

    return NULL;
}


/* was a row's value seen before? */

static ngx_uint_t
ngx_http_vlm_param_again(ngx_http_vlm_param_ctx_t *ctx)
{
    return ctx->seen[ctx->row - ngx_http_vlm_params]++;
}


/* a value behind the first, by the row with its name, which is cut off the
   text */

static char *
ngx_http_vlm_param_value(ngx_http_vlm_param_ctx_t *ctx,
    const ngx_http_vlm_param_t *param, ngx_str_t text)
{
    const ngx_http_vlm_param_t  *p;

    p = param;

    do {
        p++;
    } while (p->name.len
             && ngx_strncmp(text.data, p->name.data, p->name.len) != 0);

    ctx->row = p;

    if (p->name.len && ngx_http_vlm_param_again(ctx)) {
        return ngx_http_vlm_conf_error(ctx->cf, "duplicate value \"%V\" in %V",
                                       &text, &param->name);
    }

    text.data += p->name.len;
    text.len -= p->name.len;

    return p->set(ctx, &text);
}


/* the handler of the block: one parameter with its values */

static char *
ngx_http_vlm_param_line(ngx_conf_t *cf, ngx_command_t *dummy, void *conf)
{
    ngx_http_vlm_param_ctx_t *ctx = conf;

    char                        *rv;
    ngx_str_t                   *value;
    ngx_uint_t                   i, n;
    const ngx_http_vlm_param_t  *param;

    value = cf->args->elts;
    n = cf->args->nelts - 1;

    param = ngx_http_vlm_param_find(&value[0]);
    ctx->row = param;

    if (param == NULL) {
        return ngx_http_vlm_conf_error(cf, "unknown parameter \"%V\" in "
                                       "vlm_engine \"%V\"", &value[0],
                                       &ctx->engine->name);
    }

    if (ngx_http_vlm_param_again(ctx)) {
        return ngx_http_vlm_conf_error(cf, "duplicate parameter \"%V\" in "
                                       "vlm_engine \"%V\"", &value[0],
                                       &ctx->engine->name);
    }

    if (n < 1 || n > param->max) {
        return ngx_http_vlm_conf_error(cf, "\"%V\" has %ui values, it takes "
                                       "%s%ui", &value[0], n,
                                       param->max == 1 ? "" : "1 to ",
                                       param->max);
    }

    if (param == ngx_http_vlm_params) {
        ctx->engine->conf.model = (char *) value[1].data;
    }

    rv = NGX_CONF_OK;

    for (i = 1; i <= n && rv == NGX_CONF_OK; i++) {
        rv = i == 1 && param->set
             ? param->set(ctx, &value[1])
             : ngx_http_vlm_param_value(ctx, param, value[i]);
    }

    return rv;
}


/* checks that need several parameters */

static char *
ngx_http_vlm_param_finish(ngx_http_vlm_param_ctx_t *ctx)
{
    ngx_http_vlm_engine_t  *eng;

    static ngx_str_t  pool = ngx_string("vlm");

    eng = ctx->engine;

    eng->conf.vlm.lora_tower = (int) eng->conf.lora_tower;
    eng->conf.vlm.lora_load = (int) eng->conf.lora_load;
    eng->conf.vlm.kv_int8 = (int) eng->conf.kv_int8;

    if (eng->conf.vlm.model == NULL) {
        return ngx_http_vlm_conf_error(ctx->cf, "no \"model\" in vlm_engine "
                                       "\"%V\"", &eng->name);
    }

    if (eng->conf.vlm.max_tokens >= eng->conf.vlm.context) {
        return ngx_http_vlm_conf_error(ctx->cf, "vlm_engine \"%V\": max_tokens "
                                       "%uD leaves no room for a prompt in "
                                       "context %uD", &eng->name,
                                       eng->conf.vlm.max_tokens,
                                       eng->conf.vlm.context);
    }

    eng->conf.vlm.grammars = eng->conf.http_memory / NGX_HTTP_VLM_GRAMMARS;

    return eng->pool ? NGX_CONF_OK : ngx_http_vlm_param_pool(ctx, &pool);
}


char *
ngx_http_vlm_param_block(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    char                      *rv;
    u_char                     seen[sizeof(ngx_http_vlm_params)
                                    / sizeof(ngx_http_vlm_param_t)];
    ngx_conf_t                 save;
    ngx_http_vlm_param_ctx_t   ctx;

    ngx_memzero(seen, sizeof(seen));

    ctx.cf = cf;
    ctx.engine = eng;
    ctx.seen = seen;

    vlm_conf_default(&eng->conf.vlm);

    eng->conf.vlm.device = "auto";
    eng->conf.lora_tower = 1;
    eng->conf.retry = 600000;
    eng->conf.queue_size = 64;
    eng->conf.queue_timeout = 60000;
    eng->conf.rank.priority_age = 10000;
    eng->conf.timeout = 120000;
    eng->conf.failures = 5;
    eng->conf.pause = 10000;
    eng->conf.http_memory = 512 * 1024 * 1024;
    eng->conf.store_max = (off_t) 10 * 1024 * 1024 * 1024;
    eng->conf.thinking = NGX_CONF_UNSET_UINT;
    eng->conf.tools = NGX_HTTP_VLM_TOOLS_CALL;

    eng->conf.sampling.temperature = NGX_CONF_UNSET;
    eng->conf.sampling.top_k = (uint32_t) NGX_CONF_UNSET;
    eng->conf.sampling.top_p = NGX_CONF_UNSET;
    eng->conf.sampling.repetition_penalty = NGX_CONF_UNSET;

    save = *cf;

    cf->handler = ngx_http_vlm_param_line;
    cf->handler_conf = &ctx;

    rv = ngx_conf_parse(cf, NULL);

    *cf = save;

    return rv == NGX_CONF_OK ? ngx_http_vlm_param_finish(&ctx) : rv;
}
