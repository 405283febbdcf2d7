
/*
 * The prompt of a request's messages: whether they fit the context, as far as
 * that is known before, and the prompt itself.
 */


#include "message_parts.h"
#include "robobrain/task.h"


/* some chat programs send more tools with every message than the context has
   room for; their user sees this sentence */

static void
ngx_http_vlm_messages_too_long(ngx_http_vlm_messages_t *m)
{
    size_t                 len, tools;
    ngx_http_vlm_error_t  *e;

    e = &m->ctx->error;
    tools = m->tools ? ngx_strlen(m->tools) : 0;

    if (tools <= m->text || e->err.code != VLM_ELIMIT || e->code == NULL
        || ngx_strcmp(e->code, "context_length_exceeded") != 0)
    {
        return;
    }

    len = ngx_strlen(e->err.text);

    (void) snprintf(e->err.text + len, sizeof(e->err.text) - len,
                    " %zu bytes of it are tools: send fewer, or have a larger "
                    "\"context\" or \"tools ignore\" in vlm_engine.", tools);
}


ngx_int_t
ngx_http_vlm_messages_fit(ngx_http_vlm_messages_t *m, ngx_uint_t whole)
{
    size_t                         i, k, n;
    ngx_int_t                      rc;
    ngx_http_vlm_fit_t            *parts;
    ngx_http_vlm_messages_one_t   *one;
    ngx_http_vlm_messages_part_t  *part;

    parts = calloc(m->n_parts + 2, sizeof(ngx_http_vlm_fit_t));

    if (parts == NULL) {
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    n = 0;

    for (i = 0; i < m->n_messages; i++) {
        one = &m->messages[i];

        if (!whole && one->role != VLM_SYSTEM && i + 1 < m->n_messages) {
            continue;
        }

        for (k = one->first; k < one->first + one->n; k++) {
            part = &m->parts[k];

            parts[n].text = part->text;
            parts[n].len = part->len;
            parts[n++].tokens = part->tokens;
        }
    }

    if (m->tools) {
        parts[n].text = m->tools;
        parts[n++].len = ngx_strlen(m->tools);
    }

    rc = ngx_http_vlm_fit(m->ctx, parts, n);

    free(parts);

    if (rc != NGX_OK) {
        ngx_http_vlm_messages_too_long(m);
    }

    return rc;
}


/* the last text of the last message in the words of a visual task, malloc()ed;
   NULL: there is none, or no memory, which err has */

static char *
ngx_http_vlm_messages_worded(ngx_http_vlm_messages_t *m, size_t *at)
{
    size_t                        i;
    char                         *text;
    ngx_http_vlm_messages_one_t  *one;

    if (m->task <= VLM_GENERAL || m->n_messages == 0) {
        return NULL;
    }

    one = &m->messages[m->n_messages - 1];

    for (i = one->first + one->n; i > one->first; i--) {

        if (m->parts[i - 1].text == NULL) {
            continue;
        }

        *at = i - 1;
        text = vlm_task_prompt(m->ctx->engine->conf.facts.tasks, m->task,
                               m->parts[i - 1].text, m->parts[i - 1].len);
        if (text == NULL) {
            (void) ngx_http_vlm_fail_memory(m->ctx, "the prompt");
        }

        return text;
    }

    return NULL;
}


ngx_int_t
ngx_http_vlm_messages_prompt(ngx_http_vlm_messages_t **taken, ngx_uint_t raw,
    const char *tail)
{
    char                     *worded;
    size_t                    i, at;
    vlm_part_t               *parts;
    vlm_message_t            *messages;
    ngx_http_vlm_ctx_t       *ctx;
    ngx_http_vlm_messages_t  *m;

    m = *taken;

    if (ngx_http_vlm_messages_read(m) != NGX_OK) {
        return NGX_ERROR;
    }

    parts = calloc(m->n_parts + 1, sizeof(vlm_part_t));
    messages = calloc(m->n_messages + 1, sizeof(vlm_message_t));

    if (parts == NULL || messages == NULL) {
        free(parts);
        free(messages);
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    for (i = 0; i < m->n_parts; i++) {
        parts[i].picture = m->parts[i].picture;
        parts[i].text = m->parts[i].text;
        parts[i].bytes = m->parts[i].text ? m->parts[i].len : 0;
        parts[i].marked = m->parts[i].marked && parts[i].bytes;
    }

    for (i = 0; i < m->n_messages; i++) {
        messages[i].role = m->messages[i].role;
        messages[i].parts = &parts[m->messages[i].first];
        messages[i].n_parts = m->messages[i].n;
    }

    ctx = m->ctx;
    worded = raw ? NULL : ngx_http_vlm_messages_worded(m, &at);

    if (worded) {
        parts[at].text = worded;
        parts[at].bytes = ngx_strlen(worded);
    }

    ctx->prompt = raw ? vlm_prompt_raw(ctx->engine->life.vlm, parts, m->n_parts,
                                       &ctx->error.err)
                      : vlm_prompt_tools(ctx->engine->life.vlm, messages,
                                         m->n_messages, m->tools, tail,
                                         &ctx->error.err);
    free(messages);
    free(parts);
    free(worded);

    if (ctx->prompt == NULL) {
        (void) ngx_http_vlm_fail_engine(ctx, NULL, "context_length_exceeded");
        ngx_http_vlm_messages_too_long(m);
        return NGX_ERROR;
    }

    /* the engine owns the pictures now */

    for (i = 0; i < m->n_parts; i++) {
        m->parts[i].picture = NULL;
    }

    ngx_http_vlm_messages_free(m);
    *taken = NULL;

    return NGX_OK;
}
