/* Bodies of strings, against what FastAPI 0.165 with pydantic 2.14 answers to them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/wrong.h"

#define SENTENCE  "Input should be a valid dictionary or object to extract fields from"
#define NO_OBJECT(input)  "\"type\":\"model_attributes_type\",\"loc\":[\"body\"],\"msg\":\"" \
                          SENTENCE "\",\"input\":" #input "}],\"error\":"


static const vlm_wrong_field_t  fields[] = { { "question", 0 }, { "sessionId", 1 }, { NULL, 0 } };


/* The errors of a body; NULL: it has none. */
static void
wrong(const char *body, const char *answer)
{
    int             rc;
    vlm_err_t       err;
    vlm_json_t     *json;
    vlm_json_out_t  w = { 0 };

    err.code = VLM_OK;
    json = body != NULL ? vlm_json_parse(body, strlen(body), &err) : NULL;
    assert_true(json != NULL || body == NULL);

    rc = vlm_wrong_strings(json, fields, &w, &err);
    assert_int_equal(rc, answer != NULL ? -1 : 0);
    assert_int_equal(err.code, answer != NULL ? VLM_EINPUT : VLM_OK);

    if (answer != NULL) {
        assert_int_equal(vlm_json_done(&w), 0);
        assert_int_equal(w.len, strlen(answer) + 1);
        assert_memory_equal(w.data, answer, strlen(answer));
        free(w.data);
    }

    vlm_json_free(json);
}


static void
all_wrong_fields_are_listed(void **state)
{
    (void) state;

    wrong("{\"question\":\"q\",\"sessionId\":\"s\"}", NULL);
    wrong("{\"question\":\"\",\"sessionId\":null,\"more\":[1]}", NULL);
    wrong("{\"question\":\"q\"}", NULL);

    wrong("{\"sessionId\":\"s\"}",
          "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\",\"question\"],"
          "\"msg\":\"Field required\",\"input\":{\"sessionId\":\"s\"}}],"
          "\"error\":\"question: Field required\"}");
    wrong("{\"question\":null,\"sessionId\":5}",
          "{\"detail\":[{\"type\":\"string_type\",\"loc\":[\"body\",\"question\"],"
          "\"msg\":\"Input should be a valid string\",\"input\":null},"
          "{\"type\":\"string_type\",\"loc\":[\"body\",\"sessionId\"],"
          "\"msg\":\"Input should be a valid string\",\"input\":5}],"
          "\"error\":\"question: Input should be a valid string\"}");
}


static void
a_body_is_an_object(void **state)
{
    (void) state;

    wrong(NULL, "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\"],"
                "\"msg\":\"Field required\",\"input\":null}],\"error\":\"body: Field required\"}");
    wrong("null", "{\"detail\":[{" NO_OBJECT(null) "\"body: " SENTENCE "\"}");
    wrong("[1]", "{\"detail\":[{" NO_OBJECT([1]) "\"body: " SENTENCE "\"}");
}


static void
a_body_is_json(void **state)
{
    static const char  answer[] = "{\"detail\":[{\"type\":\"json_invalid\",\"loc\":[\"body\"],"
                                  "\"msg\":\"JSON decode error\",\"input\":{},"
                                  "\"ctx\":{\"error\":\"no JSON\"}}],\"error\":\"no JSON\"}\n";
    vlm_json_out_t     w = { 0 };

    (void) state;

    vlm_wrong_json(&w, "no JSON", "no JSON");
    assert_int_equal(vlm_json_done(&w), 0);
    assert_int_equal(w.len, sizeof(answer) - 1);
    assert_memory_equal(w.data, answer, w.len);
    free(w.data);
}


/* The caller says no more than the sentence then. */
static void
values_that_are_long_are_not_sent_back(void **state)
{
    char           *body;
    vlm_err_t       err;
    vlm_json_t     *json;
    vlm_json_out_t  w = { 0 };

    (void) state;

    body = malloc(100100);
    assert_non_null(body);
    memset(body, ' ', 100100);
    memcpy(body, "{\"other\":\"", 10);
    memset(body + 10, 'x', 100000);
    memcpy(body + 100010, "\"}", 2);

    json = vlm_json_parse(body, 100100, &err);
    assert_non_null(json);
    assert_int_equal(vlm_wrong_strings(json, fields, &w, &err), -1);
    assert_string_equal(err.text, "question: Field required");
    assert_int_equal(w.failed, 1);

    vlm_json_release(&w);
    vlm_json_free(json);
    free(body);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(all_wrong_fields_are_listed),
        cmocka_unit_test(a_body_is_an_object),
        cmocka_unit_test(a_body_is_json),
        cmocka_unit_test(values_that_are_long_are_not_sent_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
