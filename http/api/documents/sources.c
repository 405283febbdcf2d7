
/*
 * The documents of a session, their pieces and their scores for a question.
 * All of it runs in threads.
 */


#include "question.h"
#include "document/hybrid.h"


#define NGX_HTTP_VLM_SOURCES_QUERY  4096       /* bytes of a question that are
                                                  searched for: each of its
                                                  words costs a walk through
                                                  all pieces */


static ngx_int_t
ngx_http_vlm_sources_fail(ngx_http_vlm_ctx_t *ctx, vlm_store_err_t *err,
    const char *missing)
{
    if (err->code == VLM_STORE_NOTFOUND) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_NOT_FOUND, "%s", missing);
    }

    return ngx_http_vlm_fail_store(ctx, err);
}


ngx_uint_t
ngx_http_vlm_sources_named(ngx_http_vlm_question_t *q, const char *id)
{
    size_t  i;

    for (i = 0; i < q->n_ids; i++) {
        if (ngx_strcmp(q->ids[i].data, id) == 0) {
            return 1;
        }
    }

    return 0;
}


/* the states of the documents that are wanted, which are n of all */

static ngx_int_t
ngx_http_vlm_sources_states(ngx_http_vlm_ctx_t *ctx,
    const vlm_document_t *docs, size_t n)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t                 i, wanted, ready;
    const vlm_document_t  *failed;

    failed = NULL;
    wanted = 0;
    ready = 0;

    for (i = 0; i < n; i++) {

        if (q->n_ids && !ngx_http_vlm_sources_named(q, docs[i].id)) {
            continue;
        }

        wanted++;

        if (docs[i].state == VLM_DOCUMENT_FAILED) {
            failed = &docs[i];

        } else if (docs[i].state == VLM_DOCUMENT_READY) {
            ready++;

        } else {
            return ngx_http_vlm_fail(ctx, NGX_HTTP_CONFLICT,
                                     "The document is still being read");
        }
    }

    if (wanted < q->n_ids) {
        return ngx_http_vlm_fail(ctx, NGX_HTTP_NOT_FOUND, "This session has "
                                 "no such document");
    }

    if (ready) {
        return NGX_OK;
    }

    return failed
           ? ngx_http_vlm_fail_input(ctx, "The document could not be read: %s",
                                     failed->error)
           : ngx_http_vlm_fail_input(ctx, "No documents in this session");
}


ngx_int_t
ngx_http_vlm_sources_check(ngx_http_vlm_ctx_t *ctx)
{
    size_t            n;
    ngx_int_t         rc;
    vlm_document_t   *docs;
    vlm_store_err_t   err;

    docs = malloc(VLM_DOCUMENT_MAX * sizeof(vlm_document_t));

    if (docs == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the documents");
    }

    if (vlm_document_list(ctx->engine->store, ctx->place.session, docs, &n,
                          &err)
        != VLM_STORE_OK)
    {
        rc = ngx_http_vlm_sources_fail(ctx, &err, "Session not found");

    } else {
        rc = ngx_http_vlm_sources_states(ctx, docs, n);
    }

    free(docs);

    return rc;
}


ngx_int_t
ngx_http_vlm_sources_load(ngx_http_vlm_ctx_t *ctx, vlm_store_text_t session)
{
    ngx_http_vlm_question_t *q = ctx->data;

    vlm_store_err_t     err;
    vlm_store_loaded_t  loaded;

    if (vlm_store_session_load(ctx->engine->store, session, 0,
                               &loaded, &err)
        != VLM_STORE_OK)
    {
        return ngx_http_vlm_sources_fail(ctx, &err, "Session not found");
    }

    q->epoch = loaded.epoch;

    vlm_store_loaded_free(&loaded);

    vlm_document_set_free(&q->set);

    if (vlm_document_chunks(ctx->engine->store, session, q->ids,
                            q->n_ids, ngx_http_vlm_encoding_model(ctx->engine),
                            &q->set, &err)
        != VLM_STORE_OK)
    {
        ngx_memzero(&q->set, sizeof(vlm_document_set_t));

        return ngx_http_vlm_sources_fail(ctx, &err, "This session has no such "
                                         "document");
    }

    return ngx_http_vlm_sources_states(ctx, q->set.docs, q->set.n_docs);
}


vlm_piece_t *
ngx_http_vlm_sources_pieces(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t                       i;
    vlm_piece_t                 *pieces;
    const vlm_document_chunk_t  *chunk;

    pieces = calloc(q->set.n + 1, sizeof(vlm_piece_t));

    if (pieces == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the search");
        return NULL;
    }

    for (i = 0; i < q->set.n; i++) {
        chunk = &q->set.chunks[i];

        pieces[i].document = chunk->document;
        pieces[i].page = chunk->page;
        pieces[i].first = chunk->first;
        pieces[i].bytes = chunk->bytes;
    }

    return pieces;
}


/* pieces without a vector have that of no text */

static vlm_vector_t *
ngx_http_vlm_sources_vectors(ngx_http_vlm_question_t *q)
{
    float          scale;
    size_t         i;
    const int8_t  *values;
    vlm_vector_t  *vectors;

    vectors = calloc(q->set.n, sizeof(vlm_vector_t));

    for (i = 0; vectors && i < q->set.n; i++) {
        values = q->set.chunks[i].vector;
        scale = values ? vlm_vector_scale(values, q->set.dim) : 0;

        if (scale > 0) {
            vectors[i].values = values;
            vectors[i].scale = scale;
        }
    }

    return vectors;
}


/* by words and by meaning, with the question's vector in values [dim] */

static ngx_int_t
ngx_http_vlm_sources_fuse(ngx_http_vlm_question_t *q, double *scores,
    const vlm_terms_t *words, const vlm_vector_t *meaning)
{
    int            rc;
    vlm_vector_t  *vectors;

    vectors = ngx_http_vlm_sources_vectors(q);

    rc = vectors == NULL
         || vlm_hybrid_scores(scores, q->set.terms, vectors, q->set.n,
                              q->set.dim, words, meaning);

    free(vectors);

    return rc == 0 ? NGX_OK : NGX_ERROR;
}


/* The question's vector; NGX_DECLINED: the search is by words alone, since no
   piece has a vector, or the question gets none. */

static ngx_int_t
ngx_http_vlm_sources_meaning(ngx_http_vlm_ctx_t *ctx, const char *query,
    size_t len, int8_t *values, vlm_vector_t *meaning)
{
    ngx_http_vlm_question_t *q = ctx->data;

    vlm_err_t  err;

    ngx_memzero(&err, sizeof(vlm_err_t));

    if (ngx_http_vlm_encoding_question(ctx->engine, query, len, values,
                                       q->set.dim, &meaning->scale, &err)
        != 0)
    {
        ngx_http_vlm_log(NGX_LOG_ERR, ctx->engine->log, 0, ctx->engine,
                         "a question about documents has no vector: %s",
                         err.text);
        return NGX_DECLINED;
    }

    meaning->values = values;

    return meaning->scale > 0 ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_vlm_sources_search(ngx_http_vlm_ctx_t *ctx, double *scores,
    const char *query, size_t len, const vlm_terms_t *words)
{
    ngx_http_vlm_question_t *q = ctx->data;

    int8_t        *values;
    ngx_int_t      rc;
    vlm_vector_t   meaning;

    rc = NGX_DECLINED;

    if (q->set.dim) {
        values = malloc(q->set.dim);

        if (values == NULL) {
            return NGX_ERROR;
        }

        rc = ngx_http_vlm_sources_meaning(ctx, query, len, values, &meaning);

        if (rc == NGX_OK) {
            rc = ngx_http_vlm_sources_fuse(q, scores, words, &meaning);
        }

        free(values);
    }

    if (rc == NGX_DECLINED) {
        vlm_bm25(scores, q->set.terms, q->set.n, words);
        rc = NGX_OK;
    }

    return rc;
}


double *
ngx_http_vlm_sources_scores(ngx_http_vlm_ctx_t *ctx, const char *query,
    size_t len)
{
    ngx_http_vlm_question_t *q = ctx->data;

    double       *scores;
    ngx_int_t     rc;
    vlm_terms_t   words;

    words.terms = NULL;
    scores = calloc(q->set.n + 1, sizeof(double));

    len = vlm_utf8_whole(query, ngx_min(len, NGX_HTTP_VLM_SOURCES_QUERY));

    rc = scores && vlm_terms_of(&words, query, len) == 0
         ? ngx_http_vlm_sources_search(ctx, scores, query, len, &words)
         : NGX_ERROR;

    free(words.terms);

    if (rc != NGX_OK) {
        free(scores);
        (void) ngx_http_vlm_fail_memory(ctx, "the search");
        return NULL;
    }

    return scores;
}


ngx_int_t
ngx_http_vlm_sources_read(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_question_t *q = ctx->data;

    size_t           i;
    vlm_source_t    *s;
    vlm_store_err_t  err;

    for (i = 0; i < q->n; i++) {
        s = &q->sources[i];

        if (vlm_document_page(ctx->engine->store,
                              vlm_store_string(q->set.docs[s->document].id),
                              s->page, &q->pages[s->rank], &err)
            != VLM_STORE_OK)
        {
            ngx_memzero(&q->pages[s->rank], sizeof(vlm_document_page_t));

            return ngx_http_vlm_sources_fail(ctx, &err, "The document was "
                                             "removed");
        }
    }

    return NGX_OK;
}


void
ngx_http_vlm_sources_page(ngx_http_vlm_question_t *q,
    const vlm_source_t *source, vlm_page_t *page, uint32_t *first,
    uint32_t *bytes)
{
    const vlm_document_page_t  *read;

    read = &q->pages[source->rank];

    page->text = read->text;
    page->bytes = read->bytes;
    page->words = read->words;
    page->n_words = read->n_words;
    page->width = read->width;
    page->height = read->height;
    page->layer = vlm_page_layer(read->flags, read->words, read->n_words);

    *first = source->whole ? 0 : source->first;
    *bytes = source->whole ? (uint32_t) read->bytes : source->bytes;
}


char *
ngx_http_vlm_sources_text(ngx_http_vlm_ctx_t *ctx, const vlm_source_t *source,
    size_t *len)
{
    ngx_http_vlm_question_t *q = ctx->data;

    char        *text;
    uint32_t     first, bytes;
    vlm_page_t   page;

    ngx_http_vlm_sources_page(q, source, &page, &first, &bytes);

    text = vlm_prompt_text(&page, first, bytes, len);

    if (text == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the text of a page");
    }

    return text;
}
