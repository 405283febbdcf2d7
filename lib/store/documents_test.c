
/* Documents: adding, limits, states, content, eviction. */


#define _GNU_SOURCE

#include "store/document.h"
#include "store/documents_asserts.h"


static void
a_document_is_waiting_then_reading_then_ready_with_its_pages(void **state)
{
    err_t      err;
    size_t     n;
    set_t      set;
    doc_t      doc, taken, docs[VLM_DOCUMENT_MAX];
    page_t     page;
    char       path[VLM_STORE_PATH];
    store_t   *st;
    vlm_store_text_t  text;

    st = *state;

    assert_int_equal(vlm_document_take(st, &taken, &err), NOTFOUND);
    assert_int_equal(add(st, "s", "one", "dir/Report 1.pdf", 0, &doc, &err), OK);

    assert_string_equal(doc.name, "Report 1.pdf");
    assert_int_equal(doc.state, VLM_DOCUMENT_WAITING);
    assert_int_equal(doc.bytes, 3);
    vlm_document_path(st, doc.id, path);
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(vlm_document_page(st, S(doc.id), 1, &page, &err), NOTFOUND);

    assert_int_equal(vlm_document_take(st, &taken, &err), OK);
    assert_string_equal(taken.id, doc.id);
    assert_int_equal(taken.attempt, 1);
    assert_int_equal(vlm_document_progress(st, &taken, 9, 3, 2, &err), OK);
    assert_int_equal(vlm_document_get(st, NULL, S(doc.id), &doc, &err), OK);
    assert_int_equal(doc.state, VLM_DOCUMENT_READING);
    assert_int_equal(doc.pages, 9);
    assert_int_equal(doc.read, 2);

    assert_int_equal(done(st, &taken, 3, 2, &err), OK);
    assert_int_equal(done(st, &taken, 3, 2, &err), GONE);
    assert_int_equal(vlm_document_list(st, S("s"), docs, &n, &err), OK);
    assert_int_equal(n, 1);
    assert_int_equal(docs[0].state, VLM_DOCUMENT_READY);
    assert_int_equal(docs[0].pages, 9);
    assert_int_equal(docs[0].read, 3);
    assert_int_equal(docs[0].n_chunks, 6);
    assert_int_equal(docs[0].scans, 1);
    assert_int_equal(docs[0].ocr_pages, 1);
    assert_int_equal(docs[0].hidden_words, 3);
    assert_string_equal(docs[0].title, "Title");

    assert_int_equal(vlm_document_chunks(st, S("s"), NULL, 0, 0, &set, &err), OK);
    assert_int_equal(set.n, 6);
    assert_int_equal(set.chunks[5].page, 3);
    assert_null(set.chunks[5].vector);

    assert_int_equal(vlm_document_page(st, S(doc.id), 3, &page, &err), OK);
    assert_int_equal(page.n_words, 2);
    assert_int_equal(page.words[1].flags, VLM_PDF_HIDDEN);
    assert_int_equal(vlm_document_text(&page, &set.chunks[5], &text), 0);
    assert_true(text.len > 0);
    assert_int_equal(vlm_document_text(&page, &set.chunks[0], &text), -1);

    vlm_document_page_free(&page);
    vlm_document_set_free(&set);
    assert_int_equal(vlm_document_page(st, S(doc.id), 4, &page, &err), NOTFOUND);
}



static void
a_document_whose_file_was_lost_gets_it_again(void **state)
{
    doc_t     doc, again;
    char      path[VLM_STORE_PATH];
    store_t  *st;

    st = *state;

    assert_int_equal(add(st, "s", "bytes", "x", 0, &doc, NULL), OK);
    vlm_document_path(st, doc.id, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(add(st, "s", "bytes", "x", 0, &again, NULL), OK);
    assert_string_equal(doc.id, again.id);
    assert_true(exists(st, &doc));
}


static void
names_of_clients_become_text_that_can_be_shown(void **state)
{
    doc_t     doc;
    store_t  *st;

    st = *state;

    assert_int_equal(add(st, "s", "1", "C:\\x\\R\303\251sum\303\251.pdf", 0, &doc, NULL), OK);
    assert_string_equal(doc.name, "R\303\251sum\303\251.pdf");
    assert_int_equal(add(st, "s", "2", "a\nb\377c", 0, &doc, NULL), OK);
    assert_string_equal(doc.name, "a_b");
    assert_int_equal(add(st, "s", "3", "dir/", 0, &doc, NULL), OK);
    assert_string_equal(doc.name, "document.pdf");
}


static void
a_session_has_at_most_twenty_documents(void **state)
{
    int       i;
    doc_t     doc, docs[VLM_DOCUMENT_MAX];
    err_t     err;
    char      bytes[16];
    store_t  *st;

    st = *state;

    for (i = 0; i < VLM_DOCUMENT_MAX; i++) {
        (void) snprintf(bytes, sizeof(bytes), "%d", i);
        assert_int_equal(add(st, "s", bytes, bytes, 0, &doc, &err), OK);
    }

    assert_int_equal(add(st, "s", "more", "more", 0, &doc, &err), ELIMIT);
    assert_non_null(strstr(err.text, "20 documents"));

    /* one that it has is no further one; another session has room */

    assert_int_equal(add(st, "s", "19", "19", 0, &doc, &err), OK);
    assert_int_equal(add(st, "t", "more", "more", 0, &doc, &err), OK);
    assert_int_equal(vlm_document_link(st, CLIENT(0, "s"), S(doc.id), S("more"), &err),
                     ELIMIT);

    assert_int_equal(listed(st, "s", docs), VLM_DOCUMENT_MAX);
    assert_string_equal(docs[0].name, "0");
    assert_int_equal(vlm_document_unlink(st, S("s"), S(docs[0].id), &err), OK);
    assert_int_equal(vlm_document_unlink(st, S("s"), S(docs[0].id), &err), NOTFOUND);
    assert_int_equal(vlm_document_link(st, CLIENT(0, "s"), S(doc.id), S("more"), &err), OK);
    assert_int_equal(listed(st, "s", docs), VLM_DOCUMENT_MAX);
    assert_string_equal(docs[19].name, "more");
}


static void
a_session_has_at_most_four_thousand_chunks(void **state)
{
    set_t     set;
    doc_t     a, b, c, docs[VLM_DOCUMENT_MAX];
    err_t     err;
    store_t  *st;

    st = *state;

    /* b and c are added before either is read */

    ready(st, "s", "a", 2500, &a);
    assert_int_equal(add(st, "s", "b", "b", 0, &b, &err), OK);
    assert_int_equal(add(st, "s", "c", "c", 0, &c, &err), OK);
    assert_int_equal(vlm_document_take(st, &b, &err), OK);
    assert_int_equal(done(st, &b, 1, 1501, &err), OK);
    assert_int_equal(vlm_document_take(st, &c, &err), OK);
    assert_int_equal(done(st, &c, 1, 1500, &err), OK);

    assert_int_equal(listed(st, "s", docs), 3);
    assert_int_equal(docs[0].state, VLM_DOCUMENT_READY);
    assert_int_equal(docs[1].state, VLM_DOCUMENT_FAILED);
    assert_string_equal(docs[1].error,
                        "1501 chunks are too many for this session, which has 2500 of 4000");
    assert_int_equal(docs[2].state, VLM_DOCUMENT_READY);

    assert_int_equal(vlm_document_chunks(st, S("s"), NULL, 0, 0, &set, &err), OK);
    assert_int_equal(set.n, 4000);
    assert_int_equal(set.n_docs, 3);
    vlm_document_set_free(&set);

    assert_int_equal(add(st, "s", "d", "d", 0, &a, &err), ELIMIT);
    assert_non_null(strstr(err.text, "4000 are possible"));

    /* elsewhere it can be used */

    assert_int_equal(vlm_store_session_ensure(st, S("t"), &err), OK);
    assert_int_equal(vlm_document_link(st, CLIENT(0, "t"), S(b.id), S("b"), &err), OK);
    assert_int_equal(listed(st, "t", docs), 1);
    assert_int_equal(docs[0].state, VLM_DOCUMENT_READY);

    /* more than any session may have */

    assert_int_equal(add(st, "t", "e", "e", 0, &a, &err), OK);
    assert_int_equal(vlm_document_take(st, &a, &err), OK);
    assert_int_equal(done(st, &a, 1, 4001, &err), OK);
    assert_int_equal(vlm_document_get(st, NULL, S(a.id), &a, &err), OK);
    assert_int_equal(a.state, VLM_DOCUMENT_FAILED);
    assert_string_equal(a.error, "has 4001 chunks of text, at most 4000 are possible");
}


static void
a_reader_that_dies_three_times_is_not_run_again(void **state)
{
    int       i;
    doc_t     doc, old;
    err_t     err;
    store_t  *st;

    st = *state;

    assert_int_equal(add(st, "s", "x", "x", 0, &doc, &err), OK);

    /* a worker that exits gives the document back, which is no attempt */

    for (i = 0; i < 5; i++) {
        assert_int_equal(vlm_document_take(st, &doc, &err), OK);
        assert_int_equal(vlm_document_back(st, &doc, &err), OK);
        assert_int_equal(vlm_document_back(st, &doc, &err), GONE);
    }

    for (i = 1; i <= VLM_DOCUMENT_ATTEMPTS; i++) {
        old = doc;
        assert_int_equal(vlm_document_take(st, &doc, &err), OK);
        assert_int_equal(doc.attempt, i);
        assert_int_equal(vlm_document_progress(st, &doc, 5, 5, 4, &err), OK);

        if (i > 1) {
            assert_int_equal(vlm_document_fail(st, &old, "late", 0, &err), GONE);
            assert_int_equal(done(st, &old, 1, 1, &err), GONE);
        }

        assert_int_equal(vlm_document_recover(st, &err), OK);
        assert_int_equal(vlm_document_get(st, NULL, S(doc.id), &old, &err), OK);
        assert_int_equal(old.read, 0);
    }

    assert_int_equal(vlm_document_take(st, &old, &err), NOTFOUND);
    assert_int_equal(vlm_document_get(st, NULL, S(doc.id), &doc, &err), OK);
    assert_int_equal(doc.state, VLM_DOCUMENT_FAILED);
    assert_string_equal(doc.error, "the server died each time it read this");

    /* an upload of the same has it tried again */

    assert_int_equal(add(st, "s", "x", "x", 0, &doc, &err), OK);
    assert_int_equal(doc.state, VLM_DOCUMENT_WAITING);
    assert_string_equal(doc.error, "");
    assert_int_equal(vlm_document_take(st, &doc, &err), OK);
    assert_int_equal(doc.attempt, 1);
    assert_int_equal(vlm_document_fail(st, &doc, "a password is needed", 0, &err), OK);
    assert_int_equal(vlm_document_get(st, NULL, S(doc.id), &doc, &err), OK);
    assert_string_equal(doc.error, "a password is needed");
}


/* Those of the worker count as well, so that a document is read three times at most. */
static void
a_reader_that_is_killed_three_times_is_not_run_again(void **state)
{
    int       i;
    doc_t     doc, old;
    err_t     err;
    store_t  *st;

    st = *state;

    assert_int_equal(add(st, "s", "k", "k", 0, &doc, &err), OK);
    assert_int_equal(vlm_document_take(st, &doc, &err), OK);
    assert_int_equal(vlm_document_recover(st, &err), OK);

    for (i = 2; i <= VLM_DOCUMENT_ATTEMPTS; i++) {
        assert_int_equal(vlm_document_take(st, &doc, &err), OK);
        assert_int_equal(doc.attempt, i);
        assert_int_equal(vlm_document_progress(st, &doc, 5, 5, 4, &err), OK);
        assert_int_equal(vlm_document_again(st, &doc, "killed", &err), OK);
        assert_int_equal(vlm_document_again(st, &doc, "killed", &err), GONE);
        assert_int_equal(vlm_document_get(st, NULL, S(doc.id), &old, &err), OK);
        assert_int_equal(old.state, i < VLM_DOCUMENT_ATTEMPTS ? VLM_DOCUMENT_WAITING
                                                              : VLM_DOCUMENT_FAILED);
        assert_string_equal(old.error, i < VLM_DOCUMENT_ATTEMPTS ? "" : "killed");
    }

    assert_int_equal(vlm_document_take(st, &old, &err), NOTFOUND);
}


static void
sessions_that_go_leave_their_documents_without_them(void **state)
{
    doc_t     doc, docs[VLM_DOCUMENT_MAX];
    set_t     set;
    err_t     err;
    uint64_t  n[4];
    store_t  *st;

    st = *state;

    ready(st, "a", "x", 3, &doc);
    assert_int_equal(add(st, "b", "x", "x", 0, &doc, &err), OK);

    assert_int_equal(vlm_store_session_delete(st, S("a"), &err), OK);
    assert_int_equal(vlm_document_chunks(st, S("a"), NULL, 0, 0, &set, &err), NOTFOUND);
    assert_int_equal(vlm_store_session_ensure(st, S("a"), &err), OK);
    assert_int_equal(listed(st, "a", docs), 0);

    assert_int_equal(listed(st, "b", docs), 1);
    assert_int_equal(vlm_store_session_reset(st, S("b"), &err), OK);
    assert_int_equal(listed(st, "b", docs), 0);
    assert_int_equal(vlm_document_chunks(st, S("b"), NULL, 0, 0, &set, &err), OK);
    assert_int_equal(set.n, 0);
    vlm_document_set_free(&set);

    assert_int_equal(vlm_document_count(st, n, &err), OK);
    assert_int_equal(n[VLM_DOCUMENT_READY], 1);
    assert_true(exists(st, &doc));

    assert_int_equal(vlm_document_delete(st, NULL, S(doc.id), &err), OK);
    assert_int_equal(vlm_document_delete(st, NULL, S(doc.id), &err), NOTFOUND);
    assert_int_equal(vlm_document_get(st, NULL, S("../../etc/passwd"), &doc, &err), NOTFOUND);
    assert_false(exists(st, &doc));
}


static void
lack(store_t *st, int64_t model, uint64_t chunks)
{
    err_t     err;
    uint64_t  n;

    assert_int_equal(vlm_document_lacking(st, model, &n, &err), OK);
    assert_int_equal(n, chunks);
}


static void
a_search_has_the_chunks_of_its_session_and_ids_alone(void **state)
{
    doc_t              a, b, c, doc;
    set_t              set;
    err_t              err;
    char               session[VLM_STORE_SESSION + 1];
    int8_t             vectors[3][4] = {{ 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 12 }};
    store_t           *st;
    vlm_store_text_t   id;

    st = *state;

    assert_int_equal(vlm_document_newest(st, 0, session, &err), NOTFOUND);

    ready(st, "s", "a", 2, &a);
    ready(st, "s", "b", 3, &b);
    ready(st, "t", "c", 4, &c);

    assert_int_equal(vlm_document_newest(st, 0, session, &err), OK);
    assert_string_equal(session, "t");
    assert_int_equal(vlm_document_newest(st, 1, session, &err), NOTFOUND);

    assert_int_equal(vlm_document_chunks(st, S("s"), NULL, 0, 0, &set, &err), OK);
    assert_int_equal(set.n, 5);
    vlm_document_set_free(&set);

    id = S(c.id);
    assert_int_equal(vlm_document_chunks(st, S("s"), &id, 1, 0, &set, &err), NOTFOUND);

    assert_int_equal(vlm_document_unencoded(st, 9, &doc, &err), OK);
    assert_string_equal(doc.id, a.id);
    assert_int_equal(vlm_document_vectors(st, S(b.id), 9, vectors[0], 4, 4, &err), GONE);
    assert_int_equal(vlm_document_vectors(st, S(b.id), 9, vectors[0], 3, 4, &err), OK);
    assert_int_equal(vlm_document_vectors(st, S(a.id), 9, vectors[0], 2, 4, &err), OK);
    assert_int_equal(vlm_document_unencoded(st, 9, &doc, &err), OK);
    assert_string_equal(doc.id, c.id);
    lack(st, 9, 4);
    lack(st, 8, 9);

    id = S(b.id);
    assert_int_equal(vlm_document_chunks(st, S("s"), &id, 1, 9, &set, &err), OK);
    assert_int_equal(set.n, 3);
    assert_int_equal(set.n_docs, 1);
    assert_int_equal(set.dim, 4);
    assert_memory_equal(set.chunks[2].vector, vectors[2], 4);
    vlm_document_set_free(&set);

    assert_int_equal(vlm_document_chunks(st, S("s"), &id, 1, 8, &set, &err), OK);
    assert_null(set.chunks[0].vector);
    vlm_document_set_free(&set);

    assert_int_equal(vlm_document_pieces(st, S(c.id), 0, &set, &err), OK);
    assert_int_equal(set.n, 4);
    vlm_document_set_free(&set);
}


/* of the first document, as eviction counts them */

static uint64_t
bytes_of(store_t *st)
{
    size_t                  n;
    uint64_t                bytes;
    vlm_document_unused_t  *list;

    assert_int_equal(vlm_document_unused(st, &list, &n, NULL), OK);
    assert_true(n > 0);
    bytes = list[0].bytes;
    free(list);

    return bytes;
}


static void
vectors_come_for_the_first_chunks_until_all_are_there(void **state)
{
    doc_t     a, doc;
    set_t     set;
    err_t     err;
    int8_t    vectors[3][2] = {{ 1, 2 }, { 3, 4 }, { 5, 6 }};
    size_t    i, n;
    uint64_t  with;
    store_t  *st;

    st = *state;

    ready(st, "s", "a", 3, &a);
    ready(st, "s", "empty", 0, &doc);

    for (n = 1; n <= 3; n++) {
        assert_int_equal(vlm_document_unencoded(st, 9, &doc, &err), OK);
        assert_string_equal(doc.id, a.id);
        assert_int_equal(vlm_document_vectors(st, S(a.id), 9, vectors[0], n, 2, &err), OK);
        lack(st, 9, 3 - n);

        assert_int_equal(vlm_document_pieces(st, S(a.id), 9, &set, &err), OK);
        assert_int_equal(set.n, 3);

        for (i = 0; i < 3; i++) {
            if (i < n) {
                assert_memory_equal(set.chunks[i].vector, vectors[i], 2);
            } else {
                assert_null(set.chunks[i].vector);
            }
        }

        vlm_document_set_free(&set);
    }

    /* a document without text needs none */

    assert_int_equal(vlm_document_unencoded(st, 9, &doc, &err), NOTFOUND);

    /* another model's take the place of all; eviction counts them */

    with = bytes_of(st) - 6;
    assert_int_equal(vlm_document_unencoded(st, 8, &doc, &err), OK);
    assert_int_equal(vlm_document_vectors(st, S(a.id), 8, vectors[1], 1, 2, &err), OK);
    lack(st, 8, 2);
    lack(st, 9, 3);

    assert_int_equal(bytes_of(st), with + 2);

    assert_int_equal(vlm_document_vectors(st, S(a.id), 8, vectors[1], 0, 2, &err),
                     VLM_STORE_EINPUT);
    assert_int_equal(vlm_document_vectors(st, S(a.id), 8, vectors[1], 1, 4097, &err),
                     VLM_STORE_EINPUT);
}


static void
what_a_reader_gives_is_checked_before_it_is_kept(void **state)
{
    int       i;
    doc_t     doc, taken;
    err_t     err;
    page_t    page;
    store_t  *st;

    st = *state;

    assert_int_equal(add(st, "s", "x", "x", 0, &doc, &err), OK);
    assert_int_equal(vlm_document_take(st, &taken, &err), OK);

    for (i = 0; i < 7; i++) {
        make_page(&page, 1, 2);

        switch (i) {
        case 0: page.number = 0; break;
        case 1: page.width = 0; break;
        case 2: ((char *) page.text)[3] = '\377'; break;
        case 3: ((vlm_pdf_word_t *) page.words)[1].bytes = 100; break;
        case 4: ((vlm_chunk_t *) page.chunks)[1].bytes = 100; break;
        case 5: page.terms[0].terms[1] = page.terms[0].terms[0]; break;
        default: page.flags = 8;
        }

        assert_int_equal(vlm_document_done(st, &taken, S(""), &page, 1, NULL, &err),
                         VLM_STORE_EINPUT);
        free_page(&page);
    }

    assert_int_equal(vlm_document_done(st, &taken, S(""), NULL, 0, NULL, &err), OK);
    assert_int_equal(vlm_document_get(st, NULL, S(doc.id), &doc, &err), OK);
    assert_int_equal(doc.state, VLM_DOCUMENT_READY);
}


static void
damaged_pages_are_named_and_keep_their_numbers(void **state)
{
    doc_t     doc, taken;
    err_t     err;
    page_t    pages[13], page;
    size_t    i, n;
    store_t  *st;

    static const struct { size_t  pages, first, last; const char  *error; }  cases[] = {
        { 3, 4, 4, "" },
        { 3, 2, 2, "page 2 is damaged" },
        { 3, 2, 3, "pages 2 and 3 are damaged" },
        { 12, 2, 11, "pages 2, 3, 4, 5, 6, 7, 8, 9, 10 and 11 are damaged" },
        { 13, 2, 12, "pages 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 1 more are damaged" },
    };

    st = *state;

    for (n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
        assert_int_equal(add(st, "s", cases[n].error, "x", 0, &doc, &err), OK);
        assert_int_equal(vlm_document_take(st, &taken, &err), OK);

        for (i = 0; i < cases[n].pages; i++) {
            make_page(&pages[i], (uint32_t) i + 1, 0);

            if (i + 1 >= cases[n].first && i + 1 <= cases[n].last) {
                pages[i].flags = VLM_PDF_DAMAGED;
                pages[i].bytes = pages[i].n_words = 0;
            }
        }

        /* a gap is refused */

        pages[1].number = 3;
        assert_int_equal(vlm_document_done(st, &taken, S(""), pages, 2, NULL, &err),
                         VLM_STORE_EINPUT);
        pages[1].number = 2;

        assert_int_equal(vlm_document_done(st, &taken, S(""), pages, cases[n].pages, NULL, &err),
                         OK);
        assert_int_equal(vlm_document_get(st, NULL, S(doc.id), &doc, &err), OK);
        assert_int_equal(doc.state, VLM_DOCUMENT_READY);
        assert_int_equal(doc.read, cases[n].pages);
        assert_string_equal(doc.error, cases[n].error);
        assert_int_equal(vlm_document_page(st, S(doc.id), 2, &page, &err), OK);
        assert_int_equal(page.bytes == 0, n > 0);
        vlm_document_page_free(&page);

        for (i = 0; i < cases[n].pages; i++) {
            free_page(&pages[i]);
        }
    }
}


static void
pictures_of_pages_are_kept_with_their_document(void **state)
{
    doc_t     doc;
    err_t     err;
    char      path[VLM_STORE_PATH], found[VLM_STORE_PATH];
    store_t  *st;

    st = *state;

    ready(st, "s", "x", 1, &doc);
    assert_int_equal(vlm_document_picture_find(st, doc.id, 1, 1000, found, &err), NOTFOUND);
    assert_int_equal(vlm_document_picture_add(st, doc.id, 1, 1000, "png", 3, path, &err), OK);
    assert_int_equal(vlm_document_picture_find(st, doc.id, 1, 1000, found, &err), OK);
    assert_string_equal(path, found);
    assert_int_equal(vlm_document_picture_find(st, doc.id, 1, 999, found, &err), NOTFOUND);

    assert_int_equal(vlm_document_delete(st, NULL, S(doc.id), &err), OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(vlm_document_picture_add(st, doc.id, 1, 1000, "png", 3, path, &err),
                     NOTFOUND);
}


/* ---- damage -------------------------------------------------------------- */


static void
what_a_disk_has_changed_is_noticed(void **state)
{
    int               rc;
    doc_t             doc, docs[VLM_DOCUMENT_MAX];
    set_t             set;
    char              text[256], bytes[16];
    err_t             err;
    page_t            page;
    size_t            i, n;
    store_t          *st;
    vlm_store_swept_t   swept;

    enum { PAGE, CHUNKS, ROW };

    static const struct {
        int          seen;
        const char  *sql;
    } damage[] = {
        { PAGE, "page SET text = x'ff'" },
        { PAGE, "page SET text = 'short'" },
        { PAGE, "page SET words = zeroblob(length(words))" },
        { PAGE, "page SET words = substr(words, 2)" },
        { PAGE, "page SET width = -1" },
        { PAGE, "page SET height = 9e999" },
        { PAGE, "page SET flags = 1 << 40" },
        { CHUNKS, "content SET chunks = zeroblob(length(chunks))" },
        { CHUNKS, "content SET chunks = x'00'" },
        { CHUNKS, "content SET terms = zeroblob(length(terms))" },
        { CHUNKS, "content SET terms = substr(terms, 9)" },
        { CHUNKS, "content SET terms = terms || zeroblob(8)" },
        { CHUNKS, "document SET chunks = 3" },
        { CHUNKS, "vector SET dim = 3" },
        { CHUNKS, "vector SET vectors = x''" },
        { CHUNKS, "vector SET vectors = x'010203'" },
        { CHUNKS, "vector SET vectors = zeroblob(6)" },
        { ROW, "document SET chunks = -1" },
        { ROW, "document SET state = 4" },
        { ROW, "document SET name = x'ff'" },
        { ROW, "document SET pages = 1 << 33" },
        { ROW, "document SET id = '../../../etc/ssl/0123456789abcdef012'" },
        { ROW, "document SET bytes = -1" },
    };

    st = *state;

    for (i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        (void) snprintf(bytes, sizeof(bytes), "%zu", i);
        ready(st, bytes, bytes, 2, &doc);
        assert_int_equal(vlm_document_vectors(st, S(doc.id), 1, (const int8_t *) "\1\2\3\4", 2, 2,
                                              &err), OK);

        (void) snprintf(text, sizeof(text), "UPDATE %s WHERE %s = (SELECT max(n) FROM document)",
                        damage[i].sql, strncmp(damage[i].sql, "doc", 3) == 0 ? "n" : "document");
        sql(text);

        rc = vlm_document_page(st, S(doc.id), 1, &page, &err);
        assert_int_equal(rc == VLM_STORE_ECORRUPT, damage[i].seen == PAGE
                         || (damage[i].seen == ROW && strstr(text, " id = ") == NULL
                             && strstr(text, " name = ") == NULL)
                         || strstr(text, " name = ") != NULL);

        if (rc == OK) {
            vlm_document_page_free(&page);
        }

        rc = vlm_document_chunks(st, S(bytes), NULL, 0, 1, &set, &err);
        assert_int_equal(rc == VLM_STORE_ECORRUPT,
                         (damage[i].seen != PAGE && strstr(text, " name = ") == NULL));

        if (rc == OK) {
            vlm_document_set_free(&set);
        }

        rc = vlm_document_list(st, S(bytes), docs, &n, &err);
        assert_int_equal(rc == VLM_STORE_ECORRUPT,
                         damage[i].seen == ROW && strstr(text, " name = ") == NULL);
    }

    assert_int_equal(vlm_store_sweep(st, 0, 1, &swept, &err), OK);
    sql("UPDATE document SET used = -1; UPDATE session SET used = 1");
    assert_int_equal(vlm_store_sweep(st, 1, 0, &swept, &err), OK);
    assert_int_equal(swept.documents, i);
}


/* ---- eviction ------------------------------------------------------------ */


/* a document of 100,000 bytes that was used so many seconds ago, as the newest link of a session */

static void
old_document(store_t *st, const char *session, int n, int64_t age, doc_t *doc)
{
    char  *bytes, text[256];

    bytes = malloc(100001);
    assert_non_null(bytes);
    memset(bytes, 'a' + n % 26, 100000);
    bytes[0] = (char) ('A' + n / 26);
    bytes[100000] = '\0';

    ready(st, session, bytes, 1, doc);
    free(bytes);

    (void) snprintf(text, sizeof(text), "UPDATE document SET used = used - %lld WHERE id = '%s'",
                    (long long) age * 1000000, doc->id);
    sql(text);
}


static void
of_too_many_bytes_the_documents_unused_longest_go_whole(void **state)
{
    int                 i;
    char                session[16], path[VLM_STORE_PATH];
    doc_t               docs[50], waiting;
    err_t               err;
    uint64_t            n[4];
    store_t            *st;
    vlm_store_swept_t   swept;

    st = *state;

    for (i = 0; i < 50; i++) {
        (void) snprintf(session, sizeof(session), "s%d", i / 10);
        old_document(st, session, i, 100000 - i * 1000, &docs[i]);
    }

    assert_int_equal(vlm_document_picture_add(st, docs[0].id, 1, 9, "png", 3, path, &err), OK);
    assert_int_equal(add(st, "w", "waits", "w", 0, &waiting, &err), OK);
    sql("UPDATE document SET used = 1 WHERE state = 0");

    /* all sessions but s0 are as old as their documents */

    sql("UPDATE session SET used = 1 WHERE id <> 's0'");

    assert_int_equal(vlm_store_sweep(st, 0, 1020000, &swept, &err), OK);
    assert_true(swept.left <= 1120000);            /* waiting documents stay */
    assert_true(swept.left >= 1000000);
    assert_int_equal(swept.documents, 40);

    /* s0 was used a moment ago, and so were its documents */

    for (i = 0; i < 50; i++) {
        assert_int_equal(exists(st, &docs[i]), i < 10);
    }

    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(vlm_document_count(st, n, &err), OK);
    assert_int_equal(n[VLM_DOCUMENT_WAITING], 1);
    assert_int_equal(n[VLM_DOCUMENT_READY], 10);

    sql("UPDATE session SET used = 1");
    assert_int_equal(vlm_store_sweep(st, 0, 150000, &swept, &err), OK);
    assert_int_equal(vlm_document_count(st, n, &err), OK);
    assert_int_equal(n[VLM_DOCUMENT_READY], 1);
    assert_true(exists(st, &docs[9]));
    assert_int_equal(access(path, F_OK), -1);

    /* the remaining files are those that were counted */

    assert_int_equal(vlm_store_sweep(st, 0, 0, &swept, &err), OK);
    assert_true(swept.left >= 100005 && swept.left < 102000);
}


static void
documents_that_no_session_has_go_by_their_age(void **state)
{
    char                folder[128];
    doc_t               used, unused, young;
    err_t               err;
    store_t            *st;
    struct timespec     ts[2];
    vlm_store_swept_t   swept;

    st = *state;

    old_document(st, "in use", 1, 7200, &used);
    old_document(st, "old", 2, 7200, &unused);
    old_document(st, "young", 3, 700, &young);
    assert_int_equal(vlm_store_session_delete(st, S("young"), &err), OK);
    sql("UPDATE session SET used = 1 WHERE id = 'old'");

    /* a folder that a crash left, and one that is being written */

    memset(ts, 0, sizeof(ts));
    (void) snprintf(folder, sizeof(folder), "%s/documents/01234567-89ab-4cde-8f01-23456789abcd",
                    dir);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(vlm_store_sweep(st, 3600, 0, &swept, &err), OK);
    assert_int_equal(access(folder, F_OK), 0);
    assert_int_equal(swept.sessions, 1);
    assert_int_equal(swept.documents, 1);
    assert_true(exists(st, &used));
    assert_false(exists(st, &unused));
    assert_true(exists(st, &young));

    assert_int_equal(utimensat(AT_FDCWD, folder, ts, 0), 0);
    assert_int_equal(vlm_store_sweep(st, 3600, 0, &swept, &err), OK);
    assert_int_equal(access(folder, F_OK), -1);
    assert_true(exists(st, &young));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(a_document_is_waiting_then_reading_then_ready_with_its_pages),
        TEST(a_document_whose_file_was_lost_gets_it_again),
        TEST(names_of_clients_become_text_that_can_be_shown),
        TEST(a_session_has_at_most_twenty_documents),
        TEST(a_session_has_at_most_four_thousand_chunks),
        TEST(a_reader_that_dies_three_times_is_not_run_again),
        TEST(a_reader_that_is_killed_three_times_is_not_run_again),
        TEST(sessions_that_go_leave_their_documents_without_them),
        TEST(a_search_has_the_chunks_of_its_session_and_ids_alone),
        TEST(vectors_come_for_the_first_chunks_until_all_are_there),
        TEST(what_a_reader_gives_is_checked_before_it_is_kept),
        TEST(damaged_pages_are_named_and_keep_their_numbers),
        TEST(pictures_of_pages_are_kept_with_their_document),
        TEST(what_a_disk_has_changed_is_noticed),
        TEST(of_too_many_bytes_the_documents_unused_longest_go_whole),
        TEST(documents_that_no_session_has_go_by_their_age),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
