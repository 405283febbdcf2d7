/* Terms and BM25, against 1,000 queries of a BM25 over strings (t/fixtures/bm25/make.py). */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "document/terms.h"

#define RESULTS  "t/fixtures/bm25/bm25.json"
#define TEXTS    60
#define NEAR     1e-6


static vlm_terms_t
terms_of(const char *text)
{
    vlm_terms_t  t;

    assert_int_equal(vlm_terms_of(&t, text, strlen(text)), 0);

    return t;
}


/* Whether two texts have the same terms. */
static int
same(const char *a, const char *b)
{
    int          rc;
    vlm_terms_t  x = terms_of(a), y = terms_of(b);

    rc = x.n == y.n && x.length == y.length
         && memcmp(x.terms, y.terms, x.n * sizeof(*x.terms)) == 0;
    free(x.terms);
    free(y.terms);

    return rc;
}


static void
words_are_folded(void **state)
{
    (void) state;

    assert_true(same("Café, CAFÉ", "cafe cafe"));
    assert_true(same("Stra\xc3\x9f" "e", "STRASSE"));
    assert_true(same("\xef\xac\x81lter \xe2\x85\xa3", "filter iv"));
    assert_true(same("don't", "don t"));
    assert_true(same("a  b\n", "b;a"));
    assert_false(same("a b", "ab"));
    assert_false(same("a a", "a"));
    assert_true(same("", " .,;"));
    assert_true(same("co\xc2\xadoperate", "cooperate"));
    assert_true(same("\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae", "\xd9\x85\xdb\x8c\xd8\xae"));
    assert_true(same("belt \xff bearing", "belt"));
}


static void
scripts_without_spaces_give_pairs(void **state)
{
    vlm_terms_t  t = terms_of("机器人");

    (void) state;

    assert_int_equal(t.length, 2);
    free(t.terms);
    assert_true(same("机器人", "机器 器人"));
    assert_true(same("杯cup杯", "杯 cup 杯"));
    assert_true(same("ｶﾀ", "カタ"));
}


static const char *
text_at(const vlm_json_t *list, uint32_t i)
{
    const vlm_json_t  *j;

    for (j = vlm_json_first(list); i > 0; i--) {
        j = vlm_json_next(j);
    }

    return vlm_json_text(j);
}


static double
number_at(const vlm_json_t *list, uint32_t i)
{
    const vlm_json_t  *j;

    for (j = vlm_json_first(list); i > 0; i--) {
        j = vlm_json_next(j);
    }

    return vlm_json_number(j, NAN);
}


static void
check(const vlm_terms_t *texts, const vlm_json_t *query)
{
    size_t       i, n, best[3];
    double       sum, scores[TEXTS];
    vlm_terms_t  q = terms_of(text_at(query, 0));

    vlm_bm25(scores, texts, TEXTS, &q);
    n = vlm_best(best, 3, scores, TEXTS);
    free(q.terms);

    for (i = 0, sum = 0; i < TEXTS; i++) {
        sum += scores[i];
    }

    assert_true(fabs(sum - number_at(query, 3)) < NEAR);

    if (number_at(query, 1) < 0) {
        assert_int_equal(n, 0);
        return;
    }

    i = (size_t) number_at(query, 1);

    assert_true(n > 0 && i < TEXTS);
    assert_true(fabs(scores[i] - number_at(query, 2)) < NEAR);
    assert_true(fabs(scores[best[0]] - number_at(query, 2)) < NEAR);
    assert_true(n < 2 || scores[best[0]] >= scores[best[1]]);
    assert_true(n < 3 || scores[best[1]] >= scores[best[2]]);
}


static void
scores_are_those_of_strings(void **state)
{
    size_t             i;
    vlm_err_t          err = { 0 };
    vlm_file_t         file;
    vlm_json_t        *j;
    vlm_terms_t        texts[TEXTS];
    const vlm_json_t  *query;

    (void) state;

    assert_int_equal(vlm_file_open(&file, RESULTS, 1u << 20, &err), 0);
    j = vlm_json_named(file.data, file.bytes, RESULTS, &err);
    assert_non_null(j);
    assert_int_equal(vlm_json_count(vlm_json_get(j, "texts")), TEXTS);
    assert_int_equal(vlm_json_count(vlm_json_get(j, "queries")), 1000);

    for (i = 0; i < TEXTS; i++) {
        texts[i] = terms_of(text_at(vlm_json_get(j, "texts"), (uint32_t) i));
    }

    for (query = vlm_json_first(vlm_json_get(j, "queries")); query != NULL;
         query = vlm_json_next(query))
    {
        check(texts, query);
    }

    for (i = 0; i < TEXTS; i++) {
        free(texts[i].terms);
    }

    vlm_json_free(j);
    vlm_file_close(&file);
}


static void
lists_keep_the_order_and_make_numbers_one(void **state)
{
    size_t     n, m;
    uint32_t  *a, *b;

    (void) state;

    assert_int_equal(vlm_terms_list(&a, &n, "The TABLE, 12a 机器人", 24), 0);
    assert_int_equal(vlm_terms_list(&b, &m, "table 3 the 机器", 18), 0);
    assert_int_equal(n, 5);
    assert_int_equal(m, 4);
    assert_int_equal(a[0], b[2]);
    assert_int_equal(a[1], b[0]);
    assert_int_equal(a[2], b[1]);
    assert_int_equal(a[3], b[3]);
    free(a);
    free(b);

    assert_int_equal(vlm_terms_list(&a, &n, " .,;", 4), 0);
    assert_int_equal(n, 0);
    free(a);
}


static void
the_best_are_found(void **state)
{
    size_t        best[4];
    const double  scores[] = { 0, 2, 3, 2, 0, 1, 3 };

    (void) state;

    assert_int_equal(vlm_best(best, 4, scores, 7), 4);
    assert_int_equal(best[0], 2);
    assert_int_equal(best[1], 6);
    assert_int_equal(best[2], 1);
    assert_int_equal(best[3], 3);
    assert_int_equal(vlm_best(best, 1, scores, 7), 1);
    assert_int_equal(best[0], 2);
    assert_int_equal(vlm_best(best, 0, scores, 7), 0);
    assert_int_equal(vlm_best(best, 4, scores, 1), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(words_are_folded),
        cmocka_unit_test(scripts_without_spaces_give_pairs),
        cmocka_unit_test(scores_are_those_of_strings),
        cmocka_unit_test(lists_keep_the_order_and_make_numbers_one),
        cmocka_unit_test(the_best_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
