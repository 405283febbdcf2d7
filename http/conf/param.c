
/*
 * The parameters of vlm_engine { }: a function for each, with its error
 * message.
 */


#include "conf.h"
#include "../api/model.h"


#define NGX_HTTP_VLM_ALIASES   32
#define NGX_HTTP_VLM_MIN_HTTP  (16 * 1024 * 1024)
#define NGX_HTTP_VLM_MIN_STALL 2000        /* ms: four heartbeats */


typedef char *(*ngx_http_vlm_param_pt)(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);


typedef struct {
    ngx_str_t                     name;
    ngx_uint_t                    max;         /* values it takes, 1 to max */
    ngx_http_vlm_param_pt         set;
} ngx_http_vlm_param_def_t;


static char *ngx_http_vlm_param_model(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_device(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_ops(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value);
static char *ngx_http_vlm_param_retry(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value);
static char *ngx_http_vlm_param_weights(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_memory(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_context(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_slots(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_max_pixels(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_features(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_max_tokens(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_sampling(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_thinking(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_tools(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_threads(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_thread_pool(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_prepare(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_queue(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_timeout(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_stall(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_reload(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_http_memory(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_cache(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_store(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);
static char *ngx_http_vlm_param_socket(ngx_conf_t *cf,
    ngx_http_vlm_engine_t *eng, ngx_str_t *value, ngx_uint_t n);

static char *ngx_http_vlm_number(ngx_conf_t *cf, const char *name,
    ngx_str_t *value, ngx_uint_t low, ngx_uint_t high, ngx_uint_t *out);
static ngx_uint_t ngx_http_vlm_thinks(ngx_str_t *model);
static ngx_uint_t ngx_http_vlm_starts(ngx_str_t *value, const char *with);


static ngx_http_vlm_param_def_t  ngx_http_vlm_params[] = {
    { ngx_string("model"),       1, ngx_http_vlm_param_model },
    { ngx_string("alias"),       NGX_HTTP_VLM_ALIASES,
      ngx_http_vlm_model_alias },
    { ngx_string("device"),      2, ngx_http_vlm_param_device },
    { ngx_string("weights"),     1, ngx_http_vlm_param_weights },
    { ngx_string("memory"),      1, ngx_http_vlm_param_memory },
    { ngx_string("context"),     1, ngx_http_vlm_param_context },
    { ngx_string("slots"),       1, ngx_http_vlm_param_slots },
    { ngx_string("max_pixels"),  1, ngx_http_vlm_param_max_pixels },
    { ngx_string("features"),    1, ngx_http_vlm_param_features },
    { ngx_string("max_tokens"),  1, ngx_http_vlm_param_max_tokens },
    { ngx_string("sampling"),    4, ngx_http_vlm_param_sampling },
    { ngx_string("thinking"),    1, ngx_http_vlm_param_thinking },
    { ngx_string("tools"),       1, ngx_http_vlm_param_tools },
    { ngx_string("threads"),     1, ngx_http_vlm_param_threads },
    { ngx_string("thread_pool"), 1, ngx_http_vlm_param_thread_pool },
    { ngx_string("prepare"),     1, ngx_http_vlm_param_prepare },
    { ngx_string("queue"),       2, ngx_http_vlm_param_queue },
    { ngx_string("priority"),    2, ngx_http_vlm_param_priority },
    { ngx_string("fair"),        2, ngx_http_vlm_param_fair },
    { ngx_string("cache_salt"),  1, ngx_http_vlm_param_cache_salt },
    { ngx_string("timeout"),     1, ngx_http_vlm_param_timeout },
    { ngx_string("stall"),       1, ngx_http_vlm_param_stall },
    { ngx_string("reload"),      1, ngx_http_vlm_param_reload },
    { ngx_string("breaker"),     2, ngx_http_vlm_param_breaker },
    { ngx_string("http_memory"), 1, ngx_http_vlm_param_http_memory },
    { ngx_string("cache"),       1, ngx_http_vlm_param_cache },
    { ngx_string("store"),       3, ngx_http_vlm_param_store },
    { ngx_string("socket"),      1, ngx_http_vlm_param_socket },
    { ngx_null_string, 0, NULL }
};


void
ngx_http_vlm_param_init(ngx_http_vlm_param_t *param,
    ngx_http_vlm_engine_t *eng)
{
    param->engine = eng;
    param->seen = 0;
    ngx_str_null(&param->model);

    vlm_conf_default(&eng->conf.vlm);

    eng->conf.vlm.device = "auto";
    eng->conf.retry = 600000;
    eng->conf.prepare = 2;
    eng->conf.queue_size = 64;
    eng->conf.queue_timeout = 60000;
    eng->conf.timeout = 120000;
    eng->conf.failures = 5;
    eng->conf.pause = 10000;
    eng->conf.http_memory = 512 * 1024 * 1024;
    eng->conf.store_max = (off_t) 10 * 1024 * 1024 * 1024;
    eng->conf.thinking = NGX_CONF_UNSET_UINT;
}


/* the handler of the block: one parameter with its values */

char *
ngx_http_vlm_param(ngx_conf_t *cf, ngx_command_t *dummy, void *conf)
{
    ngx_http_vlm_param_t *param = conf;

    ngx_str_t                 *value;
    ngx_uint_t                 i, n;
    ngx_http_vlm_param_def_t  *def;

    value = cf->args->elts;
    n = cf->args->nelts - 1;

    for (i = 0; /* void */ ; i++) {
        def = &ngx_http_vlm_params[i];

        if (def->name.len == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown parameter \"%V\" in vlm_engine \"%V\"",
                               &value[0], &param->engine->name);
            return NGX_CONF_ERROR;
        }

        if (def->name.len == value[0].len
            && ngx_strncmp(def->name.data, value[0].data, value[0].len) == 0)
        {
            break;
        }
    }

    if (param->seen & ((ngx_uint_t) 1 << i)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate parameter \"%V\" in vlm_engine \"%V\"",
                           &value[0], &param->engine->name);
        return NGX_CONF_ERROR;
    }

    param->seen |= (ngx_uint_t) 1 << i;

    if (n < 1 || n > def->max) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           def->max == 1 ? "\"%V\" has %ui values, it takes 1"
                                         : "\"%V\" has %ui values, it takes "
                                           "1 to %ui",
                           &value[0], n, def->max);
        return NGX_CONF_ERROR;
    }

    if (i == 0) {
        param->model = value[1];
    }

    return def->set(cf, param->engine, &value[1], n);
}


/* checks that need several parameters */

char *
ngx_http_vlm_param_finish(ngx_conf_t *cf, ngx_http_vlm_param_t *param)
{
    ngx_str_t               pool;
    ngx_http_vlm_engine_t  *eng;

    eng = param->engine;

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

    if (eng->conf.thinking == NGX_CONF_UNSET_UINT) {
        eng->conf.thinking = ngx_http_vlm_thinks(&param->model);
        eng->conf.thinking_auto = 1;
    }

    if (eng->pool == NULL) {
        ngx_str_set(&pool, "vlm");

        eng->pool = ngx_http_vlm_param_pool(cf, eng, &pool);
        if (eng->pool == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_model(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    ngx_str_t  path;

    path = value[0];

    if (ngx_conf_full_name(cf->cycle, &path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    eng->conf.vlm.model = (char *) path.data;

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_device(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    if (ngx_strcmp(value[0].data, "cpu") != 0
        && ngx_strcmp(value[0].data, "auto") != 0
        && ngx_strcmp(value[0].data, "cuda") != 0
        && (!ngx_http_vlm_starts(&value[0], "cuda:")
            || ngx_atoi(value[0].data + 5, value[0].len - 5) == NGX_ERROR))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "device \"%V\" is none of auto, cpu, cuda, cuda:N",
                           &value[0]);
        return NGX_CONF_ERROR;
    }

    eng->conf.vlm.device = (char *) value[0].data;

    if (n == 1) {
        return NGX_CONF_OK;
    }

    return ngx_http_vlm_starts(&value[1], "retry=")
           ? ngx_http_vlm_param_retry(cf, eng, value)
           : ngx_http_vlm_param_ops(cf, eng, value);
}


static char *
ngx_http_vlm_param_ops(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value)
{
    char  *ops;

    ops = (char *) value[1].data + 4;

    if (!ngx_http_vlm_starts(&value[1], "ops=")
        || (ngx_strcmp(ops, "plain") != 0 && ngx_strcmp(ops, "avx2") != 0
            && ngx_strcmp(ops, "avxvnni") != 0
            && ngx_strcmp(ops, "avx512") != 0 && ngx_strcmp(ops, "amx") != 0))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is none of ops=plain, ops=avx2, "
                           "ops=avxvnni, ops=avx512, ops=amx", &value[1]);
        return NGX_CONF_ERROR;
    }

    if (ngx_strcmp(value[0].data, "cpu") != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is for device cpu, not \"%V\"",
                           &value[1], &value[0]);
        return NGX_CONF_ERROR;
    }

    eng->conf.vlm.ops = ops;

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_retry(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value)
{
    ngx_str_t  text;

    if (ngx_strcmp(value[0].data, "auto") != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is for device auto, not \"%V\"",
                           &value[1], &value[0]);
        return NGX_CONF_ERROR;
    }

    text.data = value[1].data + 6;
    text.len = value[1].len - 6;

    return ngx_http_vlm_param_time(cf, "device auto retry", &text,
                                   &eng->conf.retry);
}


static char *
ngx_http_vlm_param_weights(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    if (ngx_strcmp(value[0].data, "int8") == 0) {
        eng->conf.vlm.weights = VLM_INT8;

    } else if (ngx_strcmp(value[0].data, "bf16") == 0) {
        eng->conf.vlm.weights = VLM_BF16;

    } else if (ngx_strcmp(value[0].data, "f32") == 0) {
        eng->conf.vlm.weights = VLM_F32;

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "weights \"%V\" is none of int8, bf16, f32",
                           &value[0]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_memory(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    off_t  size;

    size = ngx_parse_offset(&value[0]);

    if (size == NGX_ERROR || size < 1024 * 1024) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "memory \"%V\" is not a size of at least 1m, "
                           "such as 600m or 6g", &value[0]);
        return NGX_CONF_ERROR;
    }

    eng->conf.vlm.memory = size;

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_context(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    ssize_t  tokens;

    tokens = ngx_parse_size(&value[0]);

    if (tokens == NGX_ERROR || tokens < 64 || tokens > 1024 * 1024) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "context \"%V\" is not a number of tokens from 64 "
                           "to 1m", &value[0]);
        return NGX_CONF_ERROR;
    }

    eng->conf.vlm.context = (uint32_t) tokens;

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_slots(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    char        *rv;
    ngx_uint_t   slots;

    rv = ngx_http_vlm_number(cf, "slots", &value[0], 1, 256, &slots);

    if (rv == NGX_CONF_OK) {
        eng->conf.vlm.slots = (uint32_t) slots;
    }

    return rv;
}


static char *
ngx_http_vlm_param_max_pixels(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    char        *rv;
    ngx_uint_t   pixels;

    rv = ngx_http_vlm_number(cf, "max_pixels", &value[0], 784, 67108864,
                             &pixels);

    if (rv == NGX_CONF_OK) {
        eng->conf.vlm.max_pixels = pixels;
    }

    return rv;
}


static char *
ngx_http_vlm_param_features(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    char        *rv;
    ngx_uint_t   features;

    rv = ngx_http_vlm_number(cf, "features", &value[0], 1, 1024, &features);

    if (rv == NGX_CONF_OK) {
        eng->conf.vlm.features = (uint32_t) features;
    }

    return rv;
}


static char *
ngx_http_vlm_param_max_tokens(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    char        *rv;
    ngx_uint_t   tokens;

    rv = ngx_http_vlm_number(cf, "max_tokens", &value[0], 1, 1024 * 1024,
                             &tokens);

    if (rv == NGX_CONF_OK) {
        eng->conf.vlm.max_tokens = (uint32_t) tokens;
    }

    return rv;
}


/* "name=" and, in millionths, its bounds */

static char *
ngx_http_vlm_param_sampling(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    ngx_str_t        text;
    ngx_int_t        x;
    ngx_uint_t       i, k, len;
    vlm_sampling_t  *s;

    static struct {
        const char   *name;
        const char   *bounds;
        ngx_int_t     low, high;
    } defs[] = {
        { "temperature=",        "0 to 5",    0,      5000000 },
        { "top_k=",              "0 to 1000", 0,      1000000000 },
        { "top_p=",              "0.01 to 1", 10000,  1000000 },
        { "repetition_penalty=", "0.1 to 10", 100000, 10000000 }
    };

    s = &eng->conf.sampling;

    for (i = 0; i < n; i++) {

        for (k = 0; k < 4; k++) {
            if (ngx_http_vlm_starts(&value[i], defs[k].name)) {
                break;
            }
        }

        if (k == 4 || (eng->conf.sampling_set & (1u << k))) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "%s \"%V\" in sampling, which takes "
                               "temperature=, top_k=, top_p= and "
                               "repetition_penalty=, each with a number",
                               k == 4 ? "unknown value" : "duplicate value",
                               &value[i]);
            return NGX_CONF_ERROR;
        }

        len = ngx_strlen(defs[k].name);
        text.data = value[i].data + len;
        text.len = value[i].len - len;

        x = ngx_atofp(text.data, text.len, 6);

        if (x == NGX_ERROR || x < defs[k].low || x > defs[k].high
            || (k == 1 && x % 1000000 != 0))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sampling %V is not %s %s", &value[i],
                               k == 1 ? "a whole number from" : "from",
                               defs[k].bounds);
            return NGX_CONF_ERROR;
        }

        eng->conf.sampling_set |= 1u << k;

        switch (k) {
        case 0:
            s->temperature = (float) (x / 1e6);
            break;
        case 1:
            s->top_k = (uint32_t) (x / 1000000);
            break;
        case 2:
            s->top_p = (float) (x / 1e6);
            break;
        default:
            s->repetition_penalty = (float) (x / 1e6);
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_thinking(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    if (ngx_strcmp(value[0].data, "on") == 0) {
        eng->conf.thinking = 1;

    } else if (ngx_strcmp(value[0].data, "off") == 0) {
        eng->conf.thinking = 0;

    } else if (ngx_strcmp(value[0].data, "auto") != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "thinking \"%V\" is none of on, off, auto",
                           &value[0]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_tools(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    if (ngx_strcmp(value[0].data, "ignore") == 0) {
        eng->conf.tools = 1;

    } else if (ngx_strcmp(value[0].data, "refuse") != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "tools \"%V\" is none of ignore, refuse",
                           &value[0]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_threads(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    char        *rv;
    ngx_uint_t   threads;

    rv = ngx_http_vlm_number(cf, "threads", &value[0], 1, 256, &threads);

    if (rv == NGX_CONF_OK) {
        eng->conf.vlm.threads = (uint32_t) threads;
    }

    return rv;
}


static char *
ngx_http_vlm_param_thread_pool(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    if (ngx_strcmp(value[0].data, "default") == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "thread_pool \"default\" is for files and "
                           "pictures: the engine needs one of its own");
        return NGX_CONF_ERROR;
    }

    eng->pool = ngx_http_vlm_param_pool(cf, eng, &value[0]);

    return eng->pool ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static char *
ngx_http_vlm_param_prepare(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    return ngx_http_vlm_number(cf, "prepare", &value[0], 1, 32,
                               &eng->conf.prepare);
}


static char *
ngx_http_vlm_param_queue(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    ngx_str_t  text;

    if (ngx_http_vlm_number(cf, "queue", &value[0], 1, 100000,
                            &eng->conf.queue_size)
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (n == 1) {
        return NGX_CONF_OK;
    }

    if (!ngx_http_vlm_starts(&value[1], "timeout=")) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown value \"%V\" in queue, which takes a "
                           "number and timeout=time", &value[1]);
        return NGX_CONF_ERROR;
    }

    text.data = value[1].data + 8;
    text.len = value[1].len - 8;

    return ngx_http_vlm_param_time(cf, "queue timeout", &text,
                                   &eng->conf.queue_timeout);
}


static char *
ngx_http_vlm_param_timeout(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    return ngx_http_vlm_param_time(cf, "timeout", &value[0],
                                   &eng->conf.timeout);
}


static char *
ngx_http_vlm_param_stall(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    ngx_msec_t  ms;

    if (ngx_http_vlm_param_time(cf, "stall", &value[0], &ms) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (ms < NGX_HTTP_VLM_MIN_STALL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "stall \"%V\" is not a time from %ds to 1d",
                           &value[0], NGX_HTTP_VLM_MIN_STALL / 1000);
        return NGX_CONF_ERROR;
    }

    eng->conf.stall = ms;

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_reload(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    if (ngx_strcmp(value[0].data, "overlap") == 0) {
        eng->conf.overlap = 1;

    } else if (ngx_strcmp(value[0].data, "wait") != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "reload \"%V\" is none of wait, overlap",
                           &value[0]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_http_memory(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    off_t  size;

    size = ngx_parse_offset(&value[0]);

    if (size == NGX_ERROR || size < NGX_HTTP_VLM_MIN_HTTP) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "http_memory \"%V\" is not a size of at least "
                           "%dm, such as 600m or 6g", &value[0],
                           NGX_HTTP_VLM_MIN_HTTP >> 20);
        return NGX_CONF_ERROR;
    }

    eng->conf.http_memory = size;

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_cache(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    ngx_str_t  path;

    eng->conf.cache_set = 1;

    if (ngx_strcmp(value[0].data, "off") == 0) {
        return NGX_CONF_OK;
    }

    path = value[0];

    if (ngx_conf_full_name(cf->cycle, &path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    eng->conf.vlm.cache = (char *) path.data;

    return NGX_CONF_OK;
}


static char *
ngx_http_vlm_param_store(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    ngx_str_t    text;
    ngx_uint_t   i;

    eng->conf.store_dir = value[0];

    for (i = 1; i < n; i++) {

        text = value[i];

        if (ngx_http_vlm_starts(&text, "expires=")) {
            text.data += 8;
            text.len -= 8;

            eng->conf.store_expires = ngx_parse_time(&text, 1);

            if (eng->conf.store_expires < 60) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "invalid store expires \"%V\", "
                                   "a time from 1m on is possible", &text);
                return NGX_CONF_ERROR;
            }

            continue;
        }

        if (ngx_strcmp(text.data, "max=off") == 0) {
            eng->conf.store_max = 0;
            continue;
        }

        if (ngx_http_vlm_starts(&text, "max=")) {
            text.data += 4;
            text.len -= 4;

            eng->conf.store_max = ngx_parse_offset(&text);

            if (eng->conf.store_max < 1024 * 1024) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "invalid store max \"%V\", a size from 1m "
                                   "on, such as 6g, or \"off\" is possible",
                                   &text);
                return NGX_CONF_ERROR;
            }

            continue;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown value \"%V\" in store, which takes a "
                           "directory, expires=time and max=size", &text);
        return NGX_CONF_ERROR;
    }

    return ngx_http_vlm_paths_store(cf, eng);
}


static char *
ngx_http_vlm_param_socket(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    ngx_str_t *value, ngx_uint_t n)
{
    eng->conf.socket = value[0];
    eng->conf.socket_line = cf->conf_file->line;

    if (ngx_http_vlm_starts(&eng->conf.socket, "unix:")) {
        eng->conf.socket.data += 5;
        eng->conf.socket.len -= 5;
    }

    return ngx_conf_full_name(cf->cycle, &eng->conf.socket, 0) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static char *
ngx_http_vlm_number(ngx_conf_t *cf, const char *name, ngx_str_t *value,
    ngx_uint_t low, ngx_uint_t high, ngx_uint_t *out)
{
    ngx_int_t  n;

    n = ngx_atoi(value->data, value->len);

    if (n == NGX_ERROR || (ngx_uint_t) n < low || (ngx_uint_t) n > high) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "%s \"%V\" is not a number from %ui to %ui",
                           name, value, low, high);
        return NGX_CONF_ERROR;
    }

    *out = n;

    return NGX_CONF_OK;
}


/*
 * RoboBrain's rule: its models think, except the 3B.  The rule looks at the
 * model's name as written; "3b" within "13b", or within the digits of a
 * snapshot's name, does not count.
 */

static ngx_uint_t
ngx_http_vlm_thinks(ngx_str_t *model)
{
    u_char  *p, *last;

    last = model->data + model->len;

    p = ngx_strlcasestrn(model->data, last, (u_char *) "robobrain", 9 - 1);
    if (p == NULL) {
        return 0;
    }

    p += 9;

    while ((p = ngx_strlcasestrn(p, last, (u_char *) "3b", 2 - 1)) != NULL) {

        if (!isalnum(p[-1]) && p[-1] != '.'
            && (p + 2 == last || !isalnum(p[2])))
        {
            return 0;
        }

        p += 2;
    }

    return 1;
}


static ngx_uint_t
ngx_http_vlm_starts(ngx_str_t *value, const char *with)
{
    size_t  len;

    len = ngx_strlen(with);

    return value->len >= len && ngx_strncmp(value->data, with, len) == 0;
}
