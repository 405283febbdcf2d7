/* Vectors of pieces: their order, restarts, other models, and documents that go or are damaged. */

#define _GNU_SOURCE

#include "document/encode.h"

#include "document/hybrid.h"
#include "store/documents_fixture.h"
#include "store/store_fixture.h"

#define DIM  3

typedef struct {
    size_t  calls, failing;                /* failing: the call that has no vector */
    char    last[PAGE_TEXT];
} encoder_t;


/* A vector that depends on the text alone. */
static int
run(void *data, const char *text, size_t bytes, float *out)
{
    encoder_t  *encoder = data;

    encoder->calls++;
    (void) snprintf(encoder->last, sizeof(encoder->last), "%.*s", (int) bytes, text);

    if (encoder->calls == encoder->failing) {
        return -1;
    }

    out[0] = 1;
    out[1] = (float) bytes / PAGE_TEXT;
    out[2] = -0.5f;

    return 0;
}


static vlm_encode_t
encode_of(store_t *st, int64_t model, encoder_t *encoder)
{
    memset(encoder, 0, sizeof(*encoder));

    return (vlm_encode_t) { .store = st, .model = model, .dim = DIM, .run = run, .data = encoder };
}


static void
ready(store_t *st, const char *bytes, uint32_t pages, size_t n_chunks, doc_t *doc)
{
    doc_t  taken;

    assert_int_equal(add(st, "s", bytes, bytes, 0, doc, NULL), OK);
    assert_int_equal(vlm_document_take(st, &taken, NULL), OK);
    assert_int_equal(done(st, &taken, pages, n_chunks, NULL), OK);
}


static void
next(vlm_encode_t *e, size_t n)
{
    err_t  err;

    for ( /* void */ ; n > 0; n--) {
        assert_int_equal(vlm_encode_next(e, &err), OK);
    }
}


/* Encodes the rest; fails if that does not end. */
static void
finish(vlm_encode_t *e)
{
    int     rc;
    err_t   err;
    size_t  most;

    for (rc = OK, most = 100; rc == OK && most > 0; most--) {
        rc = vlm_encode_next(e, &err);
    }

    assert_int_equal(rc, NOTFOUND);
    vlm_encode_free(e);
}


static void
lack(store_t *st, int64_t model, uint64_t pieces)
{
    uint64_t  n;

    assert_int_equal(vlm_document_lacking(st, model, &n, NULL), OK);
    assert_int_equal(n, pieces);
}


/* ---- tests ------------------------------------------------------------------------------- */


static void
each_piece_gets_the_vector_of_its_text(void **state)
{
    doc_t         doc;
    set_t         set;
    size_t        i;
    float         out[DIM];
    int8_t        wanted[DIM];
    encoder_t     encoder, other;
    vlm_encode_t  e;

    e = encode_of(*state, 7, &encoder);
    finish(&e);
    assert_int_equal(encoder.calls, 0);

    ready(*state, "a", 3, 2, &doc);
    next(&e, 1);
    assert_int_equal(encoder.calls, 1);
    assert_null(strstr(encoder.last, "secret"));       /* a hidden word of a page with a picture */
    finish(&e);
    assert_int_equal(encoder.calls, 6);
    assert_null(strstr(encoder.last, "secret"));       /* a hidden word */
    assert_non_null(strstr(encoder.last, "noch"));

    assert_int_equal(vlm_document_pieces(*state, S(doc.id), 7, &set, NULL), OK);
    assert_int_equal(set.n, 6);
    assert_int_equal(set.dim, DIM);

    for (i = 0, memset(&other, 0, sizeof(other)); i < set.n; i++) {
        assert_non_null(set.chunks[i].vector);
    }

    assert_int_equal(run(&other, encoder.last, strlen(encoder.last), out), 0);
    (void) vlm_vector_round(wanted, out, DIM);
    assert_memory_equal(set.chunks[5].vector, wanted, DIM);
    vlm_document_set_free(&set);

    finish(&e);
    assert_int_equal(encoder.calls, 6);
}


static void
a_restart_goes_on_behind_what_was_kept(void **state)
{
    err_t         err;
    doc_t         doc;
    encoder_t     encoder;
    vlm_encode_t  e;

    ready(*state, "a", 1, 5, &doc);
    ready(*state, "b", 1, 2, &doc);

    e = encode_of(*state, 7, &encoder);
    next(&e, 3);
    assert_int_equal(vlm_encode_keep(&e, &err), OK);
    next(&e, 1);
    vlm_encode_free(&e);
    lack(*state, 7, 4);

    e = encode_of(*state, 7, &encoder);
    finish(&e);
    assert_int_equal(encoder.calls, 4);
    lack(*state, 7, 0);

    /* another model begins with the first */

    e = encode_of(*state, 8, &encoder);
    next(&e, 1);
    assert_int_equal(vlm_encode_keep(&e, &err), OK);
    lack(*state, 8, 6);
    finish(&e);
    assert_int_equal(encoder.calls, 7);
    lack(*state, 8, 0);
    lack(*state, 7, 7);
}


static void
a_piece_without_a_vector_gets_zeros(void **state)
{
    doc_t         doc;
    set_t         set;
    encoder_t     encoder;
    vlm_encode_t  e;

    ready(*state, "a", 1, 3, &doc);

    e = encode_of(*state, 7, &encoder);
    encoder.failing = 2;
    finish(&e);

    assert_int_equal(vlm_document_pieces(*state, S(doc.id), 7, &set, NULL), OK);
    assert_true(vlm_vector_scale(set.chunks[0].vector, DIM) > 0);
    assert_true(vlm_vector_scale(set.chunks[1].vector, DIM) == 0);
    assert_true(vlm_vector_scale(set.chunks[2].vector, DIM) > 0);
    vlm_document_set_free(&set);
}


static void
a_document_that_is_deleted_meanwhile_is_no_error(void **state)
{
    doc_t         a, b, c;
    encoder_t     encoder;
    vlm_encode_t  e;

    ready(*state, "a", 3, 1, &a);
    ready(*state, "b", 1, 2, &b);
    ready(*state, "c", 1, 1, &c);

    /* before its second page is read, and before its vectors are kept */

    e = encode_of(*state, 7, &encoder);
    next(&e, 1);
    assert_int_equal(vlm_document_delete(*state, NULL, S(a.id), NULL), OK);
    next(&e, 2);
    assert_int_equal(vlm_document_delete(*state, NULL, S(b.id), NULL), OK);
    finish(&e);

    assert_int_equal(encoder.calls, 1 + 2 + 1);
    lack(*state, 7, 0);
}


static void
damage_ends_with_zeros_and_damaged_vectors_are_made_again(void **state)
{
    doc_t         doc;
    size_t        i;
    encoder_t     encoder;
    vlm_encode_t  e;

    static const struct {
        const char  *sql;
        size_t       calls;                /* with two pages of two pieces */
    } damage[] = {
        { "UPDATE content SET terms = zeroblob(length(terms))", 0 },
        { "DELETE FROM content", 0 },
        { "UPDATE page SET text = x'ff' WHERE number = 1", 2 },
        { "DELETE FROM page WHERE number = 2", 2 },
        { "DELETE FROM page", 0 },
        { "UPDATE vector SET model = 7, dim = 0", 4 },
        { "UPDATE vector SET model = 7, dim = 1", 4 },
        { "UPDATE vector SET model = 7, vectors = x'0102'", 4 },
        { "UPDATE vector SET model = 7, dim = 4, vectors = zeroblob(8)", 4 },
    };

    ready(*state, "a", 2, 2, &doc);

    for (i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        assert_int_equal(vlm_document_delete(*state, NULL, S(doc.id), NULL), OK);
        ready(*state, "a", 2, 2, &doc);
        assert_int_equal(vlm_document_vectors(*state, S(doc.id), 6, (const int8_t *) "abcdefghijkl",
                                              4, DIM, NULL), OK);
        sql(damage[i].sql);

        e = encode_of(*state, 7, &encoder);
        finish(&e);
        assert_int_equal(encoder.calls, damage[i].calls);
        lack(*state, 7, 0);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(each_piece_gets_the_vector_of_its_text),
        TEST(a_restart_goes_on_behind_what_was_kept),
        TEST(a_piece_without_a_vector_gets_zeros),
        TEST(a_document_that_is_deleted_meanwhile_is_no_error),
        TEST(damage_ends_with_zeros_and_damaged_vectors_are_made_again)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
