/* An error has the type and the code by which OpenAI's clients choose what to do. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "api/error.h"


static void
check(unsigned status, const char *code, const char *param, const char *want)
{
    vlm_json_out_t  w;

    vlm_json_init(&w, 4096);
    vlm_error_put(&w, status, code, param, "No", 0);
    vlm_json_put_raw(&w, "", 1);
    assert_false(w.failed);
    assert_string_equal(w.data, want);
    vlm_json_release(&w);
}


static void
each_status_has_a_type_and_a_code(void **state)
{
    (void) state;

    check(401, NULL, NULL, "{\"error\":{\"message\":\"No\",\"type\":\"invalid_request_error\","
                           "\"param\":null,\"code\":\"invalid_api_key\"}}");
    check(429, NULL, NULL, "{\"error\":{\"message\":\"No\",\"type\":\"rate_limit_exceeded\","
                           "\"param\":null,\"code\":\"rate_limit_exceeded\"}}");
    check(418, NULL, NULL, "{\"error\":{\"message\":\"No\",\"type\":\"invalid_request_error\","
                           "\"param\":null,\"code\":null}}");
    check(503, NULL, NULL, "{\"error\":{\"message\":\"No\",\"type\":\"server_error\","
                           "\"param\":null,\"code\":\"engine_unavailable\"}}");
    check(500, NULL, NULL, "{\"error\":{\"message\":\"No\",\"type\":\"server_error\","
                           "\"param\":null,\"code\":null}}");
    check(599, NULL, NULL, "{\"error\":{\"message\":\"No\",\"type\":\"server_error\","
                           "\"param\":null,\"code\":null}}");
}


static void
a_request_may_have_a_more_exact_code_and_a_field(void **state)
{
    (void) state;

    check(400, "too_many_images", "messages.0",
          "{\"error\":{\"message\":\"No\",\"type\":\"invalid_request_error\","
          "\"param\":\"messages.0\",\"code\":\"too_many_images\"}}");
    check(504, "stalled", "messages.0",
          "{\"error\":{\"message\":\"No\",\"type\":\"server_error\","
          "\"param\":null,\"code\":\"stalled\"}}");
}


static vlm_error_form_t
form(const char *path)
{
    return vlm_error_form(path, strlen(path));
}


static void
a_path_has_the_form_that_its_clients_read(void **state)
{
    (void) state;

    assert_int_equal(form("/v1/chat/completions"), VLM_ERROR_OPENAI);
    assert_int_equal(form("/v1/"), VLM_ERROR_OPENAI);
    assert_int_equal(form("/v1"), VLM_ERROR_PLAIN);
    assert_int_equal(form("/generate-lite"), VLM_ERROR_DETAIL);
    assert_int_equal(form("/adapter/list"), VLM_ERROR_DETAIL);
    assert_int_equal(form("/rl/train"), VLM_ERROR_DETAIL);
    assert_int_equal(form("/ask"), VLM_ERROR_BOTH);
    assert_int_equal(form("/process-pdf"), VLM_ERROR_BOTH);
    assert_int_equal(form("/asks"), VLM_ERROR_PLAIN);
    assert_int_equal(form("/api/chat"), VLM_ERROR_PLAIN);
    assert_int_equal(vlm_error_form("/ask", 3), VLM_ERROR_PLAIN);
    assert_int_equal(vlm_error_form("", 0), VLM_ERROR_PLAIN);
}


static void
a_sentence_is_error_or_detail_or_both(void **state)
{
    static const struct {
        vlm_error_form_t   form;
        const char        *want;
    } forms[] = {
        { VLM_ERROR_PLAIN, "{\"error\":\"\\\"No\\\"\"}" },
        { VLM_ERROR_DETAIL, "{\"detail\":\"\\\"No\\\"\"}" },
        { VLM_ERROR_BOTH, "{\"detail\":\"\\\"No\\\"\",\"error\":\"\\\"No\\\"\"}" }
    };

    size_t          i;
    vlm_json_out_t  w;

    (void) state;

    for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        vlm_json_init(&w, 4096);
        vlm_error_put_text(&w, forms[i].form, "\"No\"");
        vlm_json_put_raw(&w, "", 1);
        assert_false(w.failed);
        assert_string_equal(w.data, forms[i].want);
        vlm_json_release(&w);
    }
}


static void
a_status_has_a_sentence(void **state)
{
    (void) state;

    assert_string_equal(vlm_error_text(404), "Not found");
    assert_string_equal(vlm_error_text(507), "The disk of this server is full");
    assert_null(vlm_error_text(418));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_status_has_a_type_and_a_code),
        cmocka_unit_test(a_request_may_have_a_more_exact_code_and_a_field),
        cmocka_unit_test(a_path_has_the_form_that_its_clients_read),
        cmocka_unit_test(a_sentence_is_error_or_detail_or_both),
        cmocka_unit_test(a_status_has_a_sentence)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
