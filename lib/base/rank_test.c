/* The rank of a request passes from one worker to another as text, and levels have words. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/rank.h"


static int
priority(const char *text)
{
    return vlm_rank_priority(text, strlen(text));
}


static void
a_level_is_a_number_or_a_word(void **state)
{
    (void) state;

    assert_int_equal(priority("high"), 1);
    assert_int_equal(priority("low"), -1);
    assert_int_equal(priority("7"), 7);
    assert_int_equal(priority("-3"), -3);
    assert_int_equal(priority("10"), 10);
    assert_int_equal(priority("007"), 7);
}


static void
a_level_out_of_range_is_the_nearest(void **state)
{
    (void) state;

    assert_int_equal(priority("11"), 10);
    assert_int_equal(priority("-11"), -10);
    assert_int_equal(priority("99999999999999999999999"), 10);
    assert_int_equal(priority("-99999999999999999999999"), -10);
}


static void
a_level_without_meaning_is_the_default(void **state)
{
    (void) state;

    assert_int_equal(priority(""), 0);
    assert_int_equal(priority("-"), 0);
    assert_int_equal(priority("normal"), 0);
    assert_int_equal(priority("urgent"), 0);
    assert_int_equal(priority("3x"), 0);
    assert_int_equal(priority("+3"), 0);
    assert_int_equal(priority("High"), 0);
    assert_int_equal(vlm_rank_priority("higher", 4), 1);
}


static void
what_was_written_is_read(void **state)
{
    char        text[VLM_RANK_TEXT];
    size_t      i;
    vlm_rank_t  rank = { .priority = -10, .key = UINT64_MAX, .salted = 1 }, read = { 0 };

    (void) state;

    for (i = 0; i < VLM_RANK_SALT; i++) {
        rank.salt[i] = (uint8_t) (13 * i);
    }

    assert_int_equal(vlm_rank_write(&rank, text), VLM_RANK_TEXT - 1);
    assert_int_equal(strlen(text), VLM_RANK_TEXT - 1);

    vlm_rank_read(&read, text);

    assert_int_equal(read.priority, -10);
    assert_true(read.key == UINT64_MAX);
    assert_int_equal(read.salted, 1);
    assert_memory_equal(read.salt, rank.salt, VLM_RANK_SALT);
}


static void
a_rank_may_have_no_salt(void **state)
{
    char        text[VLM_RANK_TEXT];
    vlm_rank_t  rank = { .priority = 3, .key = 0xab }, read = { 0 };

    (void) state;

    assert_int_equal(vlm_rank_write(&rank, text), strlen("3 00000000000000ab -"));
    assert_string_equal(text, "3 00000000000000ab -");

    vlm_rank_read(&read, text);

    assert_int_equal(read.priority, 3);
    assert_true(read.key == 0xab);
    assert_int_equal(read.salted, 0);
}


static void
another_text_is_left_out(void **state)
{
    static const char *const  texts[] = { "", "high", "3", "-", "3 ?", "99 ?" };

    size_t      i;
    vlm_rank_t  read = { 0 };

    (void) state;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        vlm_rank_read(&read, texts[i]);
    }

    vlm_rank_read(&read, "99 0 abcd");
    vlm_rank_read(&read, "-99999999999999999999 0 -");
    vlm_rank_read(&read, "4294967295 0 -");

    assert_int_equal(read.priority, 0);
    assert_true(read.key == 0);
    assert_int_equal(read.salted, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_level_is_a_number_or_a_word),
        cmocka_unit_test(a_level_out_of_range_is_the_nearest),
        cmocka_unit_test(a_level_without_meaning_is_the_default),
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(a_rank_may_have_no_salt),
        cmocka_unit_test(another_text_is_left_out)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
