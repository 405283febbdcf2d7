
/*
 * The dialect of POST /api/chat: turns a request into a question of a session.
 *
 * The fields, the order of their checks, and the texts of errors are those of
 * the server that this one replaces; docs/http-api.md lists the differences.
 */


#include "chat.h"
#include "ask_text.h"
#include "../ollama/ollama.h"


#define NGX_HTTP_VLM_CHAT_AUTO  2000       /* bytes of a message that are asked
                                              about */


/* the client's key of this request: a repeated request gets the stored turn */

static ngx_int_t
ngx_http_vlm_chat_key(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    size_t            i;
    ngx_table_elt_t  *h;

    h = ngx_http_vlm_header(ctx->request, "idempotency-key");

    if (h == NULL || h->value.len == 0) {
        return NGX_OK;
    }

    for (i = 0; i < h->value.len && i <= VLM_STORE_KEY; i++) {
        if (h->value.data[i] < 0x20 || h->value.data[i] > 0x7e) {
            break;
        }
    }

    if (i < h->value.len || i > VLM_STORE_KEY) {
        return ngx_http_vlm_fail_input(ctx, "The Idempotency-Key is not 1 to "
                                       "%d printable characters of ASCII",
                                       VLM_STORE_KEY);
    }

    chat->key = strndup((char *) h->value.data, h->value.len);

    return chat->key ? NGX_OK
                     : ngx_http_vlm_fail_memory(ctx, "the Idempotency-Key");
}


/* a question without a picture, even if the session has one */

static ngx_int_t
ngx_http_vlm_chat_text_only(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    if (!vlm_json_is_true(vlm_json_get(json, "text_only"))) {
        return NGX_OK;
    }

    if (chat->task_auto) {
        chat->task_auto = 0;
        ngx_http_vlm_turn_task(ctx, VLM_GENERAL);
    }

    if (chat->image || chat->task > VLM_GENERAL) {
        return ngx_http_vlm_fail_input(ctx, "With \"text_only\" there is no "
                                       "image, and the task is general");
    }

    chat->text_only = 1;

    return NGX_OK;
}


void
ngx_http_vlm_chat_form(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    ngx_uint_t thinks)
{
    const vlm_json_t  *stream;

    stream = vlm_json_get(json, "stream");

    ctx->streaming = vlm_json_is_null(stream)
                     ? ngx_http_vlm_accepts(ctx->request, "text/event-stream")
                     : (ngx_uint_t) vlm_json_is_true(stream);

    if (ngx_http_vlm_fields(ctx)->constraint.form) {
        ctx->out.plain = 1;
        thinks = 0;
    }

    ctx->out.thinks = thinks;
}


/* an unknown task is an error of the model's side, reported after the picture
   was found */

static ngx_int_t
ngx_http_vlm_chat_task(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    size_t             len;
    const char        *text;
    const vlm_json_t  *task;

    task = vlm_json_get(json, "task");
    text = vlm_json_is_null(task) ? "general" : vlm_json_text(task);

    if (text == NULL) {
        return ngx_http_vlm_fail_input(ctx, "The task is not a string");
    }

    len = ngx_strlen(text);

    if (len > NGX_HTTP_VLM_TASK) {
        return ngx_http_vlm_fail_input(ctx, "The task has %uz bytes, it may "
                                       "have %d", len, NGX_HTTP_VLM_TASK);
    }

    if (ngx_strcmp(text, "auto") == 0) {

        /* the fallback if the model cannot be asked, or names no task */

        chat->task_auto = 1;
        ngx_http_vlm_turn_task(ctx, vlm_task_guess(chat->message.data,
                                                   chat->message.len));
        return NGX_OK;
    }

    ngx_http_vlm_copy(chat->task_name, text);
    ngx_http_vlm_turn_task(ctx, vlm_task_find(text, len));

    return NGX_OK;
}


static void
ngx_http_vlm_chat_fields(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    const vlm_json_t     *thinks;
    ngx_http_vlm_chat_t  *chat;

    if (ngx_http_vlm_ollama_speaks(json)) {
        ctx->dialect = &ngx_http_vlm_ollama_chat;
        ctx->dialect->fields(ctx, json);
        return;
    }

    chat = ngx_http_vlm_chat_create(ctx, json, sizeof(ngx_http_vlm_chat_t));

    if (chat == NULL
        || ngx_http_vlm_chat_session(ctx, json) != NGX_OK
        || ngx_http_vlm_chat_text(ctx, vlm_json_get(json, "message"),
                                  "The message", "Message is required",
                                  &chat->message)
           != NGX_OK
        || ngx_http_vlm_chat_task(ctx, json) != NGX_OK
        || ngx_http_vlm_adapter_field(ctx, json) != NGX_OK
        || ngx_http_vlm_fields_read(ctx, json, VLM_OF_BRAIN)
           != NGX_OK)
    {
        return;
    }

    thinks = vlm_json_get(json, "enable_thinking");

    ngx_http_vlm_chat_form(ctx, json, vlm_json_is_null(thinks)
                                      || vlm_json_is_true(thinks));

    if (ngx_http_vlm_chat_key(ctx) == NGX_OK
        && ngx_http_vlm_chat_image(ctx, json) == NGX_OK
        && ngx_http_vlm_chat_text_only(ctx, json) == NGX_OK)
    {
        (void) ngx_http_vlm_turn_fit(ctx, 0);
    }
}


void *
ngx_http_vlm_chat_create(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    size_t size)
{
    if (!vlm_json_is_true(json) || !vlm_json_is_object(json)) {
        (void) ngx_http_vlm_fail_input(ctx, vlm_json_is_true(json)
                                       ? "The request is not a JSON object"
                                       : "No JSON data provided");
        return NULL;
    }

    ctx->data = calloc(1, size);

    if (ctx->data == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the request");

    } else {
        vlm_fields_init(ngx_http_vlm_fields(ctx));
    }

    return ctx->data;
}


/* session_id, or sessionId if that is empty */

ngx_int_t
ngx_http_vlm_chat_session(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    char                        digits[VLM_JSON_DIGITS];
    const char                 *text;
    const vlm_json_t           *id;
    vlm_store_err_t             err;

    id = vlm_json_either(json, "session_id", "sessionId");

    text = vlm_json_word(id, digits);

    if (!vlm_json_is_true(id) || text == NULL) {
        return ngx_http_vlm_fail_input(ctx, vlm_json_is_true(id)
                                       ? "The session ID is neither a string "
                                         "nor a number"
                                       : "Missing session ID");
    }

    ctx->place.session = ngx_http_vlm_order_session(ctx,
                                                    vlm_store_string(text));

    return vlm_store_id(vlm_store_string(text), &err) == VLM_STORE_OK
           ? NGX_OK : ngx_http_vlm_fail_store(ctx, &err);
}


ngx_int_t
ngx_http_vlm_chat_text(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *field,
    const char *what, const char *missing, vlm_store_text_t *text)
{
    const char  *value;

    value = vlm_json_text(field);

    if (value == NULL || value[0] == '\0') {
        return ngx_http_vlm_fail_input(ctx, "%s", missing);
    }

    if (ngx_strlen(value) > NGX_HTTP_VLM_MESSAGE) {
        return ngx_http_vlm_fail_input(ctx, "%s has %uz bytes, it may have %d",
                                       what, ngx_strlen(value),
                                       NGX_HTTP_VLM_MESSAGE);
    }

    *text = vlm_store_string(strdup(value));

    return text->data ? NGX_OK : ngx_http_vlm_fail_memory(ctx, "the request");
}


/* stored as an upload, because it becomes the session's picture */

static ngx_int_t
ngx_http_vlm_chat_data_url(ngx_http_vlm_ctx_t *ctx, const char *url,
    vlm_store_file_t *file)
{
    size_t               n;
    u_char              *data;
    vlm_err_t            err;
    ngx_int_t            rc;
    vlm_store_err_t      stored;
    vlm_picture_info_t   info;

    data = ngx_http_vlm_messages_bytes(ctx, url, ngx_strlen(url), &n);

    if (data == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&err, sizeof(vlm_err_t));
    rc = NGX_OK;

    if (vlm_picture_check(data, n, &info, &err) != 0) {
        rc = ngx_http_vlm_fail_input(ctx, "%s", err.text);

    } else if (vlm_store_upload_add(ctx->engine->store, data, n,
                                    ngx_http_vlm_order_salt(&ctx->place.rank),
                                    vlm_store_string("picture"), file, &stored)
               != VLM_STORE_OK)
    {
        rc = ngx_http_vlm_fail_store(ctx, &stored);
    }

    free(data);

    return rc;
}


ngx_int_t
ngx_http_vlm_chat_sees(ngx_http_vlm_ctx_t *ctx)
{
    return ctx->engine->conf.facts.vision_layers > 0
           ? NGX_OK
           : ngx_http_vlm_fail_input(ctx, "%s has no vision encoder: this "
                                     "model takes text alone",
                                     ctx->engine->conf.facts.family);
}


/* an uploaded file, by name or path, or a picture within the request */

ngx_int_t
ngx_http_vlm_chat_image(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    int                rc;
    const char        *text;
    vlm_store_err_t    err;
    vlm_store_file_t   file;
    const vlm_json_t  *image;

    image = vlm_json_get(json, "image");

    if (ngx_http_vlm_messages_pixels(ctx, json, &chat->pixels) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!vlm_json_is_true(image)) {
        return NGX_OK;
    }

    if (ngx_http_vlm_chat_sees(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    text = vlm_json_text(image);

    if (text == NULL) {
        return ngx_http_vlm_fail_input(ctx, "The image is not a string");
    }

    if (ngx_strncmp(text, "data:", 5) == 0) {

        if (ngx_http_vlm_chat_data_url(ctx, text, &file) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {
        rc = vlm_store_upload_find(ctx->engine->store, vlm_store_string(text),
                                   &file, &err);

        if (rc == VLM_STORE_NOTFOUND || rc == VLM_STORE_EINPUT) {
            return ngx_http_vlm_fail_input(ctx, "Image not found: %s", text);
        }

        if (rc != VLM_STORE_OK) {
            return ngx_http_vlm_fail_store(ctx, &err);
        }
    }

    chat->image = strdup(file.path);

    return chat->image ? NGX_OK : ngx_http_vlm_fail_memory(ctx, "the image");
}


static void
ngx_http_vlm_chat_prompt(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    vlm_err_t  err;

    if (chat->key && !chat->task_asked
        && ngx_http_vlm_turn_repeated(ctx) != NGX_DECLINED)
    {
        return;
    }

    if (chat->task_auto && !chat->task_asked) {
        chat->task_asked = 1;

        /* a request that has failed is not asked */

        if (ngx_http_vlm_turn_check(ctx, &err) == NGX_OK) {
            ngx_http_vlm_aside_ask(ctx, NGX_HTTP_VLM_ASK_TASK,
                                   vlm_utf8_whole(chat->message.data,
                                                  ngx_min(chat->message.len,
                                                    NGX_HTTP_VLM_CHAT_AUTO)),
                                   0.1, 10);
        }

        if (ctx->prompt) {
            return;
        }

        ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));
    }

    chat->in.f.task = chat->task;

    if (ngx_http_vlm_fields_sampling(ctx) == NGX_OK) {
        ngx_http_vlm_turn_prompt(ctx);
    }
}


/* otherwise the task found by the message's keywords stays */

static void
ngx_http_vlm_chat_auto(ngx_http_vlm_ctx_t *ctx)
{
    int        task;
    char       name[VLM_WORDS_TASK];
    ngx_str_t  words;

    ngx_http_vlm_aside_said(ctx, &words);
    vlm_words_task((char *) words.data, words.len, name);

    task = vlm_task_find(name, ngx_strlen(name));

    if (task >= 0) {
        ngx_http_vlm_turn_task(ctx, task);
    }
}


static ngx_int_t
ngx_http_vlm_chat_ended(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    if (chat->repeated) {
        ctx->out.answer.data = (u_char *) chat->repeated->content.data;
        ctx->out.answer.len = chat->repeated->content.len;
        ctx->out.thinking.data = (u_char *) chat->repeated->thinking.data;
        ctx->out.thinking.len = chat->repeated->thinking.len;

        return ctx->out.begun ? NGX_OK
                              : ngx_http_vlm_add_header(ctx->request,
                                                        "Idempotent-Replayed",
                                                        "true");
    }

    if (!ctx->asking) {
        return ngx_http_vlm_thinking_split(ctx, 1);
    }

    ngx_http_vlm_chat_auto(ctx);

    ctx->asking = 0;
    ngx_http_vlm_finish_again(ctx, 0);

    return NGX_AGAIN;
}


void
ngx_http_vlm_chat_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    ctx->data = NULL;

    if (chat == NULL) {
        return;
    }

    vlm_fields_free(&chat->in.f);
    vlm_grammar_free(chat->in.grammar);
    free((char *) chat->message.data);
    free(chat->image);
    free(chat->key);
    free(chat->result);
    vlm_store_loaded_free(&chat->session_of);
    free(chat);
}


const ngx_http_vlm_dialect_t  ngx_http_vlm_chat_dialect = {
    .fields = ngx_http_vlm_chat_fields,
    .prompt = ngx_http_vlm_chat_prompt,
    .ended = ngx_http_vlm_chat_ended,
    .store = ngx_http_vlm_turn_store,
    .answer = ngx_http_vlm_answer_put,
    .failed = ngx_http_vlm_answer_failed,
    .stream_type = "text/event-stream; charset=utf-8",
    .chunk = ngx_http_vlm_answer_chunk,
    .error = ngx_http_vlm_answer_error,
    .waits = ngx_http_vlm_stream_waits,
    .free = ngx_http_vlm_chat_free
};
