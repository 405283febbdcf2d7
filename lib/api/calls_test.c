/* Calls are found in answers, however these are cut; and written as templates have them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/calls.h"

#define OPEN  "<tool_call>"
#define END   "</tool_call>"
#define ROOM  4096

static const struct {
    const char  *text;
    int          inside;
    const char  *found;                /* texts as they are, calls as [NAME ARGUMENTS] */
} cases[] = {
    { "", 0, "" },
    { "Hello <b> there \n", 0, "Hello <b> there \n" },
    { OPEN "\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}\"]}}\n" END, 0,
      "[f {\"a\": [1, \"}\"]}]" },
    { "I look.\n" OPEN "\n{\"name\": \"f\", \"arguments\": {}}\n" END "\n" OPEN
      "{\"arguments\":{\"x\":\"</tool_call>\"},\"name\":\"g\"}" END "\n", 0,
      "I look.[f {}][g {\"x\": \"</tool_call>\"}]" },
    { "{\"name\":\"f\",\"arguments\":{\"q\":\"\\\"\\\\\"}}\n" END, 1, "[f {\"q\": \"\\\"\\\\\"}]" },
    { "\n{\"name\":\"f\"}", 1, "[f {}]" },
    { "a" OPEN "{\"name\":\"f\",\"argum", 0, "a" OPEN "{\"name\":\"f\",\"argum" },
    { OPEN "no JSON" END " b", 0, OPEN "no JSON" END " b" },
    { OPEN "{\"nam\":1}" END "b", 0, OPEN "{\"nam\":1}" END "b" },
    { OPEN "{\"name\":\"f\"}" END " and " OPEN "{\"name\":\"g\"}", 0, "[f {}] and[g {}]" },
    { "a <tool_cal", 0, "a <tool_cal" },
    { "x" OPEN, 0, "x" OPEN }
};

#define N_CASES  (sizeof(cases) / sizeof(cases[0]))


static void
add(char *out, vlm_calls_e kind, vlm_calls_piece_t *p)
{
    vlm_json_out_t  w;

    if (kind == VLM_CALLS_TEXT) {
        (void) strncat(out, p->text, p->bytes);
        return;
    }

    vlm_json_init(&w, ROOM);
    vlm_calls_arguments(&w, p->arguments);
    assert_int_equal(vlm_json_done(&w), 0);
    (void) snprintf(out + strlen(out), ROOM - strlen(out), "[%s %.*s]", p->name, (int) w.len - 1,
                    w.data);
    vlm_json_release(&w);
    vlm_json_free(p->call);
}


/* The pieces of a text that comes in steps of so many bytes. */
static void
read_in_steps(const char *text, int inside, size_t step, char *out)
{
    char               *part;
    size_t              n, bytes;
    vlm_calls_t         c;
    vlm_calls_e         kind;
    vlm_calls_piece_t   p;

    bytes = strlen(text);
    out[0] = '\0';
    vlm_calls_start(&c, OPEN, END, inside);

    for (n = 0; n <= bytes + step; n += step) {
        part = malloc(bytes + 1);      /* of its own, so that no byte behind it is read */
        assert_non_null(part);
        memcpy(part, text, n < bytes ? n : bytes);

        while ((kind = vlm_calls_next(&c, part, n < bytes ? n : bytes, n >= bytes, &p))
               != VLM_CALLS_NONE)
        {
            add(out, kind, &p);
        }

        free(part);
    }
}


static void
calls_are_found_however_the_answer_is_cut(void **state)
{
    char    out[ROOM];
    size_t  i, step;

    (void) state;

    for (i = 0; i < N_CASES; i++) {
        for (step = 1; step < 40; step++) {
            read_in_steps(cases[i].text, cases[i].inside, step, out);

            if (strcmp(out, cases[i].found) != 0) {
                fail_msg("%s, by %zu: %s", cases[i].text, step, out);
            }
        }
    }
}


static void
a_call_is_found_with_its_last_bracket(void **state)
{
    size_t              bytes;
    vlm_calls_t         c;
    vlm_calls_piece_t   p;
    static const char   text[] = OPEN "\n{\"name\":\"f\",\"arguments\":{}}";

    (void) state;
    vlm_calls_start(&c, OPEN, END, 0);
    bytes = sizeof(text) - 1;
    assert_int_equal(vlm_calls_next(&c, text, bytes - 1, 0, &p), VLM_CALLS_NONE);
    assert_int_equal(vlm_calls_next(&c, text, bytes, 0, &p), VLM_CALLS_CALL);
    assert_string_equal(p.name, "f");
    vlm_json_free(p.call);
    assert_int_equal(c.n, 1);
}


static void
more_calls_than_there_may_be_are_content(void **state)
{
    char                text[ROOM * 4] = "";
    uint32_t            n;
    vlm_calls_e         kind;
    vlm_calls_t         c;
    vlm_calls_piece_t   p;

    (void) state;

    for (n = 0; n < VLM_CALLS + 3; n++) {
        (void) strcat(text, OPEN "{\"name\":\"f\"}" END);
    }

    vlm_calls_start(&c, OPEN, END, 0);

    for (n = 0; (kind = vlm_calls_next(&c, text, strlen(text), 1, &p)) == VLM_CALLS_CALL; n++) {
        vlm_json_free(p.call);
    }

    assert_int_equal(n, VLM_CALLS);
    assert_int_equal(kind, VLM_CALLS_TEXT);
}


static void
values_are_written_as_python_writes_them(void **state)
{
    size_t          i;
    vlm_json_t     *j;
    vlm_err_t       err;
    vlm_json_out_t  w;
    static const char  *const texts[][2] = {
        { "{\"b\":[1,2.5,null],\"a\":\"\\u00e9\\n\\u0001\\\"\",\"c\":{},\"d\":true}",
          "{\"b\": [1, 2.5, null], \"a\": \"\xc3\xa9\\n\\u0001\\\"\", \"c\": {}, \"d\": true}" },
        { "\"{\\\"a\\\":1}\"", "{\"a\": 1}" },
        { "\"{a\"", "{a" },
        { "\"\"", "{}" },
        { "null", "{}" },
        { "{\"a\":[]}", "{\"a\": []}" },
        { "[895364772075444712345678,9007199254740993,-0,1.0,0.10,1e5,7,0007]",
          "[895364772075444712345678, 9007199254740993, -0, 1.0, 0.10, 1e5, 7, 7]" },
        { "\"{\\\"n\\\":895364772075444712345678}\"", "{\"n\": 895364772075444712345678}" }
    };

    (void) state;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        memset(&err, 0, sizeof(err));
        j = vlm_json_parse(texts[i][0], strlen(texts[i][0]), &err);
        assert_non_null(j);
        vlm_json_init(&w, ROOM);
        vlm_calls_arguments(&w, j);
        assert_int_equal(vlm_json_done(&w), 0);
        assert_int_equal(w.len - 1, strlen(texts[i][1]));
        assert_memory_equal(w.data, texts[i][1], w.len - 1);
        vlm_json_release(&w);
        vlm_json_free(j);
    }
}


static void
a_call_of_a_history_is_one_line(void **state)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_json_t     *j;
    vlm_json_out_t  w;

    static const char  request[] = "{\"b\":1,\"a\":\"\\u00e9\"}";
    static const char  line[] = "\n{\"name\": \"pick\", \"arguments\": {\"b\": 1, "
                                "\"a\": \"\xc3\xa9\"}}\n";

    (void) state;

    j = vlm_json_parse(request, strlen(request), &err);
    assert_non_null(j);

    vlm_json_init(&w, 4096);
    vlm_calls_write(&w, "pick", j);
    assert_int_equal(vlm_json_done(&w), 0);
    assert_int_equal(w.len, strlen(line));
    assert_memory_equal(w.data, line, w.len);

    vlm_json_release(&w);
    vlm_json_free(j);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_call_of_a_history_is_one_line),
        cmocka_unit_test(calls_are_found_however_the_answer_is_cut),
        cmocka_unit_test(a_call_is_found_with_its_last_bracket),
        cmocka_unit_test(more_calls_than_there_may_be_are_content),
        cmocka_unit_test(values_are_written_as_python_writes_them)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
