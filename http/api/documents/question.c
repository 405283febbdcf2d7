
/*
 * The dialect of POST /api/ask: a question about the documents of a session.
 */


#include "question.h"
#include "../robobrain/chat.h"


static ngx_int_t
ngx_http_vlm_question_documents(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *list)
{
    ngx_http_vlm_question_t *q = ctx->data;

    const vlm_json_t  *id;

    if (vlm_json_is_null(list)) {
        return NGX_OK;
    }

    if (!vlm_json_is_array(list)
        || vlm_json_count(list) > VLM_DOCUMENT_MAX)
    {
        return ngx_http_vlm_fail_input(ctx, "documents is not a list of up to "
                                       "%d ids", VLM_DOCUMENT_MAX);
    }

    for (id = vlm_json_first(list); id; id = vlm_json_next(id)) {

        if (vlm_json_text(id) == NULL) {
            return ngx_http_vlm_fail_input(ctx, "documents has an id that is "
                                           "not a string");
        }

        if (ngx_http_vlm_sources_named(q, vlm_json_text(id))) {
            continue;
        }

        q->ids[q->n_ids] = vlm_store_string(strdup(vlm_json_text(id)));

        if (q->ids[q->n_ids].data == NULL) {
            return ngx_http_vlm_fail_memory(ctx, "the documents");
        }

        q->n_ids++;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_question_pages(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *field)
{
    ngx_http_vlm_question_t *q = ctx->data;

    const char  *text;

    text = vlm_json_is_null(field) ? "auto" : vlm_json_text(field);

    if (text && ngx_strcmp(text, "auto") == 0) {
        q->mode = VLM_PAGES_AUTO;

    } else if (text && ngx_strcmp(text, "text") == 0) {
        q->mode = VLM_PAGES_TEXT;

    } else if (text && ngx_strcmp(text, "pictures") == 0) {
        q->mode = VLM_PAGES_PICTURES;
        return ngx_http_vlm_chat_sees(ctx);

    } else {
        return ngx_http_vlm_fail_input(ctx, "pages is not \"auto\", \"text\" "
                                       "or \"pictures\"");
    }

    return NGX_OK;
}


static void
ngx_http_vlm_question_fields(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_http_vlm_question_t  *q;

    if (!ctx->engine->conf.documents.on) {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_NOT_FOUND, "Not found");
        return;
    }

    q = ngx_http_vlm_asked_create(ctx, json, sizeof(ngx_http_vlm_question_t),
                                  "No JSON data provided");

    if (q == NULL
        || ngx_http_vlm_chat_session(ctx, json) != NGX_OK
        || ngx_http_vlm_chat_text(ctx, vlm_json_get(json, "question"),
                                  "The question", "Question is required",
                                  &q->text)
           != NGX_OK
        || ngx_http_vlm_question_documents(ctx,
                                           vlm_json_get(json, "documents"))
           != NGX_OK
        || ngx_http_vlm_question_pages(ctx, vlm_json_get(json, "pages"))
           != NGX_OK
        || ngx_http_vlm_fields_read(ctx, json, VLM_OF_BRAIN)
           != NGX_OK)
    {
        return;
    }

    ngx_http_vlm_chat_form(ctx, json,
                           vlm_json_is_true(vlm_json_get(json,
                                                         "enable_thinking")));

    (void) ngx_http_vlm_sources_check(ctx);
}


/* the loop, which may log */

static void
ngx_http_vlm_question_log_note(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_question_note_t *note, ngx_uint_t level)
{
    ngx_http_vlm_question_t *q = ctx->data;

    ngx_http_vlm_log(level, ctx->request->connection->log, 0, ctx->engine,
                     "document %s, page %uD: %s",
                     q->set.docs[note->document].id, note->page,
                     note->err.text);
}


static void
ngx_http_vlm_question_log(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t                         i;
    ngx_http_vlm_question_note_t  *note;

    for (i = 0; i < q->n_undrawn; i++) {
        note = &q->undrawn[i];

        ngx_http_vlm_question_log_note(ctx, note,
                                       ngx_http_vlm_reading_level(&note->err));
    }

    for (i = 0; i < q->n_denied; i++) {
        ngx_http_vlm_question_log_note(ctx, &q->denied[i], NGX_LOG_WARN);
    }
}


static ngx_int_t
ngx_http_vlm_question_ended(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_log(ctx);

    return ngx_http_vlm_thinking_ended(ctx);
}


static ngx_int_t
ngx_http_vlm_question_failed(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->data) {
        ngx_http_vlm_question_log(ctx);
    }

    return NGX_DECLINED;
}


void
ngx_http_vlm_question_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t  i;

    if (q == NULL) {
        return;
    }

    free((char *) q->text.data);

    for (i = 0; i < q->n_ids; i++) {
        free((char *) q->ids[i].data);
    }

    for (i = 0; i < VLM_PICK_MAX; i++) {
        vlm_document_page_free(&q->pages[i]);
        vlm_picture_free(q->pictures[i]);
    }

    vlm_document_set_free(&q->set);
    free(q->cites);
    free(q->unsupported);

    ngx_http_vlm_asked_free(ctx);
}


const ngx_http_vlm_dialect_t  ngx_http_vlm_question_dialect = {
    .fields = ngx_http_vlm_question_fields,
    .prompt = ngx_http_vlm_question_prompt,
    .ended = ngx_http_vlm_question_ended,
    .failed = ngx_http_vlm_question_failed,
    .store = ngx_http_vlm_question_store,
    .answer = ngx_http_vlm_question_answer,
    .stream_type = "text/event-stream; charset=utf-8",
    .chunk = ngx_http_vlm_question_chunk,
    .error = ngx_http_vlm_answer_put_error,
    .waits = ngx_http_vlm_stream_waits,
    .free = ngx_http_vlm_question_free
};
