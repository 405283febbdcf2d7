
/* Parsing of the model's text: see words.h. */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "robobrain/words.h"


#define TITLE  VLM_WORDS_TITLE


typedef vlm_words_step_t  step_t;


static void
is_title(const char *text, const char *expected)
{
    char    title[TITLE];
    size_t  n;

    n = vlm_words_title(text, strlen(text), title);

    assert_int_equal(n, strlen(expected));
    assert_memory_equal(title, expected, n);
}


static void
is_first(const char *message, const char *expected)
{
    char    title[TITLE];
    size_t  n;

    n = vlm_words_first(message, strlen(message), title);

    assert_int_equal(n, strlen(expected));
    assert_memory_equal(title, expected, n);
}


static void
is_task(const char *text, const char *expected)
{
    char  task[VLM_WORDS_TASK];

    vlm_words_task(text, strlen(text), task);
    assert_string_equal(task, expected);
}


static void
a_message_is_called_by_its_first_three_words(void **state)
{
    (void) state;

    is_first("Find the apple in this image", "Find the apple");
    is_first("hi", "hi");
    is_first("  two\t\nwords ", "two words");
    is_first("a\xc2\xa0" "b\xe3\x80\x80" "c d", "a b c");
    is_first("", "");
    is_first(" \t ", "");
}


static void
a_title_of_more_than_30_characters_keeps_27(void **state)
{
    char    text[4 * 200 + 1], title[TITLE];
    size_t  i, n;

    (void) state;

    is_first("Supercalifragilisticexpialidocious antidisestablishmentarianism"
             " ok", "Supercalifragilisticexpiali...");
    is_first("abcdefghij abcdefghi abcdefghi",
             "abcdefghij abcdefghi abcdefghi");
    is_first("abcdefghij abcdefghij abcdefghi",
             "abcdefghij abcdefghij abcde...");

    /* characters of four bytes, in words longer than a title */

    for (i = 0; i < 200; i++) {
        memcpy(text + 4 * i, i % 50 == 49 ? "    " : "\xf0\x9f\xa4\x96", 4);
    }

    n = vlm_words_first(text, 800, title);

    assert_int_equal(n, 4 * 27 + 3);
    assert_memory_equal(title, text, 4 * 27);
    assert_memory_equal(title + n - 3, "...", 3);
}


static void
the_models_title_loses_space_then_double_then_single_quotes(void **state)
{
    (void) state;

    is_title(" Red Apple\n", "Red Apple");
    is_title("\"Red Apple\"", "Red Apple");
    is_title("'Red Apple'", "Red Apple");
    is_title("\"'Red Apple'\"", "Red Apple");
    is_title("'\"Red Apple\"'", "\"Red Apple\"");
    is_title("\"\" 'x", " 'x");
    is_title("\"\"", "");
    is_title("", "");
    is_title("\xe2\x80\x83\xe2\x80\xa8Mug\xc2\x85", "Mug");
}


static void
the_models_title_has_50_characters_at_most(void **state)
{
    char  text[256], cut[256];
    int   i;

    (void) state;

    for (i = 0; i < 60; i++) {
        memcpy(text + 3 * i, "\xe8\x8b\xb9", 3);
    }

    text[180] = '\0';
    memcpy(cut, text, 150);
    cut[150] = '\0';

    is_title(text, cut);

    text[150] = '\0';
    is_title(text, cut);
}


static void
bytes_that_are_no_characters_are_cut_all_the_same(void **state)
{
    char  text[1000], title[TITLE];

    (void) state;

    memset(text, 0x80, sizeof(text));

    assert_int_equal(vlm_words_cut(text, 1000, 5), 1000);
    assert_true(vlm_words_title(text, 1000, title) <= TITLE);
    assert_true(vlm_words_first(text, 1000, title) <= TITLE);
}


static void
a_cut_is_between_two_characters(void **state)
{
    (void) state;

    assert_int_equal(vlm_words_cut("abc", 3, 2), 2);
    assert_int_equal(vlm_words_cut("abc", 3, 3), 3);
    assert_int_equal(vlm_words_cut("abc", 3, 9), 3);
    assert_int_equal(vlm_words_cut("a\xc3\xa9z", 4, 2), 3);
    assert_int_equal(vlm_words_cut("\xc3\xa9", 2, 0), 0);
    assert_int_equal(vlm_words_cut(NULL, 0, 5), 0);
}


static void
a_task_is_read_without_case_and_space(void **state)
{
    (void) state;

    is_task("grounding", "grounding");
    is_task("  Grounding\n", "grounding");
    is_task("TRAJECTORY", "trajectory");
    is_task("Pointing.", "pointing.");
    is_task("I think it is pointing", "");
    is_task("", "");
}


static int
plan(const char *text, step_t *steps)
{
    int     n;
    char   *copy;
    size_t  len;

    /* without a zero, so that a read behind the end is seen */

    len = strlen(text);
    copy = malloc(len + (len == 0));
    assert_non_null(copy);
    memcpy(copy, text, len);

    n = vlm_words_plan(copy, len, steps);

    free(copy);

    return n;
}


static void
a_plan_is_found_between_other_words(void **state)
{
    step_t  s[VLM_WORDS_STEPS];

    (void) state;

    assert_int_equal(plan("Here it is:\n```json\n[{\"step\": 1, \"task\": "
                          "\"grounding\", \"prompt\": \"the mug\", "
                          "\"description\": \"Find it [there]\", "
                          "\"use_previous\": false}, {\"step\": 2, \"task\": "
                          "\"Trajectory\", \"prompt\": \"to the mug\", "
                          "\"description\": \"Go\", \"use_previous\": true}]"
                          "\n``` Good luck.", s), 2);

    assert_int_equal(s[0].number, 1);
    assert_string_equal(s[0].task, "grounding");
    assert_string_equal(s[0].prompt, "the mug");
    assert_string_equal(s[0].description, "Find it [there]");
    assert_false(s[0].use_previous);

    assert_int_equal(s[1].number, 2);
    assert_string_equal(s[1].task, "trajectory");
    assert_true(s[1].use_previous);

    vlm_words_plan_free(s, 2);
}


static void
a_missing_field_of_a_step_has_a_default(void **state)
{
    step_t  s[VLM_WORDS_STEPS];

    (void) state;

    assert_int_equal(plan("[{}, 7, null, \"x\", [1], {\"step\": \"two\", "
                          "\"task\": 3, \"prompt\": [1], \"description\": {}, "
                          "\"use_previous\": 1}, {\"step\": -1, \"task\": "
                          "\"a task of far too many letters\"}, "
                          "{\"step\": 1e300}]", s), 4);

    assert_int_equal(s[0].number, 1);
    assert_string_equal(s[0].task, "");
    assert_string_equal(s[0].prompt, "");
    assert_string_equal(s[0].description, "");
    assert_false(s[0].use_previous);

    assert_int_equal(s[1].number, 2);
    assert_string_equal(s[1].prompt, "");
    assert_true(s[1].use_previous);

    assert_int_equal(s[2].number, 3);
    assert_string_equal(s[2].task, "");
    assert_int_equal(s[3].number, 4);

    vlm_words_plan_free(s, 4);
}


static void
text_that_is_no_array_of_steps_is_no_plan(void **state)
{
    step_t       s[VLM_WORDS_STEPS];
    size_t       i;
    const char  *texts[] = {
        "", "I cannot do that.", "[", "]", "] [", "[1, 2]", "[]", "{}",
        "[{\"step\": 1}", "[{\"step\": 1]", "[{step: 1}]", "see [1] and [2]"
    };

    (void) state;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(plan(texts[i], s), 0);
    }
}


static void
a_plan_has_10_steps_at_most_and_their_texts_8192_bytes(void **state)
{
    int     i, n;
    char   *text, *p;
    step_t  s[VLM_WORDS_STEPS];

    (void) state;

    text = malloc(200000);
    assert_non_null(text);

    p = text + sprintf(text, "[{\"prompt\": \"");

    for (i = 0; i < 9000; i++) {
        *p++ = 'x';
    }

    p += sprintf(p, "\"}");

    for (i = 0; i < 14; i++) {
        p += sprintf(p, ", {\"prompt\": \"%d\"}", i);
    }

    (void) sprintf(p, "]");

    n = plan(text, s);

    assert_int_equal(n, 10);
    assert_int_equal(strlen(s[0].prompt), 8192);
    assert_string_equal(s[9].prompt, "8");

    vlm_words_plan_free(s, n);

    /* a text longer than the bound is no plan */

    memset(text, ' ', 199999);
    memcpy(text, "[{}]", 4);

    assert_int_equal(vlm_words_plan(text, 65536, s), 1);
    vlm_words_plan_free(s, 1);
    assert_int_equal(vlm_words_plan(text, 65537, s), 0);

    free(text);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_message_is_called_by_its_first_three_words),
        cmocka_unit_test(a_title_of_more_than_30_characters_keeps_27),
        cmocka_unit_test(
            the_models_title_loses_space_then_double_then_single_quotes),
        cmocka_unit_test(the_models_title_has_50_characters_at_most),
        cmocka_unit_test(bytes_that_are_no_characters_are_cut_all_the_same),
        cmocka_unit_test(a_cut_is_between_two_characters),
        cmocka_unit_test(a_task_is_read_without_case_and_space),
        cmocka_unit_test(a_plan_is_found_between_other_words),
        cmocka_unit_test(a_missing_field_of_a_step_has_a_default),
        cmocka_unit_test(text_that_is_no_array_of_steps_is_no_plan),
        cmocka_unit_test(
            a_plan_has_10_steps_at_most_and_their_texts_8192_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
