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
    vlm_error_put(&w, status, code, param, "No");
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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_status_has_a_type_and_a_code),
        cmocka_unit_test(a_request_may_have_a_more_exact_code_and_a_field)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
