/* NFC: composed and uncomposed texts, and no text that takes quadratic time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/norm.h"

typedef struct {
    const char  *from, *to;
} pair_t;


static void
text_that_is_composed_is_not_copied(void **state)
{
    char       *out;
    size_t      i, n;
    vlm_err_t   err = { 0 };

    static const char *const  plain[] = {
        "", "plain ASCII\n", "Tür, ¿dónde? — naïve", "红色的杯子", "빨간 컵", "красная чашка", "👍🏽"
    };

    (void) state;

    for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        assert_int_equal(vlm_norm_nfc(plain[i], strlen(plain[i]), &out, &n, &err), 0);
        assert_null(out);
    }
}


static void
composable_characters_are_composed(void **state)
{
    char       *out;
    size_t      i, n;
    vlm_err_t   err = { 0 };

    static const pair_t  pairs[] = {
        { "e\xcc\x81", "é" },                                  /* a letter and a mark */
        { "u\xcc\x88\xcc\x84", "ǖ" },                          /* two marks, three characters */
        { "q\xcc\x87\xcc\xa3", "q\xcc\xa3\xcc\x87" },          /* reordered, not composed */
        { "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "한" },      /* jamo */
        { "\xe2\x84\xab", "Å" },                               /* the ångström sign */
        { "\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc" },        /* excluded from composition */
        { "\xf0\x9d\x85\x9e", "\xf0\x9d\x85\x97\xf0\x9d\x85\xa5" },
        { "\xe3\x81\x8b\xe3\x82\x99", "が" },
        { "\xef\xa4\x80", "\xe8\xb1\x88" },                    /* a compatibility ideograph */
        { "\xc7\x95", "\xc7\x95" },                            /* three characters and back */
        { "ﬁ", "ﬁ" }, { "①", "①" },                            /* compatibility stays */
        { "a\xcc\x81\xcc\x96\xcc\x81", "á\xcc\x96\xcc\x81" },
        { "\xec\xb9\x98\xe1\x86\xa7", "치\xe1\x86\xa7" },     /* U+11A7 is no final consonant */
        { "\xe1\x84\x8e\xe1\x85\xb5\xe1\x86\xa7", "치\xe1\x86\xa7" },
        { "\xe1\x86\xa7\xcc\x81\xe1\x84\x8e\xe1\x85\xb5\xe1\x86\xa8\xe1\x86\xa7"
          "\xe1\x86\xa7",
          "\xe1\x86\xa7\xcc\x81칙\xe1\x86\xa7\xe1\x86\xa7" }
    };

    (void) state;

    for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_int_equal(vlm_norm_nfc(pairs[i].from, strlen(pairs[i].from), &out, &n, &err), 0);

        if (out == NULL) {
            assert_string_equal(pairs[i].from, pairs[i].to);
            continue;
        }

        assert_int_equal(n, strlen(pairs[i].to));
        assert_memory_equal(out, pairs[i].to, n);
        free(out);
    }
}


static void
nul_is_a_character_of_a_text(void **state)
{
    char       *out;
    size_t      n;
    vlm_err_t   err = { 0 };

    (void) state;

    assert_int_equal(vlm_norm_nfc("\0e\xcc\x81\0", 5, &out, &n, &err), 0);
    assert_int_equal(n, 4);
    assert_memory_equal(out, "\0é\0", 4);
    free(out);
}


/* Marks of two classes in turn: the sorted half must follow the other, in the order they came. */
static void
a_megabyte_of_marks_on_one_letter_is_sorted(void **state)
{
    char       *text, *out;
    size_t      i, n, n_out;
    vlm_err_t   err = { 0 };

    (void) state;

    n = 1u << 20;
    text = malloc(n + 1);
    assert_non_null(text);

    text[0] = 'x';

    for (i = 0; i < n; i += 4) {
        memcpy(text + 1 + i, "\xcc\x8d\xcc\x96", 4);           /* classes 230 and 220 */
    }

    assert_int_equal(vlm_norm_nfc(text, n + 1, &out, &n_out, &err), 0);
    assert_int_equal(n_out, n + 1);
    assert_int_equal(out[0], 'x');

    for (i = 0; i < n; i += 2) {
        assert_memory_equal(out + 1 + i, i < n / 2 ? "\xcc\x96" : "\xcc\x8d", 2);
    }

    free(out);
    free(text);
}


static void
short_and_long_runs_of_marks_are_sorted_alike(void **state)
{
    char       *out;
    char        text[256], want[256];
    size_t      marks, i, n, n_out;
    vlm_err_t   err = { 0 };

    (void) state;

    for (marks = 1; marks < 40; marks++) {
        n = 0;
        text[n++] = 'x';
        for (i = 0; i < marks; i++) {
            memcpy(text + n, i % 2 ? "\xcc\x96" : "\xcc\x8d", 2);
            n += 2;
        }

        n_out = 0;
        want[n_out++] = 'x';
        for (i = 0; i < marks; i++) {
            memcpy(want + n_out, i < marks / 2 ? "\xcc\x96" : "\xcc\x8d", 2);
            n_out += 2;
        }

        assert_int_equal(vlm_norm_nfc(text, n, &out, &n_out, &err), 0);
        assert_int_equal(n_out, n);
        assert_memory_equal(out, want, n);
        free(out);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(text_that_is_composed_is_not_copied),
        cmocka_unit_test(composable_characters_are_composed),
        cmocka_unit_test(nul_is_a_character_of_a_text),
        cmocka_unit_test(a_megabyte_of_marks_on_one_letter_is_sorted),
        cmocka_unit_test(short_and_long_runs_of_marks_are_sorted_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
