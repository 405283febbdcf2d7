
/*
 * The prompt of a question: the sources that fit the context, each with its
 * heading, perhaps a picture, and its text, and the question last.  All of it
 * runs in threads.
 */


#include "question.h"
#include "../robobrain/chat.h"


#define NGX_HTTP_VLM_QUESTION_AROUND  96       /* tokens: template, headings'
                                                  ends */
#define NGX_HTTP_VLM_QUESTION_SHARE   4        /* of the context an answer gets
                                                  a quarter at most */
#define NGX_HTTP_VLM_QUESTION_PARTS   (3 * VLM_PICK_MAX + 1)


/* ---- pictures ------------------------------------------------------------ */


/* so many pages are shown: a picture costs seconds on a CPU */

static ngx_uint_t
ngx_http_vlm_question_most(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    vlm_stat_t  stat;

    if (ctx->engine->conf.facts.vision_layers == 0) {
        return 0;
    }

    vlm_stat(ctx->engine->life.vlm, &stat);

    return q->mode == VLM_PAGES_AUTO && ngx_strncmp(stat.device, "cpu", 3) == 0
           ? 1 : VLM_PICK_WHOLE;
}


static vlm_picture_t *
ngx_http_vlm_question_map(ngx_http_vlm_ctx_t *ctx, const char *path)
{
    vlm_file_t    file;
    vlm_pixels_t  pixels;

    if (ngx_http_vlm_map(&file, path) != 0) {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 "The page's picture cannot be read");
        return NULL;
    }

    ngx_memzero(&pixels, sizeof(vlm_pixels_t));

    return ngx_http_vlm_turn_decode(ctx, &file, &pixels);
}


static void
ngx_http_vlm_question_note(ngx_http_vlm_question_note_t *notes, size_t *n,
    const vlm_source_t *s, const vlm_err_t *err)
{
    ngx_http_vlm_question_note_t  *note;

    if (err->code != VLM_OK && *n < VLM_PICK_WHOLE) {
        note = &notes[(*n)++];

        note->document = s->document;
        note->page = s->page;
        note->err = *err;
    }
}


/* a page that cannot be drawn is read as text, and left out if it has none;
   the answer lists it */

static ngx_int_t
ngx_http_vlm_question_picture(ngx_http_vlm_ctx_t *ctx, vlm_source_t *s)
{
    ngx_http_vlm_question_t *q = ctx->data;

    int                  rc;
    vlm_store_err_t      stored;
    vlm_picture_info_t   info;
    ngx_http_vlm_draw_t  draw;

    ngx_memzero(&draw, sizeof(ngx_http_vlm_draw_t));

    draw.engine = ctx->engine;
    ngx_memcpy(draw.id, q->set.docs[s->document].id, sizeof(draw.id));
    draw.number = s->page;
    draw.until = q->until;
    draw.abandoned = &ctx->abandoned;
    draw.stored = &stored;

    rc = ngx_http_vlm_documents_draw(&draw);

    ngx_http_vlm_question_note(q->denied, &q->n_denied, s, &draw.denied);

    if (rc != 0) {

        if (stored.code != VLM_STORE_OK) {
            return ngx_http_vlm_fail_store(ctx, &stored);
        }

        if (ctx->abandoned) {
            return ngx_http_vlm_fail(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                     "The drawing of a page was stopped");
        }

        ngx_http_vlm_question_note(q->undrawn, &q->n_undrawn, s, &draw.err);

        return NGX_OK;
    }

    q->pictures[s->rank] = ngx_http_vlm_question_map(ctx, draw.path);

    if (q->pictures[s->rank] == NULL) {
        return NGX_ERROR;
    }

    vlm_picture_info(q->pictures[s->rank], &info);

    s->picture = 1;
    q->tokens[s->rank] = info.tokens;

    return NGX_OK;
}


static vlm_source_t *
ngx_http_vlm_question_ranked(ngx_http_vlm_question_t *q, ngx_uint_t rank)
{
    size_t  i;

    for (i = 0; i < q->n; i++) {
        if (q->sources[i].rank == rank) {
            return &q->sources[i];
        }
    }

    return NULL;
}


/* of the best pages first */

static ngx_int_t
ngx_http_vlm_question_pictures(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    int                   shows;
    ngx_uint_t            rank, most;
    vlm_source_t         *s;
    vlm_document_page_t  *page;

    q->until = ngx_http_vlm_documents_until();
    q->n_undrawn = q->n_denied = 0;

    most = ngx_http_vlm_question_most(ctx);
    shows = vlm_pick_shows(q->text.data, q->text.len);

    for (rank = 0; rank < VLM_PICK_MAX && most; rank++) {

        s = ngx_http_vlm_question_ranked(q, rank);

        if (s == NULL || !s->whole) {
            continue;
        }

        page = &q->pages[rank];

        if (page->flags == VLM_PDF_DAMAGED
            || !vlm_pick_picture(q->mode, shows,
                                 (page->flags & VLM_PDF_SCAN) != 0,
                                 page->bytes))
        {
            continue;
        }

        if (ngx_http_vlm_question_picture(ctx, s) != NGX_OK) {
            return NGX_ERROR;
        }

        most--;
    }

    return NGX_OK;
}


/* a page that has neither text nor picture says nothing */

static ngx_int_t
ngx_http_vlm_question_empty(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t            i, n;
    const vlm_err_t  *err;

    for (i = 0, n = 0; i < q->n; i++) {
        if (q->sources[i].picture || q->pages[q->sources[i].rank].bytes) {
            q->sources[n++] = q->sources[i];
        }
    }

    q->n = n;

    if (n) {
        return NGX_OK;
    }

    if (q->n_undrawn == 0) {
        return ngx_http_vlm_fail_input(ctx, "The document could not be read: "
                                       "its pages have no text, and are not "
                                       "shown to the model");
    }

    err = &q->undrawn[q->n_undrawn - 1].err;

    if (err->code == VLM_ELIMIT || err->code == VLM_ECANCELLED) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 "Too many pages are being drawn");
    }

    return ngx_http_vlm_fail_input(ctx, "The document could not be read: %s",
                                   err->text);
}


/* ---- its length ---------------------------------------------------------- */


static ngx_int_t
ngx_http_vlm_question_count(ngx_http_vlm_ctx_t *ctx, const char *text,
    size_t len, uint64_t *tokens)
{
    int          rc;
    size_t       n;
    uint32_t    *ids;
    uint64_t     bytes;
    vlm_err_t   *err;

    *tokens = vlm_tokens_least(ctx->engine->life.vlm, len);

    if (*tokens >= ctx->engine->conf.vlm.context) {
        return NGX_OK;
    }

    bytes = vlm_tokenize_memory(len);

    if (ngx_http_vlm_input_memory(ctx, bytes, "The text") != NGX_OK) {
        return NGX_ERROR;
    }

    err = &ctx->error.err;
    ngx_memzero(err, sizeof(vlm_err_t));

    rc = vlm_tokenize(ctx->engine->life.vlm, text, len, &ids, &n, err);

    vlm_budget_give(&ctx->engine->budget, bytes);

    if (rc != 0) {
        return ngx_http_vlm_fail_engine(ctx, NULL, NULL);
    }

    *tokens = n;
    free(ids);

    return NGX_OK;
}


/* with the picture, heading and text that it has now */

static ngx_int_t
ngx_http_vlm_question_measure(ngx_http_vlm_ctx_t *ctx, const vlm_source_t *s)
{
    ngx_http_vlm_question_t *q = ctx->data;

    char               *text;
    size_t              len;
    uint64_t            tokens;
    ngx_int_t           rc;
    vlm_picture_info_t  info;

    q->tokens[s->rank] = VLM_PROMPT_HEADING / 4;

    if (s->picture) {
        vlm_picture_info(q->pictures[s->rank], &info);
        q->tokens[s->rank] += info.tokens;
    }

    if (s->textless) {
        return NGX_OK;
    }

    text = ngx_http_vlm_sources_text(ctx, s, &len);

    if (text == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_vlm_question_count(ctx, text, len, &tokens);

    free(text);

    q->tokens[s->rank] += tokens;

    return rc;
}


static uint64_t
ngx_http_vlm_question_sum(ngx_http_vlm_question_t *q)
{
    size_t    i;
    uint64_t  sum;

    for (i = 0, sum = 0; i < q->n; i++) {
        sum += q->tokens[q->sources[i].rank];
    }

    return sum;
}


/* tokens that sources may have, beside the question and the answer */

static ngx_int_t
ngx_http_vlm_question_room(ngx_http_vlm_ctx_t *ctx, uint64_t *room)
{
    ngx_http_vlm_question_t *q = ctx->data;

    uint64_t  context, answer, tokens;

    context = ctx->engine->conf.vlm.context;
    answer = ctx->sampling.max_tokens ? ctx->sampling.max_tokens
                                      : ctx->engine->conf.vlm.max_tokens;
    answer = ngx_min(answer, context / NGX_HTTP_VLM_QUESTION_SHARE);

    if (ngx_http_vlm_question_count(ctx, q->text.data, q->text.len, &tokens)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    tokens += answer + NGX_HTTP_VLM_QUESTION_AROUND
              + sizeof(VLM_PROMPT_SYSTEM) / 4;

    *room = context > tokens ? context - tokens : 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_question_drop(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    if (!vlm_pick_drop(q->sources, &q->n, q->mode)) {
        return NGX_DECLINED;
    }

    return q->n == 1 ? ngx_http_vlm_question_measure(ctx, &q->sources[0])
                     : NGX_OK;
}


/* leaves out sources until the others fit; the last one may stay too long: the
   engine then says so, with its numbers */

static ngx_int_t
ngx_http_vlm_question_fit(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t     i;
    uint64_t   room;
    ngx_int_t  rc;

    if (ngx_http_vlm_question_room(ctx, &room) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < q->n; i++) {
        if (ngx_http_vlm_question_measure(ctx, &q->sources[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    while (ngx_http_vlm_question_sum(q) > room) {

        rc = ngx_http_vlm_question_drop(ctx);

        if (rc != NGX_OK) {
            return rc == NGX_DECLINED ? NGX_OK : NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* ---- its parts ----------------------------------------------------------- */


typedef struct {
    vlm_part_t                    parts[NGX_HTTP_VLM_QUESTION_PARTS];
    size_t                        n;
    char                          headings[VLM_PICK_MAX][VLM_PROMPT_HEADING];
    char                         *texts[VLM_PICK_MAX + 1];
    size_t                        n_texts;
} ngx_http_vlm_question_parts_t;


static void
ngx_http_vlm_question_part(ngx_http_vlm_question_parts_t *p, const char *text,
    size_t len)
{
    p->parts[p->n].text = text;
    p->parts[p->n].bytes = len;
    p->n++;
}


/* a source's text stands between its heading and an empty line */

static ngx_int_t
ngx_http_vlm_question_add(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_question_parts_t *p, size_t i)
{
    ngx_http_vlm_question_t *q = ctx->data;

    char                  *text;
    size_t                 len;
    vlm_source_t          *s;
    const vlm_document_t  *doc;

    s = &q->sources[i];
    doc = &q->set.docs[s->document];

    len = vlm_prompt_heading(p->headings[i], i + 1, doc->name, s->page,
                             doc->pages);

    ngx_http_vlm_question_part(p, p->headings[i], len);

    if (s->picture) {
        p->parts[p->n++].picture = q->pictures[s->rank];
    }

    if (s->textless) {
        return NGX_OK;
    }

    text = ngx_http_vlm_sources_text(ctx, s, &len);

    if (text == NULL) {
        return NGX_ERROR;
    }

    p->texts[p->n_texts++] = text;

    ngx_http_vlm_question_part(p, text, len);

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_question_last(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_question_parts_t *p)
{
    ngx_http_vlm_question_t *q = ctx->data;

    int    n;
    char  *text;

    n = asprintf(&text, "\n\nQuestion: %.*s", (int) q->text.len, q->text.data);

    if (n == -1) {
        return ngx_http_vlm_fail_memory(ctx, "the question");
    }

    p->texts[p->n_texts++] = text;

    ngx_http_vlm_question_part(p, text, n);

    return NGX_OK;
}


/* the prompt takes the pictures of its parts over */

static ngx_int_t
ngx_http_vlm_question_submit(ngx_http_vlm_ctx_t *ctx,
    ngx_http_vlm_question_parts_t *p)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t         i;
    vlm_part_t     system;
    vlm_message_t  messages[2];

    ngx_memzero(&system, sizeof(vlm_part_t));

    system.text = VLM_PROMPT_SYSTEM;
    system.bytes = sizeof(VLM_PROMPT_SYSTEM) - 1;

    messages[0].role = VLM_SYSTEM;
    messages[0].parts = &system;
    messages[0].n_parts = 1;

    messages[1].role = VLM_USER;
    messages[1].parts = p->parts;
    messages[1].n_parts = p->n;

    ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));

    ctx->prompt = vlm_prompt_make(ctx->engine->life.vlm, messages, 2,
                                  ngx_http_vlm_thinking_tail(ctx),
                                  &ctx->error.err);

    if (ctx->prompt == NULL) {
        return ngx_http_vlm_fail_engine(ctx, NULL, "context_length_exceeded");
    }

    for (i = 0; i < q->n; i++) {
        if (q->sources[i].picture) {
            q->pictures[q->sources[i].rank] = NULL;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_question_make(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t                          i;
    ngx_int_t                       rc;
    ngx_http_vlm_question_parts_t  *p;

    p = calloc(1, sizeof(ngx_http_vlm_question_parts_t));

    if (p == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the prompt");
    }

    for (i = 0, rc = NGX_OK; i < q->n && rc == NGX_OK; i++) {
        rc = ngx_http_vlm_question_add(ctx, p, i);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_vlm_question_last(ctx, p);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_vlm_question_submit(ctx, p);
    }

    for (i = 0; i < p->n_texts; i++) {
        free(p->texts[i]);
    }

    free(p);

    return rc;
}


/* ---- all of it ----------------------------------------------------------- */


static ngx_int_t
ngx_http_vlm_question_pick(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t        i;
    double       *scores;
    uint32_t      pages[VLM_DOCUMENT_MAX];
    vlm_piece_t  *pieces;

    pieces = ngx_http_vlm_sources_pieces(ctx);

    if (pieces == NULL) {
        return NGX_ERROR;
    }

    scores = ngx_http_vlm_sources_scores(ctx, q->text.data, q->text.len);

    if (scores == NULL) {
        free(pieces);
        return NGX_ERROR;
    }

    for (i = 0; i < q->set.n_docs; i++) {
        pages[i] = q->set.docs[i].state == VLM_DOCUMENT_READY
                   ? q->set.docs[i].read : 0;
    }

    q->n = vlm_pick(q->sources, q->mode, pieces, scores, q->set.n, pages,
                    (uint32_t) q->set.n_docs);

    vlm_pick_sort(q->sources, q->n);

    free(scores);
    free(pieces);

    return NGX_OK;
}


/* answers about documents are not drawn by lot, unless someone wants that */

static ngx_int_t
ngx_http_vlm_question_sampling(ngx_http_vlm_ctx_t *ctx)
{
    if (ctx->engine->conf.sampling.temperature < 0) {
        ctx->sampling.temperature = 0;
    }

    return ngx_http_vlm_fields_sampling(ctx);
}


void
ngx_http_vlm_question_prompt(ngx_http_vlm_ctx_t *ctx)
{
    if (ngx_http_vlm_question_sampling(ctx) == NGX_OK
        && ngx_http_vlm_sources_load(ctx, ctx->place.session) == NGX_OK
        && ngx_http_vlm_question_pick(ctx) == NGX_OK
        && ngx_http_vlm_sources_read(ctx) == NGX_OK
        && ngx_http_vlm_question_pictures(ctx) == NGX_OK
        && ngx_http_vlm_question_empty(ctx) == NGX_OK
        && ngx_http_vlm_question_fit(ctx) == NGX_OK)
    {
        (void) ngx_http_vlm_question_make(ctx);
    }
}
