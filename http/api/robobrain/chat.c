
/*
 * The dialect of POST /api/chat: turns a request into a question of a session.
 *
 * The fields, the order of their checks, and the texts of errors are those of
 * the server that this one replaces; docs/http-api.md lists the differences.
 */


#include "../api.h"
#include "chat.h"
#include "base/base64.h"
#include "../ollama/ollama.h"


static void ngx_http_vlm_chat_parse(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
static ngx_int_t ngx_http_vlm_chat_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
static ngx_int_t ngx_http_vlm_chat_task(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
static ngx_int_t ngx_http_vlm_chat_data_url(ngx_http_vlm_ctx_t *ctx,
    const char *url, vlm_store_file_t *file);
static ngx_int_t ngx_http_vlm_chat_key(ngx_http_vlm_ctx_t *ctx);
static ngx_int_t ngx_http_vlm_chat_text_only(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
static ngx_uint_t ngx_http_vlm_chat_streams(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json);
static void ngx_http_vlm_chat_prompt(ngx_http_vlm_ctx_t *ctx);
static ngx_int_t ngx_http_vlm_chat_ended(ngx_http_vlm_ctx_t *ctx);
static ngx_int_t ngx_http_vlm_chat_copy(vlm_store_text_t *dst,
    const char *text);


const ngx_http_vlm_dialect_t  ngx_http_vlm_chat_dialect = {
    .fields = ngx_http_vlm_chat_parse,
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


static void
ngx_http_vlm_chat_parse(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    if (ngx_http_vlm_ollama_speaks(json)) {
        ctx->dialect = &ngx_http_vlm_ollama_chat;
        ctx->dialect->fields(ctx, json);
        return;
    }

    (void) ngx_http_vlm_chat_fields(ctx, json);
}


static ngx_int_t
ngx_http_vlm_chat_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    const vlm_json_t  *field;

    if (ngx_http_vlm_chat_object(ctx, json) != NGX_OK
        || ngx_http_vlm_chat_create(ctx, sizeof(ngx_http_vlm_chat_t)) == NULL
        || ngx_http_vlm_chat_session(ctx, json) != NGX_OK
        || ngx_http_vlm_chat_message(ctx, vlm_json_get(json, "message"),
                                     "Message is required")
           != NGX_OK
        || ngx_http_vlm_chat_task(ctx, json) != NGX_OK)
    {
        return NGX_ERROR;
    }

    field = vlm_json_get(json, "enable_thinking");
    ctx->out.thinks = vlm_json_is_null(field)
                         || vlm_json_is_true(field);

    ctx->streaming = ngx_http_vlm_chat_streams(ctx, json);

    if (ngx_http_vlm_chat_key(ctx) != NGX_OK
        || ngx_http_vlm_chat_image(ctx, json) != NGX_OK
        || ngx_http_vlm_chat_text_only(ctx, json) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_vlm_turn_fit(ctx, 0);
}


void *
ngx_http_vlm_chat_create(ngx_http_vlm_ctx_t *ctx, size_t size)
{
    ctx->data = calloc(1, size);

    if (ctx->data == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the request");
    }

    return ctx->data;
}


ngx_int_t
ngx_http_vlm_chat_object(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    if (!vlm_json_is_true(json)) {
        return ngx_http_vlm_fail_input(ctx, "No JSON data provided");
    }

    if (!vlm_json_is_object(json)) {
        return ngx_http_vlm_fail_input(ctx, "The request is not a JSON object");
    }

    return NGX_OK;
}


/* the client's key of this request: a repeated request gets the stored turn */

static ngx_int_t
ngx_http_vlm_chat_key(ngx_http_vlm_ctx_t *ctx)
{
    size_t                i;
    u_char                c;
    ngx_table_elt_t      *h;
    ngx_http_vlm_chat_t  *chat;

    chat = ctx->data;
    h = ngx_http_vlm_header(ctx->request, "idempotency-key");

    if (h == NULL || h->value.len == 0) {
        return NGX_OK;
    }

    for (i = 0; i < h->value.len && i <= VLM_STORE_KEY; i++) {
        c = h->value.data[i];

        if (c < 0x20 || c > 0x7e) {
            break;
        }
    }

    if (i < h->value.len || i > VLM_STORE_KEY) {
        return ngx_http_vlm_fail_input(ctx, "The Idempotency-Key is not 1 to "
                                       "%d printable characters of ASCII",
                                       VLM_STORE_KEY);
    }

    chat->key = strndup((char *) h->value.data, h->value.len);

    if (chat->key == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the Idempotency-Key");
    }

    return NGX_OK;
}


/* a question without a picture, even if the session has one */

static ngx_int_t
ngx_http_vlm_chat_text_only(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    ngx_http_vlm_chat_t  *chat;

    chat = ctx->data;

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


/* chosen by a field, or by the client's Accept header */

static ngx_uint_t
ngx_http_vlm_chat_streams(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    ngx_table_elt_t            *accept;
    const vlm_json_t           *field;

    field = vlm_json_get(json, "stream");

    if (!vlm_json_is_null(field)) {
        return vlm_json_is_true(field);
    }

    accept = ngx_http_vlm_header(ctx->request, "accept");

    return accept
           && ngx_strcasestrn(accept->value.data, "text/event-stream",
                              sizeof("text/event-stream") - 2)
              != NULL;
}


/* session_id, or sessionId if that is empty */

ngx_int_t
ngx_http_vlm_chat_session(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    const char                 *text;
    const vlm_json_t           *id;
    vlm_store_err_t             err;

    id = vlm_json_get(json, "session_id");

    if (!vlm_json_is_true(id)) {
        id = vlm_json_get(json, "sessionId");
    }

    if (!vlm_json_is_true(id)) {
        return ngx_http_vlm_fail_input(ctx, "Missing session ID");
    }

    text = vlm_json_text(id);

    if (text == NULL) {
        return ngx_http_vlm_fail_input(ctx, "The session ID is not a string");
    }

    if (ngx_http_vlm_chat_copy(&ctx->place.session, text) != NGX_OK) {
        return ngx_http_vlm_fail_memory(ctx, "the session");
    }

    if (vlm_store_id(ctx->place.session, &err)
        != VLM_STORE_OK)
    {
        return ngx_http_vlm_fail_store(ctx, &err);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_chat_message(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *field, const char *missing)
{
    const char           *text;
    ngx_http_vlm_chat_t  *chat;

    chat = ctx->data;
    text = vlm_json_text(field);

    if (text == NULL || text[0] == '\0') {
        return ngx_http_vlm_fail_input(ctx, "%s", missing);
    }

    if (ngx_strlen(text) > NGX_HTTP_VLM_MESSAGE) {
        return ngx_http_vlm_fail_input(ctx, "The message has %uz bytes, it may "
                                       "have %d", ngx_strlen(text),
                                       NGX_HTTP_VLM_MESSAGE);
    }

    if (ngx_http_vlm_chat_copy(&chat->message, text) != NGX_OK) {
        return ngx_http_vlm_fail_memory(ctx, "the message");
    }

    return NGX_OK;
}


/* an unknown task is an error of the model's side, reported after the picture
   was found */

static ngx_int_t
ngx_http_vlm_chat_task(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    size_t                len;
    const char           *text;
    const vlm_json_t     *task;
    ngx_http_vlm_chat_t  *chat;

    chat = ctx->data;
    task = vlm_json_get(json, "task");

    if (vlm_json_is_null(task)) {
        text = "general";

    } else {
        text = vlm_json_text(task);

        if (text == NULL) {
            return ngx_http_vlm_fail_input(ctx, "The task is not a string");
        }
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

    ngx_cpystrn((u_char *) chat->task_name, (u_char *) text,
                sizeof(chat->task_name));
    ngx_http_vlm_turn_task(ctx, vlm_task_find(text, len));

    return NGX_OK;
}


/* an uploaded file, by name or path, or a picture within the request */

ngx_int_t
ngx_http_vlm_chat_image(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    int                   rc;
    const char           *text;
    vlm_store_err_t       err;
    vlm_store_file_t      file;
    vlm_store_text_t      name;
    const vlm_json_t     *image;
    ngx_http_vlm_chat_t  *chat;

    chat = ctx->data;
    image = vlm_json_get(json, "image");

    if (!vlm_json_is_true(image)) {
        return NGX_OK;
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
        name.data = text;
        name.len = ngx_strlen(text);

        rc = vlm_store_upload_find(ctx->engine->store, name, &file,
                                   &err);

        if (rc == VLM_STORE_NOTFOUND
            || rc == VLM_STORE_EINPUT)
        {
            return ngx_http_vlm_fail_input(ctx, "Image not found: %s", text);
        }

        if (rc != VLM_STORE_OK) {
            return ngx_http_vlm_fail_store(ctx, &err);
        }
    }

    chat->image = strdup(file.path);

    if (chat->image == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the image");
    }

    return NGX_OK;
}


/* stored as an upload, because it becomes the session's picture */

static ngx_int_t
ngx_http_vlm_chat_data_url(ngx_http_vlm_ctx_t *ctx, const char *url,
    vlm_store_file_t *file)
{
    int                         rc;
    size_t                      n;
    u_char                     *data;
    vlm_err_t                   err;
    const char                 *text;
    vlm_picture_info_t          info;
    vlm_store_err_t             stored;
    vlm_store_text_t            name;

    text = vlm_base64_url(url, ngx_strlen(url), &n);

    if (text == NULL) {
        return ngx_http_vlm_fail_input(ctx, "The image is a data URL without "
                                       "\";base64,\"");
    }

    data = malloc(vlm_base64_room(n));

    if (data == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the image");
    }

    if (vlm_base64_decode(data, &n, text, n) != 0) {
        free(data);
        return ngx_http_vlm_fail_input(ctx, "The image is not base64");
    }

    ngx_memzero(&err, sizeof(vlm_err_t));

    if (vlm_picture_check(data, n, &info, &err) != 0) {
        free(data);
        return ngx_http_vlm_fail_input(ctx, "%s", err.text);
    }

    name.data = "picture";
    name.len = sizeof("picture") - 1;

    rc = vlm_store_upload_add(ctx->engine->store, data, n,
                              ngx_http_vlm_order_salt(&ctx->place.rank),
                              name, file, &stored);

    free(data);

    return rc == VLM_STORE_OK
           ? NGX_OK : ngx_http_vlm_fail_store(ctx, &stored);
}


static void
ngx_http_vlm_chat_prompt(ngx_http_vlm_ctx_t *ctx)
{
    vlm_err_t             err;
    ngx_http_vlm_chat_t  *chat;

    chat = ctx->data;

    if (chat->key && !chat->task_asked
        && ngx_http_vlm_turn_repeated(ctx) != NGX_DECLINED)
    {
        return;
    }

    if (chat->task_auto && !chat->task_asked) {
        chat->task_asked = 1;

        /* a request that has failed is not asked */

        if (ngx_http_vlm_turn_check(ctx, &err) == NGX_OK
            && ngx_http_vlm_aside_task(ctx) == NGX_OK)
        {
            return;
        }

        ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));
    }

    ngx_http_vlm_turn_prompt(ctx);
}


static ngx_int_t
ngx_http_vlm_chat_ended(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t  *chat;

    static ngx_str_t  yes = ngx_string("true");

    chat = ctx->data;

    if (chat->repeated) {
        ctx->out.answer.data = (u_char *) chat->repeated->content.data;
        ctx->out.answer.len = chat->repeated->content.len;
        ctx->out.thinking.data = (u_char *) chat->repeated->thinking.data;
        ctx->out.thinking.len = chat->repeated->thinking.len;

        return ctx->out.begun ? NGX_OK
                              : ngx_http_vlm_add_header(ctx->request,
                                                        "Idempotent-Replayed",
                                                        &yes);
    }

    if (!ctx->asking) {
        return ngx_http_vlm_thinking_split(ctx, 1);
    }

    ngx_http_vlm_aside_task_said(ctx);

    ctx->asking = 0;
    ngx_http_vlm_finish_again(ctx, 0);

    return NGX_AGAIN;
}


void
ngx_http_vlm_chat_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t  *chat;

    chat = ctx->data;
    ctx->data = NULL;

    if (chat == NULL) {
        return;
    }

    free((char *) ctx->place.session.data);
    ctx->place.session.data = NULL;

    free((char *) chat->message.data);
    free(chat->image);
    free(chat->key);
    free(chat->result);
    vlm_store_loaded_free(&chat->session_of);
    free(chat);
}


static ngx_int_t
ngx_http_vlm_chat_copy(vlm_store_text_t *dst, const char *text)
{
    dst->data = strdup(text);
    dst->len = ngx_strlen(text);

    return dst->data ? NGX_OK : NGX_ERROR;
}
