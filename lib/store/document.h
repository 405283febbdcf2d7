
/*
 * The parts that the files of documents.h share: rows, and folders.  Functions on rows run within a
 * transaction.
 */


#ifndef _NGX_HTTP_VLM_DOCUMENT_H_INCLUDED_
#define _NGX_HTTP_VLM_DOCUMENT_H_INCLUDED_


#include "store/db.h"
#include "store/documents.h"


/*
 * The next row of a statement that gives documents: OK, NOTFOUND, or an error; ECORRUPT if it is
 * none that the store has written.  n: its number.
 */

int vlm_document_row(vlm_store_t *st, vlm_db_stmt_t which, vlm_document_t *doc, int64_t *n,
    vlm_store_err_t *err);

/* the document with this id, or NOTFOUND */

int vlm_document_row_get(vlm_store_t *st, vlm_store_text_t id, vlm_document_t *doc, int64_t *n,
    vlm_store_err_t *err);

/* the documents of a session as ..._list() gives them, with their numbers */

int vlm_document_rows(vlm_store_t *st, int64_t session, vlm_document_t docs[VLM_DOCUMENT_MAX],
    int64_t numbers[VLM_DOCUMENT_MAX], size_t *n, vlm_store_err_t *err);

/* the number of a session, or NOTFOUND */

int vlm_document_session(vlm_store_t *st, vlm_store_text_t id, int64_t *n, vlm_store_err_t *err);

/* NOTFOUND and its sentence */

int vlm_document_none(vlm_store_err_t *err);


/* the folder of a document; ..._there(): the file is in it, with so many bytes */

int vlm_document_keep(vlm_store_t *st, const char *id, const void *data, size_t bytes,
    vlm_store_err_t *err);
int vlm_document_there(vlm_store_t *st, const char *id, uint64_t bytes);
void vlm_document_remove(vlm_store_t *st, const char *id);

/* bytes of all files in a folder; the path of DIR/documents */

uint64_t vlm_document_folder_bytes(vlm_store_t *st, const char *id);
void vlm_document_root(vlm_store_t *st, char path[VLM_STORE_PATH]);

/* 1: 36 characters of a uuid, which can be a folder's name */

int vlm_document_is_id(const char *id, size_t len);


/* content: a chunk in its blob; n_terms vlm_term_t of it follow those of the chunk before */

typedef struct {
    uint32_t                      page;
    uint32_t                      first;       /* byte of the page's text */
    uint32_t                      bytes;
    uint32_t                      n_terms;
} vlm_document_stored_t;

/* 0: terms are as vlm_terms_of() gives them; length: the sum of their counts */

int vlm_document_terms(const vlm_term_t *terms, size_t n, size_t *length);

/* 0: a page is as a frame of the reader may have it */

int vlm_document_page_check(const vlm_document_page_t *page);

/* EIO and ECORRUPT with their sentences */

int vlm_document_no_memory(vlm_store_err_t *err);
int vlm_document_damaged(vlm_store_err_t *err, const char *id);


/* eviction, for ..._sweep() */

typedef struct {
    int64_t                       n;
    char                          id[37];      /* "": the row is damaged */
    uint64_t                      bytes;       /* of rows and files */
    int64_t                       used;        /* us since 1970, by itself or by a session */
    unsigned                      linked:1;    /* a session has it */
    unsigned                      busy:1;      /* waiting, or being read */
} vlm_document_unused_t;

/* us since 1970: documents that no session has go if used before age, others before full */

typedef struct {
    int64_t                       age;
    int64_t                       full;
} vlm_document_eviction_t;

/* all documents; free() the list, after an error, too */

int vlm_document_unused(vlm_store_t *st, vlm_document_unused_t **list, size_t *n,
    vlm_store_err_t *err);
int vlm_document_evict(vlm_store_t *st, const vlm_document_eviction_t *ev,
    vlm_document_unused_t *list, size_t n, vlm_store_swept_t *swept, vlm_store_err_t *err);

/* removes folders without a row that were made before */

int vlm_document_orphans(vlm_store_t *st, int64_t before, vlm_store_err_t *err);


#endif /* _NGX_HTTP_VLM_DOCUMENT_H_INCLUDED_ */
