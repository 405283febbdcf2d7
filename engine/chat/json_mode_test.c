/*
 * The automaton against a parser: a text that it accepts whole is an object to cJSON, and its
 * distance to the end is exact in every state that random bytes reach.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "chat/json_mode.h"

#define ROOM  4096

static uint64_t  seed = 1;


static uint32_t
random_below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;

    return (uint32_t) ((seed >> 33) % n);
}


/* How many bytes are accepted, from the beginning. */
static size_t
feed(vlm_json_mode_t *m, const char *text, size_t bytes)
{
    size_t  i;

    memset(m, 0, sizeof(*m));

    for (i = 0; i < bytes && vlm_json_mode_next(m, (uint8_t) text[i]); i++) { /* void */ }

    return i;
}


static void
assert_object(const char *text, size_t bytes)
{
    vlm_err_t    err = { VLM_OK, "" };
    vlm_json_t  *j;

    j = vlm_json_named(text, bytes, "answer", &err);

    if (j == NULL || !vlm_json_is_object(j)) {
        fail_msg("accepted, yet no object: %.*s", (int) bytes, text);
    }

    vlm_json_free(j);
}


static void
assert_whole(const char *text)
{
    vlm_json_mode_t  m;

    if (feed(&m, text, strlen(text)) != strlen(text) || !vlm_json_mode_done(&m)) {
        fail_msg("refused: %s", text);
    }

    assert_int_equal(vlm_json_mode_left(&m), 0);
    assert_object(text, strlen(text));
}


/* All but the last byte are accepted. */
static void
assert_ends_before_last(const char *text, size_t bytes)
{
    size_t           n;
    vlm_json_mode_t  m;

    n = feed(&m, text, bytes);

    if (n != bytes - 1) {
        fail_msg("refused at %zu of %zu: %s", n, bytes, text);
    }
}


static void
valid_json_is_accepted(void **state)
{
    size_t                    i;
    static const char *const  texts[] = {
        "{}", "{ }", "{\"\":0}", "{\"a\":{}}", "{\"a\":[]}", "{\"a\":[ ]}", "{\"a\":[[],{}]}",
        "{\"a\":true,\"b\":false,\"c\":null}", "{\"a\":[true,false,null]}",
        "{ \"a\" : [ 1 , 2 ] , \"b\" : { } }", "{\n\t\"a\":\r\n 1\n}",
        "{\"a\":0}", "{\"a\":-0}", "{\"a\":10}", "{\"a\":-1.5}", "{\"a\":0.05}", "{\"a\":1e5}",
        "{\"a\":1E+05}", "{\"a\":0e-1}", "{\"a\":1.25e-99 }", "{\"a\":[1,2.5,3e1]}",
        "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "{\"\\u00e9\":\"\\uABcd\\ud7ff\\ue000\"}",
        "{\"a\":\"caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80\"}", "{\"a\":\"\xe0\xa0\x80\"}",
        "{\"a\":\"\xed\x9f\xbf\xf4\x8f\xbf\xbf\xf0\x90\x80\x80\"}", "{\"a\":\"\x7f\"}"
    };

    (void) state;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_whole(texts[i]);
    }
}


static void
invalid_json_is_refused_at_its_first_wrong_byte(void **state)
{
    size_t                    i;
    static const char *const  texts[] = {
        "[", " ", "\"", "1", "t", "\xef", "{a", "{1", "{,", "{]", "{\"a\"}", "{\"a\",",
        "{\"a\":}", "{\"a\":,", "{\"a\":1,}", "{\"a\":1 1", "{\"a\":[,", "{\"a\":[1,]", "{\"a\":]",
        "{\"a\":[}", "{\"a\":[1}", "{\"a\":1]", "{\"a\":1\"", "{\"a\":\"\"\"", "{\"a\":'",
        "{\"a\":T", "{\"a\":tru}", "{\"a\":truee", "{\"a\":nul ", "{\"a\":N", "{\"a\":I",
        "{\"a\":01", "{\"a\":-a", "{\"a\":+", "{\"a\":.", "{\"a\":-.", "{\"a\":1.}", "{\"a\":1..",
        "{\"a\":1.e", "{\"a\":1e}", "{\"a\":1e+}", "{\"a\":1ee", "{\"a\":1e1.", "{\"a\":0x",
        "{\"a\":1.5.", "{\"a\":1e100", "{\"a\":--",
        "{\"a\":\"\\a", "{\"a\":\"\\'", "{\"a\":\"\\u12g", "{\"a\":\"\\u\"", "{\"a\":\"\\ud8",
        "{\"a\":\"\\uDf", "{\"a\":\"\n", "{\"a\":\"\t", "{\"a\":\"\x1f", "{\"\x01",
        "{\"a\":\"\x80", "{\"a\":\"\xc1", "{\"a\":\"\xc3\"", "{\"a\":\"\xc3\x28",
        "{\"a\":\"\xe0\x9f",
        "{\"a\":\"\xed\xa0", "{\"a\":\"\xf0\x8f", "{\"a\":\"\xf4\x90", "{\"a\":\"\xf5",
        "{\"a\":\"\xe4\xb8\"", "{}}", "{} ", "{},", "{}\n", "{}{", "{\"a\":1}}", "{\"a\":{}}}"
    };

    (void) state;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_ends_before_last(texts[i], strlen(texts[i]));
    }

    assert_ends_before_last("{\"a\":\"\0", 7);
    assert_ends_before_last("{\"a\":\"\\\0", 8);
    assert_ends_before_last("{\0", 2);
}


static void
sixty_four_brackets_may_be_open_and_no_more(void **state)
{
    char             text[ROOM];
    size_t           n, i;
    vlm_json_mode_t  m;

    (void) state;

    n = (size_t) sprintf(text, "{\"a\":");

    for (i = 1; i < VLM_JSON_DEPTH; i++) {
        n += (size_t) sprintf(text + n, i % 3 == 0 ? "{\"\":" : "[");
    }

    assert_int_equal(feed(&m, text, n), n);
    assert_false(vlm_json_mode_next(&m, '['));
    assert_false(vlm_json_mode_next(&m, '{'));

    text[n++] = '1';

    for (i = VLM_JSON_DEPTH; i-- > 1; /* void */) {
        text[n++] = i % 3 == 0 ? '}' : ']';
    }

    text[n++] = '}';
    text[n] = '\0';
    assert_whole(text);
}


static void
runs_of_blanks_and_numbers_have_a_bound(void **state)
{
    char             text[ROOM];
    size_t           n;
    vlm_json_mode_t  m;

    (void) state;

    n = (size_t) sprintf(text, "{%*s", VLM_JSON_BLANKS, "");
    assert_int_equal(feed(&m, text, n), n);
    assert_false(vlm_json_mode_next(&m, ' '));
    assert_false(vlm_json_mode_next(&m, '\n'));
    assert_true(vlm_json_mode_next(&m, '"'));

    n = (size_t) sprintf(text, "{\"a\":%0*d", VLM_JSON_NUMBER, 0);
    memset(text + 5, '7', VLM_JSON_NUMBER);
    assert_int_equal(feed(&m, text, n), n);
    assert_false(vlm_json_mode_next(&m, '7'));
    assert_false(vlm_json_mode_next(&m, '.'));
    assert_false(vlm_json_mode_next(&m, 'e'));
    assert_true(vlm_json_mode_next(&m, '}'));

    /* A byte that needs a digit behind it is allowed only if that digit has room. */

    assert_int_equal(feed(&m, text, n - 1), n - 1);
    assert_false(vlm_json_mode_next(&m, '.'));
    assert_int_equal(feed(&m, text, n - 2), n - 2);
    assert_true(vlm_json_mode_next(&m, 'e'));
    assert_false(vlm_json_mode_next(&m, '-'));
    assert_true(vlm_json_mode_next(&m, '9'));
    assert_true(vlm_json_mode_next(&m, '}'));
}


/* A byte that the grammar likes; sometimes any. */
static uint8_t
random_byte(void)
{
    static const char  likely[] = "{}[]\"\"\"::,,,0123456789-+.eEtruefalsn\\\\ubdD \n/\xc3\xa9\xe4"
                                  "\xb8\xad\xf0\x9f\x98\x80\xed\xe0";

    return random_below(8) == 0 ? (uint8_t) random_below(256)
                                : (uint8_t) likely[random_below(sizeof(likely) - 1)];
}


/* A byte that makes the way to the end one shorter; none may make it two shorter. */
static uint8_t
shorter(const vlm_json_mode_t *m)
{
    int              byte;
    uint32_t         c, left;
    vlm_json_mode_t  next, old = *m;

    left = vlm_json_mode_left(m);
    byte = -1;

    for (c = 0; c < 256; c++) {
        next = *m;

        if (!vlm_json_mode_next(&next, (uint8_t) c)) {
            assert_memory_equal(&next, &old, sizeof(old));
            continue;
        }

        assert_true(vlm_json_mode_left(&next) + 1 >= left);

        if (vlm_json_mode_left(&next) + 1 == left) {
            byte = (int) c;
        }
    }

    assert_int_not_equal(byte, -1);

    return (uint8_t) byte;
}


/* A random object in text, of at least so many bytes if it lives; returns its length. */
static size_t
random_object(char *text, size_t n_random, int watch)
{
    size_t           n;
    uint8_t          c;
    vlm_json_mode_t  m;

    memset(&m, 0, sizeof(m));
    n = 0;

    while (n < n_random && !vlm_json_mode_done(&m)) {
        c = random_byte();

        if (vlm_json_mode_next(&m, c)) {
            text[n++] = (char) c;

            if (watch && !vlm_json_mode_done(&m)) {
                (void) shorter(&m);
            }
        }
    }

    while (!vlm_json_mode_done(&m)) {
        c = shorter(&m);
        assert_true(vlm_json_mode_next(&m, c));
        text[n++] = (char) c;
    }

    assert_int_equal(vlm_json_mode_left(&m), 0);

    return n;
}


static void
the_end_is_as_near_as_it_says_wherever_it_stands(void **state)
{
    char      text[ROOM];
    uint32_t  i;

    (void) state;

    for (i = 0; i < 2000; i++) {
        (void) random_object(text, random_below(100), 1);
    }
}


static void
twenty_thousand_random_objects_parse(void **state)
{
    char      text[ROOM];
    size_t    n;
    uint32_t  i;

    (void) state;

    for (i = 0; i < 20000; i++) {
        n = random_object(text, random_below(300), 0);
        assert_object(text, n);
        assert_int_equal(vlm_utf8_whole(text, n), n);
    }
}


static void
an_object_with_a_byte_changed_is_refused_or_still_an_object(void **state)
{
    char             text[ROOM];
    size_t           n;
    uint32_t         i, accepted;
    vlm_json_mode_t  m;

    (void) state;
    accepted = 0;

    for (i = 0; i < 50000; i++) {
        n = random_object(text, random_below(60), 0);
        text[random_below((uint32_t) n)] = (char) random_byte();

        if (feed(&m, text, n) == n && vlm_json_mode_done(&m)) {
            assert_object(text, n);
            accepted++;
        }
    }

    assert_true(accepted > 100);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(valid_json_is_accepted),
        cmocka_unit_test(invalid_json_is_refused_at_its_first_wrong_byte),
        cmocka_unit_test(sixty_four_brackets_may_be_open_and_no_more),
        cmocka_unit_test(runs_of_blanks_and_numbers_have_a_bound),
        cmocka_unit_test(the_end_is_as_near_as_it_says_wherever_it_stands),
        cmocka_unit_test(twenty_thousand_random_objects_parse),
        cmocka_unit_test(an_object_with_a_byte_changed_is_refused_or_still_an_object)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
