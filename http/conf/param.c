
/*
 * The parameters of vlm_engine { }: a function for each kind of value, and for
 * the parameters that need one of their own; the table, which has the bounds
 * and the error message of each value; the reading of a line.
 */


#include "conf.h"


#define NGX_HTTP_VLM_DAY  (24 * 3600 * 1000)       /* ms */
#define NGX_HTTP_VLM_ANY  NGX_MAX_OFF_T_VALUE      /* no upper bound */


typedef struct ngx_http_vlm_param_s  ngx_http_vlm_param_t;

typedef char *ngx_http_vlm_param_set_t(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, const ngx_http_vlm_param_t *param,
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


static char *
ngx_http_vlm_param_refuse(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, param->error, value);

    return NGX_CONF_ERROR;
}


/* a number, size or time has the bounds of its row, which says where it is
   kept */

static char *
ngx_http_vlm_param_keep(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value, off_t n)
{
    u_char  *p;

    if (n == NGX_ERROR || n < param->low || n > param->high) {
        return ngx_http_vlm_param_refuse(cf, eng, param, value);
    }

    /* the members of an engine have 32 or 64 bits */

    p = (u_char *) &eng->conf + param->offset;

    if (param->size == sizeof(uint32_t)) {
        *(uint32_t *) p = (uint32_t) n;

    } else {
        *(uint64_t *) p = (uint64_t) n;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_num(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(cf, eng, param, value,
                                   ngx_atoi(value->data, value->len));
}


static char *
ngx_http_vlm_param_size(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(cf, eng, param, value,
                                   ngx_parse_offset(value));
}


static char *
ngx_http_vlm_param_msec(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(cf, eng, param, value,
                                   ngx_parse_time(value, 0));
}


static char *
ngx_http_vlm_param_sec(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    return ngx_http_vlm_param_keep(cf, eng, param, value,
                                   ngx_parse_time(value, 1));
}


/* a fraction: its bounds are in millionths */

static char *
ngx_http_vlm_param_float(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    char       *rv;
    ngx_int_t   n;

    n = ngx_atofp(value->data, value->len, 6);

    rv = ngx_http_vlm_param_keep(cf, eng, param, value, n);

    *(float *) ((u_char *) &eng->conf + param->offset) = (float) (n / 1e6);

    return rv;
}


/* one of the words in param->post */

static char *
ngx_http_vlm_param_word(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_conf_enum_t  *e;

    for (e = param->post; e->name.len; e++) {

        if (ngx_strcmp(e->name.data, value->data) != 0) {
            continue;
        }

        if (param->size) {
            *(ngx_uint_t *) ((u_char *) &eng->conf + param->offset) = e->value;
        }

        return NGX_CONF_OK;
    }

    return ngx_http_vlm_param_refuse(cf, eng, param, value);
}


static char *
ngx_http_vlm_param_path(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_str_t  path;

    path = *value;

    if (ngx_conf_full_name(cf->cycle, &path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    *(char **) ((u_char *) &eng->conf + param->offset) = (char *) path.data;

    return NGX_CONF_OK;
}


/* text with variables; only for the first value of a parameter */

static char *
ngx_http_vlm_param_text(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_command_t  cmd;

    ngx_memzero(&cmd, sizeof(ngx_command_t));
    cmd.offset = param->offset;

    return ngx_http_set_complex_value_slot(cf, &cmd, &eng->conf);
}


/*
 * A thread pool by its name.  nginx reports "unknown thread pool "vlm" in
 * FILE:LINE" when it has read all: the text in place of the file's name adds
 * the remedy.
 */

static char *
ngx_http_vlm_param_pool(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_str_t         text;
    ngx_conf_file_t  *saved, file;

    if (ngx_strcmp(value->data, "default") == 0) {
        return ngx_http_vlm_param_refuse(cf, eng, param, value);
    }

    saved = cf->conf_file;

    text.len = sizeof("vlm_engine \"\", add \"thread_pool  threads=1;\" in "
                      "front of http { }:") + eng->name.len + value->len
               + saved->file.name.len;

    text.data = ngx_pnalloc(cf->pool, text.len + 1);
    if (text.data == NULL) {
        return NGX_CONF_ERROR;
    }

    text.len = ngx_snprintf(text.data, text.len,
                            "vlm_engine \"%V\", add \"thread_pool %V "
                            "threads=1;\" in front of http { }: %V%Z",
                            &eng->name, value, &saved->file.name)
               - text.data - 1;

    file = *saved;
    file.file.name = text;

    cf->conf_file = &file;
    eng->pool = ngx_thread_pool_add(cf, value);
    cf->conf_file = saved;

    return eng->pool ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static char *
ngx_http_vlm_param_alias(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_str_t  *name;

    if (value->len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "alias \"\" in vlm_engine \"%V\": no model is "
                           "asked for by an empty name", &eng->name);
        return NGX_CONF_ERROR;
    }

    if (value->len == 1 && value->data[0] == '*') {
        eng->conf.any_name = 1;
        return NGX_CONF_OK;
    }

    if (eng->conf.aliases == NULL) {
        eng->conf.aliases = ngx_array_create(cf->pool, 4, sizeof(ngx_str_t));
    }

    name = eng->conf.aliases ? ngx_array_push(eng->conf.aliases) : NULL;
    if (name == NULL) {
        return NGX_CONF_ERROR;
    }

    *name = *value;

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_weights(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    vlm_err_t  err;

    ngx_memzero(&err, sizeof(vlm_err_t));

    if (vlm_weights_find((char *) value->data, &eng->conf.vlm.weights, &err)
        != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s", err.text);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_device(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "cpu") != 0
        && ngx_strcmp(value->data, "auto") != 0
        && ngx_strcmp(value->data, "cuda") != 0
        && (ngx_strncmp(value->data, "cuda:", 5) != 0
            || ngx_atoi(value->data + 5, value->len - 5) == NGX_ERROR))
    {
        return ngx_http_vlm_param_refuse(cf, eng, param, value);
    }

    eng->conf.vlm.device = (char *) value->data;

    return NGX_CONF_OK;
}


/* the second value: "retry=" or "ops=", each for one device */

static char *
ngx_http_vlm_param_device_value(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    char        *rv;
    ngx_str_t   *values;
    const char  *device;

    if (param->name.len) {
        rv = ngx_http_vlm_param_msec(cf, eng, param, value);
        device = "auto";

    } else {
        rv = ngx_http_vlm_param_word(cf, eng, param, value);
        device = "cpu";
        eng->conf.vlm.ops = (char *) value->data + sizeof("ops=") - 1;
    }

    values = cf->args->elts;

    if (rv == NGX_CONF_OK && ngx_strcmp(values[1].data, device) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is for device %s, not \"%V\"",
                           &values[2], device, &values[1]);
        return NGX_CONF_ERROR;
    }

    return rv;
}


static char *
ngx_http_vlm_param_priority(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    ngx_http_complex_value_t  *cv;

    if (ngx_http_vlm_param_text(cf, eng, param, value) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    cv = eng->conf.rank.priority;

    if (cv->lengths == NULL && ngx_strcmp(value->data, "0") != 0
        && ngx_strcmp(value->data, "normal") != 0
        && ngx_http_vlm_order_priority(&cv->value) == 0)
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0, param->error, &cv->value);
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_breaker_off(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    return cf->args->nelts > 2
           ? ngx_http_vlm_param_refuse(cf, eng, param, value)
           : ngx_http_vlm_param_word(cf, eng, param, value);
}


static char *
ngx_http_vlm_param_cache(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    eng->conf.cache_set = 1;

    return ngx_strcmp(value->data, "off") == 0
           ? NGX_CONF_OK : ngx_http_vlm_param_path(cf, eng, param, value);
}


static char *
ngx_http_vlm_param_store(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    eng->conf.store_dir = *value;

    return ngx_http_vlm_paths_store(cf, eng);
}


static char *
ngx_http_vlm_param_store_max(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "off") != 0) {
        return ngx_http_vlm_param_size(cf, eng, param, value);
    }

    eng->conf.store_max = 0;

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_socket(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const ngx_http_vlm_param_t *param, ngx_str_t *value)
{
    eng->conf.socket = *value;
    eng->conf.socket_line = cf->conf_file->line;

    if (ngx_strncmp(eng->conf.socket.data, "unix:", 5) == 0) {
        eng->conf.socket.data += 5;
        eng->conf.socket.len -= 5;
    }

    return ngx_conf_full_name(cf->cycle, &eng->conf.socket, 0) == NGX_OK
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


static ngx_conf_enum_t  ngx_http_vlm_thinking[] = {
    { ngx_string("on"), 1 },
    { ngx_string("off"), 0 },
    { ngx_string("auto"), NGX_CONF_UNSET_UINT },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_vlm_tools[] = {
    { ngx_string("ignore"), 1 },
    { ngx_string("refuse"), 0 },
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
    offsetof(ngx_http_vlm_engine_conf_t, member),                             \
    sizeof(((ngx_http_vlm_engine_conf_t *) NULL)->member)


/*
 * A row with a number of values is a parameter, and reads its first value.
 * The rows behind it, up to the next parameter, are for the other values:
 * those that begin with "name=", and any other value for a row without a
 * name.  The message names the value, and what is possible.
 */

static const ngx_http_vlm_param_t  ngx_http_vlm_params[] = {

    { ngx_string("model"), 2, ngx_http_vlm_param_path, 0, 0,
      ngx_http_vlm_at(vlm.model), NULL, NULL },
    { ngx_string("mmproj="), 0, ngx_http_vlm_param_path, 0, 0,
      ngx_http_vlm_at(vlm.mmproj), NULL, NULL },
    { ngx_null_string, 0, ngx_http_vlm_param_refuse, 0, 0, 0, 0, NULL,
      "unknown value \"%V\" in model, which takes mmproj=" },

    { ngx_string("alias"), 32, .set = ngx_http_vlm_param_alias },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_alias },

    { ngx_string("device"), 2, ngx_http_vlm_param_device, 0, 0, 0, 0, NULL,
      "device \"%V\" is none of auto, cpu, cuda, cuda:N" },
    { ngx_string("retry="), 0, ngx_http_vlm_param_device_value, 1,
      NGX_HTTP_VLM_DAY, ngx_http_vlm_at(retry), NULL,
      "device auto retry \"%V\" is not a time from 1ms to 1d" },
    { ngx_null_string, 0, ngx_http_vlm_param_device_value, 0, 0, 0, 0,
      ngx_http_vlm_ops,
      "\"%V\" is none of ops=plain, ops=avx2, ops=avxvnni, ops=avx512, "
      "ops=amx" },

    { ngx_string("weights"), 1, .set = ngx_http_vlm_param_weights },

    { ngx_string("memory"), 1, ngx_http_vlm_param_size, 1024 * 1024,
      NGX_HTTP_VLM_ANY, ngx_http_vlm_at(vlm.memory), NULL,
      "memory \"%V\" is not a size of at least 1m, such as 600m or 6g" },

    { ngx_string("context"), 1, ngx_http_vlm_param_size, 64, 1024 * 1024,
      ngx_http_vlm_at(vlm.context), NULL,
      "context \"%V\" is not a number of tokens from 64 to 1m" },

    { ngx_string("slots"), 1, ngx_http_vlm_param_num, 1, 256,
      ngx_http_vlm_at(vlm.slots), NULL,
      "slots \"%V\" is not a number from 1 to 256" },

    { ngx_string("max_pixels"), 1, ngx_http_vlm_param_num, 784, 67108864,
      ngx_http_vlm_at(vlm.max_pixels), NULL,
      "max_pixels \"%V\" is not a number from 784 to 67108864" },

    { ngx_string("min_pixels"), 1, ngx_http_vlm_param_num, 0, 67108864,
      ngx_http_vlm_at(vlm.min_pixels), NULL,
      "min_pixels \"%V\" is not a number from 0 to 67108864" },

    { ngx_string("features"), 1, ngx_http_vlm_param_num, 1, 1024,
      ngx_http_vlm_at(vlm.features), NULL,
      "features \"%V\" is not a number from 1 to 1024" },

    { ngx_string("max_tokens"), 1, ngx_http_vlm_param_num, 1, 1048575,
      ngx_http_vlm_at(vlm.max_tokens), NULL,
      "max_tokens \"%V\" is not a number from 1 to 1048575" },

    { ngx_string("sampling"), 4, .set = NULL },
    { ngx_string("temperature="), 0, ngx_http_vlm_param_float, 0, 5000000,
      ngx_http_vlm_at(sampling.temperature), NULL,
      "sampling temperature=%V is not from 0 to 5" },
    { ngx_string("top_k="), 0, ngx_http_vlm_param_num, 0, 1000,
      ngx_http_vlm_at(sampling.top_k), NULL,
      "sampling top_k=%V is not a whole number from 0 to 1000" },
    { ngx_string("top_p="), 0, ngx_http_vlm_param_float, 10000, 1000000,
      ngx_http_vlm_at(sampling.top_p), NULL,
      "sampling top_p=%V is not from 0.01 to 1" },
    { ngx_string("repetition_penalty="), 0, ngx_http_vlm_param_float, 100000,
      10000000, ngx_http_vlm_at(sampling.repetition_penalty), NULL,
      "sampling repetition_penalty=%V is not from 0.1 to 10" },
    { ngx_null_string, 0, ngx_http_vlm_param_refuse, 0, 0, 0, 0, NULL,
      "unknown value \"%V\" in sampling, which takes temperature=, top_k=, "
      "top_p= and repetition_penalty=, each with a number" },

    { ngx_string("thinking"), 1, ngx_http_vlm_param_word, 0, 0,
      ngx_http_vlm_at(thinking), ngx_http_vlm_thinking,
      "thinking \"%V\" is none of on, off, auto" },

    { ngx_string("tools"), 1, ngx_http_vlm_param_word, 0, 0,
      ngx_http_vlm_at(tools), ngx_http_vlm_tools,
      "tools \"%V\" is none of ignore, refuse" },

    { ngx_string("threads"), 1, ngx_http_vlm_param_num, 1, 256,
      ngx_http_vlm_at(vlm.threads), NULL,
      "threads \"%V\" is not a number from 1 to 256" },

    { ngx_string("thread_pool"), 1, .set = ngx_http_vlm_param_pool,
      .error = "thread_pool \"%V\" is for files and pictures: the engine "
               "needs one of its own" },

    { ngx_string("queue"), 2, ngx_http_vlm_param_num, 1, 100000,
      ngx_http_vlm_at(queue_size), NULL,
      "queue \"%V\" is not a number from 1 to 100000" },
    { ngx_string("timeout="), 0, ngx_http_vlm_param_msec, 1, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(queue_timeout), NULL,
      "queue timeout \"%V\" is not a time from 1ms to 1d" },
    { ngx_null_string, 0, ngx_http_vlm_param_refuse, 0, 0, 0, 0, NULL,
      "unknown value \"%V\" in queue, which takes a number and timeout=time" },

    { ngx_string("priority"), 2, ngx_http_vlm_param_priority, 0, 0,
      ngx_http_vlm_at(rank.priority), NULL,
      "priority \"%V\" is no variable, and none of low, normal, high, -10 to "
      "10: every request has 0" },
    { ngx_string("age="), 0, ngx_http_vlm_param_msec, 1, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(rank.priority_age), NULL,
      "age \"%V\" is not a time from 1ms to 1d" },
    { ngx_null_string, 0, ngx_http_vlm_param_refuse, 0, 0, 0, 0, NULL,
      "\"%V\" is not age=time" },

    { ngx_string("fair"), 2, ngx_http_vlm_param_text, 0, 0,
      ngx_http_vlm_at(rank.fair), NULL, NULL },
    { ngx_string("age="), 0, ngx_http_vlm_param_msec, 1, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(rank.fair_age), NULL,
      "age \"%V\" is not a time from 1ms to 1d" },
    { ngx_null_string, 0, ngx_http_vlm_param_refuse, 0, 0, 0, 0, NULL,
      "\"%V\" is not age=time" },

    { ngx_string("cache_salt"), 1, ngx_http_vlm_param_text, 0, 0,
      ngx_http_vlm_at(rank.salt), NULL, NULL },

    { ngx_string("timeout"), 1, ngx_http_vlm_param_msec, 1, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(timeout), NULL,
      "timeout \"%V\" is not a time from 1ms to 1d" },

    { ngx_string("stall"), 1, ngx_http_vlm_param_msec, 2000, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(stall), NULL,
      "stall \"%V\" is not a time from 2s to 1d" },

    { ngx_string("reload"), 1, ngx_http_vlm_param_word, 0, 0,
      ngx_http_vlm_at(overlap), ngx_http_vlm_reload,
      "reload \"%V\" is none of wait, overlap" },

    { ngx_string("breaker"), 2, .set = NULL },
    { ngx_string("failures="), 0, ngx_http_vlm_param_num, 1, 1000,
      ngx_http_vlm_at(failures), NULL,
      "breaker failures=%V is not a number from 1 to 1000" },
    { ngx_string("pause="), 0, ngx_http_vlm_param_msec, 1, NGX_HTTP_VLM_DAY,
      ngx_http_vlm_at(pause), NULL,
      "breaker pause \"%V\" is not a time from 1ms to 1d" },
    { ngx_null_string, 0, ngx_http_vlm_param_breaker_off, 0, 0,
      ngx_http_vlm_at(failures), ngx_http_vlm_off,
      "unknown value \"%V\" in breaker, which is off or takes "
      "failures=number and pause=time" },

    { ngx_string("http_memory"), 1, ngx_http_vlm_param_size, 16 * 1024 * 1024,
      NGX_HTTP_VLM_ANY, ngx_http_vlm_at(http_memory), NULL,
      "http_memory \"%V\" is not a size of at least 16m, such as 600m or 6g" },

    { ngx_string("cache"), 1, ngx_http_vlm_param_cache, 0, 0,
      ngx_http_vlm_at(vlm.cache), NULL, NULL },

    { ngx_string("store"), 3, .set = ngx_http_vlm_param_store },
    { ngx_string("expires="), 0, ngx_http_vlm_param_sec, 60, NGX_HTTP_VLM_ANY,
      ngx_http_vlm_at(store_expires), NULL,
      "invalid store expires \"%V\", a time from 1m on is possible" },
    { ngx_string("max="), 0, ngx_http_vlm_param_store_max, 1024 * 1024,
      NGX_HTTP_VLM_ANY, ngx_http_vlm_at(store_max), NULL,
      "invalid store max \"%V\", a size from 1m on, such as 6g, or \"off\" "
      "is possible" },
    { ngx_null_string, 0, ngx_http_vlm_param_refuse, 0, 0, 0, 0, NULL,
      "unknown value \"%V\" in store, which takes a directory, expires=time "
      "and max=size" },

    { ngx_string("socket"), 1, .set = ngx_http_vlm_param_socket },

    { ngx_string("prepare"), 1, ngx_http_vlm_param_refuse, 0, 0, 0, 0, NULL,
      "the parameter \"prepare\" is gone, because its number follows from "
      "the processors at hand: remove it" },

    { ngx_null_string, 0, .set = NULL }
};


typedef struct {
    ngx_http_vlm_engine_t        *engine;
    u_char                        seen[sizeof(ngx_http_vlm_params)
                                       / sizeof(ngx_http_vlm_param_t)];
} ngx_http_vlm_param_ctx_t;


/* NULL, and the reason is logged */

static const ngx_http_vlm_param_t *
ngx_http_vlm_param_find(ngx_conf_t *cf, ngx_http_vlm_param_ctx_t *ctx,
    ngx_str_t *name, ngx_uint_t n)
{
    u_char                      *seen;
    const ngx_http_vlm_param_t  *param;

    for (param = ngx_http_vlm_params; param->name.data || param->set; param++)
    {
        if (param->max && param->name.len == name->len
            && ngx_strncmp(param->name.data, name->data, name->len) == 0)
        {
            break;
        }
    }

    if (param->max == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown parameter \"%V\" in vlm_engine \"%V\"",
                           name, &ctx->engine->name);
        return NULL;
    }

    seen = &ctx->seen[param - ngx_http_vlm_params];

    if (*seen) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate parameter \"%V\" in vlm_engine \"%V\"",
                           name, &ctx->engine->name);
        return NULL;
    }

    *seen = 1;

    if (n < 1 || n > param->max) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" has %ui values, it takes %s%ui", name,
                           n, param->max == 1 ? "" : "1 to ", param->max);
        return NULL;
    }

    return param;
}


/* the row of a value with a name of its own, which is cut off the text; NULL,
   and the reason is logged */

static const ngx_http_vlm_param_t *
ngx_http_vlm_param_value(ngx_conf_t *cf, ngx_http_vlm_param_ctx_t *ctx,
    const ngx_http_vlm_param_t *param, ngx_str_t *text)
{
    u_char                      *seen;
    const ngx_http_vlm_param_t  *p;

    p = param;

    do {
        p++;
    } while (p->name.len
             && ngx_strncmp(text->data, p->name.data, p->name.len) != 0);

    seen = &ctx->seen[p - ngx_http_vlm_params];

    if (*seen && p->name.len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate value \"%V\" in %V", text,
                           &param->name);
        return NULL;
    }

    *seen = 1;

    text->data += p->name.len;
    text->len -= p->name.len;

    return p;
}


/* the handler of the block: one parameter with its values */

static char *
ngx_http_vlm_param_line(ngx_conf_t *cf, ngx_command_t *dummy, void *conf)
{
    ngx_http_vlm_param_ctx_t *ctx = conf;

    ngx_str_t                   *value, text;
    ngx_uint_t                   i, n;
    const ngx_http_vlm_param_t  *param, *p;

    value = cf->args->elts;
    n = cf->args->nelts - 1;

    param = ngx_http_vlm_param_find(cf, ctx, &value[0], n);
    if (param == NULL) {
        return NGX_CONF_ERROR;
    }

    if (param == ngx_http_vlm_params) {
        ctx->engine->conf.model = (char *) value[1].data;
    }

    for (i = 1; i <= n; i++) {

        text = value[i];
        p = i > 1 || param->set == NULL
            ? ngx_http_vlm_param_value(cf, ctx, param, &text) : param;

        if (p == NULL || p->set(cf, ctx->engine, p, &text) != NGX_CONF_OK) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* checks that need several parameters */

static char *
ngx_http_vlm_param_finish(ngx_conf_t *cf, ngx_http_vlm_param_ctx_t *ctx)
{
    ngx_str_t               name;
    ngx_http_vlm_engine_t  *eng;

    eng = ctx->engine;

    if (eng->conf.vlm.model == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "no \"model\" in vlm_engine \"%V\"", &eng->name);
        return NGX_CONF_ERROR;
    }

    if (eng->conf.vlm.max_tokens >= eng->conf.vlm.context) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "vlm_engine \"%V\": max_tokens %uD leaves no room "
                           "for a prompt in context %uD",
                           &eng->name, eng->conf.vlm.max_tokens,
                           eng->conf.vlm.context);
        return NGX_CONF_ERROR;
    }

    ngx_str_set(&name, "vlm");

    return eng->pool ? NGX_CONF_OK
                     : ngx_http_vlm_param_pool(cf, eng, NULL, &name);
}


char *
ngx_http_vlm_param_block(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    char                      *rv;
    ngx_conf_t                 save;
    ngx_http_vlm_param_ctx_t   ctx;

    ngx_memzero(&ctx, sizeof(ngx_http_vlm_param_ctx_t));

    ctx.engine = eng;

    vlm_conf_default(&eng->conf.vlm);

    eng->conf.vlm.device = "auto";
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

    eng->conf.sampling.temperature = NGX_CONF_UNSET;
    eng->conf.sampling.top_k = (uint32_t) NGX_CONF_UNSET;
    eng->conf.sampling.top_p = NGX_CONF_UNSET;
    eng->conf.sampling.repetition_penalty = NGX_CONF_UNSET;

    save = *cf;

    cf->handler = ngx_http_vlm_param_line;
    cf->handler_conf = &ctx;

    rv = ngx_conf_parse(cf, NULL);

    *cf = save;

    return rv == NGX_CONF_OK ? ngx_http_vlm_param_finish(cf, &ctx) : rv;
}
