/* Responses of /v1/responses as their clients read them: whole, and as events. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "api/responses_out.h"

#define ANSWER  "Look: <call>{\"name\":\"pick\",\"arguments\":{\"x\":1}}</call>done"

static const char  id[] = "resp_0123456789abcdefghijklmn";

static vlm_response_t  r;
static vlm_json_out_t  w;


static void
begin(const char *request)
{
    vlm_err_t    err = { VLM_OK, "" };
    vlm_json_t  *j;

    memset(&r, 0, sizeof(r));
    r.id = id;
    r.core = id + 5;

    j = vlm_json_parse(request, strlen(request), &err);
    assert_non_null(j);
    assert_int_equal(vlm_response_take(&r, j), 0);
    vlm_json_free(j);

    vlm_json_init(&w, 1 << 20);
}


static void
end(void)
{
    vlm_json_release(&w);
    vlm_response_free(&r);
}


/* The response of an answer, which the caller frees. */
static vlm_json_t *
whole(vlm_response_e state, const char *text, int tools)
{
    vlm_err_t    err = { VLM_OK, "" };
    vlm_calls_t  calls;
    vlm_json_t  *j;

    vlm_response_open(&r, &w, state, "toy", 1700000000);

    if (state == VLM_RESPONSE_BEGUN) {
        vlm_response_no_usage(&w);

    } else {
        vlm_calls_start(&calls, "<call>", "</call>", 0);
        vlm_response_items(&r, &w, tools ? &calls : NULL, text, strlen(text));
        vlm_response_usage(&w, 70, 64, 9);
    }

    vlm_json_shut(&w, '}');
    assert_int_equal(vlm_json_done(&w), 0);

    j = vlm_json_parse(w.data, w.len, &err);

    if (j == NULL) {
        fail_msg("%s: %.*s", err.text, (int) w.len, w.data);
    }

    return j;
}


static const char *
text_of(const vlm_json_t *j, const char *key)
{
    const char  *text = vlm_json_text(vlm_json_get(j, key));

    return text != NULL ? text : "(none)";
}


static void
fields_of_the_request_stand_in_the_answer(void **state)
{
    vlm_json_t  *j;

    (void) state;

    begin("{\"temperature\":0.5,\"metadata\":{\"a\":\"b\"},\"top_p\":null,\"input\":\"hi\"}");
    j = whole(VLM_RESPONSE_WHOLE, "cup", 0);

    assert_string_equal(text_of(j, "id"), id);
    assert_string_equal(text_of(j, "object"), "response");
    assert_string_equal(text_of(j, "status"), "completed");
    assert_string_equal(text_of(j, "model"), "toy");
    assert_string_equal(text_of(j, "tool_choice"), "auto");
    assert_string_equal(text_of(vlm_json_get(j, "metadata"), "a"), "b");
    assert_true(vlm_json_number(vlm_json_get(j, "temperature"), 0) == 0.5);
    assert_true(vlm_json_number(vlm_json_get(j, "created_at"), 0) == 1700000000);
    assert_true(vlm_json_is_null(vlm_json_get(j, "top_p")));
    assert_true(vlm_json_is_null(vlm_json_get(j, "incomplete_details")));
    assert_null(vlm_json_get(j, "input"));
    assert_true(vlm_json_number(vlm_json_get(vlm_json_get(j, "usage"), "total_tokens"), 0) == 79);

    vlm_json_free(j);
    end();
}


static void
a_response_that_begins_or_was_cut_says_so(void **state)
{
    vlm_json_t  *j;

    (void) state;

    begin("{}");
    j = whole(VLM_RESPONSE_BEGUN, "", 0);
    assert_string_equal(text_of(j, "status"), "in_progress");
    assert_int_equal(vlm_json_count(vlm_json_get(j, "output")), 0);
    assert_true(vlm_json_is_null(vlm_json_get(j, "usage")));
    vlm_json_free(j);
    end();

    begin("{}");
    j = whole(VLM_RESPONSE_CUT, "cu", 0);
    assert_string_equal(text_of(j, "status"), "incomplete");
    assert_string_equal(text_of(vlm_json_get(j, "incomplete_details"), "reason"),
                        "max_output_tokens");
    vlm_json_free(j);
    end();
}


static void
an_answer_is_messages_and_calls_in_their_order(void **state)
{
    vlm_json_t        *j;
    const vlm_json_t  *item;

    (void) state;

    begin("{}");
    j = whole(VLM_RESPONSE_WHOLE, ANSWER, 1);

    assert_int_equal(vlm_json_count(vlm_json_get(j, "output")), 3);

    item = vlm_json_first(vlm_json_get(j, "output"));
    assert_string_equal(text_of(item, "type"), "message");
    assert_string_equal(text_of(item, "id"), "msg_0123456789abcdefghijkl00");
    assert_string_equal(text_of(vlm_json_first(vlm_json_get(item, "content")), "text"), "Look:");

    item = vlm_json_next(item);
    assert_string_equal(text_of(item, "type"), "function_call");
    assert_string_equal(text_of(item, "call_id"), "call_0123456789abcdefghijkl01");
    assert_string_equal(text_of(item, "name"), "pick");
    assert_string_equal(text_of(item, "arguments"), "{\"x\": 1}");
    assert_string_equal(text_of(item, "status"), "completed");

    item = vlm_json_next(item);
    assert_string_equal(text_of(vlm_json_first(vlm_json_get(item, "content")), "text"), "done");

    vlm_json_free(j);
    end();

    /* An answer without text is an empty message. */

    begin("{}");
    j = whole(VLM_RESPONSE_WHOLE, "", 1);
    assert_int_equal(vlm_json_count(vlm_json_get(j, "output")), 1);
    vlm_json_free(j);
    end();
}


/* Reads the events that were written: each is one document, and they are numbered from 0. */
static void
check_events(const char *const *types, size_t n)
{
    char        *at, *stop, type[64];
    size_t       i;
    vlm_err_t    err = { VLM_OK, "" };
    vlm_json_t  *j;

    vlm_json_put_raw(&w, "", 1);
    at = w.data;

    for (i = 0; i < n; i++) {
        assert_int_equal(sscanf(at, "event: %63s\ndata: ", type), 1);
        assert_string_equal(type, types[i]);

        at = strchr(at, '\n') + sizeof("\ndata: ") - 1;
        stop = strstr(at, "\n\n");
        assert_non_null(stop);

        j = vlm_json_parse(at, (size_t) (stop - at), &err);

        if (j == NULL) {
            fail_msg("%s: %s", err.text, at);
        }

        assert_string_equal(text_of(j, "type"), type);
        assert_true(vlm_json_number(vlm_json_get(j, "sequence_number"), -1) == (double) i);
        vlm_json_free(j);

        at = stop + 2;
    }

    assert_string_equal(at, "");
}


static void
events_open_and_close_each_item(void **state)
{
    vlm_calls_e        kind;
    vlm_calls_t        calls;
    vlm_calls_piece_t  piece;

    static const char *const  types[] = {
        "response.output_item.added", "response.content_part.added", "response.output_text.delta",
        "response.output_text.done", "response.content_part.done", "response.output_item.done",
        "response.output_item.added", "response.function_call_arguments.delta",
        "response.function_call_arguments.done", "response.output_item.done",
        "response.output_item.added", "response.content_part.added", "response.output_text.delta",
        "response.output_text.done", "response.content_part.done", "response.output_item.done"
    };

    (void) state;

    begin("{}");
    vlm_calls_start(&calls, "<call>", "</call>", 0);

    while ((kind = vlm_calls_next(&calls, ANSWER, strlen(ANSWER), 1, &piece)) != VLM_CALLS_NONE) {
        if (kind == VLM_CALLS_TEXT) {
            vlm_response_text(&r, &w, piece.text, piece.bytes);

        } else {
            vlm_response_said(&r, &w);
            vlm_response_called(&r, &w, &piece);
            vlm_json_free(piece.call);
        }
    }

    vlm_response_said(&r, &w);
    vlm_response_said(&r, &w);             /* no message is open: no event */

    assert_int_equal(r.n_items, 3);
    check_events(types, sizeof(types) / sizeof(types[0]));
    assert_non_null(strstr(w.data, "\"item_id\":\"fc_0123456789abcdefghijkl01\""));
    assert_non_null(strstr(w.data, "\"item_id\":\"msg_0123456789abcdefghijkl02\","
                                   "\"content_index\":0"));
    end();

    /* A message without text has no delta. */

    begin("{}");
    vlm_response_text(&r, &w, "", 0);
    vlm_response_said(&r, &w);
    check_events((const char *const []) { types[0], types[1], types[3], types[4], types[5] }, 5);
    end();
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(fields_of_the_request_stand_in_the_answer),
        cmocka_unit_test(a_response_that_begins_or_was_cut_says_so),
        cmocka_unit_test(an_answer_is_messages_and_calls_in_their_order),
        cmocka_unit_test(events_open_and_close_each_item)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
