/* UTF-8: accepted texts, and refused ones with the offset. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/utf8.h"


static void
utf8_stops_at_the_first_byte_of_what_is_broken(void **state)
{
    size_t  i, n;

    static const struct {
        const char  *text;
        size_t       at;
    } broken[] = {
        { "\x80", 0 }, { "a\xbf", 1 }, { "abcdefgh\xff", 8 }, { "abcdefghij\xfe", 10 },
        { "\xc0\x80", 0 }, { "\xc1\xbf", 0 }, { "\xe0\x9f\xbf", 0 }, { "\xf0\x8f\xbf\xbf", 0 },
        { "x\xed\xa0\x80", 1 }, { "\xed\xbf\xbf", 0 }, { "\xf4\x90\x80\x80", 0 },
        { "\xf5\x80\x80\x80", 0 }, { "\xc3", 0 }, { "\xe2\x82", 0 }, { "ab\xf0\x9f\x98", 2 },
        { "\xc3\xa4\xc3(", 2 }, { "\xe2(\xac", 0 }, { "\xf0\x9f(\x80", 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        n = strlen(broken[i].text);
        assert_int_equal(vlm_utf8_whole(broken[i].text, n), broken[i].at);
    }
}


static void
utf8_of_every_length_passes_at_every_place(void **state)
{
    char    text[64];
    size_t  i, n;

    static const char *const  one[] = {
        "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"
    };

    (void) state;

    for (i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
        for (n = 0; n < 20; n++) {
            memset(text, n % 2 ? 'x' : 0, sizeof(text));
            memcpy(text + n, one[i], strlen(one[i]));
            assert_int_equal(vlm_utf8_whole(text, sizeof(text)), sizeof(text));
            assert_int_equal(vlm_utf8_whole(text, n + strlen(one[i])), n + strlen(one[i]));
        }
    }

    assert_int_equal(vlm_utf8_whole(NULL, 0), 0);
}


static void
whole_characters_are_counted(void **state)
{
    (void) state;

    assert_int_equal(vlm_utf8_whole("abc", 3), 3);
    assert_int_equal(vlm_utf8_whole("", 0), 0);
    assert_int_equal(vlm_utf8_whole("a\xc3\xa9\xc3", 4), 3);
    assert_int_equal(vlm_utf8_whole("\xf4\x8f\xbf\xbf", 4), 4);
    assert_int_equal(vlm_utf8_whole("\xf5\x80\x80\x80", 4), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(utf8_stops_at_the_first_byte_of_what_is_broken),
        cmocka_unit_test(utf8_of_every_length_passes_at_every_place),
        cmocka_unit_test(whole_characters_are_counted)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
