/* A text is split into thinking and answer; both parts only grow while it does. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "api/thinking.h"

static const struct {
    const char  *text;
    int          thinks;
    const char  *thinking, *answer;
} cases[] = {
    { "", 0, "", "" },
    { "", 1, "", "" },
    { " yes\n", 0, "", "yes" },
    { "<answer>yes</answer>", 0, "", "yes" },
    { "a </think> b", 0, "", "a </think> b" },
    { "it is red</think><answer>red</answer>", 1, "it is red", "red" },
    { "<think> it is red \n</think>\n <answer> red </answer>\n", 1, "it is red", "red" },
    { "it is", 1, "it is", "" },
    { "a</think>b</think>c", 1, "a", "b" },
    { "</think>", 1, "", "" },
    { "a < b</think>1 <2>", 1, "a < b", "1 <2>" },
    { "a<answer>b</think><think>c", 1, "a<answer>b", "<think>c" },
    { "half a mark </thi", 0, "", "half a mark </thi" },
    { "half a mark </thi", 1, "half a mark </thi", "" },
    { "a <<think>b </think></think>c", 1, "a <b", "" },
    { " \n\n a \n b </answer> \n\n <", 0, "", "a \n b  \n\n <" },
    { "<</think>\n<an<answer>\ta", 1, "<", "<an\ta" }
};


static void
whole_texts(void **state)
{
    char                 room[128];
    size_t               i;
    vlm_thinking_part_t  thinking, answer;

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        vlm_thinking_split(&(vlm_thinking_t) { 0 }, cases[i].text, strlen(cases[i].text), room,
                           cases[i].thinks, 1, &thinking, &answer);

        assert_int_equal(thinking.len, strlen(cases[i].thinking));
        assert_memory_equal(thinking.data, cases[i].thinking, thinking.len);
        assert_int_equal(answer.len, strlen(cases[i].answer));
        assert_memory_equal(answer.data, cases[i].answer, answer.len);
    }
}


/*
 * The parts that were sent so far are the beginning of those of the whole text.  Bytes that were
 * read are overwritten, so that a second look at them would show.
 */
static void
a_text_that_grows_is_read_once(void **state)
{
    char                 text[128], room[128];
    size_t               i, n, bytes;
    vlm_thinking_t       t;
    vlm_thinking_part_t  thinking, answer;

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {

        bytes = strlen(cases[i].text);
        memset(&t, 0, sizeof(t));

        for (n = 0; n <= bytes + 1; n++) {
            memcpy(text, cases[i].text, bytes);
            memset(text, '#', t.at);

            vlm_thinking_split(&t, text, n > bytes ? bytes : n, room, cases[i].thinks, n > bytes,
                               &thinking, &answer);

            assert_true(thinking.len <= strlen(cases[i].thinking));
            assert_memory_equal(thinking.data, cases[i].thinking, thinking.len);
            assert_true(answer.len <= strlen(cases[i].answer));
            assert_memory_equal(answer.data, cases[i].answer, answer.len);
        }

        assert_int_equal(thinking.len, strlen(cases[i].thinking));
        assert_int_equal(answer.len, strlen(cases[i].answer));
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(whole_texts),
        cmocka_unit_test(a_text_that_grows_is_read_once)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
