
/*
 * Any bytes as the body of a chat: the first byte selects the dialect; the
 * rest is parsed by ngx_http_vlm_input_parse() and, if it is accepted, made
 * into a prompt for the demo model.  A refused body has a status and a
 * sentence of UTF-8; an accepted one is freed to the last byte.
 *
 * The whole module is linked, without nginx: below are the few functions of
 * nginx that this path needs.  A call of any other would be a crash.
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/fields.h"
#include "api/robobrain/chat.h"
#include "base/base64.h"


#define DIALECTS  (sizeof(dialects) / sizeof(dialects[0]))
#define MEMORY    (256 * 1024 * 1024)


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char                           dir[] = "/dev/shm/vlm-request-XXXXXX";
static ngx_http_vlm_engine_t          engine;
static ngx_http_vlm_shm_t             shm;
static const ngx_http_vlm_dialect_t  *dialects[] = {
    &ngx_http_vlm_chat_dialect,
    &ngx_http_vlm_ollama_generate,
    &ngx_http_vlm_openai_chat,
    &ngx_http_vlm_openai_completion,
    &ngx_http_vlm_pipeline_dialect,
    &ngx_http_vlm_decompose_dialect,
    &ngx_http_vlm_title_dialect,
    &ngx_http_vlm_openai_responses,
    &ngx_http_vlm_lite_dialect
};


static void
check(int right)
{
    if (!right) {
        abort();
    }
}


/* ---- once: a store and a tokenizer --------------------------------------- */


static void
end(void)
{
    char  command[64];

    (void) snprintf(command, sizeof(command), "rm -rf %s", dir);

    check(system(command) == 0);
}


static void
begin(void)
{
    vlm_err_t  err = { VLM_OK, "" };

    ngx_http_vlm_module.ctx_index = 0;

    ngx_str_set(&engine.name, "fuzz");
    ngx_str_set(&engine.conf.directory, "model");
    vlm_conf_default(&engine.conf.vlm);
    engine.conf.vlm.model = "demo/model";

    engine.zone = &shm;
    engine.conf.http_memory = MEMORY;
    engine.life.owner = 1;
    engine.life.loaded = 1;

    check(mkdtemp(dir) != NULL && atexit(end) == 0);
    ngx_str_set(&engine.conf.store_dir, dir);
    ngx_str_set(&engine.conf.files_dir, dir);

    check(vlm_store_prepare(dir, (uid_t) -1, (gid_t) -1, NULL)
          == VLM_STORE_OK);
    engine.store = vlm_store_open(dir);
    engine.life.vlm = vlm_open(&engine.conf.vlm, &err);

    check(engine.store != NULL && engine.life.vlm != NULL);
    check(vlm_facts(&engine.conf.vlm, &engine.conf.facts, &err) == 0);
    check(vlm_budget_init(&engine.budget, MEMORY) == 0);
}


/* ---- a request ----------------------------------------------------------- */


static void
check_refusal(ngx_http_vlm_ctx_t *ctx)
{
    size_t  len;

    check(ctx->error.status == NGX_HTTP_OK
          || (ctx->error.status >= 400 && ctx->error.status < 600));

    len = strnlen(ctx->error.err.text, sizeof(ctx->error.err.text));

    check(len > 0 && len < sizeof(ctx->error.err.text));
    check(vlm_utf8_whole(ctx->error.err.text, len) == len);

    len = strnlen(ctx->error.param, sizeof(ctx->error.param));

    check(len < sizeof(ctx->error.param));
    check(vlm_utf8_whole(ctx->error.param, len) == len);
}


static void
check_sampling(vlm_sampling_t *s)
{
    size_t  i;

    check(s->temperature >= 0 && s->temperature <= 100);
    check(s->top_p > 0 && s->top_p <= 1);
    check(s->n_bias <= VLM_MAX_BIAS);
    check(s->top_logprobs <= VLM_TOP_LOGPROBS);

    for (i = 0; i < s->n_stop; i++) {
        check(s->stop[i][0] != '\0');
    }

    for (i = 0; i < s->n_bias; i++) {
        check(s->bias[i].id < engine.conf.facts.vocab);
        check(s->bias[i].bias >= -100 && s->bias[i].bias <= 100);
    }
}


/* a body with a session would leave it in the store for all later ones */

static void
check_prompt(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->place.session.len || ctx->dialect->prompt == NULL) {
        return;
    }

    vlm_sampling_default(engine.life.vlm, &ctx->sampling);

    ctx->dialect->prompt(ctx);

    if (ctx->prompt) {
        check(vlm_prompt_tokens(ctx->prompt) < engine.conf.vlm.context);
        check_sampling(&ctx->sampling);

    } else if (ctx->error.status) {
        check_refusal(ctx);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ngx_buf_t                  buf;
    ngx_chain_t                chain;
    ngx_http_request_t         r;
    ngx_http_vlm_ctx_t        *ctx;
    ngx_http_vlm_chat_t       *chat;
    ngx_http_request_body_t    body;
    ngx_http_vlm_loc_conf_t    lcf;
    void                      *confs[] = { &lcf };

    if (engine.life.vlm == NULL) {
        begin();
    }

    ctx = calloc(1, sizeof(ngx_http_vlm_ctx_t));

    if (ctx == NULL || bytes == 0) {
        free(ctx);
        return 0;
    }

    ngx_memzero(&r, sizeof(r));
    ngx_memzero(&buf, sizeof(buf));
    ngx_memzero(&body, sizeof(body));
    ngx_memzero(&lcf, sizeof(lcf));

    lcf.engine = &engine;
    r.loc_conf = confs;

    buf.pos = (u_char *) data + 1;
    buf.last = buf.pos + bytes - 1;
    chain.buf = &buf;
    chain.next = NULL;
    body.bufs = &chain;

    ctx->request = &r;
    ctx->engine = &engine;
    ctx->opened = 1;
    ctx->body.from = &body;
    ctx->dialect = dialects[data[0] % DIALECTS];

    ngx_http_vlm_input_parse(ctx);

    if (ctx->error.status) {
        check_refusal(ctx);

    } else {
        check_prompt(ctx);
    }

    /* the store keeps pictures of sessions: the run must not fill it */

    chat = ctx->data;

    if (ctx->dialect->free != ngx_http_vlm_asked_free
        && ctx->dialect != &ngx_http_vlm_openai_responses
        && ctx->dialect != &ngx_http_vlm_lite_dialect
        && chat && chat->image)
    {
        (void) unlink(chat->image);
    }

    ngx_http_vlm_queue_free(ctx);
    free(ctx);

    return 0;
}


/* ---- nginx --------------------------------------------------------------- */


volatile ngx_msec_t  ngx_current_msec = 1;


/* the next conversion of fmt as text, for those that messages use */

static const char *
convert(const char **fmt, va_list *args, size_t *len, char text[32])
{
    const char  *s;
    ngx_str_t   *v;

    s = text;

    switch (*(*fmt)++) {

    case 's':
        s = va_arg(*args, const char *);
        break;

    case 'V':
        v = va_arg(*args, ngx_str_t *);
        *len = v->len;
        return (const char *) v->data;

    case '*':
        check(*(*fmt)++ == 's');
        *len = va_arg(*args, size_t);
        return va_arg(*args, const char *);

    case 'd':
        (void) snprintf(text, 32, "%d", va_arg(*args, int));
        break;

    case 'i':
    case 'T':
        (void) snprintf(text, 32, "%ld", va_arg(*args, long));
        break;

    case 'u':
        if (*(*fmt)++ == 'D') {
            (void) snprintf(text, 32, "%u", va_arg(*args, unsigned));
        } else {
            (void) snprintf(text, 32, "%lu", va_arg(*args, unsigned long));
        }

        break;

    default:
        abort();
    }

    *len = strlen(s);

    return s;
}


u_char *
ngx_vslprintf(u_char *p, u_char *last, const char *fmt, va_list args)
{
    char         text[32];
    size_t       len;
    va_list      rest;
    const char  *s;

    va_copy(rest, args);

    while (*fmt) {
        s = fmt++;
        len = 1;

        if (*s == '%') {
            s = convert(&fmt, &rest, &len, text);
        }

        p = ngx_cpymem(p, s, ngx_min(len, (size_t) (last - p)));
    }

    va_end(rest);

    return p;
}


u_char *
ngx_sprintf(u_char *buf, const char *fmt, ...)
{
    u_char   *p;
    va_list   args;

    va_start(args, fmt);
    p = ngx_vslprintf(buf, buf + 4096, fmt, args);
    va_end(args);

    return p;
}


u_char *
ngx_cpystrn(u_char *dst, u_char *src, size_t n)
{
    size_t  len;

    len = n ? strnlen((char *) src, n - 1) : 0;

    ngx_memcpy(dst, src, len);

    if (n) {
        dst[len] = '\0';
    }

    return dst + len;
}


ngx_int_t
ngx_strncasecmp(u_char *s1, u_char *s2, size_t n)
{
    return strncasecmp((char *) s1, (char *) s2, n);
}


ngx_int_t
ngx_atoi(u_char *line, size_t n)
{
    ngx_int_t  value;

    for (value = 0; n--; line++) {

        if (*line < '0' || *line > '9' || value > 1000000000) {
            return NGX_ERROR;
        }

        value = value * 10 + (*line - '0');
    }

    return value;
}


ngx_int_t
ngx_decode_base64(ngx_str_t *dst, ngx_str_t *src)
{
    return vlm_base64_decode(dst->data, &dst->len,
                             (char *) src->data, src->len)
           == 0 ? NGX_OK : NGX_ERROR;
}


uint32_t
ngx_murmur_hash2(u_char *data, size_t len)
{
    return 1;
}


void *
ngx_pcalloc(ngx_pool_t *pool, size_t size)
{
    return calloc(1, size);
}
