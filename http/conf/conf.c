
/*
 * The directives vlm_engine and vlm_pass, and the configuration text that they
 * generate.
 *
 * The hop from any worker to the designated one is nginx's own proxy to a
 * server on a unix socket.  Both are written as configuration text and parsed
 * as if they stood in the file; docs/directives.md quotes them.
 */


#include "conf.h"
#include "../api/model.h"
#include "base/cgroup.h"


#define NGX_HTTP_VLM_TEXT     4096         /* of generated configuration */
#define NGX_HTTP_VLM_NAME     32           /* of an engine */
#define NGX_HTTP_VLM_PREPARE  8            /* requests in threads, at most */


/* the text of vlm_engine, in http{}: name, socket, socket, name */

static char  ngx_http_vlm_server_text[] =
    "upstream vlm_%V {\n"
    "    server \"unix:%V\" max_fails=0;\n"
    "}\n"
    "server {\n"
    "    listen \"unix:%V\";\n"
    "    vlm_inner %V;\n"
    "    access_log off;\n"
    "    gzip off;\n"
    "    client_max_body_size 0;\n"
    "    client_header_timeout 1d;\n"
    "    large_client_header_buffers 64 1m;\n"
    "    client_body_timeout 1d;\n"
    "    send_timeout 1d;\n"
    "    add_header X-Vlm-Inner \"\";\n"
    "}\n"
    "}";


/* the text of vlm_engine, in main: name, number of threads */

static char  ngx_http_vlm_pool_text[] =
    "thread_pool \"vlm_prepare %V\" threads=%ui;\n"
    "}\n";


/* the text of vlm_pass, in its location: name, or the variable of one that is
   chosen by the body */

static char  ngx_http_vlm_location_text[] =
    "proxy_pass http://vlm_%V;\n"
    "proxy_http_version 1.1;\n"
    "proxy_method $request_method;\n"
    "proxy_buffering off;\n"
    "proxy_request_buffering off;\n"
    "proxy_max_temp_file_size 0;\n"
    "proxy_next_upstream off;\n"
    "proxy_ignore_client_abort off;\n"
    "proxy_intercept_errors off;\n"
    "proxy_redirect off;\n"
    "proxy_cache off;\n"
    "proxy_store off;\n"
    "proxy_connect_timeout 5s;\n"
    "proxy_read_timeout 1d;\n"
    "proxy_send_timeout 1d;\n"
    "proxy_limit_rate 0;\n"
    "proxy_bind off;\n"
    "proxy_pass_request_headers on;\n"
    "proxy_pass_request_body on;\n"
    "proxy_set_header Host vlm;\n"
    "proxy_set_header Connection close;\n"
    "proxy_set_header X-Vlm-Id $request_id;\n"
    "proxy_set_header X-Vlm-Line $vlm_line;\n"
    "proxy_hide_header X-Vlm-Usage;\n"
    "proxy_pass_header X-Accel-Buffering;\n"
    "}";


/* parses directives from memory, as if they stood where cf stands */

static char *
ngx_http_vlm_text(ngx_conf_t *cf, char *name, const char *fmt, ...)
{
    char             *rv;
    u_char           *text;
    va_list           args;
    ngx_buf_t         b;
    ngx_array_t      *saved_args;
    ngx_conf_file_t  *saved, file;

    text = ngx_pnalloc(cf->pool, NGX_HTTP_VLM_TEXT);
    if (text == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(&b, sizeof(ngx_buf_t));

    b.start = text;
    b.pos = text;

    va_start(args, fmt);
    b.last = ngx_vslprintf(text, text + NGX_HTTP_VLM_TEXT, fmt, args);
    va_end(args);

    b.end = b.last;

    ngx_log_error(NGX_LOG_DEBUG, cf->log, 0, "%s: %*s", name,
                  (size_t) (b.last - b.pos - 1), b.pos);

    saved = cf->conf_file;
    saved_args = cf->args;

    /* its open file selects the parsing of a block, which a "}" ends */

    file = *saved;
    file.buffer = &b;
    file.file.offset = ngx_file_size(&file.file.info);
    file.file.name.data = (u_char *) name;
    file.file.name.len = ngx_strlen(name);
    file.line = 1;
    file.dump = NULL;

    cf->conf_file = &file;
    cf->args = ngx_array_create(cf->pool, 10, sizeof(ngx_str_t));

    rv = cf->args ? ngx_conf_parse(cf, NULL) : NGX_CONF_ERROR;

    cf->conf_file = saved;
    cf->args = saved_args;

    return rv;
}


/*
 * The requests that are prepared at once: as many as the processors that the
 * engine leaves idle, and two on a machine that it fills.
 */

static ngx_uint_t
ngx_http_vlm_prepares(ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t  all, engine;

    all = eng->conf.processors;

    engine = eng->conf.plan.device ? 1
             : eng->conf.vlm.threads ? eng->conf.vlm.threads : all;

    return all <= engine + 2 ? 2 : ngx_min(all - engine, NGX_HTTP_VLM_PREPARE);
}


/*
 * nginx's "default" pool, and one of our own, which runs no other module's
 * tasks.  It has a thread for every request that is prepared, for every slot,
 * whose turn is stored, for every document that is read and as many pages that
 * are drawn for people and for prompts, for their vectors, and for the lock's
 * files.
 */

static char *
ngx_http_vlm_pools(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    char        *rv;
    ngx_str_t    pool;
    ngx_conf_t   saved;

    ngx_str_set(&pool, "default");

    eng->threads = ngx_thread_pool_add(cf, &pool);
    if (eng->threads == NULL) {
        return NGX_CONF_ERROR;
    }

    eng->conf.processors = vlm_processors();
    eng->conf.prepare = ngx_http_vlm_prepares(eng);

    saved = *cf;

    cf->ctx = cf->cycle->conf_ctx;
    cf->module_type = NGX_CORE_MODULE;
    cf->cmd_type = NGX_MAIN_CONF;

    rv = ngx_http_vlm_text(cf, "(vlm_engine)", ngx_http_vlm_pool_text,
                           &eng->name,
                           eng->conf.prepare + 2 + eng->conf.vlm.slots
                           + (eng->conf.documents.on
                              ? 3 * eng->conf.documents.jobs
                                + eng->conf.documents.hybrid : 0));
    *cf = saved;

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (ngx_http_vlm_format(cf->pool, &pool, "vlm_prepare %V", &eng->name)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    eng->prepares = ngx_thread_pool_add(cf, &pool);

    return eng->prepares ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static char *
ngx_http_vlm_finish(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    ngx_str_t  socket, *path;

    if (ngx_http_vlm_paths(cf, eng) != NGX_CONF_OK
        || ngx_http_vlm_check(cf, eng) != NGX_CONF_OK
        || ngx_http_vlm_pools(cf, eng) != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    ngx_http_vlm_model_init(eng);

    eng->calls = &ngx_http_vlm_queue_calls;
    eng->life.ready_to_start = ngx_http_vlm_check_start;

    /* a string of the configuration has the escapes of JSON */

    path = &eng->conf.socket;

    socket.len = path->len + ngx_escape_json(NULL, path->data, path->len);
    socket.data = ngx_pnalloc(cf->pool, socket.len);

    if (socket.data == NULL || ngx_http_vlm_zone_add(cf, eng) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    (void) ngx_escape_json(socket.data, path->data, path->len);

    return ngx_http_vlm_text(cf, "(vlm_engine)", ngx_http_vlm_server_text,
                             &eng->name, &socket, &socket, &eng->name);
}


static ngx_uint_t
ngx_http_vlm_name_ok(ngx_str_t *name)
{
    static const char  allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    return name->len && name->len <= NGX_HTTP_VLM_NAME
           && strspn((char *) name->data, allowed) == name->len;
}


/* the engine of that name, which vlm_engine may define later; NULL: no
   memory */

static ngx_http_vlm_engine_t *
ngx_http_vlm_named(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_uint_t                  i;
    ngx_http_vlm_engine_t     **p, *eng;
    ngx_http_vlm_main_conf_t   *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_vlm_module);

    p = mcf->engines.elts;

    for (i = 0; i < mcf->engines.nelts; i++) {

        /* names of upstreams, as hosts, have no case */

        if (p[i]->name.len == name->len
            && ngx_strncasecmp(p[i]->name.data, name->data, name->len) == 0)
        {
            return p[i];
        }
    }

    eng = ngx_pcalloc(cf->pool, sizeof(ngx_http_vlm_engine_t));
    p = eng ? ngx_array_push(&mcf->engines) : NULL;
    if (p == NULL) {
        return NULL;
    }

    *p = eng;

    eng->name = *name;
    eng->conf.file = cf->conf_file->file.name.data;
    eng->conf.line = cf->conf_file->line;
    ngx_memset(eng->life.lock_fds, 0xff, sizeof(eng->life.lock_fds));

    return eng;
}


char *
ngx_http_vlm_engine_block(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                   *rv;
    ngx_str_t              *value;
    ngx_http_vlm_engine_t  *eng;

    value = cf->args->elts;

    if (!ngx_http_vlm_name_ok(&value[1])) {
        return ngx_http_vlm_conf_error(cf, "vlm_engine name \"%V\" is not 1 to "
                                       "%d letters, digits, \"-\" or \"_\"",
                                       &value[1], NGX_HTTP_VLM_NAME);
    }

    eng = ngx_http_vlm_named(cf, &value[1]);
    if (eng == NULL) {
        return NGX_CONF_ERROR;
    }

    if (eng->conf.defined) {
        return ngx_http_vlm_conf_error(cf, "duplicate vlm_engine \"%V\"",
                                       &value[1]);
    }

    eng->name = value[1];
    eng->cycle = cf->cycle;
    eng->conf.file = cf->conf_file->file.name.data;
    eng->conf.line = cf->conf_file->line;
    eng->conf.defined = 1;

    rv = ngx_http_vlm_param_block(cf, eng);

    return rv != NGX_CONF_OK ? rv : ngx_http_vlm_finish(cf, eng);
}


/* lists the engines, because the name is most often a misspelling of one */

static void
ngx_http_vlm_unknown(ngx_conf_t *cf, ngx_str_t *name, u_char *file,
    ngx_uint_t line)
{
    u_char                      text[NGX_MAX_CONF_ERRSTR / 2], *p;
    ngx_uint_t                  i;
    ngx_http_vlm_engine_t     **eng;
    ngx_http_vlm_main_conf_t   *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_vlm_module);

    eng = mcf->engines.elts;
    p = text;

    for (i = 0; i < mcf->engines.nelts; i++) {

        if (eng[i]->conf.defined) {
            p = ngx_slprintf(p, text + sizeof(text), "%s\"%V\"",
                             p == text ? "there is " : ", ", &eng[i]->name);
        }
    }

    if (p == text) {
        p = ngx_slprintf(p, text + sizeof(text), "there is none");
    }

    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "unknown vlm_engine \"%V\" in %s:%ui; %*s", name, file, line,
                  (size_t) (p - text), text);
}


/* runs once for each upstream, before any host name would be looked up */

static ngx_int_t
ngx_http_vlm_init_upstream(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    ngx_str_t  name;

    if (!(us->flags & NGX_HTTP_UPSTREAM_CREATE)) {

        name.len = us->host.len - (sizeof("vlm_") - 1);
        name.data = us->host.data + sizeof("vlm_") - 1;

        ngx_http_vlm_unknown(cf, &name, us->file_name, us->line);
        return NGX_ERROR;
    }

    return ngx_http_upstream_init_round_robin(cf, us);
}


/*
 * Has the user set client_max_body_size in http{}, server{} or the location,
 * before this directive?  One set after it shows in the value, unless that is
 * the default's.
 */

static ngx_int_t
ngx_http_vlm_body_size_set(ngx_conf_t *cf)
{
    ngx_uint_t                 i;
    ngx_http_conf_ctx_t       *ctx[3];
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_core_srv_conf_t  *cscf;

    ctx[0] = cf->ctx;

    cscf = ctx[0]->srv_conf[ngx_http_core_module.ctx_index];

    ctx[1] = cscf->ctx;
    ctx[2] = (ngx_http_conf_ctx_t *)
             cf->cycle->conf_ctx[ngx_http_module.index];

    for (i = 0; i < 3; i++) {
        clcf = ctx[i]->loc_conf[ngx_http_core_module.ctx_index];

        if (clcf->client_max_body_size != NGX_CONF_UNSET) {
            return 1;
        }
    }

    return 0;
}


/* the target of the generated location */

static char *
ngx_http_vlm_pass_hop(ngx_conf_t *cf, ngx_http_vlm_loc_conf_t *lcf)
{
    ngx_url_t                      u;
    ngx_http_vlm_engine_t         *eng;
    ngx_http_upstream_srv_conf_t  *us;

    static ngx_str_t  chosen = ngx_string("$vlm_engine");

    if (lcf->engines->nelts > 1) {
        return ngx_http_vlm_text(cf, "(vlm_pass)", ngx_http_vlm_location_text,
                                 &chosen);
    }

    eng = lcf->engine;

    /* only the generated text can define the name: it is not resolved */

    ngx_memzero(&u, sizeof(ngx_url_t));

    u.default_port = 80;
    u.no_resolve = 1;

    us = ngx_http_vlm_format(cf->pool, &u.url, "vlm_%V", &eng->name) == NGX_OK
         ? ngx_http_upstream_add(cf, &u, 0) : NULL;
    if (us == NULL) {
        return NGX_CONF_ERROR;
    }

    us->peer.init_upstream = ngx_http_vlm_init_upstream;

    return ngx_http_vlm_text(cf, "(vlm_pass)", ngx_http_vlm_location_text,
                             &eng->name);
}


/* the engine of each name */

static char *
ngx_http_vlm_pass_engines(ngx_conf_t *cf, ngx_http_vlm_loc_conf_t *lcf)
{
    ngx_str_t                 *value;
    ngx_uint_t                 i;
    ngx_http_vlm_engine_t    **eng;
    ngx_http_vlm_passed_t     *passed;
    ngx_http_vlm_main_conf_t  *mcf;

    if (cf->args->nelts - 1 > NGX_HTTP_VLM_ENGINES) {
        return ngx_http_vlm_conf_error(cf, "vlm_pass has %ui engines, it may "
                                       "have %d", cf->args->nelts - 1,
                                       NGX_HTTP_VLM_ENGINES);
    }

    value = cf->args->elts;

    lcf->engines = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                    sizeof(ngx_http_vlm_engine_t *));
    if (lcf->engines == NULL) {
        return NGX_CONF_ERROR;
    }

    eng = lcf->engines->elts;

    for (i = 0; i < cf->args->nelts - 1; i++) {

        if (!ngx_http_vlm_name_ok(&value[i + 1])) {
            return ngx_http_vlm_conf_error(cf, "unknown vlm_engine \"%V\"",
                                           &value[i + 1]);
        }

        eng[i] = ngx_http_vlm_named(cf, &value[i + 1]);
        if (eng[i] == NULL) {
            return NGX_CONF_ERROR;
        }

        eng[i]->conf.passed = 1;
        lcf->engines->nelts++;
    }

    lcf->engine = eng[0];

    if (i == 1) {
        return NGX_CONF_OK;
    }

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_vlm_module);

    passed = ngx_array_push(&mcf->passes);
    if (passed == NULL) {
        return NGX_CONF_ERROR;
    }

    passed->engines = lcf->engines;
    passed->file = cf->conf_file->file.name.data;
    passed->line = cf->conf_file->line;

    return NGX_CONF_OK;
}


char *
ngx_http_vlm_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_vlm_loc_conf_t *lcf = conf;

    ngx_http_core_loc_conf_t  *clcf;

    if (lcf->engine) {
        return "is duplicate";
    }

    if (ngx_http_vlm_pass_engines(cf, lcf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->handler) {
        return "is refused: this location already has a handler; remove "
               "\"proxy_pass\", \"fastcgi_pass\" or another handler";
    }

    if (ngx_http_vlm_pass_hop(cf, lcf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (clcf->error_pages == NULL) {

        /* error pages of http{} and server{} are for people, not for clients
           of an API; those in this location are still added */

        clcf->error_pages = ngx_array_create(cf->pool, 1,
                                             sizeof(ngx_http_err_page_t));
        if (clcf->error_pages == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    lcf->hop = clcf->handler;
    lcf->max_body = ngx_http_vlm_body_size_set(cf) ? 0 : 64 * 1024 * 1024;

    clcf->handler = ngx_http_vlm_handler;

    return NGX_CONF_OK;
}


/* engines of one location: each name means one of them, and they share their
   sessions and uploads */

static char *
ngx_http_vlm_passed_check(ngx_conf_t *cf, ngx_http_vlm_passed_t *passed,
    ngx_http_vlm_engine_t *one, ngx_http_vlm_engine_t *other)
{
    ngx_str_t         *name;
    vlm_redis_conf_t  *r[2];

    name = ngx_http_vlm_model_shared(one, other);

    if (name) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%V\" would mean both vlm_engine \"%V\" and \"%V\" of "
                      "vlm_pass in %s:%ui: it is an engine's name, an alias or "
                      "the name of a checkpoint's directory",
                      name, &one->name, &other->name, passed->file,
                      passed->line);
        return NGX_CONF_ERROR;
    }

    r[0] = one->conf.redis;
    r[1] = other->conf.redis;

    if (ngx_strcmp(one->conf.files_dir.data, other->conf.files_dir.data) != 0
        || (r[0] == NULL) != (r[1] == NULL)
        || (r[0] && (r[0]->database != r[1]->database
                     || ngx_strcmp(r[0]->name, r[1]->name) != 0)))
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "vlm_engine \"%V\" and \"%V\" of vlm_pass in %s:%ui "
                      "have different stores: they share sessions and uploads",
                      &one->name, &other->name, passed->file, passed->line);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_vlm_engines_check(ngx_conf_t *cf, void *conf)
{
    ngx_http_vlm_main_conf_t *mcf = conf;

    ngx_uint_t               i, j, k;
    ngx_http_vlm_engine_t  **eng;
    ngx_http_vlm_passed_t   *passed;

    eng = mcf->engines.elts;

    for (i = 0; i < mcf->engines.nelts; i++) {

        if (!eng[i]->conf.defined) {
            ngx_http_vlm_unknown(cf, &eng[i]->name, eng[i]->conf.file,
                                 eng[i]->conf.line);
            return NGX_CONF_ERROR;
        }

        if (!eng[i]->conf.passed) {
            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "vlm_engine \"%V\" in %s:%ui: no location has "
                          "\"vlm_pass %V\": the engine takes its memory, but "
                          "answers no request",
                          &eng[i]->name, eng[i]->conf.file, eng[i]->conf.line,
                          &eng[i]->name);
        }
    }

    passed = mcf->passes.elts;

    for (i = 0; i < mcf->passes.nelts; i++) {
        eng = passed[i].engines->elts;

        for (j = 1; j < passed[i].engines->nelts; j++) {
            for (k = 0; k < j; k++) {
                if (ngx_http_vlm_passed_check(cf, &passed[i], eng[k], eng[j])
                    != NGX_CONF_OK)
                {
                    return NGX_CONF_ERROR;
                }
            }
        }
    }

    return NGX_CONF_OK;
}


char *
ngx_http_vlm_inner(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_vlm_loc_conf_t *lcf = conf;

    ngx_str_t              *value;
    ngx_http_vlm_engine_t  *eng;

    value = cf->args->elts;

    eng = ngx_http_vlm_named(cf, &value[1]);
    if (eng == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ngx_strcmp(cf->conf_file->file.name.data, "(vlm_engine)") != 0) {
        return "is written by vlm_engine only";
    }

    lcf->engine = eng;
    lcf->inner = 1;

    return NGX_CONF_OK;
}


char *
ngx_http_vlm_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_vlm_loc_conf_t *lcf = conf;

    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    if (lcf->status) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 3) {

        if (ngx_strcmp(value[2].data, "from=any") == 0) {
            lcf->status_any = 1;

        } else if (ngx_strcmp(value[2].data, "from=loopback") != 0) {
            return ngx_http_vlm_conf_error(cf, "\"%V\" is not from=loopback or "
                                           "from=any",
                                           &value[2]);
        }
    }

    lcf->status = ngx_http_vlm_named(cf, &value[1]);
    if (lcf->status == NULL) {
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_vlm_status_handler;

    return NGX_CONF_OK;
}
