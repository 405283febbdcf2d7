/* Requests of the Responses interface become requests of chats. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/json_out.h"
#include "api/responses.h"


static void
check(const char *text, const char *want)
{
    const char      *param;
    vlm_err_t        err = { VLM_OK, "" };
    vlm_json_t      *request, *chat;
    vlm_json_out_t   w;

    request = vlm_json_parse(text, strlen(text), &err);
    assert_non_null(request);
    memset(&err, 0, sizeof(err));
    chat = vlm_responses_chat(request, &param, &err);

    if (chat == NULL) {
        fail_msg("%s: %s", err.text, text);
    }

    vlm_json_init(&w, 65536);
    vlm_json_put_value(&w, chat);
    assert_int_equal(vlm_json_done(&w), 0);
    w.data[w.len - 1] = '\0';
    assert_string_equal(w.data, want);
    vlm_json_release(&w);
    vlm_json_free(chat);

    /* The request that the chat referred to is whole. */

    vlm_json_init(&w, 65536);
    vlm_json_put_value(&w, request);
    assert_int_equal(vlm_json_done(&w), 0);
    vlm_json_release(&w);
    vlm_json_free(request);
}


static void
input_becomes_messages(void **state)
{
    (void) state;

    check("{\"input\":\"Hi\",\"instructions\":\"Be brief.\"}",
          "{\"messages\":[{\"content\":\"Be brief.\",\"role\":\"system\"},"
          "{\"content\":\"Hi\",\"role\":\"user\"}]}");
    check("{\"input\":[{\"role\":\"user\",\"content\":["
          "{\"type\":\"input_text\",\"text\":\"What?\"},{\"type\":\"input_image\","
          "\"image_url\":\"data:x\",\"detail\":\"low\"},{\"type\":\"odd\"}]},"
          "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\","
          "\"text\":\"A\"}]}]}",
          "{\"messages\":[{\"content\":[{\"text\":\"What?\",\"type\":\"text\"},{\"image_url\":"
          "{\"detail\":\"low\",\"url\":\"data:x\"},\"type\":\"image_url\"},{\"type\":\"odd\"}],"
          "\"role\":\"user\"},{\"content\":[{\"text\":\"A\",\"type\":\"text\"}],"
          "\"role\":\"assistant\"}]}");
}


static void
calls_and_their_results_become_messages(void **state)
{
    (void) state;

    check("{\"input\":[{\"type\":\"reasoning\"},{\"type\":\"function_call\",\"name\":\"f\","
          "\"arguments\":\"{}\",\"call_id\":\"a\"},{\"type\":\"function_call\",\"name\":\"g\","
          "\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"a\","
          "\"output\":\"7\"},{\"type\":\"function_call\",\"name\":\"h\"}]}",
          "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":["
          "{\"function\":{\"arguments\":\"{}\",\"name\":\"f\"}},{\"function\":{"
          "\"arguments\":\"{}\",\"name\":\"g\"}}]},"
          "{\"content\":\"7\",\"role\":\"tool\"},"
          "{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"h\"}}]}]}");
}


static void
fields_have_the_names_of_a_chats(void **state)
{
    (void) state;

    check("{\"input\":\"\",\"model\":\"m\",\"max_output_tokens\":5,\"temperature\":1,"
          "\"store\":true,\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\","
          "\"schema\":{\"a\":1}}},"
          "\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{},\"strict\":true}]}",
          "{\"max_tokens\":5,\"messages\":[{\"content\":\"\",\"role\":\"user\"}],\"model\":\"m\","
          "\"response_format\":{\"schema\":{\"a\":1},\"type\":\"json_schema\"},\"temperature\":1,"
          "\"tools\":[{\"function\":{\"name\":\"f\",\"parameters\":{},\"strict\":true},"
          "\"type\":\"function\"}]}");
}


static void
what_a_chat_does_not_have_is_refused(void **state)
{
    size_t       i;
    const char  *param;
    vlm_err_t    err;
    vlm_json_t  *request;
    static const char  *const cases[][2] = {
        { "{}", "input" }, { "{\"input\":[]}", "input" }, { "{\"input\":7}", "input" },
        { "{\"input\":[7]}", "input" }, { "{\"input\":[{\"content\":\"a\"}]}", "input" },
        { "{\"input\":[{\"type\":\"item_reference\"}]}", "input" },
        { "{\"input\":\"a\",\"previous_response_id\":\"resp_1\"}", "previous_response_id" },
        { "{\"input\":\"a\",\"background\":true}", "background" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&err, 0, sizeof(err));
        request = vlm_json_parse(cases[i][0], strlen(cases[i][0]), &err);
        assert_null(vlm_responses_chat(request, &param, &err));
        assert_int_equal(err.code, VLM_EINPUT);
        assert_string_equal(param, cases[i][1]);
        vlm_json_free(request);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(input_becomes_messages),
        cmocka_unit_test(calls_and_their_results_become_messages),
        cmocka_unit_test(fields_have_the_names_of_a_chats),
        cmocka_unit_test(what_a_chat_does_not_have_is_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
