/* Compiled grammars are found again by their form, in the order of its keys, within a bound. */

#include <pthread.h>

#include "grammar/grammar_fixture.h"
#include "grammar/forms.h"


static vlm_grammar_t *
get(vlm_forms_t *k, const char *text, vlm_form_t kind)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_json_t     *j;
    vlm_grammar_t  *g;

    j = vlm_json_parse(text, strlen(text), &err);
    assert_non_null(j);
    g = vlm_forms_get(k, demo.pieces, j, kind, &err);
    vlm_json_free(j);

    return g;
}


static void
the_same_form_is_compiled_once(void **state)
{
    uint64_t        found;
    vlm_forms_t     *k;
    vlm_grammar_t  *a, *b;
    static const char  schema[] = "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2.5}}}";

    (void) state;
    k = vlm_forms_open(1 << 20);
    a = get(k, schema, VLM_FORM_SCHEMA);
    b = get(k, schema, VLM_FORM_SCHEMA);
    assert_non_null(a);
    assert_ptr_equal(a, b);
    assert_true(vlm_forms_bytes(k, &found) > 0);
    assert_int_equal(found, 1);
    vlm_grammar_free(b);

    /* A grammar outlives the cache. */

    vlm_forms_close(k);
    assert_true(accepts(a, "{\"a\":1}"));
    vlm_grammar_free(a);
}


static void
forms_that_differ_are_different_grammars(void **state)
{
    size_t          i, n;
    uint64_t        found;
    vlm_forms_t     *k;
    vlm_grammar_t  *g;
    static const struct {
        const char  *text;
        vlm_form_t   kind;
    } cases[] = {
        { "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}}", VLM_FORM_SCHEMA },
        { "{\"properties\":{\"b\":{\"const\":2},\"a\":{\"const\":1}}}", VLM_FORM_SCHEMA },
        { "{\"const\":\"a\"}", VLM_FORM_SCHEMA }, { "{\"const\":[\"a\"]}", VLM_FORM_SCHEMA },
        { "{\"const\":1}", VLM_FORM_SCHEMA }, { "{\"const\":1.5}", VLM_FORM_SCHEMA },
        { "{\"const\":true}", VLM_FORM_SCHEMA }, { "{\"const\":false}", VLM_FORM_SCHEMA },
        { "{\"const\":98765432109876543210}", VLM_FORM_SCHEMA },
        { "{\"const\":98765432109876543211}", VLM_FORM_SCHEMA },
        { "{\"const\":null}", VLM_FORM_SCHEMA }, { "{\"const\":[[],1]}", VLM_FORM_SCHEMA },
        { "{\"const\":[[1]]}", VLM_FORM_SCHEMA }, { "\"a|b\"", VLM_FORM_REGEX },
        { "[\"a\",\"b\"]", VLM_FORM_CHOICE }, { "[\"ab\"]", VLM_FORM_CHOICE }
    };

    (void) state;
    k = vlm_forms_open(4 << 20);
    n = sizeof(cases) / sizeof(cases[0]);

    for (i = 0; i < 2 * n; i++) {
        g = get(k, cases[i % n].text, cases[i % n].kind);
        assert_non_null(g);
        vlm_grammar_free(g);
        (void) vlm_forms_bytes(k, &found);
        assert_int_equal(found, i < n ? 0 : i - n + 1);
    }

    assert_null(get(k, "7", VLM_FORM_REGEX));
    vlm_forms_close(k);
}


static void
the_oldest_give_way_within_the_bound(void **state)
{
    char            text[64];
    uint32_t        i;
    uint64_t        found, one;
    vlm_forms_t     *k;
    vlm_grammar_t  *g;

    (void) state;
    k = vlm_forms_open(1 << 20);
    vlm_grammar_free(get(k, "{\"const\":0}", VLM_FORM_SCHEMA));
    one = vlm_forms_bytes(k, &found);
    vlm_forms_close(k);

    k = vlm_forms_open(3 * one);

    for (i = 0; i < 200; i++) {
        (void) snprintf(text, sizeof(text), "{\"const\":%u}", i);
        vlm_grammar_free(get(k, text, VLM_FORM_SCHEMA));
        vlm_grammar_free(get(k, "{\"const\":0}", VLM_FORM_SCHEMA));
        assert_true(vlm_forms_bytes(k, &found) <= 3 * one);
    }

    assert_int_equal(found, 200);      /* a form that is used again stays */
    vlm_forms_close(k);

    k = vlm_forms_open(one - 1);        /* too large to be kept */
    g = get(k, "{\"const\":0}", VLM_FORM_SCHEMA);
    assert_non_null(g);
    assert_int_equal(vlm_forms_bytes(k, &found), 0);
    vlm_grammar_free(g);
    vlm_forms_close(k);

    k = vlm_forms_open(1 << 30);        /* no more than there are entries */

    for (i = 0; i < 100; i++) {
        (void) snprintf(text, sizeof(text), "{\"const\":%u}", i);
        vlm_grammar_free(get(k, text, VLM_FORM_SCHEMA));
    }

    assert_int_equal(vlm_forms_bytes(k, &found), VLM_FORMS * one);
    vlm_forms_close(k);
}


static void *
ask(void *data)
{
    char      text[64];
    uint32_t  i;

    for (i = 0; i < 300; i++) {
        (void) snprintf(text, sizeof(text), "{\"const\":%u}", i % 7);
        vlm_grammar_free(get(data, text, VLM_FORM_SCHEMA));
    }

    return NULL;
}


static void
threads_share_it(void **state)
{
    int          i;
    uint64_t     found;
    pthread_t    thread[4];
    vlm_forms_t  *k;

    (void) state;
    k = vlm_forms_open(1 << 20);

    for (i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, ask, k), 0);
    }

    for (i = 0; i < 4; i++) {
        (void) pthread_join(thread[i], NULL);
    }

    (void) vlm_forms_bytes(k, &found);
    assert_true(found >= 4 * 300 - 4 * 7);
    vlm_forms_close(k);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_same_form_is_compiled_once),
        cmocka_unit_test(forms_that_differ_are_different_grammars),
        cmocka_unit_test(the_oldest_give_way_within_the_bound),
        cmocka_unit_test(threads_share_it)
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
