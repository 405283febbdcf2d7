/* Ids to text: whole characters only, and U+FFFD exactly where the reference has it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "text/detok.h"
#include "text/sample.h"

#define R  "\xef\xbf\xbd"              /* U+FFFD */


/* Decodes a text whole, byte by byte and cut in two everywhere: all must give the expected text. */
static void
expect(const char *bytes, const char *want)
{
    char            out[256];
    size_t          n, at, cut;
    vlm_detok_t     d;
    const uint8_t  *p;

    p = (const uint8_t *) bytes;
    n = strlen(bytes);

    for (cut = 0; cut <= n; cut++) {
        memset(&d, 0, sizeof(d));
        at = vlm_detok_bytes(&d, p, cut, out);
        assert_int_equal(vlm_utf8_whole(out, at), at);
        at += vlm_detok_bytes(&d, p + cut, n - cut, out + at);
        at += vlm_detok_end(&d, out + at);
        out[at] = '\0';
        assert_string_equal(out, want);
    }

    memset(&d, 0, sizeof(d));

    for (at = 0, cut = 0; cut < n; cut++) {
        at += vlm_detok_bytes(&d, p + cut, 1, out + at);
        assert_int_equal(vlm_utf8_whole(out, at), at);
    }

    at += vlm_detok_end(&d, out + at);
    assert_int_equal(vlm_detok_end(&d, out + at), 0);
    out[at] = '\0';
    assert_string_equal(out, want);
}


static void
whole_characters_pass_however_they_are_cut(void **state)
{
    (void) state;

    expect("", "");
    expect("plain", "plain");
    expect("ä€😀한", "ä€😀한");
    expect("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf");
}


static void
a_beginning_that_cannot_go_on_is_one_replacement(void **state)
{
    (void) state;

    expect("\xf0\x9f\x98", R);
    expect("\xf0\x9f\x98" "a", R "a");
    expect("\xe2\x82", R);
    expect("\xe2\x82\xe2\x82\xac", R "\xe2\x82\xac");
    expect("\xc3\xc3\xa4", R "ä");
    expect("\xf0\x9f\xf0\x9f\x98\x80", R "😀");
}


static void
every_other_broken_byte_is_one_of_its_own(void **state)
{
    (void) state;

    expect("\x80\xbf", R R);
    expect("\xff\xfe", R R);
    expect("\xc0\x80", R R);                             /* overlong */
    expect("\xc1\xbf", R R);
    expect("\xe0\x80\x80", R R R);
    expect("\xf0\x80\x80\x80", R R R R);
    expect("\xed\xa0\x80", R R R);                       /* a surrogate */
    expect("\xf4\x90\x80\x80", R R R R);                 /* past the last character */
    expect("\xf5\x80\x80\x80", R R R R);
    expect("a\xe2\x28\xa1z", "a" R "(" R "z");
}


static vlm_tokenizer_t *
open_sample(void)
{
    char             *text;
    vlm_err_t         err = { 0 };
    vlm_tokenizer_t  *t;

    text = vlm_sample("", "", VLM_SAMPLE_REST);
    assert_non_null(text);
    t = vlm_sample_read(text, &err);
    assert_non_null(t);
    free(text);

    return t;
}


static void
special_tokens_are_silent_and_part_nothing(void **state)
{
    char              out[64];
    size_t            i, at;
    vlm_detok_t       d = { 0 };
    vlm_tokenizer_t  *t;

    static const uint32_t  ids[] = { 'a', 300, 0xc3, 300, 0xa4, 301, 0xe2, 999999, UINT32_MAX };

    (void) state;

    t = open_sample();

    for (i = 0, at = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        at += vlm_detok_next(&d, t, ids[i], out + at);
    }

    assert_int_equal(d.n_held, 1);
    at += vlm_detok_end(&d, out + at);
    out[at] = '\0';
    assert_string_equal(out, "aä<tool>" R);

    vlm_tokenizer_close(t);
}


/* Held bytes that break, then bytes that are each broken: the header promises room for that. */
static void
the_most_that_a_token_writes_fits_the_promised_room(void **state)
{
    char            out[3 * 64 + VLM_DETOK_ROOM];
    size_t          n;
    uint8_t         broken[64];
    vlm_detok_t     d = { 0 };

    (void) state;

    memset(broken, 0xff, sizeof(broken));

    assert_int_equal(vlm_detok_bytes(&d, (const uint8_t *) "\xf0\x9f\x98", 3, out), 0);
    n = vlm_detok_bytes(&d, broken, sizeof(broken), out);
    assert_int_equal(n, 3 * 64 + 3);
    assert_true(n <= sizeof(out));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(whole_characters_pass_however_they_are_cut),
        cmocka_unit_test(a_beginning_that_cannot_go_on_is_one_replacement),
        cmocka_unit_test(every_other_broken_byte_is_one_of_its_own),
        cmocka_unit_test(special_tokens_are_silent_and_part_nothing),
        cmocka_unit_test(the_most_that_a_token_writes_fits_the_promised_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
