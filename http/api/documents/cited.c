
/*
 * The answer to a question: what it cites, and which of its numbers no source
 * has; stored as a turn, and written whole or as events.
 */


#include "question.h"
#include "../robobrain/chat.h"
#include <math.h>


/* ---- in a thread --------------------------------------------------------- */


static ngx_int_t
ngx_http_vlm_cited_find(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t         i;
    vlm_cite_t    *c;
    vlm_source_t  *s;

    q->cites = calloc(q->n + 1, sizeof(vlm_cite_t));
    q->unsupported = calloc(1, sizeof(vlm_unsupported_t));

    if (q->cites == NULL || q->unsupported == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < q->n; i++) {
        c = &q->cites[i];
        s = &q->sources[i];

        ngx_http_vlm_sources_page(q, s, &c->page, &c->first, &c->bytes);

        c->name = q->set.docs[s->document].name;
        c->number = s->page;
    }

    return vlm_cite(q->cites, q->n, (char *) ctx->out.answer.data,
                    ctx->out.answer.len, q->unsupported)
           == 0 ? NGX_OK : NGX_ERROR;
}


void
ngx_http_vlm_question_store(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    int               context_used;
    vlm_store_turn_t  turn;

    if (ngx_http_vlm_cited_find(ctx) != NGX_OK) {
        (void) ngx_http_vlm_fail_memory(ctx, "the sources of an answer");
        return;
    }

    ngx_memzero(&turn, sizeof(vlm_store_turn_t));

    turn.message = q->text;
    turn.asked = ctx->times.wall;
    turn.task = vlm_store_string("ask");

    turn.answer.data = (char *) ctx->out.answer.data;
    turn.answer.len = ctx->out.answer.len;

    turn.thinking.data = (char *) ctx->out.thinking.data;
    turn.thinking.len = ctx->out.thinking.len;

    ctx->stored.code = vlm_store_session_append(ctx->engine->store,
                                                ctx->place.session, q->epoch,
                                                &turn, &q->turn_number,
                                                &context_used, &ctx->stored);
}


/* ---- its JSON ------------------------------------------------------------ */


/* a hundred thousandth of a page is less than a pixel */

static void
ngx_http_vlm_cited_put_share(vlm_json_out_t *w, float share)
{
    vlm_json_put_double(w, floor(share * 1e5 + 0.5) / 1e5);
}


static void
ngx_http_vlm_cited_put_boxes(vlm_json_out_t *w, const vlm_cite_t *c)
{
    size_t            i;
    const vlm_box_t  *b;

    vlm_json_add_open(w, "boxes", '[');

    for (i = 0; i < c->n_boxes; i++) {
        b = &c->boxes[i];

        vlm_json_open(w, '[');
        ngx_http_vlm_cited_put_share(w, b->x0);
        ngx_http_vlm_cited_put_share(w, b->y0);
        ngx_http_vlm_cited_put_share(w, b->x1);
        ngx_http_vlm_cited_put_share(w, b->y1);
        vlm_json_shut(w, ']');
    }

    vlm_json_shut(w, ']');
    vlm_json_add_bool(w, "cited", c->cited);
}


/* the piece that the search found, or the first of a page without one */

static void
ngx_http_vlm_cited_put_text(ngx_http_vlm_question_t *q, vlm_json_out_t *w,
    const vlm_source_t *s)
{
    char         *text;
    size_t        len;
    uint32_t      first, bytes;
    vlm_page_t    page;
    vlm_chunk_t   chunk;

    ngx_http_vlm_sources_page(q, s, &page, &first, &bytes);

    ngx_memzero(&chunk, sizeof(vlm_chunk_t));

    if (s->bytes) {
        first = s->first;
        bytes = s->bytes;

    } else if (vlm_chunk_next(&chunk, page.text, page.bytes)) {
        first = (uint32_t) chunk.first;
        bytes = (uint32_t) chunk.bytes;

    } else {
        bytes = 0;
    }

    text = vlm_prompt_text(&page, first, bytes, &len);

    if (text == NULL) {
        w->failed = 1;
        return;
    }

    vlm_json_add_text(w, "text", text, len);
    free(text);
}


/* before the answer is complete, nothing is cited */

static void
ngx_http_vlm_cited_put_sources(ngx_http_vlm_question_t *q, vlm_json_out_t *w)
{
    size_t                 i;
    const vlm_source_t    *s;
    const vlm_document_t  *doc;

    vlm_json_add_open(w, "sources", '[');

    for (i = 0; i < q->n; i++) {
        s = &q->sources[i];
        doc = &q->set.docs[s->document];

        vlm_json_open(w, '{');

        if (q->cites) {
            ngx_http_vlm_cited_put_boxes(w, &q->cites[i]);
        }

        vlm_json_add_string(w, "document", doc->id);
        vlm_json_add_string(w, "name", doc->name);
        vlm_json_add_int(w, "number", i + 1);
        vlm_json_add_bool(w, "ocr",
                          (q->pages[s->rank].flags & VLM_PDF_OCR) != 0);
        vlm_json_add_int(w, "page", s->page);
        vlm_json_add_double(w, "score", s->score);
        ngx_http_vlm_cited_put_text(q, w, s);
        vlm_json_shut(w, '}');
    }

    vlm_json_shut(w, ']');
}


static void
ngx_http_vlm_cited_put_pages(ngx_http_vlm_question_t *q, vlm_json_out_t *w)
{
    size_t               i;
    const vlm_source_t  *s, *last;

    vlm_json_add_open(w, "pages_read", '[');

    last = NULL;

    for (i = 0; i < q->n; i++) {
        s = &q->sources[i];

        if (last == NULL || last->document != s->document
            || last->page != s->page)
        {
            vlm_json_open(w, '{');
            vlm_json_add_string(w, "document", q->set.docs[s->document].id);
            vlm_json_add_int(w, "page", s->page);
            vlm_json_add_bool(w, "picture", s->picture);
            vlm_json_add_bool(w, "whole", s->whole);
            vlm_json_shut(w, '}');
        }

        last = s;
    }

    vlm_json_shut(w, ']');
}


static void
ngx_http_vlm_cited_put_undrawn(ngx_http_vlm_question_t *q, vlm_json_out_t *w)
{
    size_t                               i;
    const ngx_http_vlm_question_note_t  *u;

    vlm_json_add_open(w, "not_drawn", '[');

    for (i = 0; i < q->n_undrawn; i++) {
        u = &q->undrawn[i];

        vlm_json_open(w, '{');
        vlm_json_add_string(w, "document", q->set.docs[u->document].id);
        vlm_json_add_int(w, "page", u->page);
        vlm_json_add_string(w, "why", u->err.text);
        vlm_json_shut(w, '}');
    }

    vlm_json_shut(w, ']');
}


static void
ngx_http_vlm_cited_put_unsupported(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t                   i;
    const vlm_cite_range_t  *range;

    vlm_json_add_open(w, "unsupported", '[');

    for (i = 0; i < q->unsupported->n; i++) {
        range = &q->unsupported->range[i];

        vlm_json_put_text(w, (char *) ctx->out.answer.data + range->first,
                          range->bytes);
    }

    vlm_json_shut(w, ']');
}


void
ngx_http_vlm_question_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w)
{
    ngx_http_vlm_question_t *q = ctx->data;

    vlm_json_open(w, '{');

    vlm_json_add_text(w, "answer", (char *) ctx->out.answer.data,
                      ctx->out.answer.len);

    if (ctx->stored.code != VLM_STORE_OK
        && ctx->stored.code != VLM_STORE_GONE)
    {
        vlm_json_add_string(w, "error", "This turn was not stored");
    }

    ngx_http_vlm_cited_put_undrawn(q, w);
    ngx_http_vlm_cited_put_pages(q, w);
    ngx_http_vlm_cited_put_sources(q, w);
    vlm_json_add_text(w, "thinking", (char *) ctx->out.thinking.data,
                      ctx->out.thinking.len);
    ngx_http_vlm_fields_put_timings(ctx, w);
    vlm_json_add_int(w, "turn_number", q->turn_number);
    ngx_http_vlm_cited_put_unsupported(ctx, w);
    ngx_http_vlm_answer_put_usage(ctx, w, 1);

    vlm_json_shut(w, '}');
}


/* ---- events -------------------------------------------------------------- */


void
ngx_http_vlm_question_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last)
{
    ngx_http_vlm_question_t *q = ctx->data;

    ngx_http_vlm_unsent_t  u;

    ngx_http_vlm_unsent(ctx, w, last, &u);

    if (!q->told) {
        q->told = 1;

        ngx_http_vlm_stream_event(w, "event: sources\n");
        vlm_json_open(w, '{');
        ngx_http_vlm_cited_put_undrawn(q, w);
        ngx_http_vlm_cited_put_pages(q, w);
        ngx_http_vlm_cited_put_sources(q, w);
        vlm_json_shut(w, '}');
        ngx_http_vlm_stream_end(w);
    }

    ngx_http_vlm_answer_put_unsent(w, &u);

    if (last) {
        ngx_http_vlm_stream_event(w, "event: answer\n");
        ngx_http_vlm_question_answer(ctx, w);
        ngx_http_vlm_stream_end(w);
    }
}
