/* The two hash tables: entries put in are found, others are not, and limits are reported. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/vocab.h"

#define N  100003                      /* a prime */


static void
a_hundred_thousand_tokens_are_found_again(void **state)
{
    char         name[16];
    int          n;
    uint32_t     i;
    vlm_err_t    err = { 0 };
    vlm_vocab_t  v;

    (void) state;

    assert_int_equal(vlm_vocab_open(&v, N, 0, &err), 0);

    for (i = 0; i < N; i++) {
        n = snprintf(name, sizeof(name), "t%u", i);
        assert_int_equal(vlm_vocab_add(&v, N - 1 - i, name, n, VLM_TOKEN_BYTES, &err), 0);
    }

    for (i = 0; i < N; i++) {
        n = snprintf(name, sizeof(name), "t%u", i);
        assert_int_equal(vlm_vocab_find(&v, name, n), N - 1 - i);
    }

    assert_int_equal(vlm_vocab_find(&v, "t", 1), -1);
    assert_int_equal(vlm_vocab_find(&v, "t100003", 7), -1);
    assert_int_equal(v.n_ids, N);
    assert_int_equal(v.max_bytes, 7);
    assert_null(vlm_vocab_token(&v, N));

    vlm_vocab_close(&v);
    vlm_vocab_close(&v);
}


static void
a_hundred_thousand_pairs_are_found_again(void **state)
{
    uint32_t           i;
    vlm_err_t          err = { 0 };
    vlm_vocab_t        v;
    const vlm_pair_t  *pair;

    (void) state;

    assert_int_equal(vlm_vocab_open(&v, 1, N, &err), 0);
    assert_int_equal(vlm_vocab_add(&v, N, "x", 1, VLM_TOKEN_BYTES, &err), 0);

    for (i = 0; i < N; i++) {
        assert_int_equal(vlm_vocab_join(&v, i, (i * 7) % N, i, N - i, &err), 0);
    }

    for (i = 0; i < N; i++) {
        pair = vlm_vocab_pair(&v, i, (i * 7) % N);
        assert_non_null(pair);
        assert_int_equal(pair->rank, i);
        assert_int_equal(pair->id, N - i);
        assert_null(vlm_vocab_pair(&v, i, (i * 7 + 1) % N));
    }

    vlm_vocab_close(&v);
}


static void
the_last_of_two_merges_of_one_pair_holds(void **state)
{
    vlm_err_t    err = { 0 };
    vlm_vocab_t  v;

    (void) state;

    assert_int_equal(vlm_vocab_open(&v, 1, 2, &err), 0);
    assert_int_equal(vlm_vocab_add(&v, 9, "x", 1, VLM_TOKEN_BYTES, &err), 0);
    assert_int_equal(vlm_vocab_join(&v, 1, 2, 3, 4, &err), 0);
    assert_int_equal(vlm_vocab_join(&v, 1, 2, 5, 6, &err), 0);
    assert_int_equal(vlm_vocab_pair(&v, 1, 2)->rank, 5);
    assert_int_equal(vlm_vocab_pair(&v, 1, 2)->id, 6);
    assert_int_equal(v.n_pairs, 1);

    vlm_vocab_close(&v);
}


static void
empty_tables_hold_nothing_and_find_nothing(void **state)
{
    vlm_err_t    err = { 0 };
    vlm_vocab_t  v;

    (void) state;

    assert_int_equal(vlm_vocab_open(&v, 0, 0, &err), 0);
    assert_int_equal(vlm_vocab_find(&v, "a", 1), -1);
    assert_null(vlm_vocab_pair(&v, 0, 0));
    assert_null(vlm_vocab_token(&v, 0));
    assert_int_equal(vlm_vocab_join(&v, 0, 0, 0, 0, &err), -1);

    vlm_vocab_close(&v);
}


static void
tables_refuse_more_than_they_were_made_for(void **state)
{
    char         name[16];
    int          n, rc;
    uint32_t     i;
    vlm_err_t    err = { 0 };
    vlm_vocab_t  v;

    (void) state;

    assert_int_equal(vlm_vocab_open(&v, 3, 3, &err), 0);

    for (i = 0, rc = 0; rc == 0 && i < 100; i++) {
        n = snprintf(name, sizeof(name), "t%u", i);
        rc = vlm_vocab_add(&v, i, name, n, VLM_TOKEN_BYTES, &err);
    }

    assert_int_equal(rc, -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_int_equal(vlm_vocab_find(&v, "nothing", 7), -1);    /* ends, though nearly full */

    err.code = VLM_OK;

    for (i = 0, rc = 0; rc == 0 && i < 100; i++) {
        rc = vlm_vocab_join(&v, 0, 0, i, 0, &err) != 0 || vlm_vocab_join(&v, i % 3, i / 3, 0, 0,
                                                                         &err) != 0;
    }

    assert_true(rc != 0);
    assert_int_equal(err.code, VLM_EMODEL);

    vlm_vocab_close(&v);
}


static void
an_id_or_a_token_that_is_taken_is_refused_by_number(void **state)
{
    vlm_err_t    err = { 0 }, same = { 0 };
    vlm_vocab_t  v;

    (void) state;

    assert_int_equal(vlm_vocab_open(&v, 3, 0, &err), 0);
    assert_int_equal(vlm_vocab_add(&v, 7, "a", 1, VLM_TOKEN_BYTES, &err), 0);

    assert_int_equal(vlm_vocab_add(&v, 7, "b", 1, VLM_TOKEN_BYTES, &err), -1);
    assert_string_equal(err.text, "two tokens with the id 7");

    assert_int_equal(vlm_vocab_add(&v, 8, "a", 1, VLM_TOKEN_BYTES, &same), -1);
    assert_string_equal(same.text, "ids 7 and 8 are the same token");

    vlm_vocab_close(&v);
}


static void
ids_counts_and_lengths_have_limits(void **state)
{
    char         text[VLM_MAX_TOKEN_BYTES + 1] = { 0 };
    vlm_err_t    err = { 0 };
    vlm_vocab_t  v;

    (void) state;

    assert_int_equal(vlm_vocab_open(&v, (uint64_t) VLM_MAX_ID + 1, 0, &err), -1);
    assert_int_equal(vlm_vocab_open(&v, 0, UINT64_MAX, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    err.code = VLM_OK;

    assert_int_equal(vlm_vocab_open(&v, 4, 0, &err), 0);
    assert_int_equal(vlm_vocab_add(&v, VLM_MAX_ID, "a", 1, VLM_TOKEN_BYTES, &err), -1);
    assert_int_equal(vlm_vocab_add(&v, UINT32_MAX, "a", 1, VLM_TOKEN_ADDED, &err), -1);
    assert_int_equal(vlm_vocab_add(&v, 0, text, sizeof(text), VLM_TOKEN_BYTES, &err), -1);
    assert_int_equal(vlm_vocab_add(&v, 0, text, sizeof(text) - 1, VLM_TOKEN_BYTES, NULL), 0);
    assert_int_equal(vlm_vocab_add(&v, VLM_MAX_ID - 1, "a", 1, VLM_TOKEN_BYTES, NULL), 0);
    assert_int_equal(vlm_vocab_find(&v, "a", 1), VLM_MAX_ID - 1);

    vlm_vocab_close(&v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_hundred_thousand_tokens_are_found_again),
        cmocka_unit_test(a_hundred_thousand_pairs_are_found_again),
        cmocka_unit_test(the_last_of_two_merges_of_one_pair_holds),
        cmocka_unit_test(empty_tables_hold_nothing_and_find_nothing),
        cmocka_unit_test(tables_refuse_more_than_they_were_made_for),
        cmocka_unit_test(an_id_or_a_token_that_is_taken_is_refused_by_number),
        cmocka_unit_test(ids_counts_and_lengths_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
