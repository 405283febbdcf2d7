
/* Helpers with assertions that the tests of documents in sessions share. */


#ifndef _NGX_HTTP_VLM_DOCUMENTS_ASSERTS_H_INCLUDED_
#define _NGX_HTTP_VLM_DOCUMENTS_ASSERTS_H_INCLUDED_


#include "store/store_fixture.h"
#include "store/documents_fixture.h"


/* a READY document with so many chunks */

static inline void
ready(store_t *st, const char *session, const char *bytes, size_t n_chunks, doc_t *doc)
{
    doc_t  taken;

    assert_int_equal(add(st, session, bytes, bytes, 0, doc, NULL), OK);
    assert_int_equal(vlm_document_take(st, &taken, NULL), OK);
    assert_string_equal(taken.id, doc->id);
    assert_int_equal(done(st, &taken, 1, n_chunks, NULL), OK);
}


static inline size_t
listed(store_t *st, const char *session, doc_t docs[VLM_DOCUMENT_MAX])
{
    size_t  n;

    assert_int_equal(vlm_document_list(st, S(session), docs, &n, NULL), OK);

    return n;
}


static inline int
exists(store_t *st, const doc_t *doc)
{
    char  path[VLM_STORE_PATH];

    vlm_document_path(st, doc->id, path);

    return access(path, F_OK) == 0;
}


#endif /* _NGX_HTTP_VLM_DOCUMENTS_ASSERTS_H_INCLUDED_ */
