/* The form of an answer, by each of the fields that name it, and the refusals of the others. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "api/constraint.h"

static vlm_constraint_t  c;
static vlm_err_t         err;


static int
read_request(const char *text, int chat)
{
    int          rc;
    vlm_json_t  *j;

    vlm_constraint_free(&c);
    memset(&c, 0, sizeof(c));
    memset(&err, 0, sizeof(err));

    j = vlm_json_parse(text, strlen(text), &err);

    if (j == NULL) {
        fail_msg("%s: %s", err.text, text);
    }

    rc = vlm_constraint_read(&c, j, chat, &err);
    vlm_json_free(j);

    return rc;
}


static void
each_field_that_has_a_form_is_read(void **state)
{
    size_t  i;
    static const struct {
        const char  *text, *name;
        vlm_constraint_e  kind;
    } cases[] = {
        { "{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":"
          "{\"type\":\"object\"}}}}", "response_format.json_schema.schema", 0 },
        { "{\"response_format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\"}}}",
          "response_format.schema", 0 },
        { "{\"response_format\":{\"type\":\"json_object\",\"schema\":{\"type\":\"object\"}}}",
          "response_format.schema", 0 },
        { "{\"response_format\":{\"type\":\"json_object\"}}", "response_format.type", 0 },
        { "{\"guided_json\":{\"type\":\"object\"}}", "guided_json", 0 },
        { "{\"guided_json\":\"{\\\"type\\\":\\\"object\\\"}\"}", "guided_json", 0 },
        { "{\"json_schema\":{\"type\":\"object\"}}", "json_schema", 0 },
        { "{\"structured_outputs\":{\"json\":{\"type\":\"object\"}}}", "structured_outputs.json",
          0 },
        { "{\"structured_outputs\":{\"json_object\":true}}", "structured_outputs.json_object", 0 },
        { "{\"guided_choice\":[\"a\"]}", "guided_choice", 1 },
        { "{\"structured_outputs\":{\"choice\":[\"a\"]}}", "structured_outputs.choice", 1 },
        { "{\"guided_regex\":\"a\"}", "guided_regex", 2 },
        { "{\"structured_outputs\":{\"regex\":\"a\"}}", "structured_outputs.regex", 2 },
        { "{\"grammar\":\"a\"}", "grammar", 3 },
        { "{\"guided_grammar\":\"a\"}", "guided_grammar", 3 },
        { "{\"structured_outputs\":{\"grammar\":\"a\"}}", "structured_outputs.grammar", 3 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (read_request(cases[i].text, 1) != 0) {
            fail_msg("%s: %s", err.text, cases[i].text);
        }

        assert_string_equal(c.name, cases[i].name);
        assert_int_equal(c.kind, cases[i].kind);

        if (c.kind != VLM_CONSTRAINT_SCHEMA) {
            assert_string_equal(vlm_json_text(c.kind == VLM_CONSTRAINT_CHOICE
                                              ? vlm_json_first(c.form) : c.form), "a");
        } else {
            assert_string_equal(vlm_json_text(vlm_json_get(c.form, "type")), "object");
        }
    }

    vlm_constraint_free(&c);
    assert_null(c.form);
}


static void
fields_without_an_effect_leave_the_answer_free(void **state)
{
    size_t  i;
    static const char  *const texts[] = {
        "{}", "{\"response_format\":null}", "{\"response_format\":{\"type\":\"text\"}}",
        "{\"guided_json\":null,\"grammar\":\"\",\"structured_outputs\":{}}",
        "{\"guided_choice\":[],\"guided_regex\":null}",
        "{\"structured_outputs\":{\"json_object\":false,\"regex\":\"\"}}"
    };

    (void) state;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(read_request(texts[i], 1), 0);
        assert_null(c.form);
    }

    /* A completion has no response_format. */

    assert_int_equal(read_request("{\"response_format\":{\"type\":\"json_object\"}}", 0), 0);
    assert_null(c.form);
}


static void
what_is_wrong_or_not_supported_is_refused_by_its_name(void **state)
{
    size_t  i;
    static const char  *const cases[][3] = {
        { "{\"response_format\":\"json\"}", "response_format", NULL },
        { "{\"response_format\":{}}", "response_format.type", NULL },
        { "{\"response_format\":{\"type\":\"xml\"}}", "response_format.type", NULL },
        { "{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"x\"}}}",
          "response_format.json_schema.schema", NULL },
        { "{\"guided_json\":\"{\"}", "guided_json", NULL },
        { "{\"guided_json\":{},\"guided_choice\":[\"a\"]}", "guided_choice", NULL },
        { "{\"structured_outputs\":7}", "structured_outputs", NULL },
        { "{\"guided_json\":{},\"grammar\":\"a\"}", "grammar", NULL },
        { "{\"structured_outputs\":{\"structural_tag\":\"a\"}}",
          "structured_outputs.structural_tag", "unsupported_parameter" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(read_request(cases[i][0], 1), -1);
        assert_int_equal(err.code, VLM_EINPUT);
        assert_string_equal(c.name, cases[i][1]);
        assert_non_null(strstr(err.text, cases[i][1]));

        if (cases[i][2] == NULL) {
            assert_null(c.code);
        } else {
            assert_string_equal(c.code, cases[i][2]);
        }
    }

    vlm_constraint_free(&c);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_field_that_has_a_form_is_read),
        cmocka_unit_test(fields_without_an_effect_leave_the_answer_free),
        cmocka_unit_test(what_is_wrong_or_not_supported_is_refused_by_its_name)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
