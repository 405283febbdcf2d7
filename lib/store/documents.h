
/*
 * Documents: PDF files of clients, and the pages that were read from them.
 *
 *   DIR/vlm.db                       documents, their pages and chunks; which session has which
 *   DIR/documents/ID/document.pdf    a file as its client sent it
 *   DIR/documents/ID/PAGE-PIXELS.png a page drawn with at most so many pixels
 *
 * A document is read once and then has a state that survives a restart: waiting, reading, and ready
 * or failed.  All that was read becomes visible in one commit, so a crash at any moment leaves a
 * document without pages or one with all of them.  The same bytes of clients with the same salt are
 * one document; each session that has it calls it by a name of its own, which no other is shown.
 *
 * As in store.h, every function may wait for a disk, any number of threads and processes may call
 * it, and it returns OK or a code with its sentence.
 */


#ifndef _NGX_HTTP_VLM_DOCUMENTS_H_INCLUDED_
#define _NGX_HTTP_VLM_DOCUMENTS_H_INCLUDED_


#include "document/chunk.h"
#include "document/frame.h"
#include "document/terms.h"
#include "store/store.h"


#define VLM_DOCUMENT_MAX       20     /* documents of a session */
#define VLM_DOCUMENT_CHUNKS    4000   /* chunks of all documents of a session */
#define VLM_DOCUMENT_DIM       4096   /* numbers of a vector */
#define VLM_DOCUMENT_ATTEMPTS  3      /* at reading, each ended by a death of worker or reader */


typedef enum {
    VLM_DOCUMENT_WAITING = 0,
    VLM_DOCUMENT_READING,
    VLM_DOCUMENT_READY,
    VLM_DOCUMENT_FAILED
} vlm_document_state_t;


typedef struct {
    char                          id[37];      /* uuid4 */
    char                          name[VLM_STORE_NAME + 1];    /* of a session, UTF-8; "": none */
    char                          title[VLM_FRAME_TITLE + 1];
    char                          error[VLM_FRAME_ERROR_TEXT + 1]; /* why FAILED; pages that lack */
    vlm_document_state_t          state;
    uint64_t                      salt;
    uint64_t                      bytes;       /* of the file */
    uint32_t                      pages;       /* of the file; 0: not known yet */
    uint32_t                      to_read;     /* of these */
    uint32_t                      read;        /* so far */
    uint32_t                      scans;       /* pages that are one picture */
    uint32_t                      ocr_pages;   /* pages whose words are OCR's */
    uint32_t                      hidden_words;
    uint32_t                      n_chunks;
    uint32_t                      attempt;     /* at reading, from 1 */
    int64_t                       made, used;  /* us since 1970 */
} vlm_document_t;


/*
 * The client that asks for a document by its id: for documents of other salts it is NOTFOUND.  NULL
 * in its place: the server itself, for any document.
 */

typedef struct {
    uint64_t                      salt;        /* 0: none */
    vlm_store_text_t              session;     /* its name; data NULL: none is given */
} vlm_document_client_t;


/* an upload; the data is not kept */

typedef struct {
    const void                   *data;
    size_t                        bytes;
    uint64_t                      salt;        /* of the client, 0: none */
    vlm_store_text_t              name;        /* as the client called it: any bytes */
} vlm_document_upload_t;


/* a page: of ..._done(), the caller's; of ..._page(), freed with ..._page_free() */

typedef struct {
    uint32_t                      number;      /* from 1 */
    uint32_t                      flags;       /* VLM_PDF_SCAN, _OCR or _DAMAGED */
    float                         width, height;   /* points */
    const char                   *text;        /* UTF-8, hidden words included */
    size_t                        bytes;
    const vlm_pdf_word_t         *words;       /* [n_words], ascending */
    size_t                        n_words;

    const vlm_chunk_t            *chunks;      /* [n_chunks] of ..._done(), else NULL */
    const vlm_terms_t            *terms;       /* [n_chunks] */
    size_t                        n_chunks;

    void                         *memory;      /* of ..._page() */
} vlm_document_page_t;


/* a chunk of a session's documents */

typedef struct {
    uint32_t                      document;    /* index into docs of its set */
    uint32_t                      page;        /* number */
    uint32_t                      first;       /* byte of the page's text */
    uint32_t                      bytes;
    const int8_t                 *vector;      /* [dim], or NULL */
} vlm_document_chunk_t;


/* what a search of a session looks through; freed with ..._set_free() */

typedef struct {
    vlm_document_t               *docs;        /* [n_docs] in the order in which they were added */
    size_t                        n_docs;      /* in any state */
    vlm_document_chunk_t         *chunks;      /* [n] of the READY ones, by document, page, first */
    vlm_terms_t                  *terms;       /* [n], for vlm_bm25() */
    size_t                        n;
    uint32_t                      dim;         /* of vectors */
    void                         *memory[2 * VLM_DOCUMENT_MAX];
} vlm_document_set_t;


/*
 * Adds a document to a session: on disk, whole, and WAITING when this returns OK.  The same bytes
 * of the same salt give the document that there is, in whatever state; one that FAILED waits again,
 * unless it rests.
 * NOTFOUND: no such session.  ELIMIT: the session has no room, and the sentence has the numbers.
 */

int vlm_document_add(vlm_store_t *st, vlm_store_text_t session, const vlm_document_upload_t *up,
    vlm_document_t *doc, vlm_store_err_t *err);

/*
 * NOTFOUND: no such document, or the client's session does not have it; any bytes may be an id.
 * The name is that of the client's session, "" without one.
 */

int vlm_document_get(vlm_store_t *st, const vlm_document_client_t *client, vlm_store_text_t id,
    vlm_document_t *doc, vlm_store_err_t *err);

/*
 * The documents of a session, in the order in which they were added.  A READY one whose chunks come
 * after VLM_DOCUMENT_CHUNKS others is FAILED in this session: how many chunks documents have is
 * not known when they are added.  NOTFOUND: no such session.
 */

int vlm_document_list(vlm_store_t *st, vlm_store_text_t session,
    vlm_document_t docs[VLM_DOCUMENT_MAX], size_t *n, vlm_store_err_t *err);

/*
 * Gives the client's session a document that there is, by a name, or takes it away.  Of no bytes,
 * the name is the one that the session has for it, else "document.pdf".  NOTFOUND: no such session
 * or document, or the session does not have it; ELIMIT as above.
 */

int vlm_document_link(vlm_store_t *st, const vlm_document_client_t *client, vlm_store_text_t id,
    vlm_store_text_t name, vlm_store_err_t *err);
int vlm_document_unlink(vlm_store_t *st, vlm_store_text_t session, vlm_store_text_t id,
    vlm_store_err_t *err);

/*
 * Removes a document from the client's session and from the disk; the server itself from all
 * sessions.  ELIMIT: other sessions than the client's have it, and nothing was removed.  NOTFOUND:
 * no such document, or the client's session does not have it.
 */

int vlm_document_delete(vlm_store_t *st, const vlm_document_client_t *client,
    vlm_store_text_t id, vlm_store_err_t *err);

/* the name of the session with the READY document of this salt that was added last; NOTFOUND:
   none */

int vlm_document_newest(vlm_store_t *st, uint64_t salt, char session[VLM_STORE_SESSION + 1],
    vlm_store_err_t *err);

/* documents in each state */

int vlm_document_count(vlm_store_t *st, uint64_t n[VLM_DOCUMENT_FAILED + 1],
    vlm_store_err_t *err);


/* reading */

/*
 * At a start of the worker that reads: documents that an earlier one was reading wait again, or
 * have FAILED after VLM_DOCUMENT_ATTEMPTS.
 */

int vlm_document_recover(vlm_store_t *st, vlm_store_err_t *err);

/*
 * A WAITING document is READING now: the oldest of the session whose last one was taken longest
 * ago, so that no session waits for all files of another.  NOTFOUND: none waits.
 */

int vlm_document_take(vlm_store_t *st, vlm_document_t *doc, vlm_store_err_t *err);

/*
 * These need the document as ..._take() gave it, and are GONE if it was deleted or taken again
 * since then.
 *
 *   ..._progress()  numbers for those who wait; each call is a commit
 *   ..._back()      waits again, and the attempt does not count: the worker exits
 *   ..._again()     waits again, or has FAILED with a sentence after VLM_DOCUMENT_ATTEMPTS
 *   ..._fail()      FAILED with a sentence; for so many seconds an upload of the same bytes does
 *                   not have it read again
 *   ..._done()      READY with its title and its pages, from 1 without a gap, in one commit, and
 *                   with the reason that there are no more, or NULL; FAILED if it has more than
 *                   VLM_DOCUMENT_CHUNKS chunks
 */

int vlm_document_progress(vlm_store_t *st, const vlm_document_t *doc, uint32_t pages,
    uint32_t to_read, uint32_t read, vlm_store_err_t *err);
int vlm_document_back(vlm_store_t *st, const vlm_document_t *doc, vlm_store_err_t *err);
int vlm_document_again(vlm_store_t *st, const vlm_document_t *doc, const char *sentence,
    vlm_store_err_t *err);
int vlm_document_fail(vlm_store_t *st, const vlm_document_t *doc, const char *sentence,
    uint32_t rest_s, vlm_store_err_t *err);
int vlm_document_done(vlm_store_t *st, const vlm_document_t *doc, vlm_store_text_t title,
    const vlm_document_page_t *pages, size_t n, const char *why, vlm_store_err_t *err);


/* content; ECORRUPT if the disk has changed it */

/* NOTFOUND: the document is not READY, or has no such page */

int vlm_document_page(vlm_store_t *st, vlm_store_text_t id, uint32_t number,
    vlm_document_page_t *page, vlm_store_err_t *err);
void vlm_document_page_free(vlm_document_page_t *page);

/* The text of a chunk of this page; -1: it does not lie within the page.  Never waits. */

int vlm_document_text(const vlm_document_page_t *page, const vlm_document_chunk_t *chunk,
    vlm_store_text_t *text);

/*
 * All chunks of a session's READY documents, or of those with the given ids.  NOTFOUND: no such
 * session, or it does not have one of the ids.  Vectors are those of one model, 0: of none.
 */

int vlm_document_chunks(vlm_store_t *st, vlm_store_text_t session, const vlm_store_text_t *ids,
    size_t n_ids, int64_t model, vlm_document_set_t *set, vlm_store_err_t *err);
void vlm_document_set_free(vlm_document_set_t *set);


/* vectors */

/* The oldest READY document with a chunk that has no vector of this model; NOTFOUND: none. */

int vlm_document_unencoded(vlm_store_t *st, int64_t model, vlm_document_t *doc,
    vlm_store_err_t *err);

/* the number of all such chunks */

int vlm_document_lacking(vlm_store_t *st, int64_t model, uint64_t *n, vlm_store_err_t *err);

/*
 * The chunks of one document, in a set without a session, with vectors as in ..._chunks().
 * NOTFOUND: not READY.
 */

int vlm_document_pieces(vlm_store_t *st, vlm_store_text_t id, int64_t model,
    vlm_document_set_t *set, vlm_store_err_t *err);

/*
 * Vectors [n][dim] for the first n chunks of a document, in their order, in place of all that it
 * had, also of another model.  GONE: there is no such document, or it has fewer chunks.
 */

int vlm_document_vectors(vlm_store_t *st, vlm_store_text_t id, int64_t model,
    const int8_t *vectors, size_t n, uint32_t dim, vlm_store_err_t *err);


/* files */

/* the path of the file; the id is one of a vlm_document_t; never waits */

void vlm_document_path(vlm_store_t *st, const char *id, char path[VLM_STORE_PATH]);

/* A picture of a page, drawn with at most so many pixels: its path; NOTFOUND: it was not drawn. */

int vlm_document_picture_find(vlm_store_t *st, const char *id, uint32_t number, uint32_t pixels,
    char path[VLM_STORE_PATH], vlm_store_err_t *err);

/* Keeps a PNG for ..._picture_find().  NOTFOUND: the document was deleted meanwhile. */

int vlm_document_picture_add(vlm_store_t *st, const char *id, uint32_t number, uint32_t pixels,
    const void *data, size_t bytes, char path[VLM_STORE_PATH], vlm_store_err_t *err);


#endif /* _NGX_HTTP_VLM_DOCUMENTS_H_INCLUDED_ */
