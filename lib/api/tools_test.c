/* The tools of a request: which may be called, and what is refused by its place. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "api/tools.h"

#define PICK   "{\"type\":\"function\",\"function\":{\"name\":\"pick\"}}"
#define PLACE  "{\"function\":{\"name\":\"place\"}}"

static vlm_err_t  err;


static vlm_json_t *
parse(const char *text)
{
    vlm_json_t  *j;

    memset(&err, 0, sizeof(err));
    j = vlm_json_parse(text, strlen(text), &err);

    if (j == NULL) {
        fail_msg("%s: %s", err.text, text);
    }

    return j;
}


static void
a_choice_lets_the_model_call_or_demands_a_call(void **state)
{
    size_t       i;
    const char  *only;
    vlm_json_t  *j;

    static const struct {
        const char  *field;
        int          rc;
        const char  *only;
    } cases[] = {
        { "null", 0, NULL },
        { "\"auto\"", 0, NULL },
        { "\"required\"", 1, NULL },
        { PICK, 1, "pick" },
        { "{\"name\":\"pick\"}", 1, "pick" },
        { "\"any\"", -1, NULL },
        { "{\"type\":\"function\"}", -1, NULL },
        { "7", -1, NULL }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        j = parse(cases[i].field);
        assert_int_equal(vlm_tools_choice(j, &only, &err), cases[i].rc);

        if (cases[i].only == NULL) {
            assert_null(only);
        } else {
            assert_string_equal(only, cases[i].only);
        }

        assert_int_equal(err.code, cases[i].rc < 0 ? VLM_EINPUT : VLM_OK);
        vlm_json_free(j);
    }

    assert_int_equal(vlm_tools_choice(NULL, &only, &err), 0);
}


static void
all_tools_or_those_of_a_name_are_picked(void **state)
{
    char         param[32];
    vlm_json_t  *list, *picked;

    (void) state;

    list = parse("[" PICK "," PLACE "]");

    picked = vlm_tools_pick(list, NULL, param, &err);
    assert_int_equal(vlm_json_count(picked), 2);
    vlm_json_free(picked);

    picked = vlm_tools_pick(list, "place", param, &err);
    assert_int_equal(vlm_json_count(picked), 1);
    vlm_json_free(picked);

    assert_null(vlm_tools_pick(list, "pour", param, &err));
    assert_string_equal(param, "tool_choice");
    assert_string_equal(err.text, "tool_choice has a name that no tool has");

    vlm_json_free(list);
}


static void
a_tool_that_is_no_function_is_refused_by_its_place(void **state)
{
    size_t       i;
    char         param[32];
    vlm_json_t  *list;

    static const char *const  cases[] = {
        "[" PICK ",7]",
        "[" PICK ",{\"function\":{}}]",
        "[" PICK ",{\"function\":{\"name\":\"\"}}]",
        "[" PICK ",{\"function\":{\"name\":7}}]",
        "[" PICK ",{\"type\":\"retrieval\",\"function\":{\"name\":\"a\"}}]"
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        list = parse(cases[i]);
        assert_null(vlm_tools_pick(list, NULL, param, &err));
        assert_int_equal(err.code, VLM_EINPUT);
        assert_string_equal(param, "tools.1");
        assert_string_equal(err.text, "tools.1 is not of the type \"function\" with a name");
        vlm_json_free(list);
    }
}


static void
texts_are_those_of_the_template(void **state)
{
    char        *text;
    vlm_json_t  *list;

    (void) state;

    list = parse("[" PICK "," PLACE "]");
    text = vlm_tools_text(list);
    assert_string_equal(text, "\n{\"type\": \"function\", \"function\": {\"name\": \"pick\"}}"
                              "\n{\"function\": {\"name\": \"place\"}}");
    free(text);
    vlm_json_free(list);

    list = vlm_tools_between("<call>", "</call>");
    assert_string_equal(vlm_json_text(vlm_json_first(list)), "\n</call>");
    assert_string_equal(vlm_json_text(vlm_json_next(vlm_json_first(list))), "\n</call>\n<call>");
    vlm_json_free(list);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_choice_lets_the_model_call_or_demands_a_call),
        cmocka_unit_test(all_tools_or_those_of_a_name_are_picked),
        cmocka_unit_test(a_tool_that_is_no_function_is_refused_by_its_place),
        cmocka_unit_test(texts_are_those_of_the_template)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
