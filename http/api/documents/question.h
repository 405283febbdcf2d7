
/*
 * A question about the documents of a session: which pages its prompt has, and
 * what its answer relies on.
 */


#ifndef _NGX_HTTP_VLM_QUESTION_H_INCLUDED_
#define _NGX_HTTP_VLM_QUESTION_H_INCLUDED_


#include "../fields.h"
#include "documents.h"
#include "document/cite.h"
#include "document/pick.h"


/* of a page that was to be shown as a picture: why it could not be drawn, or
   what its reader was denied */

typedef struct {
    uint32_t                      document;    /* index of the set */
    uint32_t                      page;
    vlm_err_t                     err;         /* VLM_ELIMIT: it may be drawn
                                                  when it is tried again */
} ngx_http_vlm_question_note_t;


/* a request, ctx->data; sources are found by their rank, since they lose places
   until the prompt fits */

typedef struct {
    ngx_http_vlm_asked_t          in;
    vlm_store_text_t              text;        /* the question */
    vlm_store_text_t              ids[VLM_DOCUMENT_MAX];   /* asked for,
                                                              each once */
    size_t                        n_ids;       /* 0: all */
    vlm_pages_t                   mode;
    int64_t                       epoch;       /* of the session, as loaded */
    size_t                        turn_number;

    vlm_document_set_t            set;
    vlm_source_t                  sources[VLM_PICK_MAX];   /* in the prompt */
    size_t                        n;
    vlm_document_page_t           pages[VLM_PICK_MAX];     /* by rank */
    vlm_picture_t                *pictures[VLM_PICK_MAX];  /* by rank, until
                                                              the prompt has
                                                              them */
    uint64_t                      tokens[VLM_PICK_MAX];    /* by rank */
    uint64_t                      until;       /* us, its pages are drawn */
    ngx_http_vlm_question_note_t  undrawn[VLM_PICK_WHOLE];
    size_t                        n_undrawn;
    ngx_http_vlm_question_note_t  denied[VLM_PICK_WHOLE];
    size_t                        n_denied;
    vlm_cite_t                   *cites;       /* [n] of the answer */
    vlm_unsupported_t            *unsupported;
    unsigned                      told:1;      /* its sources, as an event */
} ngx_http_vlm_question_t;


/* ---- sources.c: a session's documents to sources; in a thread ------------ */

/* is this id among those that were asked for? */

ngx_uint_t ngx_http_vlm_sources_named(ngx_http_vlm_question_t *q,
    const char *id);

/* the session's documents that are asked for: none may be waiting, and one must
   be ready; NGX_ERROR: the request has failed */

ngx_int_t ngx_http_vlm_sources_check(ngx_http_vlm_ctx_t *ctx);

/* reads those of a session to q->set; then the scores [set.n] of a query,
   malloc()ed, or NULL: the request has failed */

ngx_int_t ngx_http_vlm_sources_load(ngx_http_vlm_ctx_t *ctx,
    vlm_store_text_t session);
double *ngx_http_vlm_sources_scores(ngx_http_vlm_ctx_t *ctx,
    const char *query, size_t len);

/* the places of all pieces, malloc()ed, or NULL: the request has failed */

vlm_piece_t *ngx_http_vlm_sources_pieces(ngx_http_vlm_ctx_t *ctx);

/* reads the page of each source */

ngx_int_t ngx_http_vlm_sources_read(ngx_http_vlm_ctx_t *ctx);

/* a source's page for the prompt, and its range of the page's text */

void ngx_http_vlm_sources_page(ngx_http_vlm_question_t *q,
    const vlm_source_t *source, vlm_page_t *page, uint32_t *first,
    uint32_t *bytes);

/* its text, malloc()ed; NULL: the request has failed */

char *ngx_http_vlm_sources_text(ngx_http_vlm_ctx_t *ctx,
    const vlm_source_t *source, size_t *len);


/* ---- prompt.c: sources to a prompt; in a thread -------------------------- */

/* "prompt" of a dialect */

void ngx_http_vlm_question_prompt(ngx_http_vlm_ctx_t *ctx);


/* ---- cited.c: the answer and its sources --------------------------------- */

/* "store" of a dialect: cites, and stores the turn */

void ngx_http_vlm_question_store(ngx_http_vlm_ctx_t *ctx);

/* "answer" and "chunk" of a dialect */

void ngx_http_vlm_question_answer(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w);
void ngx_http_vlm_question_chunk(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_uint_t last);


/* ---- question.c: its fields ---------------------------------------------- */

/* frees ctx->data, which begins with ngx_http_vlm_question_t, and the session;
   "free" of a dialect */

void ngx_http_vlm_question_free(ngx_http_vlm_ctx_t *ctx);


#endif /* _NGX_HTTP_VLM_QUESTION_H_INCLUDED_ */
