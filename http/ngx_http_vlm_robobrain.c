
/*
 * The dialect of POST /api/chat: a request to a session's question, the
 * model's words to an answer.
 *
 * The fields, their order of checking, and the texts of errors are those of
 * the server that this one replaces; docs/http-api.md lists where it differs.
 */


#include "ngx_http_vlm.h"


#define NGX_HTTP_VLM_MESSAGE  (1024 * 1024)        /* bytes, of a message */
#define NGX_HTTP_VLM_TASK     64                   /* bytes, of its name */


static void ngx_http_vlm_chat_body(ngx_http_request_t *r);
static ngx_int_t ngx_http_vlm_chat_fields(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json);
static ngx_int_t ngx_http_vlm_chat_task(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json);
static ngx_int_t ngx_http_vlm_chat_session(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json);
static ngx_int_t ngx_http_vlm_chat_image(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json);
static ngx_int_t ngx_http_vlm_chat_data_url(ngx_http_vlm_ctx_t *ctx,
    const char *url, ngx_http_vlm_store_file_t *file);
static ngx_int_t ngx_http_vlm_chat_copy(ngx_http_vlm_store_text_t *dst,
    const char *text);
static ngx_int_t ngx_http_vlm_chat_without(ngx_http_request_t *r,
    ngx_str_t *text, const char *word);
static void ngx_http_vlm_chat_strip(ngx_str_t *text);
static void ngx_http_vlm_chat_put_task(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w);


ngx_int_t
ngx_http_vlm_chat_handler(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_str_t *piece)
{
    ngx_int_t            rc;
    ngx_time_t          *tp;
    ngx_http_vlm_ctx_t  *ctx;

    if (eng->failed || eng->store == NULL) {
        return ngx_http_vlm_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                       "Model not initialized");
    }

    ctx = ngx_http_vlm_queue_admit(r, eng, &rc);

    if (ctx == NULL) {
        return rc == NGX_BUSY ? ngx_http_vlm_queue_full(r, eng) : rc;
    }

    tp = ngx_timeofday();

    ctx->chat.asked = (int64_t) tp->sec * 1000000 + tp->msec * 1000;

    return ngx_http_vlm_body_read(r, ngx_http_vlm_chat_body);
}


static void
ngx_http_vlm_chat_body(ngx_http_request_t *r)
{
    ngx_http_vlm_ctx_t       *ctx;
    ngx_http_vlm_loc_conf_t  *lcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_vlm_module);

    if (ctx->engine->failed) {
        ngx_http_vlm_queue_refuse(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                  "Model not initialized");
        return;
    }

    if (ctx->engine->released) {

        /* the body took longer than this worker had the model */

        lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

        ngx_http_vlm_queue_leave(ctx);
        ngx_http_finalize_request(r, lcf->inner ? ngx_http_vlm_route_moved(r)
                                                : lcf->hop(r));
        return;
    }

    if (ngx_http_vlm_body_init(r, &ctx->body) != NGX_OK) {
        ngx_http_vlm_queue_end(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (ngx_http_vlm_queue_wait(ctx) != NGX_OK) {
        ngx_http_vlm_queue_end(ctx, ngx_http_vlm_queue_full(r, ctx->engine));
        return;
    }

    ngx_http_vlm_prepare_add(ctx);
}


void
ngx_http_vlm_chat_parse(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_json_t      *json;
    ngx_http_vlm_json_err_t   err;

    if (ngx_http_vlm_body_get(&ctx->body) != 0) {
        (void) ngx_http_vlm_turn_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                      "The request body cannot be read");
        return;
    }

    if (ctx->body.len == 0) {
        (void) ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                      "No JSON data provided");
        return;
    }

    json = ngx_http_vlm_json_parse(ctx->body.data, ctx->body.len, &err);

    ngx_http_vlm_body_free(&ctx->body);

    if (json == NULL) {
        (void) ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST, "%s",
                                      err.text);
        return;
    }

    (void) ngx_http_vlm_chat_fields(ctx, json);

    ngx_http_vlm_json_free(json);
}


static ngx_int_t
ngx_http_vlm_chat_fields(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json)
{
    const char                 *text;
    const ngx_http_vlm_json_t  *field;

    if (!ngx_http_vlm_json_is_true(json)) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                      "No JSON data provided");
    }

    if (!ngx_http_vlm_json_is_object(json)) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                      "The request is not a JSON object");
    }

    if (ngx_http_vlm_chat_session(ctx, json) != NGX_OK) {
        return NGX_ERROR;
    }

    text = ngx_http_vlm_json_text(ngx_http_vlm_json_get(json, "message"));

    if (text == NULL || text[0] == '\0') {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                      "Message is required");
    }

    if (ngx_strlen(text) > NGX_HTTP_VLM_MESSAGE) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                      "The message has %uz bytes, it may have "
                                      "%d", ngx_strlen(text),
                                      NGX_HTTP_VLM_MESSAGE);
    }

    if (ngx_http_vlm_chat_copy(&ctx->chat.message, text) != NGX_OK) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                      "No memory for the message");
    }

    if (ngx_http_vlm_chat_task(ctx, json) != NGX_OK) {
        return NGX_ERROR;
    }

    field = ngx_http_vlm_json_get(json, "enable_thinking");
    ctx->chat.thinking = field == NULL || ngx_http_vlm_json_is_null(field)
                         || ngx_http_vlm_json_is_true(field);

    return ngx_http_vlm_chat_image(ctx, json);
}


/* session_id, or sessionId where that is empty */

static ngx_int_t
ngx_http_vlm_chat_session(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json)
{
    const char                 *text;
    const ngx_http_vlm_json_t  *id;
    ngx_http_vlm_store_err_t    err;

    id = ngx_http_vlm_json_get(json, "session_id");

    if (!ngx_http_vlm_json_is_true(id)) {
        id = ngx_http_vlm_json_get(json, "sessionId");
    }

    if (!ngx_http_vlm_json_is_true(id)) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                      "Missing session ID");
    }

    text = ngx_http_vlm_json_text(id);

    if (text == NULL) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                      "The session ID is not a string");
    }

    if (ngx_http_vlm_chat_copy(&ctx->chat.session, text) != NGX_OK) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                      "No memory for the session");
    }

    if (ngx_http_vlm_store_id(ctx->chat.session, &err)
        != NGX_HTTP_VLM_STORE_OK)
    {
        return ngx_http_vlm_turn_store_error(ctx, &err);
    }

    return NGX_OK;
}


/* an unknown task is the model's error, told once a picture was found */

static ngx_int_t
ngx_http_vlm_chat_task(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json)
{
    size_t                      len;
    const char                 *text;
    const ngx_http_vlm_json_t  *task;

    task = ngx_http_vlm_json_get(json, "task");

    if (task == NULL || ngx_http_vlm_json_is_null(task)) {
        text = "general";

    } else {
        text = ngx_http_vlm_json_text(task);

        if (text == NULL) {
            return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                          "The task is not a string");
        }
    }

    len = ngx_strlen(text);

    if (len > NGX_HTTP_VLM_TASK) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                      "The task has %uz bytes, it may have %d",
                                      len, NGX_HTTP_VLM_TASK);
    }

    if (ngx_strcmp(text, "auto") == 0) {
        ctx->chat.task_auto = 1;
        ctx->chat.task = vlm_task_guess(ctx->chat.message.data,
                                        ctx->chat.message.len);
        text = vlm_task_name(ctx->chat.task);

    } else {
        ctx->chat.task = vlm_task_find(text, len);
    }

    ctx->chat.task_name = strdup(text);

    if (ctx->chat.task_name == NULL) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                      "No memory for the task");
    }

    return NGX_OK;
}


/* an uploaded file, by name or path, or a picture within the request */

static ngx_int_t
ngx_http_vlm_chat_image(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_json_t *json)
{
    int                         rc;
    const char                 *text;
    const ngx_http_vlm_json_t  *image;
    ngx_http_vlm_store_err_t    err;
    ngx_http_vlm_store_file_t   file;
    ngx_http_vlm_store_text_t   name;

    image = ngx_http_vlm_json_get(json, "image");

    if (!ngx_http_vlm_json_is_true(image)) {
        return NGX_OK;
    }

    text = ngx_http_vlm_json_text(image);

    if (text == NULL) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                      "The image is not a string");
    }

    if (ngx_strncmp(text, "data:", 5) == 0) {

        if (ngx_http_vlm_chat_data_url(ctx, text, &file) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {
        name.data = text;
        name.len = ngx_strlen(text);

        rc = ngx_http_vlm_store_upload_find(ctx->engine->store, name, &file,
                                            &err);

        if (rc == NGX_HTTP_VLM_STORE_NOTFOUND
            || rc == NGX_HTTP_VLM_STORE_EINPUT)
        {
            return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                          "Image not found: %s", text);
        }

        if (rc != NGX_HTTP_VLM_STORE_OK) {
            return ngx_http_vlm_turn_store_error(ctx, &err);
        }
    }

    ctx->chat.image = strdup(file.path);

    if (ctx->chat.image == NULL) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                      "No memory for the image");
    }

    return NGX_OK;
}


/* kept as an upload, for it is the session's picture from now on */

static ngx_int_t
ngx_http_vlm_chat_data_url(ngx_http_vlm_ctx_t *ctx, const char *url,
    ngx_http_vlm_store_file_t *file)
{
    int                         rc;
    vlm_err_t                   err;
    ngx_str_t                   src, dst;
    const char                 *p;
    vlm_picture_info_t          info;
    ngx_http_vlm_store_err_t    stored;
    ngx_http_vlm_store_text_t   name;

    p = strchr(url, ',');

    if (p == NULL || p - url < 7 || ngx_strncmp(p - 7, ";base64", 7) != 0) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                      "The image is a data URL without "
                                      "\";base64,\"");
    }

    src.data = (u_char *) p + 1;
    src.len = ngx_strlen(p + 1);

    dst.data = malloc(ngx_base64_decoded_length(src.len) + 1);

    if (dst.data == NULL) {
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                      "No memory for the image");
    }

    if (ngx_decode_base64(&dst, &src) != NGX_OK) {
        free(dst.data);
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                      "The image is not base64");
    }

    ngx_memzero(&err, sizeof(vlm_err_t));

    if (vlm_picture_check(dst.data, dst.len, &info, &err) != 0) {
        free(dst.data);
        return ngx_http_vlm_turn_fail(ctx, NGX_HTTP_BAD_REQUEST, "%s",
                                      err.text);
    }

    name.data = "picture";
    name.len = sizeof("picture") - 1;

    rc = ngx_http_vlm_store_upload_add(ctx->engine->store, dst.data, dst.len,
                                       name, file, &stored);

    free(dst.data);

    return rc == NGX_HTTP_VLM_STORE_OK
           ? NGX_OK : ngx_http_vlm_turn_store_error(ctx, &stored);
}


void
ngx_http_vlm_chat_free(ngx_http_vlm_chat_t *chat)
{
    free((char *) chat->session.data);
    free((char *) chat->message.data);
    free(chat->task_name);
    free(chat->image);

    chat->session.data = NULL;
    chat->message.data = NULL;
    chat->task_name = NULL;
    chat->image = NULL;
}


/* The family's rule for what is thinking and what is the answer. */

ngx_int_t
ngx_http_vlm_chat_split(ngx_http_vlm_ctx_t *ctx)
{
    u_char              *p, *last;
    ngx_str_t           *answer, *thinking;
    ngx_http_request_t  *r;

    static const char   end[] = "</think>";

    r = ctx->request;
    answer = &ctx->answer;
    thinking = &ctx->thinking;

    ngx_str_set(answer, "");
    ngx_str_set(thinking, "");

    if (ctx->text) {
        answer->data = ctx->text->pos;
        answer->len = ctx->text->last - ctx->text->pos;
    }

    if (!ctx->engine->thinking) {
        return NGX_OK;
    }

    if (ctx->chat.thinking) {

        *thinking = *answer;
        last = answer->data + answer->len;

        p = memmem(answer->data, answer->len, end, sizeof(end) - 1);

        if (p == NULL) {
            answer->len = 0;

        } else {
            thinking->len = p - thinking->data;

            answer->data = p + sizeof(end) - 1;
            answer->len = last - answer->data;

            p = memmem(answer->data, answer->len, end, sizeof(end) - 1);

            if (p) {
                answer->len = p - answer->data;
            }
        }

        if (ngx_http_vlm_chat_without(r, thinking, "<think>") != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_http_vlm_chat_strip(thinking);
    }

    if (ngx_http_vlm_chat_without(r, answer, "<answer>") != NGX_OK
        || ngx_http_vlm_chat_without(r, answer, "</answer>") != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_vlm_chat_strip(answer);

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_chat_without(ngx_http_request_t *r, ngx_str_t *text,
    const char *word)
{
    u_char  *p, *q, *last, *dst;
    size_t   len;

    len = ngx_strlen(word);
    last = text->data + text->len;

    if (memmem(text->data, text->len, word, len) == NULL) {
        return NGX_OK;
    }

    dst = ngx_pnalloc(r->pool, text->len);
    if (dst == NULL) {
        return NGX_ERROR;
    }

    q = dst;

    for (p = text->data; p < last; /* void */ ) {

        if ((size_t) (last - p) >= len && ngx_strncmp(p, word, len) == 0) {
            p += len;
            continue;
        }

        *q++ = *p++;
    }

    text->data = dst;
    text->len = q - dst;

    return NGX_OK;
}


static void
ngx_http_vlm_chat_strip(ngx_str_t *text)
{
    while (text->len && ngx_strchr(" \t\n\v\f\r", *text->data)) {
        text->data++;
        text->len--;
    }

    while (text->len && ngx_strchr(" \t\n\v\f\r", text->data[text->len - 1])) {
        text->len--;
    }
}


ngx_int_t
ngx_http_vlm_chat_answer(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_json_out_t  w;

    ngx_http_vlm_json_init(&w, 8 * NGX_HTTP_VLM_STORE_TEXT);

    ngx_http_vlm_json_open(&w, '{');

    ngx_http_vlm_json_put_key(&w, "answer");
    ngx_http_vlm_json_put_text(&w, (char *) ctx->answer.data, ctx->answer.len);

    ngx_http_vlm_json_put_key(&w, "context_used");
    ngx_http_vlm_json_put_bool(&w, ctx->context_used);

    if (ctx->stored.code != NGX_HTTP_VLM_STORE_OK
        && ctx->stored.code != NGX_HTTP_VLM_STORE_GONE)
    {
        ngx_http_vlm_json_put_key(&w, "error");
        ngx_http_vlm_json_put_text(&w, "This turn was not stored",
                                   sizeof("This turn was not stored") - 1);
    }

    if (ctx->n_dropped) {
        ngx_http_vlm_json_put_key(&w, "history_dropped");
        ngx_http_vlm_json_put_int(&w, ctx->n_dropped);
    }

    if ((uint64_t) ctx->picture.width * ctx->picture.height
        > ctx->engine->conf.max_pixels)
    {
        /* coordinates in the answer are of this size */

        ngx_http_vlm_json_put_key(&w, "image_resized");
        ngx_http_vlm_json_open(&w, '[');
        ngx_http_vlm_json_put_int(&w, ctx->picture.resized_width);
        ngx_http_vlm_json_put_int(&w, ctx->picture.resized_height);
        ngx_http_vlm_json_shut(&w, ']');
    }

    ngx_http_vlm_json_put_key(&w, "output_image");
    ngx_http_vlm_json_put_null(&w);

    ngx_http_vlm_chat_put_task(ctx, &w);

    ngx_http_vlm_json_put_key(&w, "thinking");
    ngx_http_vlm_json_put_text(&w, (char *) ctx->thinking.data,
                               ctx->thinking.len);

    ngx_http_vlm_json_put_key(&w, "turn_number");
    ngx_http_vlm_json_put_int(&w, ctx->turn_number);

    ngx_http_vlm_json_shut(&w, '}');
    (void) ngx_http_vlm_json_done(&w);

    return ngx_http_vlm_send_json(ctx->request, NGX_HTTP_OK, &w);
}


/* ctx->status and ctx->err; without a status, the engine's refusal of a job */

ngx_int_t
ngx_http_vlm_chat_failed(ngx_http_vlm_ctx_t *ctx)
{
    u_char                   *p;
    ngx_str_t                 text;
    ngx_http_vlm_json_out_t   w;

    if (ctx->status == 0) {
        ctx->status = NGX_HTTP_OK;
        ctx->chat.inference = 1;
    }

    if (ctx->status >= NGX_HTTP_INTERNAL_SERVER_ERROR
        && ctx->stored.code != NGX_HTTP_VLM_STORE_OK)
    {
        return ngx_http_vlm_store_refuse(ctx->request, ctx->engine,
                                         &ctx->stored);
    }

    if (ctx->status >= NGX_HTTP_INTERNAL_SERVER_ERROR) {
        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "vlm_engine \"%V\": %s", &ctx->engine->name,
                      ctx->err.text);
    }

    if (ctx->status != NGX_HTTP_OK) {
        return ngx_http_vlm_send_error(ctx->request, ctx->status,
                                       ctx->err.text);
    }

    text.data = ngx_pnalloc(ctx->request->pool,
                            sizeof("Inference error: ") + sizeof(ctx->err));
    if (text.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_sprintf(text.data, "%s%s",
                    ctx->chat.inference ? "Inference error: " : "",
                    ctx->err.text);
    text.len = p - text.data;

    ngx_http_vlm_json_init(&w, 64 * 1024);
    ngx_http_vlm_json_open(&w, '{');

    ngx_http_vlm_json_put_key(&w, "answer");
    ngx_http_vlm_json_put_text(&w, (char *) text.data, text.len);

    if (ctx->chat.inference) {
        ngx_http_vlm_json_put_key(&w, "context_used");
        ngx_http_vlm_json_put_bool(&w, 0);
    }

    ngx_http_vlm_json_put_key(&w, "error");
    ngx_http_vlm_json_put_text(&w, (char *) text.data, text.len);

    ngx_http_vlm_chat_put_task(ctx, &w);

    if (ctx->chat.inference) {
        ngx_http_vlm_json_put_key(&w, "turn_number");
        ngx_http_vlm_json_put_int(&w, ctx->n_entries);
    }

    ngx_http_vlm_json_shut(&w, '}');
    (void) ngx_http_vlm_json_done(&w);

    return ngx_http_vlm_send_json(ctx->request, NGX_HTTP_OK, &w);
}


static void
ngx_http_vlm_chat_put_task(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_json_out_t *w)
{
    ngx_http_vlm_json_put_key(w, "task");
    ngx_http_vlm_json_put_text(w, ctx->chat.task_name,
                               ngx_strlen(ctx->chat.task_name));

    if (ctx->chat.task_auto) {
        ngx_http_vlm_json_put_key(w, "task_source");
        ngx_http_vlm_json_put_text(w, "auto", sizeof("auto") - 1);
    }
}


static ngx_int_t
ngx_http_vlm_chat_copy(ngx_http_vlm_store_text_t *dst, const char *text)
{
    dst->data = strdup(text);
    dst->len = ngx_strlen(text);

    return dst->data ? NGX_OK : NGX_ERROR;
}
