/* The split pattern: the family's pieces, the text between matches, and patterns that misbehave. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/split.h"

#define FAMILY                                                                                     \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"                            \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"


/* The pieces of a text with '|' between them. */
static void
expect(const char *pattern, const char *text, const char *want)
{
    int            rc;
    char           have[512];
    size_t         n, at;
    vlm_err_t      err = { 0 };
    const char    *piece;
    vlm_split_t   *s;
    vlm_pieces_t   p;

    s = vlm_split_open(pattern, &err);
    assert_non_null(s);
    assert_int_equal(vlm_pieces_open(&p, s, text, strlen(text), &err), 0);

    at = 0;

    while ((rc = vlm_pieces_next(&p, &piece, &n, &err)) == 1) {
        assert_true(n > 0 && at + n + 2 < sizeof(have));
        if (at != 0) {
            have[at++] = '|';
        }
        memcpy(have + at, piece, n);
        at += n;
    }

    assert_int_equal(rc, 0);
    have[at] = '\0';
    assert_string_equal(have, want);

    vlm_pieces_close(&p);
    vlm_pieces_close(&p);
    vlm_split_close(s);
}


static void
the_family_s_pattern_cuts_as_it_is_known_to(void **state)
{
    (void) state;

    expect(FAMILY, "", "");
    expect(FAMILY, "Hello world", "Hello| world");
    expect(FAMILY, "I'm here, aren't YOU'LL", "I|'m| here|,| aren|'t| YOU|'LL");
    expect(FAMILY, "a  b   c", "a| | b|  | c");
    expect(FAMILY, "end \n\n next\n", "end| \n\n| next|\n");
    expect(FAMILY, "(x)!!\n\ny", "(x|)!!\n\n|y");
    expect(FAMILY, "trailing  ", "trailing|  ");
    expect(FAMILY, "été 红杯 ไทย", "été| 红杯| ไทย");
}


/* Oniguruma nests classes: all of the inner one belongs to the outer one. */
static void
a_class_within_a_class_is_part_of_it(void **state)
{
    vlm_err_t    err = { 0 };
    const char  *bloom = " ?[^(\\s|[.,!?…。，、।۔،])]+";

    (void) state;

    expect(bloom, "Hello, how are you?", "Hello|,| how| are| you|?");
    expect(bloom, "आप कैसे हैं? ठीक।", "आप| कैसे| हैं|?| ठीक|।");
    expect(bloom, "a\u180eb\u3000c", "a\u180eb|\u3000|c");
    expect("[a[b-d]]+", "xabcd]", "x|abcd|]");
    expect("[[:digit:]x]+", "a1x", "a|1x");

    assert_null(vlm_split_open("[a[^b]]", &err));
    assert_non_null(strstr(err.text, "\"[^\" within a class, at byte 2, is not supported"));
    assert_null(vlm_split_open("[a-z&&b]", &err));
    assert_null(vlm_split_open("[a[]b]]", &err));
}


static void
a_digit_is_always_a_piece_of_its_own(void **state)
{
    (void) state;

    expect(FAMILY, "2024", "2|0|2|4");
    expect(FAMILY, "x1²Ⅻ٣", "x|1|²|Ⅻ|٣");
    expect(FAMILY, " 12", " |1|2");
}


static void
the_long_s_is_an_s_and_u180e_is_no_space(void **state)
{
    (void) state;

    expect(FAMILY, "it'ſ", "it|'ſ");
    expect(FAMILY, "a \xe1\xa0\x8e b", "a| \xe1\xa0\x8e| b");
    expect(FAMILY, "\xc2\x85\xe3\x80\x80!", "\xc2\x85|\xe3\x80\x80|!");
    expect("[\\s]+|\\S+", "a\xe1\xa0\x8e b", "a\xe1\xa0\x8e| |b");
}


static void
text_between_matches_is_a_piece(void **state)
{
    (void) state;

    expect("[0-9]+", "ab12cd", "ab|12|cd");
    expect("[0-9]+", "12", "12");
    expect("[0-9]+", "none", "none");
    expect("x", "xx", "x|x");
}


static void
an_empty_match_is_a_border_and_the_walk_goes_on(void **state)
{
    (void) state;

    expect("x*", "axxb", "a|xx|b");
    expect("", "äb", "ä|b");
    expect("(?=b)", "abab", "a|ba|b");
    expect("$", "ab", "ab");
}


static void
brackets_in_a_pattern_are_read_as_they_are(void **state)
{
    (void) state;

    expect("[]\\s]+", "a] b", "a|] |b");
    expect("[^]\\s]+", "a] b", "a|] |b");
    expect("[[:alpha:]\\s]+", "1a b2", "1|a b|2");
    expect("\\[\\s", "a[ b", "a|[ |b");
    expect("\\\\s", "a\\s b", "a|\\s| b");
}


static void
a_pattern_that_is_none_is_refused_with_its_offset(void **state)
{
    char       text[VLM_MAX_PATTERN + 2];
    size_t     i;
    vlm_err_t  err;

    static const char *const  bad[] = {
        "(", "[", "a{2,1}", "\\p{Nonsense}", "(?<", "*", "\\C", "\\"
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(&err, 0, sizeof(err));
        assert_null(vlm_split_open(bad[i], &err));
        assert_int_equal(err.code, VLM_EMODEL);
        assert_non_null(strstr(err.text, " at byte "));
    }

    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    memset(&err, 0, sizeof(err));
    assert_null(vlm_split_open(text, &err));
    assert_string_equal(err.text, "split pattern of 4097 bytes, at most 4096 are supported");

    memset(&err, 0, sizeof(err));
    assert_null(vlm_split_open(NULL, &err));
    assert_string_equal(err.text, "the tokenizer has no pattern by which text is split");
}


static void
a_pattern_without_end_gives_up_and_says_where(void **state)
{
    int            rc;
    char           text[64];
    size_t         n;
    vlm_err_t      err = { 0 };
    const char    *piece;
    vlm_split_t   *s;
    vlm_pieces_t   p;

    (void) state;

    memset(text, 'a', sizeof(text));
    s = vlm_split_open("(*NO_JIT)(*NO_AUTO_POSSESS)(*LIMIT_MATCH=1000)((a+)+)+$(?<=b)", &err);
    assert_non_null(s);
    assert_int_equal(vlm_pieces_open(&p, s, text, sizeof(text), &err), 0);

    rc = vlm_pieces_next(&p, &piece, &n, &err);
    assert_int_equal(rc, -1);
    assert_int_equal(err.code, VLM_ELIMIT);
    assert_non_null(strstr(err.text, "gave up at byte 0 of 64"));

    vlm_pieces_close(&p);
    vlm_split_close(s);
}


static void
deep_recursion_falls_back_from_jit_and_ends(void **state)
{
    int            rc;
    char          *text;
    size_t         n, total;
    vlm_err_t      err = { 0 };
    const char    *piece;
    vlm_split_t   *s;
    vlm_pieces_t   p;

    (void) state;

    n = 100000;
    text = malloc(n);
    assert_non_null(text);
    memset(text, 'a', n);

    s = vlm_split_open("(?:a|b(?:c|d))+", &err);       /* a frame for each letter */
    assert_non_null(s);
    assert_int_equal(vlm_pieces_open(&p, s, text, n, &err), 0);

    total = 0;

    while ((rc = vlm_pieces_next(&p, &piece, &n, &err)) == 1) {
        total += n;
    }

    assert_true(rc == 0 ? total == 100000 : err.code == VLM_ELIMIT);

    vlm_pieces_close(&p);
    vlm_split_close(s);
    free(text);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_family_s_pattern_cuts_as_it_is_known_to),
        cmocka_unit_test(a_class_within_a_class_is_part_of_it),
        cmocka_unit_test(a_digit_is_always_a_piece_of_its_own),
        cmocka_unit_test(the_long_s_is_an_s_and_u180e_is_no_space),
        cmocka_unit_test(text_between_matches_is_a_piece),
        cmocka_unit_test(an_empty_match_is_a_border_and_the_walk_goes_on),
        cmocka_unit_test(brackets_in_a_pattern_are_read_as_they_are),
        cmocka_unit_test(a_pattern_that_is_none_is_refused_with_its_offset),
        cmocka_unit_test(a_pattern_without_end_gives_up_and_says_where),
        cmocka_unit_test(deep_recursion_falls_back_from_jit_and_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
