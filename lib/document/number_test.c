/* Numbers of texts: equal ones in the forms of several countries, dates, lists, other scripts. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "document/number.h"

#define MANY  16


static size_t
numbers_of(const char *text, vlm_number_t list[MANY])
{
    size_t        n;
    vlm_number_t  number = { 0 };

    for (n = 0; n < MANY && vlm_number_next(&number, text, strlen(text)); n++) {
        list[n] = number;
    }

    return n;
}


static int
have_same_value(const vlm_number_t *a, const vlm_number_t *b)
{
    size_t  i, j;

    for (i = 0; i < a->n_values; i++) {
        for (j = 0; j < b->n_values; j++) {
            if (a->value[i] == b->value[j]) {
                return 1;
            }
        }
    }

    return 0;
}


/* Whether each text is one number, and both are the same. */
static int
same(const char *a, const char *b)
{
    vlm_number_t  x[MANY], y[MANY];

    assert_int_equal(numbers_of(a, x), 1);
    assert_int_equal(numbers_of(b, y), 1);

    return have_same_value(x, y);
}


/* The numbers of a text as they stand, each behind a bar. */
static const char *
shown(const char *text)
{
    size_t        i, n, at;
    static char   out[256];
    vlm_number_t  list[MANY];

    n = numbers_of(text, list);

    for (i = at = 0; i < n; i++) {
        at += (size_t) snprintf(out + at, sizeof(out) - at, "|%.*s", (int) list[i].bytes,
                                text + list[i].first);
    }

    out[at] = '\0';

    return out;
}


static void
a_number_is_the_same_in_the_forms_of_several_countries(void **state)
{
    (void) state;

    assert_true(same("1,234.5", "1.234,5"));
    assert_true(same("1,234.5", "1 234,5"));
    assert_true(same("1,234.5", "1\xc2\xa0" "234.50"));
    assert_true(same("1'234.5", "1234.5"));
    assert_true(same("1\xe2\x80\x99" "234,5", "1234,5"));
    assert_true(same("12,34,567", "1,234,567"));
    assert_true(same("1.234.567,8", "1234567.8"));
    assert_true(same("007", "7"));
    assert_true(same("3.10", "3,1"));
    assert_true(same("2.0", "2"));
    assert_true(same("0.05", ".05"));
    assert_true(same("0", "0.00"));
}


static void
one_that_can_be_read_in_two_ways_has_both_values(void **state)
{
    (void) state;

    assert_true(same("1.234", "1234"));
    assert_true(same("1.234", "1,234"));
    assert_true(same("1.234", "1.2340"));
    assert_false(same("1.2340", "1234"));
    assert_false(same("12.34", "1234"));
    assert_false(same("1234.567", "1234567"));
}


static void
different_numbers_differ(void **state)
{
    (void) state;

    assert_false(same("12", "13"));
    assert_false(same("1,234.5", "1,234.6"));
    assert_false(same("0.5", "5"));
    assert_false(same("10", "1"));
    assert_false(same("0.01", "0.1"));
    assert_false(same("100", "1.00"));
    assert_false(same("1.05", "15"));
}


static void
signs_and_units_do_not_belong_to_it(void **state)
{
    (void) state;

    assert_true(same("12 %", "12%"));
    assert_true(same("-40 °C", "40"));
    assert_true(same("$1,250.00", "1250"));
    assert_string_equal(shown("1.2 m/s, 250 hours"), "|1.2|250");
    assert_string_equal(shown("in 2023, 15 of 20."), "|2023|15|20");
    assert_string_equal(shown("10-20 and 5:30"), "|10|20|5|30");
    assert_string_equal(shown("M10x20, CO2"), "|10|20|2");
    assert_string_equal(shown("no number."), "");
}


static void
dates_versions_and_lists_are_several(void **state)
{
    (void) state;

    assert_string_equal(shown("15.03.2024"), "|15|03|2024");
    assert_string_equal(shown("2024-03-15"), "|2024|03|15");
    assert_string_equal(shown("1.2.3"), "|1|2|3");
    assert_string_equal(shown("1,2,3 and 4.5"), "|1|2|3|4.5");
    assert_string_equal(shown("1.234.56"), "|1|234|56");
    assert_string_equal(shown("1 2 3"), "|1|2|3");
    assert_string_equal(shown("12 345 678"), "|12 345 678");
    assert_string_equal(shown("2023 150"), "|2023|150");
    assert_string_equal(shown("1.2.3.4.5.6.7.8.9.1.2.3.4.5.6.7"),
                        "|1|2|3|4|5|6|7|8|9|1|2|3|4|5|6|7");
}


static void
digits_of_other_scripts_are_digits(void **state)
{
    (void) state;

    assert_true(same("२५०", "250"));
    assert_true(same("٣٫٥", "3.5"));
    assert_true(same("１２３", "123"));
    assert_string_equal(shown("共250个"), "|250");
}


static void
any_bytes_are_read(void **state)
{
    (void) state;

    assert_string_equal(shown("\xff" "12\xc2"), "|12");
    assert_string_equal(shown("1.\xff" "2"), "|1|2");
    assert_string_equal(shown(""), "");
    assert_string_equal(shown("5."), "|5");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_number_is_the_same_in_the_forms_of_several_countries),
        cmocka_unit_test(one_that_can_be_read_in_two_ways_has_both_values),
        cmocka_unit_test(different_numbers_differ),
        cmocka_unit_test(signs_and_units_do_not_belong_to_it),
        cmocka_unit_test(dates_versions_and_lists_are_several),
        cmocka_unit_test(digits_of_other_scripts_are_digits),
        cmocka_unit_test(any_bytes_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
