/*
 * Vectors for the pieces of documents, one piece at a time: the oldest document first, its pieces
 * in their order.  Vectors are kept in the store as often as the caller wants, so that a later
 * start goes on there.  A piece that cannot be encoded gets zeros, which no search finds.
 */

#ifndef VLM_ENCODE_H
#define VLM_ENCODE_H

#include "store/documents.h"

/*
 * The encoder: text, UTF-8 [bytes], to a vector of length 1 in out, f32 [dim].  -1: it has none,
 * and the caller's data may say why.
 */
typedef int (*vlm_encode_fn)(void *data, const char *text, size_t bytes, float *out);

/* Set by the caller: the first five.  The others are zero before the first call. */
typedef struct {
    vlm_store_t         *store;
    int64_t              model;            /* whose vectors; not 0 */
    uint32_t             dim;              /* 1 to VLM_DOCUMENT_DIM */
    vlm_encode_fn        run;
    void                *data;

    vlm_document_set_t   set;              /* the document at hand; n_docs 0: none */
    vlm_document_page_t  page;             /* of the last piece; number 0: none */
    int8_t              *vectors;          /* [set.n][dim] */
    float               *out;              /* [dim] */
    size_t               done, kept;       /* pieces */
} vlm_encode_t;

/*
 * Encodes the next piece, and keeps its document's vectors behind the last one.
 *
 *   returns  OK: call again; NOTFOUND: all pieces have vectors; or the store's error, after which a
 *            later call goes on
 */
int vlm_encode_next(vlm_encode_t *e, vlm_store_err_t *err);

/* Keeps what is done; a document that was deleted meanwhile is no error. */
int vlm_encode_keep(vlm_encode_t *e, vlm_store_err_t *err);

/* Frees the document at hand; what was not kept will be encoded again.  Idempotent. */
void vlm_encode_free(vlm_encode_t *e);

#endif
