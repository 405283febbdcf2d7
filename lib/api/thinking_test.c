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
    { "half a mark </thi", 1, "half a mark </thi", "" }
};


static void
whole_texts(void **state)
{
    char                 room[128];
    size_t               i;
    vlm_thinking_part_t  thinking, answer;

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        vlm_thinking_split(cases[i].text, strlen(cases[i].text), room, cases[i].thinks, 1,
                           &thinking, &answer);

        assert_int_equal(thinking.len, strlen(cases[i].thinking));
        assert_memory_equal(thinking.data, cases[i].thinking, thinking.len);
        assert_int_equal(answer.len, strlen(cases[i].answer));
        assert_memory_equal(answer.data, cases[i].answer, answer.len);
    }
}


/* the parts that were sent so far are the beginning of those of the whole text */
static void
texts_that_grow(void **state)
{
    char                 room[128];
    size_t               i, n;
    vlm_thinking_part_t  thinking, answer;

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {

        for (n = 0; n <= strlen(cases[i].text); n++) {
            vlm_thinking_split(cases[i].text, n, room, cases[i].thinks, 0, &thinking, &answer);

            assert_true(thinking.len <= strlen(cases[i].thinking));
            assert_memory_equal(thinking.data, cases[i].thinking, thinking.len);
            assert_true(answer.len <= strlen(cases[i].answer));
            assert_memory_equal(answer.data, cases[i].answer, answer.len);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(whole_texts),
        cmocka_unit_test(texts_that_grow)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
