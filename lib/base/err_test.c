/* Sentences: the first one is kept, and a text from a file cannot forge one. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"


static void
the_first_failure_is_kept(void **state)
{
    vlm_err_t  err = { VLM_OK, "" };

    (void) state;

    assert_int_equal(vlm_fail(&err, VLM_EMODEL, "%s", "one"), -1);
    assert_int_equal(vlm_fail(&err, VLM_EINPUT, "%s", "two"), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_string_equal(err.text, "one");
    assert_int_equal(vlm_fail(NULL, VLM_EINPUT, "three"), -1);
}


static void
a_text_is_shown_without_control_characters_and_quotes(void **state)
{
    size_t  i;

    static const struct {
        const char  *text, *shown;
    } cases[] = {
        { "", "" }, { "model.norm.weight", "model.norm.weight" }, { "Ġthe 红 👍", "Ġthe 红 👍" },
        { "a\nb\r\tc", "a\\x0ab\\x0d\\x09c" }, { "say \"x\" \\", "say \\\"x\\\" \\\\" },
        { "\x1b[31m\x7f", "\\x1b[31m\\x7f" }, { "\x80\xff", "\\x80\\xff" },
        { "\xc2\x85 \xc2\xa0", "\\xc2\\x85 \xc2\xa0" }, { "\xe2\x82", "\\xe2\\x82" },
        { "\xf0\x9f\x98", "\\xf0\\x9f\\x98" }, { "\xc0\x80\xf5", "\\xc0\\x80\\xf5" },
        { "\xe2(\xa1", "\\xe2(\\xa1" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(vlm_printable(cases[i].text), cases[i].shown);
    }

    assert_string_equal(vlm_printable(NULL), "");
    assert_string_equal(vlm_printable_part("abc", 2), "ab");
}


/* Of each length and alignment of its characters: never past the room, never half a character. */
static void
a_long_text_is_cut_between_characters(void **state)
{
    char         out[VLM_PRINTABLE + 1], text[300];
    size_t       i, k, n;
    const char  *one[] = { "a", "é", "红", "👍", "\n" };

    (void) state;

    for (k = 0; k < 5; k++) {
        for (n = 0; n < 60; n++) {
            for (text[0] = '\0', i = 0; i < n; i++) {
                strcat(text, i == 0 ? "-" : one[k]);
            }

            out[VLM_PRINTABLE] = 'x';
            assert_string_equal(vlm_show(out, text, SIZE_MAX), out);
            assert_int_equal(out[VLM_PRINTABLE], 'x');
            assert_in_range(strlen(out), 0, VLM_PRINTABLE - 1);

            if (k == 4) {
                assert_null(strchr(out, '\n'));

            } else if (strcmp(out, text) != 0) {
                i = strlen(out) - 3;
                assert_string_equal(out + i, "...");
                assert_memory_equal(out, text, i);
                assert_true(((unsigned char) text[i] & 0xc0) != 0x80);
                assert_true(strlen(text) + 8 > VLM_PRINTABLE);
            }
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_first_failure_is_kept),
        cmocka_unit_test(a_text_is_shown_without_control_characters_and_quotes),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
