
/*
 * The models as Ollama's clients query them before they use one: /api/tags,
 * /api/ps, /api/show, /api/version; and the endpoints that a server whose
 * models are configured does not have.  All of it is known from the
 * configuration and the zones, so any worker answers.
 */


#include "ollama.h"

#include <ngx_sha1.h>


#define NGX_HTTP_VLM_OLLAMA_INFO   (256 * 1024)    /* bytes, of an answer */
#define NGX_HTTP_VLM_OLLAMA_SHOW   (64 * 1024)     /* bytes, of a body */
#define NGX_HTTP_VLM_OLLAMA_LATER  3153600000      /* s: a hundred years */

#define NGX_HTTP_VLM_OLLAMA_FIXED                                             \
    "The model of this server is named in its configuration: it cannot be "   \
    "pulled, pushed, created, copied or deleted"


static ngx_str_t  ngx_http_vlm_ollama_none = ngx_string("");


/* ---- lists --------------------------------------------------------------- */


ngx_int_t
ngx_http_vlm_ollama_version_handler(ngx_http_request_t *r,
    ngx_http_vlm_engine_t *eng, ngx_str_t *piece)
{
    static ngx_str_t  json = ngx_string("{\"version\":\""
                                        NGX_HTTP_VLM_OLLAMA_VERSION "\"}\n");

    return ngx_http_vlm_send(r, NGX_HTTP_OK, &json);
}


/*
 * 64 digits that look like SHA-256 but are no digest: the same while the
 * checkpoint, the format of its weights, and the adapter's directory are.
 */

static void
ngx_http_vlm_ollama_put_digest(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng,
    const char *adapter)
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
        ngx_sha1_update(&sha1, adapter, ngx_strlen(adapter));
        ngx_sha1_final(sum, &sha1);

        p = ngx_hex_dump(p, sum, 16);
    }

    vlm_json_add_text(w, "digest", (char *) digits, sizeof(digits));
}


/* a name without a tag has the tag "latest" */

static void
ngx_http_vlm_ollama_put_names(vlm_json_out_t *w, ngx_str_t *name)
{
    const char  *tag;

    tag = ngx_strlchr(name->data, name->data + name->len, ':') ? "" : ":latest";

    vlm_json_add_format(w, "name", "%.*s%s", (int) name->len, name->data, tag);
    vlm_json_add_format(w, "model", "%.*s%s", (int) name->len, name->data, tag);
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


/* parent: of an adapter, or empty */

static void
ngx_http_vlm_ollama_put_details(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng,
    ngx_str_t *parent)
{
    size_t       i;
    u_char       family[32], form[32];
    uint64_t     n;
    const char  *name;

    n = eng->conf.facts.parameters;
    name = vlm_weights_name(eng->conf.vlm.weights);

    ngx_http_vlm_ollama_family(eng, family);

    vlm_json_add_open(w, "details", '{');

    vlm_json_add_text(w, "parent_model", (char *) parent->data, parent->len);
    vlm_json_add_string(w, "format",
                        eng->conf.vlm.mmproj ? "gguf" : "safetensors");
    vlm_json_add_string(w, "family", (char *) family);

    vlm_json_add_open(w, "families", '[');
    vlm_json_put_text(w, (char *) family, ngx_strlen(family));
    vlm_json_shut(w, ']');

    if (n >= 1000000000) {
        vlm_json_add_format(w, "parameter_size", "%.1fB", n / 1e9);

    } else {
        vlm_json_add_format(w, "parameter_size", "%.2fM", n / 1e6);
    }

    for (i = 0; name[i] && i < sizeof(form) - 1; i++) {
        form[i] = ngx_toupper(name[i]);
    }

    form[i] = '\0';

    vlm_json_add_string(w, "quantization_level", (char *) form);

    vlm_json_shut(w, '}');
}


/* an entry of /api/tags; adapter: its directory, or empty */

static void
ngx_http_vlm_ollama_put_model(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng,
    ngx_str_t *name, const char *adapter)
{
    vlm_json_open(w, '{');
    ngx_http_vlm_ollama_put_names(w, name);

    ngx_http_vlm_ollama_put_time(w, "modified_at", eng->conf.created, 0);

    vlm_json_add_int(w, "size", eng->conf.plan.weights);

    ngx_http_vlm_ollama_put_digest(w, eng, adapter);
    ngx_http_vlm_ollama_put_details(w, eng,
                                    *adapter ? &eng->name
                                             : &ngx_http_vlm_ollama_none);
    vlm_json_shut(w, '}');
}


static void
ngx_http_vlm_ollama_put_tags(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng)
{
    ngx_str_t           *name, adapter;
    ngx_uint_t           i;
    ngx_http_vlm_shm_t   shm;

    for (i = 0; (name = ngx_http_vlm_model_name(eng, i)) != NULL; i++) {
        ngx_http_vlm_ollama_put_model(w, eng, name, "");
    }

    ngx_http_vlm_zone_texts(eng, &shm);

    for (i = 0; eng->conf.vlm.lora && i < VLM_MAX_ADAPTERS; i++) {

        if (shm.adapters[i].listed) {
            adapter.data = (u_char *) shm.adapters[i].name;
            adapter.len = ngx_strlen(adapter.data);
            ngx_http_vlm_ollama_put_model(w, eng, &adapter,
                                          shm.adapters[i].dir);
        }
    }
}


/* the loaded models: one once it is loaded, under one name */

static void
ngx_http_vlm_ollama_put_loaded(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t          cpu;
    ngx_http_vlm_shm_t  shm;

    ngx_http_vlm_zone_texts(eng, &shm);

    cpu = ngx_strncmp(shm.device, "cpu", 3) == 0;

    if (shm.state == NGX_HTTP_VLM_READY) {
        vlm_json_open(w, '{');
        ngx_http_vlm_ollama_put_names(w, &eng->name);

        vlm_json_add_int(w, "size", shm.plan.total);
        vlm_json_add_int(w, "size_vram", cpu ? 0 : shm.plan.total);

        ngx_http_vlm_ollama_put_digest(w, eng, "");
        ngx_http_vlm_ollama_put_details(w, eng, &ngx_http_vlm_ollama_none);

        ngx_http_vlm_ollama_put_time(w, "expires_at", ngx_time()
                                        + NGX_HTTP_VLM_OLLAMA_LATER, 0);

        vlm_json_add_int(w, "context_length", eng->conf.vlm.context);
        vlm_json_shut(w, '}');
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

    if (ngx_http_vlm_model_adapter(ctx, &name) != NGX_OK
        && ngx_http_vlm_model_is(ctx->engine, &name) != NGX_OK)
    {
        (void) ngx_http_vlm_model_missing(ctx, &name);
    }
}


/* a thread: the model that the body names, or ctx->error */

static void
ngx_http_vlm_ollama_find(ngx_http_vlm_ctx_t *ctx)
{
    vlm_err_t    err;
    vlm_json_t  *json;

    if (ngx_http_vlm_body_get(ctx) != NGX_OK) {
        return;
    }

    if (ctx->body.len > NGX_HTTP_VLM_OLLAMA_SHOW) {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                 "The request body has %uz bytes, it may "
                                 "have %d", ctx->body.len,
                                 NGX_HTTP_VLM_OLLAMA_SHOW);
        return;
    }

    json = vlm_json_parse(ctx->body.data, ctx->body.len, &err);

    if (json == NULL) {
        (void) ngx_http_vlm_fail_input(ctx, "%s", err.text);
        return;
    }

    ngx_http_vlm_ollama_find_model(ctx, json);

    vlm_json_free(json);
}


/* the context length is this server's, because clients cut their prompts to
   it */

static void
ngx_http_vlm_ollama_put_info(vlm_json_out_t *w, ngx_http_vlm_engine_t *eng)
{
    u_char        family[32], name[64];
    ngx_uint_t    i;
    vlm_facts_t  *f = &eng->conf.facts;

    const struct {
        const char  *key;
        uint64_t     n;
    } facts[] = {
        { "attention.head_count", f->heads },
        { "attention.head_count_kv", f->kv_heads },
        { "block_count", f->layers },
        { "context_length", eng->conf.vlm.context },
        { "embedding_length", f->hidden },
        { "feed_forward_length", f->mlp },
        { "vision.block_count", f->vision_layers },
        { "vision.patch_size", f->patch },
        { "vocab_size", f->vocab }
    };

    ngx_http_vlm_ollama_family(eng, family);

    vlm_json_add_open(w, "model_info", '{');

    vlm_json_add_string(w, "general.architecture", (char *) family);
    vlm_json_add_text(w, "general.basename", (char *) eng->conf.directory.data,
                      eng->conf.directory.len);

    vlm_json_add_int(w, "general.parameter_count", f->parameters);

    for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        (void) ngx_snprintf(name, sizeof(name), "%s.%s%Z", family,
                            facts[i].key);
        vlm_json_add_int(w, (char *) name, facts[i].n);
    }

    vlm_json_shut(w, '}');
}


void
ngx_http_vlm_ollama_show(ngx_http_vlm_ctx_t *ctx)
{
    vlm_json_out_t         *w;
    ngx_http_vlm_engine_t  *eng;

    ngx_http_vlm_ollama_find(ctx);

    if (ctx->error.status) {
        return;
    }

    eng = ctx->engine;
    w = &ctx->out.json;

    vlm_json_init(w, NGX_HTTP_VLM_OLLAMA_INFO);
    vlm_json_open(w, '{');

    vlm_json_add_format(w, "modelfile", "FROM %.*s\n",
                        (int) eng->conf.directory.len,
                        eng->conf.directory.data);
    vlm_json_add_format(w, "parameters",
                        "num_ctx                        %u\n"
                        "num_predict                    %u",
                        eng->conf.vlm.context, eng->conf.vlm.max_tokens);
    if (eng->conf.facts.turn == NULL) {
        vlm_json_add_string(w, "template", "{{ .Prompt }}");

    } else {
        vlm_json_add_format(w, "template",
                            "{{- range .Messages }}%s{{ .Role }}\n"
                            "{{ .Content }}%s\n"
                            "{{ end }}%sassistant\n",
                            eng->conf.facts.turn, eng->conf.facts.turn_end,
                            eng->conf.facts.turn);
    }

    ngx_http_vlm_ollama_put_details(w, eng,
                                    ctx->adapter[0]
                                    ? &eng->name : &ngx_http_vlm_ollama_none);
    ngx_http_vlm_ollama_put_info(w, eng);

    vlm_json_add_open(w, "capabilities", '[');
    vlm_json_put_text(w, "completion", sizeof("completion") - 1);

    if (eng->conf.facts.vision_layers > 0) {
        vlm_json_put_text(w, "vision", sizeof("vision") - 1);
    }

    if (eng->conf.thinking) {
        vlm_json_put_text(w, "thinking", sizeof("thinking") - 1);
    }

    vlm_json_shut(w, ']');

    ngx_http_vlm_ollama_put_time(w, "modified_at", eng->conf.created, 0);

    vlm_json_shut(w, '}');
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
