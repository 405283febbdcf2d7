/*
 * Patterns, formats, bounds of numbers and schemas that hold together: what they describe is
 * accepted and nothing else, their masks are exact, and any choice of tokens comes to its end.
 */

#include "grammar/dfa.h"
#include "grammar/grammar_fixture.h"

#include <math.h>

typedef struct {
    const char  *schema, *yes[7], *no[9];
} case_t;


static void
check_cases(const case_t *cases, size_t n)
{
    size_t          i, k;
    vlm_grammar_t  *g;

    for (i = 0; i < n; i++) {
        g = must_compile(&demo, cases[i].schema);

        for (k = 0; k < 7 && cases[i].yes[k] != NULL; k++) {
            if (!accepts(g, cases[i].yes[k])) {
                fail_msg("refused: %s by %s", cases[i].yes[k], cases[i].schema);
            }
        }

        for (k = 0; k < 9 && cases[i].no[k] != NULL; k++) {
            if (accepts(g, cases[i].no[k])) {
                fail_msg("accepted: %s by %s", cases[i].no[k], cases[i].schema);
            }
        }

        vlm_grammar_free(g);
    }
}


static void
a_string_has_its_pattern(void **state)
{
    static const case_t  cases[] = {
        { "{\"pattern\":\"b+\"}", { "\"b\"", "\"abba\"", "\"\\n\xc3\xa9" "b\\\"\"" },
          { "\"a\"", "\"\"", "b", "\"b", "\"b\\/\"" } },
        { "{\"pattern\":\"^[a-c]{2,3}$\"}", { "\"ab\"", "\"ccc\"" },
          { "\"a\"", "\"abca\"", "\"ad\"", "\"ab\\n\"" } },
        { "{\"pattern\":\"^(?:x|yy|)z?$\"}", { "\"\"", "\"x\"", "\"yyz\"", "\"z\"" },
          { "\"y\"", "\"xx\"", "\"zz\"" } },
        { "{\"pattern\":\"^a|b$\"}", { "\"ax\"", "\"xb\"", "\"a\"" }, { "\"xa\"", "\"bx\"" } },
        { "{\"pattern\":\"^\\\\d+\\\\.\\\\d\\\\s\\\\w$\"}", { "\"12.3 _\"", "\"0.0\\tZ\"" },
          { "\"12x3 _\"", "\"1.3  \"", "\"1.3 -\"" } },
        { "{\"pattern\":\"^[^\\\\s\\\"]{1,2}\\\\D$\"}", { "\"ab\"", "\"a\\\\.\"" },
          { "\"a\\\"b\"", "\"a b\"", "\"a1\"", "\"\xc3\xa9\xc3\xa9\"" } },
        { "{\"pattern\":\"^[\\u00e0-\\u20ac]+$\"}",
          { "\"\xc3\xa9\xe2\x82\xac\"", "\"\xe0\xa0\x80\"" },
          { "\"a\"", "\"\xc3\x9f\"", "\"\xe2\x82\xad\"" } },
        { "{\"pattern\":\"^.$\"}", { "\"\xf0\x9f\x98\x80\"", "\"\\\"\"", "\"\\t\"", "\"\\u001f\"" },
          { "\"\\n\"", "\"\\r\"", "\"\xe2\x80\xa8\"", "\"\"", "\"ab\"", "\"\\u0041\"" } },
        { "{\"pattern\":\"^[\\\\x41-\\\\u0043\\\\-\\\\]]$\"}", { "\"A\"", "\"-\"", "\"]\"" },
          { "\"D\"", "\"x\"", "\"\\\\\\\\\"" } },
        { "{\"pattern\":\"^(ab){0}c{2,}?(?<n>d)*$\"}", { "\"cc\"", "\"cccdd\"" },
          { "\"c\"", "\"abcc\"" } },
        { "{\"pattern\":\"^a*$\",\"minLength\":2,\"maxLength\":3}", { "\"aa\"", "\"aaa\"" },
          { "\"a\"", "\"aaaa\"" } },
        { "{\"pattern\":\"x\",\"type\":[\"string\",\"null\"]}", { "\"x\"", "null" }, { "\"\"" } },
        { "{\"pattern\":\"^[\\\\s\\\\S]$\"}", { "\"\\n\"", "\"\xc3\xa9\"", "\"\\\\\"" },
          { "\"\"" } },
        { "{\"items\":{\"pattern\":\"^a+$\"}}", { "[\"a\" , \"aa\"]", "[]" },
          { "[\"a\"\"a\"]", "[a]", "[\"b\"]" } }
    };

    (void) state;
    check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}


static void
a_string_has_its_format(void **state)
{
    static const case_t  cases[] = {
        { "{\"format\":\"date-time\"}",
          { "\"2024-02-28T23:59:59Z\"", "\"1999-12-31T00:00:00.123+05:30\"" },
          { "\"2024-02-30T00:00:00Z\"", "\"2024-02-28T24:00:00Z\"", "\"2024-02-28 10:00:00Z\"",
            "\"2024-02-28T10:00:00\"" } },
        { "{\"format\":\"date\"}", { "\"2024-04-30\"" }, { "\"2024-04-31\"", "\"24-04-30\"" } },
        { "{\"format\":\"time\"}", { "\"10:20:30Z\"" }, { "\"10:20\"", "\"10:60:00Z\"" } },
        { "{\"format\":\"uuid\"}", { "\"123e4567-e89b-12d3-a456-426614174000\"" },
          { "\"123e4567e89b12d3a456426614174000\"", "\"123e4567-e89b-12d3-a456-42661417400\"" } },
        { "{\"format\":\"email\"}", { "\"a.b@example.com\"" }, { "\"a@b\"", "\"@b.com\"",
          "\"a..b@c.com\"", "\"a@-b.com\"" } },
        { "{\"format\":\"hostname\"}", { "\"a-b.example.com\"", "\"x\"" },
          { "\"xn--x\"", "\"a--b.c\"", "\"-a\"", "\"a-.b\"", "\"\"" } },
        { "{\"format\":\"ipv6\"}", { "\"2001:db8:0:0:0:0:0:1\"" }, { "\"1:2\"", "\"::g\"" } },
        { "{\"format\":\"ipv4\"}", { "\"127.0.0.1\"", "\"255.249.199.99\"" },
          { "\"256.0.0.1\"", "\"1.2.3\"", "\"01.2.3.4\"" } },
        { "{\"format\":\"duration\"}", { "\"P1D\"", "\"PT2H30M\"" }, { "\"P\"", "\"PT\"" } },
        { "{\"format\":\"uri\"}", { "\"https://example.com/a/b\"" }, { "\"example.com\"" } },
        { "{\"format\":\"date\",\"pattern\":\"^20\"}", { "\"2024-04-30\"" }, { "\"1999-04-30\"" } },
        { "{\"type\":\"integer\",\"format\":\"int32\"}", { "-2147483648", "2147483647", "0" },
          { "2147483648", "-2147483649", "1.0" } },
        { "{\"type\":\"number\",\"format\":\"double\"}", { "1e3", "-0.5" }, { "\"\"" } }
    };

    (void) state;
    check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}


static void
a_number_lies_within_its_bounds(void **state)
{
    static const case_t  cases[] = {
        { "{\"type\":\"integer\",\"minimum\":-12,\"maximum\":105}",
          { "-12", "-1", "0", "9", "99", "105" },
          { "-13", "106", "-100", "1.5", "01", "-", "1000" } },
        { "{\"type\":\"integer\",\"exclusiveMinimum\":0}", { "1", "10", "999999999999999999" },
          { "0", "-1", "-0", "1e3" } },
        { "{\"type\":\"integer\",\"minimum\":10,\"exclusiveMaximum\":20}", { "10", "19" },
          { "9", "20", "100", "1" } },
        { "{\"minimum\":0,\"maximum\":1}", { "0", "1", "0.5", "1.0", "0.00", "0.99999" },
          { "1.01", "-0.1", "2", "1e-1", "0.", "10" } },
        { "{\"exclusiveMinimum\":0,\"exclusiveMaximum\":1}", { "0.5", "0.001" },
          { "0", "1", "0.0", "1.0", "0.000" } },
        { "{\"minimum\":-2.75,\"maximum\":-1.5}", { "-2.75", "-2", "-1.5", "-1.50" },
          { "-2.751", "-1.49", "-3", "-1", "1.5", "0" } },
        { "{\"minimum\":0.25,\"exclusiveMinimum\":true}", { "0.26", "1", "0.2501" },
          { "0.25", "0.2500", "0.2", "0" } },
        { "{\"minimum\":5,\"exclusiveMinimum\":7,\"maximum\":20,\"exclusiveMaximum\":20}",
          { "7.1", "19.9" }, { "7", "7.0", "20", "5" } },
        { "{\"type\":\"integer\",\"multipleOf\":7,\"minimum\":0,\"maximum\":100}",
          { "0", "7", "98", "70" }, { "1", "105", "71", "-7" } },
        { "{\"type\":\"integer\",\"minimum\":9007199254740993,\"maximum\":123456789012345678}",
          { "9007199254740993", "123456789012345678" },
          { "9007199254740992", "123456789012345679" } },
        { "{\"type\":\"integer\",\"exclusiveMinimum\":-123456789012345679,"
          "\"exclusiveMaximum\":-9007199254740993}",
          { "-9007199254740994", "-123456789012345678" },
          { "-9007199254740993", "-123456789012345679" } },
        { "{\"type\":\"integer\",\"allOf\":[{\"minimum\":9007199254740992},"
          "{\"minimum\":9007199254740993}]}", { "9007199254740993" }, { "9007199254740992" } },
        { "{\"minimum\":9007199254740992}", { "9007199254740992" }, { "9007199254740991" } },
        { "{\"type\":[\"integer\",\"string\"],\"maximum\":5}", { "5", "-123", "\"a\"" }, { "6" } },
        { "{\"items\":{\"type\":\"integer\",\"minimum\":3}}", { "[3,10 ,4]" }, { "[1]", "[3 1]" } },
        { "{\"type\":\"integer\",\"minimum\":1.5,\"maximum\":3.5}", { "2", "3" }, { "1", "4" } }
    };

    (void) state;
    check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}


static void
random_bounds_agree_with_strtod(void **state)
{
    int             wants, low_out, high_out;
    char            schema[160], text[32];
    double          low, high, x;
    uint32_t        i, k;
    vlm_grammar_t  *g;

    (void) state;

    for (i = 0; i < 400; i++) {
        low = (random_below(4001) - 2000.0) / (i % 3 == 0 ? 1 : 40);
        high = low + random_below(3000) / (i % 3 == 0 ? 1.0 : 40) + 1;
        low_out = (int) random_below(2);
        high_out = (int) random_below(2);
        (void) snprintf(schema, sizeof(schema), "{\"%s\":%.3f,\"%s\":%.3f}",
                        low_out ? "exclusiveMinimum" : "minimum", low,
                        high_out ? "exclusiveMaximum" : "maximum", high);
        g = must_compile(&demo, schema);

        for (k = 0; k < 200; k++) {
            x = random_below(4) == 0 ? low + (random_below(3) - 1.0) / 40
                : random_below(4) == 0 ? high + (random_below(3) - 1.0) / 40
                : (random_below(8001) - 4000.0) / 40;
            (void) snprintf(text, sizeof(text), "%.*f", (int) random_below(4), x);
            x = strtod(text, NULL);
            wants = (low_out ? x > strtod(strchr(schema, ':') + 1, NULL)
                     : x >= strtod(strchr(schema, ':') + 1, NULL))
                    && (high_out ? x < strtod(strrchr(schema, ':') + 1, NULL)
                        : x <= strtod(strrchr(schema, ':') + 1, NULL));

            /* "-0" is left out where all numbers are positive. */

            if (accepts(g, text) != wants && !(x == 0 && text[0] == '-')) {
                fail_msg("%s by %s: %d", text, schema, !wants);
            }
        }

        vlm_grammar_free(g);
    }
}


static void
schemas_that_hold_together_are_one(void **state)
{
    static const case_t  cases[] = {
        { "{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]},"
          "{\"properties\":{\"b\":{\"type\":\"null\"}},\"required\":[\"b\"]}]}",
          { "{\"a\":1,\"b\":null}" }, { "{\"a\":1}", "{\"b\":null}", "{}" } },
        { "{\"$ref\":\"#/$defs/p\",\"properties\":{\"y\":{\"const\":2}},\"required\":[\"y\"],"
          "\"$defs\":{\"p\":{\"type\":\"object\",\"properties\":{\"x\":{\"const\":1}}}}}",
          { "{\"x\":1,\"y\":2}", "{\"y\":2}" }, { "{\"x\":1}", "{\"x\":2,\"y\":2}", "[]" } },
        { "{\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"string\"}},\"anyOf\":["
          "{\"required\":[\"k\"]},{\"properties\":{\"m\":{\"type\":\"null\"}},"
          "\"required\":[\"m\"]}]}",
          { "{\"k\":\"\"}", "{\"m\":null}", "{\"k\":\"\",\"m\":null}" }, { "{}", "{\"m\":1}" } },
        { "{\"allOf\":[{\"type\":[\"integer\",\"string\"]},{\"type\":\"number\"},{\"minimum\":3},"
          "{\"minimum\":5}]}", { "5" }, { "4", "5.5", "\"\"" } },
        { "{\"allOf\":[{\"properties\":{\"a\":{\"minLength\":2}}},"
          "{\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":3}}}]}",
          { "{\"a\":\"ab\"}", "{}" }, { "{\"a\":\"a\"}", "{\"a\":\"abcd\"}", "{\"a\":1}" } },
        { "{\"allOf\":[{\"properties\":{\"a\":true},\"additionalProperties\":false},"
          "{\"properties\":{\"b\":true}}]}", { "{}", "{\"a\":1}" }, { "{\"b\":1}" } },
        { "{\"allOf\":[{\"properties\":{\"a\":true},\"additionalProperties\":{\"type\":\"null\"}},"
          "{\"properties\":{\"b\":true}}]}", { "{\"a\":1,\"b\":null,\"c\":null}" },
          { "{\"b\":1}", "{\"c\":1}" } },
        { "{\"allOf\":[{\"items\":{\"minimum\":1}},{\"items\":{\"type\":\"integer\"}}]}",
          { "[1,2]" }, { "[0]", "[1.5]", "[\"\"]" } },
        { "{\"oneOf\":[{\"type\":\"integer\",\"maximum\":3},{\"type\":\"integer\",\"minimum\":4},"
          "{\"pattern\":\"^a\"},{\"pattern\":\"^b\"},{\"const\":\"c\"}]}",
          { "3", "4", "\"a\"", "\"bb\"", "\"c\"" }, { "\"ca\"", "1.5" } },
        { "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"b\":{\"properties\":{\"v\":{\"type\":\"integer\"}},"
          "\"required\":[\"v\"]},\"n\":{\"allOf\":[{\"$ref\":\"#/$defs/b\"},{\"properties\":"
          "{\"n\":{\"$ref\":\"#/$defs/n\"}}}]}}}",
          { "{\"v\":1,\"n\":{\"v\":2}}", "{\"v\":1}" },
          { "{\"n\":{\"v\":2}}", "{\"v\":1,\"n\":{}}" } },
        { "{\"allOf\":[{\"type\":\"object\",\"nullable\":true},{\"type\":\"object\"}]}", { "{}" },
          { "null" } }
    };

    (void) state;
    check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}


static void
what_cannot_be_read_is_refused_with_its_place(void **state)
{
    size_t          i;
    vlm_err_t       err;
    vlm_grammar_t  *g;
    static const char  *const cases[][2] = {
        { "{\"pattern\":\"a(?=b)\"}", "#/pattern looks ahead or behind, or sets a flag, which is "
          "not supported, at byte 2" },
        { "{\"pattern\":\"(a\"}", "#/pattern has a bracket that is not closed" },
        { "{\"pattern\":\"a)\"}", "#/pattern has a bracket that closes nothing, at byte 1" },
        { "{\"pattern\":\"*a\"}", "repeats nothing" },
        { "{\"pattern\":\"a**\"}", "repeats a repetition" },
        { "{\"pattern\":\"a{3,2}\"}", "has a number of times that cannot be" },
        { "{\"pattern\":\"a{99999}\"}", "too many times" },
        { "{\"pattern\":\"(a{100}){1000}\"}", "makes it too large" },
        { "{\"pattern\":\"\\\\bx\"}", "has an escape that is not supported" },
        { "{\"pattern\":\"(a)\\\\1\"}", "has an escape that is not supported" },
        { "{\"pattern\":\"\\\\p{L}\"}", "has an escape that is not supported" },
        { "{\"pattern\":\"[z-a]\"}", "has a range that is none" },
        { "{\"pattern\":\"[a\"}", "has no end of a class" },
        { "{\"pattern\":\"[]a]\"}", "has a class of no character" },
        { "{\"pattern\":\"^a$b\"}", "#/pattern fits no text" },
        { "{\"pattern\":7}", "#/pattern is not a string" },
        { "{\"pattern\":\"^a$\",\"minLength\":2}", "of which no text has all" },
        { "{\"format\":\"color\"}", "#/format is a format that is not supported" },
        { "{\"properties\":{\"d\":{\"type\":\"string\",\"format\":1}}}", "#/properties/d/format" },
        { "{\"type\":\"integer\",\"format\":\"date\"}", "#/format is neither \"int32\"" },
        { "{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", "# has bounds between which" },
        { "{\"type\":\"integer\",\"exclusiveMinimum\":3,\"exclusiveMaximum\":4}", "no number" },
        { "{\"minimum\":\"3\"}", "#/minimum is not a number" },
        { "{\"minimum\":9007199254740993}", "#/minimum is beyond 2^53" },
        { "{\"type\":\"integer\",\"minimum\":9007199254740993.0}", "#/minimum is beyond 2^53" },
        { "{\"minimum\":1e17}", "#/minimum is beyond 2^53" },
        { "{\"exclusiveMaximum\":1e-9}", "#/exclusiveMaximum is beyond" },
        { "{\"multipleOf\":0.5}", "#/multipleOf is not a whole number from 1 to 1000" },
        { "{\"type\":\"integer\",\"multipleOf\":0}", "#/multipleOf is not a whole" },
        { "{\"allOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "#/type has none that all" },
        { "{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}",
          "#/pattern stands in several schemas" },
        { "{\"allOf\":[true,false]}", "neither an object nor true" },
        { "{\"allOf\":[{\"prefixItems\":[true]},{\"items\":{\"type\":\"null\"}}]}",
          "#/prefixItems stands beside" },
        { "{\"allOf\":[{\"$ref\":\"#/x\"},{}]}", "#/$ref leads to no place" },
        { "{\"allOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", "that hold together" },
        { "{\"allOf\":[{\"not\":{}},{}]}", "#/not is a keyword that is not supported" },
        { "{\"oneOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}", "may have a value in common" },
        { "{\"oneOf\":[{\"maximum\":3},{\"minimum\":3}]}", "may have a value in common" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        g = compile(&demo, cases[i][0], &err);

        if (g != NULL || err.code == VLM_OK || strstr(err.text, cases[i][1]) == NULL) {
            fail_msg("%s: %s", cases[i][0], g != NULL ? "accepted" : err.text);
        }
    }
}


static vlm_grammar_t *
regex(const vocab_t *v, const char *text)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_grammar_t  *g;

    g = vlm_regex_make(v->pieces, text, &err);

    if (g == NULL) {
        fail_msg("%s: %s", text, err.text);
    }

    return g;
}


static void
an_expression_is_the_whole_answer(void **state)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_grammar_t  *g;

    (void) state;

    g = regex(&demo, "(yes|no)( \"\\w+\"\\n?){0,2}");
    assert_true(accepts(g, "yes"));
    assert_true(accepts(g, "no \"a\"\n \"bc\""));
    assert_false(accepts(g, "yes "));
    assert_false(accepts(g, "a yes"));
    vlm_grammar_free(g);

    g = regex(&demo, "a*");
    vlm_match_start(&match, g);
    assert_true(vlm_match_may_end(&match));
    assert_int_equal(vlm_grammar_least(g), 0);
    vlm_grammar_free(g);

    assert_null(vlm_regex_make(demo.pieces, "a(", &err));
    assert_non_null(strstr(err.text, "the expression has a bracket that is not closed, at byte 2"));
    memset(&err, 0, sizeof(err));
    assert_null(vlm_regex_make(demo.pieces, "(^$)?", &err));
    assert_non_null(strstr(err.text, "no text but the empty one"));
}


static vlm_grammar_t *
tools(const char *text, vlm_err_t *err)
{
    vlm_json_t     *j;
    vlm_grammar_t  *g;

    memset(err, 0, sizeof(*err));
    j = vlm_json_parse(text, strlen(text), err);
    assert_non_null(j);
    g = vlm_tools_make(demo.pieces, j, err);
    vlm_json_free(j);

    return g;
}


static void
a_call_has_a_tools_name_and_its_arguments(void **state)
{
    size_t          i;
    vlm_err_t       err;
    vlm_grammar_t  *g;
    static const char  *const yes[] = {
        "{\"name\": \"f\", \"arguments\": {\"n\": 3}}", "{\"name\":\"now\",\"arguments\":{}}",
        "\n {\"name\":\"any\",\"arguments\":{\"x\":[1]}}",
        "{\"name\":\"odd\",\"arguments\":{\"y\":1}}",
        "{\"name\":\"f\",\"arguments\":{\"n\":3,\"p\":{\"p\":{}}}}"
    };
    static const char  *const no[] = {
        "{\"name\":\"f\",\"arguments\":{}}", "{\"name\":\"now\",\"arguments\":{\"n\":3}}",
        "{\"name\":\"g\",\"arguments\":{}}", "{\"name\":\"f\"}", "{\"arguments\":{}}",
        "{\"name\":\"any\",\"arguments\":[]}"
    };
    static const char  *const wrong[][2] = {
        { "[]", "not an array of tools" },
        { "[{}]", "tools.0 has no function with a name" },
        { "[{\"function\":{\"name\":\"\"}}]", "tools.0 has no function" },
        { "[{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":\"g\",\"strict\":true,"
          "\"parameters\":{\"properties\":{\"a\":{\"not\":{}}}}}}]",
          "tools.1.function.parameters/properties/a/not is a keyword that is not supported" }
    };

    (void) state;

    g = tools("[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"strict\":true,"
              "\"parameters\":{\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":"
              "\"#/$defs/n\"},\"p\":{\"$ref\":\"#/$defs/p\"}},\"required\":[\"n\"],"
              "\"$defs\":{\"n\":{\"type\":\"integer\"},\"p\":{"
              "\"properties\":{\"p\":{\"$ref\":\"#/$defs/p\"}}}}}}},"
              "{\"function\":{\"name\":\"now\"}},"
              "{\"function\":{\"name\":\"any\",\"parameters\":{}}},"
              "{\"function\":{\"name\":\"odd\",\"parameters\":{\"not\":{}}}}]", &err);

    if (g == NULL) {
        fail_msg("%s", err.text);
    }

    for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (!accepts(g, yes[i])) {
            fail_msg("refused: %s", yes[i]);
        }
    }

    for (i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        if (accepts(g, no[i])) {
            fail_msg("accepted: %s", no[i]);
        }
    }

    vlm_grammar_free(g);

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_null(tools(wrong[i][0], &err));

        if (strstr(err.text, wrong[i][1]) == NULL) {
            fail_msg("%s", err.text);
        }
    }
}


static const char  *const schemas[] = {
    "{\"pattern\":\"b+\"}",
    "{\"properties\":{\"d\":{\"format\":\"date-time\"},\"u\":{\"format\":\"uuid\"},"
        "\"n\":{\"type\":\"integer\",\"minimum\":-3,\"maximum\":120}},\"required\":[\"d\",\"n\"]}",
    "{\"type\":\"array\",\"items\":{\"minimum\":0,\"maximum\":1},\"minItems\":4,\"maxItems\":4}",
    "{\"anyOf\":[{\"pattern\":\"^[a-z]{2,9}$\"},{\"type\":\"string\",\"maxLength\":3},"
        "{\"type\":\"integer\",\"minimum\":7},{\"enum\":[\"abc\",12]}]}",
    "{\"items\":{\"pattern\":\"^.{0,5}$\"},\"minItems\":1}",
    "{\"pattern\":\"^\\\\S.*\u00e9?$|^[^b]*$\"}"
};


static void
walks_end_and_masks_are_exact(void **state)
{
    char            text[BUDGET * 256];
    size_t          i, bytes;
    uint32_t        k, least;
    vlm_err_t       err;
    vlm_json_t     *j;
    vlm_grammar_t  *g;

    (void) state;

    for (i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
        g = must_compile(&demo, schemas[i]);
        least = vlm_grammar_least(g);

        for (k = 0; k < 150; k++) {
            bytes = walk(&demo, g, least + k % (BUDGET - least), text, k < 15 ? 1 : 0);
            memset(&err, 0, sizeof(err));
            j = vlm_json_named(text, bytes, "answer", &err);

            if (j == NULL) {
                fail_msg("%s: %.*s", err.text, (int) bytes, text);
            }

            vlm_json_free(j);
        }

        vlm_grammar_free(g);
        g = must_compile(&qwen, schemas[i]);
        (void) walk(&qwen, g, vlm_grammar_least(g) + 30, text, 8);
        vlm_grammar_free(g);
    }

    g = regex(&demo, "(\\d{1,3}, )*[^a-z\\n]{0,4}\\S?");

    for (k = 0; k < 100; k++) {
        (void) walk(&demo, g, 1 + k, text, 1);
    }

    vlm_grammar_free(g);
}


static void
assert_quick(const vocab_t *v, const char *text)
{
    double          since;
    vlm_err_t       err;
    vlm_grammar_t  *g;

    since = processor_time();
    g = compile(v, text, &err);

    assert_true(g != NULL || err.code != VLM_OK);
    assert_true(processor_time() - since < 5);
    vlm_grammar_free(g);
}


static void
large_patterns_are_made_or_refused_in_bounded_time(void **state)
{
    (void) state;

    assert_quick(&demo, "{\"pattern\":\"(a|b)*a(a|b){20}\"}");
    assert_quick(&demo, "{\"pattern\":\".*.*.*.*x.*.*.*.*y\",\"maxLength\":2000}");
    assert_quick(&demo, "{\"pattern\":\"^(((((a?){9}){9}){9}){9})$\"}");
    assert_quick(&demo, "{\"pattern\":\"((((((((((((((((x?)?)?)?)?)?)?)?)?)?)?)?)?)?)?)?)?\"}");
    assert_quick(&demo, "{\"pattern\":\"^(lf3,............*...eird|}){1,3}$\"}");
    assert_quick(&demo, "{\"pattern\":\"^.{1,1000}$\",\"maxLength\":400}");
    assert_quick(&demo, "{\"pattern\":\"[^a][^b][^c][^d]{40}\",\"format\":\"date-time\"}");
    assert_quick(&demo, "{\"type\":\"integer\",\"multipleOf\":997,\"minimum\":123456789}");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_string_has_its_pattern),
        cmocka_unit_test(a_string_has_its_format),
        cmocka_unit_test(a_number_lies_within_its_bounds),
        cmocka_unit_test(random_bounds_agree_with_strtod),
        cmocka_unit_test(schemas_that_hold_together_are_one),
        cmocka_unit_test(what_cannot_be_read_is_refused_with_its_place),
        cmocka_unit_test(an_expression_is_the_whole_answer),
        cmocka_unit_test(a_call_has_a_tools_name_and_its_arguments),
        cmocka_unit_test(walks_end_and_masks_are_exact),
        cmocka_unit_test(large_patterns_are_made_or_refused_in_bounded_time)
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
