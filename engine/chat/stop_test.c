/* Stop strings, as text grows byte by byte. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "chat/stop.h"


static size_t
scan(const char *text, size_t clear, int last, int *hit, const char *a, const char *b)
{
    char  *stop[2] = { (char *) a, (char *) b };

    return vlm_stop_scan(text, strlen(text), clear, stop, b == NULL ? 1 : 2, last, hit);
}


static void
text_without_a_stop_string_is_clear(void **state)
{
    int  hit;

    (void) state;

    assert_int_equal(scan("hello", 0, 0, &hit, "END", NULL), 5);
    assert_int_equal(hit, 0);
    assert_int_equal(vlm_stop_scan("hello", 5, 2, NULL, 0, 0, &hit), 5);
    assert_int_equal(hit, 0);
    assert_int_equal(vlm_stop_scan("", 0, 0, NULL, 0, 1, &hit), 0);
}


static void
text_is_clear_up_to_the_stop_string(void **state)
{
    int  hit;

    (void) state;

    assert_int_equal(scan("one END two", 0, 0, &hit, "END", NULL), 4);
    assert_int_equal(hit, 1);
    assert_int_equal(scan("END", 0, 1, &hit, "END", NULL), 0);
    assert_int_equal(hit, 1);
}


static void
of_several_the_first_in_the_text_counts(void **state)
{
    int  hit;

    (void) state;

    assert_int_equal(scan("a b c d", 0, 0, &hit, "c", "b"), 2);
    assert_int_equal(hit, 1);
    assert_int_equal(scan("a b c d", 0, 0, &hit, "b", "c"), 2);
    assert_int_equal(hit, 1);
}


static void
a_possible_beginning_of_a_stop_string_is_held_back(void **state)
{
    int  hit;

    (void) state;

    assert_int_equal(scan("so\n", 0, 0, &hit, "\n\n", NULL), 2);
    assert_int_equal(hit, 0);
    assert_int_equal(scan("so\nx", 2, 0, &hit, "\n\n", NULL), 4);
    assert_int_equal(hit, 0);
    assert_int_equal(scan("so\nx\n\n", 4, 0, &hit, "\n\n", NULL), 4);
    assert_int_equal(hit, 1);

    /* "aab" in "aaab": the second beginning is the right one. */

    assert_int_equal(scan("aa", 0, 0, &hit, "aab", NULL), 0);
    assert_int_equal(scan("aaa", 0, 0, &hit, "aab", NULL), 1);
    assert_int_equal(scan("aaab", 1, 0, &hit, "aab", NULL), 1);
    assert_int_equal(hit, 1);
}


static void
at_the_end_nothing_is_held_back(void **state)
{
    int  hit;

    (void) state;

    assert_int_equal(scan("so\n", 2, 1, &hit, "\n\n", NULL), 3);
    assert_int_equal(hit, 0);
}


/* "abc" could still come, but "ab" is there. */
static void
a_whole_one_is_met_though_a_longer_one_could_still_come(void **state)
{
    int  hit;

    (void) state;

    assert_int_equal(scan("xab", 0, 0, &hit, "abc", "ab"), 1);
    assert_int_equal(hit, 1);
}


static void
an_empty_stop_string_is_none(void **state)
{
    int  hit;

    (void) state;

    assert_int_equal(scan("text", 0, 0, &hit, "", NULL), 4);
    assert_int_equal(hit, 0);
    assert_int_equal(scan("text", 0, 1, &hit, "", "x"), 2);
    assert_int_equal(hit, 1);
}


/*
 * Byte by byte the scan ends at the same place as a search through the whole text, and shows no
 * byte too early.
 */
static void
it_does_not_matter_in_which_pieces_text_comes(void **state)
{
    int       hit;
    char      text[40], word[5];
    char     *stop[1] = { word };
    size_t    n, clear, now, step;
    uint32_t  round, i;
    char     *at;

    (void) state;

    srand(3);

    for (round = 0; round < 3000; round++) {
        for (i = 0; i < sizeof(text) - 1; i++) {
            text[i] = (char) ('a' + rand() % 2);
        }

        text[i] = '\0';
        (void) memcpy(word, text + rand() % 35, 4);
        word[1 + rand() % 4] = '\0';
        at = strstr(text, word);
        step = 1 + (size_t) rand() % 4;
        clear = 0;
        hit = 0;

        for (n = step; !hit && n < sizeof(text) - 1; n += step) {
            now = vlm_stop_scan(text, n, clear, stop, 1, 0, &hit);
            assert_true(now >= clear && now <= n);
            assert_true(at == NULL || now <= (size_t) (at - text));
            clear = now;
        }

        if (!hit) {
            clear = vlm_stop_scan(text, sizeof(text) - 1, clear, stop, 1, 1, &hit);
        }

        assert_int_equal(hit, at != NULL);
        assert_int_equal(clear, at == NULL ? sizeof(text) - 1 : (size_t) (at - text));
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(text_without_a_stop_string_is_clear),
        cmocka_unit_test(text_is_clear_up_to_the_stop_string),
        cmocka_unit_test(of_several_the_first_in_the_text_counts),
        cmocka_unit_test(a_possible_beginning_of_a_stop_string_is_held_back),
        cmocka_unit_test(at_the_end_nothing_is_held_back),
        cmocka_unit_test(a_whole_one_is_met_though_a_longer_one_could_still_come),
        cmocka_unit_test(an_empty_stop_string_is_none),
        cmocka_unit_test(it_does_not_matter_in_which_pieces_text_comes)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
