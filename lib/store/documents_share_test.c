
/* Documents of several sessions: names, deletion, tenants, and their turns at the reading. */


#define _GNU_SOURCE

#include "store/documents_asserts.h"


static void
equal_files_of_one_salt_are_read_once(void **state)
{
    err_t     err;
    doc_t     one, two, other, docs[VLM_DOCUMENT_MAX];
    store_t  *st;

    st = *state;

    ready(st, "a", "same", 2, &one);
    assert_int_equal(add(st, "b", "same", "other name", 0, &two, &err), OK);
    assert_string_equal(one.id, two.id);
    assert_int_equal(two.state, VLM_DOCUMENT_READY);
    assert_string_equal(two.name, "other name");

    /* each session has its own name for it, and another salt another document */

    assert_int_equal(listed(st, "a", docs), 1);
    assert_string_equal(docs[0].name, "same");
    assert_int_equal(listed(st, "b", docs), 1);
    assert_string_equal(docs[0].name, "other name");

    assert_int_equal(add(st, "c", "same", "same", 7, &other, &err), OK);
    assert_string_not_equal(one.id, other.id);
    assert_int_equal(other.state, VLM_DOCUMENT_WAITING);
    assert_int_equal(other.salt, 7);

    /* the same again in the same session is no second document */

    assert_int_equal(add(st, "a", "same", "again", 0, &two, &err), OK);
    assert_int_equal(listed(st, "a", docs), 1);
    assert_string_equal(docs[0].name, "again");
}


static void
a_session_never_sees_the_name_that_another_has(void **state)
{
    doc_t     doc, docs[VLM_DOCUMENT_MAX];
    err_t     err;
    store_t  *st;

    st = *state;

    ready(st, "alice", "same", 1, &doc);
    assert_int_equal(vlm_store_session_ensure(st, S("bob"), &err), OK);

    assert_int_equal(vlm_document_get(st, CLIENT(0, NULL), S(doc.id), &doc, &err), OK);
    assert_string_equal(doc.name, "");
    assert_int_equal(vlm_document_get(st, CLIENT(0, "alice"), S(doc.id), &doc, &err), OK);
    assert_string_equal(doc.name, "same");
    assert_int_equal(vlm_document_get(st, CLIENT(0, "bob"), S(doc.id), &doc, &err), NOTFOUND);
    assert_int_equal(vlm_document_get(st, CLIENT(0, "none"), S(doc.id), &doc, &err), NOTFOUND);

    assert_int_equal(vlm_document_link(st, CLIENT(0, "bob"), S(doc.id), S(""), &err), OK);
    assert_int_equal(listed(st, "bob", docs), 1);
    assert_string_equal(docs[0].name, "document.pdf");

    /* a name is kept until there is another */

    assert_int_equal(vlm_document_link(st, CLIENT(0, "bob"), S(doc.id), S("a/bob.pdf"), &err), OK);
    assert_int_equal(vlm_document_link(st, CLIENT(0, "bob"), S(doc.id), S(""), &err), OK);
    assert_int_equal(vlm_document_get(st, CLIENT(0, "bob"), S(doc.id), &doc, &err), OK);
    assert_string_equal(doc.name, "bob.pdf");
    assert_int_equal(listed(st, "alice", docs), 1);
    assert_string_equal(docs[0].name, "same");
}


static void
a_document_is_deleted_by_the_only_session_that_has_it(void **state)
{
    doc_t     doc, docs[VLM_DOCUMENT_MAX];
    err_t     err;
    store_t  *st;

    st = *state;

    ready(st, "alice", "same", 1, &doc);
    assert_int_equal(add(st, "bob", "same", "bob.pdf", 0, &doc, &err), OK);

    assert_int_equal(vlm_document_delete(st, CLIENT(0, "bob"), S(doc.id), &err), ELIMIT);
    assert_string_equal(err.text, "1 other session has this document: it can be removed from this"
                        " one, but not deleted");
    assert_int_equal(vlm_document_delete(st, CLIENT(0, NULL), S(doc.id), &err), ELIMIT);
    assert_string_equal(err.text, "2 sessions have this document: session_id must name the only"
                        " one");

    /* one that has given it up cannot delete it from the others */

    assert_int_equal(vlm_document_unlink(st, S("bob"), S(doc.id), &err), OK);
    assert_int_equal(vlm_document_delete(st, CLIENT(0, "bob"), S(doc.id), &err), NOTFOUND);
    assert_int_equal(vlm_document_delete(st, CLIENT(0, NULL), S(doc.id), &err), ELIMIT);
    assert_int_equal(listed(st, "alice", docs), 1);
    assert_true(exists(st, &doc));

    assert_int_equal(vlm_document_delete(st, CLIENT(0, "alice"), S(doc.id), &err), OK);
    assert_int_equal(listed(st, "alice", docs), 0);
    assert_false(exists(st, &doc));

    /* without a session it is anyone's */

    ready(st, "alice", "other", 1, &doc);
    assert_int_equal(vlm_document_unlink(st, S("alice"), S(doc.id), &err), OK);
    assert_int_equal(vlm_document_delete(st, CLIENT(0, NULL), S(doc.id), &err), OK);
    assert_false(exists(st, &doc));
}


static void
a_document_of_another_salt_is_not_found(void **state)
{
    doc_t     doc, docs[VLM_DOCUMENT_MAX];
    err_t     err;
    store_t  *st;

    st = *state;

    assert_int_equal(add(st, "alice", "same", "alice.pdf", 7, &doc, &err), OK);
    assert_int_equal(vlm_store_session_ensure(st, S("bob"), &err), OK);

    assert_int_equal(vlm_document_get(st, CLIENT(8, NULL), S(doc.id), &doc, &err), NOTFOUND);
    assert_int_equal(vlm_document_get(st, CLIENT(0, "alice"), S(doc.id), &doc, &err), NOTFOUND);
    assert_string_equal(err.text, "Document not found");
    assert_int_equal(vlm_document_link(st, CLIENT(8, "bob"), S(doc.id), S("b"), &err), NOTFOUND);
    assert_int_equal(listed(st, "bob", docs), 0);
    assert_int_equal(vlm_document_delete(st, CLIENT(8, "alice"), S(doc.id), &err), NOTFOUND);
    assert_int_equal(listed(st, "alice", docs), 1);

    assert_int_equal(vlm_document_get(st, CLIENT(7, NULL), S(doc.id), &doc, &err), OK);
    assert_int_equal(vlm_document_link(st, CLIENT(7, "bob"), S(doc.id), S("b"), &err), OK);
    assert_int_equal(listed(st, "bob", docs), 1);
}


static void
sessions_take_turns_at_the_reading(void **state)
{
    int          i;
    doc_t        doc;
    err_t        err;
    char         bytes[sizeof("slow -2147483648")];
    store_t     *st;
    static const char  *wanted[] = { "slow 0", "one", "slow 1", "two", "slow 2", "slow 3", "none" };

    st = *state;

    assert_int_equal(add(st, "gone", "none", "none", 0, &doc, &err), OK);
    assert_int_equal(vlm_store_session_delete(st, S("gone"), &err), OK);

    for (i = 0; i < 4; i++) {
        (void) snprintf(bytes, sizeof(bytes), "slow %d", i);
        assert_int_equal(add(st, "slow", bytes, bytes, 0, &doc, &err), OK);
    }

    assert_int_equal(add(st, "other", "one", "one", 0, &doc, &err), OK);
    assert_int_equal(add(st, "other", "two", "two", 0, &doc, &err), OK);

    for (i = 0; i < 7; i++) {
        assert_int_equal(vlm_document_take(st, &doc, &err), OK);
        assert_string_equal(doc.name, wanted[i]);
        assert_int_equal(vlm_document_fail(st, &doc, "damaged", 0, &err), OK);
    }

    /* a document of two sessions is read at the turn of either */

    assert_int_equal(add(st, "slow", "slow 9", "slow 9", 0, &doc, &err), OK);
    assert_int_equal(add(st, "slow", "both", "both", 0, &doc, &err), OK);
    assert_int_equal(add(st, "new", "both", "both", 0, &doc, &err), OK);
    assert_int_equal(vlm_document_take(st, &doc, &err), OK);
    assert_string_equal(doc.name, "both");
}


static void
a_file_that_took_all_its_time_rests(void **state)
{
    doc_t     doc;
    err_t     err;
    store_t  *st;

    st = *state;

    assert_int_equal(add(st, "s", "x", "x", 0, &doc, &err), OK);
    assert_int_equal(vlm_document_take(st, &doc, &err), OK);
    assert_int_equal(vlm_document_fail(st, &doc, "it took long", 300, &err), OK);

    assert_int_equal(add(st, "s", "x", "x", 0, &doc, &err), OK);
    assert_int_equal(doc.state, VLM_DOCUMENT_FAILED);
    assert_string_equal(doc.error, "it took long");
    assert_int_equal(vlm_document_take(st, &doc, &err), NOTFOUND);

    sql("UPDATE document SET rest = rest - 301000000");
    assert_int_equal(add(st, "s", "x", "x", 0, &doc, &err), OK);
    assert_int_equal(doc.state, VLM_DOCUMENT_WAITING);
    assert_int_equal(vlm_document_take(st, &doc, &err), OK);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(equal_files_of_one_salt_are_read_once),
        TEST(a_session_never_sees_the_name_that_another_has),
        TEST(a_document_is_deleted_by_the_only_session_that_has_it),
        TEST(a_document_of_another_salt_is_not_found),
        TEST(sessions_take_turns_at_the_reading),
        TEST(a_file_that_took_all_its_time_rests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
