/* Getters over a checkpoint's JSON: an absent value or a wrong type gives a sentence, not a
   crash. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"


static vlm_json_t *
parse(const char *text)
{
    vlm_err_t    err = { 0 };
    vlm_json_t  *j;

    j = vlm_json_named(text, strlen(text), "x", &err);
    if (j == NULL) {
        fail_msg("%s: %s", text, err.text);
    }

    return j;
}


static void
members_are_found_by_their_exact_name(void **state)
{
    vlm_json_t  *j;

    (void) state;

    j = parse("{\"a\":1,\"A\":2,\"b\":{\"c\":\"text\"},\"d\":null,\"e\":true,\"\":3}");

    assert_true(vlm_json_number(vlm_json_get(j, "a"), 0) == 1);
    assert_true(vlm_json_number(vlm_json_get(j, "A"), 0) == 2);
    assert_true(vlm_json_number(vlm_json_get(j, ""), 0) == 3);
    assert_string_equal(vlm_json_text(vlm_json_get(vlm_json_get(j, "b"), "c")), "text");
    assert_null(vlm_json_get(j, "B"));
    assert_int_equal(vlm_json_is_null(vlm_json_get(j, "d")), 1);
    assert_int_equal(vlm_json_is_null(vlm_json_get(j, "z")), 1);
    assert_int_equal(vlm_json_is_null(vlm_json_get(j, "a")), 0);
    assert_int_equal(vlm_json_bool(vlm_json_get(j, "e"), 0), 1);
    assert_int_equal(vlm_json_count(j), 6);

    vlm_json_free(j);
    vlm_json_free(NULL);
}


static void
nothing_and_other_kinds_give_the_default(void **state)
{
    vlm_json_t        *j;
    const vlm_json_t  *a;

    (void) state;

    j = parse("[\"7\", 7, true, {}, null]");
    a = vlm_json_first(j);                                             /* "7" */

    assert_true(vlm_json_number(a, -1) == -1);
    assert_int_equal(vlm_json_bool(a, 5), 5);
    assert_null(vlm_json_get(a, "x"));
    assert_null(vlm_json_first(a));
    assert_null(vlm_json_text(vlm_json_next(a)));                      /* 7 */
    assert_int_equal(vlm_json_bool(vlm_json_next(a), 5), 5);
    assert_null(vlm_json_get(j, "x"));

    assert_null(vlm_json_get(NULL, "x"));
    assert_null(vlm_json_first(NULL));
    assert_null(vlm_json_next(NULL));
    assert_null(vlm_json_text(NULL));
    assert_string_equal(vlm_json_key(NULL), "");
    assert_string_equal(vlm_json_key(a), "");
    assert_true(vlm_json_number(NULL, 3) == 3);
    assert_int_equal(vlm_json_bool(NULL, 1), 1);
    assert_int_equal(vlm_json_is_object(NULL), 0);
    assert_int_equal(vlm_json_is_array(NULL), 0);
    assert_int_equal(vlm_json_count(NULL), 0);

    vlm_json_free(j);
}


static void
children_are_walked_in_their_order(void **state)
{
    char               seen[8] = "";
    vlm_json_t        *j;
    const vlm_json_t  *e;

    (void) state;

    j = parse("{\"x\":1,\"y\":[],\"z\":{}}");

    for (e = vlm_json_first(j); e != NULL; e = vlm_json_next(e)) {
        strcat(seen, vlm_json_key(e));
    }

    assert_string_equal(seen, "xyz");
    assert_int_equal(vlm_json_is_array(vlm_json_get(j, "y")), 1);
    assert_int_equal(vlm_json_is_object(vlm_json_get(j, "z")), 1);
    assert_null(vlm_json_first(vlm_json_get(j, "y")));

    vlm_json_free(j);
}


static void
text_that_is_not_json_is_refused_with_the_byte(void **state)
{
    size_t     i;
    vlm_err_t  err;

    static const struct {
        const char  *text, *says;
    } cases[] = {
        { "", "x: not JSON at byte 0 of 0" },
        { "{", "of 1" },
        { "{\"a\":1,}", "not JSON at byte 7 of 8" },
        { "{\"a\" 1}", "of 7" },
        { "[1 2]", "of 5" },
        { "{} x", "not JSON at byte 3 of 4" },
        { "{}{}", "not JSON at byte 2 of 4" },
        { "\"abc", "of 4" },
        { "nul", "of 3" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&err, 0, sizeof(err));
        assert_null(vlm_json_named(cases[i].text, strlen(cases[i].text), "x", &err));
        assert_int_equal(err.code, VLM_EMODEL);
        if (strstr(err.text, cases[i].says) == NULL) {
            fail_msg("%s: \"%s\" should say \"%s\"", cases[i].text, err.text, cases[i].says);
        }
    }

    memset(&err, 0, sizeof(err));
    assert_null(vlm_json_named("{}\0", 3, "x", &err));
    assert_null(vlm_json_named(NULL, 0, "x", NULL));
}


static void
nothing_is_read_past_the_given_length(void **state)
{
    char        *text;
    size_t       n;
    vlm_json_t  *j;

    static const char  whole[] = "{\"a\":[1,2.5e1,\"\\u00e9\"],\"b\":true} \n";

    (void) state;

    for (n = 0; n < sizeof(whole); n++) {
        text = malloc(n + 1);
        assert_non_null(text);
        memcpy(text + 1, whole, n);    /* a sanitizer sees the byte behind */
        j = vlm_json_named(text + 1, n, "x", NULL);
        assert_int_equal(j != NULL, n + 3 >= sizeof(whole) && n < sizeof(whole));
        vlm_json_free(j);
        free(text);
    }
}


static void
ten_thousand_brackets_do_not_overflow_the_stack(void **state)
{
    char  *text;

    (void) state;

    text = malloc(20000);
    assert_non_null(text);
    memset(text, '[', 10000);
    memset(text + 10000, ']', 10000);
    assert_null(vlm_json_named(text, 20000, "x", NULL));
    free(text);
}


static void
a_whole_number_is_taken_from_low_to_high_only(void **state)
{
    uint64_t     n;
    vlm_err_t    err;
    vlm_json_t  *j;

    static const struct {
        const char  *text;
        uint64_t     low, high;
        const char  *says;             /* NULL: taken */
    } cases[] = {
        { "1", 1, 9, NULL },
        { "9", 1, 9, NULL },
        { "9.0", 1, 9, NULL },
        { "9e0", 1, 9, NULL },
        { "0", 0, 0, NULL },
        { "9007199254740992", 0, UINT64_C(1) << 53, NULL },
        { "0", 1, 9, "f: p.q is 0, expected a whole number from 1 to 9" },
        { "10", 1, 9, "is 10, expected" },
        { "2.5", 1, 9, "is 2.5, expected" },
        { "-1", 0, 9, "is -1, expected" },
        { "1e400", 0, 9, "expected" },
        { "-1e400", 0, 9, "expected" },
        { "\"5\"", 1, 9, "is not a number" },
        { "true", 0, 9, "is not a number" },
        { "null", 0, 9, "is not a number" },
        { "[5]", 0, 9, "is not a number" }
    };
    size_t       i;

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&err, 0, sizeof(err));
        n = 77;
        j = parse(cases[i].text);

        if (cases[i].says == NULL) {
            assert_int_equal(vlm_json_u64(j, "f", "p.q", cases[i].low, cases[i].high, &n, &err),
                             0);
            assert_true((double) n == vlm_json_number(j, -1));
        } else {
            assert_int_equal(vlm_json_u64(j, "f", "p.q", cases[i].low, cases[i].high, &n, &err),
                             -1);
            assert_int_equal(err.code, VLM_EMODEL);
            assert_non_null(strstr(err.text, cases[i].says));
            assert_int_equal(n, 77);
        }

        vlm_json_free(j);
    }

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_json_u64(NULL, "f", "p.q", 0, 9, &n, &err), -1);
    assert_non_null(strstr(err.text, "f: p.q is missing, expected a whole number from 0 to 9"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(members_are_found_by_their_exact_name),
        cmocka_unit_test(nothing_and_other_kinds_give_the_default),
        cmocka_unit_test(children_are_walked_in_their_order),
        cmocka_unit_test(text_that_is_not_json_is_refused_with_the_byte),
        cmocka_unit_test(nothing_is_read_past_the_given_length),
        cmocka_unit_test(ten_thousand_brackets_do_not_overflow_the_stack),
        cmocka_unit_test(a_whole_number_is_taken_from_low_to_high_only)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
