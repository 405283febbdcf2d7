
/*
 * POST /ask, /summarize and /compare of a PDF service: its prompts, over the
 * best pieces of a session's documents, and its answers, without sources.
 * Bodies are checked as FastAPI checks them.
 */


#include "question.h"
#include "../robobrain/chat.h"
#include "api/wrong.h"
#include <stdio.h>


#define NGX_HTTP_VLM_SERVICE_WRONG  422        /* status: fields are wrong */

#define NGX_HTTP_VLM_SERVICE_UNKNOWN                                          \
    "Session not found. Please upload a PDF first."
#define NGX_HTTP_VLM_SERVICE_FIRST   "Please upload a PDF first!"
#define NGX_HTTP_VLM_SERVICE_MEMORY                                           \
    "GPU memory exhausted. Please try again."


/* the kind of the request */

typedef struct {
    const char                   *key;         /* of the answer */
    const vlm_wrong_field_t      *fields;      /* of the body */
    const char                   *before;      /* the context */
    const char                   *after;
    const char                   *none;        /* the answer without context */
    ngx_uint_t                    question;    /* is a field, and in the prompt
                                                  behind the context */
    ngx_uint_t                    pieces;      /* of a session */
    ngx_uint_t                    tokens;      /* of the answer, at most */
} ngx_http_vlm_service_task_t;


typedef struct {
    ngx_http_vlm_question_t            q;
    const ngx_http_vlm_service_task_t *task;
    vlm_store_text_t                   session[2];     /* the second: of a
                                                          comparison */
    const char                        *said;   /* the answer without the model,
                                                  or NULL */
    unsigned                           refused:1;      /* "said" is an error */
} ngx_http_vlm_service_t;


/* sessionId came with the service's second release */

static const vlm_wrong_field_t  ngx_http_vlm_service_ask_body[] = {
    { "question", 0 }, { "sessionId", 1 }, { NULL, 0 }
};

static const vlm_wrong_field_t  ngx_http_vlm_service_summary_body[] = {
    { "sessionId", 1 }, { NULL, 0 }
};

static const vlm_wrong_field_t  ngx_http_vlm_service_compare_body[] = {
    { "session_id_1", 0 }, { "session_id_2", 0 }, { "question", 0 },
    { NULL, 0 }
};


static const ngx_http_vlm_service_task_t  ngx_http_vlm_service_asks = {
    "answer", ngx_http_vlm_service_ask_body, VLM_PROMPT_ASK,
    VLM_PROMPT_ANSWER, "No relevant context found.", 1, 4, 256
};

static const ngx_http_vlm_service_task_t  ngx_http_vlm_service_summarizes = {
    "summary", ngx_http_vlm_service_summary_body, VLM_PROMPT_SUMMARIZE,
    VLM_PROMPT_SUMMARY, "No document context available to summarize.", 0, 6, 220
};

static const ngx_http_vlm_service_task_t  ngx_http_vlm_service_compares = {
    "comparison", ngx_http_vlm_service_compare_body, VLM_PROMPT_COMPARE,
    VLM_PROMPT_ANSWER, "No relevant context found.", 1, 3, 256
};


/* ---- fields -------------------------------------------------------------- */


/* a field that was checked */

static ngx_int_t
ngx_http_vlm_service_text(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    const char *field, vlm_store_text_t *text)
{
    size_t       len;
    const char  *value;

    value = vlm_json_text(vlm_json_get(json, field));
    len = ngx_strlen(value);

    if (len > NGX_HTTP_VLM_MESSAGE) {
        return ngx_http_vlm_fail_input(ctx, "%s has %uz bytes, it may have %d",
                                       field, len, NGX_HTTP_VLM_MESSAGE);
    }

    *text = vlm_store_string(strdup(value));

    return text->data ? NGX_OK : ngx_http_vlm_fail_memory(ctx, "the request");
}


/* the name in the store of the client's session, malloc()ed */

static ngx_int_t
ngx_http_vlm_service_name(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    const char *field, vlm_store_text_t *session)
{
    *session = vlm_store_string(vlm_json_text(vlm_json_get(json, field)));
    *session = ngx_http_vlm_order_session(ctx, *session);
    *session = vlm_store_string(strdup(session->data));

    return session->data ? NGX_OK
                         : ngx_http_vlm_fail_memory(ctx, "the session");
}


/* the session, or the one of the newest document; without either "said" is
   set */

static ngx_int_t
ngx_http_vlm_service_session(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_http_vlm_service_t *s = ctx->data;

    char             newest[VLM_STORE_SESSION + 1];
    vlm_store_err_t  err;

    if (!vlm_json_is_null(vlm_json_get(json, "sessionId"))) {
        return ngx_http_vlm_service_name(ctx, json, "sessionId",
                                         &s->session[0]);
    }

    if (!ctx->engine->conf.documents.legacy) {
        s->said = NGX_HTTP_VLM_SERVICE_FIRST;
        return NGX_OK;
    }

    switch (vlm_document_newest(ctx->engine->store,
                                ngx_http_vlm_order_salt(&ctx->place.rank),
                                newest, &err))
    {
    case VLM_STORE_OK:
        s->session[0] = vlm_store_string(strdup(newest));

        return s->session[0].data
               ? NGX_OK : ngx_http_vlm_fail_memory(ctx, "the session");

    case VLM_STORE_NOTFOUND:
        s->said = NGX_HTTP_VLM_SERVICE_FIRST;
        return NGX_OK;

    default:
        return ngx_http_vlm_fail_store(ctx, &err);
    }
}


/* NGX_OK: the session has a document that was read; NGX_DECLINED: none; else
   the request has failed */

static ngx_int_t
ngx_http_vlm_service_ready(ngx_http_vlm_ctx_t *ctx, vlm_store_text_t session)
{
    int               rc;
    size_t            i, n;
    ngx_uint_t        ready, waits;
    vlm_document_t   *docs;
    vlm_store_err_t   err;

    docs = malloc(VLM_DOCUMENT_MAX * sizeof(vlm_document_t));

    if (docs == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the documents");
    }

    rc = vlm_document_list(ctx->engine->store, session, docs, &n, &err);

    ready = 0;
    waits = 0;

    for (i = 0; rc == VLM_STORE_OK && i < n; i++) {
        ready |= docs[i].state == VLM_DOCUMENT_READY;
        waits |= docs[i].state == VLM_DOCUMENT_WAITING
                 || docs[i].state == VLM_DOCUMENT_READING;
    }

    free(docs);

    if (rc != VLM_STORE_OK && rc != VLM_STORE_NOTFOUND
        && rc != VLM_STORE_EINPUT)
    {
        return ngx_http_vlm_fail_store(ctx, &err);
    }

    if (!ready && waits) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_CONFLICT,
                                 "The document is still being read");
    }

    return ready ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_vlm_service_create(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    const ngx_http_vlm_service_task_t *task)
{
    vlm_err_t                err;
    ngx_http_vlm_service_t  *s;

    if (!ctx->engine->conf.documents.on) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_NOT_FOUND, "Not found");
    }

    if (vlm_wrong_strings(json, task->fields, &ctx->out.json, &err) != 0) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_VLM_SERVICE_WRONG, "%s",
                                 err.text);
    }

    s = calloc(1, sizeof(ngx_http_vlm_service_t));

    if (s == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the request");
    }

    ctx->data = s;
    ctx->heavy = 1;

    vlm_fields_init(ngx_http_vlm_fields(ctx));

    s->task = task;

    return task->question
           ? ngx_http_vlm_service_text(ctx, json, "question", &s->q.text)
           : NGX_OK;
}


static void
ngx_http_vlm_service_fields(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_http_vlm_service_t             *s;
    const ngx_http_vlm_service_task_t  *task;

    task = ctx->dialect == &ngx_http_vlm_service_ask
           ? &ngx_http_vlm_service_asks : &ngx_http_vlm_service_summarizes;

    if (ngx_http_vlm_service_create(ctx, json, task) != NGX_OK
        || ngx_http_vlm_service_session(ctx, json) != NGX_OK)
    {
        return;
    }

    s = ctx->data;

    if (s->said == NULL
        && ngx_http_vlm_service_ready(ctx, s->session[0]) == NGX_DECLINED)
    {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_NOT_FOUND, "%s",
                                 NGX_HTTP_VLM_SERVICE_UNKNOWN);
    }
}


static void
ngx_http_vlm_service_compare_fields(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json)
{
    ngx_int_t                rc;
    ngx_uint_t               i;
    ngx_http_vlm_service_t  *s;

    if (ngx_http_vlm_service_create(ctx, json, &ngx_http_vlm_service_compares)
        != NGX_OK)
    {
        return;
    }

    s = ctx->data;

    for (i = 0; i < 2 && s->said == NULL; i++) {

        if (ngx_http_vlm_service_name(ctx, json, i ? "session_id_2"
                                                   : "session_id_1",
                                      &s->session[i])
            != NGX_OK)
        {
            return;
        }

        rc = ngx_http_vlm_service_ready(ctx, s->session[i]);

        if (rc == NGX_DECLINED) {
            s->said = "One or both sessions do not have a PDF loaded";
            s->refused = 1;

        } else if (rc != NGX_OK) {
            return;
        }
    }
}


/* ---- the prompt ---------------------------------------------------------- */


/* a session's best pieces, the best first; the number in n */

static ngx_int_t
ngx_http_vlm_service_find(ngx_http_vlm_ctx_t *ctx, vlm_store_text_t session)
{
    ngx_http_vlm_service_t *s = ctx->data;

    size_t        i;
    double       *scores;
    vlm_piece_t  *pieces;

    for (i = 0; i < VLM_PICK_MAX; i++) {
        vlm_document_page_free(&s->q.pages[i]);
        ngx_memzero(&s->q.pages[i], sizeof(vlm_document_page_t));
    }

    if (ngx_http_vlm_sources_load(ctx, session) != NGX_OK) {
        return NGX_ERROR;
    }

    pieces = ngx_http_vlm_sources_pieces(ctx);

    if (pieces == NULL) {
        return NGX_ERROR;
    }

    scores = s->task->question
             ? ngx_http_vlm_sources_scores(ctx, s->q.text.data, s->q.text.len)
             : ngx_http_vlm_sources_scores(ctx, VLM_PROMPT_TOPIC,
                                           sizeof(VLM_PROMPT_TOPIC) - 1);

    if (scores) {
        s->q.n = vlm_pick_pieces(s->q.sources, s->task->pieces, pieces, scores,
                                 s->q.set.n);
    }

    free(pieces);

    if (scores == NULL) {
        return NGX_ERROR;
    }

    free(scores);

    return ngx_http_vlm_sources_read(ctx);
}


/* the first n pieces, with an empty line between them, to f */

static ngx_int_t
ngx_http_vlm_service_pieces(ngx_http_vlm_ctx_t *ctx, size_t n, FILE *f)
{
    ngx_http_vlm_service_t *s = ctx->data;

    char    *text;
    size_t   i, len;

    for (i = 0; i < s->q.n && i < n; i++) {
        text = ngx_http_vlm_sources_text(ctx, &s->q.sources[i], &len);

        if (text == NULL) {
            return NGX_ERROR;
        }

        (void) fprintf(f, "%s%.*s", i ? "\n\n" : "", (int) len, text);
        free(text);
    }

    return NGX_OK;
}


/* NGX_DECLINED: there is no context */

static ngx_int_t
ngx_http_vlm_service_write(ngx_http_vlm_ctx_t *ctx, size_t n, FILE *f)
{
    ngx_http_vlm_service_t *s = ctx->data;

    size_t  i, found;

    (void) fputs(s->task->before, f);

    found = 0;

    for (i = 0; i < 2 && s->session[i].data; i++) {

        if (ngx_http_vlm_service_find(ctx, s->session[i]) != NGX_OK) {
            return NGX_ERROR;
        }

        (void) fputs(i ? VLM_PROMPT_SECOND : "", f);

        if (ngx_http_vlm_service_pieces(ctx, n, f) != NGX_OK) {
            return NGX_ERROR;
        }

        found += s->q.n;
    }

    if (s->task->question) {
        (void) fprintf(f, "%s%.*s", VLM_PROMPT_QUESTION, (int) s->q.text.len,
                       s->q.text.data);
    }

    (void) fputs(s->task->after, f);

    return found ? NGX_OK : NGX_DECLINED;
}


/* with n pieces of each session; malloc()ed, or NULL: it has failed, or there
   is no context, which has an answer */

static char *
ngx_http_vlm_service_make(ngx_http_vlm_ctx_t *ctx, size_t n, size_t *len)
{
    ngx_http_vlm_service_t *s = ctx->data;

    int         bad;
    char       *text;
    FILE       *f;
    ngx_int_t   rc;

    f = open_memstream(&text, len);

    if (f == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the prompt");
        return NULL;
    }

    rc = ngx_http_vlm_service_write(ctx, n, f);

    bad = ferror(f);
    bad |= fclose(f) != 0;

    if (rc == NGX_OK && !bad) {
        return text;
    }

    free(text);

    if (rc == NGX_DECLINED) {
        s->said = s->task->none;

    } else if (rc == NGX_OK) {
        (void) ngx_http_vlm_fail_memory(ctx, "the prompt");
    }

    return NULL;
}


/* NGX_DECLINED: it leaves no room for the answer */

static ngx_int_t
ngx_http_vlm_service_try(ngx_http_vlm_ctx_t *ctx, const char *text, size_t len)
{
    vlm_part_t     part;
    vlm_message_t  message;

    ngx_memzero(&part, sizeof(vlm_part_t));

    part.text = text;
    part.bytes = len;

    message.role = VLM_USER;
    message.parts = &part;
    message.n_parts = 1;

    ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));

    ctx->prompt = vlm_prompt_make(ctx->engine->life.vlm, &message, 1,
                                  ngx_http_vlm_thinking_tail(ctx),
                                  &ctx->error.err);

    if (ctx->prompt) {
        return vlm_prompt_tokens(ctx->prompt) + ctx->sampling.max_tokens
               <= ctx->engine->conf.vlm.context ? NGX_OK : NGX_DECLINED;
    }

    return ctx->error.err.code == VLM_ELIMIT
           ? NGX_DECLINED
           : ngx_http_vlm_fail_engine(ctx, NULL, NULL);
}


/* leaves out the worst pieces until the answer has room */

static void
ngx_http_vlm_service_prompt(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_service_t *s = ctx->data;

    char       *text;
    size_t      n, len;
    ngx_int_t   rc;

    if (s->said) {
        return;
    }

    ctx->sampling.temperature = 0;
    ctx->sampling.repetition_penalty = 1;
    ctx->sampling.max_tokens = (uint32_t) s->task->tokens;

    for (n = s->task->pieces; n; n--) {

        text = ngx_http_vlm_service_make(ctx, n, &len);

        if (text == NULL) {
            return;
        }

        rc = ngx_http_vlm_service_try(ctx, text, len);

        free(text);

        if (rc != NGX_DECLINED || (n == 1 && ctx->prompt)) {
            return;
        }

        vlm_prompt_free(ctx->prompt);
        ctx->prompt = NULL;
    }

    (void) ngx_http_vlm_fail_engine(ctx, NULL, "context_length_exceeded");
}


/* ---- the answer ---------------------------------------------------------- */


static ngx_int_t
ngx_http_vlm_service_ended(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_service_t *s = ctx->data;

    return s->said ? NGX_OK : ngx_http_vlm_thinking_ended(ctx);
}


static void
ngx_http_vlm_service_strip(ngx_str_t *text)
{
    while (text->len && strchr(" \t\r\n", text->data[0])) {
        text->data++;
        text->len--;
    }

    while (text->len && strchr(" \t\r\n", text->data[text->len - 1])) {
        text->len--;
    }
}


static void
ngx_http_vlm_service_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_service_t *s = ctx->data;

    ngx_str_t  text;

    text = ctx->out.answer;

    if (s->said) {
        text.data = (u_char *) s->said;
        text.len = ngx_strlen(s->said);
    }

    ngx_http_vlm_service_strip(&text);

    vlm_json_open(w, '{');
    vlm_json_add_text(w, s->refused ? "error" : s->task->key,
                      (char *) text.data, text.len);
    vlm_json_shut(w, '}');
}


/* a body that is not JSON has failed before its fields were read, without a
   code */

static ngx_int_t
ngx_http_vlm_service_failed(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->data == NULL && ctx->error.status == NGX_HTTP_BAD_REQUEST
        && ctx->error.code == NULL && ctx->error.err.code == VLM_OK)
    {
        vlm_wrong_json(&ctx->out.json, ctx->error.err.text,
                       ctx->error.err.text);
        ctx->error.status = NGX_HTTP_VLM_SERVICE_WRONG;
    }

    if (ctx->error.status == NGX_HTTP_VLM_SERVICE_WRONG) {

        if (ctx->out.json.failed) {

            /* the body is too long to be sent back */

            vlm_json_release(&ctx->out.json);
            return NGX_DECLINED;
        }

        ctx->out.status = NGX_HTTP_VLM_SERVICE_WRONG;
        return NGX_OK;
    }

    if (ctx->error.err.code == VLM_EMEMORY) {
        ctx->error.err.code = VLM_OK;
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, "%s",
                                 NGX_HTTP_VLM_SERVICE_MEMORY);
    }

    return NGX_DECLINED;
}


static void
ngx_http_vlm_service_free(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_service_t *s = ctx->data;

    if (s) {
        free((char *) s->session[0].data);
        free((char *) s->session[1].data);
        ngx_http_vlm_question_free(ctx);
    }
}


#define NGX_HTTP_VLM_SERVICE(name)                                            \
    {                                                                         \
        .fields = name,                                                       \
        .prompt = ngx_http_vlm_service_prompt,                                \
        .ended = ngx_http_vlm_service_ended,                                  \
        .answer = ngx_http_vlm_service_answer,                                \
        .failed = ngx_http_vlm_service_failed,                                \
        .free = ngx_http_vlm_service_free                                     \
    }


const ngx_http_vlm_dialect_t  ngx_http_vlm_service_ask =
    NGX_HTTP_VLM_SERVICE(ngx_http_vlm_service_fields);

const ngx_http_vlm_dialect_t  ngx_http_vlm_service_summarize =
    NGX_HTTP_VLM_SERVICE(ngx_http_vlm_service_fields);

const ngx_http_vlm_dialect_t  ngx_http_vlm_service_compare =
    NGX_HTTP_VLM_SERVICE(ngx_http_vlm_service_compare_fields);
