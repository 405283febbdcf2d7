
/*
 * The messages of a request on their way from JSON to a prompt: the list of
 * them, and of their parts.
 *
 * Many requests may wait, and for long.  So their pictures wait in a file, and
 * only texts wait in memory.
 */


#include "message_parts.h"


ngx_http_vlm_messages_t *
ngx_http_vlm_messages_create(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_messages_t  *m;

    m = calloc(1, sizeof(ngx_http_vlm_messages_t));

    if (m == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the messages");
        return NULL;
    }

    m->ctx = ctx;
    m->fd = -1;

    return m;
}


ngx_int_t
ngx_http_vlm_messages_role(const char *text, vlm_role_t *role)
{
    ngx_uint_t  i;

    static const char *const  names[] = {
        [VLM_SYSTEM] = "system",
        [VLM_USER] = "user",
        [VLM_ASSISTANT] = "assistant",
        [VLM_TOOL] = "tool"
    };

    for (i = 0; text && i < sizeof(names) / sizeof(names[0]); i++) {

        if (ngx_strcmp(text, names[i]) == 0) {
            *role = (vlm_role_t) i;
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


/* an array with room for one more; its capacity is the power of two from n
   on */

static void *
ngx_http_vlm_messages_grow(void *array, size_t n, size_t size)
{
    if (n & (n - 1)) {
        return array;
    }

    return realloc(array, (n ? 2 * n : 1) * size);
}


ngx_int_t
ngx_http_vlm_messages_begin(ngx_http_vlm_messages_t *m, vlm_role_t role)
{
    void                         *array;
    ngx_http_vlm_messages_one_t  *one;

    if (m->n_messages == NGX_HTTP_VLM_MESSAGES) {
        return ngx_http_vlm_fail_input(m->ctx, "There are more than %d "
                                       "messages", NGX_HTTP_VLM_MESSAGES);
    }

    array = ngx_http_vlm_messages_grow(m->messages, m->n_messages,
                                       sizeof(ngx_http_vlm_messages_one_t));
    if (array == NULL) {
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    m->messages = array;

    one = &m->messages[m->n_messages++];

    one->role = role;
    one->first = m->n_parts;
    one->n = 0;

    return NGX_OK;
}


ngx_http_vlm_messages_part_t *
ngx_http_vlm_messages_part(ngx_http_vlm_messages_t *m)
{
    void                          *array;
    ngx_http_vlm_messages_part_t  *part;

    if (m->n_parts == NGX_HTTP_VLM_PARTS) {
        (void) ngx_http_vlm_fail_input(m->ctx, "The messages have more than %d "
                                       "parts", NGX_HTTP_VLM_PARTS);
        return NULL;
    }

    array = ngx_http_vlm_messages_grow(m->parts, m->n_parts,
                                       sizeof(ngx_http_vlm_messages_part_t));
    if (array == NULL) {
        (void) ngx_http_vlm_fail_memory(m->ctx, "the messages");
        return NULL;
    }

    m->parts = array;

    part = &m->parts[m->n_parts++];
    ngx_memzero(part, sizeof(ngx_http_vlm_messages_part_t));

    m->messages[m->n_messages - 1].n++;

    return part;
}


ngx_int_t
ngx_http_vlm_messages_text(ngx_http_vlm_messages_t *m, const char *text)
{
    size_t                         len;
    ngx_http_vlm_messages_part_t  *part;

    len = ngx_strlen(text);

    if (len > NGX_HTTP_VLM_MESSAGES_TEXT - m->text) {
        return ngx_http_vlm_fail_code(m->ctx, NGX_HTTP_BAD_REQUEST,
                                      "context_length_exceeded",
                                      "This model's maximum context length is "
                                      "%uD tokens. The messages have more than "
                                      "%d bytes of text.",
                                      m->ctx->engine->conf.vlm.context,
                                      NGX_HTTP_VLM_MESSAGES_TEXT);
    }

    part = ngx_http_vlm_messages_part(m);
    if (part == NULL) {
        return NGX_ERROR;
    }

    part->text = malloc(len + 1);
    if (part->text == NULL) {
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    ngx_memcpy(part->text, text, len + 1);
    part->len = len;

    m->text += len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_messages_marked(ngx_http_vlm_messages_t *m, const char *text)
{
    if (ngx_http_vlm_messages_text(m, text) != NGX_OK) {
        return NGX_ERROR;
    }

    m->parts[m->n_parts - 1].marked = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_messages_call(ngx_http_vlm_messages_t *m, const char *name,
    const vlm_json_t *arguments)
{
    ngx_int_t                     rc;
    vlm_facts_t                  *facts;
    vlm_json_out_t                w;
    ngx_http_vlm_messages_one_t  *one;

    facts = &m->ctx->engine->conf.facts;
    one = &m->messages[m->n_messages - 1];

    vlm_json_init(&w, NGX_HTTP_VLM_MESSAGES_TEXT);
    vlm_calls_write(&w, name, arguments);

    if (vlm_json_done(&w) != 0) {
        vlm_json_release(&w);
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    vlm_json_put_raw(&w, "", 1);

    rc = (one->n && ngx_http_vlm_messages_text(m, "\n") != NGX_OK)
         || ngx_http_vlm_messages_marked(m, facts->call) != NGX_OK
         || w.failed
         || ngx_http_vlm_messages_text(m, w.data) != NGX_OK
         || ngx_http_vlm_messages_marked(m, facts->call_end) != NGX_OK
         ? NGX_ERROR : NGX_OK;

    vlm_json_release(&w);

    return rc;
}


void
ngx_http_vlm_messages_tools(ngx_http_vlm_messages_t *m, char *tools)
{
    free(m->tools);
    m->tools = tools;
}


void
ngx_http_vlm_messages_task(ngx_http_vlm_messages_t *m, int task)
{
    m->task = task;
}


static ngx_int_t
ngx_http_vlm_messages_drop_one(ngx_http_vlm_messages_t *m)
{
    size_t                         i, k;
    ngx_http_vlm_messages_one_t   *one;
    ngx_http_vlm_messages_part_t  *part;

    i = 0;

    while (i < m->n_messages && m->messages[i].role == VLM_SYSTEM) {
        i++;
    }

    if (i + 1 >= m->n_messages) {
        return NGX_DECLINED;
    }

    one = &m->messages[i];

    /* its parts stay in the array, emptied, and belong to no message */

    for (k = one->first; k < one->first + one->n; k++) {
        part = &m->parts[k];

        if (part->text == NULL) {
            vlm_picture_free(part->picture);
            part->picture = NULL;
            part->text = calloc(1, 1);

            if (part->text == NULL) {
                return ngx_http_vlm_fail_memory(m->ctx, "the messages");
            }

            m->n_pictures--;
        }

        part->len = 0;
    }

    m->n_messages--;

    ngx_memmove(one, one + 1,
                (m->n_messages - i) * sizeof(ngx_http_vlm_messages_one_t));

    ngx_http_vlm_fail_clear(m->ctx);

    return NGX_OK;
}


/* drops an eighth at a time, so at most eight prompts are discarded */

ngx_int_t
ngx_http_vlm_messages_drop(ngx_http_vlm_messages_t *m)
{
    size_t     n;
    ngx_int_t  rc;

    n = m->n_messages / 8;
    rc = ngx_http_vlm_messages_drop_one(m);

    for ( /* void */ ; n && rc == NGX_OK; n--) {
        (void) ngx_http_vlm_messages_drop_one(m);
    }

    return rc;
}


void
ngx_http_vlm_messages_free(ngx_http_vlm_messages_t *m)
{
    size_t  i;

    for (i = 0; i < m->n_parts; i++) {
        vlm_picture_free(m->parts[i].picture);
        free(m->parts[i].text);
    }

    if (m->fd != -1) {
        (void) close(m->fd);
    }

    free(m->tools);
    free(m->messages);
    free(m->parts);
    free(m);
}
