
/*
 * The parameters of vlm_engine { }: the table, which has the bounds and the
 * error message of each value, and the reading of a line.
 */


#include "param.h"


#define NGX_HTTP_VLM_DAY  (24 * 3600 * 1000)       /* ms */
#define NGX_HTTP_VLM_ANY  NGX_MAX_OFF_T_VALUE      /* no upper bound */


static ngx_conf_enum_t  ngx_http_vlm_ops[] = {
    { ngx_string("ops=plain"), 0 },
    { ngx_string("ops=avx2"), 0 },
    { ngx_string("ops=avxvnni"), 0 },
    { ngx_string("ops=avx512"), 0 },
    { ngx_string("ops=amx"), 0 },
    { ngx_string("ops=neon"), 0 },
    { ngx_string("ops=i8mm"), 0 },
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


static ngx_conf_enum_t  ngx_http_vlm_retrieval[] = {
    { ngx_string("bm25"), 0 },
    { ngx_string("hybrid"), 1 },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_vlm_sandbox[] = {
    { ngx_string("landlock"), 0 },
    { ngx_string("seccomp"), 1 },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_vlm_off[] = {
    { ngx_string("off"), 0 },
    { ngx_null_string, 0 }
};


#define ngx_http_vlm_at(member)                                               \
    .offset = offsetof(ngx_http_vlm_engine_conf_t, member),                   \
    .size = sizeof(((ngx_http_vlm_engine_conf_t *) NULL)->member)

/* one macro for each kind of row: a value without bounds, a number, size or
   time with them, one of some words, and any other value, which is refused */

#define VALUE(text, n, kind, member)                                          \
    { ngx_string(text), n, .set = ngx_http_vlm_param_##kind,                  \
      ngx_http_vlm_at(member) }
#define BOUND(text, n, kind, member, from, to, sentence)                      \
    { ngx_string(text), n, ngx_http_vlm_param_##kind, from, to,               \
      ngx_http_vlm_at(member), .error = sentence }
#define WORD(text, n, member, words, sentence)                                \
    { ngx_string(text), n, .set = ngx_http_vlm_param_word,                    \
      ngx_http_vlm_at(member), .post = words, .error = sentence }
#define OTHER(sentence)                                                       \
    { ngx_null_string, 0, .set = ngx_http_vlm_param_refuse, .error = sentence }

#define ngx_http_vlm_number(text, member, from, to)                           \
    BOUND(text, 1, num, member, from, to,                                     \
          text " \"%V\" is not a number from " #from " to " #to)


/*
 * A row with a number of values is a parameter, and reads its first value.
 * The rows behind it, up to the next parameter, are for the other values:
 * those that begin with "name=", and any other value for a row without a
 * name.  The message names the value, and what is possible.
 */

static const ngx_http_vlm_param_t  ngx_http_vlm_params[] = {

    VALUE("model", 2, path, vlm.model),
    VALUE("mmproj=", 0, path, vlm.mmproj),
    OTHER("unknown value \"%V\" in model, which takes mmproj="),

    { ngx_string("alias"), 32, .set = ngx_http_vlm_param_alias },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_alias },

    { ngx_string("device"), 2, .set = ngx_http_vlm_param_device,
      .error = "device \"%V\" is not auto, cpu, cuda or cuda:N" },
    { ngx_string("retry="), 0, ngx_http_vlm_param_device_value, 1,
      NGX_HTTP_VLM_DAY, ngx_http_vlm_at(retry),
      .error = "device auto retry \"%V\" is not a time from 1ms to 1d" },
    { ngx_null_string, 0, .set = ngx_http_vlm_param_device_value,
      .post = ngx_http_vlm_ops,
      .error = "\"%V\" is not ops=plain, ops=avx2, ops=avxvnni, ops=avx512, "
               "ops=amx, ops=neon or ops=i8mm" },

    { ngx_string("weights"), 1, .set = ngx_http_vlm_param_weights },

    WORD("kv", 1, kv_int8, ngx_http_vlm_kv, "kv \"%V\" is not auto or int8"),

    BOUND("memory", 1, size, vlm.memory, 1024 * 1024, NGX_HTTP_VLM_ANY,
          "memory \"%V\" is not a size of at least 1m, such as 600m or 6g"),

    BOUND("context", 1, size, vlm.context, 64, 1024 * 1024,
          "context \"%V\" is not a number of tokens from 64 to 1m"),

    ngx_http_vlm_number("slots", vlm.slots, 1, 256),
    ngx_http_vlm_number("max_pixels", vlm.max_pixels, 784, 67108864),
    ngx_http_vlm_number("min_pixels", vlm.min_pixels, 0, 67108864),
    ngx_http_vlm_number("features", vlm.features, 1, 1024),
    ngx_http_vlm_number("max_tokens", vlm.max_tokens, 1, 1048575),

    VALUE("lora", 5, lora, vlm.lora),
    BOUND("max=", 0, num, vlm.lora_max, 1, 64,
          "lora max=%V is not a number from 1 to 64"),
    BOUND("rank=", 0, num, vlm.lora_rank, 1, 256,
          "lora rank=%V is not a number from 1 to 256"),
    WORD("tower=", 0, lora_tower, ngx_http_vlm_on_off,
         "lora tower=%V is not on or off"),
    WORD("load=", 0, lora_load, ngx_http_vlm_on_off,
         "lora load=%V is not on or off"),
    OTHER("unknown value \"%V\" in lora, which takes a directory, max=, "
          "rank=, tower= and load="),

    { ngx_string("sampling"), 4, .set = NULL },
    BOUND("temperature=", 0, float, sampling.temperature, 0, 5000000,
          "sampling temperature=%V is not from 0 to 5"),
    BOUND("top_k=", 0, num, sampling.top_k, 0, 1000,
          "sampling top_k=%V is not a whole number from 0 to 1000"),
    BOUND("top_p=", 0, float, sampling.top_p, 10000, 1000000,
          "sampling top_p=%V is not from 0.01 to 1"),
    BOUND("repetition_penalty=", 0, float, sampling.repetition_penalty, 100000,
          10000000,
          "sampling repetition_penalty=%V is not from 0.1 to 10"),
    OTHER("unknown value \"%V\" in sampling, which takes temperature=, "
          "top_k=, top_p= and repetition_penalty=, each with a number"),

    VALUE("template", 1, name, vlm.chat_template),

    WORD("thinking", 1, thinking, ngx_http_vlm_thinking,
         "thinking \"%V\" is not on, off or auto"),

    WORD("tools", 1, tools, ngx_http_vlm_tools,
         "tools \"%V\" is not call, ignore or refuse"),

    ngx_http_vlm_number("threads", vlm.threads, 1, 256),

    { ngx_string("thread_pool"), 1, .set = ngx_http_vlm_param_pool,
      .error = "thread_pool \"%V\" is for files and pictures: the engine needs "
               "one of its own" },

    BOUND("queue", 2, num, queue_size, 1, 100000,
          "queue \"%V\" is not a number from 1 to 100000"),
    BOUND("timeout=", 0, msec, queue_timeout, 1, NGX_HTTP_VLM_DAY,
          "queue timeout \"%V\" is not a time from 1ms to 1d"),
    OTHER("unknown value \"%V\" in queue, which takes a number and "
          "timeout=time"),

    { ngx_string("priority"), 2, .set = ngx_http_vlm_param_priority,
      ngx_http_vlm_at(rank.priority),
      .error = "priority \"%V\" is not a variable, low, normal, high or a "
               "number from -10 to 10: every request has 0" },
    BOUND("age=", 0, msec, rank.priority_age, 1, NGX_HTTP_VLM_DAY,
          "priority age \"%V\" is not a time from 1ms to 1d"),
    OTHER("unknown value \"%V\" in priority, which takes age=time"),

    VALUE("fair", 2, text, rank.fair),
    BOUND("age=", 0, msec, rank.fair_age, 1, NGX_HTTP_VLM_DAY,
          "fair age \"%V\" is not a time from 1ms to 1d"),
    OTHER("unknown value \"%V\" in fair, which takes age=time"),

    VALUE("cache_salt", 1, text, rank.salt),

    BOUND("timeout", 1, msec, timeout, 1, NGX_HTTP_VLM_DAY,
          "timeout \"%V\" is not a time from 1ms to 1d"),

    BOUND("stall", 1, msec, stall, 2000, NGX_HTTP_VLM_DAY,
          "stall \"%V\" is not a time from 2s to 1d"),

    WORD("reload", 1, overlap, ngx_http_vlm_reload,
         "reload \"%V\" is not wait or overlap"),

    { ngx_string("breaker"), 2, .set = NULL },
    BOUND("failures=", 0, num, failures, 1, 1000,
          "breaker failures=%V is not a number from 1 to 1000"),
    BOUND("pause=", 0, msec, pause, 1, NGX_HTTP_VLM_DAY,
          "breaker pause \"%V\" is not a time from 1ms to 1d"),
    { ngx_null_string, 0, .set = ngx_http_vlm_param_breaker_off,
      ngx_http_vlm_at(failures), .post = ngx_http_vlm_off,
      .error = "unknown value \"%V\" in breaker, which is off or takes "
               "failures=number and pause=time" },

    BOUND("http_memory", 1, size, http_memory, 16 * 1024 * 1024,
          NGX_HTTP_VLM_ANY,
          "http_memory \"%V\" is not a size of at least 16m, such as 600m or "
          "6g"),

    VALUE("cache", 1, cache, vlm.cache),

    { ngx_string("store"), 5, .set = ngx_http_vlm_param_store },
    VALUE("uploads=", 0, store_files, files_dir),
    VALUE("directory=", 0, store_files, store_dir),
    BOUND("expires=", 0, sec, store_expires, 60, NGX_HTTP_VLM_ANY,
          "store expires \"%V\" is not a time of at least 1m"),
    BOUND("max=", 0, store_max, store_max, 1024 * 1024, NGX_HTTP_VLM_ANY,
          "store max \"%V\" is not \"off\" or a size of at least 1m, such as "
          "6g"),
    { ngx_null_string, 0, .set = ngx_http_vlm_param_store_other,
      .error = "unknown value \"%V\" in store, which takes a directory, "
               "expires=time and max=size, or redis://host with uploads= and "
               "directory=" },

    { ngx_string("socket"), 1, .set = ngx_http_vlm_param_socket },

    WORD("documents", 12, documents.on, ngx_http_vlm_on_off,
         "documents \"%V\" is not on or off"),
    BOUND("file=", 0, size, documents.file, 1024, 1024 * 1024 * 1024,
          "documents file \"%V\" is not a size from 1k to 1g"),
    BOUND("pages=", 0, num, documents.pages, 1, 10000,
          "documents pages \"%V\" is not a number from 1 to 10000"),
    BOUND("characters=", 0, size, documents.characters, 1000, 64 * 1024 * 1024,
          "documents characters \"%V\" is not a number from 1000 to 64m"),
    BOUND("memory=", 0, size, documents.memory, 128 * 1024 * 1024,
          (off_t) 64 * 1024 * 1024 * 1024,
          "documents memory \"%V\" is not a size from 128m to 64g"),
    BOUND("time=", 0, sec, documents.seconds, 1, 3600,
          "documents time \"%V\" is not a time from 1s to 1h"),
    { ngx_string("ocr="), 0, .set = ngx_http_vlm_param_ocr,
      .error = "documents ocr \"%V\" is not on, off or languages as \"eng\" or "
               "\"deu+eng\"" },
    BOUND("ocr_time=", 0, sec, documents.ocr_seconds, 1, 3600,
          "documents ocr_time \"%V\" is not a time from 1s to 1h"),
    BOUND("jobs=", 0, num, documents.jobs, 1, 16,
          "documents jobs \"%V\" is not a number from 1 to 16"),
    VALUE("helper=", 0, path, documents.helper),
    WORD("legacy=", 0, documents.legacy, ngx_http_vlm_on_off,
         "documents legacy \"%V\" is not on or off"),
    WORD("sandbox=", 0, documents.seccomp, ngx_http_vlm_sandbox,
         "documents sandbox \"%V\" is not landlock or seccomp"),
    OTHER("unknown value \"%V\" in documents, which takes file=size, "
          "pages=number, characters=number, memory=size, time=time, ocr=on, "
          "ocr_time=time, jobs=number, helper=path, legacy=on and "
          "sandbox=seccomp"),

    { ngx_string("retrieval"), 2, .set = ngx_http_vlm_param_retrieval,
      ngx_http_vlm_at(documents.hybrid), .post = ngx_http_vlm_retrieval,
      .error = "retrieval \"%V\" is not bm25 or hybrid" },
    VALUE("model=", 0, encoder, documents.encoder),
    OTHER("unknown value \"%V\" in retrieval, which is bm25, or hybrid with "
          "model=path"),

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

    eng->conf.documents.file = 20 * 1024 * 1024;
    eng->conf.documents.pages = 200;
    eng->conf.documents.characters = 400 * 1024;
    eng->conf.documents.memory = 512 * 1024 * 1024;
    eng->conf.documents.seconds = 30;
    eng->conf.documents.ocr_seconds = 60;
    eng->conf.documents.jobs = 1;

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
