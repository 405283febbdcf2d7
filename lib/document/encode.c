/* The pieces of documents to vectors: see encode.h. */

#include "document/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/hybrid.h"
#include "document/prompt.h"

#define OK  VLM_STORE_OK

typedef vlm_encode_t     encode_t;
typedef vlm_store_err_t  err_t;


static int
no_memory(err_t *err)
{
    if (err != NULL) {
        err->code = VLM_STORE_EIO;
        (void) snprintf(err->text, sizeof(err->text), "no memory for the vectors of a document");
    }

    return VLM_STORE_EIO;
}


static const char *
id_of(const encode_t *e)
{
    return e->set.docs[0].id;
}


void
vlm_encode_free(encode_t *e)
{
    vlm_document_page_free(&e->page);
    vlm_document_set_free(&e->set);
    free(e->vectors);
    free(e->out);

    e->vectors = NULL;
    e->out = NULL;
    e->done = 0;
    e->kept = 0;
}


/* ---- a document -------------------------------------------------------------------------- */


/* A document whose content is damaged gets zeros: it would be the next one for ever. */
static int
give_up(const encode_t *e, const vlm_document_t *doc, err_t *err)
{
    int      rc;
    int8_t  *zeros;

    zeros = calloc(doc->n_chunks, e->dim);

    if (zeros == NULL) {
        return no_memory(err);
    }

    rc = vlm_document_vectors(e->store, vlm_store_string(doc->id), e->model, zeros, doc->n_chunks,
                              e->dim, err);
    free(zeros);

    return rc == VLM_STORE_GONE ? OK : rc;
}


/* Takes over the vectors that there are: those of the first pieces. */
static int
begin(encode_t *e, err_t *err)
{
    size_t  n;

    e->vectors = calloc(e->set.n + 1, e->dim);
    e->out = malloc(e->dim * sizeof(*e->out));

    if (e->vectors == NULL || e->out == NULL) {
        vlm_encode_free(e);
        return no_memory(err);
    }

    for (n = 0; n < e->set.n && e->set.dim == e->dim && e->set.chunks[n].vector != NULL; n++) {
        memcpy(e->vectors + n * e->dim, e->set.chunks[n].vector, e->dim);
    }

    e->done = n;
    e->kept = n;

    return OK;
}


/* Vectors that are damaged are made again. */
static int
take(encode_t *e, err_t *err)
{
    int               rc;
    vlm_document_t    doc;
    vlm_store_text_t  id;

    rc = vlm_document_unencoded(e->store, e->model, &doc, err);

    if (rc != OK) {
        return rc;
    }

    id = vlm_store_string(doc.id);
    rc = vlm_document_pieces(e->store, id, e->model, &e->set, err);

    if (rc == VLM_STORE_ECORRUPT) {
        rc = vlm_document_pieces(e->store, id, 0, &e->set, err);
    }

    if (rc == VLM_STORE_ECORRUPT) {
        return give_up(e, &doc, err);
    }

    if (rc == VLM_STORE_NOTFOUND) {
        return OK;                         /* it was deleted meanwhile */
    }

    return rc == OK ? begin(e, err) : rc;
}


/* ---- a piece ----------------------------------------------------------------------------- */


/* OK without a page, whose number is then 0: it is damaged.  NOTFOUND: the document was deleted. */
static int
read_page(encode_t *e, uint32_t number, err_t *err)
{
    int               rc;
    vlm_document_t    doc;
    vlm_store_text_t  id;

    if (e->page.number == number) {
        return OK;
    }

    id = vlm_store_string(id_of(e));
    vlm_document_page_free(&e->page);

    rc = vlm_document_page(e->store, id, number, &e->page, err);

    if (rc == VLM_STORE_NOTFOUND) {
        rc = vlm_document_get(e->store, NULL, id, &doc, err);
    }

    return rc == VLM_STORE_ECORRUPT ? OK : rc;
}


/* The text that a search sees, malloc()ed; NULL and OK: the piece is damaged. */
static int
read_text(encode_t *e, const vlm_document_chunk_t *chunk, char **text, size_t *bytes, err_t *err)
{
    int               rc;
    vlm_page_t        page;
    vlm_store_text_t  whole;

    *text = NULL;
    rc = read_page(e, chunk->page, err);

    if (rc != OK || vlm_document_text(&e->page, chunk, &whole) != 0) {
        return rc;
    }

    page = (vlm_page_t) {
        .text = e->page.text, .bytes = e->page.bytes,
        .words = e->page.words, .n_words = e->page.n_words,
        .layer = vlm_page_layer(e->page.flags, e->page.words, e->page.n_words)
    };

    *text = vlm_prompt_text(&page, chunk->first, chunk->bytes, bytes);

    return *text == NULL ? no_memory(err) : OK;
}


static int
encode(encode_t *e, err_t *err)
{
    int     rc;
    char   *text;
    size_t  bytes;

    rc = read_text(e, &e->set.chunks[e->done], &text, &bytes, err);

    if (rc == VLM_STORE_NOTFOUND) {
        vlm_encode_free(e);                /* the document was deleted meanwhile */
        return OK;
    }

    if (rc != OK) {
        return rc;
    }

    if (text != NULL && e->run(e->data, text, bytes, e->out) == 0) {
        (void) vlm_vector_round(e->vectors + e->done * e->dim, e->out, e->dim);
    }

    free(text);
    e->done++;

    return OK;
}


int
vlm_encode_keep(encode_t *e, err_t *err)
{
    int  rc;

    if (e->done == e->kept) {
        return OK;
    }

    rc = vlm_document_vectors(e->store, vlm_store_string(id_of(e)), e->model, e->vectors, e->done,
                              e->dim, err);

    if (rc == VLM_STORE_GONE) {
        vlm_encode_free(e);
        return OK;
    }

    if (rc == OK) {
        e->kept = e->done;
    }

    return rc;
}


int
vlm_encode_next(encode_t *e, err_t *err)
{
    int  rc;

    if (e->set.n_docs == 0) {
        rc = take(e, err);

        if (rc != OK || e->set.n_docs == 0) {
            return rc;
        }
    }

    if (e->done < e->set.n) {
        rc = encode(e, err);

        if (rc != OK || e->set.n_docs == 0 || e->done < e->set.n) {
            return rc;
        }
    }

    rc = vlm_encode_keep(e, err);

    if (rc == OK) {
        vlm_encode_free(e);
    }

    return rc;
}
