
/* JSON read and written: see json.h and json_out.h. */


#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/json_out.h"


typedef vlm_json_t      json_t;
typedef vlm_err_t  err_t;
typedef vlm_json_out_t  out_t;


static json_t *
parse(const char *text, err_t *err)
{
    char    *copy;
    size_t   len;
    json_t  *j;

    /* without a zero, so that the sanitizer finds a read past the end */

    len = strlen(text);
    copy = malloc(len + (len == 0));
    assert_non_null(copy);
    memcpy(copy, text, len);

    j = vlm_json_parse(copy, len, err);

    free(copy);

    return j;
}


static void
refused(const char *text, const char *why)
{
    err_t  err;

    assert_null(parse(text, &err));

    if (strstr(err.text, why) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
    }
}


static void
a_body_is_read_by_its_members(void **state)
{
    json_t        *j;
    int64_t        n;
    const json_t  *m;

    (void) state;

    j = parse(" {\"a\": \"caf\\u00e9\", \"b\": [1, 2.5, true, null], \"c\": {}"
              ", \"d\": false, \"\": 1} ", NULL);
    assert_non_null(j);

    assert_true(vlm_json_is_object(j));
    assert_int_equal(vlm_json_count(j), 5);
    assert_string_equal(vlm_json_text(vlm_json_get(j, "a")),
                        "caf\xc3\xa9");

    m = vlm_json_get(j, "b");
    assert_true(vlm_json_is_array(m));
    assert_int_equal(vlm_json_count(m), 4);

    m = vlm_json_first(m);
    assert_int_equal(vlm_json_int(m, 1, 1, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(vlm_json_int(m, 2, 9, &n), -1);

    m = vlm_json_next(m);
    assert_int_equal(vlm_json_int(m, 0, 9, &n), -1);
    assert_true(vlm_json_number(m, 0) == 2.5);

    m = vlm_json_next(m);
    assert_true(vlm_json_bool(m, 0));

    m = vlm_json_next(m);
    assert_true(vlm_json_is_null(m));
    assert_null(vlm_json_next(m));

    assert_null(vlm_json_get(j, "A"));
    assert_null(vlm_json_get(vlm_json_get(j, "x"), "y"));
    assert_null(vlm_json_text(vlm_json_get(j, "b")));
    assert_true(vlm_json_is_null(NULL));
    assert_true(vlm_json_bool(NULL, 1));
    assert_int_equal(vlm_json_int(NULL, 0, 1, &n), -1);
    assert_string_equal(vlm_json_key(vlm_json_first(j)),
                        "a");

    vlm_json_free(j);
    vlm_json_free(NULL);
}


static void
a_whole_number_of_64_bits_is_read_to_its_last_digit(void **state)
{
    size_t             i;
    json_t            *j;
    int64_t            n;
    const vlm_json_t  *m;

    static const int64_t  values[] = {
        9007199254740991, 9007199254740992, 9007199254740993, -9007199254740993, INT64_MAX,
        INT64_MIN, 1234567890123456789, 12
    };

    (void) state;

    j = parse("[\"9007199254740995\\\"7\", {\"9007199254740995\": [-3e1, true]},"
              " 9007199254740991,9007199254740992, 9007199254740993,-9007199254740993 ,"
              " 9223372036854775807,-9223372036854775808,1234567890123456789, 12.0000000000000000]",
              NULL);
    assert_non_null(j);

    m = vlm_json_next(vlm_json_next(vlm_json_first(j)));

    for (i = 0; i < sizeof(values) / sizeof(values[0]); i++, m = vlm_json_next(m)) {
        assert_int_equal(vlm_json_int(m, INT64_MIN, INT64_MAX, &n), 0);
        assert_true(n == values[i]);
        assert_null(vlm_json_text(m));
    }

    assert_null(m);
    vlm_json_free(j);

    j = parse("[9223372036854775808, -9223372036854775809, 1e16, 9007199254740993.0, "
              "1000000000000000000000000000000]", NULL);
    assert_non_null(j);

    for (i = 0, m = vlm_json_first(j); m != NULL; m = vlm_json_next(m), i++) {
        assert_int_equal(vlm_json_int(m, INT64_MIN, INT64_MAX, &n), -1);
    }

    assert_int_equal(i, 5);
    vlm_json_free(j);
}


/* The text of a number that its double would not give again; NULL: its double does. */
static void
a_number_keeps_its_text(void **state)
{
    size_t             i;
    char               text[256];
    json_t            *j, *copy;
    const char        *kept, *digits;
    const vlm_json_t  *m;

#define LONG  "1234567890123456789012345678901234567890123456789012345678901234567890"

    static const struct {
        const char  *text, *written;
        int          whole;
    } cases[] = {
        { "17", NULL, 0 }, { "-12345678901234", NULL, 0 }, { "-0", "-0", 1 },
        { "895364772075444712345678", "895364772075444712345678", 1 },
        { "9007199254740993", "9007199254740993", 1 }, { "-" LONG, "-" LONG, 1 },
        { "1.0", "1.0", 0 }, { "1.50", "1.50", 0 }, { "1e5", "1e5", 0 }, { "-2E-07", "-2E-07", 0 },
        { "0." LONG "e-3", "0." LONG "e-3", 0 }, { LONG LONG LONG, LONG LONG LONG, 1 },
        { "1e999", "1e999", 0 }, { "0000000000000007", NULL, 0 }, { "1.", NULL, 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void) snprintf(text, sizeof(text), "%s", cases[i].text);
        j = parse(text, NULL);
        assert_non_null(j);
        kept = vlm_json_written(j);
        digits = vlm_json_digits(j);

        if (cases[i].written == NULL) {
            assert_null(kept);
        } else {
            assert_string_equal(kept, cases[i].written);
        }

        assert_int_equal(digits != NULL, cases[i].whole);
        assert_null(vlm_json_text(j));
        vlm_json_free(j);

        /* beside others, and in a copy */

        (void) snprintf(text, sizeof(text), "[\"1.5\", {\"2.5\": [%s , 3.5]}]", cases[i].text);
        j = parse(text, NULL);
        assert_non_null(j);
        copy = vlm_json_copy(j);
        vlm_json_free(j);

        m = vlm_json_get(vlm_json_next(vlm_json_first(copy)), "2.5");
        kept = vlm_json_written(vlm_json_first(m));
        assert_true(kept == cases[i].written || strcmp(kept, cases[i].written) == 0);
        vlm_json_free(copy);
    }

    refused("[" LONG "x]", "Not JSON at byte 71 of 73");
    refused("[" LONG "] 1", "More than one JSON value: the second begins at byte 73 of 74");
    assert_null(vlm_json_written(NULL));
}


static void
of_equal_keys_the_last_counts(void **state)
{
    json_t  *j;

    (void) state;

    j = parse("{\"a\": 1, \"b\": 5, \"a\": \"two\"}", NULL);
    assert_non_null(j);
    assert_string_equal(vlm_json_text(vlm_json_get(j, "a")),
                        "two");
    vlm_json_free(j);
}


/* "text" of what vlm_json_peek() finds as "model"; NULL: nothing */

static void
peeked(const char *body, const char *text)
{
    int     rc;
    char   *copy, found[8];
    size_t  len;

    /* without a zero, so that the sanitizer finds a read past the end */

    len = strlen(body);
    copy = malloc(len + (len == 0));
    assert_non_null(copy);
    memcpy(copy, body, len);

    rc = vlm_json_peek(copy, len, "model", found, sizeof(found));

    free(copy);

    if (rc != (text ? 0 : -1) || strcmp(found, text ? text : "") != 0) {
        fail_msg("%s: %d", body, rc);
    }
}


static void
a_member_is_found_without_a_parse(void **state)
{
    (void) state;

    peeked("{\"model\": \"a\"}", "a");
    peeked(" { \"messages\" : [{\"model\": \"no\"}, \"model\"], \"model\"\n:\t\"a\" }", "a");
    peeked("{\"x\": {\"model\": \"no\"}, \"y\": \"model\", \"model\": \"a\", \"z\": {}}", "a");
    peeked("{\"model\": \"\"}", "");
    peeked("{\"mod\\u0065l\": \"\\u00e9\\\"\\\\\"}", "\xc3\xa9\"\\");
    peeked("{\"x\": \"\\\\\", \"y\": \"\\\"model\", \"model\": \"a\"}", "a");
    peeked("{\"model\": \"seven77\"}", "seven77");

    /* the last of equal keys counts */

    peeked("{\"model\": \"a\", \"model\": \"b\"}", "b");
    peeked("{\"model\": \"a\", \"model\": null}", NULL);
    peeked("{\"model\": \"a\", \"model\": [\"b\"]}", NULL);
    peeked("{\"model\": \"a\", \"model\": {\"model\": \"b\"}}", NULL);

    peeked("{\"model\": \"of eight\"}", NULL);
    peeked("{\"model\": 1}", NULL);
    peeked("{\"Model\": \"a\"}", NULL);
    peeked("{\"models\": \"a\", \"mode\": \"a\"}", NULL);
    peeked("[{\"model\": \"a\"}]", NULL);
    peeked("{\"x\": \"a\"}", NULL);
    peeked("\"model\"", NULL);
    peeked("{}", NULL);
    peeked("", NULL);

    /* of what is no JSON nothing is read beyond its end */

    peeked("{\"model\": \"a", NULL);
    peeked("{\"model\": \"a\\\"", NULL);
    peeked("{\"model\": \"\x80\"}", NULL);
    peeked("}]}\"", NULL);
    peeked("{\"model\": \"a\", \"", NULL);
}


static void
truth_is_as_in_python(void **state)
{
    size_t   i;
    json_t  *j;

    static const char *const  no[] = {
        "null", "false", "0", "0.0", "-0", "\"\"", "[]", "{}"
    };
    static const char *const  yes[] = {
        "true", "1", "-0.5", "\"0\"", "[null]", "{\"a\":null}"
    };

    (void) state;

    assert_false(vlm_json_is_true(NULL));

    for (i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        j = parse(no[i], NULL);
        assert_non_null(j);
        assert_false(vlm_json_is_true(j));
        vlm_json_free(j);
    }

    for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        j = parse(yes[i], NULL);
        assert_non_null(j);
        assert_true(vlm_json_is_true(j));
        vlm_json_free(j);
    }
}


static void
text_that_is_not_json_is_refused_with_the_byte(void **state)
{
    (void) state;

    refused("", "Not JSON at byte 0");
    refused("\x1f\x8b\x08", "The body is compressed with gzip");
    refused("   ", "Not JSON");
    refused("{", "Not JSON");
    refused("{\"a\":}", "Not JSON at byte 5");
    refused("{'a': 1}", "Not JSON");
    refused("nul", "Not JSON");
    refused("[1] [2]", "More than one JSON value: the second begins at"
            " byte 4 of 7");
    refused("{} x", "More than one");
    refused("\"abc", "the text ends within a string");
    refused("\"abc\\", "the text ends within a string");
    refused("\"a\nb\"", "control character in a string at byte 2");
    refused("[\x01]", "control character at byte 1");
    refused("\"\\u0000\"", "Character U+0000 in a string at byte 1");
    refused("\"\\ud800\"", "Not JSON");
    refused("[\"\\udn00\"]", "\\u without four digits in a string at byte 2");
    refused("\"\\u00", "\\u without four digits in a string at byte 1");
    refused("\"\xff\"", "Not UTF-8 at byte 1");
    refused("\"a\xc3\"", "Not UTF-8 at byte 2");
    refused("\"\xed\xa0\x80\"", "Not UTF-8");
    refused("\"\xc0\x80\"", "Not UTF-8");
    refused("\"\xf4\x90\x80\x80\"", "Not UTF-8");
    refused("\"\xf0\x9f\x90", "Not UTF-8");
}


static void
an_escaped_backslash_before_u0000_is_no_zero(void **state)
{
    json_t  *j;

    (void) state;

    j = parse("\"\\\\u0000\"", NULL);
    assert_non_null(j);
    assert_string_equal(vlm_json_text(j), "\\u0000");
    vlm_json_free(j);
}


static void
deep_wide_and_long_bodies_are_refused(void **state)
{
    char    *big;
    err_t    err;
    json_t  *j;

    (void) state;

    big = malloc(1000000);
    assert_non_null(big);

    memset(big, '[', 64);
    memset(big + 64, ']', 64);
    j = vlm_json_parse(big, 128, &err);
    assert_non_null(j);
    vlm_json_free(j);

    memset(big, '[', 65);
    memset(big + 65, ']', 65);
    assert_null(vlm_json_parse(big, 130, &err));
    assert_string_equal(err.text, "JSON nested deeper than 64 at byte 64");

    memset(big, '[', 1000000);
    assert_null(vlm_json_parse(big, 1000000, &err));

    memset(big, ',', 1000000);
    big[0] = '[';
    assert_null(vlm_json_parse(big, 1000000, &err));
    assert_string_equal(err.text, "JSON of more than 100000 values");

    assert_null(vlm_json_parse(big, VLM_JSON_BYTES + 1u,
                               &err));
    assert_string_equal(err.text, "JSON of 67108865 bytes, 67108864 can be"
                        " read");

    free(big);
}


static void
written(out_t *w, const char *expected)
{
    assert_int_equal(vlm_json_done(w), 0);
    assert_int_equal(w->len, strlen(expected));
    assert_memory_equal(w->data, expected, w->len);
    vlm_json_release(w);
}


static void
answers_have_flasks_form(void **state)
{
    out_t  w;

    (void) state;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '{');
    vlm_json_add_text(&w, "answer", "a \"b\"\\/\n\t\x01\x7f", 11);
    vlm_json_add_open(&w, "list", '[');
    vlm_json_put_int(&w, -5);
    vlm_json_put_double(&w, 12);
    vlm_json_put_double(&w, 0.1);
    vlm_json_put_double(&w, 1e-7);
    vlm_json_put_double(&w, NAN);
    vlm_json_put_bool(&w, 1);
    vlm_json_put_bool(&w, 0);
    vlm_json_put_null(&w);
    vlm_json_open(&w, '{');
    vlm_json_add_int(&w, "int", 7);
    vlm_json_add_bool(&w, "bool", 1);
    vlm_json_add_double(&w, "double", 0.5);
    vlm_json_add_logprob(&w, "logprob", -0.25);
    vlm_json_shut(&w, '}');
    vlm_json_open(&w, '[');
    vlm_json_shut(&w, ']');
    vlm_json_shut(&w, ']');
    vlm_json_add_string(&w, "null", NULL);
    vlm_json_add_string(&w, "utf8", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xb1\xff");
    vlm_json_shut(&w, '}');

    written(&w, "{\"answer\":\"a \\\"b\\\"\\\\/\\n\\t\\u0001\\u007f\","
                "\"list\":[-5,12.0,0.1,1e-07,null,true,false,null,"
                "{\"int\":7,\"bool\":true,\"double\":0.5,\"logprob\":-0.25},[]],"
                "\"null\":null,"
                "\"utf8\":\"\\u00e9\\u20ac\\ud83d\\udc31\\ufffd\"}\n");
}


static void
numbers_have_all_their_digits(void **state)
{
    out_t  w;

    (void) state;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '[');
    vlm_json_put_int(&w, 0);
    vlm_json_put_int(&w, 1000);
    vlm_json_put_int(&w, INT64_MAX);
    vlm_json_put_int(&w, INT64_MIN);
    vlm_json_shut(&w, ']');

    written(&w, "[0,1000,9223372036854775807,-9223372036854775808]\n");
}


static void
hundredths_are_written_with_the_fewest_digits(void **state)
{
    out_t          w;
    size_t         i;
    const double   x[] = {
        0, -0.0, 0.01, 0.07, -0.5, 5.05, 100.1, 99.9, -1234.56, 999999999999.99, 999999999999,
        1e12, 1000000000000.25, 0.005, 0.015, -1e-9, 12.345
    };

    (void) state;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '[');

    for (i = 0; i < sizeof(x) / sizeof(x[0]); i++) {
        vlm_json_put_double(&w, x[i]);
    }

    vlm_json_shut(&w, ']');

    written(&w, "[0.0,-0.0,0.01,0.07,-0.5,5.05,100.1,99.9,-1234.56,999999999999.99,999999999999.0,"
                "1000000000000.0,1000000000000.25,0.005,0.015,-1e-09,12.345]\n");
}


static void
log_probabilities_have_six_digits_and_an_end(void **state)
{
    out_t  w;

    (void) state;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '[');
    vlm_json_put_logprob(&w, 0);
    vlm_json_put_logprob(&w, -1e-7);
    vlm_json_put_logprob(&w, -1e-6);
    vlm_json_put_logprob(&w, -0.25);
    vlm_json_put_logprob(&w, -1);
    vlm_json_put_logprob(&w, -12.0000016);
    vlm_json_put_logprob(&w, -9998.9999996);
    vlm_json_put_logprob(&w, -1e30);
    vlm_json_put_logprob(&w, -INFINITY);
    vlm_json_put_logprob(&w, NAN);
    vlm_json_put_logprob(&w, 3);
    vlm_json_shut(&w, ']');

    written(&w, "[0.0,0.0,-0.000001,-0.25,-1.0,-12.000002,-9999.0,-9999.0,"
                "-9999.0,-9999.0,0.0]\n");
}


static void
a_formatted_text_is_escaped_and_ends_within_its_bound(void **state)
{
    out_t  w;
    char   text[2000], wanted[1100];

    (void) state;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '{');
    vlm_json_add_format(&w, "url", "/result/%s%d", "a\"b", 7);
    vlm_json_shut(&w, '}');

    written(&w, "{\"url\":\"/result/a\\\"b7\"}\n");

    memset(text, 'x', sizeof(text));
    (void) snprintf(wanted, sizeof(wanted), "{\"k\":\"%.1023s\"}\n", text);

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '{');
    vlm_json_add_format(&w, "k", "%.*s", (int) sizeof(text), text);
    vlm_json_shut(&w, '}');

    written(&w, wanted);
}


static void
a_parsed_value_is_written_with_sorted_keys(void **state)
{
    out_t    w;
    json_t  *j;

    (void) state;

    j = parse("{\"b\": [1, 2.5, {\"z\": null, \"y\": \"\"}], \"a\": true,"
              " \"b2\": -1e3, \"a\": \"last\", \"A\": [9007199254740993, 98765432109876543210]}",
              NULL);
    assert_non_null(j);

    vlm_json_init(&w, 4096);
    vlm_json_put_value(&w, j);
    written(&w, "{\"A\":[9007199254740993,98765432109876543210],\"a\":\"last\",\"b\":[1,2.5,"
                "{\"y\":\"\",\"z\":null}],\"b2\":-1000}\n");

    vlm_json_free(j);
}


static void
a_text_of_any_length_is_cut_at_no_character(void **state)
{
    char    text[3 * 600], *expected;
    out_t   w;
    size_t  n, i;

    (void) state;

    for (i = 0; i < 600; i++) {
        memcpy(text + 3 * i, "\xe2\x82\xac", 3);
    }

    expected = malloc(6 * 600 + 4);
    assert_non_null(expected);

    for (n = 0; n < 600; n += 37) {
        strcpy(expected, "\"");

        for (i = 0; i < n; i++) {
            strcat(expected, "\\u20ac");
        }

        strcat(expected, "\"\n");

        vlm_json_init(&w, 8192);
        vlm_json_put_text(&w, text, 3 * n);
        written(&w, expected);

        assert_int_equal(vlm_json_escape(NULL, text, 3 * n), 6 * n);
    }

    free(expected);
}


static void
a_writer_past_its_limit_fails_at_the_end(void **state)
{
    int    i;
    out_t  w;

    (void) state;

    vlm_json_init(&w, 100);

    for (i = 0; i < 1000; i++) {
        vlm_json_put_text(&w, "abcdefgh", 8);
    }

    assert_int_equal(vlm_json_done(&w), -1);
    assert_true(w.len <= 100);
    vlm_json_release(&w);
}


static void
floats_are_read_again_as_they_were(void **state)
{
    vlm_err_t          err = { VLM_OK, "" };
    vlm_json_t        *j;
    vlm_json_out_t     w;
    const vlm_json_t  *one;

    static const float  x[] = { 0, -1, 0.1f, 1.0f / 3, 3e-39f, 3.4028235e38f, NAN, -INFINITY };

    (void) state;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '[');
    vlm_json_put_floats(&w, x, 0);
    vlm_json_put_floats(&w, x, 8);
    vlm_json_shut(&w, ']');
    assert_int_equal(vlm_json_done(&w), 0);

    j = vlm_json_parse(w.data, w.len, &err);
    assert_non_null(j);
    assert_int_equal(vlm_json_count(vlm_json_first(j)), 0);

    one = vlm_json_first(vlm_json_next(vlm_json_first(j)));

    for (size_t i = 0; i < 6; i++) {
        assert_non_null(one);
        assert_true((float) vlm_json_number(one, 7) == x[i]);
        one = vlm_json_next(one);
    }

    /* JSON has no such numbers */

    for (size_t i = 6; i < 8; i++) {
        assert_non_null(one);
        assert_true(vlm_json_is_null(one));
        one = vlm_json_next(one);
    }

    assert_null(one);

    vlm_json_free(j);
    vlm_json_release(&w);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(floats_are_read_again_as_they_were),
        cmocka_unit_test(a_body_is_read_by_its_members),
        cmocka_unit_test(a_whole_number_of_64_bits_is_read_to_its_last_digit),
        cmocka_unit_test(a_number_keeps_its_text),
        cmocka_unit_test(of_equal_keys_the_last_counts),
        cmocka_unit_test(a_member_is_found_without_a_parse),
        cmocka_unit_test(truth_is_as_in_python),
        cmocka_unit_test(text_that_is_not_json_is_refused_with_the_byte),
        cmocka_unit_test(an_escaped_backslash_before_u0000_is_no_zero),
        cmocka_unit_test(deep_wide_and_long_bodies_are_refused),
        cmocka_unit_test(answers_have_flasks_form),
        cmocka_unit_test(numbers_have_all_their_digits),
        cmocka_unit_test(hundredths_are_written_with_the_fewest_digits),
        cmocka_unit_test(log_probabilities_have_six_digits_and_an_end),
        cmocka_unit_test(a_formatted_text_is_escaped_and_ends_within_its_bound),
        cmocka_unit_test(a_parsed_value_is_written_with_sorted_keys),
        cmocka_unit_test(a_text_of_any_length_is_cut_at_no_character),
        cmocka_unit_test(a_writer_past_its_limit_fails_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
