
/*
 * The model as Ollama's clients query it before they use it: /api/tags,
 * /api/ps, /api/show, /api/version; and the endpoints that a server with one
 * model does not have.  All of it is known from the configuration and the
 * zone, so any worker answers.
 */


#include "../api.h"
#include "ollama.h"

#include <ngx_sha1.h>


#define NGX_HTTP_VLM_OLLAMA_INFO   (256 * 1024)    /* bytes, of an answer */
#define NGX_HTTP_VLM_OLLAMA_SHOW   (64 * 1024)     /* bytes, of a body */
#define NGX_HTTP_VLM_OLLAMA_LATER  3153600000      /* s: a hundred years */


typedef struct {
    ngx_http_vlm_engine_t        *engine;
    ngx_http_vlm_body_t           body;
    ngx_uint_t                    stream;      /* of a pull */
    ngx_uint_t                    status;      /* of an error, or 0 */
    char                          text[512];
} ngx_http_vlm_ollama_show_t;


static void ngx_http_vlm_ollama_put_names(vlm_json_out_t *w,
    ngx_str_t *name);
static void ngx_http_vlm_ollama_put_digest(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng);
static void ngx_http_vlm_ollama_put_details(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng);
static void ngx_http_vlm_ollama_put_info(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng);
static void ngx_http_vlm_ollama_put_fact(vlm_json_out_t *w,
    u_char *family, const char *key, uint64_t n);
static void ngx_http_vlm_ollama_put_format(vlm_json_out_t *w,
    const char *key, const char *fmt, ...);
static void ngx_http_vlm_ollama_family(ngx_http_vlm_engine_t *eng,
    u_char family[32]);
static void ngx_http_vlm_ollama_show_body(ngx_http_request_t *r);
static void ngx_http_vlm_ollama_show_run(void *data);
static void ngx_http_vlm_ollama_show_model(ngx_http_vlm_ollama_show_t *show,
    const vlm_json_t *json);
static void ngx_http_vlm_ollama_show_fail(ngx_http_vlm_ollama_show_t *show,
    ngx_uint_t status, const char *fmt, ...);
static void ngx_http_vlm_ollama_show_done(ngx_http_request_t *r, void *data);
static ngx_int_t ngx_http_vlm_ollama_pulled(ngx_http_request_t *r,
    ngx_http_vlm_ollama_show_t *show);
static void ngx_http_vlm_ollama_put_show(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng);


/* ---- lists --------------------------------------------------------------- */


ngx_int_t
ngx_http_vlm_ollama_version_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    static ngx_str_t  json = ngx_string("{\"version\":\""
                                        NGX_HTTP_VLM_OLLAMA_VERSION "\"}\n");

    return ngx_http_vlm_send(r, NGX_HTTP_OK, &json);
}


ngx_int_t
ngx_http_vlm_ollama_tags_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    ngx_str_t                *name;
    ngx_uint_t                i;
    vlm_json_out_t            w;

    vlm_json_init(&w, NGX_HTTP_VLM_OLLAMA_INFO);

    vlm_json_open(&w, '{');
    vlm_json_add_open(&w, "models", '[');

    for (i = 0; /* void */ ; i++) {
        name = ngx_http_vlm_model_name(eng, i);
        if (name == NULL) {
            break;
        }

        vlm_json_open(&w, '{');
        ngx_http_vlm_ollama_put_names(&w, name);

        ngx_http_vlm_ollama_put_time(&w, "modified_at", eng->conf.created, 0);

        vlm_json_add_int(&w, "size", eng->conf.plan.weights);

        ngx_http_vlm_ollama_put_digest(&w, eng);
        ngx_http_vlm_ollama_put_details(&w, eng);
        vlm_json_shut(&w, '}');
    }

    vlm_json_shut(&w, ']');
    vlm_json_shut(&w, '}');
    (void) vlm_json_done(&w);

    return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
}


/* the loaded models: this one once it is loaded, under one name */

ngx_int_t
ngx_http_vlm_ollama_ps_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    ngx_uint_t                 cpu;
    ngx_http_vlm_shm_t         shm;
    vlm_json_out_t             w;

    ngx_http_vlm_zone_texts(eng, &shm);

    cpu = ngx_strncmp(shm.device, "cpu", 3) == 0;

    vlm_json_init(&w, NGX_HTTP_VLM_OLLAMA_INFO);

    vlm_json_open(&w, '{');
    vlm_json_add_open(&w, "models", '[');

    if (shm.state == NGX_HTTP_VLM_READY) {
        vlm_json_open(&w, '{');
        ngx_http_vlm_ollama_put_names(&w, &eng->name);

        vlm_json_add_int(&w, "size", shm.plan.total);
        vlm_json_add_int(&w, "size_vram", cpu ? 0 : shm.plan.total);

        ngx_http_vlm_ollama_put_digest(&w, eng);
        ngx_http_vlm_ollama_put_details(&w, eng);

        ngx_http_vlm_ollama_put_time(&w, "expires_at", ngx_time()
                                         + NGX_HTTP_VLM_OLLAMA_LATER, 0);

        vlm_json_add_int(&w, "context_length", eng->conf.vlm.context);
        vlm_json_shut(&w, '}');
    }

    vlm_json_shut(&w, ']');
    vlm_json_shut(&w, '}');
    (void) vlm_json_done(&w);

    return ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w);
}


/* a name without a tag has the tag "latest" */

static void
ngx_http_vlm_ollama_put_names(vlm_json_out_t *w, ngx_str_t *name)
{
    const char  *fmt;

    fmt = ngx_strlchr(name->data, name->data + name->len, ':')
          ? "%V" : "%V:latest";

    ngx_http_vlm_ollama_put_format(w, "name", fmt, name);
    ngx_http_vlm_ollama_put_format(w, "model", fmt, name);
}


/*
 * 64 digits that look like SHA-256 but are no digest: the same while the
 * checkpoint and the format of its weights are.
 */

static void
ngx_http_vlm_ollama_put_digest(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng)
{
    u_char      *p, i, sum[20], digits[64];
    uint64_t     facts[3];
    ngx_sha1_t   sha1;

    facts[0] = eng->conf.created;
    facts[1] = eng->conf.facts.parameters;
    facts[2] = eng->conf.vlm.weights;

    p = digits;

    for (i = 0; i < 2; i++) {
        ngx_sha1_init(&sha1);
        ngx_sha1_update(&sha1, &i, 1);
        ngx_sha1_update(&sha1, eng->conf.directory.data,
                        eng->conf.directory.len);
        ngx_sha1_update(&sha1, facts, sizeof(facts));
        ngx_sha1_final(sum, &sha1);

        p = ngx_hex_dump(p, sum, 16);
    }

    vlm_json_add_text(w, "digest", (char *) digits, sizeof(digits));
}


/* ---- facts --------------------------------------------------------------- */


static void
ngx_http_vlm_ollama_put_details(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng)
{
    size_t       i;
    u_char       family[32], form[32];
    uint64_t     n;
    const char  *name;

    n = eng->conf.facts.parameters;
    name = vlm_weights_name(eng->conf.vlm.weights);

    ngx_http_vlm_ollama_family(eng, family);

    vlm_json_add_open(w, "details", '{');

    ngx_http_vlm_ollama_put_format(w, "parent_model", "");
    ngx_http_vlm_ollama_put_format(w, "format", "safetensors");
    ngx_http_vlm_ollama_put_format(w, "family", "%s", family);

    vlm_json_add_open(w, "families", '[');
    vlm_json_put_text(w, (char *) family, ngx_strlen(family));
    vlm_json_shut(w, ']');

    if (n >= 1000000000) {
        ngx_http_vlm_ollama_put_format(w, "parameter_size", "%.1fB", n / 1e9);

    } else {
        ngx_http_vlm_ollama_put_format(w, "parameter_size", "%.2fM", n / 1e6);
    }

    for (i = 0; name[i] && i < sizeof(form) - 1; i++) {
        form[i] = ngx_toupper(name[i]);
    }

    form[i] = '\0';

    ngx_http_vlm_ollama_put_format(w, "quantization_level", "%s", form);

    vlm_json_shut(w, '}');
}


/* the context length is this server's, because clients cut their prompts to
   it */

static void
ngx_http_vlm_ollama_put_info(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng)
{
    u_char        family[32];
    vlm_facts_t  *f;

    f = &eng->conf.facts;

    ngx_http_vlm_ollama_family(eng, family);

    vlm_json_add_open(w, "model_info", '{');

    ngx_http_vlm_ollama_put_format(w, "general.architecture", "%s", family);
    ngx_http_vlm_ollama_put_format(w, "general.basename", "%V",
                                   &eng->conf.directory);

    vlm_json_add_int(w, "general.parameter_count", f->parameters);

    ngx_http_vlm_ollama_put_fact(w, family, "attention.head_count", f->heads);
    ngx_http_vlm_ollama_put_fact(w, family, "attention.head_count_kv",
                                 f->kv_heads);
    ngx_http_vlm_ollama_put_fact(w, family, "block_count", f->layers);
    ngx_http_vlm_ollama_put_fact(w, family, "context_length",
                                 eng->conf.vlm.context);
    ngx_http_vlm_ollama_put_fact(w, family, "embedding_length", f->hidden);
    ngx_http_vlm_ollama_put_fact(w, family, "feed_forward_length", f->mlp);
    ngx_http_vlm_ollama_put_fact(w, family, "vision.block_count",
                                 f->vision_layers);
    ngx_http_vlm_ollama_put_fact(w, family, "vision.patch_size", f->patch);
    ngx_http_vlm_ollama_put_fact(w, family, "vocab_size", f->vocab);

    vlm_json_shut(w, '}');
}


static void
ngx_http_vlm_ollama_put_fact(vlm_json_out_t *w, u_char *family,
    const char *key, uint64_t n)
{
    u_char  name[64];

    (void) ngx_snprintf(name, sizeof(name), "%s.%s%Z", family, key);

    vlm_json_add_int(w, (char *) name, n);
}


/* a key and a text of up to 511 bytes */

static void
ngx_http_vlm_ollama_put_format(vlm_json_out_t *w, const char *key,
    const char *fmt, ...)
{
    u_char   *last, text[512];
    va_list   args;

    va_start(args, fmt);
    last = ngx_vslprintf(text, text + sizeof(text), fmt, args);
    va_end(args);

    vlm_json_add_text(w, key, (char *) text, last - text);
}


/* as Ollama writes it: without underscores */

static void
ngx_http_vlm_ollama_family(ngx_http_vlm_engine_t *eng, u_char family[32])
{
    u_char      *p;
    const char  *s;

    p = family;

    for (s = eng->conf.facts.architecture; *s && p < family + 31; s++) {

        if (*s != '_') {
            *p++ = *s;
        }
    }

    *p = '\0';
}


/* ---- one model: /api/show, and /api/pull, which finds it here ------------ */


ngx_int_t
ngx_http_vlm_ollama_show_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_body_read(r, ngx_http_vlm_ollama_show_body);
}


static void
ngx_http_vlm_ollama_show_body(ngx_http_request_t *r)
{
    ngx_http_vlm_loc_conf_t     *lcf;
    ngx_http_vlm_ollama_show_t  *show;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    show = ngx_pcalloc(r->pool, sizeof(ngx_http_vlm_ollama_show_t));

    if (show == NULL || ngx_http_vlm_body_init(r, &show->body) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    show->engine = lcf->engine;

    if (ngx_http_vlm_thread(r, lcf->engine, ngx_http_vlm_ollama_show_run,
                            ngx_http_vlm_ollama_show_done, show)
        != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


/* a thread */

static void
ngx_http_vlm_ollama_show_run(void *data)
{
    ngx_http_vlm_ollama_show_t *show = data;

    vlm_json_t                 *json;
    vlm_err_t                   err;

    if (ngx_http_vlm_body_get(&show->body) != 0) {
        ngx_http_vlm_ollama_show_fail(show, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                      "The request body cannot be read");
        return;
    }

    if (show->body.len > NGX_HTTP_VLM_OLLAMA_SHOW) {
        ngx_http_vlm_ollama_show_fail(show, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                      "The request body has %uz bytes, it may "
                                      "have %d", show->body.len,
                                      NGX_HTTP_VLM_OLLAMA_SHOW);
        return;
    }

    json = vlm_json_parse(show->body.data, show->body.len, &err);

    ngx_http_vlm_body_free(&show->body);

    if (json == NULL) {
        ngx_http_vlm_ollama_show_fail(show, NGX_HTTP_BAD_REQUEST, "%s",
                                      err.text);
        return;
    }

    ngx_http_vlm_ollama_show_model(show, json);

    vlm_json_free(json);
}


/* "name" is an older spelling of "model" */

static void
ngx_http_vlm_ollama_show_model(ngx_http_vlm_ollama_show_t *show,
    const vlm_json_t *json)
{
    ngx_str_t                   name;
    const vlm_json_t           *field;

    field = vlm_json_get(json, "model");

    if (!vlm_json_is_true(field)) {
        field = vlm_json_get(json, "name");
    }

    name.data = (u_char *) vlm_json_text(field);

    if (name.data == NULL || name.data[0] == '\0') {
        ngx_http_vlm_ollama_show_fail(show, NGX_HTTP_BAD_REQUEST,
                                      "model is required");
        return;
    }

    name.len = ngx_strlen(name.data);

    show->stream = vlm_json_bool(vlm_json_get(json,
                                              "stream"), 1);

    if (ngx_http_vlm_model_is(show->engine, &name) != NGX_OK) {
        ngx_http_vlm_ollama_show_fail(show, NGX_HTTP_NOT_FOUND,
                                      "model \"%*s\" not found, the model here "
                                      "is \"%V\"", ngx_min(name.len, 128),
                                      name.data, &show->engine->name);
    }
}


static void
ngx_http_vlm_ollama_show_fail(ngx_http_vlm_ollama_show_t *show,
    ngx_uint_t status, const char *fmt, ...)
{
    u_char   *last;
    va_list   args;

    show->status = status;

    va_start(args, fmt);
    last = ngx_vslprintf((u_char *) show->text,
                         (u_char *) show->text + sizeof(show->text) - 1,
                         fmt, args);
    va_end(args);

    *last = '\0';
}


static void
ngx_http_vlm_ollama_show_done(ngx_http_request_t *r, void *data)
{
    ngx_http_vlm_ollama_show_t *show = data;

    vlm_json_out_t              w;

    if (r->uri.len == sizeof("/api/pull") - 1
        && ngx_strncmp(r->uri.data, "/api/pull", r->uri.len) == 0)
    {
        ngx_http_finalize_request(r, ngx_http_vlm_ollama_pulled(r, show));
        return;
    }

    if (show->status) {
        ngx_http_finalize_request(r, ngx_http_vlm_send_error(r, show->status,
                                                             show->text));
        return;
    }

    vlm_json_init(&w, NGX_HTTP_VLM_OLLAMA_INFO);
    ngx_http_vlm_ollama_put_show(&w, show->engine);
    (void) vlm_json_done(&w);

    ngx_http_finalize_request(r, ngx_http_vlm_send_json(r, NGX_HTTP_OK, &w));
}


/* clients pull a model before they use it, whether it is here or not */

static ngx_int_t
ngx_http_vlm_ollama_pulled(ngx_http_request_t *r,
    ngx_http_vlm_ollama_show_t *show)
{
    ngx_http_complex_value_t  cv;

    static ngx_str_t  type = ngx_string("application/x-ndjson");
    static ngx_str_t  lines = ngx_string("{\"status\":\"pulling manifest\"}\n"
                                         "{\"status\":\"success\"}\n");
    static ngx_str_t  whole = ngx_string("{\"status\":\"success\"}\n");

    if (show->status == NGX_HTTP_NOT_FOUND) {
        return ngx_http_vlm_ollama_fixed_handler(r, show->engine, NULL);
    }

    if (show->status) {
        return ngx_http_vlm_send_error(r, show->status, show->text);
    }

    if (!show->stream) {
        return ngx_http_vlm_send(r, NGX_HTTP_OK, &whole);
    }

    ngx_memzero(&cv, sizeof(ngx_http_complex_value_t));
    cv.value = lines;

    return ngx_http_send_response(r, NGX_HTTP_OK, &type, &cv);
}


static void
ngx_http_vlm_ollama_put_show(vlm_json_out_t *w,
    ngx_http_vlm_engine_t *eng)
{
    vlm_json_open(w, '{');

    ngx_http_vlm_ollama_put_format(w, "modelfile", "FROM %V\n",
                                   &eng->conf.directory);
    ngx_http_vlm_ollama_put_format(w, "parameters",
                                   "num_ctx                        %uD\n"
                                   "num_predict                    %uD",
                                   eng->conf.vlm.context,
                                   eng->conf.vlm.max_tokens);
    ngx_http_vlm_ollama_put_format(w, "template",
                                   "{{- range .Messages }}%s{{ .Role }}\n"
                                   "{{ .Content }}%s\n"
                                   "{{ end }}%sassistant\n",
                                   eng->conf.facts.turn,
                                   eng->conf.facts.turn_end,
                                   eng->conf.facts.turn);

    ngx_http_vlm_ollama_put_details(w, eng);
    ngx_http_vlm_ollama_put_info(w, eng);

    vlm_json_add_open(w, "capabilities", '[');
    vlm_json_put_text(w, "completion", sizeof("completion") - 1);
    vlm_json_put_text(w, "vision", sizeof("vision") - 1);

    if (eng->conf.thinking) {
        vlm_json_put_text(w, "thinking", sizeof("thinking") - 1);
    }

    vlm_json_shut(w, ']');

    ngx_http_vlm_ollama_put_time(w, "modified_at", eng->conf.created, 0);

    vlm_json_shut(w, '}');
}


/* ---- endpoints that are not supported ------------------------------------ */


ngx_int_t
ngx_http_vlm_ollama_fixed_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_send_error(r, NGX_HTTP_FORBIDDEN,
                                   "The model of this server is named in its "
                                   "configuration: it cannot be pulled, "
                                   "pushed, created, copied or deleted");
}


ngx_int_t
ngx_http_vlm_ollama_embed_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    return ngx_http_vlm_send_error(r, NGX_HTTP_NOT_IMPLEMENTED,
                                   "The model of this server makes no "
                                   "embeddings");
}
