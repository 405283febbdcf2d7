
/*
 * Checks an engine's configuration before it replaces one that works: makes
 * the plan, and looks whether every file that the engine will read is there,
 * is valid, and may be read by the workers' user.
 *
 * The plan is made while the configuration is read, because its messages name
 * file and line.  The files are read by a child process that first takes the
 * workers' user, as a worker will: later, when "user" is known wherever it
 * stands, and still before anything of the old configuration has changed.
 */


#include "conf.h"
#include "base/cgroup.h"
#include "base/child.h"
#include "base/folder.h"
#include <grp.h>


#define NGX_HTTP_VLM_KEEP        (64 << 20)    /* bytes of weights, from which
                                                  on they have a quantised
                                                  cache */
#define NGX_HTTP_VLM_CHECK_TIME  60000         /* ms, for all the files */


/* what a process of its own reads */

typedef struct {
    ngx_http_vlm_engine_t  *engine;
    ngx_int_t             (*read)(ngx_http_vlm_engine_t *eng, vlm_err_t *err);
} ngx_http_vlm_check_t;


/* beside the weights: in the model's directory, or in that of its file */

static ngx_int_t
ngx_http_vlm_check_cache(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    size_t       len;
    ngx_str_t    dir;
    const char  *model;

    model = eng->conf.vlm.model;
    eng->conf.vlm.cache = model;

    if (!eng->conf.facts.gguf) {
        return NGX_OK;
    }

    if (ngx_http_vlm_format(cf->pool, &dir, "%*s",
                            (size_t) (vlm_file_name(model, &len) - model),
                            model)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    eng->conf.vlm.cache = (char *) dir.data;

    return NGX_OK;
}


/* for a person: "nginx -t" prints no notices of a log on the terminal */

static void
ngx_http_vlm_check_show(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng,
    const char *fmt, ...)
{
    u_char    text[NGX_MAX_CONF_ERRSTR];
    size_t    len;
    va_list   args;

    va_start(args, fmt);
    len = ngx_vslprintf(text, text + sizeof(text), fmt, args) - text;
    va_end(args);

    if (!ngx_test_config) {
        ngx_http_vlm_log(NGX_LOG_NOTICE, cf->log, 0, eng, "%*s", len, text);

    } else if (!ngx_quiet_mode) {
        ngx_log_stderr(0, "vlm_engine \"%V\": %*s", &eng->name, len, text);
    }
}


static void
ngx_http_vlm_check_log(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    u_char       lora[NGX_INT64_LEN + sizeof("lora m, ")];
    u_char       encoder[NGX_INT64_LEN + sizeof("encoder m in RAM, ")];
    vlm_plan_t  *plan;

    plan = &eng->conf.plan;
    lora[0] = '\0';
    encoder[0] = '\0';

    if (plan->lora) {
        *ngx_sprintf(lora, "lora %uLm, ", vlm_mib(plan->lora)) = '\0';
    }

    if (plan->encoder) {
        *ngx_sprintf(encoder, "encoder %uLm%s, ", vlm_mib(plan->encoder),
                     plan->device ? " in RAM" : "")
            = '\0';
    }

    ngx_http_vlm_check_show(cf, eng, "%uLm planned (weights %uLm, vision %uLm, "
                            "%skv %uLm, workspace %uLm, %sdevice %uLm)%s, "
                            "thinking %s%s", vlm_mib(plan->total),
                            vlm_mib(plan->weights), vlm_mib(plan->vision),
                            lora, vlm_mib(plan->kv),
                            vlm_mib(plan->workspace), encoder,
                            vlm_mib(plan->device),
                            eng->conf.vlm.memory ? ""
                                                 : ", memory is not bounded",
                            eng->conf.thinking ? "on" : "off",
                            eng->conf.thinking_auto ? " (auto)" : "");

    if (eng->conf.overlap) {
        ngx_http_vlm_check_show(cf, eng, "%uLm while a reload lasts: two "
                                "workers have the model (reload overlap)",
                                vlm_mib(2 * plan->total));
    }

    if (eng->conf.facts.vision_layers && !eng->conf.facts.processor) {
        ngx_http_vlm_check_show(cf, eng, "neither preprocessor_config.json nor "
                                "processor_config.json has the settings of "
                                "pictures: the defaults of %s are used",
                                eng->conf.facts.family);
    }

    if (eng->conf.facts.template_unknown) {
        ngx_http_vlm_check_show(cf, eng, "the model's chat template is none "
                                "that was compared: %s, \"template\" chooses "
                                "its words", eng->conf.facts.turn
                                ? "messages are written as its family does"
                                : "it takes raw prompts alone");
    }
}


/* a warning, because there may be swap */

static void
ngx_http_vlm_check_ram(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    uint64_t            total;
    vlm_ram_t           ram;

    vlm_ram("", &ram);

    total = eng->conf.plan.total * (eng->conf.overlap ? 2 : 1);

    /* a plan with a device is for its memory, not for RAM */

    if (eng->conf.plan.device || ram.bytes == 0 || total <= ram.bytes) {
        return;
    }

    ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                       "vlm_engine \"%V\": %uLm planned%s, %s %uLm",
                       &eng->name, vlm_mib(total),
                       eng->conf.overlap ? " while a reload lasts" : "",
                       ram.group ? "the control group may use"
                                 : "this machine has",
                       vlm_mib(ram.bytes));
}


char *
ngx_http_vlm_check(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    char             above[NGX_MAX_PATH];
    vlm_err_t        err;
    ngx_file_info_t  fi;

    if (ngx_process == NGX_PROCESS_SIGNALLER) {

        /* "nginx -s stop" needs no model */

        return NGX_CONF_OK;
    }

    ngx_memzero(&err, sizeof(vlm_err_t));

    if (eng->conf.documents.on) {
        eng->conf.vlm.encoder = eng->conf.documents.encoding.weights
                                + eng->conf.documents.encoding.workspace;
    }

    if (vlm_plan(&eng->conf.vlm, &eng->conf.plan, &err) != 0
        || vlm_facts(&eng->conf.vlm, &eng->conf.facts, &err) != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "vlm_engine \"%V\": %s",
                           &eng->name, err.text);
        return NGX_CONF_ERROR;
    }

    if (eng->conf.thinking == NGX_CONF_UNSET_UINT) {
        eng->conf.thinking = vlm_thinks(&eng->conf.facts, eng->conf.model);
        eng->conf.thinking_auto = 1;
    }

    if (!eng->conf.cache_set && eng->conf.plan.weights >= NGX_HTTP_VLM_KEEP
        && ngx_http_vlm_check_cache(cf, eng) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    ngx_http_vlm_check_log(cf, eng);
    ngx_http_vlm_check_ram(cf, eng);

    if (eng->conf.plan.left_out) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "vlm_engine \"%V\": adapters left out until they "
                           "can be loaded: %uD, the first: %s", &eng->name,
                           eng->conf.plan.left_out,
                           eng->conf.plan.left_out_reason);
    }

    if (eng->conf.vlm.context > eng->conf.facts.context_max) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "vlm_engine \"%V\": context %uD is more than the "
                           "%uD that the model was made for "
                           "(max_position_embeddings)", &eng->name,
                           eng->conf.vlm.context, eng->conf.facts.context_max);
    }

    if (eng->conf.vlm.cache
        && (ngx_file_info(eng->conf.vlm.cache, &fi) == NGX_FILE_ERROR
            || !ngx_is_dir(&fi))
        && !vlm_folder_is_new(eng->conf.vlm.cache, above, sizeof(above)))
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "vlm_engine \"%V\": cache \"%s\" is not a "
                           "directory: each start quantises the weights again",
                           &eng->name, eng->conf.vlm.cache);
    }

    return NGX_CONF_OK;
}


/* sets the user and groups as nginx does in a worker, which reports an error;
   NGX_DECLINED: the user stays */

static ngx_int_t
ngx_http_vlm_check_user(ngx_http_vlm_engine_t *eng, char *name)
{
    uid_t  uid;
    gid_t  gid;

    ngx_http_vlm_master_user(eng->cycle, &uid, &gid);

    return uid == (uid_t) -1 || setgid(gid) == -1
           || initgroups(name, gid) == -1 || setuid(uid) == -1
           ? NGX_DECLINED : NGX_OK;
}


/* OCR needs a library, data, and the memory of a reader: a page is tried */

static int
ngx_http_vlm_check_ocr(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    vlm_reader_t  reader;

    if (!eng->conf.documents.on || eng->conf.documents.languages == NULL) {
        return 0;
    }

    ngx_http_vlm_reading_prepare(eng, &reader);

    return vlm_reader_ocr(&reader, err);
}


/* opens and reads every file that a worker does */

static ngx_int_t
ngx_http_vlm_check_read(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    vlm_plan_t  plan;

    return vlm_open(&eng->conf.vlm, err)
           && vlm_plan(&eng->conf.vlm, &plan, err) == 0 ? NGX_OK : NGX_ERROR;
}


/* the same of what the model serves without; an encoder that has no plan has a
   warning already */

static ngx_int_t
ngx_http_vlm_check_beside(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    ngx_http_vlm_documents_conf_t  *documents;

    documents = &eng->conf.documents;

    return (documents->encoding.dim == 0
            || ngx_http_vlm_encoding_open(documents->encoder, err))
           && ngx_http_vlm_check_ocr(eng, err) == 0 ? NGX_OK : NGX_ERROR;
}


/* in a process of its own: the first error, and the user who met it */

static size_t
ngx_http_vlm_check_child(void *data, char *text, size_t size)
{
    ngx_http_vlm_check_t *check = data;

    u_char                 *p, *last;
    ngx_int_t               other;
    vlm_err_t               err;
    ngx_core_conf_t        *ccf;
    ngx_http_vlm_engine_t  *eng;

    eng = check->engine;

    ngx_memzero(&err, sizeof(vlm_err_t));

    ccf = (ngx_core_conf_t *) ngx_get_conf(eng->cycle->conf_ctx,
                                           ngx_core_module);

    other = ngx_http_vlm_check_user(eng, ccf->username);

    if (check->read(eng, &err) == NGX_OK) {
        return 0;
    }

    last = (u_char *) text + size;
    p = ngx_slprintf((u_char *) text, last, "%s", err.text);

    if (other == NGX_OK && strstr(err.text, strerror(EACCES))) {
        p = ngx_slprintf(p, last, ": the workers' user is \"%s\"",
                         ccf->username);
    }

    return p - (u_char *) text;
}


static ngx_int_t
ngx_http_vlm_check_files(ngx_http_vlm_check_t *check, ngx_uint_t level,
    ngx_log_t *log)
{
    int                     status;
    char                    text[NGX_MAX_CONF_ERRSTR];
    size_t                  n;
    ngx_http_vlm_engine_t  *eng;

    n = sizeof(text);
    eng = check->engine;

    switch (vlm_child_run(ngx_http_vlm_check_child, check,
                          NGX_HTTP_VLM_CHECK_TIME, text, &n, &status))
    {
    case VLM_CHILD_DONE:
        return NGX_OK;

    case VLM_CHILD_LATE:
        ngx_http_vlm_log(NGX_LOG_WARN, log, 0, eng, "reading the model's "
                         "files took longer than %d seconds: they were not "
                         "checked", NGX_HTTP_VLM_CHECK_TIME / 1000);
        return NGX_OK;

    case VLM_CHILD_NONE:
        ngx_http_vlm_log(NGX_LOG_ALERT, log, ngx_errno, eng, "the model's "
                         "files cannot be checked in a process of their own");
        return NGX_ERROR;

    case VLM_CHILD_SAID:
        ngx_http_vlm_log(level, log, 0, eng, "%s%*s in %s:%ui",
                         level == NGX_LOG_WARN
                         ? "left out until it can be loaded: " : "", n, text,
                         eng->conf.file, eng->conf.line);
        return NGX_ERROR;

    case VLM_CHILD_DIED:
        break;
    }

    if (WIFSIGNALED(status)) {
        ngx_http_vlm_log(level, log, 0, eng, "the process that checks "
                         "the model's files was killed by signal %d (out of "
                         "memory?) in %s:%ui", WTERMSIG(status),
                         eng->conf.file, eng->conf.line);

    } else {
        ngx_http_vlm_log(level, log, 0, eng, "the process that checks "
                         "the model's files exited with code %d in %s:%ui",
                         WEXITSTATUS(status), eng->conf.file, eng->conf.line);
    }

    return NGX_ERROR;
}


ngx_int_t
ngx_http_vlm_check_start(ngx_http_vlm_engine_t *eng, ngx_log_t *log)
{
    ngx_http_vlm_check_t  check;

    check.engine = eng;
    check.read = ngx_http_vlm_check_read;

    if (ngx_http_vlm_master_ready(eng) != NGX_OK
        || ngx_http_vlm_check_files(&check, NGX_LOG_EMERG, log) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* the model's files alone decide */

    if (eng->conf.documents.on) {
        check.read = ngx_http_vlm_check_beside;
        (void) ngx_http_vlm_check_files(&check, NGX_LOG_WARN, log);
    }

    return NGX_OK;
}
